/* ranks.c: a group of ranks that does the same work. */
#define _GNU_SOURCE
#include "bench/ranks.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pool.h"
#include "cli/bench.h"
#include "comm/comm.h"

/* The calling thread, to the rank's own CPU. */
static void pin(int rank)
{
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return;
    int number = rank % CPU_COUNT(&all);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && number-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof one, &one);
        }
}

/* A failure ends the group, so that nobody waits for this rank. */
static tutti_status work_as(const tutti_bench_ranks *ranks, tutti_comm *comm)
{
    if (!ranks->free && tutti_comm_size(comm) <= tutti__cpu_count())
        pin(tutti_comm_rank(comm));
    tutti_status status = ranks->work(comm, ranks->context);
    if (status != TUTTI_OK && tutti_comm_rank(comm) == 0)
        tutti__complain("%s", tutti_error_message());
    if (status != TUTTI_OK)
        tutti_comm_abort(comm, tutti_error_message());
    return status;
}

typedef struct rank_thread {
    pthread_t thread;
    const tutti_bench_ranks *ranks;
    tutti_comm *comm;
    tutti_status status;
} rank_thread;

static void *run_thread(void *arg)
{
    rank_thread *rank = arg;
    rank->status = work_as(rank->ranks, rank->comm);
    return NULL;
}

static int run_threads(const tutti_bench_ranks *ranks)
{
    enum { MOST = 256 };
    tutti_comm *comms[MOST];
    rank_thread threads[MOST] = {0};
    int count = ranks->count < MOST ? ranks->count : MOST, started = 0;
    tutti__bench_must(tutti_comm_local(count, ranks->options, comms));
    for (; started < count; started++) {
        threads[started] = (rank_thread){.ranks = ranks, .comm = comms[started]};
        if (pthread_create(&threads[started].thread, NULL, run_thread, &threads[started]) != 0)
            break;
    }
    if (started < count) {
        tutti__complain("no thread for rank %d of %d", started, count);
        tutti_comm_abort(comms[0], "a rank has no thread");
    }
    bool good = started == count;
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i].thread, NULL);
        good &= threads[i].status == TUTTI_OK;
    }
    for (int i = 0; i < count; i++)
        (void)tutti_comm_close(comms[i]);
    return good ? TUTTI_EXIT_OK : TUTTI_EXIT_FAILED;
}

static int run_processes(const tutti_bench_ranks *ranks, tutti_cluster *cluster)
{
    tutti_comm *comm = NULL;
    tutti__bench_must(cluster ? tutti_comm_open(cluster, ranks->options, &comm)
                              : tutti_comm_fork(ranks->count, ranks->options, &comm));
    if (!comm)
        return TUTTI_EXIT_FAILED;
    bool forked = comm->forked && tutti_comm_rank(comm) > 0;
    tutti_status status = work_as(ranks, comm), closed = tutti_comm_close(comm);
    if (forked)
        _exit(status != TUTTI_OK);
    if (status == TUTTI_OK)
        tutti__bench_must(closed);
    return status == TUTTI_OK ? TUTTI_EXIT_OK : TUTTI_EXIT_FAILED;
}

/* Connections that are made before a fork need no certificates, and are not what was asked for. */
static void say_plain(const tutti_bench_ranks *ranks)
{
    const char *certificate = getenv("TUTTI_TLS_CERT");
    if (certificate && *certificate)
        tutti__complain("ranks that the benchmark starts itself speak without TLS; with it: "
                        "tutti run -n %d --engine tcp tutti bench ...",
                        ranks->count);
}

int tutti__bench_run_ranks(const tutti_bench_ranks *ranks)
{
    tutti_cluster *cluster;
    tutti__bench_must(tutti_cluster_resolve(NULL, &cluster));
    bool job = tutti_cluster_size(cluster) > 1;
    const char *engine = ranks->options->engine;
    if (!job && engine && strcmp(engine, "tcp") == 0)
        say_plain(ranks);
    int code = !job && engine && strcmp(engine, "local") == 0
                   ? run_threads(ranks)
                   : run_processes(ranks, job ? cluster : NULL);
    tutti_cluster_free(cluster);
    return code;
}

tutti_status tutti__bench_span(tutti_comm *comm, double start, double end, double *ret_seconds)
{
    double since = comm->hosts > 1 ? start : 0, span[2] = {since - start, end - since};
    TUTTI_TRY(tutti_comm_all_reduce(comm, span, span, 2, TUTTI_F64, TUTTI_MAX, NULL));
    *ret_seconds = span[0] + span[1];
    return TUTTI_OK;
}
