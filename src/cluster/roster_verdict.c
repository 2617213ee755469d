/* roster_verdict.c: from the first sign of a failure to one verdict for all.
 *
 * Rank 0 asks everybody where he is and waits for the answers, at most 200 ms; under a launcher up
 * to 400 ms more for how the process ended, since a closed connection arrives before its reason.
 * Where a deadline has passed it waits as long for answers: who gives none is why. What the others
 * do when rank 0 is the one that fails, roster_stand_in.c says. */
#include <stdio.h>
#include <string.h>

#include "cluster/roster_stand_in.h"
#include "cluster/roster_view.h"

enum { MILLISECOND = 1000000 };

/* A launcher's word is worth more than a closed connection, and that more than hearsay. What a rank
 * itself says of its end is the cause of all that is seen of it afterwards. */
static int strength(tutti_failure why)
{
    static const int strengths[TUTTI_FAILURE_COUNT] = {
        [TUTTI_FAILURE_SUSPECTED] = 1, [TUTTI_FAILURE_SILENT] = 2, [TUTTI_FAILURE_CLOSED] = 3,
        [TUTTI_FAILURE_EXIT] = 4,      [TUTTI_FAILURE_SIGNAL] = 5, [TUTTI_FAILURE_ABORTED] = 6,
        [TUTTI_FAILURE_BROKEN] = 6,
    };
    return strengths[why];
}

/* A rank has given up waiting, perhaps for one that waits itself. */
static bool waited_too_long(const tutti_roster_member *member)
{
    return member->why == TUTTI_FAILURE_BROKEN && member->detail == TUTTI_DEADLINE;
}

static void ask(tutti_roster *roster, int64_t now_ns, bool patiently)
{
    tutti_cluster_message m = {.type = TUTTI_MESSAGE_POLL};
    roster->phase = TUTTI_PHASE_ASKING;
    if (roster->options.rank != 0) {
        tutti__stand_in_seek(roster, now_ns);
        return;
    }
    roster->until_ns = now_ns + (patiently ? 600 : 200) * (int64_t)MILLISECOND;
    for (int r = 0; r < roster->options.size; r++) {
        tutti_roster_member *member = &roster->members[r];
        /* Who says himself that an operation failed waits for the verdict, and knows where he is.
         */
        bool well = member->accusation == 0 || member->why == TUTTI_FAILURE_BROKEN;
        member->asked = member->linked && well;
        tutti__roster_send(roster, r, &m); /* others hear that a verdict is on its way */
    }
}

static void note_silence(tutti_roster_member *member, int64_t now_ns)
{
    if (member->silent_ns == 0)
        member->silent_ns = now_ns - member->heard_ns;
}

/* The gravest that is known of a rank. */
static void roster_verdict_note(tutti_roster_member *member, tutti_failure why, int64_t detail,
                                const char *reason)
{
    if (strength(why) <= strength(member->why))
        return;
    member->why = why;
    member->detail = detail;
    snprintf(member->reason, sizeof member->reason, "%s", reason);
}

static void charge(tutti_roster *roster, int64_t now_ns, int rank, tutti_failure why,
                   int64_t detail, const char *reason)
{
    tutti_roster_member *member = &roster->members[rank];
    if (member->accusation == 0)
        member->accusation = ++roster->accusations;
    if (why == TUTTI_FAILURE_EXIT)
        note_silence(member, now_ns);
    roster_verdict_note(member, why, detail, reason);
}

void tutti__roster_charge(tutti_roster *roster, int64_t now_ns,
                          const tutti_cluster_message *suspect)
{
    charge(roster, now_ns, (int)suspect->as.suspect.rank, (tutti_failure)suspect->as.suspect.why,
           suspect->as.suspect.detail, suspect->as.suspect.reason);
}

void tutti__roster_hear_of_zero(tutti_roster *roster, const tutti_cluster_message *suspect)
{
    if (suspect->as.suspect.rank == 0)
        roster_verdict_note(&roster->members[0], (tutti_failure)suspect->as.suspect.why,
                            suspect->as.suspect.detail, suspect->as.suspect.reason);
}

