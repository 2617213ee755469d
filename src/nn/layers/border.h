/* border.h: how much is put round, or taken off, each side. */
#ifndef TUTTI_NN_LAYERS_BORDER_H
#define TUTTI_NN_LAYERS_BORDER_H

#include "nn/layers/common.h"

/* Before and after along each of the 1 or 2 axes behind the batch; false after a mistake. */
static inline bool tutti__border(tutti_layer_call *call, int axes, const int64_t *amount,
                                 const int64_t *pads, tutti_axes *ret_before, tutti_axes *ret_after)
{
    bool exact = false;
    for (int i = 0; i < 2 * axes; i++)
        exact = exact || pads[i] != 0;
    *ret_before = *ret_after = (tutti_axes){.count = axes + 1};
    for (int i = 0; i < axes; i++) {
        int64_t both = axes == 2 ? tutti__pair(amount, i, 0) : amount[0];
        ret_before->values[i + 1] = exact ? pads[2 * i] : both;
        ret_after->values[i + 1] = exact ? pads[2 * i + 1] : both;
        if (ret_before->values[i + 1] < 0 || ret_after->values[i + 1] < 0 || amount[0] < 0) {
            tutti_layer_fail(call, "a side cannot have a negative amount");
            return false;
        }
    }
    return true;
}

#endif
