/* segments.h: kernels for the shards of a `segmented` node: for each size of a shard the one that
 * is best for it, which never depends on how many shards are here. */
#ifndef TUTTI_PROGRAM_SEGMENTS_H
#define TUTTI_PROGRAM_SEGMENTS_H

#include "ops/comm/segmented.h"
#include "program/kernel.h"

enum {
    TUTTI_SEGMENT_SIZES = 4
}; /* of shards: they differ by one row, and there may be empty ones */

/* The best kernel for a query, or NULL. */
typedef const tutti_kernel *tutti_segment_pick(const tutti_kernel_query *query);

typedef struct tutti_segment_size {
    int64_t rows;
    const tutti_kernel *kernel; /* NULL: the reference */
    void *plan;
    size_t workspace;
} tutti_segment_size;

typedef struct tutti_segment_plan {
    tutti_segments s;
    int count;
    tutti_segment_size sizes[TUTTI_SEGMENT_SIZES];
    size_t own; /* bytes of the tree's workspace, padded: the shards' begins behind */
} tutti_segment_plan;

/* `alignment`: of tutti_segment_work. */
tutti_status tutti__segment_plan(const tutti_kernel_query *query, tutti_segment_pick *pick,
                                 size_t alignment, void **ret_plan);
void tutti__segment_discard(void *plan);
size_t tutti__segment_room(const void *plan);
/* Of a shard with so many rows; NULL: there is none. */
const tutti_segment_size *tutti__segment_size(const tutti_segment_plan *plan, int64_t rows);
/* Whether every shard has a kernel. */
bool tutti__segment_picks(const tutti_kernel_query *query, tutti_segment_pick *pick);

#endif
