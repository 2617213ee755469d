/* test_check.c: the checks of test.h. */
#include "base/test.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The test that runs now. One at a time in a process. */
static struct {
    jmp_buf end;
    pthread_t thread;
} current;

_Noreturn static void end_test(int result)
{
    fflush(NULL);
    if (!pthread_equal(pthread_self(), current.thread))
        _exit(result);
    longjmp(current.end, result);
}

int tutti__test_run(const tutti_test *test)
{
    current.thread = pthread_self();
    int result = setjmp(current.end);
    if (result == 0)
        test->run();
    return result;
}

void tutti__test_fail(const char *file, int line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("%s:%d: check failed: ", file, line);
    vprintf(format, arguments);
    putchar('\n');
    va_end(arguments);
    end_test(TUTTI_TEST_FAILED);
}

void tutti__test_skip(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    putchar('\n');
    va_end(arguments);
    end_test(TUTTI_TEST_SKIPPED);
}

void tutti__test_int(const char *file, int line, const char *what, int64_t actual, int64_t expected)
{
    if (actual != expected)
        tutti__test_fail(file, line, "%s is %lld, expected %lld", what, (long long)actual,
                         (long long)expected);
}

void tutti__test_near(const char *file, int line, const char *what, double actual, double expected,
                      double tolerance)
{
    double distance = actual > expected ? actual - expected : expected - actual;
    if (actual == expected || distance <= tolerance)
        return;
    tutti__test_fail(file, line, "%s is %.17g, expected %.17g within %g (distance %g)", what,
                     actual, expected, tolerance, distance);
}

void tutti__test_string(const char *file, int line, const char *what, const char *actual,
                        const char *expected)
{
    if (actual == expected || (actual && expected && strcmp(actual, expected) == 0))
        return;
    tutti__test_fail(file, line, "%s is\n  %s\nexpected\n  %s", what, actual ? actual : "NULL",
                     expected ? expected : "NULL");
}

void tutti__test_contains(const char *file, int line, const char *what, const char *text,
                          const char *part)
{
    if (!text || !strstr(text, part))
        tutti__test_fail(file, line, "%s is\n  %s\nwhich does not contain\n  %s", what,
                         text ? text : "NULL", part);
}

void tutti__test_status(const char *file, int line, const char *what, tutti_status actual,
                        tutti_status expected)
{
    if (actual == expected)
        return;
    const char *message = actual == TUTTI_OK ? "" : tutti_error_message();
    tutti__test_fail(file, line, "%s gave %d (%s), expected %d (%s)%s%s", what, (int)actual,
                     tutti_status_text(actual), (int)expected, tutti_status_text(expected),
                     *message ? "\n  message: " : "", message);
}
