/* roster_stand_in.c: who asks where everybody is when rank 0 is the one that fails.
 *
 * The lowest rank that is left stands in for it. Whoever loses rank 0 connects to that one, says
 * where it is, and waits for the verdict. One that has ended, or has said nothing after 300 ms, is
 * passed over, and after 100 ms all ranks of a machine that is not there at all. Who finds itself
 * the lowest waits for all others, and where a launcher will say how rank 0 ended for that, until
 * 600 ms after it has lost rank 0; those that ask decide after 800 ms by what they know themselves,
 * so that everybody does within a second.
 *
 * One that is asked while it still hears rank 0 tells rank 0, and waits: either rank 0 falls silent
 * here too, or it was only the link between the two that failed, and rank 0's verdict on that is
 * handed on. */
#include "cluster/roster_stand_in.h"
#include "cluster/roster_view.h"

#include <stdio.h>

enum { MILLISECOND = 1000000 };

static bool is_asker(const tutti_roster *roster)
{
    return roster->phase == TUTTI_PHASE_ASKING && roster->stand_in != 0 &&
           roster->stand_in != roster->options.rank;
}

static bool is_stand_in(const tutti_roster *roster)
{
    return roster->phase == TUTTI_PHASE_ASKING && roster->stand_in == roster->options.rank;
}

/* Of those that have ended it is known at once. */
static bool roster_stand_in_call(tutti_roster *roster, int rank)
{
    tutti_roster_member *member = &roster->members[rank];
    member->called =
        roster->ways.call != NULL &&
        roster->ways.call(roster->ways.context, rank, TUTTI_PURPOSE_STAND_IN) == TUTTI_CALL_BEGUN;
    if (!member->called)
        member->ended = member->passed_over = true;
    return member->called;
}

/* What was told to rank 0 in vain, and where we are. */
static void roster_stand_in_report(const tutti_roster *roster, int rank)
{
    tutti_cluster_message m = {.type = TUTTI_MESSAGE_REPORT};
    if (roster->plea.type != 0)
        roster->ways.send(roster->ways.context, rank, &roster->plea);
    roster->ways.where(roster->ways.context, &m.as.report.where);
    roster->ways.send(roster->ways.context, rank, &m);
}

/* Who is there answers at once. Where one was not, there may be more of them. */
static int64_t patience(const tutti_roster *roster)
{
    return (roster->hurried ? 25 : 100) * (int64_t)MILLISECOND;
}

static void seek_next(tutti_roster *roster, int64_t now_ns)
{
    const tutti_roster_member *members = roster->members;
    int rank = 1, own = roster->options.rank;
    while (rank < own && !members[rank].beside &&
           (members[rank].passed_over || !roster_stand_in_call(roster, rank)))
        rank++;
    roster->stand_in = rank;
    roster->connected = false;
    roster->answer_ns = now_ns + patience(roster);
    if (rank == own) {
        roster->until_ns -= 200 * (int64_t)MILLISECOND;
        roster->gather_ns = now_ns + 50 * (int64_t)MILLISECOND;
    } else if (members[rank].beside) /* it has called us */
        roster_stand_in_report(roster, rank);
}

/* Rank 0 has fallen silent, and its link stands: half-open, so that rank 0 still hears us, and
 * should not, since others then hear of it from rank 0; or rank 0 sleeps, and finds out when it
 * wakes why nobody is there. */
static void give_up_zero(tutti_roster *roster, int64_t now_ns)
{
    tutti_roster_member *zero = &roster->members[0];
    tutti_cluster_message m = {.type = TUTTI_MESSAGE_SUSPECT};
    m.as.suspect.rank = 0;
    m.as.suspect.why = TUTTI_FAILURE_SILENT;
    m.as.suspect.detail = (now_ns - zero->heard_ns) / MILLISECOND;
    tutti__roster_send(roster, 0, &m);
    zero->linked = false;
    zero->given_up = true;
    roster->ways.drop(roster->ways.context, 0);
}

void tutti__stand_in_seek(tutti_roster *roster, int64_t now_ns)
{
    if (roster->members[0].linked)
        give_up_zero(roster, now_ns);
    roster->until_ns = now_ns + 800 * (int64_t)MILLISECOND;
    if (roster->plea.type != 0)
        tutti__roster_charge(roster, now_ns, &roster->plea);
    seek_next(roster, now_ns);
}

void tutti__stand_in_miss(tutti_roster *roster, int64_t now_ns, int rank)
{
    tutti_roster_member *member = &roster->members[rank];
    if (is_stand_in(roster) && member->called && !member->beside)
        member->passed_over = true; /* it is not waited for, unless it calls us */
    member->beside = member->called = false;
    if (is_asker(roster) && rank == roster->stand_in) {
        member->ended = member->passed_over = true;
        seek_next(roster, now_ns);
    }
}

