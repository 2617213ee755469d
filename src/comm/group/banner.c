/* banner.c: what rank 0 of a job says: once, who is in it and what links cost; at the end, who
 * always came last. */
#include <stdatomic.h>
#include <stdio.h>

#include "base/container.h"
#include "base/log.h"
#include "comm/comm.h"

/* The first pair of ranks joined by such a link: its engine, or NULL where there is none. */
static const char *engine_of(const tutti_fabric *fabric, tutti_comm_link link)
{
    for (int r = 1; r < fabric->size; r++) {
        bool same = fabric->machine[r] == fabric->machine[0];
        if (same == (link == TUTTI_LINK_WITHIN))
            return fabric->engines[r]->name;
    }
    for (int r = 1; link == TUTTI_LINK_WITHIN && r < fabric->size; r++)
        for (int other = r + 1; other < fabric->size; other++)
            if (fabric->machine[r] == fabric->machine[other]) /* rank 0 is alone on its own */
                return fabric->named ? fabric->named->name : "shm";
    return NULL;
}

/* "; shm within a host: 0.3 us, 12.1 GB/s" */
static void add_link(tutti_text *text, const tutti_comm *comm, tutti_comm_link link,
                     const char *where, const char *known)
{
    const char *engine = engine_of(comm->fabric, link);
    double alpha = comm->cost.link[link].alpha,
           beta = comm->cost.link[link].beta[TUTTI_COMM_AT_MIB];
    if (engine && beta > 0)
        tutti__text_add(text, "; %s %s: alpha %.3g us, beta 1/(%.3g GB/s)%s", engine, where,
                        alpha * 1e6, 1e-9 / beta, known);
}

void tutti__comm_say_banner(const tutti_comm *comm)
{
    static atomic_bool said; /* to stderr once, however many groups a program opens */
    char who[2000];
    tutti_text text = {0};
    if (comm->rank != 0 || comm->size < 2)
        return;
    const char *known = comm->cost_given ? ", given" : ", measured";
    tutti__membership_describe(comm->fabric->membership, who, sizeof who);
    tutti__text_add(&text, "%s", who);
    add_link(&text, comm, TUTTI_LINK_WITHIN, "within a host", known);
    add_link(&text, comm, TUTTI_LINK_BETWEEN, "between hosts", known);
    if (!text.failed)
        (atomic_exchange(&said, true) ? tutti__log : tutti__log_job)(TUTTI_LOG_INFO, "%s",
                                                                     text.data);
    tutti__text_free(&text);
}

void tutti__comm_say_straggler(const tutti_membership *members)
{
    tutti_skew skew;
    int rank =
        members->rank == 0 && members->size > 1 ? tutti__membership_straggler(members, &skew) : -1;
    if (rank >= 0)
        tutti__log_job(
            TUTTI_LOG_WARNING,
            "rank %d (host %s, process %lld) came last by far to %.0f %% of its operations that were "
            "looked at (%llu), %.3g ms late on average and %.3g ms at most: all others waited for "
            "it",
            rank, members->peers[rank].host, (long long)members->peers[rank].pid,
            100.0 * (double)skew.last_by[0] / (double)skew.samples,
            (unsigned long long)skew.samples, (double)skew.mean_ns * 1e-6,
            (double)skew.most_ns * 1e-6);
}
