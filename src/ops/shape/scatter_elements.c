/* scatter_elements.c: a copy with one element replaced, or combined with, for each index along an
 * axis, all other axes in step. */
#include <stdlib.h>

#include "ops/shape/scatter.h"

static const char *const reductions[] = {"none", "add", "mul", "max", "min"};
enum { NONE, ADD, MUL, MAX, MIN };

static int reduction_of(const char *name)
{
    for (int i = 0; i < (int)TUTTI_COUNT(reductions); i++)
        if (strcmp(name, reductions[i]) == 0)
            return i;
    return -1;
}

/* x [a, b, c], indices and updates [a', n, c'] with a' <= a, c' <= c for axis 1 */
static tutti_status infer(tutti_infer *node)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT], c[TUTTI_TYPE_TEXT];
    const tutti_type *x = &node->inputs[0], *indices = &node->inputs[1];
    const tutti_type *updates = &node->inputs[2];
    int64_t size;
    int axis;
    TUTTI_TRY(tutti__rule_axis(node, RULE_INT(node, "axis"), x->rank, &axis));
    TUTTI_TRY(tutti__shape_indices(node, 1));
    TUTTI_TRY(tutti__shape_same_dtype(node, 2));
    int reduction = reduction_of(RULE_STRING(node, "reduction"));
    if (reduction < 0)
        return RULE_FAIL(node, TUTTI_INVALID, "reduction is '%s', knows none, add, mul, max, min",
                         RULE_STRING(node, "reduction"));
    if (reduction != NONE)
        TUTTI_TRY(tutti__shape_numbers(node, 0));
    bool agree = indices->rank == x->rank && updates->rank == x->rank;
    for (int i = 0; agree && i < x->rank; i++)
        agree = tutti__shape_merge(indices->dims[i], updates->dims[i], &size) &&
                (i == axis || size == TUTTI_ANY || x->dims[i] == TUTTI_ANY || size <= x->dims[i]);
    if (!agree)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "input is %s, indices are %s, updates %s; indices and updates must agree, "
                         "and be no larger than the input along all axes but %d",
                         tutti_type_text(x, a), tutti_type_text(indices, b),
                         tutti_type_text(updates, c), axis);
    return tutti_infer_same(node);
}

/* Where an update stays: of equal indices the last is read back. Each knows its place along the
 * axis, as an integer: floats would not tell large ones apart. */
static tutti_sym last_of_equals(tutti_sym x, tutti_sym at, int axis)
{
    tutti_sym place = tutti_cumsum(tutti_cast(tutti_ones_like(at), TUTTI_I64), axis);
    tutti_sym none = tutti_cast(tutti_zeros_like(x), TUTTI_I64);
    tutti_sym stays = tutti_scatter_elements(none, at, place, axis, "none");
    return tutti_equal(tutti_gather_elements(stays, at, axis), place);
}

/* dx and du of y = x with u put in (none), added, multiplied; the extremes share dy. */
static tutti_status gradient(tutti_gradient *node)
{
    tutti_sym dy = node->output_grads[0], y = node->outputs[0];
    tutti_sym x = node->inputs[0], at = node->inputs[1], u = node->inputs[2], dx = dy, du;
    int axis = (int)RULE_INT(node, "axis"),
        reduction = reduction_of(RULE_STRING(node, "reduction"));
    if (reduction == MAX || reduction == MIN) {
        tutti_sym stays = tutti_equal(x, y);
        tutti_sym wins = tutti_equal(u, tutti_gather_elements(y, at, axis));
        tutti_dtype dtype = tutti_sym_type(x).dtype;
        tutti_sym count = tutti_scatter_elements(tutti_cast(stays, dtype), at,
                                                 tutti_cast(wins, dtype), axis, "add");
        tutti_sym share = tutti_div(dy, count);
        dx = tutti_where(stays, share, tutti_zeros_like(x));
        du = tutti_where(wins, tutti_gather_elements(share, at, axis), tutti_zeros_like(u));
    } else if (reduction == MUL) {
        dx = tutti_mul(dy, tutti_scatter_elements(tutti_ones_like(x), at, u, axis, "mul"));
        du = tutti_div(tutti_gather_elements(tutti_mul(dy, y), at, axis), u);
    } else {
        du = tutti_gather_elements(dy, at, axis);
        if (reduction == NONE && node->wanted[2])
            du = tutti_where(last_of_equals(x, at, axis), du, tutti_zeros_like(u));
        if (reduction == NONE)
            dx = tutti_scatter_elements(dy, at, tutti_zeros_like(u), axis, "none");
    }
    if (node->wanted[0])
        node->input_grads[0] = dx;
    if (node->wanted[2])
        node->input_grads[2] = du;
    return TUTTI_OK;
}

