/* rewrite.h: from a job to the graph of its ranks: shardings are decided once, on the job
 * (propagate.c), then each replica of this process gets its nodes (rewrite.c, reshard.c).
 */
#ifndef TUTTI_PARALLEL_SPMD_REWRITE_H
#define TUTTI_PARALLEL_SPMD_REWRITE_H

#include "parallel/spmd/spmd.h"

/* How a value lies along each of the layout's axes: a tutti_sharding in the form that the rewrite
 * computes with. Of two axes that split one dimension the layout's first is outermost. */
typedef struct tutti_partition_spec {
    struct {
        int8_t kind;          /* tutti_shard_kind, not varying */
        int8_t dimension;     /* where it is split, else 0 */
    } along[TUTTI_MESH_AXES]; /* partial: sums */
} tutti_partition_spec;

/* A value of the job as a replica has it. */
typedef struct tutti_placement {
    tutti_partition_spec spec;
    tutti_edge edge;
} tutti_placement;

enum { TUTTI_PLACEMENTS_MOST = 8 };
typedef struct tutti_value_placements {
    int count; /* the first is how it was made; others were turned from it */
    tutti_placement placements[TUTTI_PLACEMENTS_MOST];
} tutti_value_placements;

/* What becomes of a node. */
typedef enum tutti_rewrite_rule {
    TUTTI_REWRITE_COPY, /* cut along some axes, partial or whole along others */
    TUTTI_REWRITE_PARAMETER,
    TUTTI_REWRITE_GROUP,
    TUTTI_REWRITE_QUEUE,
    TUTTI_REWRITE_ACCUMULATED, /* of a variable of which replicas have values of their own */
    TUTTI_REWRITE_DENSE,       /* an update's rows are summed as a table */
    TUTTI_REWRITE_EXPANDED     /* other nodes of the job stand for it */
} tutti_rewrite_rule;

/* node->scratch of the job's nodes. */
typedef struct tutti_rewritten {
    tutti_rewrite_rule rule;
    const tutti_split *ways[TUTTI_MESH_AXES]; /* by axes: how it is cut along them; NULL: not */
    bool passes[TUTTI_MESH_AXES];             /* partial goes in and comes out */
    tutti_partition_spec *specs;              /* per output, as it is made */
    uint32_t *known;                          /* per output: axes along which it is known whole */
    const tutti_partition_spec **constraints; /* per output, the user's; the array or one: NULL */
    size_t first, end;                        /* expanded: the nodes of the job, */
    tutti_edge *expanded;                     /* and which of their outputs are its own */
    /* Of the replica at hand: */
    tutti_node *node; /* what control edges wait for */
    tutti_value_placements *outputs;
    /* Of this process's first replica, while another is at hand; else NULL. */
    tutti_node *first_node;
    const tutti_value_placements *first_outputs;
} tutti_rewritten;

typedef struct tutti_spmd_rewrite {
    const tutti_spmd *spmd;
    tutti_graph *from, *to;
    int replica; /* of all: its place in the mesh */
    int rank[TUTTI_MESH_AXES];
    bool others; /* not the first replica of this process */
    const char *device;
    int64_t first, rows; /* of the batch */
    int channel;         /* number of collectives so far: equal on all replicas */
    tutti_arena *scratch;
} tutti_spmd_rewrite;

/* node->scratch of the result's nodes while it is made: what the rewrite says that they are, for
 * verify.c. Buckets have none. */
typedef struct tutti_claim {
    const tutti_node *job; /* the node of the job that it stands for, or beside */
    bool copy;             /* it does the job's node's work; else it was put in */
    tutti_rewrite_rule rule;
    const tutti_split *ways[TUTTI_MESH_AXES];
    int replica;
    bool slices; /* takes the rank's block along `axes` of a dimension that has `size` */
    int axes, dimension;
    int64_t size;
} tutti_claim;

static inline tutti_rewritten *tutti__rewritten(const tutti_node *node)
{
    return node->scratch;
}

