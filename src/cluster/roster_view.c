/* roster_view.c: the view of an open roster: who joins, leaves and is lost, at its keeper and at
 * the others. roster_election.c finds another keeper. */
#include "cluster/roster_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MILLISECOND = 1000000 };

static bool is_keeper(const tutti_roster *roster)
{
    return roster->keeper == roster->options.rank;
}

int tutti__roster_view_count(const tutti_roster *roster)
{
    int count = 0;
    for (int r = 0; r < roster->options.size; r++)
        count += tutti__roster_view_has(roster, r);
    return count;
}

/* ---- telling ---- */

tutti_cluster_message tutti__roster_view_message(const tutti_roster *roster)
{
    tutti_cluster_message m = {.type = TUTTI_MESSAGE_VIEW};
    m.as.view.number = roster->view;
    m.as.view.kept = is_keeper(roster) && roster->phase != TUTTI_PHASE_ASKING;
    m.as.view.cut = roster->cut;
    for (int r = 0; r < roster->options.size; r++) {
        if (tutti__roster_view_has(roster, r))
            tutti__ranks_add(&m.as.view.members, r);
        if (roster->members[r].left)
            tutti__ranks_add(&m.as.view.left, r);
    }
    return m;
}

void tutti__roster_view_tell(tutti_roster *roster)
{
    tutti_cluster_message m = tutti__roster_view_message(roster);
    tutti__roster_send_all(roster, &m);
}

void tutti__roster_view_tell_of(tutti_roster *roster, int to, int about)
{
    tutti_cluster_message m = tutti__roster_peer_message(roster, about);
    /* On our own machine: others reach it where they reach us. */
    if (strncmp(m.as.peer.address, "127.", 4) == 0 || strcmp(m.as.peer.address, "::1") == 0)
        m.as.peer.address[0] = '\0';
    roster->ways.send(roster->ways.context, to, &m);
}

void tutti__roster_view_keeper_text(const tutti_roster *roster, char *ret_text, size_t size)
{
    snprintf(ret_text, size, "%s", roster->phase == TUTTI_PHASE_GATHERING ? "new" : "");
    if (roster->phase != TUTTI_PHASE_RUNNING || roster->keeper < 0)
        return;
    const tutti_peer *peer = &roster->members[roster->keeper].peer;
    snprintf(ret_text, size, strchr(peer->address, ':') ? "%d [%s]:%d" : "%d %s:%d", roster->keeper,
             peer->address, peer->port);
}

bool tutti__roster_view_keeper_read(const char *text, int size, int *ret_rank, char *ret_address,
                                    size_t room, int *ret_port)
{
    char *end;
    long rank = strtol(text, &end, 10);
    const char *colon = strrchr(text, ':');
    if (end == text || *end != ' ' || colon == NULL || colon < end || rank < 0 || rank >= size)
        return false;
    const char *at = end + 1, *stop = colon;
    if (*at == '[' && stop > at && stop[-1] == ']')
        at++, stop--;
    long port = strtol(colon + 1, &end, 10);
    if (*end != '\0' || port < 1 || port > 65535 || (size_t)(stop - at) >= room)
        return false;
    *ret_rank = (int)rank;
    *ret_port = (int)port;
    snprintf(ret_address, room, "%.*s", (int)(stop - at), at);
    return true;
}

/* ---- the keeper ---- */

void tutti__roster_view_found(tutti_roster *roster, int64_t now_ns)
{
    tutti_roster_member *own = &roster->members[roster->options.rank];
    roster->keeper = roster->options.rank;
    roster->view = own->incarnation = own->told = 1;
    roster->phase = TUTTI_PHASE_RUNNING;
    roster->met = true;
    roster->ticked_ns = now_ns;
}

/* One that has been heard a moment ago is there: the newcomer is another with its name, or comes
 * again when it has been missed. */
tutti_refusal tutti__roster_view_may_join(const tutti_roster *roster, int rank)
{
    const tutti_roster_member *member = &roster->members[rank];
    if (roster->phase != TUTTI_PHASE_RUNNING || !is_keeper(roster))
        return TUTTI_REFUSAL_ELSEWHERE;
    bool heard = roster->ticked_ns - member->heard_ns <= roster->options.silence_ns * 2 / 5;
    return member->linked && heard ? TUTTI_REFUSAL_TAKEN : TUTTI_REFUSAL_NONE;
}

