/* lars_update.c: LARS: momentum at a rate that each variable's norm and its gradient's set. */
#include "ops/update/rule.h"

/* Here decay belongs to the gradient: d = g + weight_decay w. */
static void lars_update_numbers(const tutti_attr *attrs, int count, double lr, double step,
                                double *n)
{
    (void)step;
    n[TUTTI_UPDATE_KEEP] = 1;
    n[LARS_RATE] = lr;
    n[LARS_MOMENTUM] = ATTR_FLOAT("momentum");
    n[LARS_NESTEROV] = ATTR_FLAG("nesterov");
    n[LARS_DECAY] = ATTR_FLOAT("weight_decay");
    n[LARS_TRUST] = ATTR_FLOAT("trust");
    n[LARS_EPSILON] = ATTR_FLOAT("epsilon");
}

static double lars_update_measure(const double *n, double g, const double *x)
{
    (void)n, (void)x;
    return g;
}

static void trust(double *n, double variable_norm, double gradient_norm)
{
    if (variable_norm > 0 && gradient_norm > 0)
        n[LARS_RATE] *= n[LARS_TRUST] * variable_norm /
                        (gradient_norm + n[LARS_DECAY] * variable_norm + n[LARS_EPSILON]);
}

static void lars_update_element(const double *n, double g, double *x)
{
    double move = n[LARS_RATE] * (g + n[LARS_DECAY] * x[0]);
    x[1] = n[LARS_MOMENTUM] * x[1] + move;
    x[0] -= n[LARS_NESTEROV] != 0 ? n[LARS_MOMENTUM] * x[1] + move : x[1];
}

const tutti_update_rule tutti_update_rule_lars = {
    .name = "lars",
    .slots = 1,
    .flops = 7,
    .fractions = (const char *const[]){"momentum", NULL},
    .numbers = lars_update_numbers,
    .element = lars_update_element,
    .measure = lars_update_measure,
    .trust = trust,
};

static const tutti_attr_spec attrs[] = {
    {"momentum", TUTTI_ATTR_FLOAT, "0.9"},
    {"nesterov", TUTTI_ATTR_INT, "false"},
    {"trust", TUTTI_ATTR_FLOAT, "0.001"},
    {"epsilon", TUTTI_ATTR_FLOAT, "0"},
    TUTTI_UPDATE_ATTRS,
    {NULL},
};

static const char *const samples[] = {
    "&f32[2,3] &f32[2,3] f32[2,3] f32[]{0.1:0.2} | weight_decay=0.1",
    "&f64[5] &f64[5] f64[5] f32[]{0.1:0.2} bool[]{=1} | nesterov=true trust=0.02",
    "&bf16[4] &bf16[4] bf16[4] f32[]{0.1:0.2}",
    "&f32[7] &f32[7] f32[7] f32[]{0.1:0.2} | nesterov=true weight_decay=0.01 trust=1",
    "&f32[3]{=0,0,0} &f32[3] f32[3] f32[]{0.1:0.2}",
    "&f32[3] &f32[3] f32[3] f32[]{0.1:0.2} bool[]{=0}",
    NULL,
};

const tutti_op tutti_op_lars_update = {
    .struct_size = sizeof(tutti_op),
    .name = "lars_update",
    .version = 1,
    .doc =
        "lars_update(v, m, g, lr[, apply]): r = trust |v| / (|g| + decay |v| + e); m = u m + lr r (g + decay v); v = v - m; y = v",
    .category = "update",
    .min_inputs = 4,
    .max_inputs = 6,
    .outputs = 1,
    .flags = TUTTI_UPDATE_FLAGS,
    .attrs = attrs,
    .infer = tutti__update_infer,
    .cost = tutti__update_cost,
    .reference = tutti__update_reference,
    .samples = samples,
};
