/* listener.c: where a rank listens, and which address it tells the others. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "cluster/forked.h"
#include "cluster/interface.h"
#include "cluster/keeper.h"
#include "cluster/lookup.h"

static tutti_status refuse_open(const char *host)
{
    return tutti_fail(TUTTI_INVALID,
                      "this job would listen on the network (rank 0 is at '%s') without a secret: "
                      "anybody could join it. Make one where all its machines see it:\n"
                      "  (umask 077; openssl rand -hex 32 > ~/.tutti-secret)\n"
                      "  export TUTTI_SECRET_FILE=~/.tutti-secret\n"
                      "or start it with tutti run, or configure TUTTI_TLS_CERT, TUTTI_TLS_KEY and "
                      "TUTTI_TLS_CA",
                      host);
}

/* IPv6's any-address takes IPv4 too; where there is no IPv6, IPv4's. */
static tutti_status listen_any(tutti_keeper *keeper, int port)
{
    const tutti_world *world = tutti__world();
    tutti_address addresses[8];
    size_t count = 0;
    TUTTI_TRY(world->resolve(world->self, NULL, port, TUTTI_COUNT(addresses), addresses, &count));
    tutti_status status = tutti_fail(TUTTI_NOT_FOUND, "this machine has no network");
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < count; i++) {
            const struct sockaddr *raw = (const void *)addresses[i].bytes;
            if ((raw->sa_family == AF_INET6) != (pass == 0))
                continue;
            status = world->listen(world->self, &addresses[i], &keeper->listener, &keeper->me.port);
            if (status == TUTTI_OK || status == TUTTI_EXISTS)
                return status;
        }
    return status;
}

static tutti_status listen_at(tutti_keeper *keeper, const char *host, int port)
{
    const tutti_world *world = tutti__world();
    tutti_address address;
    size_t count = 0;
    TUTTI_TRY(world->resolve(world->self, host, port, 1, &address, &count));
    return world->listen(world->self, &address, &keeper->listener, &keeper->me.port);
}

/* The launcher has bound rank 0's port already, so that nobody can take it in between. The keeper
 * closes a duplicate: the process may join again, also with a cluster that is resolved anew. */
static bool take_listener(tutti_keeper *keeper, int port)
{
    if (keeper->cluster->listen_fd < 0 || keeper->cluster->rank != 0)
        return false;
    int own = fcntl(keeper->cluster->listen_fd, F_DUPFD_CLOEXEC, 3);
    if (own < 0)
        return false; /* the program has closed it */
    keeper->listener = own;
    keeper->me.port = port;
    return true;
}

static int own_port(const tutti_cluster *cluster, int meeting_port)
{
    char host[256];
    int port = 0;
    const char *task = tutti_cluster_task(cluster, cluster->role, cluster->index);
    if (cluster->rank == 0)
        return meeting_port;
    return task != NULL && tutti__task_split(task, host, sizeof host, &port) ? port : 0;
}

/* The interface's address, of the family by which rank 0 is reached; rank 0's own is the one by
 * which it is. A name that does not resolve yet says nothing of either. */
static tutti_status choose_interface(tutti_keeper *keeper, const char *host, int port,
                                     int64_t deadline_ns, bool *ret_bound)
{
    tutti_address meeting[TUTTI_LOOKUP_MOST], chosen;
    tutti_error before;
    size_t count = 0;
    int64_t until = tutti__now_ns() + INT64_C(3000000000);
    if (*tutti__interface_name() == '\0')
        return TUTTI_OK;
    tutti__error_capture(TUTTI_OK, &before);
    if (tutti__lookup(host, port, until < deadline_ns ? until : deadline_ns, meeting, &count) !=
        TUTTI_OK)
        count = 0;
    tutti__error_restore(&before);
    bool own = keeper->cluster->rank == 0 && keeper->listener < 0;
    TUTTI_TRY(tutti__interface_for(meeting, count, own, &chosen));
    tutti__address_text(&chosen, keeper->me.address, sizeof keeper->me.address);
    *ret_bound = true;
    return TUTTI_OK;
}

tutti_status tutti__listener_open(tutti_keeper *keeper, const char *host, int meeting_port,
                                  int64_t deadline_ns)
{
    bool loopback = tutti__host_loopback(host), bound = false;
    if (!loopback && keeper->secret.size == 0 && keeper->tls == NULL)
        return refuse_open(host);
    bool taken = take_listener(keeper, meeting_port);
    if (taken)
        tutti__forked_without(keeper->listener);
    if (loopback) /* where all ranks are on this machine, none says another address */
        TUTTI_TRY(tutti__interface_check());
    else
        TUTTI_TRY(choose_interface(keeper, host, meeting_port, deadline_ns, &bound));
    if (taken)
        return TUTTI_OK;
    int port = own_port(keeper->cluster, meeting_port);
    tutti_status status = loopback ? listen_at(keeper, host, port)
                          : bound  ? listen_at(keeper, keeper->me.address, port)
                                   : listen_any(keeper, port);
    if (status == TUTTI_EXISTS)
        return tutti__error_prefix(status,
                                   "rank %d: another program, or an earlier run, uses its port",
                                   keeper->cluster->rank);
    tutti__forked_without(keeper->listener);
    return status;
}
