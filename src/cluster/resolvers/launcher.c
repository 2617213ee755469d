/* launcher.c: `tutti run` says everything. */
#include <stdlib.h>

#include "cluster/cluster.h"

static bool launcher_present(const tutti_cluster_options *options)
{
    TUTTI_UNUSED(options);
    return tutti__environment_has("TUTTI_RANK") && tutti__environment_has("TUTTI_SIZE");
}

static tutti_status launcher_resolve(const tutti_cluster_options *options, tutti_cluster *cluster)
{
    TUTTI_UNUSED(options);
    int64_t rank, size, value;
    TUTTI_TRY(tutti__environment_need("TUTTI_RANK", "tutti run"));
    TUTTI_TRY(tutti__environment_need("TUTTI_SIZE", "tutti run"));
    TUTTI_TRY(tutti__environment_int("TUTTI_SIZE", 1, TUTTI_MOST_RANKS, 1, &size));
    TUTTI_TRY(tutti__environment_int("TUTTI_RANK", 0, size - 1, 0, &rank));
    TUTTI_TRY(tutti__cluster_flat_with_servers(cluster, (int)rank, (int)size));
    TUTTI_TRY(tutti__environment_int("TUTTI_LOCAL_RANK", 0, size - 1, -1, &value));
    cluster->local_rank = (int)value;
    TUTTI_TRY(tutti__environment_int("TUTTI_LOCAL_SIZE", 1, size, 0, &value));
    cluster->local_size = (int)value;
    TUTTI_TRY(tutti__environment_int("TUTTI_EPOCH", 0, INT32_MAX, 0, &value));
    cluster->epoch = (uint32_t)value;
    TUTTI_TRY(tutti__environment_int("TUTTI_SECRET_FD", 3, INT32_MAX, -1, &value));
    cluster->secret_fd = (int)value;
    TUTTI_TRY(tutti__environment_int("TUTTI_LAUNCHER_FD", 3, INT32_MAX, -1, &value));
    cluster->launcher_fd = (int)value;
    TUTTI_TRY(tutti__environment_int("TUTTI_LISTEN_FD", 3, INT32_MAX, -1, &value));
    cluster->listen_fd = (int)value;
    TUTTI_TRY(tutti__environment_int("TUTTI_REJOIN", 0, 1, 0, &value));
    cluster->rejoin = value == 1;
    cluster->meeting = tutti__arena_string(&cluster->arena, getenv("TUTTI_MEETING"));
    if (size > 1 && !tutti__environment_has("TUTTI_MEETING"))
        return tutti_fail(
            TUTTI_INVALID,
            "TUTTI_RANK and TUTTI_SIZE are set, but TUTTI_MEETING is not; set it to "
            "the host:port at which rank 0 is to be reached, or start with tutti run");
    return TUTTI_OK;
}

const tutti_resolver tutti_resolver_launcher = {
    .name = "launcher",
    .order = 10,
    .reads = "TUTTI_RANK, TUTTI_SIZE, TUTTI_MEETING",
    .present = launcher_present,
    .resolve = launcher_resolve,
};
