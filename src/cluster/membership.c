/* membership.c: what the rooms above ask of a membership, and its end. */
#include "cluster/membership.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/heartbeat.h"

int tutti__membership_fd(const tutti_membership *membership)
{
    return membership->size > 1 ? membership->heartbeat->failed_fd : -1;
}

void tutti__membership_verdict(const tutti_membership *membership, tutti_verdict *ret_verdict)
{
    tutti_heartbeat *heartbeat = membership->heartbeat;
    pthread_mutex_lock(&heartbeat->lock);
    *ret_verdict = heartbeat->roster.verdict;
    pthread_mutex_unlock(&heartbeat->lock);
}

tutti_status tutti__membership_fail(const tutti_membership *membership)
{
    tutti_verdict verdict;
    tutti__membership_verdict(membership, &verdict);
    if (membership->heartbeat->cluster->launcher_fd >= 0) /* it says once what waited */
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
    return membership->heartbeat->silence_ns;
}

void tutti__membership_suspect(tutti_membership *membership, int rank, const char *why)
{
    tutti_heartbeat *heartbeat = membership->heartbeat;
    char reason[TUTTI_REASON_BYTES];
    snprintf(reason, sizeof reason, "rank %d says: %s", membership->rank, why);
    pthread_mutex_lock(&heartbeat->lock);
    tutti__roster_suspect(&heartbeat->roster, tutti__now_ns(), rank, TUTTI_FAILURE_SUSPECTED, 0,
                          reason);
    pthread_mutex_unlock(&heartbeat->lock);
    tutti__heartbeat_wake(heartbeat);
}

/* What this rank says of itself. It leaves here at once: the process may end before its heartbeat
 * thread wakes. */
static void confess(tutti_membership *membership, tutti_failure what, int64_t detail,
                    const char *why)
{
    tutti_heartbeat *heartbeat = membership->heartbeat;
    pthread_mutex_lock(&heartbeat->lock);
    heartbeat->aborted = true;
    tutti__roster_suspect(&heartbeat->roster, tutti__now_ns(), membership->rank, what, detail, why);
    tutti__heartbeat_flush(heartbeat);
    pthread_mutex_unlock(&heartbeat->lock);
    tutti__heartbeat_wake(heartbeat);
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
    tutti_heartbeat *heartbeat = membership->heartbeat;
    bool in_time = true;
    pthread_mutex_lock(&heartbeat->lock);
    while (!tutti__membership_failed(membership) && in_time)
        in_time = tutti__heartbeat_wait(heartbeat, deadline_ns);
    pthread_mutex_unlock(&heartbeat->lock);
    return tutti__membership_failed(membership);
}

tutti_rank_group tutti__membership_group(tutti_membership *membership, uint64_t number,
                                         const tutti_ranks *members)
{
    tutti_heartbeat *heartbeat = membership->heartbeat;
    pthread_mutex_lock(&heartbeat->lock);
    tutti_rank_group group = {number, tutti__recorder_keep(&heartbeat->recorder, members),
                              tutti__recorder_take(&heartbeat->recorder)};
    pthread_mutex_unlock(&heartbeat->lock);
    return group;
}

void tutti__membership_forget(tutti_membership *membership, tutti_rank_group group)
{
    tutti_heartbeat *heartbeat = membership->heartbeat;
    pthread_mutex_lock(&heartbeat->lock);
    tutti__recorder_give_back(&heartbeat->recorder, group.now);
    pthread_mutex_unlock(&heartbeat->lock);
}

void tutti__membership_note(tutti_membership *membership, tutti_rank_group group,
                            const char *operation, uint64_t sequence, bool arrived)
{
    tutti__recorder_note(&membership->heartbeat->recorder, group, operation, sequence, arrived);
}

void tutti__membership_set_progress_record(tutti_membership *membership,
                                           tutti_progress_record progress_record)
{
    tutti_heartbeat *heartbeat = membership->heartbeat;
    pthread_mutex_lock(&heartbeat->lock);
    heartbeat->progress_record = progress_record;
    pthread_mutex_unlock(&heartbeat->lock);
}

void tutti__membership_at_step(tutti_membership *membership, int64_t step)
{
    atomic_store_explicit(&membership->heartbeat->step, step, memory_order_relaxed);
}

void tutti__membership_saved(tutti_membership *membership, int64_t step, const char *path)
{
    tutti_heartbeat *heartbeat = membership->heartbeat;
    pthread_mutex_lock(&heartbeat->lock);
    heartbeat->saved_step = step;
    snprintf(heartbeat->saved, sizeof heartbeat->saved, "%s", path);
    pthread_mutex_unlock(&heartbeat->lock);
}

