/* transfers.c: values between devices of different processes. A value is two messages: what it is,
 * and its bytes. */
#include <string.h>

#include "parallel/collectives/axis_groups.h"

/* Tags of the job's processes: those below are traces' and groups' (trace.c, comm.h). */
enum { FIRST_TAG = 1 << 21, TAGS = 1 << 28 };

typedef struct announcement {
    uint64_t channel;
    int64_t dtype, rank, dims[TUTTI_MAX_RANK];
} announcement;

int tutti__axis_groups_process(const tutti_axis_groups *groups, const char *device)
{
    tutti_device_name name, *devices = groups && groups->mesh ? groups->mesh->devices : NULL;
    if (!devices || !device[0] || tutti_device_parse(device, &name) != TUTTI_OK ||
        (!name.job[0] && name.task < 0))
        return groups ? groups->process : 0;
    for (int i = 0; i < groups->mesh->device_count; i++)
        if ((!name.job[0] || !devices[i].job[0] || strcmp(devices[i].job, name.job) == 0) &&
            (name.task < 0 || devices[i].task == name.task))
            return groups->devices[i].process;
    return groups->process;
}

static int tag_of(uint64_t channel)
{
    return FIRST_TAG + (int)(channel % TAGS);
}

tutti_status tutti__axis_groups_send(tutti_axis_groups *groups, int to, const char *channel,
                                     tutti_tensor *value, double timeout)
{
    const tutti_type *type = tutti_tensor_type(value);
    uint64_t number = tutti__hash_string(1, channel);
    tutti_comm_call call = {.struct_size = sizeof call, .timeout = timeout, .label = channel};
    announcement what = {.channel = number, .dtype = type->dtype, .rank = type->rank};
    if (type->dtype == TUTTI_STRING)
        return tutti_fail(TUTTI_UNSUPPORTED, "strings do not travel between processes");
    for (int i = 0; i < type->rank; i++)
        what.dims[i] = type->dims[i];
    TUTTI_TRY(tutti_comm_send(groups->world, to, tag_of(number), &what, sizeof what, &call));
    int64_t bytes = tutti_tensor_count(value) * (int64_t)tutti_dtype_size(type->dtype);
    return bytes > 0 ? tutti_comm_send(groups->world, to, tag_of(number), tutti_tensor_data(value),
                                       bytes, &call)
                     : TUTTI_OK;
}

tutti_status tutti__axis_groups_recv(tutti_axis_groups *groups, int from, const char *channel,
                                     double timeout, tutti_tensor **ret)
{
    uint64_t number = tutti__hash_string(1, channel);
    tutti_comm_call call = {.struct_size = sizeof call, .timeout = timeout, .label = channel};
    announcement what;
    tutti_tensor *value;
    TUTTI_TRY(tutti_comm_recv(groups->world, from, tag_of(number), &what, sizeof what, &call));
    if (what.channel != number || what.dtype == TUTTI_STRING)
        return tutti_fail(TUTTI_INVALID,
                          "what came from rank %d is not of channel '%s'; give that another name",
                          from, channel);
    tutti_type type = tutti_type_make((tutti_dtype)what.dtype, (int)what.rank, what.dims);
    TUTTI_TRY(tutti_tensor_create(type.dtype, type.rank, type.dims, &value));
    int64_t bytes = tutti_tensor_count(value) * (int64_t)tutti_dtype_size(type.dtype);
    tutti_status status = bytes > 0 ? tutti_comm_recv(groups->world, from, tag_of(number),
                                                      tutti_tensor_data(value), bytes, &call)
                                    : TUTTI_OK;
    if (status == TUTTI_OK)
        *ret = value;
    else
        tutti_tensor_release(value);
    return status;
}
