/* pairs.c: connections on loopback between all ranks of a group that one process makes. */
#define _GNU_SOURCE
#include "comm/tcp/pairs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/pool.h"
#include "base/world.h"
#include "cluster/place.h"
#include "comm/coll/lane.h"

enum { NEAR_BYTES = 512 << 10 }; /* that the kernel keeps of what a rank of this machine sends */

static tutti_tcp_board *make_board(void)
{
    tutti_tcp_board *board = calloc(1, sizeof *board);
    if (!board)
        return NULL;
    board->abort_flag = mmap(NULL, sizeof *board->abort_flag, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board->abort_flag == MAP_FAILED) {
        free(board);
        return NULL;
    }
    atomic_store(&board->users, 1);
    return board;
}

void tutti__tcp_board_drop(tutti_tcp_board *board)
{
    if (!board || atomic_fetch_sub(&board->users, 1) > 1)
        return;
    munmap(board->abort_flag, sizeof *board->abort_flag);
    free(board);
}

static tutti_status socket_failed(const char *what)
{
    char why[300];
    tutti__descriptors_text(errno, why, sizeof why);
    return tutti_fail(TUTTI_IO, "%s on loopback: %s", what, why);
}

/* Within a machine as much is on its way as caches hold; between machines the kernel knows best. */
void tutti__tcp_tune(int descriptor, bool near)
{
    int yes = 1, bytes = NEAR_BYTES;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (near)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

void tutti__tcp_keep_alive(int descriptor, int64_t silence_ns)
{
    enum { PROBES = 3 };
    int64_t seconds = silence_ns / 1000000000;
    int idle = seconds > 2 * PROBES ? (int)(seconds / 2)
               : seconds > PROBES   ? (int)(seconds - PROBES)
                                    : 1;
    int between = seconds > 2 * PROBES ? (int)(seconds / 2 / PROBES) : 1, count = PROBES, yes = 1;
    setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
    setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

/* TCP_USER_TIMEOUT would also end a link whose other end is there and reads nothing for a while,
 * since it computes. One look tells nothing: what was sent a moment ago, after a long pause, is
 * owed too. */
int64_t tutti__tcp_owed(int descriptor, int64_t apart_ns, tutti_tcp_looks *looks)
{
    enum { CLOCKS_DIFFER_NS = 20000000 };
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    int64_t now = tutti__now_ns();
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
        info.tcpi_unacked == 0) {
        looks->first_ns = 0;
        return 0;
    }
    int64_t heard = now - (int64_t)info.tcpi_last_ack_recv * 1000000;
    bool same = looks->first_ns > 0 && now - looks->last_ns <= apart_ns &&
                heard - looks->heard_ns < CLOCKS_DIFFER_NS;
    if (!same) {
        looks->first_ns = now;
        looks->heard_ns = heard;
    }
    looks->last_ns = now;
    return now - looks->first_ns;
}

static tutti_status connect_pair(int listener, const struct sockaddr_in *address, int *ret_a,
                                 int *ret_b)
{
    int a = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), b;
    if (a < 0 || connect(a, (const struct sockaddr *)address, sizeof *address) != 0 ||
        (b = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) < 0) {
        tutti_status status = socket_failed("cannot connect");
        if (a >= 0)
            close(a);
        return status;
    }
    tutti__tcp_tune(a, true);
    tutti__tcp_tune(b, true);
    *ret_a = a;
    *ret_b = b;
    return TUTTI_OK;
}

int *tutti__tcp_descriptor(const tutti_tcp_pairs *all, int from, int to, int stream)
{
    size_t pair = (size_t)from * (size_t)all->size + (size_t)to;
    return &all->descriptors[pair * (size_t)all->streams + (size_t)stream];
}

static tutti_status connect_all(tutti_tcp_pairs *all)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    tutti_status status = TUTTI_OK;
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 16) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0)
        status = socket_failed("cannot listen");
    for (int i = 0; status == TUTTI_OK && i < all->size; i++)
        for (int j = i + 1; status == TUTTI_OK && j < all->size; j++)
            for (int s = 0; status == TUTTI_OK && s < all->streams; s++)
                status = connect_pair(listener, &address, tutti__tcp_descriptor(all, i, j, s),
                                      tutti__tcp_descriptor(all, j, i, s));
    if (listener >= 0)
        close(listener);
    return status;
}

void tutti__tcp_discard(void *arg, int rank)
{
    (void)rank;
    tutti_tcp_pairs *all = arg;
    size_t count = (size_t)all->size * (size_t)all->size * (size_t)all->streams;
    for (size_t i = 0; i < count; i++)
        if (all->descriptors[i] >= 0)
            close(all->descriptors[i]);
    tutti__tcp_board_drop(all->board);
    free(all->descriptors);
    free(all);
}

int tutti__tcp_lanes(const tutti_comm_options *options, int wanted)
{
    int lanes = wanted;
    while (options->streams > 0 && options->streams % lanes != 0)
        lanes--;
    return lanes;
}

int tutti__tcp_streams(const tutti_comm_options *options, int usual, int lanes)
{
    int streams = options->streams ? options->streams : (usual + lanes - 1) / lanes * lanes;
    return streams > TUTTI_TCP_STREAMS ? TUTTI_TCP_STREAMS / lanes * lanes : streams;
}

/* All connections are made in one process; where it may not have those of so many lanes, one. */
static int allowed_lanes(int size, const tutti_comm_options *options, int lanes)
{
    int pairs = size * (size - 1);
    if (tutti__allow_descriptors(pairs * tutti__tcp_streams(options, TUTTI_TCP_NEAR, lanes)) ==
        TUTTI_OK)
        return lanes;
    return options->streams ? lanes : 1;
}

tutti_status tutti__tcp_prepare(int size, const tutti_comm_options *options, bool forked,
                                void **ret_shared)
{
    (void)forked;
    int wanted;
    TUTTI_TRY(tutti__lanes_wanted(tutti__cpu_count(), size, &wanted));
    tutti_tcp_pairs *all = calloc(1, sizeof *all);
    int lanes = allowed_lanes(size, options, tutti__tcp_lanes(options, wanted));
    int streams =
        options->streams ? options->streams : tutti__tcp_streams(options, TUTTI_TCP_NEAR, lanes);
    size_t count = (size_t)size * (size_t)size * (size_t)streams;
    if (streams < 0 || streams > TUTTI_TCP_STREAMS) {
        free(all);
        return tutti_fail(TUTTI_INVALID, "%d streams between two ranks; use 1 to %d", streams,
                          TUTTI_TCP_STREAMS);
    }
    if (all) {
        all->descriptors = malloc(count * sizeof *all->descriptors);
        all->board = make_board();
    }
    if (!all || !all->descriptors || !all->board) {
        if (all) {
            tutti__tcp_board_drop(all->board);
            free(all->descriptors);
        }
        free(all);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %zu connections", count);
    }
    all->size = size;
    all->streams = streams;
    all->lanes = lanes;
    for (size_t i = 0; i < count; i++)
        all->descriptors[i] = -1;
    tutti_status status = connect_all(all);
    if (status != TUTTI_OK)
        tutti__tcp_discard(all, -1);
    else
        *ret_shared = all;
    return status;
}
