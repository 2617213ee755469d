/* max_pool.h: which element of each window is its maximum; shared by the three max-pool operators.
 */
#ifndef TUTTI_OPS_NETWORK_MAX_POOL_H
#define TUTTI_OPS_NETWORK_MAX_POOL_H

#include "ops/network/window.h"

/* The offset in x of the maximum of channel `c`: the first in window order; the first NaN wins. */
static inline int64_t tutti__window_maximum(const double *x, int64_t c, int64_t count,
                                            const int64_t *taps)
{
    int64_t best = taps[0] + c;
    for (int64_t i = 1; i < count; i++) {
        double value = x[taps[i] + c];
        if (value > x[best] || (value != value && x[best] == x[best]))
            best = taps[i] + c;
    }
    return best;
}

/* max_pool2d_backward(x, grad) and max_pool2d_gather(x, values) with the attributes of `node`. */
static inline tutti_sym tutti__max_pool2d_same(const tutti_gradient_call *node, const char *op,
                                               tutti_sym x, tutti_sym other)
{
    tutti_sym inputs[] = {x, other};
    tutti_attr attrs[] = {SAME_POOL(node)};
    return tutti_apply_op(node->graph, op, 2, inputs, (int)TUTTI_COUNT(attrs), attrs);
}

#endif
