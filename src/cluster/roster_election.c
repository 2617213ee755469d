/* roster_election.c: another keeper for an open roster.
 *
 * Who has lost the keeper calls it again, to join: it may be only the link that has failed. If
 * nobody listens there, or nothing comes, it calls the ranks below its own, one after the other;
 * one that has lost the keeper too lets it in, and gets its view (the newest of all counts). One
 * that has a keeper says which, and that one is asked to join. Whoever finds no lower rank calls
 * all others itself, 50 ms later, and becomes the keeper when all have come that may, or after 600
 * ms with those that have. */
#include <stdio.h>
#include <string.h>

#include "cluster/roster_view.h"

enum { MILLISECOND = 1000000 };

static bool is_candidate(const tutti_roster *roster)
{
    return roster->phase == TUTTI_PHASE_ASKING && roster->stand_in == roster->options.rank;
}

/* Who is there answers at once; its machine takes the call for it, if it is there. */
static int64_t patience(const tutti_roster *roster)
{
    return (roster->hurried ? 25 : 100) * (int64_t)MILLISECOND;
}

static bool call(tutti_roster *roster, int rank, uint32_t purpose)
{
    tutti_roster_member *member = &roster->members[rank];
    tutti_calling begun = TUTTI_CALL_UNREACHED;
    if (roster->ways.call != NULL)
        begun = roster->ways.call(roster->ways.context, rank, purpose);
    member->called = begun == TUTTI_CALL_BEGUN;
    member->passed_over = !member->called;
    member->ended = member->ended || begun == TUTTI_CALL_REFUSED;
    return member->called;
}

static void hang_up(tutti_roster *roster, int rank)
{
    tutti_roster_member *member = &roster->members[rank];
    if (member->called || member->beside)
        roster->ways.drop(roster->ways.context, rank);
    member->called = member->beside = false;
}

void tutti__election_end(tutti_roster *roster)
{
    for (int r = 0; r < roster->options.size; r++) {
        if (r != roster->keeper)
            hang_up(roster, r);
        roster->members[r].reported = roster->members[r].passed_over = false;
    }
    roster->stand_in = -1;
    roster->retry_ns = roster->gather_ns = 0;
    roster->hurried = roster->connected = false;
}

static void send_report(const tutti_roster *roster, int to)
{
    for (int r = 0; r < roster->options.size; r++)
        if (tutti__roster_view_has(roster, r)) {
            tutti_cluster_message peer = tutti__roster_peer_message(roster, r);
            if (r == roster->options.rank) /* as the other one sees us */
                peer.as.peer.address[0] = '\0';
            roster->ways.send(roster->ways.context, to, &peer);
        }
    tutti_cluster_message view = tutti__roster_view_message(roster);
    roster->ways.send(roster->ways.context, to, &view);
}

/* Nobody was found: again in a while. */
static void give_up(tutti_roster *roster, int64_t now_ns)
{
    for (int r = 0; r < roster->options.size; r++)
        hang_up(roster, r);
    roster->cut = true;
    if (roster->leaves) /* nobody is there to hear it */
        roster->phase = TUTTI_PHASE_LEFT;
    roster->stand_in = -1;
    roster->gather_ns = 0;
    roster->retry_ns = now_ns + 500 * (int64_t)MILLISECOND;
}

/* Who is not in the view asks all it knows of, to hear who keeps the roster. */
static bool is_asked(const tutti_roster *roster, int rank)
{
    const tutti_roster_member *member = &roster->members[rank];
    if (rank == roster->options.rank || member->passed_over || member->ended || !member->known)
        return false;
    return roster->outside || (tutti__roster_view_has(roster, rank) && rank < roster->options.rank);
}

static void seek_next(tutti_roster *roster, int64_t now_ns)
{
    uint32_t purpose = roster->outside ? TUTTI_PURPOSE_JOIN : TUTTI_PURPOSE_STAND_IN;
    roster->connected = false;
    roster->answer_ns = now_ns + patience(roster);
    for (int r = 0; r < roster->options.size; r++) {
        tutti_roster_member *member = &roster->members[r];
        if (!is_asked(roster, r) || (!member->beside && !call(roster, r, purpose)))
            continue;
        roster->stand_in = r;
        if (member->beside) /* it has called us */
            send_report(roster, r);
        return;
    }
    if (roster->outside) {
        give_up(roster, now_ns);
        return;
    }
    roster->stand_in = roster->options.rank;
    roster->gather_ns = now_ns + 50 * (int64_t)MILLISECOND;
}

void tutti__election_begin(tutti_roster *roster, int64_t now_ns)
{
    int lost = roster->keeper;
    roster->phase = TUTTI_PHASE_ASKING;
    roster->retry_ns = roster->gather_ns = 0;
    roster->hurried = roster->connected = false;
    roster->until_ns = now_ns + 600 * (int64_t)MILLISECOND;
    roster->answer_ns = now_ns + patience(roster);
    for (int r = 0; r < roster->options.size; r++) {
        hang_up(roster, r);
        roster->members[r].passed_over = roster->members[r].reported = false;
    }
    roster->stand_in = lost;
    roster->recalls = true;
    if (lost < 0 || lost == roster->options.rank || roster->members[lost].ended ||
        !call(roster, lost, TUTTI_PURPOSE_JOIN))
        seek_next(roster, now_ns);
}

