/* slurm.c: a job step of Slurm (srun). In a batch script without srun only the first task runs, so
 * SLURM_STEP_NUM_TASKS must be there. Rank 0 is on the first host of the step's list, under any
 * distribution. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster.h"

static bool slurm_present(const tutti_cluster_options *options)
{
    TUTTI_UNUSED(options);
    return tutti__environment_has("SLURM_PROCID") && tutti__environment_has("SLURM_STEP_NUM_TASKS");
}

static void name_job(tutti_cluster *cluster)
{
    const char *job = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID");
    if (job != NULL && *job != '\0')
        snprintf(cluster->job, sizeof cluster->job, "step %s.%s of Slurm", job,
                 step != NULL ? step : "");
}

/* A port that Slurm reserved for the step ("12000-12003"), else one derived from the step. */
static int choose_port(const tutti_cluster *cluster)
{
    const char *reserved = getenv("SLURM_STEP_RESV_PORTS");
    int port = reserved != NULL ? atoi(reserved) : 0;
    return port > 0 && port < 65536 ? port : tutti__derived_port(cluster->job);
}

typedef struct placing {
    tutti_cluster *cluster;
    const char *counts; /* "2(x3),1": tasks on each host */
    int repeats, count, placed, hosts;
    char first[256];
} placing;

static bool read_count(const char **at, int64_t *ret)
{
    size_t digits = strspn(*at, "0123456789");
    if (digits == 0 || digits > 6)
        return false;
    *ret = strtol(*at, NULL, 10);
    *at += digits;
    return *ret > 0;
}

/* Sums up "2(x3),1": tasks and hosts. False when it is no such list. */
static bool sum_counts(const char *at, int64_t *ret_tasks, int64_t *ret_hosts)
{
    *ret_tasks = *ret_hosts = 0;
    for (;; at++) {
        int64_t count, times = 1;
        if (!read_count(&at, &count))
            return false;
        if (at[0] == '(' && at[1] == 'x') {
            at += 2;
            if (!read_count(&at, &times) || *at++ != ')')
                return false;
        }
        *ret_tasks += count * times;
        *ret_hosts += times;
        if (*at != ',')
            return *at == '\0';
    }
}

/* What Slurm says of places must fit together: it says who is on which machine. */
static tutti_status check_places(int size, int hosts, int64_t node)
{
    const char *counts = getenv("SLURM_STEP_TASKS_PER_NODE");
    bool of_step = tutti__environment_has("SLURM_STEP_NODELIST"); /* the job may have more hosts */
    int64_t tasks = 0, listed = 0;
    if (node >= hosts)
        return tutti_fail(TUTTI_INVALID,
                          "SLURM_NODEID is %lld, but SLURM_STEP_NODELIST has %d host%s; start all "
                          "tasks with one srun, or unset SLURM_NODEID",
                          (long long)node, hosts, hosts == 1 ? "" : "s");
    if (counts == NULL || *counts == '\0')
        return TUTTI_OK;
    if (!sum_counts(counts, &tasks, &listed))
        return tutti_fail(TUTTI_INVALID,
                          "SLURM_STEP_TASKS_PER_NODE is '%.100s'; it must be numbers of tasks by "
                          "host, as 2(x3),1",
                          counts);
    if (tasks != size || (of_step ? listed != hosts : listed > hosts))
        return tutti_fail(TUTTI_INVALID,
                          "SLURM_STEP_TASKS_PER_NODE is '%.100s', %lld tasks on %lld hosts, but "
                          "SLURM_STEP_NUM_TASKS is %d and SLURM_%s_NODELIST has %d host%s; start "
                          "all tasks with one srun, or unset SLURM_STEP_TASKS_PER_NODE",
                          counts, (long long)tasks, (long long)listed, size,
                          of_step ? "STEP" : "JOB", hosts, hosts == 1 ? "" : "s");
    return TUTTI_OK;
}