/* ---- propagate.c ---- */
/* Decides for all nodes of the job, in order; nodes may be added behind the first `count`. */
tutti_status tutti__spmd_propagate(tutti_graph *job, const tutti_spmd *spmd, tutti_arena *arena);
/* What a node's ways make of an output, before any constraint. */
tutti_partition_spec tutti__spmd_spec(const tutti_spmd *spmd, const tutti_rewritten *mark,
                                      int output);
/* How a value lies, for all who use it. */
const tutti_partition_spec *tutti__spec_of(tutti_edge edge);
/* Whether a dimension can be cut along the layout's axes `axes`; the batch's cut multiples of the
 * batch. */
bool tutti__spmd_divides(const tutti_spmd *spmd, int axes, int64_t size);
/* The ways to cut a node of the job. */
int tutti__spmd_ways(const tutti_node *node, int capacity, tutti_split *ret);

/* ---- reshard.c ---- */
/* The value of the job in another sharding: found, or made by collectives and slices, or by
 * computing it so. */
tutti_status tutti__reshard(tutti_spmd_rewrite *rewrite, tutti_edge edge,
                            const tutti_partition_spec *spec, tutti_edge *ret);
tutti_status tutti__reshard_whole(tutti_spmd_rewrite *rewrite, tutti_edge edge, tutti_edge *ret);
/* How the replica has it as it was made. */
tutti_edge tutti__placement_made(tutti_edge edge);
/* An all_reduce of `from` along axes in the name of `like`. */
tutti_status tutti__reshard_reduce(tutti_spmd_rewrite *rewrite, const tutti_node *like, int axes,
                                   const char *how, tutti_edge from, tutti_edge *ret);
/* The same for the replica's nodes of the tree over the shards. */
tutti_status tutti__reshard_reduce_shards(tutti_spmd_rewrite *rewrite, const tutti_node *like,
                                          int blocks, tutti_edge from, tutti_edge *ret);
/* Moves the block [*begin, *begin + *size) of a dimension to that of a rank along axes. */
void tutti__spmd_block(const tutti_spmd_rewrite *rewrite, int axes, int rank, int64_t *begin,
                       int64_t *size);
/* This replica's block of each dimension of a value of the job. */
void tutti__spmd_box(const tutti_spmd_rewrite *rewrite, const tutti_partition_spec *spec,
                     const tutti_type *type, int64_t *ret_begin, int64_t *ret_size);

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
/* Gives nodes [first, end) of the job to the replica at hand. */
tutti_status tutti__spmd_nodes(tutti_spmd_rewrite *rewrite, size_t first, size_t end);
tutti_status tutti__spmd_no_memory(void);
/* Notes how output `output` of the job's node came to be. */
void tutti__spmd_made(tutti_rewritten *mark, int output, const tutti_partition_spec *spec,
                      tutti_edge edge);
/* Inputs as a node is to be given them: as its ways say, partial where it passes that on. */
tutti_status tutti__spmd_inputs(tutti_spmd_rewrite *rewrite, const tutti_node *node,
                                tutti_edge *ret);

/* ---- copy.c ---- */
/* A copy of the node in the replica's graph with these inputs, cut in these ways, by axes; NULL:
 * whole. */
tutti_status tutti__spmd_copy(tutti_spmd_rewrite *rewrite, const tutti_node *node,
                              const tutti_edge *inputs, const tutti_split *const *ways,
                              tutti_node **ret);
/* A new node beside what it stands for. */
tutti_status tutti__spmd_add(tutti_spmd_rewrite *rewrite, const tutti_node *like, const char *op,
                             int input_count, const tutti_edge *inputs, int attr_count,
                             const tutti_attr *attrs, tutti_node **ret);
tutti_status tutti__spmd_copy_controls(const tutti_spmd_rewrite *rewrite, const tutti_node *node,
                                       tutti_node *copy);
tutti_attr *tutti__spmd_attr(tutti_node *node, const char *name);
/* Cuts the sizes among the attributes of a copy, and places its random numbers. */
tutti_status tutti__spmd_cut_attrs(const tutti_spmd_rewrite *rewrite, const tutti_node *node,
                                   const tutti_split *const *ways, tutti_node *copy);

