/* channel.c: streams between two ranks: the lower rank dials, the higher one's heartbeat thread has
 * accepted.
 */
#include "cluster/channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/heartbeat.h"
#include "cluster/place.h"

struct tutti_channel {
    tutti_wire wire;
    int peer;
    pthread_mutex_t lock; /* TLS only: a connection of OpenSSL's is for one thread at a time */
};

/* The callers that came before they were asked for wait in a list. */
static bool take_caller(tutti_heartbeat *heartbeat, int rank, uint32_t number, tutti_wire *ret_wire)
{
    for (size_t i = 0; i < heartbeat->callers.count; i++) {
        tutti_caller *caller = &heartbeat->callers.data[i];
        if (caller->rank == rank && caller->number == number) {
            *ret_wire = caller->wire;
            *caller = heartbeat->callers.data[--heartbeat->callers.count];
            return true;
        }
    }
    return false;
}

static tutti_status await_caller(tutti_membership *membership, int peer, uint32_t number,
                                 int64_t deadline_ns, tutti_wire *ret_wire)
{
    tutti_heartbeat *heartbeat = membership->heartbeat;
    bool in_time = true, found, after = number == TUTTI_CHANNEL_AFTER_VERDICT;
    char why[300];
    pthread_mutex_lock(&heartbeat->lock);
    while (!(found = take_caller(heartbeat, peer, number, ret_wire)) &&
           (after || !tutti__membership_failed(membership)) && in_time)
        in_time = tutti__heartbeat_wait(heartbeat, deadline_ns);
    bool starved = heartbeat->starved;
    pthread_mutex_unlock(&heartbeat->lock);
    if (found)
        return TUTTI_OK;
    if (!after && tutti__membership_failed(membership))
        return tutti__membership_fail(membership);
    tutti__descriptors_text(EMFILE, why, sizeof why);
    return tutti_fail(TUTTI_DEADLINE,
                      "rank %d (host %s) has not opened channel %u to rank %d in time%s%s", peer,
                      membership->peers[peer].host, number, membership->rank,
                      starved ? "; here: " : "", starved ? why : "");
}

static tutti_status dial_peer(tutti_membership *membership, int peer, uint32_t number,
                              int64_t deadline_ns, tutti_wire *ret_wire)
{
    const tutti_peer *p = &membership->peers[peer];
    char reached[64];
    tutti_status status =
        tutti__dial(membership->heartbeat, p->address, p->port, TUTTI_PURPOSE_CHANNEL, peer, number,
                    deadline_ns, ret_wire, reached);
    if (status != TUTTI_OK && number != TUTTI_CHANNEL_AFTER_VERDICT &&
        tutti__membership_failed(membership))
        return tutti__membership_fail(membership);
    return status;
}

/* Takes the wire over. */
static tutti_status make_channel(tutti_wire wire, int peer, tutti_channel **ret_channel)
{
    tutti_channel *channel = calloc(1, sizeof *channel);
    if (channel == NULL) {
        tutti__wire_close(&wire);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a channel");
    }
    channel->wire = wire;
    channel->peer = peer;
    pthread_mutex_init(&channel->lock, NULL);
    *ret_channel = channel;
    return TUTTI_OK;
}

tutti_status tutti__channel_open(tutti_membership *membership, int peer, uint32_t number,
                                 int64_t deadline_ns, tutti_channel **ret_channel)
{
    tutti_wire wire;
    if (number >= TUTTI_CHANNEL_NUMBERS)
        return tutti_fail(TUTTI_OUT_OF_RANGE, "channel %u; their numbers are below %d", number,
                          TUTTI_CHANNEL_NUMBERS);
    if (peer < 0 || peer >= membership->size || peer == membership->rank)
        return tutti_fail(TUTTI_OUT_OF_RANGE, "rank %d cannot open a channel to rank %d of %d",
                          membership->rank, peer, membership->size);
    if (membership->rank < peer)
        TUTTI_TRY(dial_peer(membership, peer, number, deadline_ns, &wire));
    else
        TUTTI_TRY(await_caller(membership, peer, number, deadline_ns, &wire));
    return make_channel(wire, peer, ret_channel);
}

tutti_status tutti__channel_call(tutti_membership *membership, int peer, uint64_t incarnation,
                                 uint32_t number)
{
    tutti_heartbeat *heartbeat = membership->heartbeat;
    tutti_status status = TUTTI_OK;
    pthread_mutex_lock(&heartbeat->lock);
    const tutti_roster_member *member = &heartbeat->roster.members[peer];
    if (incarnation == 0 || member->incarnation != incarnation)
        status = tutti_fail(TUTTI_NOT_FOUND, "rank %d is not there any more%s%s", peer,
                            member->gone[0] ? ": " : "", member->gone);
    else if (!tutti__link_is_calling(heartbeat, peer, number) &&
             tutti__call_begin(heartbeat, peer, TUTTI_PURPOSE_CHANNEL, number) != TUTTI_CALL_BEGUN)
        status = tutti_fail(TUTTI_IO, "rank %d cannot be reached at %s port %d", peer,
                            member->peer.address, member->peer.port);
    pthread_mutex_unlock(&heartbeat->lock);
    tutti__heartbeat_wake(heartbeat);
    return status;
}

