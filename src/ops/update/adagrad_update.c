/* adagrad_update.c: Adagrad: rates that fall with the squares seen so far. */
#include <math.h>

#include "ops/update/rule.h"

/* Keras: lr g / sqrt(s + e); torch: lr g / (sqrt(s) + e). */
static void adagrad_update_numbers(const tutti_attr *attrs, int count, double lr, double step,
                                   double *n)
{
    (void)step;
    n[ADAGRAD_RATE] = lr;
    n[ATTR_FLAG("torch_form") ? ADAGRAD_OUTSIDE : ADAGRAD_INSIDE] = ATTR_FLOAT("epsilon");
}

static void adagrad_update_element(const double *n, double g, double *x)
{
    x[1] += g * g;
    x[0] -= n[ADAGRAD_RATE] * g / (sqrt(x[1] + n[ADAGRAD_INSIDE]) + n[ADAGRAD_OUTSIDE]);
}

const tutti_update_rule tutti_update_rule_adagrad = {
    .name = "adagrad",
    .slots = 1,
    .flops = 9,
    .numbers = adagrad_update_numbers,
    .element = adagrad_update_element,
};

static const tutti_attr_spec attrs[] = {
    {"epsilon", TUTTI_ATTR_FLOAT, "1e-7"},
    {"torch_form", TUTTI_ATTR_INT, "false"},
    TUTTI_UPDATE_ATTRS,
    {NULL},
};

static const char *const samples[] = {
    "&f32[2,3] &f32[2,3]{0.1:1} f32[2,3] f32[]{0.1:0.2}",
    "&f64[5] &f64[5]{0.1:1} f64[5] f32[]{0.1:0.2} bool[]{=1} | torch_form=true weight_decay=0.1",
    "&bf16[4] &bf16[4]{0.1:1} bf16[4] f32[]{0.1:0.2}",
    "&f32[3] &f32[3]{0.1:1} f32[3] f32[]{0.1:0.2} bool[]{=0}",
    NULL,
};

const tutti_op tutti_op_adagrad_update = {
    .struct_size = sizeof(tutti_op),
    .name = "adagrad_update",
    .version = 1,
    .doc = "adagrad_update(v, s, g, lr[, apply]): s = s + g^2; v = v - lr g / sqrt(s + e); y = v",
    .category = "update",
    .min_inputs = 4,
    .max_inputs = 6,
    .outputs = 1,
    .flags = TUTTI_UPDATE_FLAGS,
    .attrs = attrs,
    .infer = tutti__update_infer,
    .cost = tutti__update_cost,
    .split = tutti__update_split,
    .reference = tutti__update_reference,
    .samples = samples,
};
