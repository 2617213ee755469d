/* membership.c: what the rooms above ask of a membership, and its end. */
#include "cluster/membership.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/keeper.h"

int tutti__membership_fd(const tutti_membership *membership)
{
    return membership->size > 1 ? membership->keeper->failed_fd : -1;
}

void tutti__membership_verdict(const tutti_membership *membership, tutti_verdict *ret_verdict)
{
    tutti_keeper *keeper = membership->keeper;
    pthread_mutex_lock(&keeper->lock);
    *ret_verdict = keeper->roster.verdict;
    pthread_mutex_unlock(&keeper->lock);
}

tutti_status tutti__membership_fail(const tutti_membership *membership)
{
    tutti_verdict verdict;
    tutti__membership_verdict(membership, &verdict);
    if (membership->keeper->cluster->launcher_fd >= 0) /* it says once what waited */
        verdict.text[tutti__verdict_failure_size(&verdict)] = '\0';
    if (verdict.why == TUTTI_FAILURE_SILENT)
        return tutti_fail(TUTTI_DEADLINE, "%s", verdict.text);
    tutti_status status = TUTTI_CLOSED;
    if (verdict.why == TUTTI_FAILURE_ABORTED)
        status = TUTTI_CANCELLED;
    if (verdict.why == TUTTI_FAILURE_BROKEN && verdict.detail < 0 && verdict.detail >= INT8_MIN)
        status = (tutti_status)verdict.detail; /* it came over the network */
    return tutti_fail(status, "%s", verdict.text);
}

int64_t tutti__membership_silence(const tutti_membership *membership)
{
    return membership->keeper->silence_ns;
}

void tutti__membership_suspect(tutti_membership *membership, int rank, const char *why)
{
    tutti_keeper *keeper = membership->keeper;
    char reason[TUTTI_REASON_BYTES];
    snprintf(reason, sizeof reason, "rank %d says: %s", membership->rank, why);
    pthread_mutex_lock(&keeper->lock);
    tutti__roster_suspect(&keeper->roster, tutti__now_ns(), rank, TUTTI_FAILURE_SUSPECTED, 0,
                          reason);
    pthread_mutex_unlock(&keeper->lock);
    tutti__keeper_wake(keeper);
}

/* What this rank says of itself. It leaves here at once: the process may end before its keeper
 * wakes. */
static void confess(tutti_membership *membership, tutti_failure what, int64_t detail,
                    const char *why)
{
    tutti_keeper *keeper = membership->keeper;
    pthread_mutex_lock(&keeper->lock);
    keeper->aborted = true;
    tutti__roster_suspect(&keeper->roster, tutti__now_ns(), membership->rank, what, detail, why);
    tutti__keeper_flush(keeper);
    pthread_mutex_unlock(&keeper->lock);
    tutti__keeper_wake(keeper);
}

void tutti__membership_abort(tutti_membership *membership, const char *why)
{
    confess(membership, TUTTI_FAILURE_ABORTED, 0, why);
}

void tutti__membership_break(tutti_membership *membership, tutti_status status, const char *why)
{
    confess(membership, TUTTI_FAILURE_BROKEN, status, why);
}

bool tutti__membership_await_verdict(tutti_membership *membership, int64_t deadline_ns)
{
    tutti_keeper *keeper = membership->keeper;
    bool in_time = true;
    pthread_mutex_lock(&keeper->lock);
    while (!tutti__membership_failed(membership) && in_time)
        in_time = tutti__keeper_wait(keeper, deadline_ns);
    pthread_mutex_unlock(&keeper->lock);
    return tutti__membership_failed(membership);
}

tutti_rank_group tutti__membership_group(tutti_membership *membership, uint64_t number,
                                         const tutti_ranks *members)
{
    tutti_keeper *keeper = membership->keeper;
    pthread_mutex_lock(&keeper->lock);
    tutti_rank_group group = {number, tutti__recorder_keep(&keeper->recorder, members),
                              tutti__recorder_take(&keeper->recorder)};
    pthread_mutex_unlock(&keeper->lock);
    return group;
}

void tutti__membership_forget(tutti_membership *membership, tutti_rank_group group)
{
    tutti_keeper *keeper = membership->keeper;
    pthread_mutex_lock(&keeper->lock);
    tutti__recorder_give_back(&keeper->recorder, group.now);
    pthread_mutex_unlock(&keeper->lock);
}

void tutti__membership_note(tutti_membership *membership, tutti_rank_group group,
                            const char *operation, uint64_t sequence, bool arrived)
{
    tutti__recorder_note(&membership->keeper->recorder, group, operation, sequence, arrived);
}

void tutti__membership_set_witness(tutti_membership *membership, tutti_witness witness)
{
    tutti_keeper *keeper = membership->keeper;
    pthread_mutex_lock(&keeper->lock);
    keeper->witness = witness;
    pthread_mutex_unlock(&keeper->lock);
}

