/* quantized.c: what the operators on quantised numbers share; see quantized.h. */
#include "ops/quantized/quantized.h"
#include "ops/build.h"

tutti_status tutti__need_bytes(const tutti_infer *node, int i, const char *what)
{
    char text[TUTTI_TYPE_TEXT];
    if (!tutti__is_byte(node->inputs[i].dtype))
        return RULE_FAIL(node, TUTTI_INVALID, "%s is %s, needs i8 or u8", what,
                         tutti_type_text(&node->inputs[i], text));
    return TUTTI_OK;
}

tutti_status tutti__need_parameter(const tutti_infer *node, int i, const char *what,
                                   tutti_dtype dtype, int64_t size)
{
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *type = &node->inputs[i];
    if (dtype != TUTTI_NO_DTYPE && type->dtype != dtype)
        return RULE_FAIL(node, TUTTI_INVALID, "%s is %s, needs %s", what,
                         tutti_type_text(type, text), tutti_dtype_name(dtype));
    bool one = type->rank == 0 || (type->rank == 1 && type->dims[0] == 1);
    int64_t merged;
    if (!one && (type->rank != 1 || !tutti__shape_merge(type->dims[0], size, &merged)))
        return RULE_FAIL(node, TUTTI_INVALID, "%s is %s, needs one number or a vector of %lld",
                         what, tutti_type_text(type, text), (long long)size);
    return TUTTI_OK;
}

/* Blocks: the scale has x's rank and ceil(size / block) along the axis. */
static bool blocks_agree(const tutti_type *x, const tutti_type *scale, int axis, int64_t block)
{
    int64_t merged;
    bool agree = scale->rank == x->rank;
    for (int i = 0; agree && i < x->rank; i++) {
        int64_t size = x->dims[i];
        if (i == axis && size != TUTTI_ANY)
            size = size / block + (size % block != 0);
        agree = tutti__shape_merge(size, scale->dims[i], &merged);
    }
    return agree;
}

tutti_status tutti__need_scale(const tutti_infer *node)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    const tutti_type *x = &node->inputs[0], *scale = &node->inputs[1];
    int64_t block = RULE_INT(node, "block");
    int axis = 0;
    if (!tutti_dtype_is_float(scale->dtype))
        return RULE_FAIL(node, TUTTI_INVALID, "the scale is %s, needs floats",
                         tutti_type_text(scale, a));
    if (block < 0)
        return RULE_FAIL(node, TUTTI_INVALID, "block is %lld, needs 1 or more, or 0 for none",
                         (long long)block);
    bool one = scale->rank == 0 || (scale->rank == 1 && scale->dims[0] == 1 && block == 0);
    if (!one)
        TUTTI_TRY(tutti__rule_axis(node, RULE_INT(node, "axis"), x->rank, &axis));
    if (!one && block > 0 && !blocks_agree(x, scale, axis, block))
        return RULE_FAIL(node, TUTTI_INVALID,
                         "x is %s and the scale %s, which has not one number for each block of "
                         "%lld along axis %d",
                         tutti_type_text(x, a), tutti_type_text(scale, b), (long long)block, axis);
    if (!one && block == 0)
        TUTTI_TRY(tutti__need_parameter(node, 1, "the scale", TUTTI_NO_DTYPE, x->dims[axis]));
    if (node->input_count < 3)
        return TUTTI_OK;
    bool same = node->inputs[2].rank == scale->rank;
    for (int i = 0; same && i < scale->rank; i++) {
        int64_t merged;
        same = tutti__shape_merge(node->inputs[2].dims[i], scale->dims[i], &merged);
    }
    if (!same)
        return RULE_FAIL(node, TUTTI_INVALID, "the zero is %s and the scale %s; shapes must agree",
                         tutti_type_text(&node->inputs[2], a), tutti_type_text(scale, b));
    return TUTTI_OK;
}

tutti_quantum tutti__quantum(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0], *scale = &call->inputs[1];
    int64_t block = RULE_INT(call, "block");
    if (tutti_view_count(scale) == 1 || x->rank == 0)
        return (tutti_quantum){.size = 1, .inner = 1, .step = 1};
    int axis = tutti__axis_of(RULE_INT(call, "axis"), x->rank);
    tutti_blocks around = tutti__blocks(x, axis);
    tutti_quantum q = {.size = around.size > 0 ? around.size : 1,
                       .inner = around.inner > 0 ? around.inner : 1,
                       .step = 1,
                       .per_axis = 1};
    if (block > 0) {
        q.step = block;
        q.per_axis = q.inner;
        q.per_outer = scale->dims[axis] * q.inner;
    }
    return q;
}

/* Cut along the axis the parameters are cut with it; in blocks only the other axes are cut. */
int tutti__split_quantum(const tutti_infer *node, int capacity, tutti_split *ret)
{
    const tutti_type *x = &node->inputs[0], *scale = &node->inputs[1];
    bool one = scale->rank == 0 || (scale->rank == 1 && scale->dims[0] == 1);
    bool blocks = RULE_INT(node, "block") > 0 && !one;
    int axis = one ? -1 : tutti__axis_of(RULE_INT(node, "axis"), x->rank);
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    for (int i = 0; i < x->rank; i++) {
        if (blocks && i == axis)
            continue;
        tutti_split *way = tutti__cut(&cuts);
        way->inputs[0] = way->outputs[0] = (int8_t)i;
        for (int k = 1; k < node->input_count; k++)
            way->inputs[k] = (int8_t)(blocks ? i : i == axis ? 0 : TUTTI_WHOLE);
    }
    return cuts.count;
}

int32_t tutti__zero_of(const tutti_kernel_call *call, int input, int64_t i)
{
    if (input >= call->input_count)
        return 0;
    const tutti_view *zero = &call->inputs[input];
    return tutti__byte_at(zero, tutti_view_count(zero) == 1 ? 0 : i);
}

float tutti__scale_of(const tutti_kernel_call *call, int input, int64_t i)
{
    if (input >= call->input_count)
        return 1;
    const tutti_view *scale = &call->inputs[input];
    return (float)tutti_view_get(scale, tutti_view_count(scale) == 1 ? 0 : i);
}

tutti_sym tutti__zero_or(tutti_sym zero, tutti_sym q)
{
    return zero.node || !tutti_sym_ok(q) ? zero : tutti__scalar_like(q, 0);
}

tutti_sym tutti__no_scale(tutti_sym q, const char *op, const char *scales)
{
    if (!tutti_sym_ok(q))
        return tutti__poison_of(op, 1, &q);
    return tutti__poison(tutti_sym_graph(q), TUTTI_INVALID, "op '%s': a scale is missing; give %s",
                         op, scales);
}
