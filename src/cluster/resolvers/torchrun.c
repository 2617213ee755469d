/* torchrun.c: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, as torchrun and Kubeflow's PyTorchJob set
 * them. torchrun's own store may listen at MASTER_PORT; then rank 0 takes the port after it. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cluster/cluster.h"

static bool torchrun_present(const tutti_cluster_options *options)
{
    TUTTI_UNUSED(options);
    return tutti__environment_has("RANK") && tutti__environment_has("WORLD_SIZE") &&
           tutti__environment_has("MASTER_ADDR");
}

/* A port belongs elsewhere; colons are only in IPv6 addresses. */
static tutti_status check_master(const char *master)
{
    struct in6_addr address;
    char plain[INET6_ADDRSTRLEN] = "";
    const char *colon = strrchr(master, ':');
    bool bracketed = master[0] == '[' && master[strlen(master) - 1] == ']';
    if (colon == NULL || bracketed)
        return TUTTI_OK;
    snprintf(plain, sizeof plain, "%.*s", (int)strcspn(master, "%"), master);
    if (inet_pton(AF_INET6, plain, &address) == 1)
        return TUTTI_OK;
    return tutti_fail(TUTTI_INVALID,
                      "MASTER_ADDR is '%s'; it is the name of rank 0's machine alone, and its port "
                      "stands in MASTER_PORT: MASTER_ADDR=%.*s MASTER_PORT=%s",
                      master, (int)(colon - master), master, colon + 1);
}

static tutti_status torchrun_resolve(const tutti_cluster_options *options, tutti_cluster *cluster)
{
    TUTTI_UNUSED(options);
    int64_t rank, size, port, value;
    const char *store = getenv("TORCHELASTIC_USE_AGENT_STORE"), *master = getenv("MASTER_ADDR");
    TUTTI_TRY(tutti__environment_need("RANK", "torchrun"));
    TUTTI_TRY(tutti__environment_need("WORLD_SIZE", "torchrun"));
    TUTTI_TRY(check_master(master != NULL ? master : ""));
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
    TUTTI_TRY(tutti__cluster_flat_with_servers(cluster, (int)rank, (int)size));
    return tutti__cluster_meet(cluster, master != NULL ? master : "localhost", (int)port);
}

const tutti_resolver tutti_resolver_torchrun = {
    .name = "torchrun",
    .order = 40,
    .reads = "RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT",
    .present = torchrun_present,
    .resolve = torchrun_resolve,
};
