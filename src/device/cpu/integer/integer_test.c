#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "base/test.h"
#include "device/cpu/kernel_check.h"
#include "program/kernel.h"

static const tutti_dtype integers[] = {TUTTI_I8, TUTTI_U8, TUTTI_I32, TUTTI_I64};
static const tutti_dtype others[] = {TUTTI_BOOL, TUTTI_F32, TUTTI_F64, TUTTI_F16, TUTTI_BF16};

/* Also integers that floats do not hold, and those that a second rounding would spoil. */
static const int64_t extremes[] = {
    0,
    1,
    -1,
    2,
    -2,
    6,
    7,
    INT8_MIN,
    INT8_MAX,
    UINT8_MAX,
    INT32_MIN,
    INT32_MAX,
    INT64_MIN,
    INT64_MIN + 1,
    INT64_MAX - 1,
    INT64_MAX,
    0x1008001,
    0x1010001,
    (INT64_C(1) << 53) + 1,
    -(INT64_C(1) << 53) - 1,
    (INT64_C(1) << 55) + (INT64_C(1) << 47) + 1,
};

static const double float_extremes[] = {
    0.0,      0.5,
    0.999,    1.5,
    127.5,    128,
    128.5,    129,
    255.5,    256,
    2049,     0x1.fffffep30,
    0x1p31,   0x1.fffffffcp30,
    0x1p40,   0x1.fffffep62,
    0x1p63,   0x1.fffffffffffffp62,
    1e30,     (double)INFINITY,
    -0x1p-10, (double)NAN,
};

/* Every second element is any, the others are extremes. */
static void fill(tutti_tensor *x, uint64_t seed)
{
    tutti_random_key key = {seed, 3};
    for (int64_t i = 0; i < tutti_tensor_count(x); i++) {
        uint32_t words[4];
        tutti__random_block(key, (uint64_t)i, words);
        uint64_t wide = (uint64_t)words[0] << 32 | words[1];
        if (tutti_dtype_is_float(tutti_tensor_dtype(x))) {
            double any = ldexp((double)(int64_t)wide, -(int)(words[2] % 64));
            double extreme = float_extremes[words[2] % TUTTI_COUNT(float_extremes)];
            tutti_tensor_set(x, i, i % 2 ? any : words[3] % 2 ? -extreme : extreme);
        } else {
            int64_t any = (int64_t)(wide >> words[2] % 64);
            tutti_tensor_set_int(x, i, i % 2 ? any : extremes[words[2] % TUTTI_COUNT(extremes)]);
        }
    }
}

/* What the operator takes for its last operand. */
static void make_legal(const char *op, tutti_tensor *x)
{
    bool divides = strcmp(op, "floordiv") == 0 || strcmp(op, "mod") == 0;
    for (int64_t i = 0; i < tutti_tensor_count(x); i++) {
        int64_t value = tutti_tensor_get_int(x, i);
        if ((divides && value == 0) || (strcmp(op, "pow") == 0 && value < 0))
            tutti_tensor_set_int(x, i, 3);
    }
}

/* Bytes of bools that are true without being 1. */
static void odd_truths(tutti_tensor *x)
{
    uint8_t *bytes = tutti_tensor_data(x);
    for (int64_t i = 0; i < tutti_tensor_count(x); i += 5)
        bytes[i] = (uint8_t)(i % 256);
}

/* Whether this kernel is the one that is chosen. */
static bool is_picked(const tutti_sample *sample, const char *name)
{
    tutti_kernel_query query = {.node = tutti__sample_rule(sample), .threads = 1};
    const tutti_kernel *kernel = tutti__kernel_pick("cpu", &query);
    return kernel != NULL && strcmp(kernel->name, name) == 0;
}

static void check(const char *op, const char *text, bool picked)
{
    tutti_sample *sample;
    CHECK_OK(tutti__sample_parse(tutti_op_find(op), text, 5, &sample));
    for (int i = 0; i < sample->input_count; i++) {
        fill(sample->values[i], (uint64_t)i + 1);
        if (sample->types[i].dtype == TUTTI_BOOL && (i == 0 || strcmp(op, "where") != 0))
            odd_truths(sample->values[i]);
    }
    make_legal(op, sample->values[sample->input_count - 1]);
    CHECK(tutti__kernel_check_sample(sample, 0) > 0);
    if (picked && !is_picked(sample, "elementwise.integer"))
        tutti__test_fail(__FILE__, __LINE__, "%s %s: elementwise.integer is not chosen", op, text);
    tutti__sample_free(sample);
}