/* Says of a node that was added that it takes the block of its rank. */
void tutti__spmd_claim_slice(tutti_node *node, int axes, int dimension, int64_t size);

/* ---- spmd.c ---- */
/* The graph, not yet verified; its nodes' scratch holds claims, which lie in the arena. */
tutti_status tutti__spmd_make(tutti_graph *job, const tutti_spmd *spmd, tutti_arena *scratch,
                              tutti_graph **ret);

/* ---- verify.c ---- */
/* INTERNAL names a node that does not compute its part of what the job asks for. */
tutti_status tutti__spmd_verify(const tutti_graph *graph, const tutti_spmd *spmd);

/* ---- partial.c ---- */
/* Whether what goes in partial along axes comes out so. */
bool tutti__spmd_passes_partial(const tutti_node *node, int axes);
/* Of an addition that passes a partial value on: the input that only rank 0 of the axes adds,
 * because it is whole; -1: it is none. */
int tutti__spmd_whole_summand(const tutti_node *node, int axes);
/* What stands for such an addition on the other ranks: the other input. */
tutti_status tutti__spmd_leave_whole(tutti_spmd_rewrite *rewrite, const tutti_node *node,
                                     tutti_edge own, tutti_edge whole, tutti_node **ret);
/* A variable whose copies are not to be put together must not be read for all replicas. */
tutti_status tutti__spmd_check_read(const tutti_spmd *spmd, const tutti_node *node);
/* The copy of a variable of which all replicas have the same value after all says so. */
void tutti__spmd_keep_whole(const tutti_spmd_rewrite *rewrite, const tutti_node *node,
                            tutti_node *copy);
/* Whether it reads or updates a variable of which replicas have values of their own; and then. */
bool tutti__spmd_takes_partial(const tutti_spmd *spmd, const tutti_node *node);
tutti_status tutti__spmd_copy_accumulated(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                          tutti_rewritten *mark);
/* Whether it takes its value (input 1) partial. */
bool tutti__spmd_accumulates_partial(const tutti_spmd *spmd, const tutti_node *node);

/* ---- sparse.c ---- */
/* Whether an update's rows are summed as a table; and then. */
bool tutti__spmd_makes_dense(const tutti_spmd *spmd, const tutti_node *node);
tutti_status tutti__spmd_copy_dense(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                    tutti_rewritten *mark);
/* The input that is taken as it was made. */
int tutti__spmd_dense_rows(const tutti_spmd *spmd, const tutti_node *node);

/* ---- deterministic_sum.c ---- */
/* Whether a way gives a sum over the batch; and then, in deterministic mode. */
bool tutti__spmd_is_deterministic_sum(const tutti_spmd *spmd, const tutti_node *node);
tutti_status tutti__spmd_copy_deterministic_sum(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                                tutti_rewritten *mark);

/* ---- feeds.c ---- */
bool tutti__spmd_is_group(const tutti_node *node);
tutti_status tutti__spmd_take_parameter(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                        tutti_rewritten *mark);
tutti_status tutti__spmd_take_group(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                    tutti_rewritten *mark);
tutti_status tutti__spmd_take_print(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                    tutti_rewritten *mark);
/* Of central storage; false: the node has nothing to do with a variable. */
bool tutti__spmd_take_central(tutti_spmd_rewrite *rewrite, tutti_node *node, tutti_rewritten *mark,
                              tutti_status *ret_status);
/* Whether rows of the batch can be shared: one row cannot, every replica works on it. */
bool tutti__spmd_shares_rows(const tutti_spmd *spmd);
bool tutti__spmd_is_queue(const tutti_node *node);
tutti_status tutti__spmd_take_queue(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                    tutti_rewritten *mark);
/* A step that ends because rows are missing does so when all its meetings are over: no process, and
 * no device of one, is left in one that others never come to. */
tutti_status tutti__spmd_end_last(tutti_graph *graph);

#endif
