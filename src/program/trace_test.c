/* trace_test.c: the trace is JSON that others can read; rings go from thread to thread. */
#include "program/trace.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/test.h"

/* ---- a reader of just enough JSON ---- */

static const char *skip(const char *at)
{
    while (*at == ' ' || *at == '\n')
        at++;
    return at;
}

static const char *value(const char *at);

static const char *string(const char *at)
{
    CHECK(*at == '"');
    for (at++; *at != '"'; at++) {
        CHECK((unsigned char)*at >= 32);
        if (*at == '\\')
            at++;
    }
    return skip(at + 1);
}

static const char *list(const char *at, char end, bool named)
{
    at = skip(at + 1);
    while (*at != end) {
        if (named) {
            at = string(at);
            CHECK(*at == ':');
            at = skip(at + 1);
        }
        at = value(at);
        CHECK(*at == ',' || *at == end);
        if (*at == ',') {
            at = skip(at + 1);
            CHECK(*at != end);
        }
    }
    return skip(at + 1);
}

static const char *value(const char *at)
{
    if (*at == '{')
        return list(at, '}', true);
    if (*at == '[')
        return list(at, ']', false);
    if (*at == '"')
        return string(at);
    char *after;
    strtod(at, &after);
    CHECK(after != at);
    return skip(after);
}

static char *read_trace(void)
{
    char path[] = "/tmp/tutti-trace-XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0);
    fclose(fdopen(file, "w"));
    CHECK_OK(tutti__trace_write(path));
    FILE *in = fopen(path, "r");
    CHECK(in != NULL);
    char *text = calloc(1, 1 << 24);
    size_t size = fread(text, 1, (1 << 24) - 1, in);
    fclose(in);
    remove(path);
    CHECK(size > 0);
    const char *after = value(skip(text));
    CHECK(*after == '\0');
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
