/* lion_update.c: Lion: the sign of a mean of gradients. */
#include "ops/update/rule.h"

static void lion_update_numbers(const tutti_attr *attrs, int count, double lr, double step,
                                double *n)
{
    (void)step;
    n[LION_BETA1] = ATTR_FLOAT("beta1");
    n[LION_REST1] = 1 - n[LION_BETA1];
    n[LION_BETA2] = ATTR_FLOAT("beta2");
    n[LION_REST2] = 1 - n[LION_BETA2];
    n[LION_RATE] = lr;
}

/* The sign of 0 is 0, of NaN NaN. */
static void lion_update_element(const double *n, double g, double *x)
{
    double mean = n[LION_BETA1] * x[1] + n[LION_REST1] * g;
    x[0] -= n[LION_RATE] * (mean > 0 ? 1 : mean < 0 ? -1 : mean);
    x[1] = n[LION_BETA2] * x[1] + n[LION_REST2] * g;
}

const tutti_update_rule tutti_update_rule_lion = {
    .name = "lion",
    .slots = 1,
    .flops = 8,
    .fractions = (const char *const[]){"beta1", "beta2", NULL},
    .numbers = lion_update_numbers,
    .element = lion_update_element,
};

static const tutti_attr_spec attrs[] = {
    {"beta1", TUTTI_ATTR_FLOAT, "0.9"},
    {"beta2", TUTTI_ATTR_FLOAT, "0.99"},
    TUTTI_UPDATE_ATTRS,
    {NULL},
};

static const char *const samples[] = {
    "&f32[2,3] &f32[2,3] f32[2,3] f32[]{0.1:0.2}",
    "&f64[5] &f64[5] f64[5] f32[]{0.1:0.2} bool[]{=1} | weight_decay=0.1",
    "&bf16[4] &bf16[4] bf16[4] f32[]{0.1:0.2}",
    "&f32[6]{=1,2,3,4,5,6} &f32[6]{=0,0,0,1,-1,0} f32[6]{=0,1,-1,0,0,0} f32[]{0.1:0.2}",
    "&f32[3] &f32[3] f32[3] f32[]{0.1:0.2} bool[]{=0}",
    NULL,
};

const tutti_op tutti_op_lion_update = {
    .struct_size = sizeof(tutti_op),
    .name = "lion_update",
    .version = 1,
    .doc =
        "lion_update(v, m, g, lr[, apply]): v = v - lr sign(b1 m + (1-b1) g); m = b2 m + (1-b2) g; y = v",
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
