/* spmd.h: a job of one device as the job of all devices of a mesh, each with its shards.
 *
 * The graph is written for the whole batch and whole variables. Along each of the mesh's axes every
 * value of it is replicated (all ranks have the same), split along a dimension (each has its block)
 * or partial (the sum over the ranks is the value). Operators' split rules say which sharding
 * follows from which (propagate.c); where one is needed and another is there, a collective turns it
 * (reshard.c). Shapes, counts and random numbers are those of the whole, so that the ranks compute
 * what one device would.
 */
#ifndef TUTTI_PARALLEL_SPMD_SPMD_H
#define TUTTI_PARALLEL_SPMD_SPMD_H

#include "parallel/spmd/layout.h"

/* The name of the dimension that batches are cut along, and of the one axis that strategies without
 * a mesh of the user's have. */
#define TUTTI_BATCH_AXIS "batch"

/* How rows of gradients (of embeddings) come together. */
typedef enum tutti_sparse_way {
    TUTTI_SPARSE_AUTO,   /* whichever moves fewer bytes */
    TUTTI_SPARSE_GATHER, /* all replicas get all rows */
    TUTTI_SPARSE_DENSE,  /* as tables that are summed */
} tutti_sparse_way;

typedef struct tutti_spmd {
    const tutti_layout *layout; /* the mesh, and which of its axes cut what */
    int replicas;               /* in the job: places of the mesh */
    int first, local;           /* those of this process: [first, first + local) */
    const char *const *devices; /* of the local ones */
    int64_t batch;              /* rows of the whole batch; 0: nothing is cut */
    const int64_t *counts;      /* rows of each process, which sum to `batch`; NULL: cut evenly */
    int shards; /* deterministic: the batch is cut into so many parts, whoever has them; or 0 */
    const char *central;  /* the device that variables live on; NULL: on all */
    int64_t bucket_bytes; /* gradients are joined up to this size; 0: one by one */
    bool overlap;         /* collectives of gradients run beside the rest of the backward pass */
    tutti_sparse_way sparse;
    int zero; /* of variables that are stored in blocks: 3: gathered again for the backward pass */
    int64_t weights_least; /* elements; smaller variables are replicated */
    const char *wire;      /* form of f32 gradients between replicas: "bf16", "f16", the name of a
                              compression; NULL: as they are */
} tutti_spmd;

/* Whether one value can be read of a variable for so many replicas: not where each has its own
 * (.on_read) and nothing says how they are put together. */
tutti_status tutti__spmd_check_variable(const tutti_node *variable, int replicas);

/* The rank of a replica along the axes that cut the batch, and how many ranks there are. */
int tutti__spmd_batch_rank(const tutti_spmd *spmd, int replica);
int tutti__spmd_batch_ranks(const tutti_spmd *spmd);
/* The rows of a rank along those axes: without `shards` they differ by at most one, the first ones
 * have more; with them they are the rows of its shards; with `counts` those of its process, cut so.
 */
void tutti__spmd_rank_rows(const tutti_spmd *spmd, int64_t batch, int rank, int64_t *ret_first,
                           int64_t *ret_rows);
/* Those of a replica. */
void tutti__spmd_rows(const tutti_spmd *spmd, int64_t batch, int replica, int64_t *ret_first,
                      int64_t *ret_rows);
/* Of all replicas of this process together: their ranks along the batch's axes follow each other.
 */
void tutti__spmd_own_rows(const tutti_spmd *spmd, int64_t batch, int64_t *ret_first,
                          int64_t *ret_rows);
/* The shards of a replica: [*ret_first, *ret_first + count). */
int tutti__spmd_shards(const tutti_spmd *spmd, int replica, int *ret_first);
/* Where shard s of the batch begins. */
static inline int64_t tutti__shard_bound(int64_t batch, int shards, int s)
{
    return batch * s / shards;
}

/* `job`: all shapes known; parameters whose sharding says that they are split along the axis above
 * have the whole batch as their dimension 0. In the result those hold the rows of this process.
 * `job` is used up: nodes may be added to it. */
tutti_status tutti__spmd_rewrite(tutti_graph *job, const tutti_spmd *spmd, tutti_graph **ret);

/* Whether an edge is marked as cut along the batch. */
bool tutti__is_batch(const tutti_node *node, uint32_t output);
/* Whether a node takes rows of the batch out of a queue: one that is marked so (feeds.c). */
bool tutti__takes_batch(const tutti_node *node);
/* The rows of the whole batch where nodes of the job say so; else *batch stays, 0 or what feeds
 * say. INVALID where they do not agree. */
tutti_status tutti__spmd_batch(const tutti_graph *job, int64_t *batch);

#endif
