/* roster_beat.c: heartbeats, clocks and silence. */
#include "cluster/roster_stand_in.h"
#include "cluster/roster_view.h"

enum { MILLISECOND = 1000000 };

/* One machine has one clock. */
static bool same_clock(const tutti_roster *roster)
{
    const tutti_roster_member *self = &roster->members[roster->options.rank];
    int keeper = roster->keeper < 0 ? 0 : roster->keeper;
    return self->peer.machine == roster->members[keeper].peer.machine;
}

void tutti__roster_send_beats(tutti_roster *roster, int64_t now_ns)
{
    tutti_arrival arrivals[TUTTI_BEAT_ARRIVALS];
    tutti_cluster_message m = {.type = TUTTI_MESSAGE_BEAT};
    size_t count = 0;
    roster->beat_ns = now_ns;
    roster->ways.where(roster->ways.context, &m.as.beat.where);
    if (roster->ways.arrivals != NULL && !roster->options.open)
        count = roster->ways.arrivals(roster->ways.context, arrivals, TUTTI_BEAT_ARRIVALS);
    if (same_clock(roster))
        roster->offset_ns = roster->trip_ns = 0;
    if (roster->options.rank == 0 && !roster->options.open)
        tutti__skews_add(roster->skews, roster, 0, arrivals, count);
    else if (roster->trip_ns != INT64_MAX) {
        for (size_t i = 0; i < count; i++)
            arrivals[i].at_ns =
                (int64_t)((uint64_t)arrivals[i].at_ns + (uint64_t)roster->offset_ns);
        tutti__arrivals_write(arrivals, count, &m.as.beat.arrived);
    }
    m.as.beat.sent_ns = now_ns;
    for (int r = 0; r < roster->options.size; r++) {
        const tutti_roster_member *member = &roster->members[r];
        m.as.beat.echo_ns = member->beat_sent;
        m.as.beat.held_ns = now_ns - member->beat_heard;
        tutti__roster_send(roster, r, &m);
    }
}

/* Rank 0's clock minus ours = its sending time + half the trip - now; the shortest trip is the most
 * exact, and grows old so that drift is followed. */
static void measure_clock(tutti_roster *roster, int64_t now_ns, const tutti_cluster_message *m)
{
    if (same_clock(roster))
        return;
    int64_t echo = m->as.beat.echo_ns, held = m->as.beat.held_ns;
    if (echo <= 0 || echo > now_ns || held < 0 || held > now_ns - echo)
        return; /* no beat of ours, or a clock that leaped */
    int64_t trip = now_ns - echo - held;
    int64_t aged = roster->trip_ns == INT64_MAX ? INT64_MAX : roster->trip_ns + roster->trip_ns / 8;
    if (trip > aged) {
        roster->trip_ns = aged;
        return;
    }
    roster->trip_ns = trip;
    roster->offset_ns =
        (int64_t)((uint64_t)m->as.beat.sent_ns - (uint64_t)now_ns + (uint64_t)(trip / 2));
}

void tutti__roster_receive_beat(tutti_roster *roster, int64_t now_ns, int from,
                                const tutti_cluster_message *m)
{
    tutti_roster_member *member = &roster->members[from];
    member->where = m->as.beat.where;
    member->beat_sent = m->as.beat.sent_ns;
    member->beat_heard = now_ns;
    if (roster->options.rank != roster->keeper) {
        measure_clock(roster, now_ns, m);
        return;
    }
    if (roster->options.open)
        return;
    tutti_arrival arrivals[TUTTI_BEAT_ARRIVALS];
    size_t count = tutti__arrivals_read(&m->as.beat.arrived, arrivals, TUTTI_BEAT_ARRIVALS);
    tutti__skews_add(roster->skews, roster, from, arrivals, count);
}

bool tutti__roster_watching(const tutti_roster *roster)
{
    return roster->phase == TUTTI_PHASE_RUNNING || roster->phase == TUTTI_PHASE_LEAVING;
}

bool tutti__roster_over(const tutti_roster *roster)
{
    return roster->phase == TUTTI_PHASE_LEFT || roster->phase == TUTTI_PHASE_FAILED;
}

int64_t tutti__roster_next(const tutti_roster *roster)
{
    if (tutti__roster_over(roster))
        return INT64_MAX;
    if (roster->options.open)
        return tutti__roster_view_next(roster);
    int64_t next = roster->beat_ns + roster->options.silence_ns / 5;
    if ((roster->phase == TUTTI_PHASE_ASKING || roster->phase == TUTTI_PHASE_PARTING) &&
        roster->until_ns < next)
        next = roster->until_ns;
    if (tutti__stand_in_awaited(roster) && roster->answer_ns < next)
        next = roster->answer_ns;
    if (tutti__stand_in_gathers(roster) && roster->gather_ns < next)
        next = roster->gather_ns;
    if (tutti__roster_appeals(roster) && roster->appeal_ns < next)
        next = roster->appeal_ns;
    for (int r = 0; r < roster->options.size && tutti__roster_watching(roster); r++) {
        int64_t expires = roster->members[r].heard_ns + roster->options.silence_ns + 1;
        if (roster->members[r].linked && expires < next)
            next = expires;
    }
    return next;
}

/* Invariant 4: time in which this process did not run is nobody's silence. Two beats late is a
 * stopped or starved process, or a clock that leaped. */
void tutti__roster_forgive(tutti_roster *roster, int64_t now_ns)
{
    int64_t beat = roster->options.silence_ns / 5, away = now_ns - roster->ticked_ns;
    roster->ticked_ns = now_ns;
    if (away <= 2 * beat)
        return;
    roster->woke_ns = now_ns;
    for (int r = 0; r < roster->options.size; r++)
        roster->members[r].heard_ns += away;
    if (roster->phase == TUTTI_PHASE_ASKING || roster->phase == TUTTI_PHASE_PARTING)
        roster->until_ns += away;
    roster->answer_ns += away;
    if (roster->retry_ns != 0)
        roster->retry_ns += away;
    if (roster->appeal_ns != 0)
        roster->appeal_ns += away;
    if (roster->gather_ns != 0)
        roster->gather_ns += away;
}

bool tutti__roster_was_away(const tutti_roster *roster, int64_t now_ns)
{
    return roster->woke_ns != 0 && now_ns - roster->woke_ns < roster->options.silence_ns;
}

void tutti__roster_watch_silence(tutti_roster *roster, int64_t now_ns)
{
    for (int r = 0; r < roster->options.size && tutti__roster_watching(roster); r++) {
        const tutti_roster_member *member = &roster->members[r];
        int64_t silent = now_ns - member->heard_ns;
        if (member->linked && silent > roster->options.silence_ns)
            tutti__roster_accuse(roster, now_ns, r, TUTTI_FAILURE_SILENT, silent / MILLISECOND, "");
    }
    if (tutti__roster_appeals(roster) && now_ns >= roster->appeal_ns)
        tutti__roster_accuse(roster, now_ns, 0, TUTTI_FAILURE_SILENT,
                             (now_ns - roster->members[0].heard_ns) / MILLISECOND,
                             "it does not answer; stopped, without a network, or its machine is "
                             "down");
}