bool tutti__stand_in_awaited(const tutti_roster *roster)
{
    return is_asker(roster) && !roster->members[roster->stand_in].beside;
}

void tutti__roster_stand_in_connected(tutti_roster *roster, int rank)
{
    if (roster->options.open) {
        tutti__roster_view_connected(roster, rank);
        return;
    }
    if (!tutti__stand_in_awaited(roster) || rank != roster->stand_in || roster->connected)
        return;
    roster->connected = true;
    roster->answer_ns += 2 * patience(roster);
}

/* It lives, however long it may take to let us in with all the others. */
void tutti__roster_stand_in_heard(tutti_roster *roster, int rank)
{
    if (roster->options.open) {
        tutti__roster_view_heard(roster, rank);
        return;
    }
    if (tutti__stand_in_awaited(roster) && rank == roster->stand_in)
        roster->answer_ns = roster->until_ns;
}

/* Where a machine takes no call, none of its ranks will. */
static void pass_over_machine(tutti_roster *roster, int rank)
{
    uint64_t machine = roster->members[rank].peer.machine;
    if (machine == roster->members[roster->options.rank].peer.machine)
        return;
    for (int r = 1; r < roster->options.size; r++)
        if (roster->members[r].peer.machine == machine)
            roster->members[r].passed_over = true;
}

static void pass_over(tutti_roster *roster, int64_t now_ns, int mute)
{
    if (!roster->connected)
        pass_over_machine(roster, mute);
    roster->ways.drop(roster->ways.context, mute);
    roster->members[mute].called = false;
    roster->members[mute].passed_over = roster->hurried = true;
    seek_next(roster, now_ns);
}

/* Those that have not come hear rank 0 still, or have not noticed that they do not. */
static void roster_stand_in_gather(tutti_roster *roster)
{
    roster->gather_ns = 0;
    for (int r = roster->options.rank + 1; r < roster->options.size; r++) {
        const tutti_roster_member *member = &roster->members[r];
        if (!member->beside && !member->reported && !member->passed_over)
            roster_stand_in_call(roster, r);
    }
}

bool tutti__stand_in_gathers(const tutti_roster *roster)
{
    return is_stand_in(roster) && roster->gather_ns != 0;
}

void tutti__stand_in_tick(tutti_roster *roster, int64_t now_ns)
{
    if (tutti__stand_in_awaited(roster) && now_ns >= roster->answer_ns && now_ns < roster->until_ns)
        pass_over(roster, now_ns, roster->stand_in);
    if (tutti__stand_in_gathers(roster) && now_ns >= roster->gather_ns)
        roster_stand_in_gather(roster);
}

void tutti__roster_stand_in_reached(tutti_roster *roster, int64_t now_ns, int rank)
{
    if (roster->options.open) {
        tutti__roster_view_reached(roster, now_ns, rank);
        return;
    }
    tutti_roster_member *member = &roster->members[rank];
    bool asks = is_asker(roster) && rank == roster->stand_in;
    if (!member->called || !(asks || is_stand_in(roster))) {
        roster->ways.drop(roster->ways.context, rank);
        return;
    }
    member->beside = true;
    member->heard_ns = now_ns;
    if (asks)
        roster_stand_in_report(roster, rank);
}

void tutti__roster_stand_in_taken(tutti_roster *roster, int rank)
{
    roster->members[rank].called = false;
}

tutti_refusal tutti__roster_may_stand_in(const tutti_roster *roster, int rank)
{
    if (roster->options.open)
        return tutti__roster_view_may_follow(roster, rank);
    bool judged = roster->phase == TUTTI_PHASE_FAILED && roster->verdict.why != TUTTI_FAILURE_NONE;
    const tutti_roster_member *member = &roster->members[rank];
    if (member->beside || (member->called && rank < roster->options.rank)) /* we call it, too */
        return TUTTI_REFUSAL_TAKEN;
    return judged || tutti__roster_watching(roster) || roster->phase == TUTTI_PHASE_ASKING
               ? TUTTI_REFUSAL_NONE
               : TUTTI_REFUSAL_ENDING;
}

