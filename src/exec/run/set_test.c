/* set_test.c: variables that are set before any run has made them. */
#include <string.h>

#include "base/params.h"
#include "base/test.h"
#include "tutti/tutti.h"

static tutti_tensor *scalar(double value)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 0, NULL, &tensor));
    tutti_tensor_set(tensor, 0, value);
    return tensor;
}

static void set(tutti_session *s, tutti_sym v, double value)
{
    tutti_tensor *tensor = scalar(value);
    CHECK_OK(tutti_session_set(s, v, tensor));
    tutti_tensor_set(tensor, 0, -1); /* the session has a copy */
    tutti_tensor_release(tensor);
}

static void check_get(tutti_session *s, tutti_sym v, double expected)
{
    tutti_tensor *value;
    CHECK_OK(tutti_session_get(s, v, &value));
    CHECK_NEAR(tutti_tensor_get(value, 0), expected, 0);
    tutti_tensor_release(value);
}

static void check_run(tutti_session *s, tutti_sym sym, double expected)
{
    tutti_tensor *value;
    CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({sym, &value})));
    CHECK_NEAR(tutti_tensor_get(value, 0), expected, 0);
    tutti_tensor_release(value);
}

/* v on the device of `beside`, which is on `place`, or of its own wish. */
static void check_set(const char *device, const char *place)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_sym v = TUTTI_NO_SYM, beside = TUTTI_NO_SYM;
    CHECK_OK(tutti_graph_create(&g));
    TUTTI_WITH_DEVICE(g, place)
        beside = tutti_variable(g, tutti_zeros(), .name = "beside");
    TUTTI_WITH_COLOCATION(g, beside)
        v = tutti_variable(g, tutti_ones(), .name = "v");
    tutti_sym twice = tutti_mul(v, 2), there = tutti_is_initialized(v),
              more = tutti_assign_add(v, tutti_scalar(g, TUTTI_F32, 10));
    CHECK_OK(tutti_session_open(&s, g, .device = device));
    set(s, v, 3);
    set(s, v, 4);
    check_get(s, v, 4);
    check_run(s, twice, 8);
    check_run(s, there, 1);
    check_run(s, more, 14);
    set(s, v, 5);
    check_get(s, v, 5);
    check_run(s, twice, 10);
    set(s, beside, 7);
    check_run(s, tutti_add(v, beside), 12);
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    check_run(s, twice, 2);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(variables_are_set_before_any_run)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    check_set("cpu:0", "");
    check_set("cpu:0", "cpu:1");
    check_set("cpu:0", "far:0");
    check_set("far:0", "");
    check_set("far:0", "cpu:1");
    check_set("whole:0", "");
}

TUTTI_TEST(initialising_sets_anew_what_was_set_before_any_run)
{
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym v = tutti_variable(g, tutti_ones(), .name = "v");
    CHECK_OK(tutti_session_open(&s, g));
    set(s, v, 3);
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    check_get(s, v, 1);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(what_cannot_be_set_before_any_run_is_refused)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *wrong, *value = NULL;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym v = tutti_variable(g, tutti_ones(2), .name = "v");
    CHECK_OK(tutti_session_open(&s, g));
    wrong = scalar(1);
    CHECK_STATUS(tutti_session_set(s, v, wrong), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "variable 'v' is f32[2], the value is f32[]");
    CHECK_STATUS(tutti_session_set(s, tutti_mul(v, 2), wrong), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "is no variable");
    CHECK_STATUS(tutti_session_get(s, v, &value), TUTTI_UNINITIALIZED);
    tutti_tensor_release(wrong);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

/* Every replica has the value; of a sum over replicas the first has all of it. */
TUTTI_TEST(replicas_have_what_was_set_before_any_run)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *value;
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    tutti_strategy *strategy = tutti_strategy_mirrored(.devices = "cpu:0,cpu:1");
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym v = tutti_variable(g, tutti_ones(), .name = "v"),
              sum = tutti_variable(g, tutti_zeros(), .name = "sum", .on_read = true),
              mean = tutti_variable(g, tutti_zeros(), .name = "mean", .on_read = true,
                                    .aggregation = TUTTI_AGGREGATE_MEAN);
    CHECK_OK(tutti_session_open(&s, g, .strategy = strategy));
    const tutti_sym all[] = {v, sum, mean};
    for (int i = 0; i < 3; i++) {
        set(s, all[i], 6);
        check_get(s, all[i], 6);
        check_run(s, tutti_read(all[i]), 6);
        check_get(s, all[i], 6);
    }
    for (int i = 0; i < tutti_mirrored_count(s, v); i++) {
        CHECK_OK(tutti_mirrored_get(s, v, i, &value));
        CHECK_NEAR(tutti_tensor_get(value, 0), 6, 0);
        tutti_tensor_release(value);
    }
    tutti_session_close(s);
    tutti_graph_destroy(g);
    CHECK_OK(tutti_strategy_close(strategy));
}

TUTTI_TEST(strings_are_set_before_a_run)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *word, *got;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_tensor_create(TUTTI_STRING, 0, NULL, &word));
    CHECK_OK(tutti_tensor_set_string(word, 0, "first", 5));
    tutti_sym v = tutti_variable(g, tutti_tensor_init(word), .name = "v", .dtype = TUTTI_STRING,
                                 .not_trainable = true);
    CHECK_OK(tutti_tensor_set_string(word, 0, "second", 6));
    CHECK_OK(tutti_session_open(&s, g));
    CHECK_OK(tutti_session_set(s, v, word));
    CHECK_OK(tutti_tensor_set_string(word, 0, "third", 5));
    CHECK_OK(tutti_run(s, .fetch = TUTTI_FETCH({tutti_identity(v), &got})));
    CHECK_INT(tutti_tensor_get_string(got, 0).size, 6);
    CHECK(memcmp(tutti_tensor_get_string(got, 0).data, "second", 6) == 0);
    tutti_tensor_release(got);
    tutti_tensor_release(word);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}
