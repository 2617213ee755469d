/* roster.c: gathering, exchanging, leaving. roster_beat.c hears who lives, roster_verdict.c decides
 * when something fails, roster_stand_in.c when that is rank 0. */
#include "cluster/roster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/roster_stand_in.h"
#include "cluster/roster_view.h"

enum { MILLISECOND = 1000000 };

static const int64_t parting_ns = INT64_C(2000000000);

tutti_status tutti__roster_init(tutti_roster *roster, const tutti_roster_options *options,
                                const tutti_roster_ways *ways, int64_t now_ns)
{
    *roster = (tutti_roster){.options = *options,
                             .ways = *ways,
                             .job = options->job,
                             .ticked_ns = now_ns,
                             .beat_ns = now_ns,
                             .trip_ns = INT64_MAX,
                             .keeper = options->open ? -1 : 0,
                             .verdict = {.rank = -1}};
    memcpy(roster->token, options->token, sizeof roster->token);
    roster->members = calloc((size_t)options->size, sizeof *roster->members);
    if (roster->members == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %d ranks", options->size);
    tutti_status status = TUTTI_OK;
    if (options->rank == 0)
        status = tutti__skews_create(options->size, &roster->skews);
    if (status != TUTTI_OK)
        tutti__roster_free(roster);
    else if (options->size == 1 && !options->open)
        roster->phase = TUTTI_PHASE_RUNNING;
    return status;
}

void tutti__roster_free(tutti_roster *roster)
{
    free(roster->members);
    tutti__skews_free(roster->skews);
    *roster = (tutti_roster){0};
}

void tutti__roster_self(tutti_roster *roster, const tutti_peer *peer)
{
    tutti_roster_member *own = &roster->members[roster->options.rank];
    own->peer = *peer;
    own->known = true;
}

void tutti__roster_send(tutti_roster *roster, int rank, const tutti_cluster_message *message)
{
    if (roster->members[rank].linked)
        roster->ways.send(roster->ways.context, rank, message);
}

void tutti__roster_send_all(tutti_roster *roster, const tutti_cluster_message *message)
{
    for (int r = 0; r < roster->options.size; r++)
        tutti__roster_send(roster, r, message);
}

/* ---- gathering ---- */

tutti_refusal tutti__roster_may_admit(const tutti_roster *roster, int rank)
{
    if (roster->options.open)
        return tutti__roster_view_may_join(roster, rank);
    if (roster->members[rank].linked)
        return TUTTI_REFUSAL_TAKEN;
    switch (roster->phase) {
    case TUTTI_PHASE_GATHERING:
        return TUTTI_REFUSAL_NONE;
    case TUTTI_PHASE_PARTING:
    case TUTTI_PHASE_LEFT: /* who was told sooner may already open the next one */
        return TUTTI_REFUSAL_ENDING;
    case TUTTI_PHASE_ASKING:
    case TUTTI_PHASE_FAILED: /* the same, unless it was rendezvous that failed */
        return roster->met ? TUTTI_REFUSAL_ENDING : TUTTI_REFUSAL_LATE;
    default:
        return TUTTI_REFUSAL_LATE;
    }
}

tutti_cluster_message tutti__roster_peer_message(const tutti_roster *roster, int rank)
{
    const tutti_peer *peer = &roster->members[rank].peer;
    tutti_cluster_message m = {.type = TUTTI_MESSAGE_PEER};
    m.as.peer.rank = (uint32_t)rank;
    m.as.peer.role = peer->role;
    m.as.peer.index = (uint32_t)peer->index;
    m.as.peer.port = (uint32_t)peer->port;
    m.as.peer.pid = peer->pid;
    m.as.peer.machine = peer->machine;
    m.as.peer.incarnation = roster->members[rank].told;
    snprintf(m.as.peer.host, sizeof m.as.peer.host, "%s", peer->host);
    snprintf(m.as.peer.address, sizeof m.as.peer.address, "%s", peer->address);
    return m;
}

tutti_cluster_message tutti__roster_start_message(const tutti_roster *roster)
{
    tutti_cluster_message m = {.type = TUTTI_MESSAGE_START};
    m.as.start.epoch = roster->options.epoch;
    m.as.start.size = (uint32_t)roster->options.size;
    m.as.start.job = roster->job;
    memcpy(m.as.start.token, roster->token, sizeof m.as.start.token);
    return m;
}

static void roster_start(tutti_roster *roster, int64_t now_ns)
{
    roster->phase = TUTTI_PHASE_RUNNING;
    roster->met = true;
    for (int r = 0; r < roster->options.size; r++) {
        tutti_cluster_message peer = tutti__roster_peer_message(roster, r);
        roster->members[r].heard_ns = now_ns;
        tutti__roster_send_all(roster, &peer);
    }
    tutti_cluster_message m = tutti__roster_start_message(roster);
    tutti__roster_send_all(roster, &m);
}

void tutti__roster_admit(tutti_roster *roster, int64_t now_ns, int rank, const tutti_peer *peer)
{
    tutti_roster_member *member = &roster->members[rank];
    member->peer = *peer;
    member->linked = member->known = true;
    member->heard_ns = now_ns;
    if (roster->options.open) {
        tutti__roster_view_admit(roster, rank);
        return;
    }
    for (int r = 1; r < roster->options.size; r++)
        if (!roster->members[r].linked)
            return;
    roster_start(roster, now_ns);
}

void tutti__roster_linked(tutti_roster *roster, int64_t now_ns)
{
    roster->members[0].linked = true;
    roster->members[0].heard_ns = now_ns;
}

void tutti__roster_give_up(tutti_roster *roster, const char *text)
{
    tutti_cluster_message m = {.type = TUTTI_MESSAGE_REFUSE};
    m.as.refuse.reason = TUTTI_REFUSAL_LATE;
    snprintf(m.as.refuse.text, sizeof m.as.refuse.text, "%s", text);
    tutti__roster_send_all(roster, &m);
    roster->phase = TUTTI_PHASE_FAILED;
}

void tutti__roster_take_peer(tutti_roster *roster, const tutti_cluster_message *m)
{
    tutti_roster_member *member = &roster->members[m->as.peer.rank];
    member->peer = (tutti_peer){.port = (int)m->as.peer.port,
                                .pid = m->as.peer.pid,
                                .machine = m->as.peer.machine,
                                .role = (tutti_role)m->as.peer.role,
                                .index = (int)m->as.peer.index};
    snprintf(member->peer.host, sizeof member->peer.host, "%s", m->as.peer.host);
    snprintf(member->peer.address, sizeof member->peer.address, "%s", m->as.peer.address);
    member->known = true;
}

static void receive_peer(tutti_roster *roster, const tutti_cluster_message *m)
{
    if (roster->phase == TUTTI_PHASE_GATHERING && (int)m->as.peer.rank < roster->options.size &&
        (int)m->as.peer.rank != roster->options.rank)
        tutti__roster_take_peer(roster, m);
}

static void receive_start(tutti_roster *roster, const tutti_cluster_message *m)
{
    bool whole =
        (int)m->as.start.size == roster->options.size && m->as.start.epoch == roster->options.epoch;
    for (int r = 0; whole && r < roster->options.size; r++)
        whole = roster->members[r].known;
    if (roster->phase != TUTTI_PHASE_GATHERING || !whole)
        return;
    roster->job = m->as.start.job;
    memcpy(roster->token, m->as.start.token, sizeof roster->token);
    roster->phase = TUTTI_PHASE_RUNNING;
}

/* The link is not needed any more; rank 0 waits for its end before it goes, so that nothing which
 * it said is lost. */
static void drop_zero(tutti_roster *roster)
{
    roster->members[0].linked = false;
    roster->ways.drop(roster->ways.context, 0);
}

static void receive_refuse(tutti_roster *roster, const tutti_cluster_message *m)
{
    roster->refusal = (tutti_refusal)m->as.refuse.reason;
    snprintf(roster->verdict.text, sizeof roster->verdict.text, "%s", m->as.refuse.text);
    roster->phase = TUTTI_PHASE_FAILED;
    drop_zero(roster);
}

/* ---- ticks ---- */

void tutti__roster_finish_parting(tutti_roster *roster, int64_t now_ns)
{
    bool linked = false;
    for (int r = 0; r < roster->options.size; r++)
        linked = linked || roster->members[r].linked;
    if (!linked || now_ns >= roster->until_ns)
        roster->phase = TUTTI_PHASE_LEFT;
}

void tutti__roster_tick(tutti_roster *roster, int64_t now_ns)
{
    tutti__roster_forgive(roster, now_ns);
    if (tutti__roster_over(roster))
        return;
    if (now_ns - roster->beat_ns >= roster->options.silence_ns / 5)
        tutti__roster_send_beats(roster, now_ns);
    if (roster->options.open) {
        tutti__roster_view_tick(roster, now_ns);
        return;
    }
    tutti__roster_watch_silence(roster, now_ns);
    if (roster->phase == TUTTI_PHASE_PARTING)
        tutti__roster_finish_parting(roster, now_ns);
    tutti__stand_in_tick(roster, now_ns);
    if (roster->phase == TUTTI_PHASE_ASKING)
        tutti__roster_decide(roster, now_ns);
}

/* ---- the shutdown barrier ---- */

static void part(tutti_roster *roster, int64_t now_ns)
{
    for (int r = 0; r < roster->options.size; r++)
        if (!roster->members[r].left)
            return;
    tutti_cluster_message m = {.type = TUTTI_MESSAGE_GOODBYE};
    tutti__roster_send_all(roster, &m);
    roster->phase = TUTTI_PHASE_PARTING;
    roster->until_ns = now_ns + parting_ns;
    tutti__roster_finish_parting(roster, now_ns);
}

void tutti__roster_leave(tutti_roster *roster, int64_t now_ns)
{
    if (roster->options.open) {
        tutti__roster_view_leave(roster, now_ns);
        return;
    }
    if (roster->phase != TUTTI_PHASE_RUNNING)
        return;
    tutti_cluster_message m = {.type = TUTTI_MESSAGE_LEAVE};
    if (roster->options.size > 1) /* a beat with the operations since the last one */
        tutti__roster_send_beats(roster, now_ns);
    roster->phase = TUTTI_PHASE_LEAVING;
    roster->members[roster->options.rank].left = true;
    if (roster->options.rank == 0)
        part(roster, now_ns);
    else
        tutti__roster_send(roster, 0, &m);
}

static void receive_leave(tutti_roster *roster, int64_t now_ns, int from)
{
    roster->members[from].left = true;
    if (roster->phase == TUTTI_PHASE_LEAVING)
        part(roster, now_ns);
}

static void receive_goodbye(tutti_roster *roster)
{
    if (roster->phase != TUTTI_PHASE_LEAVING)
        return;
    roster->phase = TUTTI_PHASE_LEFT;
    drop_zero(roster);
}

/* ---- exchange ---- */

/* Rank 0: when everybody has given his part of a round, everybody gets all. */
static void roster_gather(tutti_roster *roster)
{
    for (int r = 0; r < roster->options.size; r++)
        if (roster->members[r].round != roster->gathered + 1)
            return;
    roster->gathered++;
    for (int r = 0; r < roster->options.size; r++) {
        tutti_cluster_message m = {.type = TUTTI_MESSAGE_GATHERED};
        m.as.exchange.round = roster->gathered;
        m.as.exchange.rank = (uint32_t)r;
        m.as.exchange.data = roster->members[r].result = roster->members[r].given;
        tutti__roster_send_all(roster, &m);
    }
}

void tutti__roster_exchange(tutti_roster *roster, int64_t now_ns, const void *data, size_t size)
{
    TUTTI_UNUSED(now_ns);
    tutti_roster_member *own = &roster->members[roster->options.rank];
    tutti_cluster_message m = {.type = TUTTI_MESSAGE_EXCHANGE};
    roster->gathered_count = 0;
    own->round = ++roster->round;
    own->given.size = (uint16_t)size;
    memcpy(own->given.data, data, size);
    m.as.exchange.round = roster->round;
    m.as.exchange.rank = (uint32_t)roster->options.rank;
    m.as.exchange.data = own->given;
    if (roster->options.rank == 0)
        roster_gather(roster);
    else
        tutti__roster_send(roster, 0, &m);
}

static void receive_gathered(tutti_roster *roster, const tutti_cluster_message *m)
{
    if (m->as.exchange.round != roster->round || roster->gathered == roster->round ||
        (int)m->as.exchange.rank != roster->gathered_count)
        return;
    roster->members[m->as.exchange.rank].result = m->as.exchange.data;
    if (++roster->gathered_count == roster->options.size)
        roster->gathered = roster->round;
}

/* ---- what comes in ---- */

/* That rank 0 is not heard, it believes only where it was itself away; else it is the one who says
 * so that hears nothing, and whose link ends now. */
static void receive_suspect(tutti_roster *roster, int64_t now_ns, const tutti_cluster_message *m)
{
    int rank = (int)m->as.suspect.rank;
    tutti_failure why = (tutti_failure)m->as.suspect.why;
    bool unheard = rank == 0 && why == TUTTI_FAILURE_SILENT;
    if (rank < roster->options.size && (!unheard || tutti__roster_was_away(roster, now_ns)))
        tutti__roster_accuse(roster, now_ns, rank, why, m->as.suspect.detail, m->as.suspect.reason);
}

static void receive_at_zero(tutti_roster *roster, int64_t now_ns, int from,
                            const tutti_cluster_message *m)
{
    tutti_roster_member *member = &roster->members[from];
    switch (m->type) {
    case TUTTI_MESSAGE_BEAT:
        tutti__roster_receive_beat(roster, now_ns, from, m);
        break;
    case TUTTI_MESSAGE_SUSPECT:
        receive_suspect(roster, now_ns, m);
        break;
    case TUTTI_MESSAGE_REPORT:
        member->where = m->as.report.where;
        member->reported = true;
        break;
    case TUTTI_MESSAGE_LEAVE:
        receive_leave(roster, now_ns, from);
        break;
    case TUTTI_MESSAGE_EXCHANGE:
        if (m->as.exchange.round == member->round + 1) {
            member->round++;
            member->given = m->as.exchange.data;
            roster_gather(roster);
        }
        break;
    default: /* a message that only rank 0 sends: the link is given up */
        tutti__roster_accuse(roster, now_ns, from, TUTTI_FAILURE_SUSPECTED, 0,
                             "it sent a message that only rank 0 may send");
    }
}

void tutti__roster_take_verdict(tutti_roster *roster, const tutti_cluster_message *m)
{
    tutti_verdict *v = &roster->verdict;
    *v = (tutti_verdict){.rank = m->as.verdict.rank,
                         .why = (tutti_failure)m->as.verdict.why,
                         .detail = m->as.verdict.detail,
                         .pid = m->as.verdict.pid,
                         .sequence = m->as.verdict.sequence,
                         .group = m->as.verdict.group,
                         .members = m->as.verdict.members,
                         .arrived = m->as.verdict.arrived,
                         .arrived_count = (int)m->as.verdict.arrived_count};
    snprintf(v->host, sizeof v->host, "%s", m->as.verdict.host);
    snprintf(v->reason, sizeof v->reason, "%s", m->as.verdict.reason);
    snprintf(v->operation, sizeof v->operation, "%s", m->as.verdict.operation);
    snprintf(v->text, sizeof v->text, "%s", m->as.verdict.text);
    roster->phase = TUTTI_PHASE_FAILED;
    tutti__stand_in_tell(roster);
}

/* Rank 0 sends its verdict 600 ms later at the latest, unless it is stopped meanwhile. */
static void receive_ask(tutti_roster *roster, int64_t now_ns)
{
    tutti_cluster_message report = {.type = TUTTI_MESSAGE_REPORT};
    roster->deciding = true;
    roster->appeal_ns = now_ns + 1000 * (int64_t)MILLISECOND;
    roster->ways.where(roster->ways.context, &report.as.report.where);
    tutti__roster_send(roster, 0, &report);
    tutti__stand_in_poll(roster);
}

static void receive_at_member(tutti_roster *roster, int64_t now_ns, const tutti_cluster_message *m)
{
    switch (m->type) {
    case TUTTI_MESSAGE_PEER:
        receive_peer(roster, m);
        break;
    case TUTTI_MESSAGE_START:
        receive_start(roster, m);
        break;
    case TUTTI_MESSAGE_REFUSE:
        receive_refuse(roster, m);
        break;
    case TUTTI_MESSAGE_BEAT:
        tutti__roster_receive_beat(roster, now_ns, 0, m);
        break;
    case TUTTI_MESSAGE_POLL:
        receive_ask(roster, now_ns);
        break;
    case TUTTI_MESSAGE_SUSPECT:
        tutti__roster_hear_of_zero(roster, m);
        break;
    case TUTTI_MESSAGE_VERDICT:
        tutti__roster_take_verdict(roster, m);
        drop_zero(roster);
        break;
    case TUTTI_MESSAGE_GOODBYE:
        receive_goodbye(roster);
        break;
    case TUTTI_MESSAGE_GATHERED:
        receive_gathered(roster, m);
        break;
    default:
        break;
    }
}

void tutti__roster_receive(tutti_roster *roster, int64_t now_ns, int from,
                           const tutti_cluster_message *message)
{
    if (tutti__roster_over(roster))
        return;
    tutti__roster_forgive(roster, now_ns);
    if (now_ns > roster->members[from].heard_ns)
        roster->members[from].heard_ns = now_ns;
    if (roster->options.open) {
        tutti__roster_view_receive(roster, now_ns, from, message);
        return;
    }
    if (roster->options.rank == 0)
        receive_at_zero(roster, now_ns, from, message);
    else if (from == 0)
        receive_at_member(roster, now_ns, message);
    else
        tutti__stand_in_receive(roster, now_ns, from, message);
    if (roster->phase == TUTTI_PHASE_ASKING)
        tutti__roster_decide(roster, now_ns);
}
