/* random_truncated_normal.c: normal numbers within two standard deviations. */
#include "ops/random/random.h"

static tutti_status random_truncated_normal_reference(const tutti_kernel_call *call)
{
    return tutti__normal_reference(call, tutti__draw_truncated);
}

static const tutti_attr_spec attrs[] = {
    {"dtype", TUTTI_ATTR_INT, "f32"}, {"dims", TUTTI_ATTR_INTS, "[]"},   TUTTI_RANDOM_ATTRS,
    {"mean", TUTTI_ATTR_FLOAT, "0"},  {"stddev", TUTTI_ATTR_FLOAT, "1"}, {0},
};

static const char *const samples[] = {
    "i64[]{=3} | dims=[2,3]",
    "i64[]{=0} | dims=[] mean=4 stddev=0.5 seed=9",
    "i64[]{=1} | dims=[7] dtype=f64",
    "i64[]{=2} i32[3,2] | dtype=f16",
    NULL,
};

extern const tutti_op tutti_op_random_truncated_normal;

tutti_sym tutti_random_truncated_normal_with(tutti_graph *graph, double mean, double stddev,
                                             tutti_type type, const tutti_random_options *options)
{
    tutti_attr given[] = {TUTTI_FLOAT("mean", mean), TUTTI_FLOAT("stddev", stddev)};
    return tutti__random_build_type(graph, &tutti_op_random_truncated_normal, type, options, 2,
                                    given);
}

const tutti_op tutti_op_random_truncated_normal = {
    .struct_size = sizeof(tutti_op),
    .name = "random_truncated_normal",
    .version = 1,
    .doc =
        "random_truncated_normal(counter): y = mean + stddev z, z standard normal drawn until |z| <= 2",
    .category = "random",
    .min_inputs = 1,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_RANDOM | TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = tutti__infer_normal,
    .cost = tutti__cost_random,
    .split = tutti__split_random,
    .reference = random_truncated_normal_reference,
    .samples = samples,
};
