/* tcp.c: sockets between machines. Two ranks have one stream of bytes each way, dealt out in blocks
 * over several connections, so that more than one carries it at a time. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/container.h"
#include "base/world.h"
#include "cluster/channel.h"
#include "comm/coll/lane.h"
#include "comm/tcp/pairs.h"

enum {
    BLOCK = 256 << 10, /* bytes of the stream that one connection takes before the next */
    STREAMS_FAR = 4,
    WAKE_BYTES = 128 << 10, /* that are waited for at a time, of a message that has more */
};

typedef struct connection {
    int descriptor;
    tutti_channel *channel; /* NULL: the descriptor is owned */
    bool encrypted;         /* bytes go through the channel, not by the descriptor itself */
    int wake;               /* bytes at which a sleeper is woken; 0: the system's, 1 */
    tutti_tcp_looks looks;  /* of who waits; one thread at a time */
} connection;

typedef struct peer_state {
    connection *connections; /* [streams], NULL when another engine reaches this peer */
    int streams;
    uint64_t sent, received; /* position in the stream: says which connection is next */
} peer_state;

typedef struct state {
    tutti_fabric *fabric;
    tutti_tcp_board *board; /* of a group that one process has made, else NULL */
    int size;
    peer_state peers[];
} state;

static void detach(tutti_fabric *fabric, void *arg)
{
    state *own = arg;
    fabric->abort_flag = NULL;
    tutti__tcp_board_drop(own->board);
    for (int i = 0; i < own->size; i++) {
        for (int s = 0; s < own->peers[i].streams; s++) {
            connection *each = &own->peers[i].connections[s];
            if (each->channel)
                tutti__channel_close(each->channel);
            else if (each->descriptor >= 0)
                close(each->descriptor);
        }
        free(own->peers[i].connections);
    }
    free(own);
}

static state *new_state(tutti_fabric *fabric)
{
    state *own = calloc(1, sizeof *own + (size_t)fabric->size * sizeof own->peers[0]);
    if (own)
        own->size = fabric->size, own->fabric = fabric;
    return own;
}

static bool add_connections(state *own, int peer, int streams)
{
    peer_state *to = &own->peers[peer];
    to->connections = calloc((size_t)streams, sizeof *to->connections);
    if (!to->connections)
        return false;
    to->streams = streams;
    for (int s = 0; s < streams; s++)
        to->connections[s].descriptor = -1;
    return true;
}

/* Connections [number * each, ...) of each peer, which are the last there are. */
static tutti_status lane(void *arg, tutti_fabric *fabric, int number, void **ret_state)
{
    state *own = arg, *other = new_state(fabric);
    for (int peer = 0; other && peer < own->size; peer++) {
        peer_state *from = &own->peers[peer];
        int each = from->streams / (number + 1);
        if (each == 0)
            continue;
        if (!add_connections(other, peer, each)) {
            detach(fabric, other);
            other = NULL;
            break;
        }
        from->streams -= each;
        memcpy(other->peers[peer].connections, from->connections + from->streams,
               (size_t)each * sizeof *from->connections);
    }
    if (!other)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for links to %d ranks", fabric->size);
    *ret_state = other;
    return TUTTI_OK;
}

static tutti_status attach(tutti_fabric *fabric, void *arg, void **ret_state)
{
    tutti_tcp_pairs *all = arg;
    state *own = new_state(fabric);
    if (!own)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for links to %d ranks", fabric->size);
    own->board = all->board;
    atomic_fetch_add(&own->board->users, 1);
    fabric->abort_flag = own->board->abort_flag;
    fabric->lane_count = all->lanes;
    for (int peer = 0; peer < fabric->size; peer++) {
        if (peer == fabric->rank)
            continue;
        if (!add_connections(own, peer, all->streams)) {
            detach(fabric, own);
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for links to %d ranks", fabric->size);
        }
        for (int s = 0; s < all->streams; s++) {
            int *descriptor = tutti__tcp_descriptor(all, fabric->rank, peer, s);
            own->peers[peer].connections[s].descriptor = *descriptor;
            *descriptor = -1;
        }
    }
    *ret_state = own;
    return TUTTI_OK;
}

static tutti_status open_channels(tutti_fabric *fabric, state *own, int peer, int streams,
                                  int64_t deadline_ns)
{
    if (!add_connections(own, peer, streams))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for links to rank %d", peer);
    for (int s = 0; s < streams; s++) {
        connection *each = &own->peers[peer].connections[s];
        TUTTI_TRY(tutti__channel_open(fabric->membership, peer, (uint32_t)s, deadline_ns,
                                      &each->channel));
        each->descriptor = tutti__channel_fd(each->channel);
        each->encrypted = tutti__channel_encrypted(each->channel);
        bool near = fabric->machine[peer] == fabric->machine[fabric->rank];
        tutti__tcp_tune(each->descriptor, near);
        if (!near)
            tutti__tcp_keep_alive(each->descriptor, tutti__membership_silence(fabric->membership));
    }
    return TUTTI_OK;
}

