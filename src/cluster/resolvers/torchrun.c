/* torchrun.c: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, as torchrun and Kubeflow's PyTorchJob set
 * them. torchrun's own store may listen at MASTER_PORT; then rank 0 takes the port after it. */
#include <stdlib.h>
#include <strings.h>

#include "cluster/cluster.h"

static bool present(const tutti_cluster_options *options)
{
    TUTTI_UNUSED(options);
    return tutti__environment_has("RANK") && tutti__environment_has("WORLD_SIZE") &&
           tutti__environment_has("MASTER_ADDR");
}

static tutti_status resolve(const tutti_cluster_options *options, tutti_cluster *cluster)
{
    TUTTI_UNUSED(options);
    int64_t rank, size, port, value;
    const char *store = getenv("TORCHELASTIC_USE_AGENT_STORE"), *master = getenv("MASTER_ADDR");
    TUTTI_TRY(tutti__environment_need("RANK", "torchrun"));
    TUTTI_TRY(tutti__environment_need("WORLD_SIZE", "torchrun"));
    TUTTI_TRY(tutti__environment_int("WORLD_SIZE", 1, TUTTI_MOST_RANKS, 1, &size));
    TUTTI_TRY(tutti__environment_int("RANK", 0, size - 1, 0, &rank));
    TUTTI_TRY(tutti__environment_int("MASTER_PORT", 1, 65534, 29500, &port));
    TUTTI_TRY(tutti__environment_int("LOCAL_RANK", 0, size - 1, -1, &value));
    cluster->local_rank = (int)value;
    TUTTI_TRY(tutti__environment_int("LOCAL_WORLD_SIZE", 1, size, 0, &value));
    cluster->local_size = (int)value;
    TUTTI_TRY(tutti__environment_int("TORCHELASTIC_RESTART_COUNT", 0, INT32_MAX, 0, &value));
    cluster->epoch = (uint32_t)value;
    if (store != NULL && strcasecmp(store, "true") == 0)
        port++;
    TUTTI_TRY(tutti__cluster_flat(cluster, (int)rank, (int)size, 0));
    return tutti__cluster_meet(cluster, master != NULL ? master : "localhost", (int)port);
}

const tutti_resolver tutti_resolver_torchrun = {
    .name = "torchrun",
    .order = 40,
    .reads = "RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT",
    .present = present,
    .resolve = resolve,
};
