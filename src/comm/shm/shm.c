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

#include "comm/fabric.h"
#include "comm/segment.h"

typedef struct shared {
    int descriptor;
    size_t bytes;
    int64_t arena_bytes;
} shared;

typedef struct state {
    tutti_segment *segment;
    int *place; /* [size of the fabric]: rank in the segment, -1 where it is on another machine */
} state;

static tutti_status no_memory(int size, int64_t arena_bytes)
{
    return tutti_fail(TUTTI_NO_MEMORY,
                      "no shared memory for %d ranks with %lld bytes of arena each: %s", size,
                      (long long)arena_bytes, strerror(errno));
}

/* Maps and, for the one who made it, formats. */
static tutti_status map(int descriptor, size_t bytes, int size, bool format, void **ret_memory)
{
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
    if (memory == MAP_FAILED)
        return no_memory(size, (int64_t)bytes / size);
    if (format)
        tutti__segment_format(memory, bytes, size);
    *ret_memory = memory;
    return TUTTI_OK;
}

static tutti_status prepare(int size, const tutti_comm_options *options, bool forked,
                            void **ret_shared)
{
    (void)forked;
    shared *all = calloc(1, sizeof *all);
    if (!all)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a group of %d ranks", size);
    all->arena_bytes = options->arena_bytes;
    all->bytes = tutti__segment_bytes(size, all->arena_bytes);
    all->descriptor = memfd_create("tutti", MFD_CLOEXEC);
    void *memory = NULL;
    tutti_status status = TUTTI_OK;
    if (all->descriptor < 0 || ftruncate(all->descriptor, (off_t)all->bytes) != 0)
        status = no_memory(size, all->arena_bytes);
    else
        status = map(all->descriptor, all->bytes, size, true, &memory);
    if (status != TUTTI_OK) {
        if (all->descriptor >= 0)
            close(all->descriptor);
        free(all);
        return status;
    }
    munmap(memory, all->bytes);
    *ret_shared = all;
    return TUTTI_OK;
}

/* The view of one rank: `count` ranks share the memory, `places[i]` is the fabric's rank of the
 * i-th. */
static tutti_status view(tutti_fabric *fabric, void *memory, size_t bytes, int64_t arena_bytes,
                         int count, const int *ranks, void **ret_state)
{
    state *own = calloc(1, sizeof *own);
    int *place = malloc((size_t)fabric->size * sizeof *place), mine = 0;
    if (!own || !place) {
        free(own);
        free(place);
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
        free(own);
        free(place);
        return status;
    }
    own->place = place;
    fabric->segment = own->segment;
    *ret_state = own;
    return TUTTI_OK;
}

static tutti_status attach(tutti_fabric *fabric, void *given, void **ret_state)
{
    shared *all = given;
    void *memory;
    TUTTI_TRY(map(all->descriptor, all->bytes, fabric->size, false, &memory));
    tutti_status status =
        view(fabric, memory, all->bytes, all->arena_bytes, fabric->size, NULL, ret_state);
    if (status != TUTTI_OK)
        munmap(memory, all->bytes);
    return status;
}

static void discard(void *given, int rank)
{
    (void)rank;
    shared *all = given;
    close(all->descriptor);
    free(all);
}

static void detach(tutti_fabric *fabric, void *given)
{
    state *own = given;
    tutti__segment_close(own->segment);
    fabric->segment = NULL;
    free(own->place);
    free(own);
}

/* The lowest rank of a machine makes the memory under a name that only this job can know; when all
 * have mapped it, the name goes. */
static tutti_status map_by_name(tutti_fabric *fabric, int first, size_t bytes, int count,
                                int64_t deadline_ns, void **ret_memory)
{
    char name[64];
    const tutti_membership *members = fabric->membership;
    bool maker = fabric->rank == first;
    snprintf(name, sizeof name, "/tutti-%016llx-%u-%d", (unsigned long long)members->job,
             members->epoch, first);
    int32_t failed = 0, *all = malloc((size_t)fabric->size * sizeof *all);
    int descriptor = -1;
    tutti_error error = {0};
    tutti_status status = all ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory to meet");
    if (status == TUTTI_OK && maker && count > 1) {
        descriptor = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (descriptor < 0 || ftruncate(descriptor, (off_t)bytes) != 0)
            status = no_memory(count, (int64_t)bytes / count);
        else
            status = map(descriptor, bytes, count, true, ret_memory);
    }
    for (int step = 0; step < 2; step++) { /* made; mapped */
        failed = status != TUTTI_OK;
        if (failed && !error.status)
            tutti__error_capture(status, &error);
        tutti_status met = all ? tutti__membership_exchange(fabric->membership, &failed,
                                                            sizeof failed, deadline_ns, all)
                               : status;
        for (int i = 0; status == TUTTI_OK && met == TUTTI_OK && i < fabric->size; i++)
            if (all[i])
                status = tutti_fail(TUTTI_NO_MEMORY, "rank %d could not map shared memory", i);
        if (met != TUTTI_OK && status == TUTTI_OK)
            status = met;
        if (step == 0 && status == TUTTI_OK && !maker && count > 1) {
            descriptor = shm_open(name, O_RDWR | O_CLOEXEC, 0600);
            status = descriptor < 0 ? no_memory(count, (int64_t)bytes / count)
                                    : map(descriptor, bytes, count, false, ret_memory);
        }
    }
    if (count > 1)
        shm_unlink(
            name); /* by all: its maker may have died; the name is of this membership alone */
    if (descriptor >= 0)
        close(descriptor);
    free(all);
    return error.status ? tutti__error_restore(&error) : status;
}

static tutti_status join(tutti_fabric *fabric, const tutti_comm_options *options,
                         int64_t deadline_ns, void **ret_state)
{
    int *ranks = calloc((size_t)fabric->size, sizeof *ranks), count = 0;
    if (!ranks)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a list of %d ranks", fabric->size);
    for (int i = 0; i < fabric->size; i++)
        if (fabric->machine[i] == fabric->machine[fabric->rank])
            ranks[count++] = i;
    size_t bytes = tutti__segment_bytes(count, options->arena_bytes);
    void *memory = NULL;
    tutti_status status = map_by_name(fabric, ranks[0], bytes, count, deadline_ns, &memory);
    *ret_state = NULL;
    if (status == TUTTI_OK && count > 1)
        status = view(fabric, memory, bytes, options->arena_bytes, count, ranks, ret_state);
    if (status != TUTTI_OK && memory)
        munmap(memory, bytes);
    free(ranks);
    return status;
}

static tutti_status send_bytes(void *given, int peer, const struct iovec *parts, int count,
                               size_t *ret_done)
{
    state *own = given;
    return tutti__ring_send(own->segment, own->place[peer], parts, count, ret_done);
}

static tutti_status recv_bytes(void *given, int peer, void *data, size_t size, size_t *ret_done)
{
    state *own = given;
    return tutti__ring_recv(own->segment, own->place[peer], data, size, ret_done);
}

const tutti_engine tutti_engine_shm = {
    .name = "shm",
    .doc = "processes of one machine, through shared memory",
    .processes = true,
    .prepare = prepare,
    .attach = attach,
    .discard = discard,
    .join = join,
    .detach = detach,
    .send = send_bytes,
    .recv = recv_bytes,
};