tutti_skew tutti__membership_skew(const tutti_membership *membership, int rank)
{
    tutti_keeper *keeper = membership->keeper;
    pthread_mutex_lock(&keeper->lock);
    tutti_skew skew = keeper->roster.members[rank].skew;
    pthread_mutex_unlock(&keeper->lock);
    return skew;
}

int tutti__membership_straggler(const tutti_membership *membership, tutti_skew *ret_skew)
{
    tutti_keeper *keeper = membership->keeper;
    pthread_mutex_lock(&keeper->lock);
    int rank = tutti__skews_straggler(&keeper->roster, membership->size);
    *ret_skew = keeper->roster.members[rank < 0 ? 0 : rank].skew;
    pthread_mutex_unlock(&keeper->lock);
    return rank;
}

/* ---- exchange ---- */

/* Under the lock, when the round is over. */
static tutti_status copy_results(const tutti_keeper *keeper, size_t size, void *ret)
{
    for (int r = 0; r < keeper->cluster->size; r++) {
        const tutti_blob *blob = &keeper->roster.members[r].result;
        if (blob->size != size)
            return tutti_fail(TUTTI_INVALID,
                              "rank %d exchanged %d bytes where rank %d gave %zu: the ranks run "
                              "different programs",
                              r, blob->size, keeper->cluster->rank, size);
    }
    for (int r = 0; r < keeper->cluster->size; r++)
        memcpy((char *)ret + (size_t)r * size, keeper->roster.members[r].result.data, size);
    return TUTTI_OK;
}

static tutti_status fail_exchange(const tutti_keeper *keeper)
{
    char missing[200] = "";
    for (int r = 0; keeper->cluster->rank == 0 && r < keeper->cluster->size; r++) {
        size_t used = strlen(missing);
        if (keeper->roster.members[r].round < keeper->roster.round && used + 16 < sizeof missing)
            snprintf(missing + used, sizeof missing - used, "%s%d", used > 0 ? ", " : "", r);
    }
    return tutti_fail(TUTTI_DEADLINE, "exchange number %llu is not finished in time%s%s",
                      (unsigned long long)keeper->roster.round, *missing ? "; missing: rank " : "",
                      missing);
}

tutti_status tutti__membership_exchange(tutti_membership *membership, const void *data, size_t size,
                                        int64_t deadline_ns, void *ret)
{
    tutti_keeper *keeper = membership->keeper;
    tutti_roster *roster = &keeper->roster;
    if (size > TUTTI_EXCHANGE_BYTES)
        return tutti_fail(TUTTI_TOO_LARGE, "an exchange of %zu bytes; at most %d are possible",
                          size, TUTTI_EXCHANGE_BYTES);
    pthread_mutex_lock(&keeper->lock);
    tutti__roster_exchange(roster, tutti__now_ns(), data, size);
    tutti__keeper_wake(keeper);
    bool in_time = true;
    while (roster->gathered < roster->round && roster->phase == TUTTI_PHASE_RUNNING && in_time)
        in_time = tutti__keeper_wait(keeper, deadline_ns);
    bool done = roster->gathered == roster->round, failed = false;
    if (!done && in_time) { /* ASKING ends in FAILED within a second */
        while (roster->phase == TUTTI_PHASE_ASKING)
            tutti__keeper_wait(keeper, tutti__now_ns() + 100000000);
        failed = roster->phase == TUTTI_PHASE_FAILED;
    }
    tutti_status status = done     ? copy_results(keeper, size, ret)
                          : failed ? TUTTI_CLOSED
                                   : fail_exchange(keeper);
    pthread_mutex_unlock(&keeper->lock);
    return failed ? tutti__membership_fail(membership) : status;
}

