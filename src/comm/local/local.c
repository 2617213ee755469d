/* local.c: threads of one process. Every rank can read and write every other's memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "comm/fabric/fabric.h"
#include "comm/fabric/segment.h"

typedef struct shared {
    void *memory;
    size_t bytes;
    int64_t arena_bytes;
    int size;
    atomic_int users;
} shared;

typedef struct state {
    tutti_segment *segment;
    shared *shared;
} state;

static void give_up(shared *all)
{
    if (atomic_fetch_sub(&all->users, 1) > 1)
        return;
    munmap(all->memory, all->bytes);
    free(all);
}

static tutti_status local_prepare(int size, const tutti_comm_options *options, bool forked,
                                  void **ret_shared)
{
    if (forked)
        return tutti_fail(TUTTI_UNSUPPORTED, "the engine 'local' connects threads of one process; "
                                             "use 'shm' or 'tcp' between processes");
    shared *all = calloc(1, sizeof *all);
    if (!all)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a group of %d threads", size);
    all->arena_bytes = options->arena_bytes;
    all->size = size;
    all->bytes = tutti__segment_bytes(size, all->arena_bytes);
    all->memory = mmap(NULL, all->bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all->memory == MAP_FAILED) {
        tutti_status status = tutti_fail(
            TUTTI_NO_MEMORY,
            "no address space for %d threads with %lld bytes of arena each: %s; " TUTTI_ADDRESS_HINT,
            size, (long long)all->arena_bytes, strerror(errno));
        free(all);
        return status;
    }
    tutti__segment_format(all->memory, all->bytes, size);
    atomic_store(&all->users, 1);
    *ret_shared = all;
    return TUTTI_OK;
}

static tutti_status attach(tutti_fabric *fabric, void *arg, void **ret_state)
{
    shared *all = arg;
    state *own = calloc(1, sizeof *own);
    if (!own)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a thread's links");
    tutti_status status = tutti__segment_open(all->memory, all->bytes, fabric->rank, true, false,
                                              all->arena_bytes, &own->segment);
    if (status != TUTTI_OK) {
        free(own);
        return status;
    }
    atomic_fetch_add(&all->users, 1);
    own->shared = all;
    fabric->segment = own->segment;
    *ret_state = own;
    return TUTTI_OK;
}

static void local_discard(void *arg, int rank)
{
    (void)rank;
    give_up(arg);
}

static void detach(tutti_fabric *fabric, void *arg)
{
    state *own = arg;
    tutti__segment_close(own->segment);
    fabric->segment = NULL;
    give_up(own->shared);
    free(own);
}

static tutti_status send_bytes(void *arg, int peer, const struct iovec *parts, int count,
                               size_t *ret_done)
{
    return tutti__ring_send(((state *)arg)->segment, peer, parts, count, ret_done);
}

static tutti_status recv_bytes(void *arg, int peer, void *data, size_t size, size_t *ret_done)
{
    return tutti__ring_recv(((state *)arg)->segment, peer, data, size, ret_done);
}

const tutti_fabric_engine tutti_fabric_engine_local = {
    .name = "local",
    .doc = "threads of one process",
    .prepare = local_prepare,
    .attach = attach,
    .discard = local_discard,
    .detach = detach,
    .send = send_bytes,
    .recv = recv_bytes,
};