static double combine(int reduction, double a, double b)
{
    switch (reduction) {
    case ADD:
        return a + b;
    case MUL:
        return a * b;
    case MAX:
        return a != a || a > b ? a : b;
    default:
        return a != a || a < b ? a : b;
    }
}

static int64_t combine_int(int reduction, int64_t a, int64_t b)
{
    switch (reduction) {
    case ADD:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case MUL:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case MAX:
        return a > b ? a : b;
    default:
        return a < b ? a : b;
    }
}

/* Where each update goes: its flat index in y. Negative indices count from the end. */
static tutti_status find_places(const tutti_call *call, int axis, int64_t *ret_places)
{
    const tutti_view *indices = &call->inputs[1], *y = &call->outputs[0];
    int64_t count = tutti_view_count(indices), strides[TUTTI_MAX_RANK], limit = y->dims[axis];
    tutti__strides_of(y->rank, y->dims, strides);
    for (int64_t i = 0; i < count; i++) {
        int64_t index = tutti__index_at(indices, i), rest = i, place = 0;
        if (index < -limit || index >= limit)
            return RULE_FAIL(call, TUTTI_OUT_OF_RANGE,
                             "index %lld is %lld, but axis %d has size %lld: indices run from "
                             "%lld to %lld",
                             (long long)i, (long long)index, axis, (long long)limit,
                             (long long)-limit, (long long)limit - 1);
        for (int a = y->rank - 1; a >= 0; a--) {
            int64_t here = rest % indices->dims[a];
            rest /= indices->dims[a];
            place += strides[a] * (a != axis ? here : index < 0 ? index + limit : index);
        }
        ret_places[i] = place;
    }
    return TUTTI_OK;
}

/* Floats are combined in double and rounded once. */
static tutti_status combine_floats(const tutti_call *call, int reduction, const int64_t *places)
{
    const tutti_view *u = &call->inputs[2], *y = &call->outputs[0];
    int64_t count = tutti_view_count(u), all = tutti_view_count(y);
    double *sums = calloc((size_t)all + 1, sizeof *sums);
    if (!sums)
        return RULE_FAIL(call, TUTTI_NO_MEMORY, "no memory for %lld sums", (long long)all);
    for (int64_t i = 0; i < all; i++)
        sums[i] = tutti_view_get(y, i);
    for (int64_t i = 0; i < count; i++)
        sums[places[i]] = combine(reduction, sums[places[i]], tutti_view_get(u, i));
    for (int64_t i = 0; i < all; i++)
        tutti_view_set(y, i, sums[i]);
    free(sums);
    return TUTTI_OK;
}

static tutti_status put(const tutti_call *call, int reduction, const int64_t *places)
{
    const tutti_view *x = &call->inputs[0], *u = &call->inputs[2], *y = &call->outputs[0];
    int64_t count = tutti_view_count(u), all = tutti_view_count(y);
    size_t size = tutti_dtype_size(y->dtype);
    if (all > 0)
        memcpy(y->data, x->data, (size_t)all * size);
    if (reduction != NONE && tutti_dtype_is_float(y->dtype))
        return combine_floats(call, reduction, places);
    for (int64_t i = 0; i < count; i++)
        if (reduction == NONE)
            memcpy(tutti__element(y, places[i]), tutti__element(u, i), size);
        else
            tutti_view_set_int(
                y, places[i],
                combine_int(reduction, tutti_view_get_int(y, places[i]), tutti_view_get_int(u, i)));
    return TUTTI_OK;
}

