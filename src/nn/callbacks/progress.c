/* progress.c: the live bar of an epoch on a terminal, one line an epoch elsewhere. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/world.h"
#include "nn/callback.h"

#define WIDTH 20
#define REFRESH_NS 100000000 /* ten times a second */

typedef struct progress {
    bool terminal;
    int64_t shown; /* when the bar was drawn last */
} progress;

static void print_logs(const tutti_logs *logs)
{
    for (int i = 0; logs && i < logs->count; i++) {
        double value = logs->items[i].value;
        const char *form = value != 0 && value < 1e-3 && value > -1e-3 ? "  %s %.2e" : "  %s %.4f";
        char text[200];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof text, form, logs->items[i].name, value);
#pragma GCC diagnostic pop
        fputs(text, stdout);
    }
}

static void print_bar(int64_t done, int64_t count)
{
    for (int i = 0; i < WIDTH; i++)
        fputs(count > 0 && i < WIDTH * done / count ? "\u2501" : "\u2500", stdout);
}

static void print_waiting(const tutti_event *event)
{
    if (event->seconds > 0 && event->waited_seconds > 0.1 * event->seconds)
        printf("  waited %.0f%% for data", 100 * event->waited_seconds / event->seconds);
}

static tutti_status epoch_begin(void *self, tutti_event *event)
{
    progress *p = self;
    p->shown = 0;
    printf("Epoch %d/%d\n", event->epoch + 1, event->epochs);
    fflush(stdout);
    return TUTTI_OK;
}

static tutti_status batch_end(void *self, tutti_event *event)
{
    progress *p = self;
    int64_t now = tutti__now_ns(), done = event->batch + 1;
    if (!p->terminal || now - p->shown < REFRESH_NS)
        return TUTTI_OK;
    p->shown = now;
    printf("\r\033[K%lld/", (long long)done);
    if (event->batch_count > 0)
        printf("%lld ", (long long)event->batch_count);
    else
        printf("? ");
    print_bar(done, event->batch_count);
    if (event->batch_count > done)
        printf(" ETA %.0f s", event->seconds / (double)done * (double)(event->batch_count - done));
    printf("  %.2f ms/step", 1e3 * event->seconds / (double)done);
    if (event->validating)
        printf("  validating");
    print_logs(tutti_event_logs(event));
    fflush(stdout);
    return TUTTI_OK;
}

static tutti_status epoch_end(void *self, tutti_event *event)
{
    progress *p = self;
    int64_t done = event->batch > 0 ? event->batch : 1;
    if (p->terminal)
        printf("\r\033[K");
    printf("%lld/%lld ", (long long)event->batch,
           (long long)(event->batch_count > 0 ? event->batch_count : event->batch));
    if (p->terminal)
        print_bar(1, 1);
    printf(" %.1f s  %.2f ms/step", event->seconds, 1e3 * event->seconds / (double)done);
    print_logs(event->logs);
    print_waiting(event);
    printf("\n");
    fflush(stdout);
    return TUTTI_OK;
}

static tutti_status train_end(void *self, tutti_event *event)
{
    (void)self;
    if (event->interrupted)
        printf("interrupted after step %lld\n", (long long)event->step);
    return TUTTI_OK;
}

static const tutti_callback_kind kind = {
    .struct_size = sizeof(tutti_callback_kind),
    .name = "progress",
    .train_end = train_end,
    .epoch_begin = epoch_begin,
    .batch_end = batch_end,
    .epoch_end = epoch_end,
    .destroy = free,
};

tutti_callback *tutti__progress_bar(void)
{
    progress *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->terminal = isatty(STDOUT_FILENO) == 1;
    return tutti_callback_make(&kind, p);
}
