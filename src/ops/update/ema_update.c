/* ema_update.c: the running mean of a variable. */
#include "ops/update/rule.h"

/* In the first step the mean is the value. */
static void ema_update_numbers(const tutti_attr *attrs, int count, double lr, double step,
                               double *n)
{
    (void)lr;
    n[EMA_DECAY] = step > 1 ? ATTR_FLOAT("decay") : 0;
    n[EMA_REST] = 1 - n[EMA_DECAY];
}

static void ema_update_element(const double *n, double value, double *x)
{
    x[0] = n[EMA_DECAY] * x[0] + n[EMA_REST] * value;
}

const tutti_update_rule tutti_update_rule_ema = {
    .name = "ema",
    .counts_steps = true,
    .no_rate = true,
    .flops = 3,
    .fractions = (const char *const[]){"decay", NULL},
    .numbers = ema_update_numbers,
    .element = ema_update_element,
};

static const tutti_attr_spec attrs[] = {
    {"decay", TUTTI_ATTR_FLOAT, "0.99"},
    {NULL},
};

static const char *const samples[] = {
    "&f32[2,3] f32[2,3] i64[]{=1}",
    "&f64[5] f64[5] i64[]{=2} bool[]{=1} | decay=0.5",
    "&bf16[4] bf16[4] i64[]{=3} | decay=0.9",
    "&f32[7] f32[7] i64[]{=30} bool[]{=0}",
    NULL,
};

const tutti_op tutti_op_ema_update = {
    .struct_size = sizeof(tutti_op),
    .name = "ema_update",
    .version = 1,
    .doc = "ema_update(mean, x, t[, apply]): mean = d mean + (1-d) x, but x where t = 1; y = mean",
    .category = "update",
    .min_inputs = 3,
    .max_inputs = 4,
    .outputs = 1,
    .flags = TUTTI_UPDATE_FLAGS,
    .attrs = attrs,
    .infer = tutti__update_infer,
    .cost = tutti__update_cost,
    .split = tutti__update_split,
    .reference = tutti__update_reference,
    .samples = samples,
};
