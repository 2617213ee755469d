/* rewrite.h: the walk over a job that builds one replica's part; shared by rewrite.c, placement.c,
 * spmd.c.
 */
#ifndef TUTTI_PARALLEL_SPMD_REWRITE_H
#define TUTTI_PARALLEL_SPMD_REWRITE_H

#include "parallel/spmd/spmd.h"

typedef enum tutti_placement_kind {
    TUTTI_PLACEMENT_REPLICATED,
    TUTTI_PLACEMENT_SHARDED,
    TUTTI_PLACEMENT_PARTIAL
} tutti_placement_kind;

/* A value of the job as the replica has it. */
typedef struct tutti_placement {
    tutti_placement_kind kind;
    int dim; /* of a cut */
    tutti_edge edge;
} tutti_placement;

enum { TUTTI_PLACEMENTS_MOST = 8 };
typedef struct tutti_value_placements {
    int count; /* the first is how it was made; others were turned from it */
    tutti_placement placements[TUTTI_PLACEMENTS_MOST];
} tutti_value_placements;

/* node->scratch of the job's nodes. */
typedef struct tutti_rewritten {
    tutti_node *node;                    /* what control edges wait for */
    const struct tutti_rewritten *first; /* of the first replica's walk; NULL in that walk */
    tutti_value_placements *outputs;
} tutti_rewritten;

typedef struct tutti_spmd_rewrite {
    const tutti_spmd *spmd;
    tutti_graph *from, *to;
    int replica; /* of all */
    const char *device;
    int64_t first, rows; /* of the batch */
    int channel;         /* number of collectives so far: equal on all replicas */
    tutti_arena *scratch;
} tutti_spmd_rewrite;

/* Takes a node of the job whose inputs have been walked. */
tutti_status tutti__spmd_node(tutti_spmd_rewrite *rewrite, tutti_node *node);

/* ---- placement.c ---- */
/* How the value was made. */
const tutti_placement *tutti__placement_made(tutti_edge edge);
/* Whether it is whole already, as it was made or because somebody wanted it so. */
bool tutti__placement_is_known(tutti_edge edge);
/* The value in another form: found, or made by a collective, a slice, or by computing it so. */
tutti_status tutti__placement_as(tutti_spmd_rewrite *rewrite, tutti_edge edge,
                                 tutti_placement_kind kind, int dim, tutti_edge *ret);
/* An all_reduce of `from` in the name of `like`. */
tutti_status tutti__placement_reduce(tutti_spmd_rewrite *rewrite, const tutti_node *like,
                                     const char *how, tutti_edge from, tutti_edge *ret);
/* The same for the replica's nodes of the tree over the shards. */
tutti_status tutti__placement_reduce_shards(tutti_spmd_rewrite *rewrite, const tutti_node *like,
                                            int blocks, tutti_edge from, tutti_edge *ret);
/* Whether a dimension can be cut as the batch is: a multiple of it. */
bool tutti__placement_divides(const tutti_spmd_rewrite *rewrite, int64_t size);
/* That size on this replica, and where it begins. */
int64_t tutti__placement_size(const tutti_spmd_rewrite *rewrite, int64_t size);
int64_t tutti__placement_start(const tutti_spmd_rewrite *rewrite, int64_t size);

/* ---- bucket.c ---- */
/* Joins sums over the replicas; leaves the graph sorted. */
tutti_status tutti__spmd_buckets(tutti_graph *graph, const tutti_spmd *spmd);

/* ---- collective_order.c ---- */
/* Puts nodes, of which those from `known` on are new, where they stand alike in all processes. */
tutti_status tutti__spmd_collective_order(tutti_graph *graph, size_t known);

/* ---- overlap.c ---- */
/* Orders a graph whose buckets are started and waited for: what they need comes first. */
tutti_status tutti__spmd_overlap(tutti_graph *graph);
/* spmd.c: the variable whose update, or that of whose slot, comes first behind a gradient; *ret
 * is NULL where none does. */
tutti_status tutti__spmd_updated(const tutti_graph *graph, const tutti_node *gradient,
                                 const tutti_node **ret);
/* Its name in the state; of a slot that of its variable. */
const char *tutti__spmd_variable_name(const tutti_node *variable);

