/* cumsum.c: the running sum along an axis. */
#include "ops/reduce/reduce.h"

static tutti_status infer(tutti_infer *node)
{
    int axis;
    TUTTI_TRY(tutti__shape_numbers(node, 0));
    TUTTI_TRY(tutti__rule_axis(node, RULE_INT(node, "axis"), node->inputs[0].rank, &axis));
    return tutti_infer_same(node);
}

/* x[i] is in every sum from i on: the running sum of dy from the other end. */
static tutti_status gradient(tutti_gradient *node)
{
    node->input_grads[0] = tutti_cumsum(node->output_grads[0], (int)RULE_INT(node, "axis"),
                                        .exclusive = RULE_INT(node, "exclusive") != 0,
                                        .reverse = RULE_INT(node, "reverse") == 0);
    return TUTTI_OK;
}

/* Elements base, base + step, …, `count` of them. */
static void run_floats(const tutti_call *call, int64_t base, int64_t step, int64_t count,
                       bool exclusive)
{
    double sum = 0;
    for (int64_t i = 0, at = base; i < count; i++, at += step) {
        double x = tutti_view_get(&call->inputs[0], at);
        tutti_view_set(&call->outputs[0], at, exclusive ? sum : sum + x);
        sum += x;
    }
}

static void run_ints(const tutti_call *call, int64_t base, int64_t step, int64_t count,
                     bool exclusive)
{
    uint64_t sum = 0;
    for (int64_t i = 0, at = base; i < count; i++, at += step) {
        uint64_t x = (uint64_t)tutti_view_get_int(&call->inputs[0], at);
        tutti_view_set_int(&call->outputs[0], at, (int64_t)(exclusive ? sum : sum + x));
        sum += x;
    }
}

static tutti_status reference(const tutti_call *call)
{
    const tutti_view *x = &call->inputs[0];
    tutti_blocks blocks = tutti__blocks(x, tutti__axis_of(RULE_INT(call, "axis"), x->rank));
    bool exclusive = RULE_INT(call, "exclusive") != 0, reverse = RULE_INT(call, "reverse") != 0;
    int64_t step = reverse ? -blocks.inner : blocks.inner;
    int64_t first = reverse ? (blocks.size - 1) * blocks.inner : 0;
    for (int64_t outer = 0; outer < blocks.outer; outer++)
        for (int64_t i = 0; i < blocks.inner; i++) {
            int64_t base = outer * blocks.size * blocks.inner + i + first;
            if (tutti_dtype_is_int(x->dtype))
                run_ints(call, base, step, blocks.size, exclusive);
            else
                run_floats(call, base, step, blocks.size, exclusive);
        }
    return TUTTI_OK;
}

static int split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int axis = tutti__axis_of(RULE_INT(node, "axis"), node->inputs[0].rank);
    return tutti__split_other_axes(node, axis, capacity, ret);
}

extern const tutti_op tutti_op_cumsum;
tutti_sym(tutti_cumsum)(tutti_sym x, int axis, const tutti_cumsum_options *options)
{
    RULE_OPTIONS(tutti_cumsum_options, o, options);
    return TUTTI_NARY(&tutti_op_cumsum, ((tutti_sym[]){x}), TUTTI_INT("axis", axis),
                      TUTTI_INT("exclusive", o.exclusive), TUTTI_INT("reverse", o.reverse));
}

static const tutti_attr_spec attrs[] = {
    {"axis", TUTTI_ATTR_INT, "0"},
    {"exclusive", TUTTI_ATTR_INT, "false"},
    {"reverse", TUTTI_ATTR_INT, "false"},
    {NULL},
};
static const char *const samples[] = {
    "f32[3,4] | axis=1",
    "f32[4,2,3] | axis=0 exclusive=true",
    "f32[2,5] | axis=-1 reverse=true",
    "i32[4,2] | axis=0 exclusive=true reverse=true",
    "f32[2,0] | axis=1",
    NULL,
};

const tutti_op tutti_op_cumsum = {
    .struct_size = sizeof(tutti_op),
    .name = "cumsum",
    .version = 1,
    .doc =
        "cumsum(x; axis, exclusive, reverse): y[i] = x[0] + .. + x[i] along the axis, exclusive without x[i], reverse from the end",
    .category = "reduction",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .infer = infer,
    .gradient = gradient,
    .cost = tutti__cost_elementwise,
    .split = split,
    .reference = reference,
    .samples = samples,
};