void tutti__roster_view_make_room(tutti_roster *roster, int64_t now_ns, int rank)
{
    const tutti_roster_member *member = &roster->members[rank];
    if (tutti__roster_view_has(roster, rank))
        tutti__roster_view_lose(roster, rank, TUTTI_FAILURE_SILENT,
                                (now_ns - member->heard_ns) / MILLISECOND,
                                "another process has come in its place");
}

void tutti__roster_view_admit(tutti_roster *roster, int rank)
{
    tutti_roster_member *member = &roster->members[rank];
    member->left = member->ended = false;
    member->beat_sent = 0;
    member->told = member->incarnation = ++roster->view;
    for (int r = 0; r < roster->options.size; r++)
        if (tutti__roster_view_has(roster, r))
            tutti__roster_view_tell_of(roster, rank, r);
    tutti_cluster_message start = tutti__roster_start_message(roster);
    tutti__roster_send(roster, rank, &start);
    for (int r = 0; r < roster->options.size; r++)
        if (r != rank && roster->members[r].linked)
            tutti__roster_view_tell_of(roster, r, rank);
    tutti__roster_view_tell(roster);
}

tutti_refusal tutti__roster_view_may_open(const tutti_roster *roster, int rank,
                                          uint64_t incarnation)
{
    if (incarnation == 0 || incarnation > roster->view)
        return TUTTI_REFUSAL_EARLY;
    return roster->members[rank].incarnation == incarnation ? TUTTI_REFUSAL_NONE
                                                            : TUTTI_REFUSAL_UNMET;
}

/* How a rank was lost, to all who are linked, itself too. */
static void tell_loss(tutti_roster *roster, int rank, tutti_failure why, int64_t detail)
{
    const tutti_roster_member *member = &roster->members[rank];
    tutti_cluster_message m = {.type = TUTTI_MESSAGE_VERDICT};
    m.as.verdict.rank = rank;
    m.as.verdict.why = why;
    m.as.verdict.detail = detail;
    m.as.verdict.pid = member->peer.pid;
    snprintf(m.as.verdict.host, sizeof m.as.verdict.host, "%s", member->peer.host);
    snprintf(m.as.verdict.text, sizeof m.as.verdict.text, "%s", member->gone);
    tutti__roster_send_all(roster, &m);
}

void tutti__roster_view_lose(tutti_roster *roster, int rank, tutti_failure why, int64_t detail,
                             const char *reason)
{
    tutti_roster_member *member = &roster->members[rank];
    tutti_verdict v = {.rank = rank, .why = why, .detail = detail, .pid = member->peer.pid};
    if (!tutti__roster_view_has(roster, rank))
        return;
    snprintf(v.host, sizeof v.host, "%s", member->peer.host);
    snprintf(v.reason, sizeof v.reason, "%s", reason);
    tutti__verdict_write(&v, roster->options.size, 0);
    snprintf(member->gone, sizeof member->gone, "%.*s", (int)tutti__verdict_failure_size(&v),
             v.text);
    tell_loss(roster, rank, why, detail);
    if (member->linked)
        roster->ways.drop(roster->ways.context, rank);
    member->linked = false;
    member->ended = why != TUTTI_FAILURE_SILENT;
    member->incarnation = 0;
    roster->view++;
    tutti__roster_view_tell(roster);
}

static void let_go(tutti_roster *roster, int rank)
{
    tutti_cluster_message m = {.type = TUTTI_MESSAGE_GOODBYE};
    tutti_roster_member *member = &roster->members[rank];
    tutti__roster_send(roster, rank, &m);
    roster->ways.drop(roster->ways.context, rank);
    member->left = true;
    member->gone[0] = '\0';
    member->linked = false;
    member->incarnation = 0;
    roster->view++;
    tutti__roster_view_tell(roster);
}

/* The keeper was away, or is cut off: the others may have another one by now. What they have said
 * of it may be lost with their links. */
static bool is_doubtful(const tutti_roster *roster, int64_t now_ns)
{
    return roster->cut || tutti__roster_was_away(roster, now_ns);
}

static void ask_others(tutti_roster *roster, int64_t now_ns)
{
    for (int r = 0; r < roster->options.size; r++) {
        if (roster->members[r].linked)
            roster->ways.drop(roster->ways.context, r);
        roster->members[r].linked = false;
    }
    tutti__election_begin(roster, now_ns);
}

