/* comm.c: what the collective operators share; see comm.h. */
#include "ops/comm/comm.h"

static const char *const reduction_names[] = {"sum", "mean", "min", "max", "prod"};

const char *tutti__reduction_name(tutti_reduction reduction)
{
    return (size_t)reduction < TUTTI_COUNT(reduction_names) ? reduction_names[reduction] : "?";
}

tutti_reduction tutti__reduction_of(const tutti_attr *attrs, int attr_count)
{
    const char *name = tutti_attr_string(attrs, attr_count, "op");
    for (size_t i = 0; i < TUTTI_COUNT(reduction_names); i++)
        if (strcmp(reduction_names[i], name) == 0)
            return (tutti_reduction)i;
    return TUTTI_SUM;
}

tutti_status tutti__need_axis(const tutti_infer *node)
{
    if (RULE_STRING(node, "axis")[0] == '\0')
        return RULE_FAIL(node, TUTTI_INVALID, "needs the name of a mesh axis");
    if (RULE_INT(node, "size") < 1)
        return RULE_FAIL(node, TUTTI_INVALID, "axis '%s' has size %lld, needs 1 or more",
                         RULE_STRING(node, "axis"), (long long)RULE_INT(node, "size"));
    if (node->input_count > 0 && node->inputs[0].dtype == TUTTI_STRING)
        return RULE_FAIL(node, TUTTI_UNSUPPORTED, "strings do not travel between devices");
    return TUTTI_OK;
}

tutti_status tutti__need_reduction(const tutti_infer *node)
{
    const char *op = RULE_STRING(node, "op");
    tutti_dtype dtype = node->inputs[0].dtype;
    for (size_t i = 0; i < TUTTI_COUNT(reduction_names); i++) {
        if (strcmp(op, reduction_names[i]) != 0)
            continue;
        if (dtype == TUTTI_BOOL || (i == TUTTI_MEAN && !tutti_dtype_is_float(dtype)))
            return RULE_FAIL(node, TUTTI_INVALID, "a %s of %s is not defined; cast first", op,
                             tutti_dtype_name(dtype));
        return TUTTI_OK;
    }
    return RULE_FAIL(node, TUTTI_INVALID, "op is '%s', needs sum, mean, min, max or prod", op);
}

tutti_status tutti__need_root(const tutti_infer *node)
{
    int64_t root = RULE_INT(node, "root"), size = RULE_INT(node, "size");
    if (root < 0 || root >= size)
        return RULE_FAIL(node, TUTTI_INVALID, "root %lld is no rank of axis '%s' of size %lld",
                         (long long)root, RULE_STRING(node, "axis"), (long long)size);
    return TUTTI_OK;
}

tutti_status tutti__need_dim_attr(const tutti_infer *node, const char *name, int *ret_dim)
{
    return tutti__rule_axis(node, RULE_INT(node, name), node->inputs[0].rank, ret_dim);
}

tutti_status tutti__dim_times(const tutti_infer *node, int64_t dim, int64_t *ret)
{
    *ret = TUTTI_ANY;
    if (dim != TUTTI_ANY && !tutti__mul_size(dim, RULE_INT(node, "size"), ret))
        return RULE_FAIL(node, TUTTI_TOO_LARGE, "a dimension of %lld times %lld devices overflows",
                         (long long)dim, (long long)RULE_INT(node, "size"));
    return TUTTI_OK;
}

tutti_status tutti__dim_over(const tutti_infer *node, int axis, int64_t dim, int64_t *ret)
{
    int64_t size = RULE_INT(node, "size");
    char text[TUTTI_TYPE_TEXT];
    if (dim != TUTTI_ANY && dim % size != 0)
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "dimension %d of %s is not divisible by the %lld devices of axis '%s'; pad it "
            "with tutti_pad",
            axis, tutti_type_text(&node->inputs[0], text), (long long)size,
            RULE_STRING(node, "axis"));
    *ret = dim == TUTTI_ANY ? TUTTI_ANY : dim / size;
    return TUTTI_OK;
}

tutti_status tutti__reference_alone(const tutti_kernel_call *call)
{
    if (RULE_INT(call, "size") != 1)
        return RULE_FAIL(
            call, TUTTI_UNSUPPORTED,
            "axis '%s' has %lld devices; run it in a program that is bound to all of them",
            RULE_STRING(call, "axis"), (long long)RULE_INT(call, "size"));
    return tutti__reference_copy(call);
}

tutti_status tutti__reference_alone_each(const tutti_kernel_call *call)
{
    if (RULE_INT(call, "size") != 1)
        return tutti__reference_alone(call);
    for (int i = 0; i < call->input_count; i++) {
        size_t bytes =
            (size_t)tutti_view_count(&call->inputs[i]) * tutti_dtype_size(call->inputs[i].dtype);
        if (bytes && call->outputs[i].data != call->inputs[i].data)
            memmove(call->outputs[i].data, call->inputs[i].data, bytes);
    }
    return TUTTI_OK;
}

tutti_status tutti__gradient_reduction(const tutti_gradient_call *node, bool *ret_mean)
{
    const char *op = RULE_STRING(node, "op");
    *ret_mean = strcmp(op, "mean") == 0;
    if (*ret_mean || strcmp(op, "sum") == 0)
        return TUTTI_OK;
    return tutti_fail(TUTTI_UNSUPPORTED,
                      "'%s': a %s over devices has no gradient; use sum or mean, or "
                      "tutti_stop_gradient",
                      node->name, op);
}

int tutti__split_except(const tutti_infer *node, int a, int b, int capacity, tutti_split *ret)
{
    int ways = 0;
    for (int axis = 0; axis < node->inputs[0].rank; axis++) {
        if (axis == a || axis == b)
            continue;
        if (ways < capacity)
            ret[ways] = (tutti_split){.inputs = {(int8_t)axis}, .outputs = {(int8_t)axis}};
        ways++;
    }
    return ways;
}
