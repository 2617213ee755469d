/* numbers_test.c: numbers on either side of arithmetic, comparisons and where. */
#include "base/test.h"
#include "tutti/ops.h"
#include "tutti/tape.h"

static const struct {
    const char *name;
    tutti_binary_fn_ *op;
    double left, right; /* 7 op x and x op 7, where x is 2 */
    bool compares;
} ops[] = {
    {"add", (tutti_add), 9, 9, false},         {"sub", (tutti_sub), 5, -5, false},
    {"mul", (tutti_mul), 14, 14, false},       {"floordiv", (tutti_floordiv), 3, 0, false},
    {"mod", (tutti_mod), 1, 2, false},         {"pow", (tutti_pow), 49, 128, false},
    {"maximum", (tutti_maximum), 7, 7, false}, {"minimum", (tutti_minimum), 2, 2, false},
    {"equal", (tutti_equal), 0, 0, true},      {"not_equal", (tutti_not_equal), 1, 1, true},
    {"less", (tutti_less), 0, 1, true},        {"less_equal", (tutti_less_equal), 0, 1, true},
    {"greater", (tutti_greater), 1, 0, true},  {"greater_equal", (tutti_greater_equal), 1, 0, true},
};

static double value(tutti_sym sym, tutti_dtype dtype)
{
    CHECK_INT(tutti_sym_type(sym).dtype, dtype);
    return tutti_scalar_value(sym);
}

static void either_side(tutti_graph *graph, tutti_dtype dtype)
{
    tutti_sym x = tutti_scalar(graph, dtype, 2);
    for (size_t i = 0; i < TUTTI_COUNT(ops); i++) {
        tutti_dtype made = ops[i].compares ? TUTTI_BOOL : dtype;
        if (value(tutti_binary_left_(ops[i].op, 7, x), made) != ops[i].left ||
            value(tutti_binary_right_(ops[i].op, x, 7), made) != ops[i].right)
            tutti__test_fail(__FILE__, __LINE__, "%s of %s", ops[i].name, tutti_dtype_name(dtype));
    }
    tutti_sym yes = tutti_greater(x, 1);
    CHECK_NEAR(value(tutti_where(yes, 7, x), dtype), 7, 0);
    CHECK_NEAR(value(tutti_where(yes, x, 7), dtype), 2, 0);
}

TUTTI_TEST(numbers_have_the_other_sides_element_type)
{
    static const tutti_dtype dtypes[] = {TUTTI_F32,  TUTTI_F64, TUTTI_F16,
                                         TUTTI_BF16, TUTTI_I32, TUTTI_I64};
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    for (size_t i = 0; i < TUTTI_COUNT(dtypes); i++)
        either_side(tutti_eager_graph(e), dtypes[i]);
    CHECK_NEAR(value(tutti_div(1, tutti_scalar(tutti_eager_graph(e), TUTTI_F32, 4)), TUTTI_F32),
               0.25, 0);
    CHECK_OK(tutti_eager_check(e));
    tutti_eager_close(e);
}

/* What f32 cannot hold. */
TUTTI_TEST(numbers_are_exact_in_f64_and_i64)
{
    const int64_t large = (1LL << 53) - 1;
    tutti_eager *e;
    tutti_tensor *sum;
    CHECK_OK(tutti_eager_open(&e));
    tutti_graph *g = tutti_eager_graph(e);
    CHECK_NEAR(value(tutti_add(tutti_scalar(g, TUTTI_F64, 0), 0.1), TUTTI_F64), 0.1, 0);
    CHECK_NEAR(value(tutti_equal(0.1, tutti_scalar(g, TUTTI_F64, 0.1)), TUTTI_BOOL), 1, 0);
    CHECK_OK(tutti_value(tutti_add(tutti_ints(g, 1LL << 60), large), &sum));
    CHECK(tutti_tensor_get_int(sum, 0) == (1LL << 60) + large);
    tutti_tensor_release(sum);
    CHECK_NEAR(value(tutti_less(tutti_ints(g, large - 1), large), TUTTI_BOOL), 1, 0);
    CHECK_OK(tutti_eager_check(e));
    tutti_eager_close(e);
}

#define REFUSES(call, part)                                                                        \
    do {                                                                                           \
        tutti_eager *e;                                                                            \
        CHECK_OK(tutti_eager_open(&e));                                                            \
        tutti_graph *g = tutti_eager_graph(e);                                                     \
        CHECK(!tutti_sym_ok(call));                                                                \
        CHECK_CONTAINS(tutti_error_message(), part);                                               \
        CHECK_CONTAINS(tutti_error_message(), "numbers_test.c:");                                  \
        tutti_eager_close(e);                                                                      \
    } while (0)

TUTTI_TEST(numbers_that_the_other_side_cannot_hold_are_refused)
{
    REFUSES(tutti_mul(tutti_scalar(g, TUTTI_I32, 2), 0.5),
            "the number 0.5 cannot be a constant of type i32");
    REFUSES(tutti_sub(256, tutti_scalar(g, TUTTI_U8, 2)),
            "the number 256 cannot be a constant of type u8");
    REFUSES(tutti_less(tutti_scalar(g, TUTTI_I64, 2), (1LL << 53) + 1), "tutti_ints");
    REFUSES(tutti_where(tutti_scalar(g, TUTTI_BOOL, 1), -1e300, tutti_ints(g, 1)), "tutti_cast");
    REFUSES(tutti_add(tutti_scalar(g, TUTTI_BOOL, 1), 1), "input 0 is bool[]");
    REFUSES(tutti_sub(2, tutti_scalar(g, TUTTI_BOOL, 1)),
            "the number 2 cannot be a constant of type bool");
}

static void below_100(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                      void *context)
{
    TUTTI_UNUSED(body);
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_less(args[0], 100);
}

static void twice_and_one(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                          void *context)
{
    TUTTI_UNUSED(body);
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_add(1, tutti_mul(args[0], 2));
}

static void unless_three(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                         void *context)
{
    TUTTI_UNUSED(body);
    TUTTI_UNUSED(count);
    TUTTI_UNUSED(context);
    ret[0] = tutti_where(tutti_equal(args[0], 3), 0, args[0]);
}

TUTTI_TEST(numbers_in_bodies_of_cond_and_while)
{
    tutti_eager *e;
    CHECK_OK(tutti_eager_open(&e));
    tutti_sym x = tutti_scalar(tutti_eager_graph(e), TUTTI_I64, 3);
    tutti_sym y = tutti_while(below_100, twice_and_one, NULL, TUTTI_SYMS(x), 0, NULL, NULL);
    CHECK_NEAR(value(y, TUTTI_I64), 127, 0);
    y = tutti_cond(tutti_less(x, 10), twice_and_one, unless_three, NULL, TUTTI_SYMS(x), 1, NULL);
    CHECK_NEAR(value(y, TUTTI_I64), 7, 0);
    y = tutti_cond(tutti_greater(x, 10), twice_and_one, unless_three, NULL, TUTTI_SYMS(x), 1, NULL);
    CHECK_NEAR(value(y, TUTTI_I64), 0, 0);
    CHECK_OK(tutti_eager_check(e));
    tutti_eager_close(e);
}
