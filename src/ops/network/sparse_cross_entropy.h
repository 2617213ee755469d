/* sparse_cross_entropy.h: integer labels; shared by the loss and its backward operator. */
#ifndef TUTTI_OPS_NETWORK_SPARSE_CROSS_ENTROPY_H
#define TUTTI_OPS_NETWORK_SPARSE_CROSS_ENTROPY_H

#include <stdio.h>

#include "ops/network/softmax.h"

/* Labels, input 1, are integers. */
static inline tutti_status tutti__labels_infer(const tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    TUTTI_TRY(tutti__need_floats(node, 0, 1));
    if (tutti_dtype_is_int(node->inputs[1].dtype) && !node->inputs[1].handle)
        return TUTTI_OK;
    return RULE_FAIL(node, TUTTI_INVALID,
                     "labels are %s, need integers (i32 or i64), one for each row of logits; for "
                     "rows of probabilities use tutti_nn_softmax_cross_entropy",
                     tutti_type_text(&node->inputs[1], text));
}

/* The label of a row, which must be a class. */
static inline tutti_status tutti__label_get(const tutti_kernel_call *call, int64_t row,
                                            int64_t classes, int64_t *ret_label)
{
    const tutti_view *labels = &call->inputs[1];
    int64_t label = tutti_view_get_int(labels, row), place = 1; /* labels of one example */
    if (label >= 0 && label < classes) {
        *ret_label = label;
        return TUTTI_OK;
    }
    char within[48] = "";
    for (int i = 1; i < labels->rank; i++)
        place *= labels->dims[i];
    if (place > 1)
        snprintf(within, sizeof within, ", place %lld of it,", (long long)(row % place));
    return RULE_FAIL(call, TUTTI_OUT_OF_RANGE,
                     "label %lld in row %lld%s is none of the %lld classes; labels must be in "
                     "[0, %lld), the last axis of logits",
                     (long long)label, (long long)(row / place), within, (long long)classes,
                     (long long)classes);
}

#endif
