/* unstack.c: takes a tensor apart along an axis, which is dropped. */
#include "ops/shape/move.h"

static tutti_status unstack_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *x = &node->inputs[0];
    int64_t dims[TUTTI_MAX_RANK];
    int axis;
    TUTTI_TRY(tutti__rule_axis(node, RULE_INT(node, "axis"), x->rank, &axis));
    if (node->output_count < 1)
        return RULE_FAIL(node, TUTTI_INVALID, "%d outputs are asked for, needs at least 1",
                         node->output_count);
    if (x->dims[axis] != TUTTI_ANY && x->dims[axis] != node->output_count)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "axis %d of input %s has size %lld, but %d outputs are asked for", axis,
                         tutti_type_text(x, text), (long long)x->dims[axis], node->output_count);
    for (int i = 0; i < x->rank - 1; i++)
        dims[i] = x->dims[i + (i >= axis)];
    for (int i = 0; i < node->output_count; i++)
        TUTTI_TRY(tutti__shape_output(node, i, x->dtype, x->rank - 1, dims));
    return TUTTI_OK;
}

static tutti_status unstack_gradient(tutti_gradient_call *node)
{
    int axis = (int)RULE_INT(node, "axis");
    tutti_sym *grads =
        tutti__arena_array(&node->graph->arena, (size_t)node->output_count, sizeof *grads);
    if (grads == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "unstack '%s': no memory for its gradient", node->name);
    for (int i = 0; i < node->output_count; i++)
        grads[i] = tutti_sym_ok(node->output_grads[i]) ? node->output_grads[i]
                                                       : tutti_zeros_like(node->outputs[i]);
    node->input_grads[0] = tutti_stack(node->output_count, grads, .axis = axis);
    return TUTTI_OK;
}

static tutti_status unstack_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0];
    tutti_blocks from = tutti__blocks(x, tutti__axis_of(RULE_INT(call, "axis"), x->rank));
    for (int i = 0; i < call->output_count; i++)
        tutti__move_rows(call, tutti_dtype_size(x->dtype), from.outer, from.inner,
                         tutti__element(x, i * from.inner), from.size * from.inner,
                         call->outputs[i].data, from.inner);
    return TUTTI_OK;
}

static int unstack_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int axis = tutti__axis_of(RULE_INT(node, "axis"), node->inputs[0].rank);
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    if (node->output_count > TUTTI_SPLIT_SLOTS)
        return 0;
    for (int d = 0; d < node->inputs[0].rank; d++) {
        if (d == axis)
            continue;
        tutti_split *way = tutti__cut(&cuts);
        way->inputs[0] = (int8_t)d;
        memset(way->outputs, d - (d > axis), (size_t)node->output_count);
    }
    return cuts.count;
}

/* How many outputs: as given, or as many as the axis has. */
static int64_t output_count(tutti_sym x, int axis, int count)
{
    tutti_type type = tutti_sym_type(x);
    bool exists = axis >= -type.rank && axis < type.rank;
    return count > 0 || !exists ? count : type.dims[tutti__axis_of(axis, type.rank)];
}

extern const tutti_op tutti_op_unstack;
tutti_sym(tutti_unstack)(tutti_sym x, int axis, int count)
{
    if (!tutti__usable("unstack", x))
        return TUTTI_POISON;
    int64_t outputs = output_count(x, axis, count);
    if (outputs < 0 && count == 0)
        return tutti__poison(
            tutti_sym_graph(x), TUTTI_INVALID,
            "unstack: the size of axis %d is not known; give the number of outputs", axis);
    return TUTTI_NARY(&tutti_op_unstack, ((tutti_sym[]){x}), TUTTI_INT("axis", axis),
                      TUTTI_INT("outputs", outputs));
}

static const tutti_attr_spec attrs[] = {
    {"axis", TUTTI_ATTR_INT, "0"},
    {"outputs", TUTTI_ATTR_INT, NULL},
    {NULL},
};
static const char *const samples[] = {
    "f32[2,3] | axis=0 outputs=2",
    "f32[3,2,4] | axis=1 outputs=2",
    "i32[4,3] | axis=-1 outputs=3",
    "f32[2,0] | axis=0 outputs=2",
    NULL,
};

const tutti_op tutti_op_unstack = {
    .struct_size = sizeof(tutti_op),
    .name = "unstack",
    .version = 1,
    .doc =
        "unstack(x; axis, outputs): yi = x[.., i, ..], one output for each position along the axis",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = -1,
    .attrs = attrs,
    .infer = unstack_infer,
    .gradient = unstack_gradient,
    .cost = tutti__cost_move,
    .split = unstack_split,
    .reference = unstack_reference,
    .samples = samples,
};
