/* bucket.c: values that travel together as one message; see axis_group.h. */
#include <string.h>

#include "base/recycle.h"
#include "exec/kernels/axis_group.h"

static size_t value_bytes(const tutti_view *view)
{
    return (size_t)tutti_view_count(view) * tutti_dtype_size(view->dtype);
}

size_t tutti__bucket_bytes(const tutti_view *value)
{
    return (value_bytes(value) + 63) / 64 * 64;
}

tutti_status tutti__bucket_open(int count, const tutti_view *inputs, const tutti_view *outputs,
                                tutti_bucket *ret)
{
    tutti_bucket b = {.count = count, .outputs = outputs};
    for (int i = 0; i < count; i++) {
        if (value_bytes(&outputs[i]) == 0)
            continue;
        if (b.bytes == 0)
            b.memory = outputs[i].data;
        b.staged = b.staged || (char *)outputs[i].data != b.memory + b.bytes;
        b.bytes += tutti__bucket_bytes(&outputs[i]);
    }
    if (b.staged && !(b.memory = tutti__recycle_zeros(1, b.bytes)))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a collective");
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        size_t bytes = value_bytes(&inputs[i]);
        if (bytes && inputs[i].data != b.memory + at)
            memcpy(b.memory + at, inputs[i].data, bytes);
        at += tutti__bucket_bytes(&inputs[i]);
    }
    *ret = b;
    return TUTTI_OK;
}

void tutti__bucket_close(tutti_bucket *b)
{
    size_t at = 0;
    for (int i = 0; b->staged && i < b->count; i++) {
        size_t bytes = value_bytes(&b->outputs[i]);
        if (bytes)
            memcpy(b->outputs[i].data, b->memory + at, bytes);
        at += tutti__bucket_bytes(&b->outputs[i]);
    }
    if (b->staged)
        tutti__recycle_free(b->memory);
}