tutti_skew tutti__membership_skew(const tutti_membership *membership, int rank)
{
    tutti_heartbeat *heartbeat = membership->heartbeat;
    pthread_mutex_lock(&heartbeat->lock);
    tutti_skew skew = heartbeat->roster.members[rank].skew;
    pthread_mutex_unlock(&heartbeat->lock);
    return skew;
}

int tutti__membership_straggler(const tutti_membership *membership, tutti_skew *ret_skew)
{
    tutti_heartbeat *heartbeat = membership->heartbeat;
    pthread_mutex_lock(&heartbeat->lock);
    int rank = tutti__skews_straggler(&heartbeat->roster, membership->size);
    *ret_skew = heartbeat->roster.members[rank < 0 ? 0 : rank].skew;
    pthread_mutex_unlock(&heartbeat->lock);
    return rank;
}

/* ---- exchange ---- */

/* Under the lock, when the round is over. */
static tutti_status copy_results(const tutti_heartbeat *heartbeat, size_t size, void *ret)
{
    for (int r = 0; r < heartbeat->cluster->size; r++) {
        const tutti_blob *blob = &heartbeat->roster.members[r].result;
        if (blob->size != size)
            return tutti_fail(TUTTI_INVALID,
                              "rank %d exchanged %d bytes where rank %d gave %zu: the ranks run "
                              "different programs",
                              r, blob->size, heartbeat->cluster->rank, size);
    }
    for (int r = 0; r < heartbeat->cluster->size; r++)
        memcpy((char *)ret + (size_t)r * size, heartbeat->roster.members[r].result.data, size);
    return TUTTI_OK;
}

static tutti_status fail_exchange(const tutti_heartbeat *heartbeat)
{
    char missing[200] = "";
    for (int r = 0; heartbeat->cluster->rank == 0 && r < heartbeat->cluster->size; r++) {
        size_t used = strlen(missing);
        if (heartbeat->roster.members[r].round < heartbeat->roster.round &&
            used + 16 < sizeof missing)
            snprintf(missing + used, sizeof missing - used, "%s%d", used > 0 ? ", " : "", r);
    }
    return tutti_fail(TUTTI_DEADLINE, "exchange number %llu is not finished in time%s%s",
                      (unsigned long long)heartbeat->roster.round,
                      *missing ? "; missing: rank " : "", missing);
}

tutti_status tutti__membership_exchange(tutti_membership *membership, const void *data, size_t size,
                                        int64_t deadline_ns, void *ret)
{
    tutti_heartbeat *heartbeat = membership->heartbeat;
    tutti_roster *roster = &heartbeat->roster;
    if (size > TUTTI_EXCHANGE_BYTES)
        return tutti_fail(TUTTI_TOO_LARGE, "an exchange of %zu bytes; at most %d are possible",
                          size, TUTTI_EXCHANGE_BYTES);
    pthread_mutex_lock(&heartbeat->lock);
    tutti__roster_exchange(roster, tutti__now_ns(), data, size);
    tutti__heartbeat_wake(heartbeat);
    bool in_time = true;
    while (roster->gathered < roster->round && roster->phase == TUTTI_PHASE_RUNNING && in_time)
        in_time = tutti__heartbeat_wait(heartbeat, deadline_ns);
    bool done = roster->gathered == roster->round, failed = false;
    if (!done && in_time) { /* ASKING ends in FAILED within a second */
        while (roster->phase == TUTTI_PHASE_ASKING)
            tutti__heartbeat_wait(heartbeat, tutti__now_ns() + 100000000);
        failed = roster->phase == TUTTI_PHASE_FAILED;
    }
    tutti_status status = done     ? copy_results(heartbeat, size, ret)
                          : failed ? TUTTI_CLOSED
                                   : fail_exchange(heartbeat);
    pthread_mutex_unlock(&heartbeat->lock);
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

/* "view 4: 3 workers, 1 server of 4 ranks" */
static void describe_view(tutti_heartbeat *heartbeat, char *ret_text, size_t size)
{
    const tutti_member_view *view = tutti__membership_view(&heartbeat->membership);
    int servers = tutti__member_view_count(view, TUTTI_ROLE_PS), workers = view->count - servers;
    snprintf(ret_text, size,
             "%d worker%s and %d server%s of %d ranks are there (view %llu), by %s, epoch %u, %s",
             workers, workers == 1 ? "" : "s", servers, servers == 1 ? "" : "s", view->size,
             (unsigned long long)view->number, heartbeat->cluster->resolver,
             heartbeat->membership.epoch,
             heartbeat->tls != NULL       ? "TLS 1.3"
             : heartbeat->secret.size > 0 ? "authenticated"
                                          : "loopback without a secret");
    tutti__member_view_release(view);
}

void tutti__membership_describe(const tutti_membership *membership, char *ret_text, size_t size)
{
    tutti_heartbeat *heartbeat = membership->heartbeat;
    if (heartbeat->cluster->open) {
        describe_view(heartbeat, ret_text, size);
        return;
    }
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
                    heartbeat->cluster->resolver, membership->epoch,
                    heartbeat->tls != NULL       ? "TLS 1.3"
                    : heartbeat->secret.size > 0 ? "authenticated"
                    : membership->size > 1       ? "loopback without a secret"
                                                 : "alone");
    snprintf(ret_text, size, "%s", text.failed ? "" : text.data);
    tutti__text_free(&text);
}

