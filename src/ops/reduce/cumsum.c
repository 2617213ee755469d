/* cumsum.c: the running sum along an axis. */
#include "ops/reduce/reduce.h"

static tutti_status cumsum_infer(tutti_infer *node)
{
    int axis;
    TUTTI_TRY(tutti__shape_numbers(node, 0));
    TUTTI_TRY(tutti__rule_axis(node, RULE_INT(node, "axis"), node->inputs[0].rank, &axis));
    return tutti_infer_same(node);
}

/* x[i] is in every sum from i on: the running sum of dy from the other end. */
static tutti_status cumsum_gradient(tutti_gradient_call *node)
{
    node->input_grads[0] = tutti_cumsum(node->output_grads[0], (int)RULE_INT(node, "axis"),
                                        .exclusive = RULE_INT(node, "exclusive") != 0,
                                        .reverse = RULE_INT(node, "reverse") == 0);
    return TUTTI_OK;
}

static double cumsum_step(double so_far, double x)
{
    return so_far + x;
}

static int64_t cumsum_step_int(int64_t so_far, int64_t x)
{
    return (int64_t)((uint64_t)so_far + (uint64_t)x);
}

static tutti_status cumsum_reference(const tutti_kernel_call *call)
{
    return tutti__reduce_running(
        call, &(tutti_reduce_fold){
                  .start = 0, .step = cumsum_step, .start_int = 0, .step_int = cumsum_step_int});
}

extern const tutti_op tutti_op_cumsum;
tutti_sym tutti_cumsum_with(tutti_sym x, int axis, const tutti_cumsum_options *options)
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
    .infer = cumsum_infer,
    .gradient = cumsum_gradient,
    .cost = tutti__cost_elementwise,
    .split = tutti__running_split,
    .reference = cumsum_reference,
    .samples = samples,
};
