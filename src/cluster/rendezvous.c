/* rendezvous.c: how the ranks of a job find each other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/channel.h"
#include "cluster/heartbeat.h"
#include "cluster/place.h"

static const int64_t table_ns = INT64_C(4000000000); /* others wait that long for rank 0's table */

/* ---- meeting ---- */

/* The ranks gather no more: they have met, or something came between. */
static tutti_status check_gathered(tutti_heartbeat *heartbeat)
{
    tutti_verdict verdict;
    pthread_mutex_lock(&heartbeat->lock);
    bool failed = heartbeat->roster.phase == TUTTI_PHASE_FAILED;
    bool refused = heartbeat->roster.refusal != TUTTI_REFUSAL_NONE;
    verdict = heartbeat->roster.verdict;
    pthread_mutex_unlock(&heartbeat->lock);
    if (failed && refused)
        return tutti_fail(TUTTI_DEADLINE, "rank 0 gave up: %s", verdict.text);
    if (failed &&
        heartbeat->cluster->rank > 0) /* others may have met: rank 0 tells each by itself */
        return tutti_fail(TUTTI_CLOSED, "before rank %d had met all others, %s",
                          heartbeat->cluster->rank, verdict.text);
    return failed ? tutti_fail(TUTTI_CLOSED, "before all ranks had met, %s", verdict.text)
                  : TUTTI_OK;
}

static tutti_status wait_as_zero(tutti_heartbeat *heartbeat, int64_t begun_ns, int64_t deadline_ns)
{
    tutti_verdict table;
    pthread_mutex_lock(&heartbeat->lock);
    while (heartbeat->roster.phase == TUTTI_PHASE_GATHERING &&
           tutti__heartbeat_wait(heartbeat, deadline_ns))
        ;
    bool met = heartbeat->roster.phase != TUTTI_PHASE_GATHERING;
    pthread_mutex_unlock(&heartbeat->lock);
    if (met)
        return check_gathered(heartbeat);
    tutti__missing_table(heartbeat, tutti__now_ns() - begun_ns, table.text, sizeof table.text);
    pthread_mutex_lock(&heartbeat->lock);
    met = heartbeat->roster.phase != TUTTI_PHASE_GATHERING; /* the last one came meanwhile */
    if (!met)
        tutti__roster_give_up(&heartbeat->roster, table.text);
    pthread_mutex_unlock(&heartbeat->lock);
    if (!met)
        tutti__missing_tell(heartbeat);
    tutti__heartbeat_wake(heartbeat);
    return met ? TUTTI_OK : tutti_fail(TUTTI_DEADLINE, "%s", table.text);
}

static tutti_status link_to_zero(tutti_heartbeat *heartbeat, const char *host, int port,
                                 int64_t deadline_ns)
{
    tutti_wire wire;
    tutti_link *link;
    TUTTI_TRY(tutti__dial(heartbeat, host, port, TUTTI_PURPOSE_MEMBER, 0, 0, deadline_ns, &wire,
                          heartbeat->reached));
    pthread_mutex_lock(&heartbeat->lock);
    tutti_status status = tutti__link_add(heartbeat, wire, TUTTI_LINK_MEMBER, 0, &link);
    if (status == TUTTI_OK) {
        tutti__roster_linked(&heartbeat->roster, tutti__now_ns());
        tutti__link_read(heartbeat, link); /* TLS may hold what came behind the admission */
    }
    pthread_mutex_unlock(&heartbeat->lock);
    tutti__heartbeat_wake(heartbeat);
    return status;
}

/* Under the lock: the time is over, and rank 0 is not heard any more: no table will come. */
static bool is_mute(const tutti_heartbeat *heartbeat, int64_t deadline_ns)
{
    int64_t now = tutti__now_ns();
    return now >= deadline_ns &&
           now - heartbeat->roster.members[0].heard_ns > heartbeat->silence_ns;
}

/* The end of the time is no event. False when the deadline has passed. */
static bool wait_a_little(tutti_heartbeat *heartbeat, int64_t deadline_ns)
{
    int64_t soon = tutti__now_ns() + INT64_C(100000000);
    tutti__heartbeat_wait(heartbeat, soon < deadline_ns ? soon : deadline_ns);
    return tutti__now_ns() < deadline_ns;
}

static tutti_status fail_mute(const tutti_heartbeat *heartbeat, int64_t silent_ns)
{
    return tutti_fail(
        TUTTI_DEADLINE,
        "rank 0 at %s was reached, but has not been heard for %.1f s: stopped, without "
        "a network, or its machine is down",
        heartbeat->cluster->meeting, (double)silent_ns / 1e9);
}

