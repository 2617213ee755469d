/* segmented.h: an operator whose sum over the batch is made shard by shard and along one tree, so
 * that its bits do not depend on who has which shards.
 *
 * The job's batch is cut into "shards" parts, of which this node has those numbered "first" on;
 * their rows begin at "bounds" (one entry more than shards). The node [a, b) of the tree is the sum
 * of [a, m) and [m, b), m = (a + b) / 2, down to single shards. A summed output holds the nodes
 * that lie wholly in the own shards and whose parents do not: one of them without, several with an
 * axis before. Outputs that are cut are those of the shards, joined. */
#ifndef TUTTI_OPS_COMM_SEGMENTED_H
#define TUTTI_OPS_COMM_SEGMENTED_H

#include "graph/graph.h"

enum { TUTTI_SEGMENT_SLOTS = TUTTI_SPLIT_SLOTS, TUTTI_SEGMENT_LEVELS = 12 };

/* Of a call or query: what the attributes say. */
typedef struct tutti_segments {
    const tutti_node *inner;         /* the operator, in the body */
    int shards, first, count;        /* of the job; the own ones */
    const int64_t *bounds;           /* [count + 1] rows, from 0 */
    int64_t rows;                    /* of the own shards */
    int inputs[TUTTI_SEGMENT_SLOTS]; /* by input of the inner node: input of this one */
    int64_t axes[TUTTI_SEGMENT_SLOTS], kinds[TUTTI_SEGMENT_SLOTS]; /* of inputs, of outputs */
} tutti_segments;
void tutti__segments_of(const tutti_attr *attrs, int attr_count, tutti_segments *ret);

/* How many nodes of the tree lie wholly in [low, high) while their parents do not. */
int tutti__segment_nodes(int shards, int low, int high);

/* Who does the work: on memory of the host, or of a device, where each of these enqueues. */
typedef struct tutti_segment_work {
    void *context;
    /* Runs the inner operator on one shard's views. */
    tutti_status (*run)(void *context, tutti_kernel_call *shard, int64_t rows);
    /* (optional, all or none; NULL: on the host) Copies bytes, clears them, adds numbers. */
    tutti_status (*copy)(void *context, void *to, const void *from, size_t size);
    tutti_status (*clear)(void *context, void *at, size_t size);
    tutti_status (*add)(void *context, tutti_dtype dtype, void *to, const void *from,
                        int64_t count);
    size_t alignment; /* parts that do not begin on a multiple of it are copied; 0: they may be
                         anywhere */
} tutti_segment_work;
/* Bytes that tutti__segmented needs. */
size_t tutti__segmented_workspace(const tutti_segments *s, const tutti_type *inputs,
                                  const tutti_type *outputs, size_t alignment);
tutti_status tutti__segmented(const tutti_kernel_call *call, const tutti_segments *s,
                              void *workspace, const tutti_segment_work *by);

#endif
