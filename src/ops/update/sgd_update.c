/* sgd_update.c: gradient descent, with momentum or without. */
#include "ops/update/rule.h"

static int slot_count(const tutti_attr *attrs, int count)
{
    return ATTR_FLOAT("momentum") != 0;
}

/* Keras' momentum is m = u m - lr g, w = w + m; torch's m = u m + g, w = w - lr m: they differ when
 * the rate changes. Nesterov: w = w + u m - lr g, and w = w - lr (u m + g). */
static void sgd_update_numbers(const tutti_attr *attrs, int count, double lr, double step,
                               double *n)
{
    double inner = ATTR_FLAG("torch_form") ? 1 : -lr;
    bool ahead = ATTR_FLAG("nesterov");
    (void)step;
    n[SGD_RATE] = lr;
    n[SGD_MOMENTUM] = ATTR_FLOAT("momentum");
    n[SGD_INNER] = inner;
    n[SGD_OUTER] = ATTR_FLAG("torch_form") ? -lr : 1;
    n[SGD_OF_SLOT] = ahead ? n[SGD_MOMENTUM] : 1;
    n[SGD_OF_GRADIENT] = ahead ? inner : 0;
}

static void sgd_update_element(const double *n, double g, double *x)
{
    if (n[SGD_MOMENTUM] == 0) {
        x[0] -= n[SGD_RATE] * g;
        return;
    }
    x[1] = n[SGD_MOMENTUM] * x[1] + n[SGD_INNER] * g;
    x[0] += n[SGD_OUTER] * (n[SGD_OF_SLOT] * x[1] + n[SGD_OF_GRADIENT] * g);
}

const tutti_update_rule tutti_update_rule_sgd = {
    .name = "sgd",
    .slot_count = slot_count,
    .flops = 6,
    .fractions = (const char *const[]){"momentum", NULL},
    .numbers = sgd_update_numbers,
    .element = sgd_update_element,
};

static const tutti_attr_spec attrs[] = {
    {"momentum", TUTTI_ATTR_FLOAT, "0"},
    {"nesterov", TUTTI_ATTR_INT, "false"},
    {"torch_form", TUTTI_ATTR_INT, "false"},
    TUTTI_UPDATE_ATTRS,
    {NULL},
};

static const char *const samples[] = {
    "&f32[2,3] f32[2,3] f32[]{0.1:0.2}",
    "&f64[5] f64[5] f32[]{0.1:0.2}",
    "&bf16[4] bf16[4] f32[]{0.1:0.2} | weight_decay=0.5",
    "&f32[] f32[] f32[]{0.1:0.2}",
    "&f32[7] &f32[7] f32[7] f32[]{0.1:0.2} | momentum=0.9",
    "&f32[2,5] &f32[2,5] f32[2,5] f32[]{0.1:0.2} bool[]{=1} | momentum=0.9 nesterov=true",
    "&f64[4] &f64[4] f64[4] f32[]{0.1:0.2} | momentum=0.5 nesterov=true torch_form=true",
    "&f32[4] f32[4] f32[]{0.1:0.2} bool[]{=0}",
    "&f32[37] f32[37] f32[]{0.1:0.2} f32[]{0.3:0.6} bool[]{=1} | scaled=true clip=0.25",
    NULL,
};

extern const tutti_op tutti_op_sgd_update;

tutti_sym(tutti_sgd_update)(tutti_sym variable, tutti_sym gradient, tutti_sym lr)
{
    tutti_sym inputs[] = {variable, tutti__value_of(gradient), tutti__value_of(lr)};
    return tutti__nary(&tutti_op_sgd_update, 3, inputs, 0, NULL);
}

const tutti_op tutti_op_sgd_update = {
    .struct_size = sizeof(tutti_op),
    .name = "sgd_update",
    .version = 1,
    .doc =
        "sgd_update(v, [m,] g, lr[, apply]; momentum u): v = v - lr g; with momentum m = u m - lr g, v = v + m; y = v",
    .category = "update",
    .min_inputs = 3,
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
