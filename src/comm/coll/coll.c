/* coll.c: what algorithms stand on: messages within a group, scratch memory, names. */
#include "comm/coll/coll.h"

#include "base/recycle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "comm/sim/trace.h"
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

static tutti_fabric_message message_of(tutti_collective *c, int peer, const void *data, size_t size)
{
    return (tutti_fabric_message){.peer = c->comm->members[peer],
                                  .context = c->comm->context,
                                  .tag = c->tag,
                                  .data = (char *)(uintptr_t)data,
                                  .size = size};
}

/* A rank of the simulator only notes what it would do. */
static void post_send(tutti_collective *c, tutti_fabric_message *message)
{
    atomic_fetch_add_explicit(&c->comm->bytes_sent, (int64_t)message->size, memory_order_relaxed);
    if (c->comm->trace)
        message->done = tutti__sim_trace_post(c->comm->trace, message->peer, true, message->size);
    else
        tutti__fabric_send(c->comm->fabric, message);
}

static void post_recv(tutti_collective *c, tutti_fabric_message *message)
{
    if (c->comm->trace)
        message->done = tutti__sim_trace_post(c->comm->trace, message->peer, false, message->size);
    else
        tutti__fabric_recv(c->comm->fabric, message);
}

static tutti_status wait_for(tutti_collective *c, tutti_fabric_message *const *messages, int count)
{
    if (!c->comm->trace)
        return tutti__fabric_wait(c->comm->fabric, messages, count, c->deadline_ns);
    for (int i = 0; i < count; i++)
        tutti__sim_trace_wait(c->comm->trace, messages[i]->done);
    return TUTTI_OK;
}

void tutti__coll_copy(const tutti_collective *c, void *to, const void *from, size_t size)
{
    if (to == from || size == 0)
        return;
    if (c->comm->trace)
        tutti__sim_trace_copy(c->comm->trace, size);
    else
        memmove(to, from, size);
}

tutti_collective tutti__coll_part(const tutti_collective *whole, int64_t low, int64_t count)
{
    tutti_collective part = *whole;
    part.count = count;
    part.in = (const char *)whole->in + (size_t)low * whole->element;
    if (whole->out) /* a reduce has one at its root only */
        part.out = (char *)whole->out + (size_t)low * whole->element;
    return part;
}

tutti_status tutti__coll_send(tutti_collective *c, int to, const void *data, size_t size)
{
    tutti_fabric_message message = message_of(c, to, data, size), *all = &message;
    post_send(c, &message);
    return wait_for(c, &all, 1);
}

tutti_status tutti__coll_recv(tutti_collective *c, int from, void *data, size_t size)
{
    tutti_fabric_message message = message_of(c, from, data, size), *all = &message;
    post_recv(c, &message);
    return wait_for(c, &all, 1);
}

tutti_status tutti__coll_exchange(tutti_collective *c, int to, const void *out, size_t out_size,
                                  int from, void *in, size_t in_size)
{
    tutti_fabric_message sent = message_of(c, to, out, out_size);
    tutti_fabric_message got = message_of(c, from, in, in_size);
    tutti_fabric_message *both[] = {&got, &sent};
    post_recv(c, &got);
    post_send(c, &sent);
    return wait_for(c, both, 2);
}

/* An exchange in pieces: two of them are on their way each way. */
typedef struct pieces {
    tutti_collective *call;
    int to, from;
    const char *out, *own;
    char *target, *room;
    int64_t out_count, target_count, step; /* elements */
    tutti_fabric_message sent[2], got[2];
    bool after;
} pieces;

static int64_t piece_size(int64_t count, int64_t step, int64_t k)
{
    int64_t left = count - k * step;
    return left < 0 ? 0 : left < step ? left : step;
}

static void post_piece(pieces *p, int64_t k)
{
    tutti_collective *c = p->call;
    int64_t in = piece_size(p->target_count, p->step, k);
    int64_t out = piece_size(p->out_count, p->step, k);
    size_t offset = (size_t)(k * p->step) * c->element;
    if (in > 0) {
        p->got[k & 1] =
            message_of(c, p->from, p->room + (k & 1) * TUTTI_FOLD_PIECE, (size_t)in * c->element);
        post_recv(c, &p->got[k & 1]);
    }
    if (out > 0) {
        p->sent[k & 1] = message_of(c, p->to, p->out + offset, (size_t)out * c->element);
        post_send(c, &p->sent[k & 1]);
    }
}

