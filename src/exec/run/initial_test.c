/* initial_test.c: initial values that are computed from other variables. */
#include "base/test.h"
#include "tutti/tutti.h"

static void check_value(tutti_session *s, tutti_sym sym, double first, double second)
{
    tutti_tensor *value;
    CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({sym, &value})));
    CHECK_NEAR(tutti_tensor_get(value, 0), first, 0);
    CHECK_NEAR(tutti_tensor_get(value, 1), second, 0);
    tutti_tensor_release(value);
}

static void check_chain(const char *first, const char *second)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_sym a, b, c;
    CHECK_OK(tutti_graph_create(&g));
    TUTTI_WITH_DEVICE(g, first)
        a = tutti_variable(g, tutti_sym_init(tutti_ints(g, 3, 5)), .name = "a");
    tutti_sym twice = tutti_add(a, a);
    TUTTI_WITH_DEVICE(g, second)
        b = tutti_variable(g, tutti_sym_init(twice), .name = "b");
    c = tutti_variable(g, tutti_sym_init(tutti_add(tutti_mul(b, a), twice)), .name = "c");
    tutti_sym copy = tutti_variable(g, tutti_sym_init(b), .name = "copy");
    tutti_sym checked, shown = tutti_print(a, "the first value");
    TUTTI_WITH_CONTROL(g, tutti_group(g, tutti_add(a, b)))
        checked = tutti_neg(b);
    tutti_sym behind = tutti_variable(g, tutti_sym_init(tutti_add(shown, checked)), .name = "d");
    tutti_sym raise = tutti_assign_add(a, tutti_ints(g, 1, 1));
    CHECK_OK(tutti_graph_verify(g));
    CHECK_OK(tutti_session_open(&s, g));
    for (int i = 0; i < 2; i++) { /* also when they have values already */
        CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
        check_value(s, a, 3, 5);
        check_value(s, b, 6, 10);
        check_value(s, c, 24, 60);
        check_value(s, copy, 6, 10);
        check_value(s, behind, -3, -5);
        CHECK_OK(tutti_run(s, .target = raise));
        check_value(s, twice, 8, 12); /* what the user made reads the present value */
        check_value(s, a, 4, 6);
    }
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(initial_values_follow_those_they_are_computed_from)
{
    check_chain("cpu:0", "cpu:0");
    check_chain("far:0", "cpu:0");
    check_chain("cpu:0", "whole:0");
}

TUTTI_TEST(initial_values_follow_random_ones)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *initial, *base;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym a = tutti_variable(g, tutti_uniform_init(-1, 1, 4), .name = "a");
    tutti_sym b = tutti_variable(g, tutti_sym_init(tutti_neg(a)), .name = "b");
    CHECK_OK(tutti_session_open(&s, g));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({a, &base}, {b, &initial})));
    for (int i = 0; i < 4; i++)
        CHECK_NEAR(tutti_tensor_get(initial, i), -tutti_tensor_get(base, i), 0);
    tutti_tensor_release(initial);
    tutti_tensor_release(base);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}
