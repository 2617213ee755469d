/* pass.h: what a rewrite is. One file each, ending in one descriptor; run in ascending order.
 * tables: tutti_pass */
#ifndef TUTTI_PASSES_PASS_H
#define TUTTI_PASSES_PASS_H

#include "program/kernel.h"
#include "program/target.h"

typedef struct tutti_pass_context {
    const tutti_device *device; /* of a partition; NULL for passes over the whole job */
    bool deterministic;
    bool keeps_all; /* the pass remat does nothing */
} tutti_pass_context;

typedef enum tutti_pass_stage {
    TUTTI_PASS_JOB,      /* the whole graph, shapes known, before it is placed and partitioned */
    TUTTI_PASS_PARTITION /* one device's piece */
} tutti_pass_stage;

typedef struct tutti_pass {
    const char *name;
    const char *doc; /* one line */
    tutti_pass_stage stage;
    int order; /* within the stage, ascending */
    /* Rewrites in place and leaves the graph sorted; *ret_changes counts what it did. Results,
     * targets and parameters keep their meaning and order. */
    tutti_status (*run)(tutti_graph *graph, const tutti_pass_context *context, int *ret_changes);
} tutti_pass;

/* Runs all passes of a stage. With TUTTI_DUMP=passes writes the graph after each one into files
 * under TUTTI_DUMP_DIR (default tutti-dump/): NNN-<label>-<pass>.txt and .dot. */
tutti_status tutti__passes_run(tutti_pass_stage stage, tutti_graph *graph,
                               const tutti_pass_context *context, const char *label);

/* First of all: gives every node its type from the parameters' known shapes, folding small
 * constants as it goes. Afterwards types are static but behind DYNAMIC nodes. Errors name the node
 * and the user's place. */
tutti_status tutti__specialize(tutti_graph *graph);

/* The counter of random numbers, where something in the graph updates it; else NULL. */
const tutti_node *tutti__random_advanced(const tutti_graph *graph);

/* Gives every node the full local name of its device ("cpu:0"): scopes, colocation, what the device
 * supports; free nodes go to the device of their inputs or to `fallback`. */
tutti_status tutti__place(tutti_graph *graph, const char *fallback);
/* The same of a job of several processes: nodes on devices of others keep the names that say so
 * ("/job:worker/task:1/cpu:0"). */
tutti_status tutti__place_between(tutti_graph *graph, const char *fallback);
/* The same as if every device could run everything: where shapes are not known yet. */
tutti_status tutti__place_unasked(tutti_graph *graph, const char *fallback);

/* The device that a variable lies on in every run, if it can hold it. */
tutti_status tutti__place_variable(const tutti_node *variable, const char *fallback,
                                   tutti_device **ret);

/* Of a value that is fed; count 0: all. */
typedef struct tutti_fed_rows {
    int64_t first, count;
} tutti_fed_rows;

typedef struct tutti_piece_graph {
    char device[64];
    tutti_graph *graph;
    int parameter_count, result_count;
    int *parameters;      /* by the piece's parameter index: index in the job */
    int *results;         /* by the piece's result index: index in the job */
    tutti_fed_rows *rows; /* by the piece's parameter index, once somebody has looked */
    bool shadows;         /* as tutti_partition has it */
} tutti_piece_graph;
/* One graph per device, send and recv at the cuts. Parameters of the job that a piece uses become
 * its parameters. */
tutti_status tutti__partition(tutti_graph *graph, int *ret_count, tutti_piece_graph **ret_pieces);
/* The same of a job whose devices stand in several processes, all of which partition it so;
 * `fronts`: a device of each process, in one order, which gets the results that no device of its
 * process makes. Only pieces of this process are returned. */
tutti_status tutti__partition_between(tutti_graph *graph, int front_count,
                                      const char *const *fronts, int *ret_count,
                                      tutti_piece_graph **ret_pieces);
/* Pieces as they are to be compiled: whether updates go to shadows becomes the same for all. A
 * device that waits at the commit sends nothing to one that is not there yet, and a piece may not
 * see what the whole job shows to be checked. */
tutti_status tutti__partition_agree(int count, tutti_piece_graph *pieces);
void tutti__partition_free(int count, tutti_piece_graph *pieces);

#endif