void tutti__roster_accuse(tutti_roster *roster, int64_t now_ns, int rank, tutti_failure why,
                          int64_t detail, const char *reason)
{
    const tutti_roster_member *member = &roster->members[rank];
    if (!tutti__roster_watching(roster) && roster->phase != TUTTI_PHASE_ASKING)
        return;
    charge(roster, now_ns, rank, why, detail, reason);
    if (roster->phase != TUTTI_PHASE_ASKING)
        ask(roster, now_ns, roster->options.supervised || waited_too_long(member));
    tutti__roster_decide(roster, now_ns);
}

/* Who says himself that he has failed may be gone before he is asked where he was. */
static void roster_verdict_report(tutti_roster *roster)
{
    tutti_cluster_message m = {.type = TUTTI_MESSAGE_REPORT};
    roster->ways.where(roster->ways.context, &m.as.report.where);
    tutti__roster_send(roster, 0, &m);
}

/* What the launcher reports of rank 0 is kept by the others until their link ends too: it may have
 * left properly, with its goodbye still on the way. */
void tutti__roster_suspect(tutti_roster *roster, int64_t now_ns, int rank, tutti_failure why,
                           int64_t detail, const char *reason)
{
    if (rank < 0 || rank >= roster->options.size)
        return;
    if (roster->options.open) {
        tutti__roster_view_hear_of(roster, now_ns, rank, why, detail, reason);
        return;
    }
    tutti_cluster_message m = {.type = TUTTI_MESSAGE_SUSPECT};
    m.as.suspect.rank = (uint32_t)rank;
    m.as.suspect.why = why;
    m.as.suspect.detail = detail;
    snprintf(m.as.suspect.reason, sizeof m.as.suspect.reason, "%s", reason);
    if (roster->options.rank == 0) {
        if (rank == 0) /* which may be gone before it has asked everybody */
            tutti__roster_send_all(roster, &m);
        tutti__roster_accuse(roster, now_ns, rank, why, detail, reason);
        return;
    }
    tutti_roster_member *member = &roster->members[rank];
    bool watched = why == TUTTI_FAILURE_SIGNAL || why == TUTTI_FAILURE_EXIT;
    if (rank == 0 && watched) {
        roster_verdict_note(member, why, detail, "");
        note_silence(member, now_ns);
        if (roster->phase == TUTTI_PHASE_ASKING)
            tutti__roster_decide(roster, now_ns);
        return;
    }
    if (watched && rank != roster->options.rank) {
        member->ended = member->passed_over = true;
        tutti__stand_in_miss(roster, now_ns, rank);
        tutti__roster_decide(roster, now_ns);
    }
    if (rank == roster->options.rank)
        roster_verdict_report(roster);
    tutti__roster_appeal(roster, now_ns, &m);
}

void tutti__roster_appeal(tutti_roster *roster, int64_t now_ns,
                          const tutti_cluster_message *suspect)
{
    tutti_failure before =
        roster->plea.type != 0 ? (tutti_failure)roster->plea.as.suspect.why : TUTTI_FAILURE_NONE;
    if (!tutti__roster_watching(roster))
        return;
    if (strength((tutti_failure)suspect->as.suspect.why) > strength(before))
        roster->plea = *suspect;
    if (roster->appeal_ns == 0)
        roster->appeal_ns = now_ns + 400 * (int64_t)MILLISECOND;
    tutti__roster_send(roster, 0, suspect);
}

bool tutti__roster_appeals(const tutti_roster *roster)
{
    return roster->appeal_ns != 0 && tutti__roster_watching(roster);
}

void tutti__roster_despair(tutti_roster *roster, int rank, tutti_failure why, int64_t detail)
{
    if (roster->phase != TUTTI_PHASE_GATHERING || rank < 0 || rank >= roster->options.size ||
        roster->options.open)
        return;
    const tutti_peer *peer = &roster->members[rank].peer; /* empty, unless it had come already */
    tutti_verdict *v = &roster->verdict;
    *v = (tutti_verdict){.rank = rank, .why = why, .detail = detail, .pid = peer->pid};
    snprintf(v->host, sizeof v->host, "%s", peer->host);
    tutti__verdict_write(v, roster->options.size, 0);
    roster->phase = TUTTI_PHASE_FAILED;
}