/* ---- calls ---- */

void tutti__roster_view_connected(tutti_roster *roster, int rank)
{
    if (roster->phase != TUTTI_PHASE_ASKING || rank != roster->stand_in || roster->connected)
        return;
    roster->connected = true;
    roster->answer_ns += 2 * patience(roster);
}

void tutti__roster_view_heard(tutti_roster *roster, int rank)
{
    if (roster->phase == TUTTI_PHASE_ASKING && rank == roster->stand_in &&
        roster->answer_ns < roster->until_ns)
        roster->answer_ns = roster->until_ns;
}

/* A lower rank is told what we know; a higher one tells us. */
void tutti__roster_view_reached(tutti_roster *roster, int64_t now_ns, int rank)
{
    tutti_roster_member *member = &roster->members[rank];
    if (!member->called || roster->phase != TUTTI_PHASE_ASKING) {
        roster->ways.drop(roster->ways.context, rank);
        member->called = false;
        return;
    }
    member->called = false;
    member->beside = true;
    member->heard_ns = now_ns;
    roster->answer_ns = now_ns + 800 * (int64_t)MILLISECOND;
    snprintf(roster->reached, sizeof roster->reached, "%s", member->peer.address);
    bool joins = rank == roster->keeper && roster->recalls;
    if (!roster->outside && !joins && rank < roster->options.rank)
        send_report(roster, rank);
}

void tutti__roster_view_ended(tutti_roster *roster, int rank)
{
    roster->members[rank].ended = true;
}

static void join_there(tutti_roster *roster, int64_t now_ns, int keeper, const char *address,
                       int port)
{
    tutti_peer *peer = &roster->members[keeper].peer;
    if (address[0] != '\0')
        snprintf(peer->address, sizeof peer->address, "%s", address);
    peer->port = port;
    roster->members[keeper].known = true;
    roster->members[keeper].ended = false;
    roster->stand_in = keeper;
    roster->connected = false;
    roster->answer_ns = now_ns + patience(roster);
    if (!call(roster, keeper, TUTTI_PURPOSE_JOIN))
        seek_next(roster, now_ns);
}

/* It has a keeper: that may be the one which we have lost, and do not reach. */
void tutti__roster_view_refused(tutti_roster *roster, int64_t now_ns, int rank, const char *keeper)
{
    tutti_roster_member *member = &roster->members[rank];
    char address[64];
    int other = 0, port = 0;
    bool asked = rank == roster->stand_in, called = member->called;
    member->called = false;
    member->passed_over = true;
    if (roster->phase != TUTTI_PHASE_ASKING || !called)
        return;
    member->ended = member->ended || strcmp(keeper, "new") == 0;
    if (rank == roster->keeper && roster->recalls && *keeper == '\0')
        member->passed_over = false; /* it looks for one too */
    roster->recalls = false;
    bool named = tutti__roster_view_keeper_read(keeper, roster->options.size, &other, address,
                                                sizeof address, &port);
    /* What is near to it is near to us only where it is on our own machine. */
    if (named && (strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0 || !*address))
        snprintf(address, sizeof address, "%s", member->peer.address);
    bool tried = roster->members[other].passed_over && other != rank;
    if (named && other != roster->options.rank && !tried && !roster->members[other].called)
        join_there(roster, now_ns, other, address, port);
    else if (asked)
        seek_next(roster, now_ns);
}

void tutti__election_miss(tutti_roster *roster, int64_t now_ns, int rank)
{
    tutti_roster_member *member = &roster->members[rank];
    bool asked = rank == roster->stand_in;
    if (!member->called && !member->beside)
        return;
    member->called = member->beside = member->reported = false;
    member->passed_over = true;
    if (roster->phase == TUTTI_PHASE_ASKING && asked)
        seek_next(roster, now_ns);
}

tutti_refusal tutti__roster_view_may_follow(const tutti_roster *roster, int rank)
{
    const tutti_roster_member *member = &roster->members[rank];
    if (roster->phase != TUTTI_PHASE_ASKING || roster->outside ||
        !tutti__roster_view_has(roster, rank))
        return TUTTI_REFUSAL_ELSEWHERE;
    if (member->beside || (member->called && rank < roster->options.rank)) /* we call it, too */
        return TUTTI_REFUSAL_TAKEN;
    return TUTTI_REFUSAL_NONE;
}

void tutti__roster_view_followed(tutti_roster *roster, int64_t now_ns, int rank)
{
    tutti_roster_member *member = &roster->members[rank];
    member->beside = true;
    member->called = member->passed_over = member->reported = false;
    member->heard_ns = now_ns;
    if (rank < roster->options.rank)
        send_report(roster, rank);
}

