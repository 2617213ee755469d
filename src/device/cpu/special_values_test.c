/* special_values_test.c: zeros with their signs, infinities, NaN and the ends of the range: of
 * every element-wise operator of one float the CPU's kernels give results of the reference's class
 * and sign, in runs, which take numbers below the normal ones for 0. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/test.h"
#include "device/cpu/kernel_check.h"
#include "ops/sample.h"
#include "program/kernel.h"
#include "tutti/session.h"

/* More elements than a vector has, so that a rest is left over too. */
enum { SPECIAL = 15, COUNT = 37 };

typedef struct float_type {
    const char *name;
    double least, normal, most; /* the least number, the least normal one, the largest one */
} float_type;

static const float_type types[] = {
    {"f32", 0x1p-149, FLT_MIN, FLT_MAX},
    {"f64", 0x1p-1074, DBL_MIN, DBL_MAX},
    {"f16", 0x1p-24, 0x1p-14, 65504},
    {"bf16", 0x1p-133, 0x1p-126, 0x1.fep127},
};

/* What stands behind the bar of a sample, or "". */
static const char *attributes(const char *text)
{
    const char *bar = strchr(text, '|');
    return bar ? bar : "";
}

/* With the attributes of the sample `text`; NULL where the operator takes no such floats. */
static tutti_sample *make_sample(const tutti_op *op, const float_type *t, const char *text)
{
    const double special[SPECIAL] = {0.0,     -0.0,     INFINITY,   -INFINITY, NAN,
                                     1,       -1,       t->least,   -t->least, t->normal,
                                     t->most, -t->most, -t->normal, 0.5,       -0.5};
    char line[240];
    tutti_sample *sample;
    snprintf(line, sizeof line, "%s[%d]{=0} %s", t->name, COUNT, attributes(text));
    if (tutti__sample_parse(op, line, 1, &sample) != TUTTI_OK)
        return NULL;
    for (int i = 0; i < COUNT; i++)
        tutti_tensor_set(sample->values[0], i, special[i % SPECIAL]);
    return sample;
}

static tutti_tensor *run(const tutti_sample *sample)
{
    tutti_session *session;
    tutti_tensor *value;
    tutti_feed feeds[2];
    int count = sample->node->input_count;
    for (int i = 0; i < count; i++)
        feeds[i] = (tutti_feed){tutti__sym(sample->node->inputs[i].node, 0), sample->values[i]};
    CHECK_OK(tutti_session_open(&session, sample->graph, .device = "cpu:0"));
    CHECK_OK(tutti_run(session, .feed = {count, feeds},
                       .fetch = TUTTI_FETCH({tutti__sym(sample->node, 0), &value})));
    tutti_session_close(session);
    return value;
}

/* 0 with what may be taken for it, other numbers, infinity, NaN. Of x + x/8 the second term may be
 * taken for 0 where x is not. */
static int class_of(double x, const float_type *t)
{
    return isnan(x) ? 3 : isinf(x) ? 2 : fabs(x) > 1.25 * t->normal;
}

static bool alike(double x, double y, const float_type *t)
{
    return class_of(x, t) == class_of(y, t) && (isnan(x) || !signbit(x) == !signbit(y));
}

static void check_sample(const tutti_sample *sample, const float_type *t, const char *isa)
{
    tutti_tensor *expected, *actual = run(sample);
    CHECK_OK(tutti__sample_run(sample, &expected));
    for (int i = 0; i < COUNT; i++) {
        double x = tutti_tensor_get(sample->values[0], i), y = tutti_tensor_get(actual, i),
               want = tutti_tensor_get(expected, i),
               of_zero = tutti_tensor_get(expected, signbit(x) ? 1 : 0);
        if (!alike(y, want, t) && !(fabs(x) < t->normal && alike(y, of_zero, t)))
            tutti__test_fail(__FILE__, __LINE__, "%s %s (%s): of %g comes %g, the reference has %g",
                             sample->op->name, sample->text, isa, x, y, want);
    }
    tutti_tensor_release(actual);
    tutti_tensor_release(expected);
}

static void check_operator(const tutti_op *op, const char *isa)
{
    for (const char *const *text = op->samples; text && *text; text++)
        for (size_t t = 0; t < TUTTI_COUNT(types); t++) {
            tutti_sample *sample = make_sample(op, &types[t], *text);
            if (sample)
                check_sample(sample, &types[t], isa);
            tutti__sample_free(sample);
        }
}

TUTTI_TEST(special_values_come_out_as_the_reference_has_them)
{
    const tutti_op *ops[1024];
    size_t count = tutti_op_list(TUTTI_COUNT(ops), ops);
    int checked = 0;
    for (const char *const *isa = tutti__kernel_check_isas; *isa; isa++) {
        if (!tutti__kernel_check_under(*isa))
            continue;
        for (size_t i = 0; i < count && i < TUTTI_COUNT(ops); i++)
            if ((ops[i]->flags & TUTTI_OP_ELEMENTWISE) && ops[i]->max_inputs == 1) {
                check_operator(ops[i], *isa);
                checked++;
            }
    }
    CHECK(checked >= 40);
    CHECK(tutti__kernel_check_under(NULL));
}

/* ---- two operands ---- */

