/* collective.c: see collective.h. */
#include "exec/kernels/collective.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/run/rendezvous.h"
#include "ops/comm/comm.h"

/* The device's rank along `axis`, and the place of the first of the group that it meets. */
static tutti_status find_rank(const tutti_kernel_call *call, const char *axis, int *ret_rank,
                              int *ret_size, int *ret_group)
{
    const tutti_context *context = call->context;
    const tutti_mesh *mesh = context->run->mesh;
    if (!mesh || !tutti__mesh_axes_rank(mesh, 0, axis, ret_rank, ret_size, ret_group))
        return tutti_fail(TUTTI_INVALID,
                          "%s '%s': the session's mesh has no axis '%s'; name it in "
                          "tutti_session_open(.mesh = \"%s=%lld\", .mesh_devices = …)",
                          call->op->name, call->name, axis, axis,
                          (long long)tutti__call_int(call, "size"));
    int place = tutti__mesh_find(mesh, context->device->name);
    if (place < 0)
        return tutti_fail(TUTTI_INVALID, "%s '%s' runs on %s, which is not in the session's mesh",
                          call->op->name, call->name, context->device->name);
    (void)tutti__mesh_axes_rank(mesh, place, axis, ret_rank, ret_size, ret_group);
    return TUTTI_OK;
}

tutti_status tutti__meet(const tutti_kernel_call *call, tutti_meeting *ret)
{
    const char *axis = tutti_attr_string(call->attrs, call->attr_count, "axis");
    const char *channel = tutti_attr_string(call->attrs, call->attr_count, "channel");
    int64_t expected = tutti__call_int(call, "size");
    tutti_meeting meeting = {.rank = 0, .size = 1};
    int group = 0;
    if (expected != 1)
        TUTTI_TRY(find_rank(call, axis, &meeting.rank, &meeting.size, &group));
    if (meeting.size != expected)
        return tutti_fail(TUTTI_INVALID,
                          "%s '%s' was built for %lld devices along axis '%s', the mesh has %d",
                          call->op->name, call->name, (long long)expected, axis, meeting.size);
    char key[320];
    snprintf(key, sizeof key, "%s:%s@%s.%d", call->op->name, channel, axis, group);
    meeting.all = calloc((size_t)meeting.size, sizeof *meeting.all);
    tutti_tensor *mine;
    tutti_status status = meeting.all ? tutti__copy_input(call, 0, &mine)
                                      : tutti_fail(TUTTI_NO_MEMORY, "no memory for a collective");
    if (status == TUTTI_OK) {
        if (meeting.size == 1)
            meeting.all[0] = tutti_tensor_retain(mine);
        else
            status = tutti__rendezvous_meet(tutti__context(call)->run, key, meeting.rank,
                                            meeting.size, call, mine, meeting.all);
        tutti_tensor_release(mine);
    }
    if (status != TUTTI_OK)
        tutti__meeting_end(&meeting);
    else
        *ret = meeting;
    return status;
}

void tutti__meeting_end(tutti_meeting *meeting)
{
    for (int i = 0; meeting->all && i < meeting->size; i++)
        tutti_tensor_release(meeting->all[i]);
    free(meeting->all);
    meeting->all = NULL;
}

static double combine(tutti_reduction how, double a, double b)
{
    switch (how) {
    case TUTTI_MIN:
        return a < b || a != a ? a : b;
    case TUTTI_MAX:
        return a > b || a != a ? a : b;
    case TUTTI_PROD:
        return a * b;
    default:
        return a + b;
    }
}

