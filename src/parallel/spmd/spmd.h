/* spmd.h: a job of one device as the job of several replicas, each with its part of the batch.
 *
 * The graph is written for the whole batch. Every value of it becomes, on a replica, one of three
 * forms: whole (all replicas have the same), cut (each has its rows) or partial (the sum over the
 * replicas is the value). Operators' split rules say which form follows from which; where one form
 * is needed and another is there, a collective turns it. Shapes, counts and random numbers are
 * those of the whole batch, so that the replicas compute what one device would.
 */
#ifndef TUTTI_PARALLEL_SPMD_SPMD_H
#define TUTTI_PARALLEL_SPMD_SPMD_H

#include "graph/graph.h"

/* The mesh axis that batches are cut along. */
#define TUTTI_BATCH_AXIS "batch"

/* How rows of gradients (of embeddings) come together. */
typedef enum tutti_sparse_way {
    TUTTI_SPARSE_AUTO,   /* whichever moves fewer bytes */
    TUTTI_SPARSE_GATHER, /* all replicas get all rows */
    TUTTI_SPARSE_DENSE,  /* as tables that are summed */
} tutti_sparse_way;

typedef struct tutti_spmd {
    int replicas;               /* in the job */
    int first, local;           /* those of this process: [first, first + local) */
    const char *const *devices; /* of the local ones */
    int64_t batch;              /* rows of the whole batch; 0: nothing is cut */
    const int64_t *counts;      /* rows of each process, which sum to `batch`; NULL: cut evenly */
    int shards; /* deterministic: the batch is cut into so many parts, whoever has them; or 0 */
    const char *central;  /* the device that variables live on; NULL: on all */
    int64_t bucket_bytes; /* gradients are joined up to this size; 0: one by one */
    bool overlap;         /* collectives of gradients run beside the rest of the backward pass */
    tutti_sparse_way sparse;
    const char *wire; /* form of f32 gradients between replicas: "bf16", "f16", the name of a
                         compression; NULL: as they are */
} tutti_spmd;

/* Whether one value can be read of a variable for so many replicas: not where each has its own
 * (.on_read) and nothing says how they are put together. */
tutti_status tutti__spmd_check_variable(const tutti_node *variable, int replicas);

/* The rows of replica r: without `shards` they differ by at most one, the first ones have more;
 * with them they are the rows of its shards; with `counts` those of its process, cut so. */
void tutti__spmd_rows(const tutti_spmd *spmd, int64_t batch, int r, int64_t *ret_first,
                      int64_t *ret_rows);
/* Of all replicas of this process together. */
void tutti__spmd_own_rows(const tutti_spmd *spmd, int64_t batch, int64_t *ret_first,
                          int64_t *ret_rows);
/* The shards of replica r: [*ret_first, *ret_first + count). */
int tutti__spmd_shards(const tutti_spmd *spmd, int r, int *ret_first);
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