void tutti__roster_closed(tutti_roster *roster, int64_t now_ns, int rank, const char *reason)
{
    tutti_roster_member *member = &roster->members[rank];
    if (roster->options.open) {
        tutti__roster_view_closed(roster, now_ns, rank, reason);
        return;
    }
    member->linked = false;
    if (roster->options.rank != 0 && rank != 0)
        tutti__stand_in_miss(roster, now_ns, rank);
    else if (roster->phase == TUTTI_PHASE_PARTING)
        tutti__roster_tick(roster, now_ns);
    else if (roster->phase != TUTTI_PHASE_GATHERING)
        tutti__roster_accuse(roster, now_ns, rank, TUTTI_FAILURE_CLOSED, 0, reason);
}

/* Nobody dies by a signal, or aborts, because another exits; some exit because another does. */
static bool is_cause(const tutti_roster_member *member)
{
    return member->why == TUTTI_FAILURE_SIGNAL || member->why == TUTTI_FAILURE_ABORTED ||
           member->why == TUTTI_FAILURE_BROKEN;
}

/* Causes first, then who was accused first. Whoever was away itself blames nobody for what the
 * others have done meanwhile. */
static int roster_verdict_choose(const tutti_roster *roster)
{
    int best = -1, own = roster->options.rank;
    if (roster->members[own].why == TUTTI_FAILURE_SILENT)
        return own;
    for (int r = 0; r < roster->options.size; r++) {
        const tutti_roster_member *member = &roster->members[r];
        if (member->accusation == 0)
            continue;
        const tutti_roster_member *leader = best < 0 ? NULL : &roster->members[best];
        bool cause = is_cause(member), leads = leader != NULL && is_cause(leader);
        if (leader == NULL || (cause && !leads) ||
            (cause == leads && member->accusation < leader->accusation))
            best = r;
    }
    return best;
}

/* Whether waiting longer could still bring something. */
static bool complete(const tutti_roster *roster)
{
    if (roster->options.rank != 0 && !tutti__stand_in_complete(roster))
        return false;
    for (int r = 0; r < roster->options.size; r++) {
        const tutti_roster_member *member = &roster->members[r];
        if (member->asked && member->linked && !member->reported)
            return false;
    }
    const tutti_roster_member *culprit = &roster->members[roster_verdict_choose(roster)];
    bool ended = culprit->why == TUTTI_FAILURE_SIGNAL || culprit->why == TUTTI_FAILURE_EXIT;
    bool hearsay = culprit->why == TUTTI_FAILURE_SUSPECTED;
    if ((ended || hearsay) && culprit->linked)
        return false; /* its own last word may be on the way, or the end of its link */
    return !roster->options.supervised || culprit->why != TUTTI_FAILURE_CLOSED;
}

void tutti__roster_send_verdict(tutti_roster *roster, int rank)
{
    const tutti_verdict *v = &roster->verdict;
    tutti_cluster_message m = {.type = TUTTI_MESSAGE_VERDICT};
    m.as.verdict.rank = v->rank;
    m.as.verdict.why = v->why;
    m.as.verdict.detail = v->detail;
    m.as.verdict.pid = v->pid;
    m.as.verdict.sequence = v->sequence;
    m.as.verdict.group = v->group;
    m.as.verdict.members = v->members;
    m.as.verdict.arrived_count = (uint32_t)v->arrived_count;
    m.as.verdict.arrived = v->arrived;
    snprintf(m.as.verdict.host, sizeof m.as.verdict.host, "%s", v->host);
    snprintf(m.as.verdict.reason, sizeof m.as.verdict.reason, "%s", v->reason);
    snprintf(m.as.verdict.operation, sizeof m.as.verdict.operation, "%s", v->operation);
    snprintf(m.as.verdict.text, sizeof m.as.verdict.text, "%s", v->text);
    roster->ways.send(roster->ways.context, rank, &m);
}

/* The first that was asked, has not answered, and is waited for; -1: there is none. */
static int find_mute(const tutti_roster *roster)
{
    for (int r = 0; r < roster->options.size; r++) {
        const tutti_roster_member *member = &roster->members[r];
        tutti_verdict verdict = {.rank = r, .why = TUTTI_FAILURE_SILENT};
        if (!member->asked || !member->linked || member->reported)
            continue;
        tutti__roster_find_operation(roster, &verdict);
        if (verdict.operation[0] != '\0')
            return r;
    }
    return -1;
}

