/* engine.h: a way for bytes to get from one rank to another. One folder each, ending in one
 * descriptor.
 * tables: tutti_fabric_engine
 *
 * An engine gives ordered byte streams between ranks, which never block; fabric.c makes messages of
 * them. Engines that share memory also give a segment (segment.h), on which direct algorithms work
 * without messages. */
#ifndef TUTTI_COMM_FABRIC_ENGINE_H
#define TUTTI_COMM_FABRIC_ENGINE_H

#include <poll.h>
#include <sys/uio.h>

#include "base/status.h"
#include "cluster/membership.h"
#include "tutti/comm.h"

typedef struct tutti_fabric tutti_fabric;
typedef struct tutti_segment tutti_segment;

typedef struct tutti_fabric_engine {
    const char *name, *doc;
    bool processes; /* ranks may be processes */
    /* Whether it can be used here at all, with what is missing in words. (optional) */
    tutti_status (*available)(void);

    /* A group inside one process, or of processes that it will fork: what all ranks will share,
     * made once. Each rank then attaches; after all have, or on failure, `discard` gives back what
     * the maker holds (in every process, when forked). (optional, all three) */
    tutti_status (*prepare)(int size, const tutti_comm_options *options, bool forked,
                            void **ret_shared);
    tutti_status (*attach)(tutti_fabric *fabric, void *shared, void **ret_state);
    void (*discard)(void *shared, int rank); /* rank -1: nobody attached */

    /* Ranks that met through a membership: streams to all peers whose fabric->engines[peer] is this
     * one. Collective over all ranks of the membership, also those that have no such peer.
     * TUTTI_UNSUPPORTED, on all ranks in the same way: it is not possible here, another engine may
     * be tried. (optional) */
    tutti_status (*join)(tutti_fabric *fabric, const tutti_comm_options *options,
                         int64_t deadline_ns, void **ret_state);
    void (*detach)(tutti_fabric *fabric, void *state);

    /* Never block. *ret_done is how much was taken, 0 for nothing now. Where a call took nothing,
     * the next one starts with the same bytes at the same address. */
    tutti_status (*send)(void *state, int peer, const struct iovec *parts, int count,
                         size_t *ret_done);
    tutti_status (*recv)(void *state, int peer, void *data, size_t size, size_t *ret_done);
    /* How many of those bytes will leave all the same, though the last call took nothing: they are
     * in hands that do not give them back. (optional: none) */
    size_t (*handed_over)(void *state, int peer);
    /* What to poll for a peer, when `wanted` more bytes are sure to come from it, or 1.
     * (optional: without it waiting goes by the segment's bell) */
    void (*descriptor)(void *state, int peer, bool sending, size_t wanted, struct pollfd *ret);

    /* Whether links still answer, as far as the system knows: in waits that last, now and then. Who
     * does not is suspected. (optional) */
    void (*watch)(void *state, int64_t silence_ns);

    /* Gives the connections of lane `number`, the last of those that the state has, to `fabric`,
     * which has the same ranks. (optional; such an engine says in fabric->lane_count how many) */
    tutti_status (*lane)(void *state, tutti_fabric *fabric, int number, void **ret_state);

    /* Before ranks have met: `text` of rank 0 for all `size` ranks. With `stays` the library behind
     * the engine is used later on. Collective. (optional) */
    tutti_status (*announce)(int rank, int size, char *text, size_t bytes, bool stays,
                             int64_t deadline_ns);

    /* Whole collectives of the library behind the engine. (optional) */
    const struct tutti_native *native;
} tutti_fabric_engine;

/* By name; TUTTI_NOT_FOUND lists those that exist. */
tutti_status tutti__engine_find(const char *name, const tutti_fabric_engine **ret_engine);

#endif
