/* send.c: messages between two ranks, for users. */
#include <stdio.h>

#include "base/require.h"
#include "comm/comm.h"

static tutti_status await(tutti_fabric *fabric, tutti_fabric_message *message, int64_t deadline_ns)
{
    tutti_status status = tutti__fabric_wait(fabric, &message, 1, deadline_ns);
    if (status == TUTTI_CLOSED || status == TUTTI_IO)
        status = tutti__comm_cause(fabric, status);
    if (status != TUTTI_OK && fabric->membership && tutti__membership_failed(fabric->membership))
        status = tutti__fabric_check(fabric); /* what every later call returns */
    return status;
}

/* What has left cannot be taken back, and nothing can follow half a message: the receiver, and
 * whoever else waits for something of this rank, is told at once. */
static tutti_status broke_half_way(tutti_comm *comm, tutti_status status, const char *name,
                                   const tutti_fabric_message *message)
{
    char what[160];
    bool whole = message->done == message->size + TUTTI_HEADER_BYTES;
    snprintf(what, sizeof what, "%s, tag %u", name, message->tag);
    return tutti__comm_broke(comm, status, what,
                             whole ? "; they cannot be taken back, so the group is broken"
                                   : "; the rest cannot follow, so the group is broken");
}

tutti_status tutti__comm_await(tutti_comm *comm, tutti_fabric_message *message, const char *name,
                               int64_t deadline_ns)
{
    tutti_status status = await(comm->fabric, message, deadline_ns);
    if (status == TUTTI_DEADLINE && message->outgoing && message->done > 0)
        return broke_half_way(comm, status, name, message);
    return status == TUTTI_OK ? status
                              : tutti__error_prefix(status, "%s, tag %u", name, message->tag);
}

/* What says how a collective goes means nothing here. */
static tutti_status check_form(const char *name, const tutti_comm_call *call)
{
    const char *asked = call->algorithm    ? ".algorithm"
                        : call->wire       ? ".wire"
                        : call->codec      ? ".codec"
                        : call->shards     ? ".shards"
                        : call->compressor ? ".compressor"
                                           : NULL;
    return asked ? tutti_fail(TUTTI_INVALID, "%s: %s is for collectives; leave it out", name, asked)
                 : TUTTI_OK;
}

static tutti_status transfer(tutti_comm *comm, int peer, int tag, void *data, int64_t bytes,
                             bool outgoing, const tutti_comm_call *call)
{
    const char *name = outgoing ? "send" : "recv";
    if (peer < 0 || peer >= comm->size || peer == comm->rank)
        return tutti_fail(TUTTI_OUT_OF_RANGE,
                          "%s: rank %d; others in this group are 0 to %d but %d", name, peer,
                          comm->size - 1, comm->rank);
    if (tag < 0 || tag > 1 << 30 || bytes < 0)
        return tutti_fail(TUTTI_INVALID,
                          "%s: tag %d, %lld bytes; tags are 0 to 2^30, sizes not negative", name,
                          tag, (long long)bytes);
    if (!data && bytes > 0)
        return tutti_fail(TUTTI_INVALID, "%s: the data is NULL, for %lld bytes", name,
                          (long long)bytes);
    tutti_comm_call full;
    TUTTI_TRY(tutti__call_full(name, call, &full));
    TUTTI_TRY(check_form(name, &full));
    TUTTI_TRY(tutti__comm_check_seconds(".timeout", full.timeout));
    if (tutti__fabric_is_broken(comm->fabric))
        TUTTI_TRY(tutti__fabric_check(comm->fabric));
    tutti_fabric_message message = {.peer = comm->members[peer],
                                    .context = comm->context,
                                    .tag = (uint32_t)tag,
                                    .data = data,
                                    .size = (size_t)bytes,
                                    .outgoing = outgoing};
    if (outgoing)
        atomic_fetch_add(&comm->bytes_sent, bytes);
    int64_t deadline_ns = tutti__comm_deadline(comm, &full);
    name = tutti__comm_label(name, full.label);
    if (full.request)
        return tutti__worker_message(comm, &message, name, deadline_ns, full.request);
    if (outgoing)
        tutti__fabric_send(comm->fabric, &message);
    else
        tutti__fabric_recv(comm->fabric, &message);
    return tutti__comm_await(comm, &message, name, deadline_ns);
}

tutti_status tutti_comm_send(tutti_comm *comm, int to, int tag, const void *data, int64_t bytes,
                             const tutti_comm_call *call)
{
    TUTTI_REQUIRE(comm);
    return transfer(comm, to, tag, (void *)(uintptr_t)data, bytes, true, call);
}

tutti_status tutti_comm_recv(tutti_comm *comm, int from, int tag, void *data, int64_t bytes,
                             const tutti_comm_call *call)
{
    TUTTI_REQUIRE(comm);
    return transfer(comm, from, tag, data, bytes, false, call);
}
