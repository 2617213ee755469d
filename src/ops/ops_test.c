/* ops_test.c: what every operator promises, tested on its own samples. A check returns a status;
 * all failures are shown together, because many operators share one mistake more often than not. */
#include <stdio.h>
#include <string.h>

#include "base/test.h"
#include "ops/reference.h"
#include "ops/sample.h"
#include "tables/op.h"

enum { MAX_SLOTS = 64, MAX_SHOWN = 40 };

static const uint32_t without_samples = TUTTI_OP_STATEFUL | TUTTI_OP_CONTROL | TUTTI_OP_COLLECTIVE |
                                        TUTTI_OP_BLOCKING | TUTTI_OP_HANDLE;

static void note(tutti_text *failures, int *count, const char *op, const char *text)
{
    if (++*count <= MAX_SHOWN)
        tutti__text_add(failures, "\n      %s \"%s\": %s", op, text, tutti_error_message());
}

static void show(tutti_text *failures, int count)
{
    char message[8000];
    snprintf(message, sizeof message, "%s", failures->data == NULL ? "" : failures->data);
    tutti__text_free(failures);
    if (count > 0)
        tutti__test_fail(__FILE__, __LINE__, "%d failures:%s", count, message);
}

/* Calls `check` for every sample of every operator. */
static void each_sample(tutti_status (*check)(const tutti_sample *sample))
{
    tutti_text failures = {0};
    int count = 0;
    for (const tutti_op *const *op = tutti__op_table; *op != NULL; op++)
        for (const char *const *text = (*op)->samples; text != NULL && *text != NULL; text++) {
            tutti_sample *sample = NULL;
            tutti_status status = tutti__sample_parse(*op, *text, 1, &sample);
            if (status == TUTTI_OK)
                status = check(sample);
            if (status != TUTTI_OK)
                note(&failures, &count, (*op)->name, *text);
            tutti__sample_free(sample);
        }
    show(&failures, count);
}

static void release(int count, tutti_tensor **tensors)
{
    for (int i = 0; i < count; i++)
        tutti_tensor_release(tensors[i]);
}

/* Sub-graphs have no text form, so operators on them have no samples. */
static bool takes_graph(const tutti_op *op)
{
    for (const tutti_attr_spec *spec = op->attrs; spec != NULL && spec->name != NULL; spec++)
        if (spec->kind == TUTTI_ATTR_GRAPH)
            return true;
    return false;
}

static tutti_status check_descriptor(const tutti_op *op)
{
    size_t size = strlen(op->name);
    if (op->struct_size != sizeof(tutti_op) || size == 0 || op->version < 1 || op->infer == NULL)
        return tutti_fail(TUTTI_CHECK_FAILED, "needs struct_size, name, version and shape rule");
    if (op->doc == NULL || strncmp(op->doc, op->name, size) != 0 || op->doc[size] != '(' ||
        strchr(op->doc, ':') == NULL || strchr(op->doc, '\n') != NULL)
        return tutti_fail(TUTTI_CHECK_FAILED, "the doc line must read \"%s(inputs): formula\"",
                          op->name);
    if (op->category == NULL)
        return tutti_fail(TUTTI_CHECK_FAILED, "has no category");
    if (op->max_inputs != -1 && op->min_inputs > op->max_inputs)
        return tutti_fail(TUTTI_CHECK_FAILED, "min_inputs is above max_inputs");
    if (!(op->flags & without_samples) && !takes_graph(op) && op->max_inputs != 0 &&
        (op->samples == NULL || op->samples[0] == NULL))
        return tutti_fail(TUTTI_CHECK_FAILED, "has no samples");
    if ((op->flags & TUTTI_OP_ELEMENTWISE) && op->scalar == NULL)
        return tutti_fail(TUTTI_CHECK_FAILED, "is element-wise without an element function");
    if (op->gradient != NULL && (op->flags & TUTTI_OP_NO_GRADIENT))
        return tutti_fail(TUTTI_CHECK_FAILED, "has a gradient and says that it has none");
    return TUTTI_OK;
}

TUTTI_TEST(every_operator_is_documented)
{
    tutti_text failures = {0};
    int count = 0;
    for (const tutti_op *const *op = tutti__op_table; *op != NULL; op++)
        if (check_descriptor(*op) != TUTTI_OK)
            note(&failures, &count, (*op)->name, "");
    show(&failures, count);
}

/* What the shape rule promised, as far as it is known, is what came out. */
static tutti_status keeps_promise(const tutti_type *promised, const tutti_tensor *output, int index)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    const tutti_type *actual = tutti_tensor_type(output);
    bool kept = promised->dtype == actual->dtype && promised->rank == actual->rank;
    for (int i = 0; kept && i < actual->rank; i++)
        kept = promised->dims[i] == TUTTI_ANY || promised->dims[i] == actual->dims[i];
    return kept ? TUTTI_OK
                : tutti_fail(TUTTI_CHECK_FAILED, "output %d is %s, the shape rule says %s", index,
                             tutti_type_text(actual, a), tutti_type_text(promised, b));
}

TUTTI_TEST(every_sample_runs_as_its_shape_rule_says)
{
    each_sample(tutti__run_check);
}

