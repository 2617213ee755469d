/* square_sum.c: the sum of the squares of gradients, for norms over many tensors. */
#include "ops/update/update.h"

static tutti_status square_sum_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    for (int i = 0; i < node->input_count; i++) {
        TUTTI_TRY(tutti__need_value(node, i));
        if (!tutti_dtype_is_float(node->inputs[i].dtype))
            return RULE_FAIL(node, TUTTI_INVALID, "input %d is %s, needs floats", i,
                             tutti_type_text(&node->inputs[i], text));
    }
    const tutti_attr *ranges = tutti_attr_find(node->attrs, node->attr_count, "ranges");
    if (ranges && ranges->count != 0 && ranges->count != 2 * node->input_count)
        return RULE_FAIL(node, TUTTI_INVALID, "has %d inputs and %d bounds of ranges",
                         node->input_count, ranges->count);
    node->outputs[0] = (tutti_type){.dtype = TUTTI_F32};
    return TUTTI_OK;
}

void tutti__square_sum_range(const tutti_attr *attrs, int attr_count, int input, int64_t count,
                             int64_t *ret_first, int64_t *ret_end)
{
    const tutti_attr *ranges = tutti_attr_find(attrs, attr_count, "ranges");
    bool cut = ranges && ranges->count > 2 * input + 1;
    int64_t first = cut ? ranges->value.ints[2 * input] : 0;
    int64_t end = cut ? ranges->value.ints[2 * input + 1] : count;
    *ret_first = first < 0 ? 0 : first < count ? first : count;
    *ret_end = end < *ret_first ? *ret_first : end < count ? end : count;
}

static tutti_status square_sum_reference(const tutti_kernel_call *call)
{
    double sum = 0;
    for (int k = 0; k < call->input_count; k++) {
        int64_t first, end;
        tutti__square_sum_range(call->attrs, call->attr_count, k,
                                tutti_view_count(&call->inputs[k]), &first, &end);
        for (int64_t i = first; i < end; i++) {
            double x = tutti_view_get(&call->inputs[k], i);
            sum += x * x;
        }
    }
    tutti_view_set(&call->outputs[0], 0, sum);
    return TUTTI_OK;
}

static void square_sum_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_move(node, ret);
    ret->flops = ret->bytes_read = 0;
    for (int i = 0; i < node->input_count; i++) {
        int64_t first, end;
        tutti__square_sum_range(node->attrs, node->attr_count, i,
                                tutti_type_count(&node->inputs[i]), &first, &end);
        ret->flops += 2 * (double)(end - first);
        ret->bytes_read += (double)(end - first) * (double)tutti_dtype_size(node->inputs[i].dtype);
    }
}

static int square_sum_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    const tutti_attr *ranges = tutti_attr_find(node->attrs, node->attr_count, "ranges");
    if (node->input_count != 1 || (ranges && ranges->count > 0))
        return 0;
    for (int axis = 0; axis < node->inputs[0].rank && axis < capacity; axis++)
        ret[axis] = (tutti_split){.inputs = {(int8_t)axis}, .outputs = {TUTTI_PARTIAL_SUM}};
    return node->inputs[0].rank;
}

/* One by one, so that each can be cut as it lies: sums of parts add up. Those of doubles stay
 * doubles until the end. */
static tutti_status square_sum_expand(tutti_expansion *node)
{
    bool wide = false;
    for (int i = 0; i < node->input_count; i++)
        wide = wide || tutti_sym_type(node->inputs[i]).dtype == TUTTI_F64;
    for (int i = 0; i < node->input_count; i++) {
        tutti_sym x = node->inputs[i], sum;
        if (tutti_sym_type(x).dtype == TUTTI_F64)
            sum = tutti_sum(tutti_square(x));
        else
            sum = wide ? tutti_cast(tutti__square_sum(1, &x), TUTTI_F64) : tutti__square_sum(1, &x);
        node->outputs[0] = i == 0 ? sum : tutti_add(node->outputs[0], sum);
    }
    if (wide)
        node->outputs[0] = tutti_cast(node->outputs[0], TUTTI_F32);
    return TUTTI_OK;
}

static const char *const samples[] = {
    "f32[2,3]", "f32[5] f64[2] bf16[]",   "f16[4]",
    "f32[0]",   "f32[3]{=1,2,-3} f32[7]", "f32[3,5] f32[7] | ranges=[2,9,0,0]",
    NULL,
};

static const tutti_attr_spec attrs[] = {
    {"ranges", TUTTI_ATTR_INTS, "[]"}, /* by input: the first element that counts and the end of
                                          them, in the order of the memory; none: all do */
    {0},
};

extern const tutti_op tutti_op_square_sum;

tutti_sym tutti__square_sum(int count, const tutti_sym *xs)
{
    return tutti__nary(&tutti_op_square_sum, count, xs, 0, NULL);
}

const tutti_op tutti_op_square_sum = {
    .struct_size = sizeof(tutti_op),
    .name = "square_sum",
    .version = 1,
    .doc = "square_sum(x...): y = sum of the squares of every element of every x",
    .category = "update",
    .min_inputs = 1,
    .max_inputs = -1,
    .outputs = 1,
    .flags = TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = square_sum_infer,
    .cost = square_sum_cost,
    .split = square_sum_split,
    .expand = square_sum_expand,
    .reference = square_sum_reference,
    .samples = samples,
};
