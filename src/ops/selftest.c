/* selftest.c: tutti_op_selftest: an operator's own samples against its own rules. */
#include <string.h>

#include "ops/sample.h"

enum { MAX_SLOTS = 64 };

static tutti_status check_descriptor(const tutti_op *op)
{
    if (op == NULL || op->struct_size != sizeof(tutti_op))
        return tutti_fail(
            TUTTI_INVALID,
            "selftest: struct_size is %u, needs sizeof(tutti_op) = %zu: set it, and build "
            "against the headers of this library",
            op == NULL ? 0U : op->struct_size, sizeof(tutti_op));
    if (op->name == NULL || op->name[0] == '\0' || op->version < 1 || op->infer == NULL)
        return tutti_fail(TUTTI_INVALID,
                          "selftest: an operator needs a name, a version and a shape rule");
    if (op->doc == NULL || op->category == NULL)
        return tutti_fail(TUTTI_INVALID, "selftest of %s: needs a doc line and a category",
                          op->name);
    if (op->samples == NULL || op->samples[0] == NULL)
        return tutti_fail(TUTTI_INVALID,
                          "selftest of %s: has no samples; give some, like \"f32[2,3] | axis=1\"",
                          op->name);
    if ((op->flags & TUTTI_OP_ELEMENTWISE) && op->scalar == NULL)
        return tutti_fail(TUTTI_INVALID,
                          "selftest of %s: is element-wise without an element function", op->name);
    return TUTTI_OK;
}

/* What came out is what the shape rule promised, as far as it knew. */
static tutti_status check_type(const tutti_type *promised, const tutti_tensor *output, int index)
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

/* Inputs are as before; two runs, over memory that starts as noise, give the same bits. */
static tutti_status selftest_compare(const tutti_sample *sample, tutti_tensor **before,
                                     tutti_tensor **first, tutti_tensor **second)
{
    for (int i = 0; i < sample->input_count; i++)
        if (!tutti_tensor_same(before[i], sample->values[i]))
            return tutti_fail(TUTTI_CHECK_FAILED, "the kernel changed input %d", i);
    for (int i = 0; i < sample->output_count; i++) {
        TUTTI_TRY(check_type(&sample->node->types[i], first[i], i));
        if (!tutti_tensor_same(first[i], second[i]))
            return tutti_fail(TUTTI_CHECK_FAILED, "two runs differ in output %d", i);
    }
    return TUTTI_OK;
}

/* On some devices output 0 of an update is the variable's memory, on others it is not: a kernel
 * that writes both is right everywhere. */
static tutti_status check_update(const tutti_sample *sample)
{
    tutti_tensor *inputs[MAX_SLOTS] = {0}, *outputs[MAX_SLOTS] = {0};
    if (!(sample->op->flags & TUTTI_OP_UPDATES) || sample->output_count == 0 ||
        !sample->types[0].handle)
        return TUTTI_OK;
    tutti_status status = TUTTI_OK;
    for (int i = 0; status == TUTTI_OK && i < sample->input_count; i++)
        status = tutti_tensor_cast(sample->values[i], sample->types[i].dtype, &inputs[i]);
    if (status == TUTTI_OK)
        status = tutti__sample_run_on(sample, inputs, sample->attrs, outputs);
    if (status == TUTTI_OK && !tutti_tensor_same(inputs[0], outputs[0]))
        status = tutti_fail(TUTTI_CHECK_FAILED,
                            "the kernel left another value in the variable, inputs[0], than in "
                            "output 0; an update writes the new value into both");
    for (int i = 0; i < sample->input_count; i++)
        tutti_tensor_release(inputs[i]);
    for (int i = 0; i < sample->output_count; i++)
        tutti_tensor_release(outputs[i]);
    return status;
}

tutti_status tutti__run_check(const tutti_sample *sample)
{
    tutti_tensor *first[MAX_SLOTS] = {0}, *second[MAX_SLOTS] = {0}, *before[MAX_SLOTS] = {0};
    if (sample->input_count > MAX_SLOTS || sample->output_count > MAX_SLOTS)
        return tutti_fail(TUTTI_TOO_LARGE, "more than %d inputs or outputs", MAX_SLOTS);
    tutti_status status = TUTTI_OK;
    for (int i = 0; status == TUTTI_OK && i < sample->input_count; i++)
        status = tutti_tensor_cast(sample->values[i], sample->types[i].dtype, &before[i]);
    if (status == TUTTI_OK)
        status = tutti__sample_run(sample, first);
    if (status == TUTTI_OK)
        status = tutti__sample_run(sample, second);
    if (status == TUTTI_OK)
        status = selftest_compare(sample, before, first, second);
    if (status == TUTTI_OK)
        status = check_update(sample);
    for (int i = 0; i < sample->input_count; i++)
        tutti_tensor_release(before[i]);
    for (int i = 0; i < sample->output_count; i++) {
        tutti_tensor_release(first[i]);
        tutti_tensor_release(second[i]);
    }
    return status;
}

static tutti_status check_sample(const tutti_op *op, const char *text)
{
    tutti_sample *sample;
    TUTTI_TRY(tutti__sample_parse(op, text, 1, &sample));
    tutti_status status = tutti__run_check(sample);
    if (status == TUTTI_OK)
        status = tutti__gradient_check(sample, 1);
    if (status == TUTTI_OK && !(op->flags & TUTTI_OP_RANDOM))
        status = tutti__split_check(sample, NULL);
    tutti__sample_free(sample);
    return status;
}

tutti_status tutti_op_selftest(const tutti_op *op)
{
    TUTTI_TRY(check_descriptor(op));
    for (const char *const *text = op->samples; *text != NULL; text++) {
        tutti_status status = check_sample(op, *text);
        if (status != TUTTI_OK)
            return tutti__error_prefix(status, "selftest of %s, sample \"%s\"", op->name, *text);
    }
    return TUTTI_OK;
}