bool tutti__channel_is_called(tutti_membership *membership, int peer, uint32_t number)
{
    tutti_heartbeat *heartbeat = membership->heartbeat;
    pthread_mutex_lock(&heartbeat->lock);
    bool called = tutti__link_is_calling(heartbeat, peer, number);
    for (size_t i = 0; i < heartbeat->callers.count; i++)
        called = called || (heartbeat->callers.data[i].rank == peer &&
                            heartbeat->callers.data[i].number == number);
    pthread_mutex_unlock(&heartbeat->lock);
    return called;
}

tutti_status tutti__channel_take(tutti_membership *membership, uint32_t number, int *ret_peer,
                                 uint64_t *ret_incarnation, tutti_channel **ret_channel)
{
    tutti_heartbeat *heartbeat = membership->heartbeat;
    tutti_caller found = {.rank = -1};
    pthread_mutex_lock(&heartbeat->lock);
    for (size_t i = 0; i < heartbeat->callers.count && found.rank < 0; i++)
        if (heartbeat->callers.data[i].number == number) {
            found = heartbeat->callers.data[i];
            memmove(&heartbeat->callers.data[i], &heartbeat->callers.data[i + 1],
                    (--heartbeat->callers.count - i) * sizeof found);
        }
    pthread_mutex_unlock(&heartbeat->lock);
    if (found.rank < 0)
        return TUTTI_NOT_FOUND;
    TUTTI_TRY(make_channel(found.wire, found.rank, ret_channel));
    *ret_peer = found.rank;
    *ret_incarnation = found.incarnation;
    return TUTTI_OK;
}

void tutti__channel_close(tutti_channel *channel)
{
    if (channel == NULL)
        return;
    tutti__wire_close(&channel->wire);
    pthread_mutex_destroy(&channel->lock);
    free(channel);
}

/* What a result of the wire means to users of the channel. */
static tutti_status channel_finish(const tutti_channel *channel, const char *verb, int64_t result,
                                   size_t *ret_done)
{
    if (result > 0 || result == -EAGAIN) {
        *ret_done = result > 0 ? (size_t)result : 0;
        return TUTTI_OK;
    }
    if (result == 0)
        return tutti_fail(TUTTI_CLOSED, "rank %d has ended its connection", channel->peer);
    return tutti_fail(result == -EPIPE || result == -ECONNRESET ? TUTTI_CLOSED : TUTTI_IO,
                      "the connection to rank %d broke while %s: %s", channel->peer, verb,
                      tutti__wire_reason(&channel->wire, result));
}

tutti_status tutti__channel_send(tutti_channel *channel, const void *data, size_t size,
                                 size_t *ret_done)
{
    bool encrypted = channel->wire.tls != NULL;
    if (size == 0) {
        *ret_done = 0;
        return TUTTI_OK;
    }
    if (encrypted)
        pthread_mutex_lock(&channel->lock);
    int64_t result = tutti__wire_send(&channel->wire, data, size);
    if (encrypted)
        pthread_mutex_unlock(&channel->lock);
    return channel_finish(channel, "sending", result, ret_done);
}

tutti_status tutti__channel_recv(tutti_channel *channel, void *data, size_t size, size_t *ret_done)
{
    bool encrypted = channel->wire.tls != NULL;
    if (size == 0) {
        *ret_done = 0;
        return TUTTI_OK;
    }
    if (encrypted)
        pthread_mutex_lock(&channel->lock);
    int64_t result = tutti__wire_receive(&channel->wire, data, size);
    if (encrypted)
        pthread_mutex_unlock(&channel->lock);
    return channel_finish(channel, "receiving", result, ret_done);
}

int tutti__channel_fd(const tutti_channel *channel)
{
    return channel->wire.socket;
}

bool tutti__channel_pending(tutti_channel *channel)
{
    if (channel->wire.tls == NULL)
        return false;
    pthread_mutex_lock(&channel->lock);
    bool pending = tutti__tls_pending(channel->wire.tls);
    pthread_mutex_unlock(&channel->lock);
    return pending;
}

bool tutti__channel_encrypted(const tutti_channel *channel)
{
    return channel->wire.tls != NULL;
}
