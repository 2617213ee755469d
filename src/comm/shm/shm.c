/* shm.c: processes of one machine, through memory that all of them map. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "comm/fabric/fabric.h"
#include "comm/fabric/segment.h"
#include "comm/shm/memory.h"

typedef struct shared {
    int descriptor;
    size_t bytes;
    int64_t arena_bytes;
} shared;

typedef struct state {
    tutti_segment *segment;
    int *place; /* [size of the fabric]: rank in the segment, -1 where it is on another machine */
} state;

static tutti_status shm_prepare(int size, const tutti_comm_options *options, bool forked,
                                void **ret_shared)
{
    (void)forked;
    shared *all = calloc(1, sizeof *all);
    if (!all)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a group of %d ranks", size);
    all->arena_bytes = options->arena_bytes;
    all->bytes = tutti__segment_bytes(size, all->arena_bytes);
    void *memory;
    tutti_status status = tutti__shm_nameless(all->bytes, size, &all->descriptor, &memory);
    if (status != TUTTI_OK) {
        free(all);
        return status;
    }
    munmap(memory, all->bytes);
    *ret_shared = all;
    return TUTTI_OK;
}

/* The view of one rank: `count` ranks share the memory, `ranks[i]` is the fabric's rank of the
 * i-th. Memory and file become the view's. */
static tutti_status view(tutti_fabric *fabric, void *memory, int file, size_t bytes,
                         int64_t arena_bytes, int count, const int *ranks, void **ret_state)
{
    state *own = calloc(1, sizeof *own);
    int *place = malloc((size_t)fabric->size * sizeof *place), mine = 0;
    if (!own || !place) {
        free(own);
        free(place);
        munmap(memory, bytes);
        close(file);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for links through shared memory");
    }
    for (int i = 0; i < fabric->size; i++)
        place[i] = -1;
    for (int i = 0; i < count; i++) {
        int rank = ranks ? ranks[i] : i;
        place[rank] = i;
        mine = rank == fabric->rank ? i : mine;
    }
    tutti_status status =
        tutti__segment_open(memory, bytes, mine, false, true, arena_bytes, &own->segment);
    if (status != TUTTI_OK) {
        munmap(memory, bytes);
        close(file);
    } else if ((status = tutti__segment_back(own->segment, file)) != TUTTI_OK) {
        tutti__segment_close(own->segment);
    }
    if (status != TUTTI_OK) {
        free(own);
        free(place);
        return status;
    }
    own->place = place;
    fabric->segment = own->segment;
    *ret_state = own;
    return TUTTI_OK;
}

static tutti_status attach(tutti_fabric *fabric, void *arg, void **ret_state)
{
    shared *all = arg;
    void *memory;
    int file = fcntl(all->descriptor, F_DUPFD_CLOEXEC, 3);
    if (file < 0)
        return tutti_fail(TUTTI_NO_MEMORY, "no descriptor for shared memory: %s", strerror(errno));
    tutti_status status = tutti__shm_map(file, all->bytes, &memory);
    if (status != TUTTI_OK) {
        close(file);
        return status;
    }
    return view(fabric, memory, file, all->bytes, all->arena_bytes, fabric->size, NULL, ret_state);
}

static void shm_discard(void *arg, int rank)
{
    (void)rank;
    shared *all = arg;
    close(all->descriptor);
    free(all);
}

static void detach(tutti_fabric *fabric, void *arg)
{
    state *own = arg;
    tutti__segment_close(own->segment);
    fabric->segment = NULL;
    free(own->place);
    free(own);
}

static tutti_status shm_join(tutti_fabric *fabric, const tutti_comm_options *options,
                             int64_t deadline_ns, void **ret_state)
{
    int *ranks = calloc((size_t)fabric->size, sizeof *ranks), count = 0;
    if (!ranks)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a list of %d ranks", fabric->size);
    for (int i = 0; i < fabric->size; i++)
        if (fabric->machine[i] == fabric->machine[fabric->rank])
            ranks[count++] = i;
    size_t bytes = tutti__segment_bytes(count, options->arena_bytes);
    void *memory;
    int file;
    tutti_status status =
        tutti__shm_meet(fabric, ranks[0], bytes, count, deadline_ns, &file, &memory);
    *ret_state = NULL;
    if (status == TUTTI_OK && count > 1)
        status = view(fabric, memory, file, bytes, options->arena_bytes, count, ranks, ret_state);
    free(ranks);
    return status;
}

static tutti_status send_bytes(void *arg, int peer, const struct iovec *parts, int count,
                               size_t *ret_done)
{
    state *own = arg;
    return tutti__ring_send(own->segment, own->place[peer], parts, count, ret_done);
}

static tutti_status recv_bytes(void *arg, int peer, void *data, size_t size, size_t *ret_done)
{
    state *own = arg;
    return tutti__ring_recv(own->segment, own->place[peer], data, size, ret_done);
}

const tutti_fabric_engine tutti_fabric_engine_shm = {
    .name = "shm",
    .doc = "processes of one machine, through shared memory",
    .processes = true,
    .prepare = shm_prepare,
    .attach = attach,
    .discard = shm_discard,
    .join = shm_join,
    .detach = detach,
    .send = send_bytes,
    .recv = recv_bytes,
};
