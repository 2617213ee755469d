/* reduce_sum.h: sums of floats over one block of neighbouring axes: x [outer, count, inner] to
 * y [outer, inner], divided by `divisor`.
 *
 * The summed axis is cut into chunks by shape; each chunk's sum is taken in order, chunks are added
 * over one binary tree. */
#ifndef TUTTI_DEVICE_CPU_LEARN_REDUCE_SUM_H
#define TUTTI_DEVICE_CPU_LEARN_REDUCE_SUM_H

#include <stdlib.h>
#include <string.h>

#include "program/kernel.h"

#define CHUNK_FLOATS 16384
#define MOST_CHUNKS 64

typedef struct reduce_shape {
    int64_t outer, count, inner, chunks;
} reduce_shape;

static inline bool reduce_shape_of(const tutti_kernel_query *query, reduce_shape *ret)
{
    const tutti_infer *node = &query->node;
    const tutti_type *x = &node->inputs[0];
    const int64_t *axes;
    int axis_count = tutti_attr_ints(node->attrs, node->attr_count, "axes", &axes);
    bool reduced[TUTTI_MAX_RANK] = {0};
    if (x->dtype != TUTTI_F32 || !tutti_type_is_static(x) || tutti_type_count(x) == 0)
        return false;
    for (int i = 0; i < x->rank; i++)
        reduced[i] = axis_count == 0;
    for (int i = 0; i < axis_count; i++)
        reduced[axes[i] < 0 ? axes[i] + x->rank : axes[i]] = true;
    *ret = (reduce_shape){1, 1, 1, 1};
    int stage = 0; /* 0 before the block, 1 in it, 2 behind it */
    for (int i = 0; i < x->rank; i++) {
        if (x->dims[i] == 1)
            continue;
        if (reduced[i] && stage == 2)
            return false;
        stage = reduced[i] ? 1 : stage == 1 ? 2 : stage;
        *(stage == 0 ? &ret->outer : stage == 1 ? &ret->count : &ret->inner) *= x->dims[i];
    }
    int64_t chunks = ret->count * ret->inner / CHUNK_FLOATS;
    chunks = chunks > MOST_CHUNKS ? MOST_CHUNKS : chunks;
    ret->chunks = chunks > ret->count ? ret->count : chunks < 1 ? 1 : chunks;
    return true;
}

typedef struct reduce_work {
    reduce_shape s;
    const float *x;
    float *partial, *y;
    float divisor;
} reduce_work;

/* Sum of neighbours: eight sums side by side. */
static inline float sum_row(const float *x, int64_t count)
{
    float sums[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        for (int k = 0; k < 8; k++)
            sums[k] += x[i + k];
    for (int k = 0; i < count; i++, k++)
        sums[k] += x[i];
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

static inline void reduce_chunk(void *context, int64_t piece)
{
    const reduce_work *w = context;
    int64_t outer = piece / w->s.chunks, chunk = piece % w->s.chunks, inner = w->s.inner;
    int64_t first = w->s.count * chunk / w->s.chunks, end = w->s.count * (chunk + 1) / w->s.chunks;
    const float *x = w->x + (outer * w->s.count + first) * inner;
    float *to = w->partial + piece * inner;
    if (inner == 1) {
        to[0] = sum_row(x, end - first);
        return;
    }
    memcpy(to, x, (size_t)inner * sizeof *to);
    for (int64_t row = first + 1; row < end; row++) {
        x += inner;
        for (int64_t i = 0; i < inner; i++)
            to[i] += x[i];
    }
}

static inline void reduce_finish(void *context, int64_t outer)
{
    const reduce_work *w = context;
    int64_t inner = w->s.inner;
    float *partial = w->partial + outer * w->s.chunks * inner, *y = w->y + outer * inner;
    for (int64_t stride = 1; stride < w->s.chunks; stride *= 2)
        for (int64_t c = 0; c + stride < w->s.chunks; c += 2 * stride)
            for (int64_t i = 0; i < inner; i++)
                partial[c * inner + i] += partial[(c + stride) * inner + i];
    for (int64_t i = 0; i < inner; i++)
        y[i] = partial[i] / w->divisor;
}

static inline int reduce_score(const tutti_kernel_query *query)
{
    reduce_shape s;
    return reduce_shape_of(query, &s) ? 90 : 0;
}

static inline size_t reduce_workspace(const tutti_kernel_query *query)
{
    reduce_shape s;
    return reduce_shape_of(query, &s) ? sizeof(reduce_shape) + (size_t)(s.outer * s.chunks * s.inner) * sizeof(float) + 64 : 0;
}

static inline tutti_status reduce_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    reduce_shape *s = calloc(1, sizeof *s);
    if (!s)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    reduce_shape_of(query, s);
    *ret_plan = s;
    return TUTTI_OK;
}

static inline tutti_status reduce_run(const tutti_call *call, bool mean)
{
    const reduce_shape *s = call->plan;
    reduce_work w = {*s, call->inputs[0].data, call->workspace, call->outputs[0].data, mean ? (float)s->count : 1};
    tutti_parallel(call, s->outer * s->chunks, reduce_chunk, &w);
    tutti_parallel(call, s->outer, reduce_finish, &w);
    return TUTTI_OK;
}

#endif
