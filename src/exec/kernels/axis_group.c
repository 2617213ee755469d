/* axis_group.c: see axis_group.h. */
#include "exec/kernels/axis_group.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/world.h"
#include "ops/comm/comm.h"
#include "parallel/collectives/account.h"

tutti_status tutti__axis_group_begin(const tutti_kernel_call *call, tutti_axis_group_meeting *ret)
{
    const tutti_context *context = call->context;
    const char *axes = tutti_attr_string(call->attrs, call->attr_count, "axis");
    tutti_axis_group_meeting meeting = {.start = tutti__now_ns()};
    tutti_status status = tutti__axis_groups_find(context->run->groups, axes, context->device->name,
                                                  &meeting.axis_group, &meeting.local);
    if (status != TUTTI_OK)
        return tutti__error_prefix(status, "%s '%s'", call->op->name, call->name);
    double left = 1e-9 * (double)(call->deadline - meeting.start);
    meeting.call =
        (tutti_axis_group_call){.name = call->name, .timeout = left > 1e-3 ? left : 1e-3};
    meeting.rank = meeting.axis_group->ranks[meeting.local];
    meeting.size = meeting.axis_group->size;
    *ret = meeting;
    return TUTTI_OK;
}

tutti_status tutti__axis_group_done(const tutti_kernel_call *call,
                                    tutti_axis_group_meeting *meeting, tutti_status status,
                                    int64_t bytes)
{
    int64_t took = tutti__now_ns() - meeting->start;
    tutti__axis_group_account_add(meeting->axis_group, meeting->local, took);
    if (meeting->local == 0)
        atomic_fetch_add(&meeting->axis_group->bytes, bytes);
    return status == TUTTI_OK ? TUTTI_OK
                              : tutti__error_prefix(status, "%s '%s'", call->op->name, call->name);
}

static tutti_dtype wire_of(const tutti_kernel_call *call)
{
    const tutti_attr *wire = tutti_attr_find(call->attrs, call->attr_count, "wire");
    const char *name = wire ? tutti_attr_string(call->attrs, call->attr_count, "wire") : "";
    return strcmp(name, "bf16") == 0  ? TUTTI_BF16
           : strcmp(name, "f16") == 0 ? TUTTI_F16
                                      : TUTTI_F32;
}

static const char *compression_of(const tutti_kernel_call *call)
{
    const tutti_attr *wire = tutti_attr_find(call->attrs, call->attr_count, "wire");
    const char *name = wire ? tutti_attr_string(call->attrs, call->attr_count, "wire") : "";
    return strchr(name, ':') ? name : NULL;
}

/* The next of several names, each with a newline behind it; from malloc. */
static tutti_status next_name(const char **names, char **ret)
{
    size_t length = strcspn(*names, "\n");
    *ret = strndup(*names, length);
    *names += length + ((*names)[length] == '\n');
    return *ret ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a collective");
}

/* Value by value: each is compressed in its own shape. */
static tutti_status reduce_compressed(const tutti_kernel_call *call, tutti_bucket *m,
                                      tutti_axis_group_meeting *meeting, const char *compression)
{
    const tutti_context *context = call->context;
    const char *names = tutti_attr_string(call->attrs, call->attr_count, "names");
    size_t at = 0;
    for (int i = 0; i < call->output_count; i++) {
        const tutti_view *out = &call->outputs[i];
        tutti_type type = {.dtype = TUTTI_F32, .rank = out->rank};
        char *name;
        memcpy(type.dims, out->dims, (size_t)out->rank * sizeof *out->dims);
        TUTTI_TRY(next_name(&names, &name));
        tutti_status status = TUTTI_OK;
        if (tutti_view_count(out) > 0)
            status = tutti__axis_group_compressed(
                meeting->axis_group, meeting->local, context->run->state, name, compression, &type,
                (float *)(void *)(m->memory + at), &meeting->call);
        free(name);
        TUTTI_TRY(status);
        at += tutti__bucket_bytes(out);
    }
    return TUTTI_OK;
}