/* Of those who waited too long none is the culprit where another does not answer. */
static int find_culprit(tutti_roster *roster, int64_t now_ns)
{
    int rank = roster_verdict_choose(roster);
    int mute = waited_too_long(&roster->members[rank]) ? find_mute(roster) : -1;
    if (roster->options.rank != 0 && waited_too_long(&roster->members[rank]))
        return 0;
    if (mute < 0)
        return rank;
    roster->members[mute].why = TUTTI_FAILURE_SILENT;
    roster->members[mute].detail = (now_ns - roster->members[mute].heard_ns) / MILLISECOND;
    return mute;
}

/* Who waited too long knows of one that it waits for itself, who may have come and wait too. */
static void name_idle(const tutti_roster *roster, tutti_verdict *verdict)
{
    int rank = tutti__roster_find_idle(roster, verdict);
    if (rank < 0)
        return;
    const tutti_peer *peer = &roster->members[rank].peer;
    snprintf(verdict->reason, sizeof verdict->reason,
             "waited too long for rank %d (host %s, process %lld)", rank, peer->host,
             (long long)peer->pid);
}

/* Who exits ends its links, and is heard until then. Of one that was not, and whose link stands
 * when the launcher has said that it exited, the network is cut: it gave up because it heard us as
 * little as we heard it. */
static void name_cut(const tutti_roster *roster, int64_t now_ns, tutti_verdict *verdict)
{
    const tutti_roster_member *culprit = &roster->members[verdict->rank];
    bool stood = culprit->linked || culprit->given_up;
    if (verdict->why != TUTTI_FAILURE_EXIT || !stood ||
        culprit->silent_ns <= roster->options.silence_ns / 2)
        return;
    snprintf(
        verdict->reason, sizeof verdict->reason,
        "that it has exited with code %d meanwhile is known by the launcher alone: the network "
        "to it is cut",
        (int)verdict->detail);
    verdict->why = TUTTI_FAILURE_SILENT;
    verdict->detail = (now_ns - culprit->heard_ns) / MILLISECOND;
}

/* Rank 0 asks everybody; who cannot ask it knows of others by other ways, if at all. */
static void look_around(const tutti_roster *roster, tutti_verdict *verdict)
{
    tutti_ranks come = {0}, absent = {0};
    if (roster->options.rank == 0 || roster->ways.look == NULL || verdict->operation[0] == '\0')
        return;
    roster->ways.look(roster->ways.context, verdict->group, verdict->sequence, &come, &absent);
    tutti__verdict_add(verdict, roster->options.size, &come, &absent);
}

void tutti__roster_decide(tutti_roster *roster, int64_t now_ns)
{
    if (roster->phase != TUTTI_PHASE_ASKING || (now_ns < roster->until_ns && !complete(roster)))
        return;
    int own = roster->options.rank;
    roster->ways.where(roster->ways.context, &roster->members[own].where);
    int rank = find_culprit(roster, now_ns);
    const tutti_roster_member *culprit = &roster->members[rank];
    tutti_verdict *v = &roster->verdict;
    *v = (tutti_verdict){
        .rank = rank,
        .why = culprit->why,
        .detail = culprit->detail,
        .pid = culprit->peer.pid,
    };
    snprintf(v->host, sizeof v->host, "%s", culprit->peer.host);
    snprintf(v->reason, sizeof v->reason, "%s", culprit->reason);
    name_cut(roster, now_ns, v);
    tutti__roster_find_operation(roster, v);
    look_around(roster, v);
    tutti__stand_in_complement(roster, v);
    if (waited_too_long(culprit))
        name_idle(roster, v);
    if (roster->ways.training != NULL)
        roster->ways.training(roster->ways.context, sizeof v->training, v->training);
    tutti__verdict_write(v, roster->options.size, own);
    roster->phase = TUTTI_PHASE_FAILED;
    for (int r = 0; r < roster->options.size; r++)
        if (roster->members[r].linked)
            tutti__roster_send_verdict(roster, r);
    tutti__stand_in_tell(roster);
}
