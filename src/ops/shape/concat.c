/* concat.c: joins tensors along an axis. */
#include "ops/shape/move.h"

static tutti_status concat_refuse(const tutti_infer *node, int i, int axis)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    return RULE_FAIL(node, TUTTI_INVALID,
                     "input 0 is %s, input %d is %s; all dimensions but that of axis %d must agree",
                     tutti_type_text(&node->inputs[0], a), i, tutti_type_text(&node->inputs[i], b),
                     axis);
}

static tutti_status concat_infer(tutti_infer *node)
{
    tutti_type y = node->inputs[0];
    int axis;
    TUTTI_TRY(tutti__rule_axis(node, RULE_INT(node, "axis"), y.rank, &axis));
    for (int i = 1; i < node->input_count; i++) {
        const tutti_type *x = &node->inputs[i];
        TUTTI_TRY(tutti__shape_same_dtype(node, i));
        if (x->rank != y.rank)
            return concat_refuse(node, i, axis);
        for (int d = 0; d < y.rank; d++)
            if (d != axis && !tutti__shape_merge(y.dims[d], x->dims[d], &y.dims[d]))
                return concat_refuse(node, i, axis);
        if (y.dims[axis] == TUTTI_ANY || x->dims[axis] == TUTTI_ANY)
            y.dims[axis] = TUTTI_ANY;
        else if (!tutti__add_size(y.dims[axis], x->dims[axis], &y.dims[axis]))
            return RULE_FAIL(node, TUTTI_TOO_LARGE, "the size of axis %d overflows 64 bits", axis);
    }
    return tutti__shape_output(node, 0, y.dtype, y.rank, y.dims);
}

/* Each input's part of the gradient: a slice where the sizes are known, else an output of
 * split_like. */
static tutti_status concat_gradient(tutti_gradient_call *node)
{
    int axis = tutti__axis_of(RULE_INT(node, "axis"), tutti_sym_type(node->inputs[0]).rank);
    tutti_sym pieces = TUTTI_NO_SYM, grad = node->output_grads[0];
    int64_t start = 0;
    for (int i = 0; i < node->input_count; i++) {
        int64_t size = tutti_sym_type(node->inputs[i]).dims[axis];
        if (start == TUTTI_ANY || size == TUTTI_ANY) {
            if (!tutti_sym_ok(pieces))
                pieces = (tutti_split_like)(grad, axis, node->input_count, node->inputs);
            if (node->wanted[i])
                node->input_grads[i] = tutti_sym_output(pieces, i);
            start = TUTTI_ANY;
            continue;
        }
        if (node->wanted[i])
            node->input_grads[i] = tutti_slice_axis(grad, axis, start, start + size);
        start += size;
    }
    return TUTTI_OK;
}

static tutti_status concat_reference(const tutti_kernel_call *call)
{
    const tutti_view *y = &call->outputs[0];
    int axis = tutti__axis_of(RULE_INT(call, "axis"), y->rank);
    tutti_blocks to = tutti__blocks(y, axis);
    int64_t start = 0;
    for (int i = 0; i < call->input_count; i++) {
        int64_t row = call->inputs[i].dims[axis] * to.inner;
        tutti__move_rows(call, tutti_dtype_size(y->dtype), to.outer, row, call->inputs[i].data, row,
                         tutti__element(y, start), to.size * to.inner);
        start += row;
    }
    return TUTTI_OK;
}

static int concat_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int axis = tutti__axis_of(RULE_INT(node, "axis"), node->outputs[0].rank);
    return tutti__split_other_axes(node, axis, capacity, ret);
}

extern const tutti_op tutti_op_concat;
tutti_sym tutti_concatenate_with(int count, const tutti_sym *inputs,
                                 const tutti_concatenate_options *options)
{
    RULE_OPTIONS(tutti_concatenate_options, o, options);
    return tutti__nary(&tutti_op_concat, count, inputs, 1, &TUTTI_INT("axis", o.axis));
}

static const tutti_attr_spec attrs[] = {
    {"axis", TUTTI_ATTR_INT, NULL},
    {NULL},
};
static const char *const samples[] = {
    "f32[2,3] f32[2,1] f32[2,2] | axis=1", "f32[3,4] f32[2,4] | axis=0",
    "i32[2,2,3] i32[2,5,3] | axis=-2",     "f32[4] | axis=0",
    "f32[0,2] f32[3,2] | axis=0",          NULL,
};

const tutti_op tutti_op_concat = {
    .struct_size = sizeof(tutti_op),
    .name = "concat",
    .version = 1,
    .doc = "concat(x0, x1, ...; axis): y is the inputs one after the other along the axis",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = -1,
    .outputs = 1,
    .attrs = attrs,
    .infer = concat_infer,
    .gradient = concat_gradient,
    .cost = tutti__cost_move,
    .split = concat_split,
    .reference = concat_reference,
    .samples = samples,
};
