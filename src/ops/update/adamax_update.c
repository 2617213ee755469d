/* adamax_update.c: Adamax: Adam with the largest magnitude for the second moment. */
#include <math.h>

#include "ops/update/rule.h"

/* Keras: u = max(b2 u, |g|), lr m / (u + e); torch: u = max(b2 u, |g| + e), lr m / u. */
static void adamax_update_numbers(const tutti_attr *attrs, int count, double lr, double step,
                                  double *n)
{
    n[ADAMAX_BETA1] = ATTR_FLOAT("beta1");
    n[ADAMAX_REST1] = 1 - n[ADAMAX_BETA1];
    n[ADAMAX_BETA2] = ATTR_FLOAT("beta2");
    n[ATTR_FLAG("torch_form") ? ADAMAX_INSIDE : ADAMAX_OUTSIDE] = ATTR_FLOAT("epsilon");
    n[ADAMAX_RATE] = lr / (1 - pow(n[ADAMAX_BETA1], step));
}

static void adamax_update_element(const double *n, double g, double *x)
{
    double size = fabs(g) + n[ADAMAX_INSIDE], faded = n[ADAMAX_BETA2] * x[2];
    x[1] = n[ADAMAX_BETA1] * x[1] + n[ADAMAX_REST1] * g;
    x[2] = faded > size ? faded : size;
    x[0] -= n[ADAMAX_RATE] * x[1] / (x[2] + n[ADAMAX_OUTSIDE]);
}

const tutti_update_rule tutti_update_rule_adamax = {
    .name = "adamax",
    .slots = 2,
    .counts_steps = true,
    .flops = 10,
    .fractions = (const char *const[]){"beta1", "beta2", NULL},
    .numbers = adamax_update_numbers,
    .element = adamax_update_element,
};

static const tutti_attr_spec attrs[] = {
    {"beta1", TUTTI_ATTR_FLOAT, "0.9"},
    {"beta2", TUTTI_ATTR_FLOAT, "0.999"},
    {"epsilon", TUTTI_ATTR_FLOAT, "1e-7"},
    {"torch_form", TUTTI_ATTR_INT, "false"},
    TUTTI_UPDATE_ATTRS,
    {NULL},
};

static const char *const samples[] = {
    "&f32[2,3] &f32[2,3] &f32[2,3]{0.1:1} f32[2,3] f32[]{0.1:0.2} i64[]{=1}",
    "&f64[5] &f64[5] &f64[5]{0.1:1} f64[5] f32[]{0.1:0.2} i64[]{=9} bool[]{=1} | torch_form=true weight_decay=0.1",
    "&bf16[4] &bf16[4] &bf16[4]{0.1:1} bf16[4] f32[]{0.1:0.2} i64[]{=3}",
    "&f32[3] &f32[3] &f32[3]{0.1:1} f32[3] f32[]{0.1:0.2} i64[]{=3} bool[]{=0}",
    NULL,
};

const tutti_op tutti_op_adamax_update = {
    .struct_size = sizeof(tutti_op),
    .name = "adamax_update",
    .version = 1,
    .doc =
        "adamax_update(v, m, u, g, lr, t[, apply]): m = b1 m + (1-b1) g; u = max(b2 u, |g|); v = v - lr / (1-b1^t) m / (u + e); y = v",
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
