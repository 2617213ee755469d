/* plan.h: what `tutti plan collectives` is about, and its parts; `tutti plan schedule`. */
#ifndef TUTTI_CLI_PLAN_PLAN_H
#define TUTTI_CLI_PLAN_PLAN_H

#include "comm/cost/description.h"
#include "comm/sim/sim.h"

enum { TUTTI_COMM_PLAN_SIZES = 24, TUTTI_COMM_PLAN_ALGORITHMS = 32 };

/* Seconds; NAN where there is none. */
typedef struct tutti_comm_plan_cell {
    double predicted, simulated, measured;
    uint64_t messages;
    double busiest;
} tutti_comm_plan_cell;

typedef struct tutti_comm_plan {
    const char *operation;
    tutti_network network;
    tutti_comm_cost cost;
    bool simulate, json;
    uint64_t limit;      /* messages that a simulation may have */
    bool measured_sizes; /* those of a file; else powers of 8 */
    int size_count, algorithm_count;
    int64_t bytes[TUTTI_COMM_PLAN_SIZES]; /* of the whole message */
    const char *names[TUTTI_COMM_PLAN_ALGORITHMS];
    bool skipped[TUTTI_COMM_PLAN_ALGORITHMS]; /* too many messages to simulate */
    tutti_comm_plan_cell cells[TUTTI_COMM_PLAN_ALGORITHMS][TUTTI_COMM_PLAN_SIZES];
} tutti_comm_plan;

/* Links as a description has them; what it leaves out is assumed as programs assume it. */
void tutti__comm_plan_describe(const tutti_description *description, tutti_network *network);
/* The cost model's constants for a network. */
tutti_comm_cost tutti__comm_plan_cost(const tutti_network *network);
/* The message's bytes as the formulas of an operation count them. */
int64_t tutti__comm_plan_block(const tutti_comm_plan *plan, int64_t bytes);
/* The sizes that `tutti bench collectives --json` has measured of this operation and number of
 * ranks, in the place of the plan's own. *ret_sizes: how many. */
tutti_status tutti__comm_plan_sizes(tutti_comm_plan *plan, const char *path, int *ret_sizes);
/* Fills names, sizes and cells. */
tutti_status tutti__comm_plan_fill(tutti_comm_plan *plan);
/* Adds the times that were measured. *ret_rows: how many were of use. */
tutti_status tutti__comm_plan_measured(tutti_comm_plan *plan, const char *path, int *ret_rows);
void tutti__comm_plan_print(const tutti_comm_plan *plan);
/* A picture with a panel for each algorithm: time against size. */
tutti_status tutti__comm_plan_picture(const tutti_comm_plan *plan, const char *path);

/* ---- schedule.c ---- */
int tutti__plan_schedule(int argc, char **argv);

#endif