static tutti_status reference(const tutti_call *call)
{
    int64_t count = tutti_view_count(&call->inputs[1]);
    int axis = tutti__axis_of(RULE_INT(call, "axis"), call->inputs[0].rank);
    int64_t *places = calloc((size_t)count + 1, sizeof *places);
    if (!places)
        return RULE_FAIL(call, TUTTI_NO_MEMORY, "no memory for %lld places", (long long)count);
    tutti_status status = find_places(call, axis, places);
    if (status == TUTTI_OK)
        status = put(call, reduction_of(RULE_STRING(call, "reduction")), places);
    free(places);
    return status;
}

/* Beside the axis, where all have the same size. */
static int split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    const tutti_type *x = &node->inputs[0], *indices = &node->inputs[1];
    int axis = tutti__axis_of(RULE_INT(node, "axis"), x->rank);
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    for (int i = 0; i < x->rank; i++) {
        if (i == axis || x->dims[i] != indices->dims[i] || x->dims[i] == TUTTI_ANY)
            continue;
        tutti_split *way = tutti__cut(&cuts);
        way->inputs[0] = way->inputs[1] = way->inputs[2] = way->outputs[0] = (int8_t)i;
    }
    return cuts.count;
}

static void cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_move(node, ret);
    ret->flops = tutti__shape_elements(&node->inputs[2]);
}

extern const tutti_op tutti_op_scatter_elements;
tutti_sym(tutti_scatter_elements)(tutti_sym x, tutti_sym indices, tutti_sym updates, int axis,
                                  const char *reduction)
{
    return TUTTI_NARY(&tutti_op_scatter_elements, ((tutti_sym[]){x, indices, updates}),
                      TUTTI_INT("axis", axis),
                      TUTTI_STR("reduction", reduction ? reduction : "none"));
}

static const tutti_attr_spec attrs[] = {
    {"axis", TUTTI_ATTR_INT, "0"},
    {"reduction", TUTTI_ATTR_STRING, "none"},
    {NULL},
};
static const char *const samples[] = {
    "f32[3,5] i32[3,2]{=0,3,4,-2,1,2} f32[3,2] | axis=1",
    "f64[4,2] i32[3,2]{=1,3,1,-1,-3,0} f64[3,2]",
    "f32[3,5] i64[2,4]{=0,1,2,-1,1,1,0,0} f32[2,4] | reduction=add",
    "f64[2,3] i64[2,4]{=0,0,1,-1,2,1,2,2} f64[2,4]{0.5:2} | axis=1 reduction=mul",
    "f64[4]{=0.1,0.2,0.3,0.4} i32[3]{=1,1,3} f64[3]{=0.5,0.9,-0.4} | reduction=max",
    "f64[4]{=0.1,0.2,0.3,0.4} i32[3]{=1,1,3} f64[3]{=0.05,0.9,-0.4} | reduction=min",
    "i32[2,3] i32[1,2]{0:2} i32[1,2] | reduction=add",
    "bf16[3] i32[4]{=0,0,0,2} bf16[4] | reduction=add",
    "string[3]{=a,b,c} i32[1]{=-1} string[1]{=z}",
    "bool[2] i32[0] bool[0]",
    NULL,
};

const tutti_op tutti_op_scatter_elements = {
    .struct_size = sizeof(tutti_op),
    .name = "scatter_elements",
    .version = 1,
    .doc =
        "scatter_elements(x, indices, updates; axis, reduction): y = x, then y[i, indices[i, j, k], k] = updates[i, j, k] for axis 1, or +=, *=, max, min",
    .category = "shape",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .flags = TUTTI_OP_FALLIBLE,
    .attrs = attrs,
    .infer = infer,
    .gradient = gradient,
    .cost = cost,
    .split = split,
    .reference = reference,
    .samples = samples,
};