/* Where it is not we who were away it is one rank only that does not hear us. */
static void hear_of_oneself(tutti_roster *roster, int64_t now_ns, int from)
{
    if (is_doubtful(roster, now_ns))
        ask_others(roster, now_ns);
    else
        tutti__roster_view_lose(roster, from, TUTTI_FAILURE_SUSPECTED, 0,
                                "it does not hear the rank that keeps the roster");
}

static void receive_at_keeper(tutti_roster *roster, int64_t now_ns, int from,
                              const tutti_cluster_message *m)
{
    if (m->type == TUTTI_MESSAGE_BEAT)
        tutti__roster_receive_beat(roster, now_ns, from, m);
    else if (m->type == TUTTI_MESSAGE_LEAVE)
        let_go(roster, from);
    else if (m->type == TUTTI_MESSAGE_SUSPECT && (int)m->as.suspect.rank == roster->options.rank)
        hear_of_oneself(roster, now_ns, from);
}

/* Ranks that have been silent for long. All that are cut off by one event fall silent within a beat
 * of each other: they are judged together. */
static void watch_all(tutti_roster *roster, int64_t now_ns)
{
    int64_t limit = roster->options.silence_ns;
    int mute = 0, count = tutti__roster_view_count(roster);
    bool over = false;
    for (int r = 0; r < roster->options.size; r++) {
        const tutti_roster_member *member = &roster->members[r];
        mute += member->linked && now_ns - member->heard_ns > limit * 3 / 5;
        over = over || (member->linked && now_ns - member->heard_ns > limit);
    }
    bool cut = 2 * (count - mute) < count && (over || roster->cut);
    if (cut != roster->cut) {
        roster->cut = cut;
        tutti__roster_view_tell(roster);
    }
    for (int r = 0; r < roster->options.size && over && !roster->cut; r++) {
        const tutti_roster_member *member = &roster->members[r];
        if (member->linked && now_ns - member->heard_ns > limit)
            tutti__roster_view_lose(roster, r, TUTTI_FAILURE_SILENT,
                                    (now_ns - member->heard_ns) / MILLISECOND, "");
    }
}

/* ---- the others ---- */

void tutti__roster_view_linked(tutti_roster *roster, int64_t now_ns, int keeper,
                               const char *reached)
{
    roster->keeper = keeper;
    roster->members[keeper].linked = true;
    roster->members[keeper].heard_ns = now_ns;
    snprintf(roster->reached, sizeof roster->reached, "%s", reached);
}

/* Of a rank's incarnations the latest is the one that is there. */
static void take_peer(tutti_roster *roster, const tutti_cluster_message *m)
{
    int rank = (int)m->as.peer.rank;
    if (rank >= roster->options.size || m->as.peer.incarnation < roster->members[rank].told)
        return;
    tutti_roster_member *member = &roster->members[rank];
    if (m->as.peer.incarnation > member->told)
        member->ended = false;
    member->told = m->as.peer.incarnation;
    if (rank == roster->options.rank)
        return;
    tutti__roster_take_peer(roster, m);
    if (member->peer.address[0] == '\0')
        snprintf(member->peer.address, sizeof member->peer.address, "%s", roster->reached);
}

/* It may be another job at the same place: what was known of the first says nothing of it. */
static void take_start(tutti_roster *roster, const tutti_cluster_message *m)
{
    if (roster->job != m->as.start.job) {
        roster->view = 0;
        roster->phase = TUTTI_PHASE_GATHERING;
    }
    roster->job = m->as.start.job;
    memcpy(roster->token, m->as.start.token, sizeof roster->token);
    roster->met = true;
}

void tutti__roster_view_take(tutti_roster *roster, const tutti_cluster_message *m)
{
    roster->view = m->as.view.number;
    for (int r = 0; r < roster->options.size; r++) {
        tutti_roster_member *member = &roster->members[r];
        bool in = tutti__ranks_have(&m->as.view.members, r);
        member->incarnation = in ? member->told : 0;
        member->left = tutti__ranks_have(&m->as.view.left, r);
        if (member->left)
            member->gone[0] = '\0';
    }
}

static bool is_known(const tutti_roster *roster, const tutti_cluster_message *m)
{
    for (int r = 0; r < roster->options.size; r++)
        if (tutti__ranks_have(&m->as.view.members, r) && roster->members[r].told == 0)
            return false;
    return true;
}

static void say_leave(tutti_roster *roster)
{
    tutti_cluster_message m = {.type = TUTTI_MESSAGE_LEAVE};
    roster->phase = TUTTI_PHASE_LEAVING;
    tutti__roster_send(roster, roster->keeper, &m);
}

