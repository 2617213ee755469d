/* named.c: tensors by name, as bytes: what GET gives and PUT takes. */
#include <stdio.h>

#include "service/store/rule.h"
#include "tensor/dtype.h"

void tutti__store_named_put(tutti_text *out, const char *name, const tutti_tensor *tensor)
{
    const tutti_type type = {.dtype = tutti_tensor_dtype(tensor),
                             .rank = tutti_tensor_rank(tensor)};
    saved_put_bytes(out, name, strlen(name));
    saved_put(out, type.dtype);
    saved_put(out, (uint64_t)type.rank);
    for (int i = 0; i < type.rank; i++)
        saved_put(out, (uint64_t)tutti_tensor_dims(tensor)[i]);
    saved_put_bytes(out, tutti_tensor_data(tensor),
                    (size_t)tutti_tensor_count(tensor) * tutti_dtype_size(type.dtype));
}

tutti_status tutti__store_named_get(saved_reader *in, char ret_name[TUTTI_STORE_NAME],
                                    tutti_tensor **ret_tensor)
{
    tutti_packed_data name = saved_get_bytes(in);
    uint64_t dtype = saved_get(in), rank = saved_get(in);
    tutti_type type = {.dtype = (tutti_dtype)dtype};
    bool good = !in->bad && name.size < TUTTI_STORE_NAME && rank <= TUTTI_MAX_RANK && dtype > 0 &&
                dtype <= 64 && dtype != TUTTI_STRING && tutti_dtype_size((tutti_dtype)dtype) > 0;
    for (uint64_t i = 0; good && i < rank; i++) {
        type.dims[type.rank++] = (int64_t)saved_get(in);
        good = type.dims[i] >= 0;
    }
    tutti_packed_data data = saved_get_bytes(in);
    int64_t bytes, count = good && !in->bad ? tutti_type_count(&type) : -1;
    if (count < 0 || !tutti__mul_size(count, (int64_t)tutti_dtype_size(type.dtype), &bytes) ||
        (size_t)bytes != data.size)
        return tutti_fail(TUTTI_CORRUPT, "these bytes are no tensor with a name");
    memcpy(ret_name, name.bytes, name.size);
    ret_name[name.size] = 0;
    return tutti_tensor_from(type.dtype, type.rank, type.dims, data.bytes, ret_tensor);
}
