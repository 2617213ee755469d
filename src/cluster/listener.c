/* listener.c: where a rank listens, and which address it tells the others. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/forked.h"
#include "cluster/heartbeat.h"
#include "cluster/interface.h"
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
static tutti_status listen_any(int port, int *ret_socket, int *ret_port)
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
            status = world->listen(world->self, &addresses[i], ret_socket, ret_port);
            if (status == TUTTI_OK || status == TUTTI_EXISTS)
                return status;
        }
    return status;
}

bool tutti__listener_free(int port)
{
    const tutti_world *world = tutti__world();
    int socket, bound;
    bool is_free = listen_any(port, &socket, &bound) == TUTTI_OK;
    if (is_free)
        world->close_socket(world->self, socket);
    else
        tutti__error_forget();
    return is_free;
}

/* `host` NULL: everywhere. */
static tutti_status listen_where(tutti_heartbeat *heartbeat, const char *host, int port)
{
    const tutti_world *world = tutti__world();
    tutti_address address;
    size_t count = 0;
    if (host == NULL)
        return listen_any(port, &heartbeat->listener, &heartbeat->me.port);
    TUTTI_TRY(world->resolve(world->self, host, port, 1, &address, &count));
    return world->listen(world->self, &address, &heartbeat->listener, &heartbeat->me.port);
}

/* The launcher has bound rank 0's port already, so that nobody can take it in between. The
 * heartbeat thread closes a duplicate: the process may join again, also with a cluster that is
 * resolved anew. */
static bool take_listener(tutti_heartbeat *heartbeat, int port)
{
    if (heartbeat->cluster->listen_fd < 0 || heartbeat->cluster->rank != 0 ||
        heartbeat->cluster->rejoin)
        return false;
    int own = fcntl(heartbeat->cluster->listen_fd, F_DUPFD_CLOEXEC, 3);
    if (own < 0)
        return false; /* the program has closed it */
    heartbeat->listener = own;
    heartbeat->me.port = port;
    return true;
}

/* ---- several groups of one process ---- */

typedef struct open_port {
    const tutti_heartbeat *heartbeat;
    pid_t process; /* a child of the program has none of these */
} open_port;

static pthread_mutex_t ports_lock = PTHREAD_MUTEX_INITIALIZER;
static TUTTI_VEC(open_port) ports;

/* Without memory for it a later group is refused as if another program had the port. */
static void remember(const tutti_heartbeat *heartbeat)
{
    open_port port = {heartbeat, getpid()};
    pthread_mutex_lock(&ports_lock);
    (void)TUTTI_VEC_PUSH(&ports, port);
    pthread_mutex_unlock(&ports_lock);
}

static void forget(const tutti_heartbeat *heartbeat)
{
    size_t kept = 0;
    pthread_mutex_lock(&ports_lock);
    for (size_t i = 0; i < ports.count; i++)
        if (ports.data[i].heartbeat != heartbeat)
            ports.data[kept++] = ports.data[i];
    ports.count = kept;
    if (kept == 0)
        TUTTI_VEC_FREE(&ports);
    pthread_mutex_unlock(&ports_lock);
}

/* Under the lock: the heartbeat thread of this process that is this rank of this job at this port.
 */
static const tutti_heartbeat *find_earlier(const tutti_heartbeat *heartbeat, int port)
{
    const tutti_cluster *mine = heartbeat->cluster;
    for (size_t i = 0; i < ports.count; i++) {
        const tutti_heartbeat *each = ports.data[i].heartbeat;
        if (ports.data[i].process == getpid() && each->me.port == port &&
            each->cluster->rank == mine->rank && each->me.epoch == mine->epoch &&
            each->cluster->size == mine->size && strcmp(each->cluster->meeting, mine->meeting) == 0)
            return each;
    }
    return NULL;
}

/* An earlier group of this process has the port. Rank 0 listens there for both: whoever comes to
 * the wrong one is sent away, since its rank is there already, and comes again. Others, whom
 * streams reach that belong to one group, take another port, which all get to know. */
static bool share_port(tutti_heartbeat *heartbeat, const char *host, int port)
{
    pthread_mutex_lock(&ports_lock);
    const tutti_heartbeat *earlier = find_earlier(heartbeat, port);
    bool found = earlier != NULL;
    if (found && heartbeat->cluster->rank == 0)
        heartbeat->listener = fcntl(earlier->listener, F_DUPFD_CLOEXEC, 3);
    pthread_mutex_unlock(&ports_lock);
    if (!found)
        return false;
    if (heartbeat->cluster->rank > 0)
        return listen_where(heartbeat, host, 0) == TUTTI_OK;
    heartbeat->me.port = port;
    return heartbeat->listener >= 0;
}

