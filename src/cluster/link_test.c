/* link_test.c: who comes to a heartbeat thread's listener, on loopback. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/test.h"
#include "cluster/heartbeat.h"
#include "cluster/place.h"

enum { MOST = 320 };

static tutti_cluster *resolve(int size, int rank)
{
    static char workers[MOST * 24];
    tutti_cluster *cluster;
    workers[0] = '\0';
    for (int r = 0; r < size; r++)
        snprintf(workers + strlen(workers), sizeof workers - strlen(workers), "%slocalhost:%d",
                 r > 0 ? "," : "", 20000 + r);
    CHECK_OK(tutti_cluster_resolve(
        TUTTI_OPTIONS(tutti_cluster_options, .workers = workers, .index = rank), &cluster));
    return cluster;
}

/* A listener on loopback, and where it is. */
static int listen_here(tutti_address *ret_at, int *ret_port)
{
    const tutti_world *world = tutti__world();
    size_t found;
    int socket;
    CHECK_OK(world->resolve(world->self, "127.0.0.1", 0, 1, ret_at, &found));
    CHECK_OK(world->listen(world->self, ret_at, &socket, ret_port));
    CHECK_OK(world->resolve(world->self, "127.0.0.1", *ret_port, 1, ret_at, &found));
    return socket;
}

/* How many of `comers`, who say nothing, are there when all have come. */
static int count_kept(int size, int comers)
{
    const tutti_world *world = tutti__world();
    tutti_cluster *cluster = resolve(size, 1);
    tutti_heartbeat *heartbeat;
    tutti_address at;
    int port, kept = 0, sockets[MOST];
    CHECK_OK(tutti__heartbeat_create(cluster, &heartbeat));
    heartbeat->listener = listen_here(&at, &port);
    for (int i = 0; i < comers; i++) {
        sockets[i] = world->connect(world->self, &at, NULL);
        CHECK(sockets[i] >= 0);
        tutti__link_accept(heartbeat);
    }
    tutti__link_sweep(heartbeat, tutti__now_ns());
    for (size_t i = 0; i < heartbeat->links.count; i++)
        kept += heartbeat->links.data[i]->state == TUTTI_LINK_STRANGER;
    for (int i = 0; i < comers; i++)
        world->close_socket(world->self, sockets[i]);
    tutti__heartbeat_free(heartbeat);
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

/* Rank 2 of 3, whose rank 1 listens at `port`, while its job runs. */
static tutti_heartbeat *begin(const tutti_cluster *cluster, int port, int to_zero, tutti_link **ret)
{
    tutti_heartbeat *heartbeat;
    CHECK_OK(tutti__heartbeat_create(cluster, &heartbeat));
    CHECK_OK(
        tutti__link_add(heartbeat, (tutti_wire){.socket = to_zero}, TUTTI_LINK_MEMBER, 0, ret));
    heartbeat->roster.phase = TUTTI_PHASE_RUNNING;
    heartbeat->roster.members[1].peer.port = port;
    snprintf(heartbeat->roster.members[1].peer.address,
             sizeof heartbeat->roster.members[1].peer.address, "127.0.0.1");
    tutti__roster_linked(&heartbeat->roster, tutti__now_ns());
    return heartbeat;
}

/* A program may have taken all descriptors: that of rank 0's link is there for the next. */
TUTTI_TEST_ALONE(link_to_rank_0_ends_before_another_is_called)
{
    const tutti_world *world = tutti__world();
    tutti_cluster *cluster = resolve(3, 2);
    tutti_address at;
    tutti_link *link;
    struct rlimit before, none;
    int port, listener = listen_here(&at, &port);
    int to_zero = world->connect(world->self, &at, NULL);
    tutti_heartbeat *heartbeat = begin(cluster, port, to_zero, &link);
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    none = before;
    int next = dup(listener); /* the lowest that is free */
    none.rlim_cur = (rlim_t)next;
    close(next);
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    tutti__link_end(heartbeat, link, "");
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK_INT(heartbeat->roster.stand_in, 1);
    CHECK(tutti__link_of(heartbeat, 1) != NULL);
    world->close_socket(world->self, listener);
    tutti__heartbeat_free(heartbeat);
    tutti_cluster_free(cluster);
}