static void combine_into(tutti_reduction how, tutti_tensor *into, const tutti_tensor *from)
{
    int64_t count = tutti_tensor_count(into);
    if (tutti_tensor_dtype(into) == TUTTI_F32 && (how == TUTTI_SUM || how == TUTTI_MEAN)) {
        float *a = tutti_tensor_data(into);
        const float *b = tutti_tensor_data(from);
        for (int64_t i = 0; i < count; i++)
            a[i] += b[i];
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        if (tutti_dtype_is_float(tutti_tensor_dtype(into))) {
            tutti_tensor_set(into, i,
                             combine(how, tutti_tensor_get(into, i), tutti_tensor_get(from, i)));
            continue;
        }
        int64_t a = tutti_tensor_get_int(into, i), b = tutti_tensor_get_int(from, i);
        int64_t sum = (int64_t)((uint64_t)a + (uint64_t)b),
                product = (int64_t)((uint64_t)a * (uint64_t)b);
        tutti_tensor_set_int(into, i,
                             how == TUTTI_MIN    ? (a < b ? a : b)
                             : how == TUTTI_MAX  ? (a > b ? a : b)
                             : how == TUTTI_PROD ? product
                                                 : sum);
    }
}

static tutti_status unlike(const tutti_kernel_call *call, const tutti_type *first,
                           const tutti_type *other, int rank)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    return tutti_fail(TUTTI_INVALID, "%s '%s': rank 0 brings %s and rank %d %s", call->op->name,
                      call->name, tutti_type_text(first, a), rank, tutti_type_text(other, b));
}

tutti_status tutti__meeting_reduce(const tutti_kernel_call *call, const tutti_meeting *meeting,
                                   tutti_tensor **ret)
{
    tutti_reduction how = tutti__reduction_of(call->attrs, call->attr_count);
    tutti_tensor **partial = calloc((size_t)meeting->size, sizeof *partial);
    tutti_status status =
        partial ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a collective");
    for (int i = 0; status == TUTTI_OK && i < meeting->size; i++) {
        const tutti_type *type = tutti_tensor_type(meeting->all[i]);
        if (!tutti_type_equal(type, tutti_tensor_type(meeting->all[0])))
            status = unlike(call, tutti_tensor_type(meeting->all[0]), type, i);
        else
            status = tutti_tensor_from(type->dtype, type->rank, type->dims,
                                       tutti_tensor_data(meeting->all[i]), &partial[i]);
    }
    /* Neighbours first, then pairs of pairs: one tree whatever the order of arrival. */
    for (int stride = 1; status == TUTTI_OK && stride < meeting->size; stride *= 2)
        for (int i = 0; i + stride < meeting->size; i += 2 * stride)
            combine_into(how, partial[i], partial[i + stride]);
    for (int64_t i = 0;
         status == TUTTI_OK && how == TUTTI_MEAN && i < tutti_tensor_count(partial[0]); i++)
        tutti_tensor_set(partial[0], i, tutti_tensor_get(partial[0], i) / meeting->size);
    if (status == TUTTI_OK)
        *ret = tutti_tensor_retain(partial[0]);
    for (int i = 0; partial && i < meeting->size; i++)
        tutti_tensor_release(partial[i]);
    free(partial);
    return status;
}

tutti_status tutti__copy_piece(tutti_tensor *value, int axis, int64_t start, int64_t size,
                               tutti_tensor *into, int into_axis, int64_t into_start)
{
    tutti_tensor *from, *to;
    TUTTI_TRY(tutti_tensor_slice(value, axis, start, size, 1, &from));
    tutti_status status =
        tutti_tensor_slice(into, into_axis, into_start, tutti_tensor_dims(from)[into_axis], 1, &to);
    if (status == TUTTI_OK) {
        status = tutti_tensor_copy(to, from);
        tutti_tensor_release(to);
    }
    tutti_tensor_release(from);
    return status;
}

int tutti__dim_attr(const tutti_kernel_call *call, const char *name, int rank)
{
    int64_t dim = tutti__call_int(call, name);
    return (int)(dim < 0 ? dim + rank : dim);
}

tutti_status tutti__borrow_output(const tutti_kernel_call *call, tutti_tensor **ret)
{
    const tutti_view *view = &call->outputs[0];
    return tutti_tensor_wrap(view->dtype, view->rank, view->dims, view->data, NULL, NULL, ret);
}