/* ---- the end ---- */

/* A rank that has aborted stays, for a second at most, until its reason has become the verdict. */
static void await_own_verdict(tutti_heartbeat *heartbeat)
{
    int64_t until = tutti__now_ns() + 1000000000;
    pthread_mutex_lock(&heartbeat->lock);
    while (heartbeat->aborted && heartbeat->running && !tutti__roster_over(&heartbeat->roster) &&
           tutti__heartbeat_wait(heartbeat, until))
        ;
    pthread_mutex_unlock(&heartbeat->lock);
}

/* What rank 0 has said must arrive: a socket that is closed with unread bytes throws it away. So it
 * waits, for half a second at most, until the others have ended their links. */
static void linger(tutti_heartbeat *heartbeat)
{
    int64_t until = tutti__now_ns() + 500000000;
    bool linked = heartbeat->running;
    pthread_mutex_lock(&heartbeat->lock);
    while (linked && heartbeat->roster.phase == TUTTI_PHASE_FAILED) {
        linked = false;
        for (size_t i = 0; i < heartbeat->links.count; i++)
            linked = linked || heartbeat->links.data[i]->state == TUTTI_LINK_MEMBER ||
                     heartbeat->links.data[i]->state == TUTTI_LINK_ENDING;
        if (linked && !tutti__heartbeat_wait(heartbeat, until))
            break;
    }
    pthread_mutex_unlock(&heartbeat->lock);
}

void tutti__membership_abandon(tutti_membership *membership)
{
    if (membership == NULL)
        return;
    await_own_verdict(membership->heartbeat);
    linger(membership->heartbeat);
    tutti__heartbeat_free(membership->heartbeat);
}

static tutti_status fail_barrier(const tutti_heartbeat *heartbeat)
{
    char missing[200] = "";
    for (int r = 0; heartbeat->cluster->rank == 0 && r < heartbeat->cluster->size; r++) {
        size_t used = strlen(missing);
        if (!heartbeat->roster.members[r].left && used + 16 < sizeof missing)
            snprintf(missing + used, sizeof missing - used, "%s%d", used > 0 ? ", " : "", r);
    }
    return tutti_fail(TUTTI_DEADLINE, "not all ranks have come to the end of the job in time%s%s",
                      *missing ? "; missing: rank " : "", missing);
}

tutti_status tutti__membership_part(tutti_membership *membership, int64_t deadline_ns)
{
    tutti_heartbeat *heartbeat = membership->heartbeat;
    tutti_roster *roster = &heartbeat->roster;
    tutti_status status = TUTTI_OK;
    pthread_mutex_lock(&heartbeat->lock);
    tutti__roster_leave(roster, tutti__now_ns());
    tutti__heartbeat_wake(heartbeat);
    bool in_time = true;
    while (roster->phase != TUTTI_PHASE_LEFT && roster->phase != TUTTI_PHASE_FAILED && in_time)
        in_time = tutti__heartbeat_wait(heartbeat, deadline_ns);
    bool failed = roster->phase == TUTTI_PHASE_FAILED;
    if (!failed && roster->phase != TUTTI_PHASE_LEFT && roster->phase != TUTTI_PHASE_PARTING)
        status = fail_barrier(heartbeat);
    pthread_mutex_unlock(&heartbeat->lock);
    return failed ? tutti__membership_fail(membership) : status;
}

tutti_status tutti__membership_leave(tutti_membership *membership, int64_t deadline_ns)
{
    tutti_status status = tutti__membership_part(membership, deadline_ns);
    tutti__membership_abandon(membership);
    return status;
}
