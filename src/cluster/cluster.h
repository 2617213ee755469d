/* cluster.h: a resolved cluster from inside, and the table of resolvers.
 * tables: tutti_resolver
 *
 * A resolver reads one scheduler's variables. It is one file in resolvers/, ending in one
 * descriptor, and touches neither files nor the network. */
#ifndef TUTTI_CLUSTER_CLUSTER_H
#define TUTTI_CLUSTER_CLUSTER_H

#include "base/arena.h"
#include "base/container.h"
#include "cluster/membership.h"

struct tutti_cluster {
    tutti_arena arena; /* texts */
    TUTTI_VEC(const char *) tasks[TUTTI_ROLE_COUNT];
    tutti_role role;
    int index, rank, size;
    int local_rank, local_size;
    const char *meeting; /* rank 0's "host:port"; "": to be asked of MPI */
    /* The scheduler's name for this run, the same on all ranks and of no other job; "": none. */
    char job[TUTTI_JOB_BYTES];
    const char *resolver;
    char secret_source[300];
    uint32_t epoch;
    bool open;   /* its ranks come and go, under numbered views */
    bool rejoin; /* the job is there already: this process is not its first */
    /* Descriptors that the launcher left open; -1: none. */
    int secret_fd, launcher_fd, listen_fd;
};

typedef struct tutti_resolver {
    const char *name;
    int order;         /* lower ones are asked first */
    const char *reads; /* the variables, for messages and the manual */
    bool (*present)(const tutti_cluster_options *options);
    /* Fills tasks, role, index, meeting and what else it knows; the rest is worked out for it. */
    tutti_status (*resolve)(const tutti_cluster_options *options, tutti_cluster *cluster);
} tutti_resolver;

/* ---- for resolvers ---- */

/* Adds a task; "" where nothing is known of its place. Fails for lack of memory or too many. */
tutti_status tutti__cluster_add(tutti_cluster *cluster, tutti_role role, const char *task);
/* The same for "a:1,b:2"; NULL and "" add nothing. */
tutti_status tutti__cluster_add_list(tutti_cluster *cluster, tutti_role role, const char *list);
/* Ranks that all do the same work: rank 0 .. size-1 become workers 0 .. size-1, the last `ps` of
 * them parameter servers. */
tutti_status tutti__cluster_flat(tutti_cluster *cluster, int rank, int size, int ps);
/* The same, with TUTTI_PS servers. */
tutti_status tutti__cluster_flat_with_servers(tutti_cluster *cluster, int rank, int size);
/* Where a rank is, by its number: after tutti__cluster_flat. False when memory is out. */
bool tutti__cluster_place(tutti_cluster *cluster, int rank, const char *task);
tutti_status tutti__cluster_meet(tutti_cluster *cluster, const char *host, int port);
/* An integer variable in [low, high]; `fallback` when it is not set or empty. */
tutti_status tutti__environment_int(const char *name, int64_t low, int64_t high, int64_t fallback,
                                    int64_t *ret_value);
bool tutti__environment_has(const char *name); /* and not empty */
/* For a resolver that may be asked for by name where its scheduler has set nothing. */
tutti_status tutti__environment_need(const char *name, const char *starter);
/* "worker" → WORKER; TUTTI_INVALID with the names that exist. "master" is chief, as TensorFlow once
 * wrote. */
tutti_status tutti__role_read(const char *text, tutti_role *ret_role);
/* Refuses mpirun's variables where one is set that says nothing without another (mpi.c). */
tutti_status tutti__mpi_refuse_half(void);
/* What gives a job a port of its own where its scheduler gives none. */
#define TUTTI_PORT_ADVICE "with mpirun by TUTTI_MEETING=HOST:PORT, with srun by --resv-ports"
/* A port for a job that has none of its own: a function of the job's name, in 20000 .. 29999. */
int tutti__derived_port(const char *job);

/* ---- for everybody here ---- */

/* "host:port", "[::1]:port", "host": false when it is none of these. Port 0: none given. */
bool tutti__task_split(const char *task, char *ret_host, size_t size, int *ret_port);
/* "localhost", "127.0.0.1", "::1", "ip6-localhost". */
bool tutti__host_loopback(const char *host);
/* Refuses what cannot work, with the fix. */
tutti_status tutti__preflight(const tutti_cluster *cluster);
/* Slurm's host lists: "node[001-003,7],b" → node001 node002 node003 node7 b. Calls `add` for each;
 * at most TUTTI_MOST_RANKS. */
tutti_status tutti__hostlist(const char *list, tutti_status (*add)(void *context, const char *host),
                             void *context);

#endif
