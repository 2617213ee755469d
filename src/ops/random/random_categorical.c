/* random_categorical.c: classes drawn by their logits. */
#include "ops/random/random.h"

/* counter, logits [batch, classes] -> i64 [batch, n] */
static tutti_status random_categorical_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *logits = &node->inputs[1];
    int64_t n = RULE_INT(node, "n");
    TUTTI_TRY(tutti__need_counter(node));
    if (!tutti_dtype_is_float(logits->dtype) || logits->rank != 2)
        return RULE_FAIL(node, TUTTI_INVALID, "logits are %s, need floats [batch,classes]",
                         tutti_type_text(logits, text));
    if (n < 0)
        return RULE_FAIL(node, TUTTI_INVALID, "n is %lld, the number of draws is not negative",
                         (long long)n);
    tutti_type type = tutti_type_make(TUTTI_I64, 2, (int64_t[]){logits->dims[0], n});
    TUTTI_TRY(tutti__need_piece(node, &type));
    node->outputs[0] = type;
    return TUTTI_OK;
}

static int random_categorical_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    if (capacity > 0)
        ret[0] = (tutti_split){.inputs = {TUTTI_WHOLE, 0}, .outputs = {0}};
    return 1;
}

/* The largest logit of a row, and the sum of exp(logit - largest). */
static tutti_status row_total(const tutti_kernel_call *call, int64_t row, int64_t classes,
                              double *ret_largest, double *ret_total)
{
    const tutti_view *logits = &call->inputs[1];
    double largest = -HUGE_VAL, total = 0;
    for (int64_t c = 0; c < classes; c++) {
        double x = tutti_view_get(logits, row * classes + c);
        if (isnan(x) || x == HUGE_VAL)
            return RULE_FAIL(call, TUTTI_OUT_OF_RANGE, "logit [%lld,%lld] is %g", (long long)row,
                             (long long)c, isnan(x) ? (double)NAN : x);
        largest = x > largest ? x : largest;
    }
    if (largest == -HUGE_VAL)
        return RULE_FAIL(call, TUTTI_OUT_OF_RANGE,
                         "row %lld of the logits has no class with a probability above 0",
                         (long long)row);
    for (int64_t c = 0; c < classes; c++)
        total += exp(tutti_view_get(logits, row * classes + c) - largest);
    *ret_largest = largest;
    *ret_total = total;
    return TUTTI_OK;
}

/* The first class whose running sum exceeds u * total; one of probability 0 never does. */
static int64_t pick(const tutti_view *logits, int64_t row, int64_t classes, double largest,
                    double target)
{
    int64_t last = 0;
    double sum = 0;
    for (int64_t c = 0; c < classes; c++) {
        double weight = exp(tutti_view_get(logits, row * classes + c) - largest);
        sum += weight;
        if (weight > 0)
            last = c;
        if (sum > target)
            return c;
    }
    return last;
}

static tutti_status random_categorical_reference(const tutti_kernel_call *call)
{
    const tutti_view *logits = &call->inputs[1], *out = &call->outputs[0];
    int64_t batch = logits->dims[0], classes = logits->dims[1], n = out->dims[1];
    tutti_draw draw = tutti__draw_of(call, out);
    for (int64_t row = 0; row < batch && n > 0; row++) {
        double largest = 0, total = 0;
        TUTTI_TRY(row_total(call, row, classes, &largest, &total));
        for (int64_t i = row * n; i < (row + 1) * n; i++) {
            double unit = tutti__draw_unit(draw.key, tutti__draw_index(&draw, i), TUTTI_F64);
            tutti_view_set_int(out, i, pick(logits, row, classes, largest, unit * total));
        }
    }
    return TUTTI_OK;
}

static const tutti_attr_spec attrs[] = {
    TUTTI_RANDOM_ATTRS,
    {"n", TUTTI_ATTR_INT, "1"},
    {0},
};

static const char *const samples[] = {
    "i64[]{=3} f32[2,4]",
    "i64[]{=0} f64[3,2] | n=5 seed=4",
    "i64[]{=0} bf16[0,2] | n=2",
    NULL,
};

extern const tutti_op tutti_op_random_categorical;

tutti_sym tutti_random_categorical_with(tutti_sym logits, int64_t n,
                                        const tutti_random_options *options)
{
    if (!tutti_sym_ok(logits))
        return tutti__poison_of("random_categorical", 1, &logits);
    return tutti__random_build(logits.node->graph, &tutti_op_random_categorical, options, 1,
                               &logits, 1, &TUTTI_INT("n", n));
}

const tutti_op tutti_op_random_categorical = {
    .struct_size = sizeof(tutti_op),
    .name = "random_categorical",
    .version = 1,
    .doc = "random_categorical(counter, logits): y[b,i] = c with probability softmax(logits[b])[c]",
    .category = "random",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_RANDOM | TUTTI_OP_FALLIBLE | TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = random_categorical_infer,
    .cost = tutti__cost_random,
    .split = random_categorical_split,
    .reference = random_categorical_reference,
    .samples = samples,
};
