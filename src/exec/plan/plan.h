/* plan.h: what a request compiles to: a program per device, and, where shapes depend on data, the
 * rest of the graph that is compiled once those shapes are known. */
#ifndef TUTTI_EXEC_PLAN_PLAN_H
#define TUTTI_EXEC_PLAN_PLAN_H

#include "exec/engine.h"
#include "exec/plan/server_variables.h"
#include "passes/pass.h"

typedef struct tutti_plan_piece {
    tutti_device *device;
    tutti_executable *executable;
    int parameter_count, result_count;
    int *parameters;      /* piece's parameter → request's feed */
    int *results;         /* piece's result → plan's result */
    tutti_fed_rows *rows; /* by the piece's parameter: what it takes of the feed */
} tutti_plan_piece;

typedef struct tutti_bodies tutti_bodies;

/* The collectives of a plan in one group, in words that are the same on all its ranks. */
typedef struct tutti_group_schedule {
    tutti_axis_group *group;
    TUTTI_VEC(const char *) texts;
} tutti_group_schedule;

typedef struct tutti_plan {
    _Atomic int references;
    int piece_count;
    tutti_plan_piece *pieces;
    int result_count; /* results of the pieces: first segment's */
    /* Variables that the pieces update. With shadows a run claims them; else it commits when nobody
     * claims them. */
    TUTTI_VEC(tutti_state_variable *) updated;
    bool shadows;
    /* That it draws from, and which it or its rest advances, or NULL: each run has a ticket. */
    tutti_state_variable *counter;
    bool trains;                               /* it takes gradients, and updates variables */
    bool meets;                                /* other processes, in collectives and transfers */
    TUTTI_VEC(tutti_group_schedule) schedules; /* of groups with other processes, in one order */
    tutti_arena arena;                         /* of their words */
    bool joins;                                /* its devices meet each other, in collectives */
    bool dries; /* it ends in all of them, OUT_OF_RANGE, when a queue has too few rows */
    /* Rest of a graph whose shapes depend on data; rest NULL: there is none. The rest is fed with
     * the first segment's results (rest_feeds[i] takes result i) and gives some of the fetches. */
    tutti_graph *rest;
    int rest_feed_count, rest_fetch_count, rest_target_count;
    tutti_edge *rest_feeds, *rest_fetches;
    tutti_node **rest_targets;
    /* Where each fetch of the request comes from: result index of the first segment, or ~index of
     * the rest's fetches. In deterministic mode other replicas' results stand behind those that are
     * asked for, and are let go. */
    int fetch_count;
    int *fetches;
    tutti_server_plan servers; /* its variables on parameter servers */
    uint64_t constants;        /* the request's */
    tutti_bodies *bodies;      /* plans of its sub-graphs, see cache.h; NULL: none has run */
    size_t arena_bytes;
    double flops, recomputed_flops; /* of programs in which something is computed again */
    char note[TUTTI_LIMIT_NOTE];    /* what was chosen for the limit of memory, or "" */
    size_t arena_bound;             /* of pieces that know theirs, and the arenas of the others */
} tutti_plan;

tutti_status tutti__plan_create(tutti_engine *engine, const tutti_engine_options *options,
                                tutti_graph *graph, const tutti_run_request *request,
                                const tutti_type *feed_types, tutti_plan **ret);
tutti_plan *tutti__plan_retain(tutti_plan *plan);
void tutti__plan_release(tutti_plan *plan);
/* Whether it is a step like those that follow: it trains variables that have values already. The
 * first step of a tape makes them. */
bool tutti__plan_is_steady(tutti_state *state, const tutti_plan *plan);
/* A number for the set of variables that it updates: a step that is compiled anew keeps it. */
uint64_t tutti__plan_updates(const tutti_plan *plan);
/* The plan that the engine compiled last, retained, or NULL. */
tutti_plan *tutti__engine_last(tutti_engine *engine);

/* ---- constants.c ---- */
/* Reads of variables that have a value on the device become constants, in a program that writes
 * nothing, on a device with the host's memory. */
tutti_status tutti__plan_constants(tutti_state *state, const char *device, tutti_graph *job);

/* ---- device_limits.c ---- */
/* TOO_LARGE when a device of the strategy would need more memory than it is granted. */
tutti_status tutti__limits_check(tutti_state *state, const tutti_strategy *strategy,
                                 const tutti_plan *plan);

/* Runs the pieces (not the rest). `values`: the request's feeds, contiguous host tensors. */
tutti_status tutti__plan_run(const tutti_plan *plan, tutti_run *run, tutti_tensor *const *values,
                             tutti_tensor **ret_results);

#endif
