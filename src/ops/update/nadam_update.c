/* nadam_update.c: Nadam: Adam that looks ahead along its momentum. */
#include <math.h>

#include "ops/update/rule.h"

/* u(t) = b1 (1 - 0.5 0.96^(t d)): Keras has d = 1, torch 0.004. U(t) = u(1) ... u(t), which is
 * nothing beside 1 soon. */
static double product(double beta1, double decay, double steps)
{
    double all = 1, power = 1, factor = pow(0.96, decay);
    for (double t = 1; t <= steps && all > 1e-18; t++) {
        power *= factor;
        all *= beta1 * (1 - 0.5 * power);
    }
    return all;
}

static void nadam_update_numbers(const tutti_attr *attrs, int count, double lr, double step,
                                 double *n)
{
    double beta1 = ATTR_FLOAT("beta1"), beta2 = ATTR_FLOAT("beta2");
    double decay = ATTR_FLOAT("momentum_decay");
    double now = beta1 * (1 - 0.5 * pow(0.96, step * decay));
    double next = beta1 * (1 - 0.5 * pow(0.96, (step + 1) * decay));
    double all = product(beta1, decay, step);
    n[NADAM_BETA1] = beta1;
    n[NADAM_REST1] = 1 - beta1;
    n[NADAM_BETA2] = beta2;
    n[NADAM_REST2] = 1 - beta2;
    n[NADAM_EPSILON] = ATTR_FLOAT("epsilon");
    n[NADAM_OF_MEAN] = lr * next / (1 - all * next);
    n[NADAM_OF_GRADIENT] = lr * (1 - now) / (1 - all);
    n[NADAM_INVERSE] = 1 / (1 - pow(beta2, step));
}

static void nadam_update_element(const double *n, double g, double *x)
{
    x[1] = n[NADAM_BETA1] * x[1] + n[NADAM_REST1] * g;
    x[2] = n[NADAM_BETA2] * x[2] + n[NADAM_REST2] * g * g;
    x[0] -= (n[NADAM_OF_MEAN] * x[1] + n[NADAM_OF_GRADIENT] * g) /
            (sqrt(x[2] * n[NADAM_INVERSE]) + n[NADAM_EPSILON]);
}

const tutti_update_rule tutti_update_rule_nadam = {
    .name = "nadam",
    .slots = 2,
    .counts_steps = true,
    .flops = 16,
    .fractions = (const char *const[]){"beta1", "beta2", NULL},
    .numbers = nadam_update_numbers,
    .element = nadam_update_element,
};

static const tutti_attr_spec attrs[] = {
    {"beta1", TUTTI_ATTR_FLOAT, "0.9"},
    {"beta2", TUTTI_ATTR_FLOAT, "0.999"},
    {"epsilon", TUTTI_ATTR_FLOAT, "1e-7"},
    {"momentum_decay", TUTTI_ATTR_FLOAT, "1"},
    TUTTI_UPDATE_ATTRS,
    {NULL},
};

static const char *const samples[] = {
    "&f32[2,3] &f32[2,3] &f32[2,3]{0.1:1} f32[2,3] f32[]{0.1:0.2} i64[]{=1}",
    "&f64[5] &f64[5] &f64[5]{0.1:1} f64[5] f32[]{0.1:0.2} i64[]{=9} bool[]{=1} | momentum_decay=0.004 weight_decay=0.1",
    "&bf16[4] &bf16[4] &bf16[4]{0.1:1} bf16[4] f32[]{0.1:0.2} i64[]{=100000}",
    "&f32[3] &f32[3] &f32[3]{0.1:1} f32[3] f32[]{0.1:0.2} i64[]{=3} bool[]{=0}",
    NULL,
};

const tutti_op tutti_op_nadam_update = {
    .struct_size = sizeof(tutti_op),
    .name = "nadam_update",
    .version = 1,
    .doc =
        "nadam_update(v, m, s, g, lr, t[, apply]): m, s as adam; v = v - lr (u' m / (1-U u') + (1-u) g / (1-U)) / (sqrt(s / (1-b2^t)) + e), u = b1 (1 - 0.96^(t d) / 2), u' = u at t + 1, U = product of u; y = v",
    .category = "update",
    .min_inputs = 6,
    .max_inputs = 8,
    .outputs = 1,
    .flags = TUTTI_UPDATE_FLAGS,
    .attrs = attrs,
    .infer = tutti__update_infer,
    .cost = tutti__update_cost,
    .split = tutti__update_split,
    .reference = tutti__update_reference,
    .samples = samples,
};