/* A sample text of `inputs` operands of these shapes, the condition of where a bool. */
static void check_op(const tutti_op *op, tutti_dtype dtype, const char *const *shapes)
{
    static const char *const clips[] = {"min=-2.5 max=4.5", "min=-inf max=inf", "min=3e9 max=1e300",
                                        "min=300 max=300", "min=0.2 max=0.8"};
    bool clips_too = strcmp(op->name, "clip") == 0;
    char text[200] = "";
    for (int i = 0; i < op->min_inputs; i++) {
        bool condition = strcmp(op->name, "where") == 0 && i == 0;
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, " %s[%s]",
                 condition ? "bool" : tutti_dtype_name(dtype), shapes[i]);
    }
    size_t length = strlen(text);
    for (size_t i = 0; i < (clips_too ? TUTTI_COUNT(clips) : 1); i++) {
        if (clips_too)
            snprintf(text + length, sizeof text - length, " | %s", clips[i]);
        check(op->name, text, true);
    }
}

static bool is_listed(const char *const *names, const char *name)
{
    for (; *names != NULL; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

/* More than one piece; and small ones that broadcast. */
static const char *const many[] = {"33000", "33000", "33000"};

TUTTI_TEST(integer_kernel_has_every_operator_on_integers)
{
    const tutti_op *ops[512];
    size_t count = tutti_op_list(TUTTI_COUNT(ops), ops);
    static const char *const apart[] = {"cast",        "logical_and", "logical_or",
                                        "logical_xor", "logical_not", NULL};
    int checked = 0;
    for (size_t i = 0; i < count && i < TUTTI_COUNT(ops); i++) {
        if (!(ops[i]->flags & TUTTI_OP_ELEMENTWISE) || ops[i]->scalar_int == NULL ||
            is_listed(apart, ops[i]->name))
            continue;
        for (size_t t = 0; t < TUTTI_COUNT(integers); t++)
            check_op(ops[i], integers[t], many);
        checked++;
    }
    CHECK(checked >= 26);
}

TUTTI_TEST(integer_kernel_has_logic_and_comparisons_of_bools)
{
    static const char *const names[] = {
        "logical_and", "logical_or", "logical_xor", "logical_not",   "equal", "not_equal",
        "less",        "less_equal", "greater",     "greater_equal", "where"};
    for (size_t i = 0; i < TUTTI_COUNT(names); i++)
        check_op(tutti_op_find(names[i]), TUTTI_BOOL, many);
    for (size_t i = 1; i < TUTTI_COUNT(others); i++)
        check_op(tutti_op_find("where"), others[i], many);
}

TUTTI_TEST(integer_kernel_broadcasts)
{
    static const char *const shapes[][3] = {
        {"1025", "1025", ""},      {"", "3000", "1"},           {"300,70", "70", "300,1"},
        {"7,1000", "7,1", "1000"}, {"5000,3", "3", "5000,1"},   {"4,1,300", "50,1", "4,50,300"},
        {"2,3,4,5", "3,1,5", "5"}, {"33,31,17", "33,1,17", ""}, {"1,1", "1", ""},
        {"0,7", "7", "0,1"},       {"70000", "1", "70000"},
    };
    static const char *const names[] = {"sub", "less", "where", "floordiv", "mul"};
    for (size_t s = 0; s < TUTTI_COUNT(shapes); s++)
        for (size_t i = 0; i < TUTTI_COUNT(names); i++)
            for (size_t t = 0; t < TUTTI_COUNT(integers); t++)
                check_op(tutti_op_find(names[i]), integers[t], shapes[s]);
}

/* Of the casts, most from and to floats are other kernels'; the bits are the same. */
TUTTI_TEST(integer_casts_have_the_references_bits)
{
    char text[80];
    for (tutti_dtype from = TUTTI_F32; from <= TUTTI_BOOL; from++)
        for (tutti_dtype to = TUTTI_F32; to <= TUTTI_BOOL; to++) {
            bool floats = tutti_dtype_is_float(from) || tutti_dtype_is_float(to);
            if (tutti_dtype_is_float(from) && tutti_dtype_is_float(to))
                continue;
            snprintf(text, sizeof text, "%s[33001] | dtype=%s", tutti_dtype_name(from),
                     tutti_dtype_name(to));
            bool once = to == TUTTI_BF16 && (from == TUTTI_I32 || from == TUTTI_I64);
            check("cast", text, !floats || once);
        }
}

TUTTI_TEST(integer_kernel_refuses_what_the_operators_refuse)
{
    CHECK_STR(tutti__kernel_error("floordiv", "i32[3] i32[3]{=1,0,2}", TUTTI_INVALID),
              "floordiv 'floordiv': integer division by zero at element 1 of input 1; guard it "
              "with tutti_where or convert to floats with tutti_cast");
    CHECK(strstr(tutti__kernel_error("mod", "u8[2,3] u8[3]{=1,2,0}", TUTTI_INVALID),
                 "modulo zero at element 2") != NULL);
    CHECK(strstr(tutti__kernel_error("pow", "i64[2] i64[]{=-1}", TUTTI_INVALID),
                 "negative power -1") != NULL);
}
