/* rewrite.h: from a job to the graph of its ranks. Shardings are decided on the job (propagate.c).
 * Then one text is written for all ranks (rewrite.c, reshard.c): the job with its collectives. In
 * it a value has the type of the whole, and what a rank alone has follows from `axis_index`. Last,
 * the text is specialized to each rank of this process (specialize.c): sizes, blocks and places are
 * numbers there.
 */
#ifndef TUTTI_PARALLEL_SPMD_REWRITE_H
#define TUTTI_PARALLEL_SPMD_REWRITE_H

#include "parallel/spmd/spmd.h"

/* How a value lies along each of the layout's axes: a tutti_sharding in the form that the rewrite
 * computes with. Of two axes that split one dimension the layout's first is outermost. */
typedef struct tutti_partition_spec {
    struct {
        int8_t kind;            /* tutti_shard_kind, not varying */
        int8_t dimension;       /* where it is split, else 0 */
    } along[TUTTI_LAYOUT_AXES]; /* partial: sums */
} tutti_partition_spec;

/* A value of the job as the ranks have it. */
typedef struct tutti_placement {
    tutti_partition_spec spec;
    tutti_edge edge;
    bool backward; /* gathered for the backward pass only */
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
    const tutti_split *ways[TUTTI_LAYOUT_AXES]; /* by axes: how it is cut along them; NULL: not */
    bool passes[TUTTI_LAYOUT_AXES];             /* partial goes in and comes out */
    tutti_partition_spec *specs;                /* per output, as it is made */
    uint32_t *known;                            /* per output: axes along which it is known whole */
    const tutti_partition_spec **constraints;   /* per output, the user's; the array or one: NULL */
    size_t first, end;                          /* expanded: the nodes of the job, */
    tutti_edge *expanded;                       /* and which of their outputs are its own */
    tutti_node *node;                           /* of the text: what control edges wait for */
    tutti_value_placements *outputs;
} tutti_rewritten;

typedef struct tutti_spmd_rewrite {
    const tutti_spmd *spmd;
    tutti_graph *from, *to;              /* the job; the text */
    tutti_edge index[TUTTI_LAYOUT_AXES]; /* axis_index along the layout's axes, once it is needed */
    int channel;                         /* number of collectives so far */
    bool backward;                       /* the node at hand belongs to the backward pass */
    uint32_t region; /* the last one in the forward pass that weights were gathered for */
    tutti_arena *scratch;
} tutti_spmd_rewrite;

/* node->scratch of the text's nodes: what the rewrite says that they are. Buckets have none. */
typedef struct tutti_claim {
    const tutti_node *job; /* the node of the job that it stands for, or beside */
    bool copy;             /* it does the job's node's work; else it was put in */
    bool shard_by_shard;   /* deterministic: it gives nodes of the tree over the shards */
    bool process;          /* of an axis_slice: the rank's rows of those of its process */
    bool by_data;          /* a shape before it depends on data */
    tutti_rewrite_rule rule;
    const tutti_split *ways[TUTTI_LAYOUT_AXES]; /* by axes: how it is cut; NULL: not */
    tutti_partition_spec spec;                  /* of a sum over ranks: how its value lies */
} tutti_claim;

/* A place of the mesh, and what follows from it. */
typedef struct tutti_spmd_rank {
    const tutti_spmd *spmd;
    int replica; /* of all: its place in the mesh */
    int rank[TUTTI_LAYOUT_AXES];
    int64_t first, rows; /* of the batch */
} tutti_spmd_rank;

/* node->scratch of a specialized graph's nodes, while it is made and verified. */
typedef struct tutti_specialized {
    const tutti_node *text;
    int local; /* of which replica of this process */
} tutti_specialized;

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

/* One word of the user's sharding: `given` notes axes along which he said how. */
tutti_status tutti__spmd_constrain_axis(const tutti_spmd *spmd, const tutti_node *node, int output,
                                        const tutti_axis_shard *shard, tutti_partition_spec *spec,
                                        int8_t *given);

/* ---- variables.c ---- */
/* How a variable lies: as its user's sharding says along other axes than the batch's, and in blocks
 * along those of the layout's rule for weights. */
tutti_status tutti__spmd_variable_spec(const tutti_spmd *spmd, const tutti_node *variable,
                                       tutti_partition_spec *ret);
/* Says of a rank's variable what it is a piece of (a variable of that type), and who holds such. */
tutti_status tutti__spmd_place_piece(const tutti_spmd_rank *rank, const tutti_type *type,
                                     const tutti_partition_spec *spec, tutti_node *node);

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
/* The same along the tree over the shards. */
tutti_status tutti__reshard_reduce_shards(tutti_spmd_rewrite *rewrite, const tutti_node *like,
                                          tutti_edge from, tutti_edge *ret);
/* A block of each value of a rank: of the rows of its process (`process`), or of the whole. */
tutti_status tutti__reshard_slice(tutti_spmd_rewrite *rewrite, tutti_edge like, int axes,
                                  int dimension, bool process, tutti_edge from, tutti_edge *ret);
/* A value that is whole, as a sum over the ranks of axes. */
tutti_status tutti__reshard_first_only(tutti_spmd_rewrite *rewrite, const tutti_node *like,
                                       int axes, tutti_edge from, tutti_edge *ret);

