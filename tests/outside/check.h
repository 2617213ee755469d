/* check.h: checks that go on after a failure and print what failed; a program ends with
 * `return check_end();`. */
#ifndef CHECK_H
#define CHECK_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <tutti/tutti.h>

static int check_failures;

static inline void check_at(bool held, const char *file, int line, const char *what)
{
    if (held)
        return;
    check_failures++;
    fprintf(stderr, "%s:%d: %s\n    last message: %s\n", file, line, what, tutti_error_message());
}

static inline void check_near_at(double actual, double expected, double tolerance, const char *file,
                                 int line, const char *what)
{
    char text[256];
    snprintf(text, sizeof text, "%s is %.9g, expected %.9g", what, actual, expected);
    check_at(fabs(actual - expected) <= tolerance * (1 + fabs(expected)), file, line, text);
}

#define CHECK(condition) check_at((condition), __FILE__, __LINE__, #condition)
#define CHECK_OK(call) check_at((call) == TUTTI_OK, __FILE__, __LINE__, #call)
/* Within tolerance (1 + |expected|). */
#define CHECK_NEAR(actual, expected, tolerance)                                                    \
    check_near_at((actual), (expected), (tolerance), __FILE__, __LINE__, #actual)
/* The last message contains this. */
#define CHECK_SAYS(part)                                                                           \
    check_at(strstr(tutti_error_message(), (part)) != NULL, __FILE__, __LINE__,                    \
             "message contains " #part)

static inline int check_end(void)
{
    if (check_failures > 0)
        fprintf(stderr, "%d checks failed\n", check_failures);
    return check_failures > 0;
}

/* The devices that everything must run on. */
static const char *const check_devices[] = {"cpu:0", "far:0", "whole:0"};
enum { CHECK_DEVICES = 3 };

/* A float tensor with elements first, first + step, … */
static inline tutti_tensor *check_tensor(int rank, const int64_t *dims, double first, double step)
{
    tutti_tensor *tensor = NULL;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, rank, dims, &tensor));
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++)
        tutti_tensor_set(tensor, i, first + (double)i * step);
    return tensor;
}

#endif
