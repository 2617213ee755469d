/* servers.c: the launch of a job with parameter servers, whose program has an open roster: where a
 * rank fails the others go on, and it is started again while --restarts lasts. When all workers
 * have ended the servers do. Until a rank has said that the roster is open, the job is like any
 * other. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/world.h"
#include "cli/run/launch.h"

static const int64_t second = 1000000000;

static bool is_server(const tutti_launch *l, int rank)
{
    return rank >= l->job->size - l->job->ps;
}

static bool is_over(const tutti_launch *l, int rank)
{
    return l->ranks[rank].ended && !l->ranks[rank].again;
}

static int station_of(const tutti_launch *l, int rank)
{
    for (size_t i = 0; i < l->job->hosts.count; i++)
        if (rank >= l->stations[i].first && rank < l->stations[i].first + l->stations[i].count)
            return (int)i;
    return 0;
}

static bool may_start_again(const tutti_launch *l, int rank)
{
    return l->again_count < l->job->restarts && l->interrupts == 0 && !l->unread && !l->finishing &&
           l->stations[station_of(l, rank)].to >= 0;
}

bool tutti__servers_lost(tutti_launch *l, int rank)
{
    tutti_launch_rank *r = &l->ranks[rank];
    char how[200], then[100] = "the others go on";
    if (!l->open || l->first_failed >= 0)
        return false;
    if (l->interrupts > 0 || (l->finishing && is_server(l, rank)))
        return true; /* as it was told */
    if (r->by_signal)
        snprintf(how, sizeof how, "was ended by signal %d (%s)", r->number, strsignal(r->number));
    else
        snprintf(how, sizeof how, "ended with exit code %d", r->number);
    if (may_start_again(l, rank)) {
        r->again = true;
        r->again_ns = tutti__now_ns();
        l->again_count++;
        snprintf(then, sizeof then, "starting it again, %d of %d", l->again_count,
                 l->job->restarts);
    }
    fprintf(stderr, "tutti run: rank %d (%s, host %s, process %d) %s; %s\n", rank,
            is_server(l, rank) ? "ps" : "worker", r->host[0] ? r->host : "?", r->process, how,
            then);
    return true;
}

/* Whether somebody is there whose view it would have to join. */
static bool has_company(const tutti_launch *l, int rank)
{
    for (int r = 0; r < l->job->size; r++)
        if (r != rank && !l->ranks[r].ended && l->ranks[r].started)
            return true;
    return false;
}

/* Where one of those that are left keeps the roster; they need some milliseconds to find out who.
 */
static bool find_keeper(const tutti_launch *l, int rank, char *ret_meeting, size_t size)
{
    bool there = l->keeper >= 0 && l->keeper != rank && !l->ranks[l->keeper].ended;
    int host = there ? station_of(l, l->keeper) : 0;
    if (there)
        tutti__ssh_meeting(l->job->hosts.count > 1 ? l->job->hosts.data[host].name : "127.0.0.1",
                           l->keeper_port, host == 0 ? l->address : "-", ret_meeting, size);
    return there;
}

static void start_again(tutti_launch *l, int rank)
{
    tutti_launch_rank *r = &l->ranks[rank];
    char meeting[300], text[340];
    bool joins = find_keeper(l, rank, meeting, sizeof meeting);
    if (!joins && has_company(l, rank) && tutti__now_ns() - r->again_ns < 10 * second)
        return;
    snprintf(text, sizeof text, "%d %d %s", rank, joins, joins ? meeting : l->meeting);
    tutti_run_output output = r->output;
    int starts = r->starts + 1;
    memset(r, 0, sizeof *r);
    r->output = output;
    r->starts = starts;
    tutti__launch_tell(l, station_of(l, rank), TUTTI_FRAME_AGAIN, text);
}

void tutti__servers_watch(tutti_launch *l)
{
    bool workers = true, all = true;
    if (l->job->ps == 0 || l->finished)
        return;
    for (int r = 0; l->open && r < l->job->size; r++) {
        if (l->ranks[r].again && (l->interrupts > 0 || l->unread))
            l->ranks[r].again = false;
        if (l->ranks[r].again)
            start_again(l, r);
    }
    for (int r = 0; r < l->job->size; r++) {
        workers = workers && (is_server(l, r) || is_over(l, r));
        all = all && is_over(l, r);
    }
    if (l->open && workers && !l->finishing) {
        l->finishing = true; /* they end by themselves, or are told to */
        if (l->patience_until == 0)
            l->patience_until = tutti__now_ns() + 3 * second;
    }
    if (all) {
        l->finished = true;
        tutti__launch_tell(l, -1, TUTTI_FRAME_FINISH, "");
    }
}

/* The chief's, which saves what the job was for: a worker that was lost is no failure of the job.
 */
int tutti__servers_code(const tutti_launch *l)
{
    const tutti_launch_rank *chief = &l->ranks[0];
    int lost = 0;
    for (int r = 0; r < l->job->size; r++)
        lost += !(l->finishing && is_server(l, r)) &&
                (l->ranks[r].by_signal || l->ranks[r].number != 0);
    if (lost > 0 && l->interrupts == 0)
        fprintf(stderr, "tutti run: %d of %d ranks did not come to their end; rank 0 %s\n", lost,
                l->job->size, chief->by_signal || chief->number != 0 ? "is one of them" : "did");
    return chief->by_signal ? 128 + chief->number : chief->number;
}
