/* report.c: how a job failed, and its exit code. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "cli/run/launch.h"

/* Others may fail because they wait for one that was done too early. */
static void report_done(const tutti_launch *l)
{
    enum { MOST = 8 };
    int count = 0;
    for (int i = 0; i < l->job->size; i++) {
        if (!l->ranks[i].done)
            continue;
        if (count == 0)
            fprintf(stderr,
                    "tutti run: ranks that ended before the first failure, with exit code 0:");
        if (count < MOST)
            fprintf(stderr, " %d", i);
        count++;
    }
    if (count > MOST)
        fprintf(stderr, " and %d more", count - MOST);
    if (count > 0)
        fprintf(stderr, "\n");
}

/* Who waited for `rank` when it failed, as the first that has heard of it says; "": nobody knows.
 */
static const char *find_waiting(const tutti_launch *l, int rank)
{
    char begin[32];
    int length = snprintf(begin, sizeof begin, "rank %d ", rank);
    for (int i = 0; i < l->job->size; i++) {
        const tutti_launch_rank *r = &l->ranks[i];
        if (i != rank && r->started && strncmp(r->reason, begin, (size_t)length) == 0)
            return r->waiting;
    }
    return "";
}

/* " (host a, process 7): exit code 1; its group failed: …" */
static void report_end(const tutti_launch *l, int rank)
{
    const tutti_launch_rank *r = &l->ranks[rank];
    if (r->started)
        fprintf(stderr, " (host %s, process %d): ", r->host, r->process);
    else if (r->host[0])
        fprintf(stderr, " (host %s): ", r->host);
    else
        fprintf(stderr, ": ");
    if (!r->started && !r->reason[0])
        fprintf(stderr, "it was not started; see above");
    else if (!r->started)
        fprintf(stderr, "it could not be started: %s", r->reason);
    else if (r->unheard)
        fprintf(stderr, "%s", r->reason);
    else if (r->by_signal)
        fprintf(stderr, "ended by signal %d (%s)", r->number, strsignal(r->number));
    else
        fprintf(stderr, "exit code %d", r->number);
    if (r->started && r->reason[0] && !r->unheard)
        fprintf(stderr, "; its group failed: %s", r->reason);
    else if (r->started && find_waiting(l, rank)[0])
        fprintf(stderr, "; %s", find_waiting(l, rank));
    fprintf(stderr, "\n");
}

/* The first failure stands last, where the reader looks; above it what that rank said last. */
void tutti__launch_report(const tutti_launch *l)
{
    const tutti_launch_rank *r = &l->ranks[l->first_failed];
    int others = 0;
    for (int i = 0; i < l->job->size; i++)
        others += i != l->first_failed && l->ranks[i].ended &&
                  (l->ranks[i].by_signal || l->ranks[i].number != 0);
    if (others > 0 && r->output.tail_size > 0) {
        fprintf(stderr, "tutti run: the last words of rank %d:\n", l->first_failed);
        const char *at = r->output.tail, *end = at + r->output.tail_size;
        while (at < end) {
            const char *line = memchr(at, '\n', (size_t)(end - at));
            int size = (int)((line != NULL ? line : end) - at);
            fprintf(stderr, "  | %.*s\n", size, at);
            at += size + 1;
        }
    }
    report_done(l);
    fprintf(stderr, "tutti run: ");
    if (others > 0)
        fprintf(stderr, "%d other rank%s failed after it; ", others, others == 1 ? "" : "s");
    fprintf(stderr, "first failed rank %d", l->first_failed);
    report_end(l, l->first_failed);
}

int tutti__launch_code(const tutti_launch *l)
{
    if (l->first_failed < 0)
        return 0;
    const tutti_launch_rank *r = &l->ranks[l->first_failed];
    return r->by_signal ? 128 + r->number : r->number;
}
