/* pieces.c: what split and split_like share; see pieces.h. */
#include "ops/shape/pieces.h"

tutti_status tutti__pieces_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0];
    int axis = tutti__axis_of(RULE_INT(call, "axis"), x->rank);
    tutti_blocks from = tutti__blocks(x, axis);
    int64_t start = 0;
    for (int i = 0; i < call->output_count; i++) {
        int64_t row = call->outputs[i].dims[axis] * from.inner;
        tutti__move_rows(call, tutti_dtype_size(x->dtype), from.outer, row,
                         tutti__element(x, start), from.size * from.inner, call->outputs[i].data,
                         row);
        start += row;
    }
    return TUTTI_OK;
}
