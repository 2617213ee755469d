/* test.h: unit tests. A test stands beside what it tests: x.c, x_test.c.
 *
 *     TUTTI_TEST(arena_grows_past_one_block)
 *     {
 *         CHECK_INT(arena.total, 8192);
 *         CHECK_STATUS(tutti_load_dataset("no such file"), TUTTI_NOT_FOUND);
 *         CHECK_CONTAINS(tutti_error_message(), "no such file");
 *     }
 *
 * A check that fails prints its place and the values, and ends the test; it may stand in a helper
 * function too. On any other thread than the test's own it ends the whole process. Names of tests
 * are unique in the project. tools/tables.py finds the tests, base/test_runner.c runs them. */
#ifndef TUTTI_BASE_TEST_H
#define TUTTI_BASE_TEST_H

#include "base/status.h"

typedef struct tutti_test {
    const char *file; /* "base/arena" */
    const char *name; /* "arena_grows_past_one_block" */
    void (*run)(void);
    bool alone; /* TUTTI_TEST_ALONE */
} tutti_test;

/* Made by tools/tables.py; name is NULL after the last. */
extern const tutti_test tutti__test_table[];

#define TUTTI_TEST(name)                                                                           \
    void tutti_test_##name(void);                                                                  \
    void tutti_test_##name(void)
/* One that no other may share its process with: it is about what happens once in a process, leaves
 * something behind, or forks, which a process with threads should not. */
#define TUTTI_TEST_ALONE(name) TUTTI_TEST(name)

#define CHECK(condition)                                                                           \
    ((condition) ? (void)0 : tutti__test_fail(__FILE__, __LINE__, "%s", #condition))
#define CHECK_INT(actual, expected)                                                                \
    tutti__test_int(__FILE__, __LINE__, #actual, (int64_t)(actual), (int64_t)(expected))
#define CHECK_STR(actual, expected)                                                                \
    tutti__test_string(__FILE__, __LINE__, #actual, (actual), (expected))
/* |actual - expected| <= tolerance; NaN is near nothing. */
#define CHECK_NEAR(actual, expected, tolerance)                                                    \
    tutti__test_near(__FILE__, __LINE__, #actual, (double)(actual), (double)(expected),            \
                     (double)(tolerance))
#define CHECK_CONTAINS(text, part) tutti__test_contains(__FILE__, __LINE__, #text, (text), (part))
#define CHECK_STATUS(expression, status)                                                           \
    tutti__test_status(__FILE__, __LINE__, #expression, (expression), (status))
#define CHECK_OK(expression) CHECK_STATUS(expression, TUTTI_OK)

/* Ends the test as skipped. */
#define SKIP(...) tutti__test_skip(__VA_ARGS__)

/* True under a sanitizer, where tests may choose smaller sizes. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TUTTI_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TUTTI_TEST_SANITIZED 1
#endif
#endif
#ifndef TUTTI_TEST_SANITIZED
#define TUTTI_TEST_SANITIZED 0
#endif

_Noreturn void tutti__test_fail(const char *file, int line, const char *format, ...)
    TUTTI_PRINTF(3, 4);
_Noreturn void tutti__test_skip(const char *format, ...) TUTTI_PRINTF(1, 2);
void tutti__test_int(const char *file, int line, const char *what, int64_t actual,
                     int64_t expected);
void tutti__test_near(const char *file, int line, const char *what, double actual, double expected,
                      double tolerance);
void tutti__test_string(const char *file, int line, const char *what, const char *actual,
                        const char *expected);
void tutti__test_contains(const char *file, int line, const char *what, const char *text,
                          const char *part);
void tutti__test_status(const char *file, int line, const char *what, tutti_status actual,
                        tutti_status expected);

/* Runs one test on the calling thread: 0 passed, 1 failed, 77 skipped. */
enum { TUTTI_TEST_PASSED = 0, TUTTI_TEST_FAILED = 1, TUTTI_TEST_SKIPPED = 77 };
int tutti__test_run(const tutti_test *test);

#endif
