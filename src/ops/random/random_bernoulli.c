/* random_bernoulli.c: 1 with probability p. */
#include "ops/random/random.h"

static tutti_status random_bernoulli_infer(tutti_infer *node)
{
    double p = RULE_FLOAT(node, "p");
    if (!(p >= 0 && p <= 1))
        return RULE_FAIL(node, TUTTI_INVALID, "p is %g, a probability lies in [0, 1]", p);
    return tutti__infer_random(node);
}

/* u < p with u a multiple of 2^-24, whatever the output's type. */
static tutti_status random_bernoulli_reference(const tutti_kernel_call *call)
{
    const tutti_view *out = &call->outputs[0];
    double p = RULE_FLOAT(call, "p");
    tutti_draw draw = tutti__draw_of(call, out);
    int64_t count = tutti_view_count(out);
    for (int64_t i = 0; i < count; i++)
        tutti_view_set_int(out, i,
                           tutti__draw_unit(draw.key, tutti__draw_index(&draw, i), TUTTI_F32) < p);
    return TUTTI_OK;
}

static const tutti_attr_spec attrs[] = {
    {"dtype", TUTTI_ATTR_INT, "f32"},
    {"dims", TUTTI_ATTR_INTS, "[]"},
    TUTTI_RANDOM_ATTRS,
    {"p", TUTTI_ATTR_FLOAT, "0.5"},
    {0},
};

static const char *const samples[] = {
    "i64[]{=3} | dims=[2,3]",
    "i64[]{=0} | dims=[20] dtype=bool p=0.25",
    "i64[]{=1} f32[3,2] | dtype=u8 p=1",
    NULL,
};

extern const tutti_op tutti_op_random_bernoulli;

tutti_sym tutti_random_bernoulli_with(tutti_graph *graph, double p, tutti_type type,
                                      const tutti_random_options *options)
{
    return tutti__random_build_type(graph, &tutti_op_random_bernoulli, type, options, 1,
                                    &TUTTI_FLOAT("p", p));
}

const tutti_op tutti_op_random_bernoulli = {
    .struct_size = sizeof(tutti_op),
    .name = "random_bernoulli",
    .version = 1,
    .doc = "random_bernoulli(counter): y = 1 with probability p, else 0",
    .category = "random",
    .min_inputs = 1,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_RANDOM | TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = random_bernoulli_infer,
    .cost = tutti__cost_random,
    .split = tutti__split_random,
    .reference = random_bernoulli_reference,
    .samples = samples,
};
