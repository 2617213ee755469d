/* silence.c: stations that are not heard any more. A station says something every second at least;
 * one that somebody has stopped, or whose network is cut, would hold its ranks and the job for
 * ever.
 *
 * The ranks of a station behind ssh hear each other by themselves, and have the limit's time to say
 * who is silent: their verdict knows more than the launcher. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/world.h"
#include "cli/run/launch.h"

static const int64_t shortest_ns = INT64_C(3000000000); /* three beats */
static const int64_t behind_ssh_ns = INT64_C(3000000000);

static int64_t limit_of(const tutti_run_host *host)
{
    int64_t limit;
    if (tutti__membership_silence_limit(&limit) != TUTTI_OK || limit < shortest_ns)
        limit = shortest_ns; /* a wrong setting is the ranks' to complain about */
    return host->local ? limit : limit + behind_ssh_ns;
}

/* Stopped processes take SIGTERM when they go on: the station then ends its ranks, and what these
 * have started, as it does whenever it is told to end. */
static void wake_and_end(pid_t group)
{
    kill(-group, SIGTERM);
    kill(-group, SIGCONT);
}

static void give_up(tutti_launch *l, tutti_launch_station *station, double silent_s)
{
    int first = -1;
    station->unheard = true;
    for (int r = station->first; r < station->first + station->count; r++) {
        tutti_launch_rank *rank = &l->ranks[r];
        if (rank->ended)
            continue;
        first = first < 0 ? r : first;
        rank->unheard = true;
        snprintf(rank->reason, sizeof rank->reason,
                 "the station that watches it (process %d) had not been heard for %.1f s: stopped, "
                 "or without a network",
                 (int)station->process, silent_s);
    }
    if (first >= 0) {
        fprintf(stderr,
                "tutti run: the station on host %s (process %d) has not been heard for %.1f s: "
                "stopped, or without a network; ending its ranks\n",
                l->job->hosts.data[station - l->stations].name, (int)station->process, silent_s);
        if (!l->open) /* else they end with it, and the others go on */
            tutti__launch_fail(l, first);
    }
    wake_and_end(station->process);
}

void tutti__launch_watch(tutti_launch *l, bool held)
{
    int64_t now = tutti__now_ns(), before = l->watched_ns;
    bool away = now - before > 2 * TUTTI_STATION_BEAT_MS * INT64_C(1000000); /* we were stopped */
    l->watched_ns = now;
    for (size_t i = 0; i < l->job->hosts.count; i++) {
        tutti_launch_station *station = &l->stations[i];
        if (held || away || station->heard_ns == 0)
            station->heard_ns = now;
        int64_t silent = now - station->heard_ns;
        if (station->greeted && !station->gone && !station->unheard &&
            silent > limit_of(&l->job->hosts.data[i]))
            give_up(l, station, (double)silent / 1e9);
    }
}