/* Rank 0, which is heard here, may not know yet that `rank` has given it up. */
static void tell_zero(tutti_roster *roster, int64_t now_ns, int rank)
{
    tutti_cluster_message m = {.type = TUTTI_MESSAGE_SUSPECT};
    m.as.suspect.rank = (uint32_t)rank;
    m.as.suspect.why = TUTTI_FAILURE_SUSPECTED;
    snprintf(m.as.suspect.reason, sizeof m.as.suspect.reason,
             "rank %d says: it has lost its connection to rank 0", roster->options.rank);
    tutti__roster_appeal(roster, now_ns, &m);
    if (roster->appeal_ns > now_ns + 250 * (int64_t)MILLISECOND) /* the other has waited before */
        roster->appeal_ns = now_ns + 250 * (int64_t)MILLISECOND;
}

void tutti__roster_stand_in_for(tutti_roster *roster, int64_t now_ns, int rank)
{
    if (roster->options.open) {
        tutti__roster_view_followed(roster, now_ns, rank);
        return;
    }
    roster->members[rank].beside = true;
    roster->members[rank].called = roster->members[rank].passed_over = false;
    if (roster->phase == TUTTI_PHASE_FAILED)
        tutti__roster_send_verdict(roster, rank);
    else if (tutti__roster_watching(roster) && roster->deciding)
        roster->ways.send(roster->ways.context, rank,
                          &(tutti_cluster_message){.type = TUTTI_MESSAGE_POLL});
    else
        tell_zero(roster, now_ns, rank);
}

/* What one that asks had told rank 0 in vain. */
static void take_plea(tutti_roster *roster, int64_t now_ns, const tutti_cluster_message *message)
{
    if ((int)message->as.suspect.rank >= roster->options.size)
        return;
    if (roster->phase == TUTTI_PHASE_ASKING)
        tutti__roster_charge(roster, now_ns, message);
    else
        tutti__roster_appeal(roster, now_ns, message);
}

/* Whether we wait for what it says. */
static bool is_asked(const tutti_roster *roster, int rank)
{
    return (is_asker(roster) && rank == roster->stand_in) ||
           (is_stand_in(roster) && roster->members[rank].called);
}

void tutti__stand_in_receive(tutti_roster *roster, int64_t now_ns, int from,
                             const tutti_cluster_message *message)
{
    tutti_roster_member *member = &roster->members[from];
    if (message->type == TUTTI_MESSAGE_REPORT) {
        member->where = message->as.report.where;
        member->reported = true;
    } else if (message->type == TUTTI_MESSAGE_SUSPECT)
        take_plea(roster, now_ns, message);
    else if (message->type == TUTTI_MESSAGE_VERDICT && is_asked(roster, from))
        tutti__roster_take_verdict(roster, message);
    else if (message->type == TUTTI_MESSAGE_POLL && is_asked(roster, from)) {
        roster->patient = true;
        roster->until_ns = now_ns + 800 * (int64_t)MILLISECOND;
        tutti__stand_in_poll(roster);
    }
}

bool tutti__stand_in_complete(const tutti_roster *roster)
{
    if (roster->stand_in != roster->options.rank || roster->patient)
        return false;
    for (int r = 1; r < roster->options.size; r++) {
        const tutti_roster_member *member = &roster->members[r];
        if (r != roster->options.rank && !member->passed_over && !member->reported)
            return false;
    }
    return true;
}

/* Of rank 0, too, its last word is taken, as rank 0 takes that of others. */
void tutti__stand_in_complement(const tutti_roster *roster, tutti_verdict *verdict)
{
    tutti_ranks none = {0}, absent = {0};
    int own = roster->options.rank;
    if (own == 0 || roster->stand_in != own)
        return;
    for (int r = 0; r < roster->options.size; r++) {
        bool known = r == 0 || r == own || roster->members[r].reported || roster->members[r].ended;
        if (known && !tutti__ranks_have(&verdict->arrived, r))
            tutti__ranks_add(&absent, r);
    }
    tutti__verdict_add(verdict, roster->options.size, &none, &absent);
}

void tutti__stand_in_poll(tutti_roster *roster)
{
    tutti_cluster_message m = {.type = TUTTI_MESSAGE_POLL};
    for (int r = 1; r < roster->options.size; r++)
        if (roster->members[r].beside && !is_asked(roster, r))
            roster->ways.send(roster->ways.context, r, &m);
}

/* Those that have asked end their links, and are waited for, as rank 0 does; we do so for others.
 */
void tutti__stand_in_tell(tutti_roster *roster)
{
    for (int r = 1; r < roster->options.size; r++) {
        tutti_roster_member *member = &roster->members[r];
        bool asked = r == roster->stand_in;
        if (member->beside && !asked)
            tutti__roster_send_verdict(roster, r);
        if (member->called || (member->beside && asked)) {
            member->beside = member->called = false;
            roster->ways.drop(roster->ways.context, r);
        }
    }
}