/* Its own address is that by which we know it. */
void tutti__election_report(tutti_roster *roster, int64_t now_ns, int from,
                            const tutti_cluster_message *view)
{
    if (roster->phase != TUTTI_PHASE_ASKING || !roster->members[from].beside)
        return;
    if (view->as.view.number > roster->view) {
        tutti__roster_view_take(roster, view);
        roster->outside = !tutti__roster_view_has(roster, roster->options.rank);
    }
    roster->members[from].reported = true;
    if (roster->outside)
        give_up(roster, now_ns);
    else
        tutti__election_tick(roster, now_ns);
}

/* ---- the candidate ---- */

static void call_all(tutti_roster *roster)
{
    roster->gather_ns = 0;
    for (int r = roster->options.rank + 1; r < roster->options.size; r++) {
        const tutti_roster_member *member = &roster->members[r];
        if (tutti__roster_view_has(roster, r) && !member->beside && !member->ended &&
            !member->called)
            call(roster, r, TUTTI_PURPOSE_STAND_IN);
    }
}

static void take_over(tutti_roster *roster, int64_t now_ns)
{
    int own = roster->options.rank;
    for (int r = 0; r < roster->options.size; r++) {
        tutti_roster_member *member = &roster->members[r];
        bool comes = member->reported && member->beside;
        if (!comes && r != own)
            hang_up(roster, r);
        member->linked = comes;
        if (comes)
            member->heard_ns = now_ns;
        member->beside = false;
    }
    int64_t away = (now_ns - roster->members[roster->keeper].heard_ns) / MILLISECOND;
    bool left = roster->members[roster->keeper].left;
    int lost = roster->keeper;
    /* The old keeper may have made views that nobody of us has heard of. */
    enum { THOUSAND = 1000 };
    roster->view = (roster->view / THOUSAND + 1) * THOUSAND;
    roster->keeper = own;
    roster->phase = TUTTI_PHASE_RUNNING;
    roster->cut = false;
    tutti__election_end(roster);
    for (int r = 0; r < roster->options.size; r++) {
        tutti_roster_member *member = &roster->members[r];
        if (!tutti__roster_view_has(roster, r) || r == own || member->linked)
            continue;
        if (r == lost && left) {
            member->incarnation = 0;
            continue;
        }
        tutti__roster_view_lose(roster, r,
                                member->ended ? TUTTI_FAILURE_CLOSED : TUTTI_FAILURE_SILENT,
                                r == lost ? away : 0, "");
    }
    roster->view++;
    for (int r = 0; r < roster->options.size; r++)
        for (int about = 0; roster->members[r].linked && about < roster->options.size; about++)
            if (tutti__roster_view_has(roster, about))
                tutti__roster_view_tell_of(roster, r, about);
    tutti__roster_view_tell(roster);
    if (roster->leaves)
        tutti__roster_view_leave(roster, now_ns);
}

/* More than half of those that may be there. */
static bool has_quorum(const tutti_roster *roster)
{
    int come = 1, all = 1;
    for (int r = 0; r < roster->options.size; r++) {
        const tutti_roster_member *member = &roster->members[r];
        if (r == roster->options.rank || !tutti__roster_view_has(roster, r) || member->ended)
            continue;
        all++;
        come += member->reported && member->beside;
    }
    return 2 * come > all;
}

static bool is_complete(const tutti_roster *roster)
{
    for (int r = 0; r < roster->options.size; r++) {
        const tutti_roster_member *member = &roster->members[r];
        if (r != roster->options.rank && tutti__roster_view_has(roster, r) && !member->ended &&
            !member->passed_over && !(member->reported && member->beside))
            return false;
    }
    return true;
}

static void judge(tutti_roster *roster, int64_t now_ns)
{
    if (!is_complete(roster) && now_ns < roster->until_ns)
        return;
    if (has_quorum(roster))
        take_over(roster, now_ns);
    else
        give_up(roster, now_ns);
}

void tutti__election_tick(tutti_roster *roster, int64_t now_ns)
{
    if (roster->retry_ns != 0) {
        if (now_ns >= roster->retry_ns)
            tutti__election_begin(roster, now_ns);
        return;
    }
    if (is_candidate(roster)) {
        if (roster->gather_ns != 0 && now_ns >= roster->gather_ns)
            call_all(roster);
        judge(roster, now_ns);
        return;
    }
    if (roster->stand_in < 0) {
        give_up(roster, now_ns);
        return;
    }
    if (now_ns < roster->answer_ns)
        return;
    int mute = roster->stand_in;
    hang_up(roster, mute);
    roster->members[mute].passed_over = roster->hurried = true;
    if (roster->until_ns < now_ns + 300 * (int64_t)MILLISECOND)
        roster->until_ns = now_ns + 300 * (int64_t)MILLISECOND;
    seek_next(roster, now_ns);
}

int64_t tutti__election_next(const tutti_roster *roster)
{
    if (roster->retry_ns != 0)
        return roster->retry_ns;
    if (!is_candidate(roster))
        return roster->answer_ns;
    return roster->gather_ns != 0 && roster->gather_ns < roster->until_ns ? roster->gather_ns
                                                                          : roster->until_ns;
}