static void adopt(tutti_roster *roster, int64_t now_ns, int from, const tutti_cluster_message *m)
{
    bool said = roster->phase == TUTTI_PHASE_LEAVING;
    if (m->as.view.number == roster->view && roster->keeper == from && !roster->outside)
        roster->cut = m->as.view.cut;
    if (m->as.view.number <= roster->view)
        return;
    tutti__roster_view_take(roster, m);
    if (roster->keeper != from || roster->phase == TUTTI_PHASE_ASKING) {
        roster->members[from].linked = true;
        roster->members[from].beside = roster->members[from].called = false;
        roster->members[from].heard_ns = now_ns;
        roster->members[from].beat_sent = 0;
        roster->trip_ns = INT64_MAX;
        if (roster->members[from].peer.address[0] != '\0')
            snprintf(roster->reached, sizeof roster->reached, "%s",
                     roster->members[from].peer.address);
    }
    roster->keeper = from;
    tutti__election_end(roster);
    roster->cut = m->as.view.cut;
    roster->outside = false;
    roster->phase = said ? TUTTI_PHASE_LEAVING : TUTTI_PHASE_RUNNING;
    if (roster->leaves && !said)
        say_leave(roster);
}

static void receive_loss(tutti_roster *roster, const tutti_cluster_message *m)
{
    int rank = m->as.verdict.rank;
    if (rank < 0 || rank >= roster->options.size)
        return;
    snprintf(roster->members[rank].gone, sizeof roster->members[rank].gone, "%.390s",
             m->as.verdict.text);
    if (rank == roster->options.rank)
        roster->outside = true;
}

static void receive_goodbye(tutti_roster *roster, int from)
{
    roster->members[from].linked = false;
    roster->ways.drop(roster->ways.context, from);
    roster->phase = TUTTI_PHASE_LEFT;
}

/* The keeper leaves: another one is found at once. */
static void receive_leave(tutti_roster *roster, int64_t now_ns, int from)
{
    roster->members[from].linked = false;
    roster->ways.drop(roster->ways.context, from);
    roster->members[from].left = roster->members[from].ended = true;
    tutti__election_begin(roster, now_ns);
}

static void receive_refuse(tutti_roster *roster, int from, const tutti_cluster_message *m)
{
    roster->refusal = (tutti_refusal)m->as.refuse.reason;
    snprintf(roster->verdict.text, sizeof roster->verdict.text, "%s", m->as.refuse.text);
    roster->phase = TUTTI_PHASE_FAILED;
    roster->members[from].linked = false;
    roster->ways.drop(roster->ways.context, from);
}

void tutti__roster_view_receive(tutti_roster *roster, int64_t now_ns, int from,
                                const tutti_cluster_message *m)
{
    bool linked = roster->members[from].linked;
    if (linked && is_keeper(roster) && roster->phase != TUTTI_PHASE_ASKING) {
        receive_at_keeper(roster, now_ns, from, m);
        return;
    }
    bool calls = roster->members[from].beside || roster->members[from].called;
    if (!linked && !calls)
        return;
    if (m->type == TUTTI_MESSAGE_PEER)
        take_peer(roster, m);
    else if (m->type == TUTTI_MESSAGE_START)
        take_start(roster, m);
    else if (m->type == TUTTI_MESSAGE_VIEW && is_known(roster, m)) {
        if (m->as.view.kept == 1)
            adopt(roster, now_ns, from, m);
        else
            tutti__election_report(roster, now_ns, from, m);
    } else if (m->type == TUTTI_MESSAGE_VERDICT)
        receive_loss(roster, m);
    else if (m->type == TUTTI_MESSAGE_BEAT && linked)
        tutti__roster_receive_beat(roster, now_ns, from, m);
    else if (m->type == TUTTI_MESSAGE_GOODBYE && linked && roster->phase == TUTTI_PHASE_LEAVING)
        receive_goodbye(roster, from);
    else if (m->type == TUTTI_MESSAGE_LEAVE && linked && roster->phase != TUTTI_PHASE_ASKING)
        receive_leave(roster, now_ns, from);
    else if (m->type == TUTTI_MESSAGE_REFUSE && roster->phase == TUTTI_PHASE_GATHERING)
        receive_refuse(roster, from, m);
}

/* ---- both ---- */