tutti_status tutti__membership_agree(tutti_membership *membership, const char *what, uint64_t hash,
                                     int64_t deadline_ns)
{
    uint64_t *all = calloc((size_t)membership->size, sizeof *all);
    if (all == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %d hashes", membership->size);
    tutti_status status =
        tutti__membership_exchange(membership, &hash, sizeof hash, deadline_ns, all);
    for (int r = 1; status == TUTTI_OK && r < membership->size; r++)
        if (all[r] != all[0])
            status = tutti_fail(TUTTI_INVALID,
                                "rank %d (host %s) has another %s than rank 0 (%016llx, not "
                                "%016llx): do all ranks run the same program, options and version?",
                                r, membership->peers[r].host, what, (unsigned long long)all[r],
                                (unsigned long long)all[0]);
    free(all);
    return status;
}

/* ---- the banner ---- */

/* "0-3, 8" of the ranks on the machine of `first`. */
static void write_machine(const tutti_membership *m, int first, tutti_text *text)
{
    const char *comma = "";
    tutti__text_add(text, "%s: ", m->peers[first].host);
    for (int r = first; r < m->size; r++) {
        int begin = r;
        while (r < m->size && m->peers[r].machine == m->peers[first].machine)
            r++;
        if (r > begin)
            tutti__text_add(text, r - begin > 1 ? "%s%d-%d" : "%s%d", comma, begin, r - 1);
        if (r > begin)
            comma = ", ";
    }
}

static bool first_of_machine(const tutti_membership *m, int rank)
{
    for (int r = 0; r < rank; r++)
        if (m->peers[r].machine == m->peers[rank].machine)
            return false;
    return true;
}

void tutti__membership_describe(const tutti_membership *membership, char *ret_text, size_t size)
{
    const tutti_keeper *keeper = membership->keeper;
    tutti_text text = {0};
    int machines = 0;
    for (int r = 0; r < membership->size; r++)
        machines += first_of_machine(membership, r);
    tutti__text_add(&text, "%d rank%s on %d host%s (", membership->size,
                    membership->size == 1 ? "" : "s", machines, machines == 1 ? "" : "s");
    int listed = 0;
    for (int r = 0; r < membership->size && listed < 16; r++) {
        if (!first_of_machine(membership, r))
            continue;
        tutti__text_add(&text, "%s", listed++ > 0 ? "; " : "");
        write_machine(membership, r, &text);
    }
    tutti__text_add(&text, "%s), by %s, epoch %u, %s", machines > 16 ? "; ..." : "",
                    keeper->cluster->resolver, membership->epoch,
                    keeper->tls != NULL       ? "TLS 1.3"
                    : keeper->secret.size > 0 ? "authenticated"
                    : membership->size > 1    ? "loopback without a secret"
                                              : "alone");
    snprintf(ret_text, size, "%s", text.failed ? "" : text.data);
    tutti__text_free(&text);
}

/* ---- the end ---- */

/* A rank that has aborted stays, for a second at most, until its reason has become the verdict. */
static void await_own_verdict(tutti_keeper *keeper)
{
    int64_t until = tutti__now_ns() + 1000000000;
    pthread_mutex_lock(&keeper->lock);
    while (keeper->aborted && keeper->running && !tutti__roster_over(&keeper->roster) &&
           tutti__keeper_wait(keeper, until))
        ;
    pthread_mutex_unlock(&keeper->lock);
}

/* What rank 0 has said must arrive: a socket that is closed with unread bytes throws it away. So it
 * waits, for half a second at most, until the others have ended their links. */
static void linger(tutti_keeper *keeper)
{
    int64_t until = tutti__now_ns() + 500000000;
    bool linked = keeper->running;
    pthread_mutex_lock(&keeper->lock);
    while (linked && keeper->roster.phase == TUTTI_PHASE_FAILED) {
        linked = false;
        for (size_t i = 0; i < keeper->links.count; i++)
            linked = linked || keeper->links.data[i]->state == TUTTI_LINK_MEMBER ||
                     keeper->links.data[i]->state == TUTTI_LINK_ENDING;
        if (linked && !tutti__keeper_wait(keeper, until))
            break;
    }
    pthread_mutex_unlock(&keeper->lock);
}

void tutti__membership_abandon(tutti_membership *membership)
{
    if (membership == NULL)
        return;
    await_own_verdict(membership->keeper);
    linger(membership->keeper);
    tutti__keeper_free(membership->keeper);
}

static tutti_status fail_barrier(const tutti_keeper *keeper)
{
    char missing[200] = "";
    for (int r = 0; keeper->cluster->rank == 0 && r < keeper->cluster->size; r++) {
        size_t used = strlen(missing);
        if (!keeper->roster.members[r].left && used + 16 < sizeof missing)
            snprintf(missing + used, sizeof missing - used, "%s%d", used > 0 ? ", " : "", r);
    }
    return tutti_fail(TUTTI_DEADLINE, "not all ranks have come to the end of the job in time%s%s",
                      *missing ? "; missing: rank " : "", missing);
}

tutti_status tutti__membership_part(tutti_membership *membership, int64_t deadline_ns)
{
    tutti_keeper *keeper = membership->keeper;
    tutti_roster *roster = &keeper->roster;
    tutti_status status = TUTTI_OK;
    pthread_mutex_lock(&keeper->lock);
    tutti__roster_leave(roster, tutti__now_ns());
    tutti__keeper_wake(keeper);
    bool in_time = true;
    while (roster->phase != TUTTI_PHASE_LEFT && roster->phase != TUTTI_PHASE_FAILED && in_time)
        in_time = tutti__keeper_wait(keeper, deadline_ns);
    bool failed = roster->phase == TUTTI_PHASE_FAILED;
    if (!failed && roster->phase != TUTTI_PHASE_LEFT && roster->phase != TUTTI_PHASE_PARTING)
        status = fail_barrier(keeper);
    pthread_mutex_unlock(&keeper->lock);
    return failed ? tutti__membership_fail(membership) : status;
}

tutti_status tutti__membership_leave(tutti_membership *membership, int64_t deadline_ns)
{
    tutti_status status = tutti__membership_part(membership, deadline_ns);
    tutti__membership_abandon(membership);
    return status;
}
