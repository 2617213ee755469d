/* put_along.c: adds one element for each index along an axis: the adjoint of take_along. */
#include "ops/shape/scatter.h"

static tutti_status put_along_infer(tutti_infer *node)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT], c[TUTTI_TYPE_TEXT];
    const tutti_type *indices = &node->inputs[0], *updates = &node->inputs[1];
    tutti_type like;
    int64_t merged;
    bool fewer = RULE_INT(node, "fewer");
    int axis;
    TUTTI_TRY(tutti__shape_indices(node, 0));
    TUTTI_TRY(tutti__shape_numbers(node, 1));
    TUTTI_TRY(tutti__rule_axis(node, RULE_INT(node, "axis"), indices->rank, &axis));
    TUTTI_TRY(tutti__shape_like(node, 2, &like));
    bool agree = indices->rank == like.rank && updates->rank == like.rank;
    for (int i = 0; agree && i < like.rank; i++)
        agree = tutti__shape_merge(updates->dims[i], indices->dims[i], &merged) &&
                (i == axis || tutti__along_agrees(like.dims[i], merged, fewer));
    if (!agree)
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "indices are %s, updates %s, the result %s; the first two must agree, and all "
            "dimensions but that of axis %d",
            tutti_type_text(indices, a), tutti_type_text(updates, b), tutti_type_text(&like, c),
            axis);
    return tutti__shape_output(node, 0, updates->dtype, like.rank, like.dims);
}

static tutti_status put_along_gradient(tutti_gradient_call *node)
{
    if (node->wanted[1])
        node->input_grads[1] =
            tutti__take_along(node->output_grads[0], node->inputs[0], (int)RULE_INT(node, "axis"),
                              RULE_INT(node, "fewer"));
    return TUTTI_OK;
}

static void starts_of(const void *context, int64_t first, int64_t count, int64_t *ret_starts)
{
    tutti__along_places(context, first, count, ret_starts);
}

static tutti_status put_along_reference(const tutti_kernel_call *call)
{
    const tutti_view *indices = &call->inputs[0], *y = &call->outputs[0];
    int axis = tutti__axis_of(RULE_INT(call, "axis"), y->rank);
    tutti_along along = tutti__along(indices, y->dims, axis);
    tutti_scatter scatter = {tutti_view_count(indices), 1, starts_of, &along};
    TUTTI_TRY(tutti__indices_check(call, 0, axis, 1, y->dims));
    return tutti__scatter_add(call, &scatter, &call->inputs[1], y);
}

/* Beside the axis all are cut, unless the indices are fewer; along it each piece of the indices
 * adds its part. */
static int put_along_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int axis = tutti__axis_of(RULE_INT(node, "axis"), node->inputs[0].rank);
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    for (int i = 0; i < node->inputs[0].rank; i++) {
        if (i != axis && RULE_INT(node, "fewer") &&
            node->inputs[0].dims[i] != node->outputs[0].dims[i])
            continue;
        tutti_split *way = tutti__cut(&cuts);
        way->inputs[0] = way->inputs[1] = (int8_t)i;
        way->outputs[0] = (int8_t)(i == axis ? TUTTI_PARTIAL_SUM : i);
        if (i != axis)
            tutti__cut_like(node, way, 2, i);
    }
    return cuts.count;
}

static void put_along_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_move(node, ret);
    ret->flops = tutti__shape_elements(&node->inputs[1]);
}

extern const tutti_op tutti_op_put_along;
tutti_sym(tutti_put_along)(tutti_sym indices, tutti_sym updates, tutti_sym like, int axis)
{
    return TUTTI_NARY(&tutti_op_put_along, ((tutti_sym[]){indices, updates, like}),
                      TUTTI_INT("axis", axis));
}

tutti_sym tutti__put_along(tutti_sym indices, tutti_sym updates, tutti_sym like, int axis,
                           bool fewer)
{
    return TUTTI_NARY(&tutti_op_put_along, ((tutti_sym[]){indices, updates, like}),
                      TUTTI_INT("axis", axis), TUTTI_INT("fewer", fewer));
}

static const tutti_attr_spec attrs[] = {
    {"axis", TUTTI_ATTR_INT, "-1"},
    {"dims", TUTTI_ATTR_INTS, "[]"},
    {"fewer", TUTTI_ATTR_INT, "0"}, /* the indices may be, beside the axis */
    {NULL},
};
static const char *const samples[] = {
    "i32[3,2]{0:5} f32[3,2] f32[3,5]",
    "i32[2,3,3]{0:5} f32[2,3,3] f32[3,5,4] | axis=1 fewer=1",
    "i64[3,2,3]{0:4} f32[3,2,3] f32[4,2,3] | axis=0",
    "i32[2,5]{0:2} bf16[2,5] f32[2,2]",
    "i32[3,2]{0:5} f32[3,2] | dims=[3,5]",
    NULL,
};

const tutti_op tutti_op_put_along = {
    .struct_size = sizeof(tutti_op),
    .name = "put_along",
    .version = 1,
    .doc =
        "put_along(indices, updates, like; axis, dims): y = 0 in the shape of like, or dims without it, then y[i, indices[i, j, k], k] += updates[i, j, k] for axis 1",
    .category = "shape",
    .min_inputs = 2,
    .max_inputs = 3,
    .outputs = 1,
    .flags = TUTTI_OP_FALLIBLE,
    .attrs = attrs,
    .infer = put_along_infer,
    .gradient = put_along_gradient,
    .cost = put_along_cost,
    .split = put_along_split,
    .reference = put_along_reference,
    .samples = samples,
};
