/* idx_write.c: a tensor as IDX bytes. */
#include "io/idx.h"

/* Types as IDX numbers them; 0 where it has none. */
static uint8_t type_code(tutti_dtype dtype)
{
    switch (dtype) {
    case TUTTI_U8:
        return 0x08;
    case TUTTI_I8:
        return 0x09;
    case TUTTI_I32:
        return 0x0c;
    case TUTTI_F32:
        return 0x0d;
    case TUTTI_F64:
        return 0x0e;
    default:
        return 0;
    }
}

static void put_big_endian(tutti_text *text, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    for (size_t i = size; i-- > 0;)
        tutti__text_bytes(text, &bytes[i], 1);
}

tutti_status tutti__idx_write(const char *name, tutti_tensor *tensor, tutti_text *ret)
{
    const tutti_type *type = tutti_tensor_type(tensor);
    uint8_t head[4] = {0, 0, type_code(type->dtype), (uint8_t)type->rank};
    size_t size = tutti_dtype_size(type->dtype);
    tutti_tensor *whole;
    if (head[2] == 0)
        return tutti_fail(TUTTI_UNSUPPORTED, "%s: IDX holds u8, i8, i32, f32 and f64, not %s", name,
                          tutti_dtype_name(type->dtype));
    TUTTI_TRY(tutti_tensor_contiguous(tensor, &whole));
    tutti__text_bytes(ret, head, 4);
    for (int i = 0; i < type->rank; i++) {
        uint32_t dim = (uint32_t)type->dims[i];
        put_big_endian(ret, &dim, 4);
    }
    const char *data = tutti_tensor_data(whole);
    int64_t count = tutti_tensor_count(whole);
    if (size == 1)
        tutti__text_bytes(ret, data, (size_t)count);
    for (int64_t i = 0; size > 1 && i < count; i++)
        put_big_endian(ret, data + (size_t)i * size, size);
    tutti_tensor_release(whole);
    return ret->failed ? tutti_fail(TUTTI_NO_MEMORY, "no memory to write %s", name) : TUTTI_OK;
}
