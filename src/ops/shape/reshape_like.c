/* reshape_like.c: the same elements under the shape of another tensor. */
#include "ops/shape/rule.h"

static tutti_status reshape_like_infer(tutti_infer *node)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    const tutti_type *x = &node->inputs[0], *like = &node->inputs[1];
    int64_t count = tutti_type_count(x), wanted = tutti_type_count(like);
    if (count >= 0 && wanted >= 0 && count != wanted)
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "input %s has %lld elements, the shape of %s needs %lld; numbers of elements "
            "must agree",
            tutti_type_text(x, a), (long long)count, tutti_type_text(like, b), (long long)wanted);
    node->outputs[0] = tutti_type_make(x->dtype, like->rank, like->dims);
    return TUTTI_OK;
}

static tutti_status reshape_like_gradient(tutti_gradient_call *node)
{
    if (node->wanted[0])
        node->input_grads[0] = tutti_reshape_like(node->output_grads[0], node->inputs[0]);
    return TUTTI_OK;
}

static void reshape_like_cut(void *context, int from, int to)
{
    tutti_split *way = tutti__cut(context);
    way->inputs[0] = (int8_t)from;
    way->inputs[1] = way->outputs[0] = (int8_t)to;
}

static int reshape_like_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    tutti__split_reshaped(&node->inputs[0], &node->outputs[0], &cuts, reshape_like_cut);
    return cuts.count;
}

extern const tutti_op tutti_op_reshape_like;
tutti_sym(tutti_reshape_like)(tutti_sym x, tutti_sym like)
{
    return tutti__binary(&tutti_op_reshape_like, x, like);
}

static const char *const samples[] = {
    "f32[2,6] f32[3,4]",
    "f32[4,6] i32[4,2,3]",
    "f32[0,3] f32[3,0,2]",
    NULL,
};

const tutti_op tutti_op_reshape_like = {
    .struct_size = sizeof(tutti_op),
    .name = "reshape_like",
    .version = 1,
    .doc = "reshape_like(x, like): y has x's elements in the same order under like's shape",
    .category = "shape",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_VIEW,
    .infer = reshape_like_infer,
    .gradient = reshape_like_gradient,
    .cost = tutti__cost_move,
    .split = reshape_like_split,
    .reference = tutti__reference_view,
    .samples = samples,
};
