/* split_like.c: cuts a tensor into pieces as large as other tensors: the adjoint of concat. */
#include "ops/shape/pieces.h"

static tutti_status split_like_refuse(const tutti_infer *node, int i, int axis)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    return RULE_FAIL(
        node, TUTTI_INVALID,
        "input %s cannot be cut along axis %d into pieces of which piece %d has the shape of "
        "%s",
        tutti_type_text(&node->inputs[0], a), axis, i, tutti_type_text(&node->inputs[i + 1], b));
}

static tutti_status split_like_infer(tutti_infer *node)
{
    const tutti_type *x = &node->inputs[0];
    int axis, pieces = node->input_count - 1;
    int64_t sum = 0;
    TUTTI_TRY(tutti__rule_axis(node, RULE_INT(node, "axis"), x->rank, &axis));
    if (pieces != node->output_count)
        return RULE_FAIL(node, TUTTI_INVALID, "%d shapes are given for %d outputs", pieces,
                         node->output_count);
    for (int i = 0; i < pieces; i++) {
        tutti_type like = node->inputs[i + 1];
        if (like.rank != x->rank)
            return split_like_refuse(node, i, axis);
        for (int d = 0; d < x->rank; d++)
            if (d != axis && !tutti__shape_merge(like.dims[d], x->dims[d], &like.dims[d]))
                return split_like_refuse(node, i, axis);
        sum = like.dims[axis] == TUTTI_ANY || sum == TUTTI_ANY ? TUTTI_ANY : sum + like.dims[axis];
        TUTTI_TRY(tutti__shape_output(node, i, x->dtype, x->rank, like.dims));
    }
    return sum == TUTTI_ANY || x->dims[axis] == TUTTI_ANY || sum == x->dims[axis]
               ? TUTTI_OK
               : split_like_refuse(node, pieces - 1, axis);
}

static tutti_status split_like_gradient(tutti_gradient_call *node)
{
    int axis = (int)RULE_INT(node, "axis");
    tutti_sym *grads =
        tutti__arena_array(&node->graph->arena, (size_t)node->output_count, sizeof *grads);
    if (grads == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "split_like '%s': no memory for its gradient",
                          node->name);
    for (int i = 0; i < node->output_count; i++)
        grads[i] = tutti_sym_ok(node->output_grads[i]) ? node->output_grads[i]
                                                       : tutti_zeros_like(node->outputs[i]);
    if (node->wanted[0])
        node->input_grads[0] = tutti_concatenate(node->output_count, grads, .axis = axis);
    return TUTTI_OK;
}

static int split_like_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int axis = tutti__axis_of(RULE_INT(node, "axis"), node->inputs[0].rank);
    return tutti__split_other_axes(node, axis, capacity, ret);
}

extern const tutti_op tutti_op_split_like;
tutti_sym(tutti_split_like)(tutti_sym x, int axis, int count, const tutti_sym *likes)
{
    tutti_sym few[TUTTI_SPLIT_SLOTS], *inputs = few;
    tutti_graph *graph = tutti_sym_ok(x) ? x.node->graph : tutti__graph_of(count, likes);
    if (graph == NULL)
        return tutti__poison_of("split_like", 1, &x);
    if (count < 0)
        return tutti__poison(graph, TUTTI_INVALID, "split_like: %d pieces are asked for", count);
    if (count > 0 && likes == NULL)
        return tutti__poison(graph, TUTTI_INVALID, "split_like: the list of %d inputs is NULL",
                             count);
    if (count >= TUTTI_SPLIT_SLOTS)
        inputs = tutti__arena_array(&graph->arena, (size_t)count + 1, sizeof *inputs);
    if (inputs == NULL)
        return tutti__poison(graph, TUTTI_NO_MEMORY, "split_like: no memory for %d inputs", count);
    inputs[0] = x;
    if (count > 0)
        memcpy(inputs + 1, likes, (size_t)count * sizeof *likes);
    return tutti__nary(&tutti_op_split_like, count + 1, inputs, 2,
                       (tutti_attr[]){TUTTI_INT("axis", axis), TUTTI_INT("outputs", count)});
}

static const tutti_attr_spec attrs[] = {
    {"axis", TUTTI_ATTR_INT, "0"},
    {"outputs", TUTTI_ATTR_INT, NULL},
    {NULL},
};
static const char *const samples[] = {
    "f32[3,6] f32[3,2] f32[3,4] | axis=1 outputs=2",
    "f32[5,2] i32[1,2] i32[4,2] | axis=0 outputs=2",
    NULL,
};

const tutti_op tutti_op_split_like = {
    .struct_size = sizeof(tutti_op),
    .name = "split_like",
    .version = 1,
    .doc =
        "split_like(x, like0, like1, ...; axis, outputs): pieces of x along the axis, each as large as its like",
    .category = "shape",
    .min_inputs = 2,
    .max_inputs = -1,
    .outputs = -1,
    .attrs = attrs,
    .infer = split_like_infer,
    .gradient = split_like_gradient,
    .cost = tutti__cost_move,
    .split = split_like_split,
    .reference = tutti__pieces_reference,
    .samples = samples,
};
