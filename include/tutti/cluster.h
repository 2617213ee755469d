/* cluster.h: who is in the job: roles, tasks and addresses, found from the environment that started
 * the program (tutti run, TF_CONFIG, Slurm, MPI, torchrun, Kubernetes) or from the program's own
 * options.
 *
 *     tutti_cluster *cluster;
 *     TUTTI_TRY(tutti_cluster_resolve(NULL, &cluster));
 *     printf("rank %d of %d, by %s\n", tutti_cluster_rank(cluster), tutti_cluster_size(cluster),
 *            tutti_cluster_resolver(cluster));
 *     tutti_cluster_free(cluster);
 */
#ifndef TUTTI_CLUSTER_H
#define TUTTI_CLUSTER_H

#include "tutti/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a process is for. Ranks are numbered in this order: the chief, the workers, the parameter
 * servers. An evaluator stands beside the job: it has no rank and nobody waits for it. */
typedef enum tutti_role {
    TUTTI_ROLE_CHIEF,
    TUTTI_ROLE_WORKER,
    TUTTI_ROLE_PS,
    TUTTI_ROLE_EVALUATOR,
    TUTTI_ROLE_COUNT,
} tutti_role;

/* "chief", "worker", "ps", "evaluator"; "unknown" for any other number. */
TUTTI_API const char *tutti_role_text(tutti_role role);

/* Zero means: ask the environment. Lists are "host:port,host:port". */
typedef struct tutti_cluster_options {
    size_t struct_size;
    const char *resolver; /* its name, when several could answer: "launcher", "tf_config", ... */
    const char *chief, *workers, *ps, *evaluators; /* any of these selects the resolver "flags" */
    const char *role;                              /* own: "chief", "worker", "ps", "evaluator" */
    int index;                                     /* own, within the role */
} tutti_cluster_options;

typedef struct tutti_cluster tutti_cluster;

/* Finds out who is in the job and checks that it is plausible; touches no network. The first of
 * these that finds its variables is used: options ("flags"), tutti run ("launcher"), TF_CONFIG
 * ("tf_config"; Kubeflow sets it too), an indexed job of Kubernetes with TUTTI_SIZE and
 * TUTTI_SERVICE ("kubernetes"), "torchrun", "mpi" (OpenMPI, PMIx, MPICH, Intel), "slurm". Where
 * none does, the job is this process alone: "single", rank 0 of 1. A description that cannot work
 * is refused with the fix in the message. The caller owns *ret_cluster. `options` may be NULL. */
TUTTI_API tutti_status tutti_cluster_resolve(const tutti_cluster_options *options,
                                             tutti_cluster **ret_cluster);
TUTTI_API void tutti_cluster_free(tutti_cluster *cluster); /* NULL is fine */

/* A cluster does not change after it was resolved; threads may share it. */
TUTTI_API int tutti_cluster_rank(const tutti_cluster *cluster); /* own; -1 for an evaluator */
TUTTI_API int tutti_cluster_size(const tutti_cluster *cluster); /* chief, workers and ps together */
TUTTI_API tutti_role tutti_cluster_role(const tutti_cluster *cluster); /* own */
TUTTI_API int tutti_cluster_index(const tutti_cluster *cluster);       /* own, within the role */
/* Own number among the ranks of this machine, and how many they are, where the environment says
 * so; else -1 and 0 (rendezvous finds out). */
TUTTI_API int tutti_cluster_local_rank(const tutti_cluster *cluster);
TUTTI_API int tutti_cluster_local_size(const tutti_cluster *cluster);
/* How many tasks a role has, and where one of them is: "host:port", "host" where the port is not
 * known before rendezvous, "" where nothing is. NULL when there is no such task. */
TUTTI_API int tutti_cluster_count(const tutti_cluster *cluster, tutti_role role);
TUTTI_API const char *tutti_cluster_task(const tutti_cluster *cluster, tutti_role role, int index);
/* The role of a rank and its number within it; false when there is no such rank. */
TUTTI_API bool tutti_cluster_find_rank(const tutti_cluster *cluster, int rank, tutti_role *ret_role,
                                       int *ret_index);
/* Where ranks meet: rank 0's "host:port"; "" under an mpirun over several machines, where MPI says
 * it when a group is opened. */
TUTTI_API const char *tutti_cluster_rendezvous(const tutti_cluster *cluster);
/* Which resolver answered ("tf_config"), and where the secret comes from: "launcher", a file's
 * path, "environment" or "none". */
TUTTI_API const char *tutti_cluster_resolver(const tutti_cluster *cluster);
TUTTI_API const char *tutti_cluster_secret_source(const tutti_cluster *cluster);

#ifdef __cplusplus
}
#endif
#endif
