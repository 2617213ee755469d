/* gradient_check.c: tests a gradient rule against finite differences.
 *
 * First order: L(x) = sum over outputs k of <w_k, y_k(x)> with drawn weights w; the graph's
 * gradients of L are compared with (L(x + h) - L(x - h)) / 2h for each element. Second order: the
 * same with G(x) = sum over inputs i of <v_i, dL/dx_i(x)> in the place of L. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "graph/autodiff.h"
#include "ops/reference.h"
#include "ops/sample.h"

enum { MAX_SLOTS = 16, MAX_STEPS = 48 };

/* Edges y, weighted, as a function of edges x, in a sample's graph. */
typedef struct tutti_check {
    const tutti_sample *sample;
    int order;
    double step, tolerance;
    int x_count, y_count, feed_count;
    int inputs[MAX_SLOTS]; /* which input each x is */
    tutti_sym xs[MAX_SLOTS], ys[MAX_SLOTS], weights[MAX_SLOTS];
    tutti_tensor *weight_values[MAX_SLOTS];    /* borrowed from the feeds */
    tutti_reference_feed feeds[4 * MAX_SLOTS]; /* inputs first; then weights, owned */
} tutti_check;

static tutti_status add_feed(tutti_check *check, tutti_edge edge, tutti_tensor *value)
{
    if (check->feed_count == (int)TUTTI_COUNT(check->feeds))
        return tutti_fail(TUTTI_TOO_LARGE, "gradient check: too many inputs and outputs");
    check->feeds[check->feed_count++] = (tutti_reference_feed){edge, value};
    return TUTTI_OK;
}

/* The weight of y number k, of the given type: a placeholder fed with drawn values in [0.5, 1.5).
 */
static tutti_status add_weight(tutti_check *check, int k, const tutti_type *type)
{
    tutti_random_key key = {.seed = (uint64_t)check->feed_count + 77};
    tutti_tensor *value;
    tutti_attr attrs[] = {TUTTI_INT("dtype", type->dtype),
                          TUTTI_INTS("dims", type->rank, type->dims)};
    check->weights[k] = (tutti_apply_op)(check->sample->graph, "placeholder", 0, NULL, 2, attrs);
    TUTTI_TRY(tutti_graph_check(check->sample->graph));
    TUTTI_TRY(tutti_tensor_create(type->dtype, type->rank, type->dims, &value));
    for (int64_t i = 0; i < tutti_tensor_count(value); i++)
        tutti_tensor_set(value, i, 0.5 + (double)tutti__random_f32(key, (uint64_t)i));
    check->weight_values[k] = value;
    tutti_status status = add_feed(check, tutti__edge(check->weights[k]), value);
    if (status != TUTTI_OK)
        tutti_tensor_release(value);
    return status;
}

/* Values of edges; the input `moved` takes `value` instead of its own. */
static tutti_status evaluate(const tutti_check *check, int moved, tutti_tensor *value, int count,
                             const tutti_sym *syms, tutti_tensor **ret_values)
{
    tutti_reference_feed feeds[TUTTI_COUNT(check->feeds)];
    tutti_edge fetches[MAX_SLOTS];
    memcpy(feeds, check->feeds, sizeof feeds);
    if (moved >= 0)
        feeds[moved].value = value;
    for (int i = 0; i < count; i++)
        fetches[i] = tutti__edge(syms[i]);
    return tutti__reference_run(check->sample->graph, check->feed_count, feeds, count, fetches,
                                ret_values);
}

/* sum over y of <weight, y> when input `moved` is `value`. */
static tutti_status weighted_sum(const tutti_check *check, int moved, tutti_tensor *value,
                                 double *ret_sum)
{
    tutti_tensor *values[MAX_SLOTS];
    double sum = 0;
    TUTTI_TRY(evaluate(check, moved, value, check->y_count, check->ys, values));
    for (int k = 0; k < check->y_count; k++) {
        for (int64_t i = 0; i < tutti_tensor_count(values[k]); i++)
            sum += tutti_tensor_get(values[k], i) * tutti_tensor_get(check->weight_values[k], i);
        tutti_tensor_release(values[k]);
    }
    *ret_sum = sum;
    return TUTTI_OK;
}

/* (L(x + h e) - L(x - h e)) / 2h for element e of input `input`. */
static tutti_status difference(const tutti_check *check, int input, int64_t element, double *ret)
{
    tutti_tensor *source = check->sample->values[input], *moved;
    double x = tutti_tensor_get(source, element), high, low;
    TUTTI_TRY(tutti_tensor_cast(source, tutti_tensor_dtype(source), &moved));
    tutti_tensor_set(moved, element, x + check->step);
    double above = tutti_tensor_get(moved, element);
    tutti_status status = weighted_sum(check, input, moved, &high);
    tutti_tensor_set(moved, element, x - check->step);
    double width = above - tutti_tensor_get(moved, element);
    if (status == TUTTI_OK)
        status = weighted_sum(check, input, moved, &low);
    tutti_tensor_release(moved);
    if (status == TUTTI_OK)
        *ret = (high - low) / width;
    return status;
}

