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
