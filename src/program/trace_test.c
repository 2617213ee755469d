/* trace_test.c: the trace is JSON that others can read; rings go from thread to thread. */
#include "program/trace.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/test.h"
#include "program/testing.h"

static char *read_trace(void)
{
    char path[] = "/tmp/tutti-trace-XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0);
    fclose(fdopen(file, "w"));
    CHECK_OK(tutti__trace_write(path));
    char *text = tutti__take_file(path);
    tutti__check_json(text);
    return text;
}

TUTTI_TEST(trace_is_json_whatever_the_names)
{
    tutti_trace *trace = tutti__trace_mine();
    CHECK(trace != NULL);
    uint32_t lane = tutti__trace_name("cpu:0");
    CHECK_INT(tutti__trace_name("cpu:0"), lane);
    tutti__trace_add(trace, tutti__trace_name("plain"), lane, 1000, 2000);
    tutti__trace_add(trace, tutti__trace_name("with \"quotes\", a \\ and a\nline"), lane, 2000,
                     3000);
    char *text = read_trace();
    CHECK_CONTAINS(text, "\"plain\"");
    CHECK_CONTAINS(text, "with \\\"quotes\\\", a \\\\ and a\\u000aline");
    free(text);
    for (int i = 0; i < 3 * TUTTI_TRACE_RING; i++) /* only the last ones stay */
        tutti__trace_add(trace, tutti__trace_name("many"), lane, 1, 2);
    text = read_trace();
    CHECK(strstr(text, "\"plain\"") == NULL);
    free(text);
}

/* The same node is compiled for another batch. */
TUTTI_TEST(trace_knows_a_node_by_its_work_too)
{
    uint32_t full = tutti__trace_operator("product", "matmul", 64e9),
             last = tutti__trace_operator("product", "matmul", 3),
             lane = tutti__trace_name("cpu:0");
    CHECK(full != last && full != tutti__trace_name("product"));
    CHECK_INT(tutti__trace_operator("product", "matmul", 64e9), full);
    tutti__trace_add(tutti__trace_mine(), full, lane, 10, 20);
    tutti__trace_add(tutti__trace_mine(), last, lane, 20, 30);
    char *text = read_trace();
    CHECK_CONTAINS(text, "\"flops\":64000000000}");
    CHECK_CONTAINS(text, "\"flops\":3}");
    free(text);
}

static void *run_thread(void *ret)
{
    *(tutti_trace **)ret = tutti__trace_mine();
    return NULL;
}

TUTTI_TEST(trace_rings_of_ended_threads_serve_again)
{
    tutti_trace *first = NULL, *again = NULL, *mine = tutti__trace_mine();
    for (int i = 0; i < 10; i++) {
        pthread_t thread;
        CHECK_INT(pthread_create(&thread, NULL, run_thread, i ? &again : &first), 0);
        pthread_join(thread, NULL);
        CHECK(i == 0 || again == first);
    }
    CHECK(first != mine && tutti__trace_mine() == mine);
}

/* The time of the last event of a name. */
static double when(const char *text, const char *name)
{
    const char *at = NULL;
    for (const char *next = strstr(text, name); next; next = strstr(next + 1, name))
        at = next;
    CHECK(at != NULL);
    at = at ? strstr(at, "\"ts\":") : NULL;
    return at ? strtod(at + 5, NULL) : 0;
}

/* A clock that is 5 s ahead tells times 5 s earlier, on rank 0's. */
TUTTI_TEST(trace_of_a_rank_is_on_the_clock_of_rank_zero)
{
    uint64_t now = tutti__ticks();
    uint32_t lane = tutti__trace_name("cpu:0");
    tutti__trace_add(tutti__trace_mine(), tutti__trace_operator("meeting", "all_reduce", 3), lane,
                     now, now + 10);
    char *alone = read_trace();
    tutti__trace_place(2, INT64_C(5000000000));
    char *placed = read_trace();
    tutti__trace_place(-1, 0);
    CHECK_CONTAINS(placed, "\"name\":\"rank 2\"");
    CHECK_CONTAINS(placed, "\"pid\":3");
    CHECK_CONTAINS(placed, "\"args\":{\"op\":\"all_reduce\",\"flops\":3}");
    CHECK(strstr(alone, "process_name") == NULL);
    CHECK_NEAR(when(alone, "\"meeting\"") - when(placed, "\"meeting\""), 5e6, 1000);
    free(alone);
    free(placed);
}
