/* tensor_list.c: see tensor_list.h. Each is its type, rank, dimensions and elements. */
#include "service/coordinator/tensor_list.h"

tutti_status tutti__tensor_list_add(tutti_text *list, tutti_tensor *tensor)
{
    const tutti_type *type = tutti_tensor_type(tensor);
    tutti_tensor *flat = NULL;
    if (tutti_dtype_size(type->dtype) == 0 || type->dtype == TUTTI_STRING)
        return tutti_fail(TUTTI_UNSUPPORTED, "tensors of %s cannot travel with a closure",
                          tutti_dtype_name(type->dtype));
    TUTTI_TRY(tutti_tensor_contiguous(tensor, &flat));
    saved_put(list, type->dtype);
    saved_put(list, (uint64_t)type->rank);
    for (int d = 0; d < type->rank; d++)
        saved_put(list, (uint64_t)type->dims[d]);
    saved_put_bytes(list, tutti_tensor_data(flat),
                    (size_t)tutti_tensor_count(flat) * tutti_dtype_size(type->dtype));
    tutti_tensor_release(flat);
    return list->failed ? tutti_fail(TUTTI_NO_MEMORY, "no memory for the tensors of a closure")
                        : TUTTI_OK;
}

static tutti_status read_one(saved_reader *in, tutti_tensor **ret)
{
    tutti_type type = {.dtype = (tutti_dtype)saved_get(in)};
    uint64_t rank = saved_get(in);
    size_t each = tutti_dtype_size(type.dtype);
    int64_t count = 1;
    bool good = rank <= TUTTI_MAX_RANK && each > 0 && type.dtype != TUTTI_STRING;
    for (uint64_t d = 0; good && d < rank; d++) {
        type.dims[d] = (int64_t)saved_get(in);
        good = type.dims[d] >= 0 && tutti__mul_size(count, type.dims[d], &count);
    }
    tutti_packed_data data = saved_get_bytes(in);
    if (!good || in->bad || (uint64_t)count != data.size / each || data.size % each != 0)
        return tutti_fail(TUTTI_CORRUPT, "these bytes are no tensors of a closure");
    return tutti_tensor_from(type.dtype, (int)rank, type.dims, data.bytes, ret);
}

tutti_status tutti__tensor_list_read(const void *data, size_t size, int *ret_count,
                                     tutti_tensor *ret_tensors[TUTTI_CLOSURE_TENSORS])
{
    saved_reader in = {data, (const uint8_t *)data + size, false};
    tutti_status status = TUTTI_OK;
    int count = 0;
    while (status == TUTTI_OK && in.at < in.end) {
        status = count < TUTTI_CLOSURE_TENSORS
                     ? read_one(&in, &ret_tensors[count])
                     : tutti_fail(TUTTI_TOO_LARGE, "a closure has more than %d tensors",
                                  TUTTI_CLOSURE_TENSORS);
        count += status == TUTTI_OK;
    }
    for (int i = 0; status != TUTTI_OK && i < count; i++)
        tutti_tensor_release(ret_tensors[i]);
    if (status == TUTTI_OK)
        *ret_count = count;
    return status;
}