/* As many as the rank has that has the fewest. */
static tutti_status agree_lanes(tutti_fabric *fabric, const tutti_comm_options *options,
                                int64_t deadline_ns)
{
    int neighbours = 0, own = 1, *all = calloc((size_t)fabric->size, sizeof *all);
    if (!all)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %d ranks", fabric->size);
    for (int peer = 0; peer < fabric->size; peer++)
        neighbours += fabric->machine[peer] == fabric->machine[fabric->rank];
    tutti_status status = tutti__lanes_wanted(fabric->cpus, neighbours, &own);
    if (status == TUTTI_OK)
        status = tutti__membership_exchange(fabric->membership, &own, sizeof own, deadline_ns, all);
    for (int i = 0; status == TUTTI_OK && i < fabric->size; i++)
        own = all[i] < own ? all[i] : own;
    free(all);
    fabric->lane_count = tutti__tcp_lanes(options, own);
    return status;
}

/* Round k joins the ranks whose numbers add up to k modulo the size: each has one partner at a
 * time, and nobody waits in a circle. */
static tutti_status tcp_join(tutti_fabric *fabric, const tutti_comm_options *options,
                             int64_t deadline_ns, void **ret_state)
{
    state *own = new_state(fabric);
    if (!own)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for links to %d ranks", fabric->size);
    /* Before all others give up, so that they can be told why. */
    int64_t now = tutti__now_ns(), soon = now + (deadline_ns - now) / 5 * 4;
    tutti_status agreed = agree_lanes(fabric, options, soon);
    if (agreed != TUTTI_OK) {
        detach(fabric, own);
        return agreed;
    }
    for (int round = 0; round < fabric->size; round++) {
        int peer = (round + fabric->size - fabric->rank) % fabric->size;
        if (peer == fabric->rank || strcmp(fabric->engines[peer]->name, "tcp") != 0)
            continue;
        bool near = fabric->machine[peer] == fabric->machine[fabric->rank];
        int streams =
            tutti__tcp_streams(options, near ? TUTTI_TCP_NEAR : STREAMS_FAR, fabric->lane_count);
        tutti_status status = open_channels(fabric, own, peer, streams, soon);
        if (status != TUTTI_OK) {
            detach(fabric, own);
            return status;
        }
    }
    *ret_state = own;
    return TUTTI_OK;
}

/* The connection that carries position `at` of the stream, and how many bytes it takes. */
static connection *connection_at(const peer_state *peer, uint64_t at, size_t *ret_room)
{
    if (peer->streams == 1) {
        *ret_room = SIZE_MAX;
        return &peer->connections[0];
    }
    *ret_room = BLOCK - at % BLOCK;
    return &peer->connections[at / BLOCK % (uint64_t)peer->streams];
}

static tutti_status lost(const state *own, int peer, tutti_status status, const char *why)
{
    char name[320];
    /* Who has met all others for the last time goes while some have still to hear of it; of one
     * that dies then the membership hears as well. */
    bool left = status == TUTTI_CLOSED && atomic_load(&own->fabric->leaving);
    if (own->fabric->membership && !left)
        tutti__membership_suspect(own->fabric->membership, peer, why);
    return tutti_fail(status, "%s: %s", tutti__fabric_name(own->fabric, peer, name, sizeof name),
                      why);
}

/* A peer that sends nothing may be at work; one that does not acknowledge cannot be reached. */
static void watch(void *arg, int64_t silence_ns)
{
    state *own = arg;
    for (int peer = 0; peer < own->size; peer++)
        for (int s = 0; s < own->peers[peer].streams; s++) {
            connection *each = &own->peers[peer].connections[s];
            int64_t owed = tutti__tcp_owed(each->descriptor, silence_ns / 2, &each->looks);
            if (owed <= silence_ns)
                continue;
            char why[160];
            snprintf(why, sizeof why,
                     "it has not acknowledged what it was sent for %.1f s: the network between the "
                     "two is cut",
                     (double)owed * 1e-9);
            tutti__membership_suspect(own->fabric->membership, peer, why);
            break;
        }
}

/* What errno means for a connection. */
static tutti_status broken(void)
{
    if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS)
        return TUTTI_OK;
    return errno == EPIPE || errno == ECONNRESET ? TUTTI_CLOSED : TUTTI_IO;
}