/* One input: the graph's gradient, or zero when `grad` is NULL, against differences. */
static tutti_status gradient_check_compare(const tutti_check *check, int x, tutti_tensor *grad)
{
    int input = check->inputs[x];
    tutti_tensor *value = check->sample->values[input];
    int64_t count = tutti_tensor_count(value), stride = count / MAX_STEPS + 1;
    char text[TUTTI_TYPE_TEXT];
    if (grad != NULL && !tutti_type_equal(tutti_tensor_type(grad), tutti_tensor_type(value)))
        return tutti_fail(TUTTI_CHECK_FAILED, "gradient of %s \"%s\": order %d, input %d: is %s",
                          check->sample->op->name, check->sample->text, check->order, input,
                          tutti_type_text(tutti_tensor_type(grad), text));
    for (int64_t e = 0; e < count; e += stride) {
        double expected, actual = grad == NULL ? 0 : tutti_tensor_get(grad, e);
        TUTTI_TRY(difference(check, input, e, &expected));
        if (!(fabs(actual - expected) <= check->tolerance * (1 + fabs(expected))))
            return tutti_fail(
                TUTTI_CHECK_FAILED,
                "gradient of %s \"%s\": order %d, input %d, element %lld: the rule gives "
                "%.9g, differences give %.9g",
                check->sample->op->name, check->sample->text, check->order, input, (long long)e,
                actual, expected);
    }
    return TUTTI_OK;
}

static tutti_status check_one(tutti_check *check, int x, tutti_sym grad_sym)
{
    tutti_tensor *grad = NULL;
    if (tutti_sym_ok(grad_sym))
        TUTTI_TRY(evaluate(check, -1, NULL, 1, &grad_sym, &grad));
    tutti_status status = gradient_check_compare(check, x, grad);
    tutti_tensor_release(grad);
    return status;
}

/* Differentiates y, evaluates, compares; then the gradients become y for the next order. */
static tutti_status check_order(tutti_check *check)
{
    tutti_sym grads[MAX_SLOTS];
    TUTTI_TRY(tutti__gradients(check->sample->graph, check->y_count, check->ys, check->weights,
                               check->x_count, check->xs, grads, NULL));
    for (int x = 0; x < check->x_count; x++)
        TUTTI_TRY(check_one(check, x, grads[x]));
    check->y_count = 0;
    for (int x = 0; x < check->x_count; x++) {
        const tutti_type *type = tutti_tensor_type(check->sample->values[check->inputs[x]]);
        if (!tutti_sym_ok(grads[x]))
            continue;
        TUTTI_TRY(add_weight(check, check->y_count, type));
        check->ys[check->y_count++] = grads[x];
    }
    return TUTTI_OK;
}

static tutti_status open_check(tutti_check *check)
{
    const tutti_sample *sample = check->sample;
    tutti_tensor *outputs[MAX_SLOTS] = {0};
    for (int i = 0; i < sample->input_count; i++) {
        TUTTI_TRY(add_feed(check, sample->node->inputs[i], sample->values[i]));
        if (!tutti_dtype_is_float(sample->types[i].dtype))
            continue;
        check->inputs[check->x_count] = i;
        check->xs[check->x_count++] =
            tutti__sym(sample->node->inputs[i].node, sample->node->inputs[i].index);
    }
    TUTTI_TRY(tutti__sample_run(sample, outputs)); /* for the shapes */
    tutti_status status = TUTTI_OK;
    for (int i = 0; i < sample->output_count; i++) {
        const tutti_type *type = tutti_tensor_type(outputs[i]);
        if (status == TUTTI_OK && tutti_dtype_is_float(type->dtype)) {
            status = add_weight(check, check->y_count, type);
            check->ys[check->y_count++] = tutti__sym(sample->node, (uint32_t)i);
        }
        tutti_tensor_release(outputs[i]);
    }
    return status;
}

/* Step and tolerance for the narrowest float among inputs and outputs. */
static void choose_step(tutti_check *check)
{
    static const struct {
        tutti_dtype dtype;
        double step, tolerance;
    } choices[] = {{TUTTI_F64, 1e-5, 2e-6},
                   {TUTTI_F32, 1e-2, 2e-2},
                   {TUTTI_F16, 0.25, 2e-2},
                   {TUTTI_BF16, 0.5, 6e-2}};
    for (size_t c = 0; c < TUTTI_COUNT(choices); c++) {
        bool present = c == 0;
        for (int i = 0; i < check->sample->input_count; i++)
            present = present || check->sample->types[i].dtype == choices[c].dtype;
        for (int i = 0; i < check->sample->output_count; i++)
            present = present || check->sample->node->types[i].dtype == choices[c].dtype;
        check->step = present ? choices[c].step : check->step;
        check->tolerance = present ? choices[c].tolerance : check->tolerance;
    }
}

static tutti_status run_check(const tutti_sample *sample, int orders)
{
    tutti_check check = {.sample = sample};
    choose_step(&check);
    tutti_status status = open_check(&check);
    for (check.order = 1; status == TUTTI_OK && check.order <= orders; check.order++)
        if (check.y_count > 0 && check.x_count > 0)
            status = check_order(&check);
    for (int i = sample->input_count; i < check.feed_count; i++)
        tutti_tensor_release(check.feeds[i].value);
    return status;
}

/* In f64 where the operator takes it: differences in f32 see little. */
tutti_status tutti__gradient_check(const tutti_sample *sample, int orders)
{
    static const tutti_dtype narrow[] = {TUTTI_F32, TUTTI_F16, TUTTI_BF16};
    tutti_sample *wide = NULL;
    if (sample->op->gradient == NULL || sample->input_count > MAX_SLOTS ||
        sample->output_count > MAX_SLOTS || (sample->op->flags & TUTTI_OP_UPDATES))
        return TUTTI_OK;
    TUTTI_TRY(tutti__sample_cast(sample, TUTTI_NO_DTYPE, TUTTI_F64, &wide));
    for (size_t i = 0; i < TUTTI_COUNT(narrow); i++) {
        tutti_sample *wider;
        if (tutti__sample_cast(wide, narrow[i], TUTTI_F64, &wider) != TUTTI_OK)
            continue;
        tutti__sample_free(wide);
        wide = wider;
    }
    tutti_status status = run_check(wide, orders);
    tutti__sample_free(wide);
    return status;
}
