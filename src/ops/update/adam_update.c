/* adam_update.c: Adam in Keras' form or torch's, AMSGrad, and with decoupled decay AdamW. */
#include <math.h>

#include "ops/update/rule.h"

static int slot_count(const tutti_attr *attrs, int count)
{
    return ATTR_FLAG("amsgrad") ? 3 : 2;
}

static void adam_update_numbers(const tutti_attr *attrs, int count, double lr, double step,
                                double *n)
{
    double beta1 = ATTR_FLOAT("beta1"), beta2 = ATTR_FLOAT("beta2");
    double correction1 = 1 - pow(beta1, step), correction2 = 1 - pow(beta2, step);
    bool torch = ATTR_FLAG("torch_form");
    n[ADAM_BETA1] = beta1;
    n[ADAM_REST1] = 1 - beta1;
    n[ADAM_BETA2] = beta2;
    n[ADAM_REST2] = 1 - beta2;
    n[ADAM_EPSILON] = ATTR_FLOAT("epsilon");
    n[ADAM_RATE] = lr / correction1 * (torch ? 1 : sqrt(correction2));
    n[ADAM_INVERSE] = torch ? 1 / correction2 : 1;
    n[ADAM_AMSGRAD] = ATTR_FLAG("amsgrad");
}

/* x: w, m, s and with AMSGrad the largest s so far, which then stands under the root. */
static void adam_update_element(const double *n, double g, double *x)
{
    x[1] = n[ADAM_BETA1] * x[1] + n[ADAM_REST1] * g;
    x[2] = n[ADAM_BETA2] * x[2] + n[ADAM_REST2] * g * g;
    double second = x[2];
    if (n[ADAM_AMSGRAD] != 0)
        second = x[3] = x[3] > x[2] ? x[3] : x[2];
    x[0] -= n[ADAM_RATE] * x[1] / (sqrt(second * n[ADAM_INVERSE]) + n[ADAM_EPSILON]);
}

const tutti_update_rule tutti_update_rule_adam = {
    .name = "adam",
    .slot_count = slot_count,
    .counts_steps = true,
    .flops = 14,
    .fractions = (const char *const[]){"beta1", "beta2", NULL},
    .numbers = adam_update_numbers,
    .element = adam_update_element,
};

static const tutti_attr_spec attrs[] = {
    {"beta1", TUTTI_ATTR_FLOAT, "0.9"},
    {"beta2", TUTTI_ATTR_FLOAT, "0.999"},
    {"epsilon", TUTTI_ATTR_FLOAT, "1e-7"},
    {"amsgrad", TUTTI_ATTR_INT, "false"},
    {"torch_form", TUTTI_ATTR_INT, "false"},
    TUTTI_UPDATE_ATTRS,
    {NULL},
};

static const char *const samples[] = {
    "&f32[2,3] &f32[2,3] &f32[2,3]{0.1:1} f32[2,3] f32[]{0.1:0.2} i64[]{=1}",
    "&f64[5] &f64[5] &f64[5]{0.1:1} f64[5] f32[]{0.1:0.2} i64[]{=7} | torch_form=true epsilon=1e-8",
    "&bf16[4] &bf16[4] &bf16[4]{0.1:1} bf16[4] f32[]{0.1:0.2} i64[]{=100} | beta1=0.5 beta2=0.9",
    "&f32[9] &f32[9] &f32[9]{0.1:1} &f32[9]{0.1:1} f32[9] f32[]{0.1:0.2} i64[]{=2} bool[]{=1} | amsgrad=true weight_decay=0.1",
    "&f32[3] &f32[3] &f32[3]{0.1:1} f32[3] f32[]{0.1:0.2} i64[]{=2} bool[]{=0}",
    "&f32[21] &f32[21] &f32[21]{0.1:1} f32[21] f32[]{0.1:0.2} i64[]{=3} f32[]{0.3:0.6} | scaled=true",
    "&f32[6] &f32[6] &f32[6]{0.1:1} f32[6] f32[]{0.1:0.2} i64[]{=3} | clip=0.5",
    NULL,
};

extern const tutti_op tutti_op_adam_update;

tutti_sym tutti_adam_update_with(tutti_sym variable, tutti_sym m, tutti_sym s, tutti_sym gradient,
                                 tutti_sym lr, tutti_sym step, const tutti_adam_options *options)
{
    double epsilon = options->torch_form ? 1e-8 : 1e-7;
    tutti_sym inputs[] = {
        variable, m, s, tutti__value_of(gradient), tutti__value_of(lr), tutti__value_of(step),
    };
    return TUTTI_NARY(&tutti_op_adam_update, inputs,
                      TUTTI_FLOAT("beta1", options->beta1 != 0 ? options->beta1 : 0.9),
                      TUTTI_FLOAT("beta2", options->beta2 != 0 ? options->beta2 : 0.999),
                      TUTTI_FLOAT("epsilon", options->epsilon != 0 ? options->epsilon : epsilon),
                      TUTTI_INT("torch_form", options->torch_form));
}

const tutti_op tutti_op_adam_update = {
    .struct_size = sizeof(tutti_op),
    .name = "adam_update",
    .version = 1,
    .doc =
        "adam_update(v, m, s, [largest,] g, lr, t[, apply]): m = b1 m + (1-b1) g; s = b2 s + (1-b2) g^2; v = v - lr sqrt(1-b2^t)/(1-b1^t) m/(sqrt(s)+e); y = v",
    .category = "update",
    .min_inputs = 6,
    .max_inputs = 9,
    .outputs = 1,
    .flags = TUTTI_UPDATE_FLAGS,
    .attrs = attrs,
    .infer = tutti__update_infer,
    .cost = tutti__update_cost,
    .split = tutti__update_split,
    .reference = tutti__update_reference,
    .samples = samples,
};
