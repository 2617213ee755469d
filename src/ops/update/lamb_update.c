/* lamb_update.c: LAMB: Adam whose step is as long as the variable says. */
#include <math.h>

#include "ops/update/rule.h"

static void lamb_update_numbers(const tutti_attr *attrs, int count, double lr, double step,
                                double *n)
{
    n[LAMB_BETA1] = ATTR_FLOAT("beta1");
    n[LAMB_REST1] = 1 - n[LAMB_BETA1];
    n[LAMB_BETA2] = ATTR_FLOAT("beta2");
    n[LAMB_REST2] = 1 - n[LAMB_BETA2];
    n[LAMB_EPSILON] = ATTR_FLOAT("epsilon");
    n[LAMB_RATE] = lr;
    n[LAMB_INVERSE1] = 1 / (1 - pow(n[LAMB_BETA1], step));
    n[LAMB_INVERSE2] = 1 / (1 - pow(n[LAMB_BETA2], step));
}

/* The direction from the new moments. */
static double direction(const double *n, double m, double s)
{
    return m * n[LAMB_INVERSE1] / (sqrt(s * n[LAMB_INVERSE2]) + n[LAMB_EPSILON]);
}

static double lamb_update_measure(const double *n, double g, const double *x)
{
    return direction(n, n[LAMB_BETA1] * x[1] + n[LAMB_REST1] * g,
                     n[LAMB_BETA2] * x[2] + n[LAMB_REST2] * g * g);
}

static void trust(double *n, double variable_norm, double direction_norm)
{
    if (variable_norm > 0 && direction_norm > 0)
        n[LAMB_RATE] *= variable_norm / direction_norm;
}

static void lamb_update_element(const double *n, double g, double *x)
{
    x[1] = n[LAMB_BETA1] * x[1] + n[LAMB_REST1] * g;
    x[2] = n[LAMB_BETA2] * x[2] + n[LAMB_REST2] * g * g;
    x[0] -= n[LAMB_RATE] * direction(n, x[1], x[2]);
}

const tutti_update_rule tutti_update_rule_lamb = {
    .name = "lamb",
    .slots = 2,
    .counts_steps = true,
    .flops = 14,
    .fractions = (const char *const[]){"beta1", "beta2", NULL},
    .numbers = lamb_update_numbers,
    .element = lamb_update_element,
    .measure = lamb_update_measure,
    .trust = trust,
};

static const tutti_attr_spec attrs[] = {
    {"beta1", TUTTI_ATTR_FLOAT, "0.9"},
    {"beta2", TUTTI_ATTR_FLOAT, "0.999"},
    {"epsilon", TUTTI_ATTR_FLOAT, "1e-7"},
    TUTTI_UPDATE_ATTRS,
    {NULL},
};

static const char *const samples[] = {
    "&f32[2,3] &f32[2,3] &f32[2,3]{0.1:1} f32[2,3] f32[]{0.1:0.2} i64[]{=1}",
    "&f64[5] &f64[5] &f64[5]{0.1:1} f64[5] f32[]{0.1:0.2} i64[]{=9} bool[]{=1} | weight_decay=0.1",
    "&bf16[4] &bf16[4] &bf16[4]{0.1:1} bf16[4] f32[]{0.1:0.2} i64[]{=3}",
    "&f32[3]{=0,0,0} &f32[3] &f32[3]{0.1:1} f32[3] f32[]{0.1:0.2} i64[]{=3}",
    "&f32[3] &f32[3] &f32[3]{0.1:1} f32[3] f32[]{0.1:0.2} i64[]{=3} bool[]{=0}",
    "&f32[6] &f32[6] &f32[6]{0.1:1} f32[6] f32[]{0.1:0.2} i64[]{=3} f32[]{0.3:0.6} | scaled=true clip=0.2",
    NULL,
};

const tutti_op tutti_op_lamb_update = {
    .struct_size = sizeof(tutti_op),
    .name = "lamb_update",
    .version = 1,
    .doc =
        "lamb_update(v, m, s, g, lr, t[, apply]): m, s as adam; u = m / (1-b1^t) / (sqrt(s / (1-b2^t)) + e); v = v - lr |v| / |u| u; y = v",
    .category = "update",
    .min_inputs = 6,
    .max_inputs = 8,
    .outputs = 1,
    .flags = TUTTI_UPDATE_FLAGS,
    .attrs = attrs,
    .infer = tutti__update_infer,
    .cost = tutti__update_cost,
    .reference = tutti__update_reference,
    .samples = samples,
};