/* ---- opening and closing ---- */

static int own_port(const tutti_cluster *cluster, int meeting_port)
{
    char host[256];
    int port = 0;
    const char *task = tutti_cluster_task(cluster, cluster->role, cluster->index);
    if (cluster->rank == 0 && !cluster->rejoin) /* else another keeps the roster there */
        return meeting_port;
    return task != NULL && tutti__task_split(task, host, sizeof host, &port) ? port : 0;
}

/* The interface's address, of the family by which rank 0 is reached; rank 0's own is the one by
 * which it is. A name that does not resolve yet says nothing of either. */
static tutti_status choose_interface(tutti_heartbeat *heartbeat, const char *host, int port,
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
    bool own = heartbeat->cluster->rank == 0 && heartbeat->listener < 0;
    TUTTI_TRY(tutti__interface_for(meeting, count, own, &chosen));
    tutti__address_text(&chosen, heartbeat->me.address, sizeof heartbeat->me.address);
    *ret_bound = true;
    return TUTTI_OK;
}

/* Whoever wrote rank 0's port somewhere knows where; other ports were derived. */
static tutti_status fail_taken(const tutti_cluster *cluster, tutti_status status)
{
    bool derived = cluster->job[0] != '\0' && cluster->rank == 0;
    return tutti__error_prefix(status,
                               "rank %d: another program or job, or an earlier run, uses its "
                               "port%s%s%s",
                               cluster->rank, derived ? " (a job gets one of its own " : "",
                               derived ? TUTTI_PORT_ADVICE : "", derived ? ")" : "");
}

/* Containers and network namespaces begin without one: a port can be bound there all the same, and
 * nobody reaches it. */
static tutti_status check_loopback(const char *host)
{
    enum { DISCARD = 9 }; /* a port where nobody is disturbed */
    const tutti_world *world = tutti__world();
    tutti_address at;
    size_t count = 0;
    TUTTI_TRY(world->resolve(world->self, host, DISCARD, 1, &at, &count));
    int socket = count > 0 ? world->connect(world->self, &at, NULL) : -ENETUNREACH;
    if (socket >= 0)
        world->close_socket(world->self, socket);
    if (socket != -ENETUNREACH && socket != -EADDRNOTAVAIL)
        return TUTTI_OK;
    return tutti_fail(TUTTI_IO,
                      "the ranks are to meet at %s, but this machine (or its container) has no "
                      "loopback interface that is up; as root: ip link set lo up",
                      host);
}

tutti_status tutti__listener_open(tutti_heartbeat *heartbeat, const char *host, int meeting_port,
                                  int64_t deadline_ns)
{
    bool loopback = tutti__host_loopback(host), bound = false;
    if (!loopback && heartbeat->secret.size == 0 && heartbeat->tls == NULL)
        return refuse_open(host);
    if (loopback)
        TUTTI_TRY(check_loopback(host));
    bool taken = take_listener(heartbeat, meeting_port);
    if (taken)
        tutti__forked_without(heartbeat->listener);
    if (loopback) /* where all ranks are on this machine, none says another address */
        TUTTI_TRY(tutti__interface_check());
    else
        TUTTI_TRY(choose_interface(heartbeat, host, meeting_port, deadline_ns, &bound));
    if (taken)
        return TUTTI_OK;
    int port = own_port(heartbeat->cluster, meeting_port);
    const char *at = loopback ? host : bound ? heartbeat->me.address : NULL;
    tutti_status status = listen_where(heartbeat, at, port);
    if (status == TUTTI_EXISTS && share_port(heartbeat, at, port)) {
        tutti__error_forget();
        status = TUTTI_OK;
    }
    if (status == TUTTI_EXISTS)
        return fail_taken(heartbeat->cluster, status);
    if (status != TUTTI_OK)
        return status;
    tutti__forked_without(heartbeat->listener);
    remember(heartbeat);
    return TUTTI_OK;
}

void tutti__listener_close(tutti_heartbeat *heartbeat)
{
    if (heartbeat->listener < 0)
        return;
    forget(heartbeat);
    tutti__forked_with(heartbeat->listener);
    tutti__world()->close_socket(tutti__world()->self, heartbeat->listener);
    heartbeat->listener = -1;
}