/* A part of at most `room` bytes; *ret_done as for the engine's send. */
static tutti_status send_plain(int descriptor, const struct iovec *parts, int count, size_t room,
                               size_t *ret_done)
{
    struct iovec cut[2];
    int used = 0;
    for (; used < count && used < 2 && room > 0; used++) {
        cut[used] = parts[used];
        if (cut[used].iov_len > room)
            cut[used].iov_len = room;
        room -= cut[used].iov_len;
    }
    struct msghdr message = {.msg_iov = cut, .msg_iovlen = (size_t)used};
    ssize_t sent = sendmsg(descriptor, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    *ret_done = sent > 0 ? (size_t)sent : 0;
    return sent < 0 ? broken() : TUTTI_OK;
}

/* A channel takes one piece at a time: the header and the start of the data go in one. */
static tutti_status send_channel(tutti_channel *channel, const struct iovec *parts, int count,
                                 size_t room, size_t *ret_done)
{
    char small[16 << 10];
    const void *data = parts[0].iov_base;
    size_t size = parts[0].iov_len;
    if (count > 1 && size < sizeof small) {
        size_t more = sizeof small - size;
        more = parts[1].iov_len < more ? parts[1].iov_len : more;
        memcpy(small, data, size);
        memcpy(small + size, parts[1].iov_base, more);
        size += more;
        data = small;
    }
    return tutti__channel_send(channel, data, size < room ? size : room, ret_done);
}

static tutti_status send_bytes(void *arg, int peer, const struct iovec *parts, int count,
                               size_t *ret_done)
{
    state *own = arg;
    peer_state *to = &own->peers[peer];
    struct iovec left[2] = {parts[0], count > 1 ? parts[1] : (struct iovec){0}};
    size_t total = 0;
    for (;;) {
        int first = left[0].iov_len == 0, remaining = (left[0].iov_len > 0) + (left[1].iov_len > 0);
        if (remaining == 0)
            break;
        size_t room, done = 0;
        connection *by = connection_at(to, to->sent, &room);
        tutti_status status =
            by->encrypted ? send_channel(by->channel, left + first, remaining, room, &done)
                          : send_plain(by->descriptor, left + first, remaining, room, &done);
        if (status != TUTTI_OK)
            return lost(own, peer, status == TUTTI_CLOSED ? status : TUTTI_IO,
                        status == TUTTI_CLOSED ? "closed its connection"
                                               : "the connection broke while sending");
        size_t part = left[0].iov_len + left[1].iov_len;
        part = part < room ? part : room;
        to->sent += done;
        total += done;
        if (done == 0 || (done < part && !by->encrypted))
            break; /* a plain connection has no more room */
        for (int i = 0; i < 2; i++) {
            size_t taken = done < left[i].iov_len ? done : left[i].iov_len;
            if (taken == 0) /* one without bytes may be NULL */
                continue;
            left[i].iov_base = (char *)left[i].iov_base + taken;
            left[i].iov_len -= taken;
            done -= taken;
        }
    }
    *ret_done = total;
    return TUTTI_OK;
}

static tutti_status recv_plain(int descriptor, void *data, size_t size, size_t *ret_done)
{
    ssize_t got = recv(descriptor, data, size, MSG_DONTWAIT);
    *ret_done = got > 0 ? (size_t)got : 0;
    if (got == 0)
        return TUTTI_CLOSED;
    return got < 0 ? broken() : TUTTI_OK;
}

static tutti_status recv_bytes(void *arg, int peer, void *data, size_t size, size_t *ret_done)
{
    state *own = arg;
    peer_state *from = &own->peers[peer];
    size_t total = 0;
    while (total < size) {
        size_t room, done = 0;
        connection *by = connection_at(from, from->received, &room);
        size_t part = size - total < room ? size - total : room;
        tutti_status status =
            by->encrypted ? tutti__channel_recv(by->channel, (char *)data + total, part, &done)
                          : recv_plain(by->descriptor, (char *)data + total, part, &done);
        if (status != TUTTI_OK && total == 0)
            return lost(own, peer, status,
                        status == TUTTI_CLOSED ? "closed its connection"
                                               : "the connection broke while receiving");
        from->received += done;
        total += done;
        if (done == 0 || (done < part && !by->encrypted))
            break; /* of a plain connection the kernel had no more */
    }
    *ret_done = total;
    return TUTTI_OK;
}

/* One that waits for much is not woken by little. */
static void wake_at(connection *in, size_t wanted)
{
    int bytes = wanted < WAKE_BYTES ? 1 : WAKE_BYTES;
    if (bytes != in->wake &&
        setsockopt(in->descriptor, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes) == 0)
        in->wake = bytes;
}

static void descriptor_for(void *arg, int peer, bool sending, size_t wanted, struct pollfd *ret)
{
    state *own = arg;
    peer_state *to = &own->peers[peer];
    size_t room, room_out;
    connection *in = connection_at(to, to->received, &room);
    connection *out = connection_at(to, to->sent, &room_out);
    if (!in->encrypted)
        wake_at(in, wanted < room ? wanted : room);
    *ret = (struct pollfd){.fd = sending ? out->descriptor : in->descriptor,
                           .events = sending ? POLLOUT : POLLIN};
}

const tutti_fabric_engine tutti_fabric_engine_tcp = {
    .name = "tcp",
    .doc = "sockets, between machines or within one",
    .processes = true,
    .prepare = tutti__tcp_prepare,
    .attach = attach,
    .discard = tutti__tcp_discard,
    .join = tcp_join,
    .detach = detach,
    .send = send_bytes,
    .recv = recv_bytes,
    .descriptor = descriptor_for,
    .watch = watch,
    .lane = lane,
};
