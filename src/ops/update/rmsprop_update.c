/* rmsprop_update.c: RMSprop, centered or not, with momentum or without. */
#include <math.h>

#include "ops/update/rule.h"

/* Slots: mean square; where centered the mean; where there is momentum the momentum. */
static int slot_count(const tutti_attr *attrs, int count)
{
    return 1 + ATTR_FLAG("centered") + (ATTR_FLOAT("momentum") != 0);
}

/* Keras: b = u b + lr g / sqrt(s + e), w = w - b; torch: b = u b + g / (sqrt(s) + e), w = w - lr b.
 */
static void rmsprop_update_numbers(const tutti_attr *attrs, int count, double lr, double step,
                                   double *n)
{
    bool torch = ATTR_FLAG("torch_form");
    (void)step;
    n[RMSPROP_RHO] = ATTR_FLOAT("rho");
    n[RMSPROP_REST] = 1 - n[RMSPROP_RHO];
    n[torch ? RMSPROP_OUTSIDE : RMSPROP_INSIDE] = ATTR_FLOAT("epsilon");
    n[RMSPROP_MOMENTUM] = ATTR_FLOAT("momentum");
    n[RMSPROP_CENTERED] = ATTR_FLAG("centered");
    n[RMSPROP_INNER] = torch ? 1 : lr;
    n[RMSPROP_OUTER] = torch ? lr : 1;
}

static void rmsprop_update_element(const double *n, double g, double *x)
{
    bool centered = n[RMSPROP_CENTERED] != 0;
    double spread = x[1] = n[RMSPROP_RHO] * x[1] + n[RMSPROP_REST] * g * g;
    if (centered) {
        x[2] = n[RMSPROP_RHO] * x[2] + n[RMSPROP_REST] * g;
        spread -= x[2] * x[2];
        spread = spread < 0 ? 0 : spread; /* by rounding */
    }
    double move = n[RMSPROP_INNER] * g / (sqrt(spread + n[RMSPROP_INSIDE]) + n[RMSPROP_OUTSIDE]);
    if (n[RMSPROP_MOMENTUM] != 0) {
        double *momentum = &x[centered ? 3 : 2];
        move = *momentum = n[RMSPROP_MOMENTUM] * *momentum + move;
    }
    x[0] -= n[RMSPROP_OUTER] * move;
}

const tutti_update_rule tutti_update_rule_rmsprop = {
    .name = "rmsprop",
    .slot_count = slot_count,
    .flops = 14,
    .fractions = (const char *const[]){"rho", "momentum", NULL},
    .numbers = rmsprop_update_numbers,
    .element = rmsprop_update_element,
};

static const tutti_attr_spec attrs[] = {
    {"rho", TUTTI_ATTR_FLOAT, "0.9"},
    {"epsilon", TUTTI_ATTR_FLOAT, "1e-7"},
    {"momentum", TUTTI_ATTR_FLOAT, "0"},
    {"centered", TUTTI_ATTR_INT, "false"},
    {"torch_form", TUTTI_ATTR_INT, "false"},
    TUTTI_UPDATE_ATTRS,
    {NULL},
};

static const char *const samples[] = {
    "&f32[2,3] &f32[2,3]{0.1:1} f32[2,3] f32[]{0.1:0.2}",
    "&f64[5] &f64[5]{0.5:1} &f64[5]{0.1:0.5} f64[5] f32[]{0.1:0.2} bool[]{=1} | centered=true weight_decay=0.1",
    "&f32[9] &f32[9]{0.1:1} &f32[9] f32[9] f32[]{0.1:0.2} | momentum=0.9",
    "&f32[6] &f32[6]{0.5:1} &f32[6]{0.1:0.5} &f32[6] f32[6] f32[]{0.1:0.2} | centered=true momentum=0.5 torch_form=true",
    "&bf16[4] &bf16[4]{0.1:1} bf16[4] f32[]{0.1:0.2}",
    "&f32[3] &f32[3]{0.1:1} f32[3] f32[]{0.1:0.2} bool[]{=0}",
    NULL,
};

const tutti_op tutti_op_rmsprop_update = {
    .struct_size = sizeof(tutti_op),
    .name = "rmsprop_update",
    .version = 1,
    .doc =
        "rmsprop_update(v, s, [mean, momentum,] g, lr[, apply]): s = r s + (1-r) g^2; v = v - lr g / sqrt(s + e); y = v",
    .category = "update",
    .min_inputs = 4,
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
