/* control_test.c: groups, assertions, prints, fused bodies. */
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "ops/state/testing.h"

TUTTI_TEST(group_waits_for_its_nodes)
{
    tutti_graph *g = new_graph();
    tutti_sym a = tutti_scalar(g, TUTTI_F32, 1), b = tutti_no_op(g);
    tutti_sym group = tutti_group(g, a, b);
    CHECK_INT(group.node->control_count, 2);
    CHECK_INT(tutti_sym_output_count(group), 0);
    CHECK(!tutti_sym_ok(tutti_group(g, a, TUTTI_NO_SYM)));
    check_mistake(g, TUTTI_INVALID, "group: node 1 is not a symbol");
}

TUTTI_TEST(assert_shows_message_and_data)
{
    tutti_graph *g = new_graph();
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 3), zero = tutti_scalar(g, TUTTI_F32, 0);
    tutti_sym checked = tutti_assert(tutti_greater(x, zero), "x must be positive", x);
    tutti_sym plain = tutti_assert(tutti_greater(x, zero), "no data");
    tutti_tensor *good = VECTOR(TUTTI_F32, 1, 2, 3), *bad = VECTOR(TUTTI_F32, 1, -2.5, 3),
                 *none = NULL;
    CHECK_NEAR(fetch_element(checked, 0, FEEDS(FEED(x, good))), 1, 0);
    CHECK_STATUS(try_fetch(checked, FEEDS(FEED(x, bad)), &none), TUTTI_CHECK_FAILED);
    CHECK_CONTAINS(tutti_error_message(),
                   "x must be positive (element 1 of the condition is false)");
    CHECK_CONTAINS(tutti_error_message(), "data: f32[3] [1 -2.5 3]");
    CHECK_STATUS(try_fetch(plain, FEEDS(FEED(x, bad)), &none), TUTTI_CHECK_FAILED);
    CHECK_CONTAINS(tutti_error_message(), "no data");
    tutti_tensor_release(good);
    tutti_tensor_release(bad);
    tutti_graph_destroy(g);
}

TUTTI_TEST(check_numerics_names_the_first_bad_element)
{
    tutti_graph *g = new_graph();
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 2, 3), y = tutti_check_numerics(x, "loss");
    tutti_tensor *given = MATRIX(TUTTI_F32, 2, 3, 1, 2, 3, 4, (double)NAN, HUGE_VAL), *none = NULL;
    CHECK_STATUS(try_fetch(y, FEEDS(FEED(x, given)), &none), TUTTI_CHECK_FAILED);
    CHECK_CONTAINS(tutti_error_message(), "element [1,1] is nan: loss");
    tutti_tensor_set(given, 4, 5);
    CHECK_STATUS(try_fetch(y, FEEDS(FEED(x, given)), &none), TUTTI_CHECK_FAILED);
    CHECK_CONTAINS(tutti_error_message(), "element [1,2] is inf");
    tutti_tensor_set(given, 5, 6);
    tutti_tensor_release(fetch(y, FEEDS(FEED(x, given))));
    tutti_tensor_release(given);
    tutti_sym one = tutti_placeholder(g, TUTTI_F32);
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 0, NULL, &given));
    tutti_tensor_set(given, 0, (double)NAN);
    CHECK_STATUS(try_fetch(tutti_check_numerics(one, "loss"), FEEDS(FEED(one, given)), &none),
                 TUTTI_CHECK_FAILED);
    CHECK_CONTAINS(tutti_error_message(), ": the value is nan: loss");
    tutti_tensor_release(given);
    tutti_graph_destroy(g);
}

static void collect(void *context, tutti_log_level level, const char *message)
{
    if (level == TUTTI_LOG_INFO)
        tutti__text_add(context, "%s\n", message);
}

TUTTI_TEST(print_goes_to_the_log)
{
    tutti_graph *g = new_graph();
    tutti_text log = {0};
    tutti_sym x = tutti_placeholder(g, TUTTI_I32, 2, 2);
    tutti_sym y = tutti_print(x, "x");
    tutti_tensor *given = MATRIX(TUTTI_I32, 2, 2, 1, 2, 3, 4), *value;
    tutti_log_install(collect, &log);
    value = fetch(y, FEEDS(FEED(x, given)));
    tutti_log_install(NULL, NULL);
    CHECK_VALUES(value, 0, 1, 2, 3, 4);
    CHECK_STR(log.data, "x: i32[2,2] [[1 2] [3 4]]\n");
    tutti__text_free(&log);
    tutti_tensor_release(value);
    tutti_tensor_release(given);
    tutti_graph_destroy(g);
}

TUTTI_TEST(texts_of_long_and_odd_values)
{
    tutti_text text = {0};
    tutti_tensor *many = NULL, *words = NULL;
    CHECK_OK(tutti_tensor_create(TUTTI_U8, 2, (int64_t[]){3, 40}, &many));
    tutti__view_text(
        &(tutti_view){tutti_tensor_data(many), TUTTI_U8, 2, tutti_tensor_dims(many), NULL}, 2,
        &text);
    CHECK_STR(text.data, "u8[3,40] [[0 0 … (118 more)");
    tutti__text_free(&text);
    text = (tutti_text){0};
    CHECK_OK(tutti_tensor_create(TUTTI_STRING, 1, (int64_t[]){2}, &words));
    CHECK_OK(tutti_tensor_set_string(words, 0, "a\"b", 3));
    tutti__view_text(
        &(tutti_view){tutti_tensor_data(words), TUTTI_STRING, 1, tutti_tensor_dims(words), NULL}, 9,
        &text);
    CHECK_STR(text.data, "string[2] [\"a\\x22b\" \"\"]");
    tutti__text_free(&text);
    tutti_tensor_release(many);
    tutti_tensor_release(words);
}

TUTTI_TEST(fused_body_is_run_by_the_reference)
{
    tutti_graph *g = new_graph(), *body = new_graph();
    tutti_type type = TUTTI_TYPE(TUTTI_F32, 2);
    tutti_sym a = tutti_parameter(body, 0, type), b = tutti_parameter(body, 1, type);
    CHECK_OK(tutti__graph_result(body, tutti__edge(tutti_mul(tutti_add(a, b), b))));
    CHECK_OK(tutti__graph_result(body, tutti__edge(a)));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 2), y = tutti_placeholder(g, TUTTI_F32, 2);
    tutti_sym fused =
        tutti_apply_op(g, "fused", 2, ((tutti_sym[]){x, y}), 1, &TUTTI_GRAPH_ATTR("body", body));
    tutti_graph_destroy(body);
    CHECK_OK(tutti_graph_check(g));
    CHECK_INT(tutti_sym_output_count(fused), 2);
    tutti_tensor *one = VECTOR(TUTTI_F32, 1, 2), *two = VECTOR(TUTTI_F32, 3, 4);
    tutti_tensor *value = fetch(fused, FEEDS(FEED(x, one), FEED(y, two)));
    CHECK_VALUES(value, 0, 12, 24);
    tutti_tensor_release(value);
    value = fetch(tutti_sym_output(fused, 1), FEEDS(FEED(x, one), FEED(y, two)));
    CHECK_VALUES(value, 0, 1, 2);
    tutti_tensor_release(value);
    tutti_tensor_release(one);
    tutti_tensor_release(two);
    tutti_graph_destroy(g);
}
