/* mpi.c: mpirun's variables: OpenMPI, MPICH and Intel (PMI), PMIx. They say nothing of where rank 0
 * is: on one machine that is loopback, on several TUTTI_MEETING or Slurm's host list says it, or
 * MPI is asked when a group is opened. */
#define _GNU_SOURCE /* struct ucred */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/cluster.h"

static const struct family {
    const char *rank, *size, *local_rank, *local_size;
    const char *job; /* NULL: none that all ranks share */
} families[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", NULL},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE", "MPIRUN_ID"},
    {"PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK", "PMIX_LOCAL_SIZE", "PMIX_NAMESPACE"},
};

static const struct family *find_family(void)
{
    for (size_t i = 0; i < TUTTI_COUNT(families); i++)
        if (tutti__environment_has(families[i].rank) && tutti__environment_has(families[i].size))
            return &families[i];
    return NULL;
}

tutti_status tutti__mpi_refuse_half(void)
{
    for (size_t i = 0; i < TUTTI_COUNT(families); i++) {
        const struct family *family = &families[i];
        bool ranked = tutti__environment_has(family->rank);
        bool sized = tutti__environment_has(family->size);
        bool known = i == 0; /* others set their rank alone for one process, too */
        if (ranked && !sized && (known || strtol(getenv(family->rank), NULL, 10) > 0))
            return tutti_fail(TUTTI_INVALID,
                              "%s=%.20s is set, but %s is not; start all ranks with one mpirun, "
                              "or unset it",
                              family->rank, getenv(family->rank), family->size);
        if (sized && !ranked && strcmp(getenv(family->size), "1") != 0)
            return tutti_fail(TUTTI_INVALID,
                              "%s=%.20s is set, but %s is not; start all ranks with one mpirun, "
                              "or unset it",
                              family->size, getenv(family->size), family->rank);
    }
    return TUTTI_OK;
}

static bool mpi_present(const tutti_cluster_options *options)
{
    TUTTI_UNUSED(options);
    return find_family() != NULL;
}

static tutti_status keep_first(void *context, const char *host)
{
    char *first = context;
    if (*first == '\0')
        snprintf(first, 256, "%s", host);
    return TUTTI_OK;
}

static const char *text_of(const char *name)
{
    const char *text = name != NULL ? getenv(name) : NULL;
    return text != NULL ? text : "";
}

/* The process that started all ranks of this machine, by MPICH's mpirun and its kin: it made the
 * pair of sockets PMI_FD, which wrappers pass on, where a parent would be another one for each
 * rank. 0: not known. PMI's own name of a job can only be asked for over that socket, which belongs
 * to MPI. */
static pid_t find_starter(void)
{
    struct ucred owner = {0};
    struct sockaddr_storage name = {0};
    socklen_t size = sizeof owner, named = sizeof name;
    int64_t fd;
    if (tutti__environment_int("PMI_FD", 0, INT_MAX, -1, &fd) != TUTTI_OK) {
        tutti__error_forget();
        return 0;
    }
    bool is_pair = fd >= 0 && getpeername((int)fd, (void *)&name, &named) == 0 &&
                   name.ss_family == AF_UNIX && named == sizeof name.ss_family;
    bool known = is_pair && getsockopt((int)fd, SOL_SOCKET, SO_PEERCRED, &owner, &size) == 0;
    return known && owner.pid != getpid() ? owner.pid : 0;
}

/* What all ranks of one mpirun see, and those of another do not: "" where there is nothing of the
 * kind, as of MPICH without Slurm on several machines. Under mpirun a step of Slurm is that of its
 * helpers; where the meeting is given, it need not be the same on all machines. */
static void name_job(const struct family *family, int size, tutti_cluster *cluster)
{
    bool one_machine = cluster->local_size == size;
    bool given = tutti__environment_has("TUTTI_MEETING");
    pid_t starter = one_machine ? find_starter() : 0;
    const char *name = text_of(family->job), *slurm = text_of("SLURM_JOB_ID");
    if (*name != '\0')
        snprintf(cluster->job, sizeof cluster->job, "%s=%s", family->job, name);
    else if (starter > 0)
        snprintf(cluster->job, sizeof cluster->job, "process %d of mpirun", (int)starter);
    else if (*slurm != '\0')
        snprintf(cluster->job, sizeof cluster->job, "job %s%s%s of Slurm", slurm, given ? "" : ".",
                 given ? "" : text_of("SLURM_STEP_ID"));
}

static int choose_port(const tutti_cluster *cluster)
{
    char job[300];
    snprintf(job, sizeof job, "mpi %s %u", cluster->job, (unsigned)getuid());
    return tutti__derived_port(job);
}

/* The hosts of srun's step where srun itself has started the ranks (--mpi=pmi2): it need not begin
 * at the job's first. Otherwise the step is that of mpirun's helpers, which may lack the first. */
static const char *find_hosts(int rank, int size)
{
    const char *step = text_of("SLURM_STEP_NODELIST");
    bool by_srun = *step != '\0' && tutti__environment_has("SLURM_PROCID") &&
                   atoi(text_of("SLURM_PROCID")) == rank &&
                   atoi(text_of("SLURM_STEP_NUM_TASKS")) == size;
    return by_srun ? step : text_of("SLURM_JOB_NODELIST");
}

static tutti_status find_meeting(tutti_cluster *cluster, int rank, int size)
{
    char first[256] = "";
    const char *meeting = getenv("TUTTI_MEETING"), *nodes = find_hosts(rank, size);
    if (meeting != NULL && *meeting != '\0') {
        cluster->meeting = tutti__arena_string(&cluster->arena, meeting);
        return cluster->meeting != NULL ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory");
    }
    if (cluster->local_size == size || size == 1)
        return tutti__cluster_meet(cluster, "127.0.0.1", choose_port(cluster));
    if (*nodes == '\0') {
        cluster->meeting = "";
        return TUTTI_OK;
    }
    TUTTI_TRY(tutti__hostlist(nodes, keep_first, first));
    return tutti__cluster_meet(cluster, first, choose_port(cluster));
}

static tutti_status mpi_resolve(const tutti_cluster_options *options, tutti_cluster *cluster)
{
    TUTTI_UNUSED(options);
    const struct family *family = find_family();
    int64_t rank, size, value;
    if (family == NULL)
        return tutti_fail(TUTTI_NOT_FOUND, "none of mpirun's variables is set");
    TUTTI_TRY(tutti__environment_int(family->size, 1, TUTTI_MOST_RANKS, 1, &size));
    TUTTI_TRY(tutti__environment_int(family->rank, 0, size - 1, 0, &rank));
    TUTTI_TRY(tutti__environment_int(family->local_rank, 0, size - 1, -1, &value));
    cluster->local_rank = (int)value;
    TUTTI_TRY(tutti__environment_int(family->local_size, 1, size, 0, &value));
    cluster->local_size = (int)value;
    TUTTI_TRY(tutti__cluster_flat_with_servers(cluster, (int)rank, (int)size));
    name_job(family, (int)size, cluster);
    return find_meeting(cluster, (int)rank, (int)size);
}

const tutti_resolver tutti_resolver_mpi = {
    .name = "mpi",
    .order = 50,
    .reads = "OMPI_COMM_WORLD_*, PMI_RANK, MV2_COMM_WORLD_*, PMIX_RANK",
    .present = mpi_present,
    .resolve = mpi_resolve,
};
