/* scatter_elements.c: a copy with one element replaced, or combined with, for each index along an
 * axis, all other axes in step. */
#include <math.h>
#include <stdlib.h>

#include "ops/shape/scatter.h"
#include "tensor/dtype.h"

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
static tutti_status scatter_elements_infer(tutti_infer *node)
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
static tutti_status scatter_elements_gradient(tutti_gradient_call *node)
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

#define EACH(result)                                                                               \
    for (int64_t i = 0; i < count; i++) {                                                          \
        a = to[places[i]];                                                                         \
        b = from[i];                                                                               \
        to[places[i]] = (result);                                                                  \
    }                                                                                              \
    break

/* For each type: to[places[i]] = it and from[i], combined; integers wrap round, in `wide`. Of a NaN
 * and a number the NaN is the extreme. */
#define COMBINE(name, type, wide, is_nan)                                                          \
    static void combine_##name(int reduction, int64_t count, void *to_, const void *from_,         \
                               const int64_t *places)                                              \
    {                                                                                              \
        type *to = to_, a, b;                                                                      \
        const type *from = from_;                                                                  \
        switch (reduction) {                                                                       \
        case ADD:                                                                                  \
            EACH((type)((wide)a + (wide)b));                                                       \
        case MUL:                                                                                  \
            EACH((type)((wide)a * (wide)b));                                                       \
        case MAX:                                                                                  \
            EACH(is_nan(a) || a > b ? a : b);                                                      \
        default:                                                                                   \
            EACH(is_nan(a) || a < b ? a : b);                                                      \
        }                                                                                          \
    }
#define NEVER(a) false
COMBINE(f32, float, double, isnan)
COMBINE(f64, double, double, isnan)
COMBINE(i8, int8_t, uint32_t, NEVER)
COMBINE(u8, uint8_t, uint32_t, NEVER)
COMBINE(i32, int32_t, uint32_t, NEVER)
COMBINE(i64, int64_t, uint64_t, NEVER)
#undef COMBINE
#undef EACH
#undef NEVER

#define PUT(bytes)                                                                                 \
    for (int64_t i = 0; i < count; i++)                                                            \
        memcpy(to + places[i] * (bytes), from + i * (bytes), bytes);                               \
    break

/* Element places[i] of y = element first + i of u, or what it makes of it. f32 only the extremes.
 */
static void put_run(int reduction, const tutti_view *u, const tutti_view *y, int64_t first,
                    int64_t count, const int64_t *places)
{
    static void (*const combine[TUTTI_DTYPE_END])(int, int64_t, void *, const void *,
                                                  const int64_t *) = {
        [TUTTI_F32] = combine_f32, [TUTTI_F64] = combine_f64, [TUTTI_I8] = combine_i8,
        [TUTTI_U8] = combine_u8,   [TUTTI_I32] = combine_i32, [TUTTI_I64] = combine_i64,
    };
    char *to = y->data;
    const char *from = tutti__element(u, first);
    if (reduction != NONE) {
        combine[y->dtype](reduction, count, to, from, places);
        return;
    }
    switch (tutti_dtype_size(y->dtype)) {
    case 1:
        PUT(1);
    case 2:
        PUT(2);
    case 4:
        PUT(4);
    case 8:
        PUT(8);
    default:
        PUT(16);
    }
}
#undef PUT

/* Negative indices count from the end. */
static tutti_status check_indices(const tutti_kernel_call *call, int axis)
{
    const tutti_view *indices = &call->inputs[1];
    int64_t count = tutti_view_count(indices), limit = call->outputs[0].dims[axis];
    for (int64_t i = 0; i < count; i++) {
        int64_t index = tutti__index_at(indices, i);
        if (index < -limit || index >= limit)
            return RULE_FAIL(call, TUTTI_OUT_OF_RANGE,
                             "index %lld is %lld, but axis %d has size %lld: indices run from "
                             "%lld to %lld",
                             (long long)i, (long long)index, axis, (long long)limit,
                             (long long)-limit, (long long)limit - 1);
    }
    return TUTTI_OK;
}

enum { RUN = 512 }; /* updates whose places are found at once */

/* f32 and 16-bit floats are combined in double and rounded once. */
static tutti_status combine_sums(const tutti_kernel_call *call, int reduction,
                                 const tutti_along *along)
{
    const tutti_view *x = &call->inputs[0], *u = &call->inputs[2], *y = &call->outputs[0];
    int64_t places[RUN], count = tutti_view_count(u), all = tutti_view_count(y);
    double row[RUN], *sums = malloc(((size_t)all + 1) * sizeof *sums);
    if (!sums)
        return RULE_FAIL(call, TUTTI_NO_MEMORY, "no memory for %lld sums", (long long)all);
    tutti__elements_to_doubles(x->dtype, x->data, all, sums);
    for (int64_t first = 0; first < count; first += RUN) {
        int64_t run = count - first < RUN ? count - first : RUN;
        tutti__along_places(along, first, run, places);
        tutti__elements_to_doubles(u->dtype, tutti__element(u, first), run, row);
        combine_f64(reduction, run, sums, row, places);
    }
    tutti__elements_from_doubles(y->dtype, y->data, all, sums);
    free(sums);
    return TUTTI_OK;
}

static tutti_status scatter_elements_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0], *indices = &call->inputs[1], *u = &call->inputs[2],
                     *y = &call->outputs[0];
    int64_t places[RUN], count = tutti_view_count(indices), all = tutti_view_count(y);
    int axis = tutti__axis_of(RULE_INT(call, "axis"), y->rank);
    int reduction = reduction_of(RULE_STRING(call, "reduction"));
    tutti_along along = tutti__along(indices, y->dims, axis);
    TUTTI_TRY(check_indices(call, axis));
    if (reduction != NONE && (tutti_dtype_size(y->dtype) == 2 ||
                              (y->dtype == TUTTI_F32 && reduction != MAX && reduction != MIN)))
        return combine_sums(call, reduction, &along);
    if (all > 0)
        memcpy(y->data, x->data, (size_t)all * tutti_dtype_size(y->dtype));
    for (int64_t first = 0; first < count; first += RUN) {
        int64_t run = count - first < RUN ? count - first : RUN;
        tutti__along_places(&along, first, run, places);
        put_run(reduction, u, y, first, run, places);
    }
    return TUTTI_OK;
}

/* Beside the axis, where all have the same size. */
static int scatter_elements_split(const tutti_infer *node, int capacity, tutti_split *ret)
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

static void scatter_elements_cost(const tutti_infer *node, tutti_cost *ret)
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
    .infer = scatter_elements_infer,
    .gradient = scatter_elements_gradient,
    .cost = scatter_elements_cost,
    .split = scatter_elements_split,
    .reference = scatter_elements_reference,
    .samples = samples,
};
