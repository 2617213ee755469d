/* axis_group.c: see axis_group.h. */
#include "exec/kernels/axis_group.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/world.h"
#include "ops/comm/comm.h"
#include "parallel/collectives/account.h"
#include "parallel/spmd/spmd.h"

tutti_axis_group *tutti__call_axis_group(const tutti_kernel_call *call)
{
    const tutti_context *context = call->context;
    tutti_axis_group *axis_group = context->run->axis_group;
    const char *axis = tutti_attr_string(call->attrs, call->attr_count, "axis");
    const tutti_mesh *mesh = context->run->mesh;
    bool all = strcmp(axis, TUTTI_BATCH_AXIS) == 0 ||
               (axis_group && mesh && axis_group->size == mesh->device_count &&
                tutti__mesh_axes_span(mesh, axis));
    return all ? axis_group : NULL;
}

tutti_status tutti__axis_group_begin(const tutti_kernel_call *call, tutti_axis_group_meeting *ret)
{
    const tutti_context *context = call->context;
    tutti_axis_group *axis_group = tutti__call_axis_group(call);
    *ret = (tutti_axis_group_meeting){.axis_group = axis_group, .start = tutti__now_ns()};
    if (!axis_group)
        return tutti_fail(TUTTI_INVALID, "%s '%s' meets replicas, but the session has no strategy",
                          call->op->name, call->name);
    ret->local = tutti__axis_group_find(axis_group, context->device->name);
    if (ret->local < 0)
        return tutti_fail(TUTTI_INVALID, "%s '%s' runs on %s, which is no device of the strategy",
                          call->op->name, call->name, context->device->name);
    double left = 1e-9 * (double)(call->deadline - ret->start);
    ret->call = (tutti_axis_group_call){.name = call->name, .timeout = left > 1e-3 ? left : 1e-3};
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