/* The next host's number of tasks; 0 when the list is at its end or no list. */
static int next_count(placing *p)
{
    char *end;
    if (p->repeats > 0)
        return p->repeats--, p->count;
    if (p->counts == NULL || *p->counts == '\0')
        return 0;
    p->count = (int)strtol(p->counts, &end, 10);
    if (end[0] == '(' && end[1] == 'x')
        p->repeats = (int)strtol(end + 2, &end, 10) - 1;
    end += strcspn(end, ",");
    p->counts = *end == ',' ? end + 1 : end;
    return p->count;
}

/* Tasks on this host: of the one that SLURM_NODEID counts, else, in blocks, of the one that has
 * this rank, else of any where all have as many. 0: Slurm does not say. */
static int count_here(int rank, int size, bool blocks, int64_t node)
{
    placing p = {.counts = getenv("SLURM_STEP_TASKS_PER_NODE")};
    int first = 0, count, here = 0, before = 0;
    bool even = true;
    for (int host = 0; before < size && (count = next_count(&p)) > 0; host++) {
        first = host == 0 ? count : first;
        even = even && count == first;
        if (node >= 0 ? host == node : blocks && rank >= before && rank < before + count)
            here = count;
        before += count;
    }
    if (before != size)
        return 0;
    return here > 0 ? here : even ? first : 0;
}

/* Places are told only where tasks are distributed in blocks; elsewhere rendezvous finds them. */
static tutti_status slurm_place(void *context, const char *host)
{
    placing *p = context;
    p->hosts++;
    if (p->first[0] == '\0')
        snprintf(p->first, sizeof p->first, "%s", host);
    int count = next_count(p);
    int size =
        (int)(p->cluster->tasks[TUTTI_ROLE_WORKER].count + p->cluster->tasks[TUTTI_ROLE_PS].count);
    for (int i = 0; i < count && p->placed < size; i++)
        if (!tutti__cluster_place(p->cluster, p->placed++, host))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory");
    return TUTTI_OK;
}

static tutti_status slurm_resolve(const tutti_cluster_options *options, tutti_cluster *cluster)
{
    TUTTI_UNUSED(options);
    int64_t rank, size, value, node;
    TUTTI_TRY(tutti__environment_int("SLURM_STEP_NUM_TASKS", 1, TUTTI_MOST_RANKS, 1, &size));
    TUTTI_TRY(tutti__environment_int("SLURM_PROCID", 0, size - 1, 0, &rank));
    TUTTI_TRY(tutti__environment_int("SLURM_LOCALID", 0, size - 1, -1, &value));
    cluster->local_rank = (int)value;
    TUTTI_TRY(tutti__environment_int("SLURM_NODEID", 0, INT32_MAX, -1, &node));
    TUTTI_TRY(tutti__environment_int("SLURM_RESTART_COUNT", 0, INT32_MAX, 0, &value));
    cluster->epoch = (uint32_t)value;
    TUTTI_TRY(tutti__cluster_flat_with_servers(cluster, (int)rank, (int)size));
    const char *nodes = getenv("SLURM_STEP_NODELIST"), *spread = getenv("SLURM_DISTRIBUTION");
    if (nodes == NULL || *nodes == '\0')
        nodes = getenv("SLURM_JOB_NODELIST");
    if (nodes == NULL)
        return tutti_fail(TUTTI_INVALID, "SLURM_STEP_NODELIST is not set; start it with srun");
    placing p = {.cluster = cluster};
    bool blocks = spread == NULL || strncmp(spread, "block", 5) == 0;
    if (blocks)
        p.counts = getenv("SLURM_STEP_TASKS_PER_NODE");
    TUTTI_TRY(tutti__hostlist(nodes, slurm_place, &p));
    TUTTI_TRY(check_places((int)size, p.hosts, node));
    int here = count_here((int)rank, (int)size, blocks, node);
    if (cluster->local_rank >= 0 && (cluster->local_rank < here || node >= 0))
        cluster->local_size = here;
    name_job(cluster);
    return tutti__cluster_meet(cluster, p.first, choose_port(cluster));
}

const tutti_resolver tutti_resolver_slurm = {
    .name = "slurm",
    .order = 60,
    .reads = "SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_STEP_NODELIST",
    .present = slurm_present,
    .resolve = slurm_resolve,
};
