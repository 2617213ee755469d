/* take_along.c: one element for each index along an axis, all other axes in step. */
#include "ops/shape/scatter.h"

bool tutti__along_agrees(int64_t size, int64_t indices, bool fewer)
{
    int64_t merged;
    return tutti__shape_merge(size, indices, &merged) || (fewer && indices <= size);
}

tutti_along tutti__along(const tutti_view *indices, const int64_t *dims, int axis)
{
    tutti_along along = {indices, dims, axis, false, indices->dims[axis], dims[axis], 1};
    for (int i = 0; i < indices->rank; i++) {
        along.fewer = along.fewer || (i != axis && indices->dims[i] != dims[i]);
        along.inner *= i > axis ? dims[i] : 1;
    }
    return along;
}

int64_t tutti__along_place(const tutti_along *along, int64_t n)
{
    const tutti_view *indices = along->indices;
    int64_t index = tutti__index_at(indices, n), place = 0, stride = 1;
    if (!along->fewer)
        return (n / (along->count * along->inner) * along->size + index) * along->inner +
               n % along->inner;
    for (int i = indices->rank - 1; i >= 0; i--) {
        place += stride * (i == along->axis ? index : n % indices->dims[i]);
        n /= indices->dims[i];
        stride *= along->dims[i];
    }
    return place;
}

static tutti_status infer(tutti_infer *node)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    const tutti_type *x = &node->inputs[0], *indices = &node->inputs[1];
    tutti_type y = *indices;
    bool fewer = RULE_INT(node, "fewer");
    int axis;
    TUTTI_TRY(tutti__rule_axis(node, RULE_INT(node, "axis"), x->rank, &axis));
    TUTTI_TRY(tutti__shape_indices(node, 1));
    bool agree = indices->rank == x->rank;
    for (int i = 0; agree && i < x->rank; i++) {
        agree = i == axis || tutti__along_agrees(x->dims[i], indices->dims[i], fewer);
        if (agree && i != axis && !fewer)
            (void)tutti__shape_merge(x->dims[i], indices->dims[i], &y.dims[i]);
    }
    if (!agree)
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "input is %s, indices are %s; all dimensions but that of axis %d must agree",
            tutti_type_text(x, a), tutti_type_text(indices, b), axis);
    return tutti__shape_output(node, 0, x->dtype, y.rank, y.dims);
}

static tutti_status gradient(tutti_gradient *node)
{
    if (node->wanted[0])
        node->input_grads[0] =
            tutti__put_along(node->inputs[1], node->output_grads[0], node->inputs[0],
                             (int)RULE_INT(node, "axis"), RULE_INT(node, "fewer"));
    return TUTTI_OK;
}

static tutti_status reference(const tutti_call *call)
{
    const tutti_view *x = &call->inputs[0], *indices = &call->inputs[1], *y = &call->outputs[0];
    int axis = tutti__axis_of(RULE_INT(call, "axis"), x->rank);
    tutti_along along = tutti__along(indices, x->dims, axis);
    int64_t count = tutti_view_count(indices);
    size_t bytes = tutti_dtype_size(x->dtype);
    TUTTI_TRY(tutti__indices_check(call, 1, axis, 1, x->dims));
    for (int64_t n = 0; n < count; n++)
        memcpy(tutti__element(y, n), tutti__element(x, tutti__along_place(&along, n)), bytes);
    return TUTTI_OK;
}

/* Beside the axis all are cut, unless the indices are fewer; along it only the indices. */
static int split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int axis = tutti__axis_of(RULE_INT(node, "axis"), node->inputs[0].rank);
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    for (int i = 0; i < node->inputs[0].rank; i++) {
        if (i != axis && RULE_INT(node, "fewer") &&
            node->inputs[0].dims[i] != node->inputs[1].dims[i])
            continue;
        tutti_split *way = tutti__cut(&cuts);
        way->inputs[0] = (int8_t)(i == axis ? TUTTI_WHOLE : i);
        way->inputs[1] = way->outputs[0] = (int8_t)i;
    }
    return cuts.count;
}

extern const tutti_op tutti_op_take_along;
tutti_sym(tutti_take_along)(tutti_sym x, tutti_sym indices, int axis)
{
    return TUTTI_NARY(&tutti_op_take_along, ((tutti_sym[]){x, indices}), TUTTI_INT("axis", axis));
}

tutti_sym tutti__take_along(tutti_sym x, tutti_sym indices, int axis, bool fewer)
{
    return TUTTI_NARY(&tutti_op_take_along, ((tutti_sym[]){x, indices}), TUTTI_INT("axis", axis),
                      TUTTI_INT("fewer", fewer));
}

static const tutti_attr_spec attrs[] = {
    {"axis", TUTTI_ATTR_INT, "-1"},
    {"fewer", TUTTI_ATTR_INT, "0"}, /* the indices may be, beside the axis */
    {NULL},
};
static const char *const samples[] = {
    "f32[3,5] i32[3,2]{0:5}",
    "f32[3,5,4] i32[2,3,3]{0:5} | axis=1 fewer=1",
    "f32[4,2,3] i64[5,1,3]{0:4} | axis=0 fewer=1",
    "f32[4,2,3] i64[3,2,3]{0:4} | axis=0",
    "i32[2,4,2] i32[2,3,2]{0:4} | axis=1",
    "f32[3,5] i32[3,0]",
    NULL,
};

const tutti_op tutti_op_take_along = {
    .struct_size = sizeof(tutti_op),
    .name = "take_along",
    .version = 1,
    .doc = "take_along(x, indices; axis): y[i, j, k] = x[i, indices[i, j, k], k] for axis 1",
    .category = "shape",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_FALLIBLE,
    .attrs = attrs,
    .infer = infer,
    .gradient = gradient,
    .cost = tutti__cost_move,
    .split = split,
    .reference = reference,
    .samples = samples,
};