/* The layout's axes that attribute "axis" of a node names; -1: none. */
int tutti__spmd_axes_of(const tutti_spmd *spmd, const tutti_node *node);

/* ---- specialize.c ---- */
/* The nodes of all replicas of this process in one graph, each with its device. */
tutti_status tutti__spmd_specialize(const tutti_graph *text, const tutti_spmd *spmd,
                                    tutti_arena *scratch, tutti_graph **ret);
/* What stands for a value of the text on a rank: itself, or a value before it which on this rank is
 * the same. */
tutti_edge tutti__spmd_stands_for(const tutti_spmd_rank *rank, tutti_edge edge);
/* Whether what the node makes is of the process: its first replica makes it for all. */
bool tutti__spmd_is_of_process(const tutti_spmd *spmd, const tutti_node *text);
tutti_spmd_rank tutti__spmd_rank(const tutti_spmd *spmd, int replica);
/* What a rank takes of a value of that type by an axis_slice of the text: along its dimension. */
void tutti__spmd_slice(const tutti_spmd_rank *rank, const tutti_node *text, const tutti_type *type,
                       int64_t *ret_begin, int64_t *ret_size);
/* Moves the block [*begin, *begin + *size) of a dimension to that of a rank along axes. */
void tutti__spmd_block(const tutti_spmd *spmd, int axes, int rank, int64_t *begin, int64_t *size);
/* A rank's block of each dimension of a value of the job. */
void tutti__spmd_box(const tutti_spmd_rank *rank, const tutti_partition_spec *spec,
                     const tutti_type *type, int64_t *ret_begin, int64_t *ret_size);

/* ---- bucket.c ---- */
/* Joins sums over the same ranks; leaves the text sorted. */
tutti_status tutti__spmd_buckets(tutti_graph *graph, const tutti_spmd *spmd);

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
/* Writes nodes [first, end) of the job into the text. */
tutti_status tutti__spmd_nodes(tutti_spmd_rewrite *rewrite, size_t first, size_t end);
tutti_status tutti__spmd_no_memory(void);
/* Notes how output `output` of the job's node came to be. */
void tutti__spmd_made(tutti_rewritten *mark, int output, const tutti_partition_spec *spec,
                      tutti_edge edge);
/* Inputs as a node is to be given them: as its ways say, partial where it passes that on. */
tutti_status tutti__spmd_inputs(tutti_spmd_rewrite *rewrite, const tutti_node *node,
                                tutti_edge *ret);

/* ---- copy.c ---- */
/* A copy of the node in the text with these inputs, cut in these ways, by axes; NULL: whole. */
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
/* Cuts the sizes among the attributes of a rank's node, and places it and its random numbers.
 * `text`: the node as a whole. */
tutti_status tutti__spmd_cut_attrs(const tutti_spmd_rank *rank, const tutti_node *text,
                                   const tutti_split *const *ways, tutti_node *node);

/* ---- spmd.c ---- */
/* The text; its nodes' scratch holds claims, which lie in the arena. */
tutti_status tutti__spmd_text(tutti_graph *job, const tutti_spmd *spmd, tutti_arena *scratch,
                              tutti_graph **ret);

/* ---- verify.c ---- */
/* INTERNAL names a node of the text that does not compute its part of what the job asks for. */
tutti_status tutti__spmd_verify(const tutti_graph *text, const tutti_spmd *spmd);
/* INTERNAL names a node of a rank that is not what the text says. */
tutti_status tutti__spmd_verify_ranks(const tutti_graph *graph, const tutti_graph *text,
                                      const tutti_spmd *spmd);

/* ---- partial.c ---- */
/* Whether what goes in partial along axes comes out so. */
bool tutti__spmd_passes_partial(const tutti_node *node, int axes);
/* Of an addition that passes a partial value on: the input that is whole, so that only rank 0 of
 * the axes may add it; -1: there is none. */
int tutti__spmd_whole_summand(const tutti_node *node, int axes);
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
/* The node that runs one of the text shard by shard on a rank, with the rank's `inputs`. */
tutti_status tutti__spmd_segmented(const tutti_spmd_rank *rank, const tutti_node *text,
                                   const tutti_edge *inputs, tutti_graph *to, tutti_node **ret);
/* Nodes of the tree that a rank has. */
int tutti__spmd_tree_nodes(const tutti_spmd_rank *rank);

/* ---- feeds.c ---- */
bool tutti__spmd_is_group(const tutti_node *node);
/* Whether a feed holds rows of the batch, of which each process gives its own. */
bool tutti__spmd_feeds_rows(const tutti_spmd *spmd, const tutti_node *parameter);
tutti_status tutti__spmd_take_parameter(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                        tutti_rewritten *mark);
tutti_status tutti__spmd_take_group(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                    tutti_rewritten *mark);
/* Whether rows of the batch can be shared: one row cannot, every replica works on it. */
bool tutti__spmd_shares_rows(const tutti_spmd *spmd);
bool tutti__spmd_is_queue(const tutti_node *node);
tutti_status tutti__spmd_take_queue(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                    tutti_rewritten *mark);
/* A step that ends because rows are missing does so when all its meetings are over: no process, and
 * no device of one, is left in one that others never come to. */
tutti_status tutti__spmd_end_last(tutti_graph *graph);
/* By node id: what runs after the step's commit, because it follows an update. */
void tutti__spmd_after_updates(const tutti_graph *graph, bool *ret);

#endif
