/* coll.c: what algorithms stand on: messages within a group, scratch memory, names. */
#include "comm/coll.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "tables/coll.h"

const char *const tutti__operation_names[TUTTI_OPERATION_COUNT] = {
    [TUTTI_BARRIER] = "barrier",
    [TUTTI_BROADCAST] = "broadcast",
    [TUTTI_REDUCE] = "reduce",
    [TUTTI_ALL_REDUCE] = "all_reduce",
    [TUTTI_REDUCE_SCATTER] = "reduce_scatter",
    [TUTTI_ALL_GATHER] = "all_gather",
    [TUTTI_GATHER] = "gather",
    [TUTTI_SCATTER] = "scatter",
    [TUTTI_ALL_TO_ALL] = "all_to_all",
};

tutti_operation tutti__operation_find(const char *name)
{
    int i = 0;
    while (i < TUTTI_OPERATION_COUNT && strcmp(tutti__operation_names[i], name) != 0)
        i++;
    return (tutti_operation)i;
}

const tutti_coll *tutti__coll_find(const char *name)
{
    for (const tutti_coll *const *each = tutti__coll_table; *each; each++)
        if (strcmp((*each)->name, name) == 0)
            return *each;
    return NULL;
}

static tutti_message message_of(tutti_collective *c, int peer, const void *data, size_t size)
{
    return (tutti_message){.peer = c->comm->members[peer],
                           .context = c->comm->context,
                           .tag = c->tag,
                           .data = (char *)(uintptr_t)data,
                           .size = size};
}

static void post_send(tutti_collective *c, tutti_message *message)
{
    atomic_fetch_add_explicit(&c->comm->bytes_sent, (int64_t)message->size, memory_order_relaxed);
    tutti__fabric_send(c->comm->fabric, message);
}

tutti_status tutti__coll_send(tutti_collective *c, int to, const void *data, size_t size)
{
    tutti_message message = message_of(c, to, data, size), *all = &message;
    post_send(c, &message);
    return tutti__fabric_wait(c->comm->fabric, &all, 1, c->deadline_ns);
}

tutti_status tutti__coll_recv(tutti_collective *c, int from, void *data, size_t size)
{
    tutti_message message = message_of(c, from, data, size), *all = &message;
    tutti__fabric_recv(c->comm->fabric, &message);
    return tutti__fabric_wait(c->comm->fabric, &all, 1, c->deadline_ns);
}

tutti_status tutti__coll_exchange(tutti_collective *c, int to, const void *out, size_t out_size,
                                  int from, void *in, size_t in_size)
{
    tutti_message sent = message_of(c, to, out, out_size);
    tutti_message got = message_of(c, from, in, in_size);
    tutti_message *both[] = {&got, &sent};
    tutti__fabric_recv(c->comm->fabric, &got);
    post_send(c, &sent);
    return tutti__fabric_wait(c->comm->fabric, both, 2, c->deadline_ns);
}

tutti_status tutti__coll_exchange_all(tutti_collective *c, const struct iovec *out,
                                      const struct iovec *in)
{
    size_t most = (size_t)c->size * 2;
    tutti_message *messages = calloc(most, sizeof *messages);
    tutti_message **all = calloc(most, sizeof *all);
    int count = 0;
    if (!messages || !all) {
        free(messages), free(all);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for messages to %d ranks", c->size);
    }
    for (int i = 1; in && i < c->size; i++) {
        int r = (c->rank + c->size - i) % c->size;
        if (!in[r].iov_base)
            continue;
        messages[count] = message_of(c, r, in[r].iov_base, in[r].iov_len);
        all[count] = &messages[count];
        tutti__fabric_recv(c->comm->fabric, all[count++]);
    }
    for (int i = 1; out && i < c->size; i++) {
        int r = (c->rank + i) % c->size;
        if (!out[r].iov_base)
            continue;
        messages[count] = message_of(c, r, out[r].iov_base, out[r].iov_len);
        all[count] = &messages[count];
        post_send(c, all[count++]);
    }
    tutti_status status = tutti__fabric_wait(c->comm->fabric, all, count, c->deadline_ns);
    free(messages);
    free(all);
    return status;
}

tutti_status tutti__coll_scratch(tutti_collective *c, size_t size, void **ret_memory)
{
    tutti_comm *comm = c->comm;
    if (comm->scratch_bytes < size) {
        size_t bytes = (size + 4095) / 4096 * 4096;
        void *memory = aligned_alloc(4096, bytes);
        if (!memory)
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for %zu bytes that pass through", bytes);
        free(comm->scratch);
        comm->scratch = memory;
        comm->scratch_bytes = bytes;
    }
    *ret_memory = comm->scratch;
    return TUTTI_OK;
}

int tutti__log2(int ranks)
{
    int steps = 0;
    while ((int64_t)1 << steps < ranks)
        steps++;
    return steps;
}
