/* adadelta_update.c: Adadelta: moves in proportion to the moves before. */
#include <math.h>

#include "ops/update/rule.h"

static void adadelta_update_numbers(const tutti_attr *attrs, int count, double lr, double step,
                                    double *n)
{
    (void)step;
    n[ADADELTA_RATE] = lr;
    n[ADADELTA_RHO] = ATTR_FLOAT("rho");
    n[ADADELTA_REST] = 1 - n[ADADELTA_RHO];
    n[ADADELTA_EPSILON] = ATTR_FLOAT("epsilon");
}

/* x: w, mean square of gradients, mean square of moves. */
static void adadelta_update_element(const double *n, double g, double *x)
{
    x[1] = n[ADADELTA_RHO] * x[1] + n[ADADELTA_REST] * g * g;
    double move = g * sqrt((x[2] + n[ADADELTA_EPSILON]) / (x[1] + n[ADADELTA_EPSILON]));
    x[2] = n[ADADELTA_RHO] * x[2] + n[ADADELTA_REST] * move * move;
    x[0] -= n[ADADELTA_RATE] * move;
}

const tutti_update_rule tutti_update_rule_adadelta = {
    .name = "adadelta",
    .slots = 2,
    .flops = 15,
    .fractions = (const char *const[]){"rho", NULL},
    .numbers = adadelta_update_numbers,
    .element = adadelta_update_element,
};

static const tutti_attr_spec attrs[] = {
    {"rho", TUTTI_ATTR_FLOAT, "0.95"},
    {"epsilon", TUTTI_ATTR_FLOAT, "1e-7"},
    TUTTI_UPDATE_ATTRS,
    {NULL},
};

static const char *const samples[] = {
    "&f32[2,3] &f32[2,3]{0.1:1} &f32[2,3]{0.1:1} f32[2,3] f32[]{0.1:0.2}",
    "&f64[5] &f64[5]{0.1:1} &f64[5]{0.1:1} f64[5] f32[]{0.1:0.2} bool[]{=1} | rho=0.9 weight_decay=0.1",
    "&bf16[4] &bf16[4]{0.1:1} &bf16[4]{0.1:1} bf16[4] f32[]{0.1:0.2}",
    "&f32[3] &f32[3]{0.1:1} &f32[3]{0.1:1} f32[3] f32[]{0.1:0.2} bool[]{=0}",
    NULL,
};

const tutti_op tutti_op_adadelta_update = {
    .struct_size = sizeof(tutti_op),
    .name = "adadelta_update",
    .version = 1,
    .doc =
        "adadelta_update(v, s, d, g, lr[, apply]): s = r s + (1-r) g^2; x = g sqrt(d + e) / sqrt(s + e); d = r d + (1-r) x^2; v = v - lr x; y = v",
    .category = "update",
    .min_inputs = 5,
    .max_inputs = 7,
    .outputs = 1,
    .flags = TUTTI_UPDATE_FLAGS,
    .attrs = attrs,
    .infer = tutti__update_infer,
    .cost = tutti__update_cost,
    .split = tutti__update_split,
    .reference = tutti__update_reference,
    .samples = samples,
};
