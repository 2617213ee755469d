/* finish.h: what becomes of the sums of a convolution before they are stored, for files compiled
 * once for each instruction set.
 *     y = bounded(bounded(sum + bias, 0) + residual, 1)    bounded(v, i) = min(max(v, low[i]),
 * high[i]) A NaN stays one. A last activation that is no bounds runs over outputs that are still in
 * the cache. */
#ifndef TUTTI_DEVICE_CPU_CONV_FINISH_H
#define TUTTI_DEVICE_CPU_CONV_FINISH_H

#include <math.h>

#include "device/cpu/conv/layer.h"
#include "device/cpu/vector.h"

typedef struct conv_finish {
    const float *bias, *residual; /* [filters], of y's shape; NULL: none */
    float low[2], high[2];
    tutti_tile_loop *loop; /* NULL: none */
    double params[TUTTI_TILE_PARAMS];
} conv_finish;

static inline conv_finish conv_finish_of(const float *bias, bool relu)
{
    return (conv_finish){
        .bias = bias, .low = {relu ? 0 : -INFINITY, -INFINITY}, .high = {INFINITY, INFINITY}};
}

/* Of a chain, with the inputs of a call. */
static inline conv_finish conv_finish_chain(const tutti_conv_chain *c,
                                            const tutti_kernel_call *call)
{
    return (conv_finish){.bias = c->bias < 0 ? NULL : call->inputs[c->bias].data,
                         .residual = c->residual < 0 ? NULL : call->inputs[c->residual].data,
                         .low = {c->low[0], c->low[1]},
                         .high = {c->high[0], c->high[1]},
                         .loop = c->loop,
                         .params = {c->params[0], c->params[1]}};
}

/* Whether there is nothing to do but bias and a lower bound. */
static inline bool conv_finish_is_plain(const conv_finish *f)
{
    return f->residual == NULL && f->high[0] == INFINITY;
}

/* residual NULL: none; else of the lanes that count. */
VEC_INLINE vec conv_finished(const conv_finish *f, vec sum, const float *residual, int64_t lanes)
{
    vec y = vec_at_most(vec_not_below(sum, f->low[0]), f->high[0]);
    if (residual == NULL)
        return y;
    y = y + vec_load_lanes(residual, lanes);
    return vec_at_most(vec_not_below(y, f->low[1]), f->high[1]);
}

/* The last activation of `count` outputs that lie side by side. */
static inline void conv_activate(const conv_finish *f, float *y, int64_t count)
{
    enum { TILE = TUTTI_TILE_BYTES / 4 };
    for (int64_t i = 0; f->loop != NULL && i < count; i += TILE)
        f->loop(&(tutti_tile_args){.count = count - i < TILE ? count - i : TILE,
                                   .x = {y + i},
                                   .y = y + i,
                                   .params = f->params});
}

#endif
