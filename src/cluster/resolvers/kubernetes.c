/* kubernetes.c: an indexed Job with a headless service: pod i is NAME-i.SERVICE, and its number is
 * JOB_COMPLETION_INDEX. (Kubeflow's TFJob sets TF_CONFIG, its PyTorchJob torchrun's variables.) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster.h"

static bool kubernetes_present(const tutti_cluster_options *options)
{
    TUTTI_UNUSED(options);
    return tutti__environment_has("JOB_COMPLETION_INDEX") && tutti__environment_has("TUTTI_SIZE") &&
           tutti__environment_has("TUTTI_SERVICE");
}

/* "train-3" → "train" */
static tutti_status job_name(char *ret_name, size_t size)
{
    const char *pod = getenv("HOSTNAME"), *dash = pod != NULL ? strrchr(pod, '-') : NULL;
    if (dash == NULL || dash == pod || dash[strspn(dash + 1, "0123456789") + 1] != '\0')
        return tutti_fail(TUTTI_INVALID,
                          "HOSTNAME is '%s', not a pod of an indexed Job (NAME-INDEX); set "
                          "completionMode: Indexed and subdomain: $TUTTI_SERVICE",
                          pod != NULL ? pod : "");
    snprintf(ret_name, size, "%.*s", (int)(dash - pod), pod);
    return TUTTI_OK;
}

static tutti_status kubernetes_resolve(const tutti_cluster_options *options, tutti_cluster *cluster)
{
    TUTTI_UNUSED(options);
    int64_t rank, size, port;
    char name[200];
    TUTTI_TRY(tutti__environment_int("TUTTI_SIZE", 1, TUTTI_MOST_RANKS, 1, &size));
    TUTTI_TRY(tutti__environment_int("JOB_COMPLETION_INDEX", 0, size - 1, 0, &rank));
    TUTTI_TRY(tutti__environment_int("TUTTI_PORT", 1, 65535, 4711, &port));
    TUTTI_TRY(job_name(name, sizeof name));
    const char *service = getenv("TUTTI_SERVICE");
    TUTTI_TRY(tutti__cluster_flat_with_servers(cluster, (int)rank, (int)size));
    for (int r = 0; r < (int)size; r++) {
        const char *task = tutti__arena_format(&cluster->arena, "%s-%d.%s:%d", name, r,
                                               service != NULL ? service : "", (int)port);
        if (task == NULL || !tutti__cluster_place(cluster, r, task))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory");
    }
    return TUTTI_OK;
}

const tutti_resolver tutti_resolver_kubernetes = {
    .name = "kubernetes",
    .order = 30,
    .reads = "JOB_COMPLETION_INDEX, TUTTI_SIZE, TUTTI_SERVICE",
    .present = kubernetes_present,
    .resolve = kubernetes_resolve,
};
