/* depthwise.h: convolution of each channel by itself (groups = channels = filters), channels side
 * by side in registers, for files compiled once for each instruction set. */
#ifndef TUTTI_DEVICE_CPU_CONV_DEPTHWISE_H
#define TUTTI_DEVICE_CPU_CONV_DEPTHWISE_H

#include <stdlib.h>
#include <string.h>

#include "device/cpu/conv/windows.h"
#include "device/cpu/vector.h"
#include "ops/network/window.h"
#include "program/kernel.h"

enum { LANE_VECS = 4, LANES = LANE_VECS * VEC_LANES }; /* channels that go side by side */

typedef struct depthwise {
    tutti_windows w;
    int64_t batch, channels;
    const float *x, *kernel, *y; /* two are inputs, the third is the output */
    float *to;
} depthwise;

/* x, kernel, y: which input each is, -1 for the output. False where these kernels do not apply. */
static inline bool depthwise_make(const tutti_kernel_query *query, int x, int kernel, int y,
                                  depthwise *ret)
{
    const tutti_infer *node = &query->node;
    const tutti_type *types[3];
    int index[3] = {x, kernel, y};
    VEC_UNROLL for (int i = 0; i < 3; i++)
    {
        types[i] = index[i] < 0 ? &node->outputs[0] : &node->inputs[index[i]];
        if (types[i]->dtype != TUTTI_F32 || !tutti_type_is_static(types[i]) ||
            tutti_type_count(types[i]) == 0)
            return false;
    }
    tutti_convolution c = tutti__convolution(node->attrs, node->attr_count, types[0]->dims,
                                             types[1]->dims, types[2]->dims);
    *ret = (depthwise){.w = c.windows, .batch = c.batch, .channels = c.groups};
    return c.groups > 1 && c.cin == 1 && c.cout == 1 && tutti__conv_countable(&c);
}

static inline tutti_status depthwise_keep(const depthwise *d, void **ret_plan)
{
    depthwise *kept = malloc(sizeof *kept);
    if (kept == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of a convolution");
    *kept = *d;
    *ret_plan = kept;
    return TUTTI_OK;
}

/* sum += a b for `count` <= LANES channels; whole registers when there are LANES. */
VEC_INLINE void add_products(int64_t count, const float *a, const float *b, float *sum)
{
    if (count == LANES) {
        VEC_UNROLL for (int v = 0; v < LANE_VECS; v++) vec_store(
            sum + v * VEC_LANES, vec_fma(vec_load(a + v * VEC_LANES), vec_load(b + v * VEC_LANES),
                                         vec_load(sum + v * VEC_LANES)));
        return;
    }
    for (int64_t c = 0; c < count; c++)
        sum[c] += a[c] * b[c];
}

#endif
