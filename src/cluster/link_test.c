/* link_test.c: who comes to a keeper's listener, on loopback. */
#include <stdio.h>
#include <string.h>

#include "base/test.h"
#include "cluster/keeper.h"
#include "cluster/place.h"

enum { MOST = 320 };

static tutti_cluster *resolve(int size)
{
    static char workers[MOST * 24];
    tutti_cluster *cluster;
    workers[0] = '\0';
    for (int r = 0; r < size; r++)
        snprintf(workers + strlen(workers), sizeof workers - strlen(workers), "%slocalhost:%d",
                 r > 0 ? "," : "", 20000 + r);
    CHECK_OK(tutti_cluster_resolve(
        TUTTI_OPTIONS(tutti_cluster_options, .workers = workers, .index = 1), &cluster));
    return cluster;
}

/* How many of `comers`, who say nothing, are there when all have come. */
static int count_kept(int size, int comers)
{
    const tutti_world *world = tutti__world();
    tutti_cluster *cluster = resolve(size);
    tutti_keeper *keeper;
    tutti_address at;
    size_t found;
    int port, kept = 0, sockets[MOST];
    CHECK_OK(tutti__keeper_create(cluster, &keeper));
    CHECK_OK(world->resolve(world->self, "127.0.0.1", 0, 1, &at, &found));
    CHECK_OK(world->listen(world->self, &at, &keeper->listener, &port));
    CHECK_OK(world->resolve(world->self, "127.0.0.1", port, 1, &at, &found));
    for (int i = 0; i < comers; i++) {
        sockets[i] = world->connect(world->self, &at, NULL);
        CHECK(sockets[i] >= 0);
        tutti__link_accept(keeper);
    }
    tutti__link_sweep(keeper, tutti__now_ns());
    for (size_t i = 0; i < keeper->links.count; i++)
        kept += keeper->links.data[i]->state == TUTTI_LINK_STRANGER;
    for (int i = 0; i < comers; i++)
        world->close_socket(world->self, sockets[i]);
    tutti__keeper_free(keeper);
    tutti_cluster_free(cluster);
    return kept;
}

/* All ranks of a large job call one at once when rank 0 is lost. */
TUTTI_TEST(link_keeps_strangers_of_a_whole_job)
{
    tutti__wish_descriptors(4 * MOST);
    CHECK_INT(count_kept(4, MOST), 256);
    CHECK_INT(count_kept(MOST, MOST), MOST);
}
