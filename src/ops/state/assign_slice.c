/* assign_slice.c: v[…, start : start + n, …] = x along one axis. */
#include "ops/state/assign.h"

extern const tutti_op tutti_op_assign_slice;

static int axis_of(const tutti_infer *node)
{
    int64_t axis = RULE_INT(node, "axis");
    return (int)(axis < 0 ? axis + node->inputs[0].rank : axis);
}

static tutti_status assign_slice_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT], other[TUTTI_TYPE_TEXT];
    const tutti_type *v = &node->inputs[0], *x = &node->inputs[1], *start = &node->inputs[2];
    int axis = axis_of(node);
    TUTTI_TRY(tutti__need_variable(node, 0));
    if (axis < 0 || axis >= v->rank)
        return RULE_FAIL(node, TUTTI_INVALID, "axis is %lld, the variable %s has %d axes",
                         (long long)RULE_INT(node, "axis"), tutti_type_text(v, text), v->rank);
    bool fits = x->dtype == v->dtype && x->rank == v->rank && !x->handle;
    for (int i = 0; fits && i < v->rank; i++)
        fits = x->dims[i] == TUTTI_ANY || v->dims[i] == TUTTI_ANY ||
               (i == axis ? x->dims[i] <= v->dims[i] : x->dims[i] == v->dims[i]);
    if (!fits)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "the value is %s, needs the type of the variable %s, but at most as many "
                         "along axis %d",
                         tutti_type_text(x, other), tutti_type_text(v, text), axis);
    if (start->rank != 0 || (start->dtype != TUTTI_I32 && start->dtype != TUTTI_I64))
        return RULE_FAIL(node, TUTTI_INVALID, "start is %s, needs a scalar i32 or i64",
                         tutti_type_text(start, text));
    return tutti_infer_same(node);
}

/* Rows are what stands behind the axis: of the variable `dim` of them, one behind the other. */
static tutti_status assign_slice_reference(const tutti_kernel_call *call)
{
    const tutti_view *v = &call->inputs[0], *x = &call->inputs[1];
    int64_t axis = tutti_attr_int(call->attrs, call->attr_count, "axis"), outer = 1;
    int64_t start = tutti_view_get_int(&call->inputs[2], 0);
    axis += axis < 0 ? v->rank : 0;
    size_t row = tutti_dtype_size(v->dtype);
    for (int64_t i = 0; i < v->rank; i++) {
        outer *= i < axis ? v->dims[i] : 1;
        row *= i > axis ? (size_t)v->dims[i] : 1;
    }
    int64_t count = x->dims[axis], last = v->dims[axis] - count;
    start = start < 0 ? 0 : start > last ? last : start;
    for (int64_t i = 0; row > 0 && count > 0 && i < outer; i++)
        memcpy((char *)v->data + (size_t)(i * v->dims[axis] + start) * row,
               (const char *)x->data + (size_t)(i * count) * row, (size_t)count * row);
    tutti__view_copy(&call->outputs[0], v);
    return TUTTI_OK;
}

/* Along every axis but the one that is written to in part. */
static int assign_slice_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int ways = 0;
    for (int axis = 0; axis < node->inputs[0].rank; axis++)
        if (axis != axis_of(node) && ways++ < capacity)
            ret[ways - 1] = (tutti_split){.inputs = {(int8_t)axis, (int8_t)axis, TUTTI_WHOLE},
                                          .outputs = {(int8_t)axis}};
    return ways;
}

static const tutti_attr_spec attrs[] = {{"axis", TUTTI_ATTR_INT, "0"}, {0}};

static const char *const samples[] = {
    "&f32[2,5,3] f32[2,2,3] i64[]{=1} | axis=1",
    "&i32[6] i32[2] i32[]{=9}",
    "&f32[4,2] f32[4,1] i64[]{=-3} | axis=-1",
    "&f32[3,2] f32[3,2] i64[]{=0}",
    NULL,
};

tutti_sym(tutti_assign_slice)(tutti_sym variable, tutti_sym value, tutti_sym start, int axis)
{
    tutti_attr list[] = {TUTTI_INT("axis", axis)};
    return tutti__nary(&tutti_op_assign_slice, 3,
                       (tutti_sym[]){variable, tutti__value_of(value), tutti__value_of(start)}, 1,
                       list);
}

/* A start that does not fit is moved, so that this never fails: then the variable is written in
 * place, whatever follows in the step. */
const tutti_op tutti_op_assign_slice = {
    .struct_size = sizeof(tutti_op),
    .name = "assign_slice",
    .version = 1,
    .doc = "assign_slice(v, x, start): v[…, start : start + n, …] = x along axis, start moved to "
           "where x fits; y = v",
    .category = "state",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .flags = TUTTI_OP_UPDATES | TUTTI_OP_TAKES_HANDLE | TUTTI_OP_STATEFUL,
    .attrs = attrs,
    .infer = assign_slice_infer,
    .cost = tutti__cost_move,
    .split = assign_slice_split,
    .reference = assign_slice_reference,
    .samples = samples,
};