/* The shape rule with those axes of the inputs unknown that `mask` has a bit for. */
static tutti_status check_with_unknown(const tutti_sample *sample, tutti_tensor **outputs,
                                       uint64_t mask)
{
    tutti_type types[MAX_SLOTS], results[MAX_SLOTS] = {0};
    tutti_infer rule = tutti__sample_rule(sample);
    int bit = 0;
    for (int i = 0; i < sample->input_count; i++) {
        types[i] = sample->types[i];
        for (int axis = 0; axis < types[i].rank; axis++, bit++)
            if (!types[i].handle && (mask >> (bit & 63) & 1))
                types[i].dims[axis] = TUTTI_ANY;
    }
    rule.inputs = types;
    rule.outputs = results;
    tutti_status status = sample->op->infer(&rule);
    /* Where a rank hangs on a dimension the rule may ask for that one. */
    if (status != TUTTI_OK && strstr(tutti_error_message(), "known") != NULL)
        return TUTTI_OK;
    TUTTI_TRY(status);
    for (int i = 0; i < sample->output_count; i++)
        TUTTI_TRY(keeps_promise(&results[i], outputs[i], i));
    return TUTTI_OK;
}

static tutti_status check_unknown_dims(const tutti_sample *sample)
{
    tutti_tensor *outputs[MAX_SLOTS] = {0};
    int axes = 0;
    TUTTI_TRY(tutti__sample_run(sample, outputs));
    for (int i = 0; i < sample->input_count; i++)
        axes += sample->types[i].rank;
    tutti_status status = check_with_unknown(sample, outputs, UINT64_MAX);
    for (int bit = 0; status == TUTTI_OK && bit < axes && bit < 64; bit++)
        status = check_with_unknown(sample, outputs, UINT64_C(1) << bit);
    release(sample->output_count, outputs);
    return status;
}

TUTTI_TEST(every_shape_rule_bears_unknown_dimensions)
{
    each_sample(check_unknown_dims);
}

static tutti_status compare_rounded(const tutti_sample *sample, tutti_tensor **actual,
                                    tutti_tensor **expected, tutti_dtype dtype)
{
    for (int i = 0; i < sample->output_count; i++) {
        char what[64];
        tutti_tensor *rounded = NULL;
        snprintf(what, sizeof what, "output %d in %s", i, tutti_dtype_name(dtype));
        TUTTI_TRY(tutti_tensor_cast(expected[i], tutti_tensor_dtype(actual[i]), &rounded));
        tutti_status status = tutti__tensor_near(actual[i], rounded, -1, what);
        tutti_tensor_release(rounded);
        TUTTI_TRY(status);
    }
    return TUTTI_OK;
}

/* The sample in another float type, against the same values in f64. */
static tutti_status check_narrow(const tutti_sample *sample, tutti_dtype dtype)
{
    tutti_sample *narrow = NULL, *wide = NULL;
    tutti_tensor *actual[MAX_SLOTS] = {0}, *expected[MAX_SLOTS] = {0};
    tutti_status status = TUTTI_OK;
    if (tutti__sample_cast(sample, TUTTI_F32, dtype, &narrow) == TUTTI_OK &&
        tutti__sample_cast(narrow, dtype, TUTTI_F64, &wide) == TUTTI_OK) {
        status = tutti__sample_run(narrow, actual);
        if (status == TUTTI_OK)
            status = tutti__sample_run(wide, expected);
        if (status == TUTTI_OK)
            status = compare_rounded(sample, actual, expected, dtype);
    }
    release(sample->output_count, actual);
    release(sample->output_count, expected);
    tutti__sample_free(narrow);
    tutti__sample_free(wide);
    return status;
}

static tutti_status check_float_types(const tutti_sample *sample)
{
    if (sample->op->flags & TUTTI_OP_RANDOM)
        return TUTTI_OK;
    TUTTI_TRY(check_narrow(sample, TUTTI_F32));
    TUTTI_TRY(check_narrow(sample, TUTTI_F16));
    return check_narrow(sample, TUTTI_BF16);
}

TUTTI_TEST(every_reference_kernel_is_right_in_every_float_type)
{
    each_sample(check_float_types);
}

static tutti_status check_gradient(const tutti_sample *sample)
{
    return tutti__gradient_check(sample, 1);
}

TUTTI_TEST(every_gradient_agrees_with_finite_differences)
{
    each_sample(check_gradient);
}

/* Whatever has a gradient has a second one, so the operators that gradients are made of have
 * gradients too. */
static tutti_status check_second_gradient(const tutti_sample *sample)
{
    return tutti__gradient_check(sample, 2);
}

TUTTI_TEST(every_second_gradient_agrees_with_finite_differences)
{
    each_sample(check_second_gradient);
}

static tutti_status check_cost(const tutti_sample *sample)
{
    tutti_cost cost = {-1, -1, -1};
    tutti_infer rule = tutti__sample_rule(sample);
    if (sample->op->cost == NULL)
        return TUTTI_OK;
    sample->op->cost(&rule, &cost);
    if (cost.flops >= 0 && cost.bytes_read >= 0 && cost.bytes_written >= 0)
        return TUTTI_OK;
    return tutti_fail(TUTTI_CHECK_FAILED, "costs %g flops, %g bytes read, %g written", cost.flops,
                      cost.bytes_read, cost.bytes_written);
}

TUTTI_TEST(every_cost_is_a_number)
{
    each_sample(check_cost);
}

static tutti_status check_split(const tutti_sample *sample)
{
    return tutti__split_check(sample, NULL);
}

TUTTI_TEST(every_split_rule_cuts_and_combines)
{
    each_sample(check_split);
}
