/* log.c: hands a line to the installed sink. */
#include "base/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/printable.h"

/* `lock` guards `sink` and `context` as a pair. `installed` lets a line with no sink cost one load.
 * The sink is called without the lock, so it may log and may install. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tutti_log_sink *installed_sink;
static void *installed_context;
static atomic_bool installed;
static atomic_bool quiet;
static atomic_bool spoken; /* a program has said where lines go, or that they go nowhere */

void tutti_log_install(tutti_log_sink *sink, void *context)
{
    pthread_mutex_lock(&lock);
    installed_sink = sink;
    installed_context = context;
    atomic_store_explicit(&installed, sink != NULL, memory_order_relaxed);
    atomic_store_explicit(&spoken, true, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
}

enum { LINE = 1024 };

TUTTI_PRINTF(2, 0)
static void write_line(char ret[LINE], const char *format, va_list arguments)
{
    char text[LINE];
    vsnprintf(text, sizeof text, format, arguments);
    tutti__printable(text, "\n\t", ret, LINE);
}

TUTTI_PRINTF(2, 0)
static void hand_over(tutti_log_level level, const char *format, va_list arguments)
{
    if (!atomic_load_explicit(&installed, memory_order_relaxed))
        return;
    pthread_mutex_lock(&lock);
    tutti_log_sink *sink = installed_sink;
    void *context = installed_context;
    pthread_mutex_unlock(&lock);
    if (sink == NULL)
        return;
    char message[LINE];
    write_line(message, format, arguments);
    sink(context, level, message);
}

void tutti__log(tutti_log_level level, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    hand_over(level, format, arguments);
    va_end(arguments);
}

void tutti__log_quieten(bool on)
{
    atomic_store_explicit(&quiet, on, memory_order_relaxed);
}

bool tutti__log_quiet(void)
{
    return atomic_load_explicit(&quiet, memory_order_relaxed);
}

void tutti__log_job(tutti_log_level level, const char *format, ...)
{
    char line[LINE];
    va_list arguments;
    va_start(arguments, format);
    if (atomic_load_explicit(&spoken, memory_order_relaxed)) {
        hand_over(level, format, arguments);
    } else {
        write_line(line, format, arguments);
        fprintf(stderr, "tutti: %s\n", line);
    }
    va_end(arguments);
}