void tutti__turn_blocks(const void *from, void *to, size_t outer, size_t parts, size_t bytes,
                        bool back)
{
    const char *in = from;
    char *out = to;
    for (size_t o = 0; bytes > 0 && o < outer; o++)
        for (size_t p = 0; p < parts; p++) {
            size_t mixed = (o * parts + p) * bytes, apart = (p * outer + o) * bytes;
            memcpy(out + (back ? mixed : apart), in + (back ? apart : mixed), bytes);
        }
}

size_t tutti__blocks_of(const tutti_kernel_call *call, const char *name, const tutti_view *view,
                        int *ret_dim, size_t *ret_inner)
{
    int64_t given = tutti__call_int(call, name);
    int dim = (int)(given < 0 ? given + view->rank : given);
    size_t outer = 1, inner = tutti_dtype_size(view->dtype);
    for (int i = 0; i < view->rank; i++) {
        outer *= i < dim ? (size_t)view->dims[i] : 1;
        inner *= i > dim ? (size_t)view->dims[i] : 1;
    }
    *ret_dim = dim;
    *ret_inner = inner;
    return outer;
}

void tutti__call_copy(const tutti_kernel_call *call)
{
    const tutti_view *out = &call->outputs[0];
    size_t bytes = (size_t)tutti_view_count(out) * tutti_dtype_size(out->dtype);
    if (bytes > 0 && out->data != call->inputs[0].data)
        memcpy(out->data, call->inputs[0].data, bytes);
}

size_t tutti__blocks_workspace(const tutti_kernel_query *query)
{
    size_t bytes = 64;
    for (int i = 0; i < query->node.input_count; i++)
        bytes += (size_t)tutti_type_count(&query->node.inputs[i]) *
                 tutti_dtype_size(query->node.inputs[i].dtype);
    for (int i = 0; i < query->node.output_count; i++)
        bytes += (size_t)tutti_type_count(&query->node.outputs[i]) *
                 tutti_dtype_size(query->node.outputs[i].dtype);
    return bytes;
}

tutti_status tutti__call_reduce(const tutti_kernel_call *call)
{
    tutti_axis_group_meeting meeting;
    tutti_bucket m;
    if (tutti__call_int(call, "size") == 1)
        return call->op->reference(call);
    TUTTI_TRY(tutti__axis_group_begin(call, &meeting));
    TUTTI_TRY(tutti__bucket_open(call->output_count, call->inputs, call->outputs, &m));
    tutti_dtype dtype = call->inputs[0].dtype;
    int64_t count = (int64_t)(m.bytes / tutti_dtype_size(dtype));
    if (call->output_count == 1) /* nothing follows that would have to be aligned */
        count = tutti_view_count(&call->outputs[0]);
    tutti_comm_piece piece = {m.memory, count};
    meeting.call.wire = wire_of(call);
    const char *compression = compression_of(call);
    const tutti_attr *starts = tutti_attr_find(call->attrs, call->attr_count, "starts");
    tutti_status status = TUTTI_OK;
    if (compression)
        status = reduce_compressed(call, &m, &meeting, compression);
    else if (count > 0 && starts && starts->value.i && !m.staged)
        status = tutti__axis_group_start(
            meeting.axis_group, meeting.local,
            tutti_attr_string(call->attrs, call->attr_count, "channel"), &piece, dtype,
            tutti__reduction_of(call->attrs, call->attr_count), &meeting.call);
    else if (count > 0)
        status = tutti__axis_group_all_reduce(meeting.axis_group, meeting.local, 1, &piece, dtype,
                                              tutti__reduction_of(call->attrs, call->attr_count),
                                              &meeting.call);
    tutti__bucket_close(&m);
    return tutti__axis_group_done(call, &meeting, status, (int64_t)m.bytes);
}
