/* roster_stand_in.c: who asks where everybody is when rank 0 is the one that fails.
 *
 * The lowest rank that is left stands in for it. Whoever loses rank 0 connects to that one, says
 * where it is, and waits for the verdict. One that has ended, or has said nothing after 200 ms, is
 * passed over, and after 100 ms all ranks of a machine that is not there at all. Who finds itself
 * the lowest waits for all others, and where a launcher will say how rank 0 ended for that, until
 * 600 ms after it has lost rank 0; those that ask decide after 800 ms by what they know themselves,
 * so that everybody does within a second.
 *
 * One that is asked while it still hears rank 0 tells rank 0, and waits: either rank 0 falls silent
 * here too, or it was only the link between the two that failed, and rank 0's verdict on that is
 * handed on. */
#include "cluster/roster_stand_in.h"

#include <stdio.h>

enum { MILLISECOND = 1000000 };

static bool is_asker(const tutti_roster *roster)
{
    return roster->phase == TUTTI_PHASE_ASKING && roster->stand_in != 0 &&
           roster->stand_in != roster->options.rank;
}

static bool call(const tutti_roster *roster, int rank)
{
    return roster->ways.call != NULL && roster->ways.call(roster->ways.context, rank);
}

static void seek_next(tutti_roster *roster, int64_t now_ns)
{
    int rank = 1;
    while (rank < roster->options.rank &&
           (roster->members[rank].passed_over || !call(roster, rank)))
        roster->members[rank++].passed_over = true;
    roster->stand_in = rank;
    roster->connected = false;
    roster->answer_ns = now_ns + 100 * (int64_t)MILLISECOND;
    if (rank == roster->options.rank)
        roster->until_ns -= 200 * (int64_t)MILLISECOND;
}

/* Rank 0 has fallen silent, and its link stands: half-open, so that rank 0 still hears us, and
 * should not, since others then hear of it from rank 0; or rank 0 sleeps, and finds out when it
 * wakes why nobody is there. */
static void give_up_zero(tutti_roster *roster, int64_t now_ns)
{
    tutti_roster_member *zero = &roster->members[0];
    tutti_message m = {.type = TUTTI_MESSAGE_SUSPECT};
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
    seek_next(roster, now_ns);
}

void tutti__stand_in_miss(tutti_roster *roster, int64_t now_ns, int rank)
{
    tutti_roster_member *member = &roster->members[rank];
    member->beside = false;
    if (is_asker(roster) && rank == roster->stand_in) {
        member->passed_over = true;
        seek_next(roster, now_ns);
    }
}

bool tutti__stand_in_awaited(const tutti_roster *roster)
{
    return is_asker(roster) && !roster->members[roster->stand_in].beside;
}

void tutti__roster_stand_in_connected(tutti_roster *roster, int rank)
{
    if (!tutti__stand_in_awaited(roster) || rank != roster->stand_in || roster->connected)
        return;
    roster->connected = true;
    roster->answer_ns += 100 * (int64_t)MILLISECOND;
}

/* It lives, however long it may take to let us in with all the others. */
void tutti__roster_stand_in_heard(tutti_roster *roster, int rank)
{
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

void tutti__stand_in_tick(tutti_roster *roster, int64_t now_ns)
{
    int mute = roster->stand_in;
    if (!tutti__stand_in_awaited(roster) || now_ns < roster->answer_ns ||
        now_ns >= roster->until_ns)
        return;
    if (!roster->connected)
        pass_over_machine(roster, mute);
    roster->ways.drop(roster->ways.context, mute);
    tutti__stand_in_miss(roster, now_ns, mute);
}

void tutti__roster_stand_in_reached(tutti_roster *roster, int64_t now_ns, int rank)
{
    tutti_message m = {.type = TUTTI_MESSAGE_REPORT};
    if (!is_asker(roster) || rank != roster->stand_in) {
        roster->ways.drop(roster->ways.context, rank);
        return;
    }
    roster->members[rank].beside = true;
    roster->members[rank].heard_ns = now_ns;
    roster->ways.where(roster->ways.context, &m.as.report.where);
    roster->ways.send(roster->ways.context, rank, &m);
}

tutti_refusal tutti__roster_may_stand_in(const tutti_roster *roster, int rank)
{
    bool judged = roster->phase == TUTTI_PHASE_FAILED && roster->verdict.why != TUTTI_FAILURE_NONE;
    if (roster->members[rank].beside)
        return TUTTI_REFUSAL_TAKEN;
    return judged || tutti__roster_watching(roster) || roster->phase == TUTTI_PHASE_ASKING
               ? TUTTI_REFUSAL_NONE
               : TUTTI_REFUSAL_ENDING;
}

/* Rank 0, which is heard here, may not know yet that `rank` has given it up. */
static void tell_zero(tutti_roster *roster, int rank)
{
    tutti_message m = {.type = TUTTI_MESSAGE_SUSPECT};
    m.as.suspect.rank = (uint32_t)rank;
    m.as.suspect.why = TUTTI_FAILURE_SUSPECTED;
    snprintf(m.as.suspect.reason, sizeof m.as.suspect.reason,
             "rank %d says: it has lost its connection to rank 0", roster->options.rank);
    tutti__roster_send(roster, 0, &m);
}

void tutti__roster_stand_in_for(tutti_roster *roster, int rank)
{
    roster->members[rank].beside = true;
    if (roster->phase == TUTTI_PHASE_FAILED)
        tutti__roster_send_verdict(roster, rank);
    else
        tell_zero(roster, rank);
}

void tutti__stand_in_receive(tutti_roster *roster, int from, const tutti_message *message)
{
    tutti_roster_member *member = &roster->members[from];
    if (message->type == TUTTI_MESSAGE_REPORT) {
        member->where = message->as.report.where;
        member->reported = true;
    } else if (message->type == TUTTI_MESSAGE_VERDICT && is_asker(roster) &&
               from == roster->stand_in)
        tutti__roster_take_verdict(roster, message);
}

bool tutti__stand_in_complete(const tutti_roster *roster)
{
    if (roster->stand_in != roster->options.rank)
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
        bool known = r == 0 || r == own || roster->members[r].reported;
        if (known && !tutti__ranks_have(&verdict->arrived, r))
            tutti__ranks_add(&absent, r);
    }
    tutti__verdict_add(verdict, roster->options.size, &none, &absent);
}

void tutti__stand_in_tell(tutti_roster *roster)
{
    tutti_roster_member *asked = &roster->members[roster->stand_in];
    if (asked->beside) { /* it waits until we have ended the link, as rank 0 does */
        asked->beside = false;
        roster->ways.drop(roster->ways.context, roster->stand_in);
    }
    for (int r = 1; r < roster->options.size; r++)
        if (roster->members[r].beside)
            tutti__roster_send_verdict(roster, r);
}
