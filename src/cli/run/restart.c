/* restart.c: a job and its restarts: each start takes the hosts that are there. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/run/run.h"
#include "cluster/secret.h"

static bool make_secret(tutti_run_job *job)
{
    unsigned char bytes[32];
    if (tutti__random_fill(bytes, sizeof bytes) != TUTTI_OK)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(job->secret + 2 * i, 3, "%02x", bytes[i]);
    explicit_bzero(bytes, sizeof bytes);
    return true;
}

static bool left_out(const tutti_run_host *host)
{
    return host->away || host->apart;
}

static int ranks_left(const tutti_run_job *job)
{
    int ranks = 0;
    for (size_t i = 0; i < job->hosts.count; i++)
        ranks += left_out(&job->hosts.data[i]) ? 0 : job->hosts.data[i].count;
    return ranks;
}

/* Who is to blame that ranks did not meet: when all hosts missed rank 0, its program and no host;
 * when all but its own did, among three or more, its own. */
static void restart_judge(tutti_run_job *part)
{
    tutti_run_host *hosts = part->hosts.data;
    size_t count = part->hosts.count, apart = 0;
    for (size_t i = 0; i < count; i++)
        apart += hosts[i].apart;
    bool flip = apart == count || (count > 2 && apart == count - 1 && !hosts[0].apart);
    for (size_t i = 0; flip && i < count; i++)
        hosts[i].apart = !hosts[i].apart;
}

/* One start with the hosts that are not left out: ranks are numbered anew in their order. */
static int start_once(tutti_run_job *job, int epoch, bool *ret_interrupted)
{
    tutti_run_job part = *job;
    memset(&part.hosts, 0, sizeof part.hosts);
    part.size = ranks_left(job);
    bool good = make_secret(&part);
    for (size_t i = 0; good && i < job->hosts.count; i++)
        if (!left_out(&job->hosts.data[i]))
            good = TUTTI_VEC_PUSH(&part.hosts, job->hosts.data[i]);
    int code = good ? tutti__launch(&part, epoch, ret_interrupted)
                    : (*ret_interrupted = true, tutti__complain("%s", tutti_error_message()));
    restart_judge(&part);
    for (size_t i = 0, at = 0; i < job->hosts.count && at < part.hosts.count; i++)
        if (!left_out(&job->hosts.data[i])) {
            job->hosts.data[i].met = part.hosts.data[at].met;
            job->hosts.data[i].apart = part.hosts.data[at++].apart;
        }
    explicit_bzero(part.secret, sizeof part.secret);
    TUTTI_VEC_FREE(&part.hosts);
    return code;
}

static void announce(const tutti_run_job *job, int number)
{
    int ranks = ranks_left(job);
    fprintf(stderr, "tutti run: starting again, %d of %d", number, job->restarts);
    if (ranks < job->size) {
        const char *before = "; without";
        fprintf(stderr, ", with %d of %d ranks", ranks, job->size);
        for (size_t i = 0; i < job->hosts.count; i++)
            if (left_out(&job->hosts.data[i])) {
                fprintf(stderr, "%s host %s", before, job->hosts.data[i].name);
                before = ",";
            }
    }
    fprintf(stderr, "\n");
}

/* The first start needs all hosts: one that was never there may be a name that is misspelt, and a
 * job without it not the one that was asked for. */
static bool never_met(const tutti_run_job *job)
{
    bool found = false;
    for (size_t i = 0; i < job->hosts.count; i++) {
        const tutti_run_host *host = &job->hosts.data[i];
        if (!host->away || host->local || host->met)
            continue;
        fprintf(stderr,
                "tutti run: host %s was never there; giving up. The first start needs all hosts: "
                "try 'ssh %s true', or leave it out of --hosts\n",
                host->name, host->name);
        found = true;
    }
    return found;
}

/* Who is there for the next start; 0, or the code with which the job ends. `code`: of the start
 * before. */
static int restart_gather(tutti_run_job *job, int code)
{
    for (size_t i = 0; i < job->hosts.count; i++)
        if (job->hosts.data[i].apart && !job->hosts.data[i].away) {
            job->hosts.data[i].away = true;
            fprintf(stderr,
                    "tutti run: ranks of host %s did not meet rank 0 in time; going on without "
                    "that host (can it reach the others?)\n",
                    job->hosts.data[i].name);
        }
    if (tutti__muster(job) != 0)
        return TUTTI_EXIT_INTERRUPTED;
    if (never_met(job))
        return code;
    int workers = ranks_left(job) - job->ps;
    if (workers >= job->min_workers)
        return 0;
    fprintf(stderr,
            "tutti run: %d worker%s left, --min-workers is %d%s; giving up (exit code %d). "
            "Start the job again with --resume when its hosts are back\n",
            workers > 0 ? workers : 0, workers == 1 ? " is" : "s are", job->min_workers,
            job->ps > 0 ? " beside --ps" : "", TUTTI_EXIT_TOO_FEW);
    return TUTTI_EXIT_TOO_FEW;
}

int tutti__run_job(tutti_run_job *job)
{
    bool interrupted = false;
    int code = 1;
    tutti__signals_between_starts();
    /* The secret passes through here; programs that we start dump again. */
    prctl(PR_SET_DUMPABLE, 0);
    for (int epoch = 0; epoch <= job->restarts; epoch++) {
        if (epoch > 0) {
            int end = restart_gather(job, code);
            if (end != 0)
                return end;
            announce(job, epoch);
        }
        code = start_once(job, epoch, &interrupted);
        if (code == 0 || interrupted)
            break;
    }
    return code == 0 && tutti__outlet_lost() ? TUTTI_EXIT_FAILED : code;
}
