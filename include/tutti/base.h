/* base.h: status codes, error messages, versions and the macros every header uses.
 *
 * What holds for every function where its own words, or its header's, do not say otherwise:
 *
 *  - What it is given it borrows until it returns; of texts and options it keeps copies.
 *  - What it makes (ret_…) is the caller's, to be released, closed or destroyed by the function
 *    named so; text that is "from malloc" by free. What a question is answered with belongs to the
 *    object that was asked and lives as long.
 *  - One that returns a tutti_status and fails leaves all as it was, what ret_… points to included.
 *    The reason stands in tutti_error_message.
 *  - It waits for no other thread or process. One that does has a deadline.
 *  - Threads may use different objects at once, and one object in turn. A job and all that belongs
 *    to it is one object. */
#ifndef TUTTI_BASE_H
#define TUTTI_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TUTTI_API __attribute__((visibility("default")))
#define TUTTI_PRINTF(format_, first_) __attribute__((format(printf, format_, first_)))
#define TUTTI_MUST_USE __attribute__((warn_unused_result))
#else
#define TUTTI_API
#define TUTTI_PRINTF(format, first)
#define TUTTI_MUST_USE
#endif

#define TUTTI_VERSION_MAJOR 0
#define TUTTI_VERSION_MINOR 1
#define TUTTI_VERSION_PATCH 0

/* Every status, its number and what it means, in one place. Numbers are a promise. */
#define TUTTI_STATUS_MAP(X)                                                                        \
    X(OK, 0, "success")                                                                            \
    X(INVALID, -1, "invalid argument")                                                             \
    X(NOT_FOUND, -2, "not found")                                                                  \
    X(EXISTS, -3, "already exists")                                                                \
    X(UNINITIALIZED, -4, "used before it was initialised")                                         \
    X(OUT_OF_RANGE, -5, "index or value out of range")                                             \
    X(NO_MEMORY, -6, "out of memory")                                                              \
    X(TOO_LARGE, -7, "size exceeds a limit or overflows")                                          \
    X(UNSUPPORTED, -8, "not supported here")                                                       \
    X(DEADLINE, -9, "deadline passed")                                                             \
    X(CLOSED, -10, "closed")                                                                       \
    X(CANCELLED, -11, "cancelled")                                                                 \
    X(CORRUPT, -12, "malformed data")                                                              \
    X(IO, -13, "input/output error")                                                               \
    X(CHECK_FAILED, -14, "an assertion of the program failed")                                     \
    X(INTERNAL, -15, "internal error")

typedef enum tutti_status {
#define TUTTI_STATUS_ENUM(name, number, text) TUTTI_##name = (number),
    TUTTI_STATUS_MAP(TUTTI_STATUS_ENUM)
#undef TUTTI_STATUS_ENUM
} tutti_status;

/* The status in words ("deadline passed"). Never NULL; any integer may be given. */
TUTTI_API const char *tutti_status_text(tutti_status status);

/* The message of the calling thread's last failed call: what was wrong, where, what was expected
 * and what to do. Valid until the thread's next failing call. Empty when nothing failed yet. */
TUTTI_API const char *tutti_error_message(void);

/* Records a message for the calling thread and returns `status`: `return tutti_fail(...)`.
 * For operators and kernels written outside the library too. */
TUTTI_API tutti_status tutti_fail(tutti_status status, const char *format, ...) TUTTI_PRINTF(2, 3);
/* The value is the status as given, so that compilers see that a failure is never TUTTI_OK. */
static inline tutti_status tutti_failed_(tutti_status recorded, tutti_status status)
{
    (void)recorded;
    return status;
}
#define tutti_fail(status, ...) tutti_failed_((tutti_fail)((status), __VA_ARGS__), (status))

/* Passes an error up. */
#define TUTTI_TRY(expression)                                                                      \
    do {                                                                                           \
        tutti_status tutti_try_ = (expression);                                                    \
        if (tutti_try_ != TUTTI_OK)                                                                \
            return tutti_try_;                                                                     \
    } while (0)

/* Where log lines go (tutti_print among them). NULL: nowhere, as at the start, where only rank 0 of
 * a job of several processes tells stderr who is in it, what links cost, and who held it up, and
 * every process which numbers in TUTTI_… it cannot read, and that it cannot write what TUTTI_TRACE
 * or TUTTI_DUMP ask for. The sink may be called from several threads at once. */
typedef enum tutti_log_level { TUTTI_LOG_DEBUG, TUTTI_LOG_INFO, TUTTI_LOG_WARNING } tutti_log_level;
typedef void tutti_log_sink(void *context, tutti_log_level level, const char *message);
TUTTI_API void tutti_log_install(tutti_log_sink *sink, void *context);

/* The library's version, "0.1.0". */
TUTTI_API const char *tutti_version(void);

/* Where in user code a node was built; see TUTTI_AT. */
TUTTI_API void tutti_here(const char *file, int line);

/* Remembers the caller's place, so that a later error names the user's file and line, then calls.
 * Arguments are computed in between: where one is a call of a function of the user's that builds
 * nodes itself, the outer call has the place of the last of those. A library that builds nodes for
 * its users defines TUTTI_AT(call) as (call) before it includes a header of ours, and its users'
 * lines are named instead of its own. */
#ifndef TUTTI_AT
#define TUTTI_AT(call) (tutti_here(__FILE__, __LINE__), call)
#endif

/* Options by name: TUTTI_OPTIONS(tutti_run_options, .target = step). They begin with their size, by
 * which a later version knows how many of its options a program has; where it is 0, collectives,
 * clusters and strategies refuse them. */
#define TUTTI_OPTIONS(type, ...) (&(type){.struct_size = sizeof(type), __VA_ARGS__})

/* For macros that take options by name: the last argument before them, or the last two, and the
 * options, of which there may be none. Called as TUTTI_ONE_(type, __VA_ARGS__, ). */
#define TUTTI_ONE_(type, a, ...) (a), TUTTI_OPTIONS(type, __VA_ARGS__)
#define TUTTI_TWO_(type, a, b, ...) (a), (b), TUTTI_OPTIONS(type, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