/* Rank 0 may go and come again while ranks gather, so a link that ends is made anew. */
static tutti_status wait_as_member(tutti_heartbeat *heartbeat, const char *host, int port,
                                   int64_t deadline_ns)
{
    for (;;) {
        tutti_status status = link_to_zero(heartbeat, host, port, deadline_ns);
        if (status == TUTTI_DEADLINE && tutti__now_ns() >= deadline_ns)
            tutti__missing_tell(heartbeat);
        if (status != TUTTI_OK)
            return tutti__membership_failed(&heartbeat->membership) ? check_gathered(heartbeat)
                                                                    : status;
        int64_t patience = deadline_ns == TUTTI_NO_DEADLINE ? deadline_ns : deadline_ns + table_ns;
        bool in_time = true;
        pthread_mutex_lock(&heartbeat->lock);
        while (heartbeat->roster.phase == TUTTI_PHASE_GATHERING &&
               heartbeat->roster.members[0].linked && in_time && !is_mute(heartbeat, deadline_ns))
            in_time = wait_a_little(heartbeat, patience);
        tutti_phase phase = heartbeat->roster.phase;
        int64_t silent_ns = tutti__now_ns() - heartbeat->roster.members[0].heard_ns;
        bool mute = is_mute(heartbeat, deadline_ns);
        pthread_mutex_unlock(&heartbeat->lock);
        if (phase != TUTTI_PHASE_GATHERING)
            return check_gathered(heartbeat);
        if (mute)
            return fail_mute(heartbeat, silent_ns);
        if (!in_time)
            return tutti_fail(TUTTI_DEADLINE,
                              "rank 0 at %s was reached, but not all ranks came in time",
                              heartbeat->cluster->meeting);
    }
}

/* The table of peers as this rank can use it. */
static tutti_status fill_peers(tutti_heartbeat *heartbeat)
{
    int size = heartbeat->cluster->size;
    tutti_peer *peers = calloc((size_t)size, sizeof *peers);
    if (peers == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %d ranks", size);
    pthread_mutex_lock(&heartbeat->lock);
    for (int r = 0; r < size; r++) {
        peers[r] = heartbeat->roster.members[r].peer;
        if (peers[r].address[0] == '\0')
            snprintf(peers[r].address, sizeof peers[r].address, "%s", heartbeat->reached);
    }
    heartbeat->membership.job = heartbeat->roster.job;
    pthread_mutex_unlock(&heartbeat->lock);
    heartbeat->membership.peers = peers;
    return TUTTI_OK;
}

static tutti_status meet(tutti_heartbeat *heartbeat, int64_t deadline_ns)
{
    const tutti_cluster *cluster = heartbeat->cluster;
    int64_t begun = tutti__now_ns();
    char host[256] = "127.0.0.1";
    int port = 0;
    bool alone = cluster->size == 1;
    if (!alone && (cluster->meeting == NULL ||
                   !tutti__task_split(cluster->meeting, host, sizeof host, &port) || port == 0))
        return tutti_fail(TUTTI_INVALID, "where rank 0 is to be reached is '%s', not host:port",
                          cluster->meeting != NULL ? cluster->meeting : "");
    if (tutti__host_loopback(host) && strncmp(host, "127.", 4) != 0 && strcmp(host, "::1") != 0)
        snprintf(host, sizeof host, "127.0.0.1");
    if (cluster->rank == 0) /* where it finds ranks of its own machine */
        snprintf(heartbeat->reached, sizeof heartbeat->reached, "%.63s",
                 tutti__host_loopback(host) ? host : "127.0.0.1");
    if (!alone)
        TUTTI_TRY(tutti__listener_open(heartbeat, host, port, deadline_ns));
    tutti_peer self = {.port = heartbeat->me.port,
                       .pid = heartbeat->me.pid,
                       .machine = heartbeat->me.machine,
                       .role = cluster->role,
                       .index = cluster->index};
    snprintf(self.host, sizeof self.host, "%s", heartbeat->me.host);
    snprintf(self.address, sizeof self.address, "%s", cluster->rank ? heartbeat->me.address : "");
    tutti__roster_self(&heartbeat->roster, &self);
    if (alone)
        return TUTTI_OK;
    if (cluster->rank == 0)
        TUTTI_TRY(tutti__allow_descriptors(cluster->size));
    tutti__wish_descriptors(cluster->size * (1 + TUTTI_CHANNELS_EACH));
    TUTTI_TRY(tutti__heartbeat_start(heartbeat));
    return cluster->rank == 0 ? wait_as_zero(heartbeat, begun, deadline_ns)
                              : wait_as_member(heartbeat, host, port, deadline_ns);
}

tutti_status tutti__membership_join(const tutti_cluster *cluster, int64_t deadline_ns,
                                    tutti_membership **ret_membership)
{
    tutti_heartbeat *heartbeat;
    if (cluster->rank < 0)
        return tutti_fail(TUTTI_INVALID,
                          "an evaluator stands beside the job and has no rank in it; "
                          "let it read checkpoints instead of joining");
    TUTTI_TRY(tutti__heartbeat_create(cluster, &heartbeat));
    tutti_status status = meet(heartbeat, deadline_ns);
    if (status == TUTTI_OK)
        status = fill_peers(heartbeat);
    if (status != TUTTI_OK) {
        tutti_error error;
        tutti__error_capture(status, &error);
        tutti__membership_abandon(&heartbeat->membership);
        return tutti__error_restore(&error);
    }
    *ret_membership = &heartbeat->membership;
    return TUTTI_OK;
}
