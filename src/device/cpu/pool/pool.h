/* pool.h: windows of floats over [batch, height, width, channels], one output position at a time,
 * channels side by side. */
#ifndef TUTTI_DEVICE_CPU_POOL_POOL_H
#define TUTTI_DEVICE_CPU_POOL_POOL_H

#include <stdlib.h>
#include <string.h>

#include "ops/network/window.h"
#include "program/kernel.h"

typedef struct pool_plan {
    tutti_windows w;
    int64_t batch, channels;
    bool tiles; /* every input element lies in exactly one window */
} pool_plan;

static inline void pool_plan_make(const tutti_attr *attrs, int attr_count, const int64_t *x,
                                  pool_plan *ret)
{
    *ret = (pool_plan){tutti__pool_windows(attrs, attr_count, x), x[0], x[3], true};
    for (int a = 0; a < 2; a++)
        ret->tiles = ret->tiles && ret->w.before[a] == 0 && ret->w.stride[a] == ret->w.size[a] &&
                     ret->w.out[a] * ret->w.size[a] == ret->w.in[a];
}

static inline tutti_status pool_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    pool_plan *p = calloc(1, sizeof *p);
    if (!p)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    pool_plan_make(query->node.attrs, query->node.attr_count, query->node.inputs[0].dims, p);
    *ret_plan = p;
    return TUTTI_OK;
}

static inline int pool_score(const tutti_kernel_query *query)
{
    const tutti_type *x = &query->node.inputs[0];
    return x->dtype == TUTTI_F32 && tutti_type_is_static(x) &&
                   query->node.outputs[0].dtype == TUTTI_F32
               ? 100
               : 0;
}

/* The taps of one output position inside the input: rows [top, bottom), columns [left, right). */
typedef struct pool_window {
    int64_t top, bottom, left, right;
} pool_window;

static inline pool_window pool_window_at(const tutti_windows *w, int64_t row, int64_t column)
{
    int64_t y = tutti__window_start(w, 0, row), x = tutti__window_start(w, 1, column);
    pool_window p = {y < 0 ? 0 : y, y + w->size[0], x < 0 ? 0 : x, x + w->size[1]};
    p.bottom = p.bottom > w->in[0] ? w->in[0] : p.bottom;
    p.right = p.right > w->in[1] ? w->in[1] : p.right;
    return p;
}

/* True where b takes the place of a: greater, or the first NaN. */
static inline bool pool_better(float a, float b)
{
    return b > a || (b != b && a == a);
}

#endif