static void fold_piece(pieces *p, int64_t k)
{
    tutti_collective *c = p->call;
    size_t offset = (size_t)(k * p->step) * c->element;
    int64_t count = piece_size(p->target_count, p->step, k);
    const char *got = p->room + (k & 1) * TUTTI_FOLD_PIECE;
    if (count == 0)
        return;
    const char *own = p->own + offset;
    tutti__coll_fold(c, p->target + offset, p->after ? own : got, p->after ? got : own, count);
}

/* After a failure nothing of this call may stay posted. */
static tutti_status give_up(pieces *p, tutti_status status)
{
    for (int i = 0; i < 2; i++) {
        if (p->got[i].size)
            tutti__fabric_cancel(p->call->comm->fabric, &p->got[i]);
        if (p->sent[i].size)
            tutti__fabric_cancel(p->call->comm->fabric, &p->sent[i]);
    }
    return status;
}

tutti_status tutti__coll_exchange_fold(tutti_collective *c, int to, const void *out,
                                       int64_t out_count, int from, const void *own, void *target,
                                       int64_t target_count, bool after, void *room)
{
    int64_t most = out_count > target_count ? out_count : target_count;
    pieces p = {.call = c,
                .to = to,
                .from = from,
                .out = out,
                .own = own,
                .target = target,
                .room = room,
                .out_count = out_count,
                .target_count = target_count,
                .step = TUTTI_FOLD_PIECE / (int64_t)c->element,
                .after = after};
    int64_t count = (most + p.step - 1) / p.step;
    for (int64_t k = 0; k < 2 && k < count; k++)
        post_piece(&p, k);
    for (int64_t k = 0; k < count; k++) {
        tutti_fabric_message *both[2];
        int open = 0;
        if (piece_size(target_count, p.step, k) > 0)
            both[open++] = &p.got[k & 1];
        if (piece_size(out_count, p.step, k) > 0)
            both[open++] = &p.sent[k & 1];
        tutti_status status = wait_for(c, both, open);
        if (status != TUTTI_OK)
            return give_up(&p, status);
        fold_piece(&p, k);
        if (k + 2 < count)
            post_piece(&p, k + 2);
    }
    return TUTTI_OK;
}

tutti_status tutti__coll_exchange_all(tutti_collective *c, const struct iovec *out,
                                      const struct iovec *in)
{
    size_t most = (size_t)c->size * 2;
    tutti_fabric_message *messages = tutti__recycle_zeros(most, sizeof *messages);
    tutti_fabric_message **all = tutti__recycle_zeros(most, sizeof *all);
    int count = 0;
    if (!messages || !all) {
        tutti__recycle_free(messages), tutti__recycle_free(all);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for messages to %d ranks", c->size);
    }
    for (int i = 1; in && i < c->size; i++) {
        int r = (c->rank + c->size - i) % c->size;
        messages[count] = message_of(c, r, in[r].iov_base, in[r].iov_len);
        all[count] = &messages[count];
        post_recv(c, all[count++]);
    }
    for (int i = 1; out && i < c->size; i++) {
        int r = (c->rank + i) % c->size;
        messages[count] = message_of(c, r, out[r].iov_base, out[r].iov_len);
        all[count] = &messages[count];
        post_send(c, all[count++]);
    }
    tutti_status status = wait_for(c, all, count);
    tutti__recycle_free(messages);
    tutti__recycle_free(all);
    return status;
}

tutti_status tutti__coll_transfer(tutti_collective *c, const tutti_transfer *transfers, int count)
{
    enum { MOST = 16 };
    tutti_fabric_message messages[MOST], *all[MOST];
    if (count > MOST)
        return tutti_fail(TUTTI_INTERNAL, "%d transfers at once", count);
    for (int i = 0; i < count; i++) {
        messages[i] = message_of(c, transfers[i].peer, transfers[i].data, transfers[i].size);
        all[i] = &messages[i];
        if (transfers[i].outgoing)
            post_send(c, all[i]);
        else
            post_recv(c, all[i]);
    }
    return wait_for(c, all, count);
}

tutti_status tutti__coll_scratch(tutti_collective *c, size_t size, void **ret_memory)
{
    tutti_comm *comm = c->comm;
    if (comm->trace) {
        *ret_memory = tutti__sim_trace_memory();
        return TUTTI_OK;
    }
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