/* Every pair of some values, of which divisions give zeros. */
static void check_division(const char *op, const float_type *t, const char *isa)
{
    static const double values[] = {0.0, -0.0, 0.25, -0.25, 3, -3, INFINITY, -INFINITY, NAN};
    enum { VALUES = TUTTI_COUNT(values) };
    char line[240];
    tutti_sample *sample;
    tutti_tensor *expected;
    snprintf(line, sizeof line, "%s[%d]{=0} %s[%d]{=0}", t->name, VALUES * VALUES, t->name,
             VALUES * VALUES);
    CHECK_OK(tutti__sample_parse(tutti_op_find(op), line, 1, &sample));
    for (int i = 0; i < VALUES * VALUES; i++) {
        tutti_tensor_set(sample->values[0], i, values[i % VALUES]);
        tutti_tensor_set(sample->values[1], i, values[i / VALUES]);
    }
    CHECK_OK(tutti__sample_run(sample, &expected));
    tutti_tensor *actual = run(sample);
    for (int i = 0; i < VALUES * VALUES; i++) {
        double y = tutti_tensor_get(actual, i), want = tutti_tensor_get(expected, i);
        if (!alike(y, want, t))
            tutti__test_fail(__FILE__, __LINE__,
                             "%s of %s (%s): of %g and %g comes %g, the reference has %g", op,
                             t->name, isa, values[i % VALUES], values[i / VALUES], y, want);
    }
    tutti_tensor_release(actual);
    tutti_tensor_release(expected);
    tutti__sample_free(sample);
}

TUTTI_TEST(divisions_give_zeros_with_the_reference_s_sign)
{
    for (const char *const *isa = tutti__kernel_check_isas; *isa; isa++)
        for (size_t t = 0; tutti__kernel_check_under(*isa) && t < TUTTI_COUNT(types); t++) {
            check_division("div", &types[t], *isa);
            check_division("floordiv", &types[t], *isa);
            check_division("mod", &types[t], *isa);
        }
    CHECK(tutti__kernel_check_under(NULL));
}

/* ---- extremes of zeros ---- */

/* Negative zeros but for every `every`-th element, and the bits of all results as IEEE 754-2019 has
 * them: what the reference gives. */
static void check_zeros(const char *op, const char *type, const char *dims, const char *attributes,
                        int every)
{
    char line[240];
    tutti_sample *sample;
    tutti_tensor *expected;
    int inputs = strcmp(op, "maximum") == 0 || strcmp(op, "minimum") == 0 ? 2 : 1;
    snprintf(line, sizeof line, "%s%s{=0} %s%s%s %s", type, dims, inputs == 2 ? type : "",
             inputs == 2 ? dims : "", inputs == 2 ? "{=0}" : "", attributes);
    CHECK_OK(tutti__sample_parse(tutti_op_find(op), line, 1, &sample));
    for (int k = 0; k < inputs; k++)
        for (int64_t i = 0; i < tutti_tensor_count(sample->values[k]); i++)
            tutti_tensor_set(sample->values[k], i, (i >> k) % every == every - 1 ? 0.0 : -0.0);
    CHECK_OK(tutti__sample_run(sample, &expected));
    tutti_tensor *actual = run(sample);
    for (int64_t i = 0; i < tutti_tensor_count(expected); i++)
        if (!signbit(tutti_tensor_get(actual, i)) != !signbit(tutti_tensor_get(expected, i)))
            tutti__test_fail(__FILE__, __LINE__, "%s %s: element %lld is %g, the reference has %g",
                             op, line, (long long)i, tutti_tensor_get(actual, i),
                             tutti_tensor_get(expected, i));
    tutti_tensor_release(actual);
    tutti_tensor_release(expected);
    tutti__sample_free(sample);
}

TUTTI_TEST(zero_is_larger_than_minus_zero_with_every_instruction_set)
{
    for (const char *const *isa = tutti__kernel_check_isas; *isa; isa++) {
        if (!tutti__kernel_check_under(*isa))
            continue;
        for (size_t t = 0; t < TUTTI_COUNT(types); t++)
            for (int every = 2; every < 80; every = every * 3 - 1) {
                const char *type = types[t].name;
                check_zeros("maximum", type, "[37]", "", every);
                check_zeros("minimum", type, "[37]", "", every);
                check_zeros("max", type, "[5,73]", "| axes=[1]", every);
                check_zeros("min", type, "[5,73]", "| axes=[1]", every);
                check_zeros("max", type, "[73,37]", "| axes=[0]", every);
                check_zeros("min", type, "[73,37]", "| axes=[0]", every);
                check_zeros("max_pool2d", type, "[1,6,6,19]", "| window=[2,2] strides=[2,2]",
                            every);
            }
    }
    CHECK(tutti__kernel_check_under(NULL));
}

/* By value, for the reference itself. */
TUTTI_TEST(the_reference_has_zero_larger_than_minus_zero)
{
    static const char *const ops[] = {"maximum", "minimum"};
    for (int op = 0; op < 2; op++) {
        tutti_sample *sample;
        tutti_tensor *y;
        CHECK_OK(tutti__sample_parse(tutti_op_find(ops[op]), "f32[4]{=0} f32[4]{=0}", 1, &sample));
        for (int i = 0; i < 4; i++) {
            tutti_tensor_set(sample->values[0], i, i & 1 ? -0.0 : 0.0);
            tutti_tensor_set(sample->values[1], i, i & 2 ? -0.0 : 0.0);
        }
        CHECK_OK(tutti__sample_run(sample, &y));
        for (int i = 0; i < 4; i++)
            CHECK_INT(signbit(tutti_tensor_get(y, i)) != 0, op == 0 ? i == 3 : i > 0);
        tutti_tensor_release(y);
        tutti__sample_free(sample);
    }
}
