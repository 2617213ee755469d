/* eager.h: a step as a graph that grows (a trace), shared by eager.c, flush.c and tape.c.
 *
 * Reading a value flushes: everything queued that has an effect runs, with the wanted value, as one
 * program; its plan is found by a hash of the trace (step_key.c).
 *
 * Invariants:
 *  1. Nodes below `done` have run. Their values are known (`known`) or can be computed again from
 *     known ones; updates among them are never run again.
 *  2. Initial values run first, by themselves. What else is queued runs whole or not at all. After
 *     a run that failed nothing more of the step runs.
 *  3. A read of a variable that was updated since it ran cannot be computed again. Small ones are
 *     kept when they run, and so are the numbers that a user may ask for after an update (shown.c);
 *     needing another one is an error that says what to do.
 */
#ifndef TUTTI_EXEC_TAPE_EAGER_H
#define TUTTI_EXEC_TAPE_EAGER_H

#include "exec/engine.h"
#include "tutti/tape.h"

typedef struct tutti_known {
    tutti_edge edge;
    tutti_tensor *value;
} tutti_known;

typedef TUTTI_VEC(tutti_edge) tutti_edges;

/* A constant of one floating-point element; fed: its value is known, and not in the step's key. */
typedef struct tutti_number {
    tutti_node *node;
    uint64_t hash;
    bool fed;
} tutti_number;

/* Numbers of a trace that steps before had, and how often they changed. */
typedef struct tutti_seen_number {
    uint64_t hash;
    int changes;
} tutti_seen_number;
typedef struct tutti_seen_trace {
    uint64_t hash, used;
    size_t count;
    tutti_seen_number *numbers;
} tutti_seen_trace;

struct tutti_eager {
    tutti_engine *engine;
    bool shared; /* the engine is somebody else's */
    tutti_graph *graph;
    tutti_arena lasting;
    TUTTI_VEC(tutti_known) known;
    uint32_t done;
    int64_t batch;      /* rows of the first value that was used in the step; 0: none yet */
    bool own_rows;      /* values hold this process's rows only, as processes agreed */
    tutti_error failed; /* of a run of this step: nothing of the step runs any more */
    tutti_error first;  /* of the first step that failed since tutti_eager_check */
    uint64_t hash;      /* of nodes [0, hashed), numbers' values left out */
    uint32_t hashed;
    TUTTI_VEC(tutti_number) numbers; /* among these nodes */
    TUTTI_VEC(tutti_seen_trace) traces;
    uint64_t looks;             /* at traces; the clock of their use */
    tutti_edges losses;         /* what gradients were asked of in this step */
    tutti_edges feeds, fetches; /* of the flush at hand; kept for their memory */
    TUTTI_VEC(tutti_node *) targets;
    TUTTI_VEC(tutti_tensor *) values;
    TUTTI_VEC(const tutti_node *) stack;
    TUTTI_VEC(uint8_t) seen;
};

/* Adds an edge to a list that does not have it; false for lack of memory. */
bool tutti__eager_want(tutti_edges *list, tutti_edge edge);

/* The value of an edge that has run or was given, or NULL. The context's. */
tutti_tensor *tutti__eager_known(const tutti_eager *eager, tutti_edge edge);
/* Takes over one reference of the value, also on failure. */
tutti_status tutti__eager_remember(tutti_eager *eager, tutti_edge edge, tutti_tensor *value);
/* Whether running the node has an effect, so that it runs once, asked for or not. */
bool tutti__eager_acts(const tutti_node *node);
/* Whether it has run and cannot again: it acted, or it read a variable that was updated since. */
bool tutti__eager_is_stale(const tutti_eager *eager, const tutti_node *node);

/* Parts of a flush. Control edges to nodes that have run are dropped: they are fulfilled. */
void tutti__eager_drop_controls(tutti_eager *eager);
/* `seen` is zero for every node. */
tutti_status tutti__eager_clear_seen(tutti_eager *eager);
/* What fetches and targets need of known values: the feeds. */
tutti_status tutti__eager_find_feeds(tutti_eager *eager);
/* Runs fetches and targets and remembers what was fetched. */
tutti_status tutti__eager_run(tutti_eager *eager);

/* What went wrong in the step at hand, or in an earlier one that tutti_eager_check was not asked
 * about: who counts or saves steps asks this, and leaves it for tutti_eager_check. */
tutti_status tutti__eager_failure(const tutti_eager *eager);

/* ---- tape.c ---- */
/* The graph of the step under way in which this thread began a tape, or NULL: mistakes that name no
 * symbol are that step's. The step, or its context, is over. */
tutti_graph *tutti__eager_recording(void);
void tutti__eager_recorded(const tutti_eager *eager);

/* ---- shown.c ---- */
/* Notes that gradients of `y` were asked for. */
tutti_status tutti__eager_note_loss(tutti_eager *eager, tutti_edge y);
/* Adds to the fetches of a flush that updates variables what may be asked for behind it. */
tutti_status tutti__eager_keep_shown(tutti_eager *eager);

/* ---- step_key.c ---- */
/* What the plan of a flush is found by, beside its feeds, fetches and targets. */
tutti_status tutti__step_key(tutti_eager *eager, uint64_t *ret_key);
/* Numbers that change from step to step become known values, and so feeds. */
tutti_status tutti__step_numbers(tutti_eager *eager);
void tutti__step_key_free(tutti_eager *eager);

/* ---- flush.c ---- */
/* Runs the initialisers of the step's new variables, where they need nothing of the rest. */
tutti_status tutti__eager_first_values(tutti_eager *eager);
/* Of a step that has failed: its new variables get their first values, one by one; who cannot is no
 * variable any more. */
void tutti__eager_keep_variables(tutti_eager *eager);

/* Runs what is queued; `edge` (node NULL: none) is known afterwards. */
tutti_status tutti__eager_flush(tutti_eager *eager, tutti_edge edge);

#endif
