/* stack.c: joins tensors of one shape along a new axis. */
#include "ops/shape/move.h"

static tutti_status stack_infer(tutti_infer *node)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    tutti_type x = node->inputs[0];
    int64_t dims[TUTTI_MAX_RANK + 1];
    int axis;
    TUTTI_TRY(tutti__rule_axis(node, RULE_INT(node, "axis"), x.rank + 1, &axis));
    for (int i = 1; i < node->input_count; i++) {
        const tutti_type *other = &node->inputs[i];
        bool agree = other->rank == x.rank;
        TUTTI_TRY(tutti__shape_same_dtype(node, i));
        for (int d = 0; agree && d < x.rank; d++)
            agree = tutti__shape_merge(x.dims[d], other->dims[d], &x.dims[d]);
        if (!agree)
            return RULE_FAIL(node, TUTTI_INVALID,
                             "input 0 is %s, input %d is %s; shapes must agree",
                             tutti_type_text(&node->inputs[0], a), i, tutti_type_text(other, b));
    }
    for (int i = 0; i <= x.rank; i++)
        dims[i] = i == axis ? node->input_count : x.dims[i - (i > axis)];
    return tutti__shape_output(node, 0, x.dtype, x.rank + 1, dims);
}

static tutti_status stack_gradient(tutti_gradient_call *node)
{
    int axis = (int)RULE_INT(node, "axis");
    tutti_sym pieces = tutti_unstack(node->output_grads[0], axis, node->input_count);
    for (int i = 0; i < node->input_count; i++)
        if (node->wanted[i])
            node->input_grads[i] = tutti_sym_output(pieces, i);
    return TUTTI_OK;
}

static tutti_status stack_reference(const tutti_kernel_call *call)
{
    const tutti_view *y = &call->outputs[0];
    tutti_blocks to = tutti__blocks(y, tutti__axis_of(RULE_INT(call, "axis"), y->rank));
    for (int i = 0; i < call->input_count; i++)
        tutti__move_rows(call, tutti_dtype_size(y->dtype), to.outer, to.inner, call->inputs[i].data,
                         to.inner, tutti__element(y, i * to.inner), to.size * to.inner);
    return TUTTI_OK;
}

static int stack_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int axis = tutti__axis_of(RULE_INT(node, "axis"), node->outputs[0].rank);
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    if (node->input_count > TUTTI_SPLIT_SLOTS)
        return 0;
    for (int d = 0; d < node->inputs[0].rank; d++) {
        tutti_split *way = tutti__cut(&cuts);
        memset(way->inputs, d, (size_t)node->input_count);
        way->outputs[0] = (int8_t)(d + (d >= axis));
    }
    return cuts.count;
}

extern const tutti_op tutti_op_stack;
tutti_sym tutti_stack_with(int count, const tutti_sym *inputs, const tutti_stack_options *options)
{
    RULE_OPTIONS(tutti_stack_options, o, options);
    return tutti__nary(&tutti_op_stack, count, inputs, 1, &TUTTI_INT("axis", o.axis));
}

static const tutti_attr_spec attrs[] = {
    {"axis", TUTTI_ATTR_INT, "0"},
    {NULL},
};
static const char *const samples[] = {
    "f32[2,3] f32[2,3] | axis=0", "f32[3,2] f32[3,2] f32[3,2] | axis=1",
    "f32[4] f32[4] | axis=-1",    "i32[] i32[]",
    "f32[0,2] f32[0,2] | axis=2", NULL,
};

const tutti_op tutti_op_stack = {
    .struct_size = sizeof(tutti_op),
    .name = "stack",
    .version = 1,
    .doc = "stack(x0, x1, ...; axis): y[.., i, ..] = xi, along a new axis",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = -1,
    .outputs = 1,
    .attrs = attrs,
    .infer = stack_infer,
    .gradient = stack_gradient,
    .cost = tutti__cost_move,
    .split = stack_split,
    .reference = stack_reference,
    .samples = samples,
};