/* ---- rewrite.c ---- */
/* The ways to cut a node of the job. */
int tutti__spmd_ways(const tutti_node *node, int capacity, tutti_split *ret);
/* A copy of the node in the replica's graph with these inputs, cut in that way; NULL: whole. */
tutti_status tutti__spmd_copy(tutti_spmd_rewrite *rewrite, const tutti_node *node,
                              const tutti_edge *inputs, const tutti_split *way, tutti_node **ret);
/* A new node beside what it stands for. */
tutti_status tutti__spmd_add(tutti_spmd_rewrite *rewrite, const tutti_node *like, const char *op,
                             int input_count, const tutti_edge *inputs, int attr_count,
                             const tutti_attr *attrs, tutti_node **ret);

tutti_status tutti__spmd_no_memory(void);
/* How output `output` of the node that is being walked came to be. */
void tutti__spmd_made(tutti_rewritten *mark, int output, tutti_placement placement);
/* Takes the node whole: every replica does all of it. */
tutti_status tutti__spmd_whole(tutti_spmd_rewrite *rewrite, tutti_node *node,
                               tutti_rewritten *mark);

/* ---- copy.c ---- */
tutti_status tutti__spmd_copy_controls(const tutti_spmd_rewrite *rewrite, const tutti_node *node,
                                       tutti_node *copy);
tutti_attr *tutti__spmd_attr(tutti_node *node, const char *name);

/* ---- partial.c ---- */
/* Whether what goes in partial comes out so; and then. */
bool tutti__spmd_passes_partial(const tutti_node *node);
tutti_status tutti__spmd_copy_partial(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                      tutti_rewritten *mark);
/* A variable whose copies are not to be put together must not be read for all replicas. */
tutti_status tutti__spmd_check_read(const tutti_spmd_rewrite *rewrite, const tutti_node *node);
/* The copy of a variable of which all replicas have the same value after all says so. */
void tutti__spmd_keep_whole(const tutti_spmd_rewrite *rewrite, const tutti_node *node,
                            tutti_node *copy);
/* Whether it reads or updates a variable of which replicas have values of their own; and then. */
bool tutti__spmd_takes_partial(const tutti_spmd_rewrite *rewrite, const tutti_node *node);
tutti_status tutti__spmd_copy_accumulated(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                          tutti_rewritten *mark);

/* ---- sparse.c ---- */
/* Whether an update's rows are summed as a table; and then. */
bool tutti__spmd_makes_dense(const tutti_spmd_rewrite *rewrite, const tutti_node *node);
tutti_status tutti__spmd_copy_dense(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                    tutti_rewritten *mark);

/* ---- deterministic_sum.c ---- */
/* Whether a way gives a sum over the batch; and then, in deterministic mode. */
bool tutti__spmd_is_deterministic_sum(const tutti_node *node, const tutti_split *way);
tutti_status tutti__spmd_copy_deterministic_sum(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                                const tutti_split *way, tutti_rewritten *mark);

/* ---- feeds.c ---- */
bool tutti__spmd_is_group(const tutti_node *node);
/* `own` holds this process's rows of the node's output: this replica's part of them. */
tutti_status tutti__spmd_take_rows(tutti_spmd_rewrite *rewrite, tutti_node *node, int output,
                                   tutti_edge own, tutti_rewritten *mark);
tutti_status tutti__spmd_take_parameter(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                        tutti_rewritten *mark);
tutti_status tutti__spmd_take_group(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                    tutti_rewritten *mark);
tutti_status tutti__spmd_take_print(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                    tutti_rewritten *mark);
/* Of central storage; false: the node has nothing to do with a variable. */
bool tutti__spmd_take_central(tutti_spmd_rewrite *rewrite, tutti_node *node, tutti_rewritten *mark,
                              tutti_status *ret_status);

/* ---- feeds.c ---- */
bool tutti__spmd_is_queue(const tutti_node *node);
tutti_status tutti__spmd_take_queue(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                    tutti_rewritten *mark);
/* A step that ends because rows are missing does so when all its meetings are over: no process, and
 * no device of one, is left in one that others never come to. */
tutti_status tutti__spmd_end_last(tutti_graph *graph);

#endif