void tutti__roster_view_closed(tutti_roster *roster, int64_t now_ns, int rank, const char *reason)
{
    tutti_roster_member *member = &roster->members[rank];
    bool linked = member->linked;
    member->linked = false;
    if (!linked) {
        tutti__election_miss(roster, now_ns, rank);
        return;
    }
    if (roster->phase == TUTTI_PHASE_GATHERING || roster->phase == TUTTI_PHASE_PARTING)
        return;
    if (is_keeper(roster) && roster->phase != TUTTI_PHASE_ASKING && is_doubtful(roster, now_ns))
        ask_others(roster, now_ns);
    else if (is_keeper(roster) && roster->phase != TUTTI_PHASE_ASKING)
        tutti__roster_view_lose(roster, rank, TUTTI_FAILURE_CLOSED, 0, reason);
    else
        tutti__election_begin(roster, now_ns);
}

/* A rank's process has ended, says the launcher. Where its link stands and it was heard since, that
 * is the next one, which has come sooner than the news of the first. */
void tutti__roster_view_hear_of(tutti_roster *roster, int64_t now_ns, int rank, tutti_failure why,
                                int64_t detail, const char *reason)
{
    tutti_roster_member *member = &roster->members[rank];
    bool watched = why == TUTTI_FAILURE_SIGNAL || why == TUTTI_FAILURE_EXIT;
    bool lively = member->linked && now_ns - member->heard_ns <= roster->options.silence_ns * 2 / 5;
    if (!watched || lively || rank == roster->options.rank || !tutti__roster_view_has(roster, rank))
        return; /* what a rank suspects of another it sees for itself; the keeper watches */
    member->ended = true;
    if (is_keeper(roster) && roster->phase == TUTTI_PHASE_RUNNING)
        tutti__roster_view_lose(roster, rank, why, detail, reason);
}

/* While there is no keeper it waits for one, so that all know who has left and who was lost. */
void tutti__roster_view_leave(tutti_roster *roster, int64_t now_ns)
{
    tutti_cluster_message m = {.type = TUTTI_MESSAGE_LEAVE};
    roster->leaves = true;
    if (roster->phase == TUTTI_PHASE_RUNNING && !is_keeper(roster)) {
        say_leave(roster);
    } else if (roster->phase == TUTTI_PHASE_RUNNING) { /* the others find a keeper then */
        roster->members[roster->options.rank].left = true;
        tutti__roster_send_all(roster, &m);
        roster->phase = TUTTI_PHASE_PARTING;
        roster->until_ns = now_ns + 2000 * (int64_t)MILLISECOND;
        tutti__roster_finish_parting(roster, now_ns);
    } else if (roster->phase == TUTTI_PHASE_GATHERING)
        roster->phase = TUTTI_PHASE_LEFT;
}

void tutti__roster_view_tick(tutti_roster *roster, int64_t now_ns)
{
    if (roster->phase == TUTTI_PHASE_PARTING)
        tutti__roster_finish_parting(roster, now_ns);
    else if (roster->phase == TUTTI_PHASE_ASKING)
        tutti__election_tick(roster, now_ns);
    else if (is_keeper(roster))
        watch_all(roster, now_ns);
    else if (tutti__roster_watching(roster) && roster->keeper >= 0 &&
             now_ns - roster->members[roster->keeper].heard_ns > roster->options.silence_ns) {
        /* It may hear us still, and should not: then it would keep us in its view. */
        tutti_cluster_message m = {.type = TUTTI_MESSAGE_SUSPECT};
        m.as.suspect.rank = (uint32_t)roster->keeper;
        m.as.suspect.why = TUTTI_FAILURE_SILENT;
        tutti__roster_send(roster, roster->keeper, &m);
        roster->members[roster->keeper].linked = false;
        roster->ways.drop(roster->ways.context, roster->keeper);
        tutti__election_begin(roster, now_ns);
    }
}

int64_t tutti__roster_view_next(const tutti_roster *roster)
{
    int64_t next = roster->beat_ns + roster->options.silence_ns / 5;
    if (roster->phase == TUTTI_PHASE_PARTING && roster->until_ns < next)
        next = roster->until_ns;
    if (roster->phase == TUTTI_PHASE_ASKING && tutti__election_next(roster) < next)
        next = tutti__election_next(roster);
    for (int r = 0; r < roster->options.size && tutti__roster_watching(roster); r++) {
        int64_t expires = roster->members[r].heard_ns + roster->options.silence_ns + 1;
        if (roster->members[r].linked && expires < next && !roster->cut)
            next = expires;
    }
    return next;
}
