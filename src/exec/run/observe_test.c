/* observe_test.c: what a user sees of a run from outside: printed values and the trace. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/params.h"
#include "base/test.h"
#include "program/testing.h"
#include "tutti/tutti.h"

typedef struct heard {
    int count;
    tutti_log_level level;
    char text[256];
} heard;

static void listen(void *context, tutti_log_level level, const char *message)
{
    heard *h = context;
    h->count++;
    h->level = level;
    snprintf(h->text, sizeof h->text, "%s", message);
}

static tutti_tensor *pair(float first, float second)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, (int64_t[]){2}, (float[]){first, second}, &tensor));
    return tensor;
}

TUTTI_TEST(print_reaches_the_log_that_the_user_installed)
{
    heard h = {0};
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *fed = pair(1.5F, -2), *out;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 2);
    tutti_sym y = tutti_print(tutti_mul(x, 2), "twice x"), z = tutti_neg(y);
    CHECK_OK(tutti_session_open(&s, g));
    tutti_log_install(listen, &h);
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, fed}), .fetch = TUTTI_FETCH({z, &out})));
    CHECK_INT(h.count, 1);
    CHECK_INT(h.level, TUTTI_LOG_INFO);
    CHECK_CONTAINS(h.text, "twice x");
    CHECK_CONTAINS(h.text, "3 -4");
    CHECK_NEAR(tutti_tensor_get(out, 1), 4, 0);
    tutti_tensor_release(out);
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, fed}), .target = y)); /* for its effect alone */
    CHECK_INT(h.count, 2);
    tutti_log_install(NULL, NULL);
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, fed}), .target = y));
    CHECK_INT(h.count, 2);
    tutti_tensor_release(fed);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(print_on_a_tape_prints_once)
{
    heard h = {0};
    tutti_eager *e;
    tutti_tensor *given = pair(1, 2);
    CHECK_OK(tutti_eager_open(&e));
    tutti_log_install(listen, &h);
    TUTTI_STEP(e) {
        tutti_sym x = tutti_print(tutti_eager_feed(e, given), "x");
        CHECK_NEAR(tutti_scalar_value(tutti_sum(x)), 3, 0);
    }
    CHECK_OK(tutti_eager_check(e));
    CHECK_INT(h.count, 1);
    CHECK_CONTAINS(h.text, "x: ");
    CHECK_CONTAINS(h.text, "1 2");
    tutti_log_install(NULL, NULL);
    tutti_tensor_release(given);
    tutti_eager_close(e);
}

/* A NaN has a sign, which differs from device to device; nobody wants to see it. */
TUTTI_TEST(print_shows_nan_without_its_sign)
{
    heard h = {0};
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *fed = pair(NAN, -NAN);
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 2), y = tutti_print(x, "x");
    tutti_sym checked = tutti_check_numerics(tutti_slice_axis(x, 0, 1, 2), "y");
    CHECK_OK(tutti_session_open(&s, g));
    tutti_log_install(listen, &h);
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, fed}), .target = y));
    CHECK_CONTAINS(h.text, "[nan nan]");
    tutti_log_install(NULL, NULL);
    CHECK_STATUS(tutti_run(s, .feed = TUTTI_FEED({x, fed}), .target = checked), TUTTI_CHECK_FAILED);
    CHECK_CONTAINS(tutti_error_message(), "element [0] is nan");
    tutti_tensor_release(fed);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

/* Each test is a process of its own, so the trace holds this session only. */
static void check_trace(const char *device, const char *lane)
{
    char path[] = "/tmp/tutti-session-trace-XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0);
    close(file);
    CHECK_OK(tutti__param_set("TRACE", path));
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *fed = pair(1, 2), *out;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 2), product = TUTTI_NO_SYM;
    TUTTI_WITH_NAME(g, "tower") {
        tutti_sym v = tutti_variable(g, tutti_full(3, 2, 2), .name = "weights");
        product = tutti_matmul(tutti_reshape(x, 1, 2), v);
    }
    tutti_sym sorted = tutti_cumsum(product, 1);
    CHECK_OK(tutti_session_open(&s, g, .device = device));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, fed}), .fetch = TUTTI_FETCH({sorted, &out})));
        tutti_tensor_release(out);
    }
    tutti_session_close(s); /* writes the file */
    CHECK_OK(tutti__param_set("TRACE", NULL));
    char *text = tutti__take_file(path);
    tutti__check_json(text);
    CHECK_CONTAINS(text, "{\"traceEvents\":[");
    CHECK_CONTAINS(text, "\"name\":\"tower/matmul\"");
    CHECK_CONTAINS(text, "\"name\":\"cumsum\"");
    CHECK_CONTAINS(text, lane);
    int runs = 0;
    for (const char *at = text; (at = strstr(at, "\"tower/matmul\"")) != NULL; at++)
        runs++;
    CHECK_INT(runs, 3);
    free(text);
    tutti_tensor_release(fed);
    tutti_graph_destroy(g);
}

TUTTI_TEST(trace_of_a_session_is_a_file_that_names_its_nodes)
{
    check_trace("cpu:0", "\"cat\":\"cpu:0\"");
}

TUTTI_TEST_ALONE(trace_of_a_device_that_takes_whole_partitions)
{
    check_trace("whole:0", "\"cat\":\"whole:0\"");
}

/* ---- files that cannot be written ---- */

static void run_and_close(void)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *fed = pair(1, 2), *out;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 2), y = tutti_neg(x);
    CHECK_OK(tutti_session_open(&s, g));
    CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({x, fed}), .fetch = TUTTI_FETCH({y, &out})));
    tutti_tensor_release(out);
    tutti_tensor_release(fed);
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

/* How often two sessions say `what` on stderr; ret_told: all that they say. */
static int told_by_two(const char *what, char ret_told[4096])
{
    FILE *file = tmpfile();
    int before = dup(STDERR_FILENO), times = 0;
    CHECK(file && before >= 0);
    dup2(fileno(file), STDERR_FILENO);
    run_and_close();
    run_and_close();
    dup2(before, STDERR_FILENO);
    close(before);
    rewind(file);
    ret_told[fread(ret_told, 1, 4095, file)] = 0;
    fclose(file);
    for (const char *at = ret_told; (at = strstr(at, what)) != NULL; at++)
        times++;
    return times;
}

TUTTI_TEST_ALONE(a_trace_that_cannot_be_written_is_told_once)
{
    char told[4096];
    CHECK_OK(tutti__param_set("TRACE", "/no such folder/trace.json"));
    CHECK_INT(told_by_two("tutti: TUTTI_TRACE: ", told), 1);
    CHECK_CONTAINS(told, "/no such folder/trace.json");
}

TUTTI_TEST_ALONE(dumps_that_cannot_be_written_are_told_once)
{
    char told[4096];
    CHECK_OK(tutti__param_set("DUMP", "passes"));
    CHECK_OK(tutti__param_set("DUMP_DIR", "/dev/null/dumps"));
    CHECK_INT(told_by_two("tutti: TUTTI_DUMP=passes: ", told), 1);
    CHECK_CONTAINS(told, "/dev/null/dumps");
}

/* Whoever has said that lines go nowhere is left in peace. */
TUTTI_TEST(programs_that_want_no_log_are_told_nothing)
{
    char told[4096];
    CHECK_OK(tutti__param_set("TRACE", "/no such folder/trace.json"));
    tutti_log_install(NULL, NULL);
    CHECK_INT(told_by_two("TUTTI_TRACE", told), 0);
}
