/* element_bytes.c: elements as bytes in a cache's file. */
#include <string.h>

#include "data/transform/cache.h"
#include "io/stream.h"

static void element_bytes_put(tutti_text *text, uint64_t value, size_t size)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    tutti__text_bytes(text, bytes, size);
}

static void encode_values(const tutti_tensor *tensor, tutti_text *text)
{
    int64_t count = tutti_tensor_count(tensor);
    if (tutti_tensor_dtype(tensor) != TUTTI_STRING) {
        tutti__text_bytes(text, tutti_tensor_data(tensor),
                          (size_t)count * tutti_dtype_size(tutti_tensor_dtype(tensor)));
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        tutti_string string = tutti_tensor_get_string(tensor, i);
        element_bytes_put(text, (uint64_t)string.size, 8);
        tutti__text_bytes(text, string.data, (size_t)string.size);
    }
}

tutti_status tutti__element_encode(const tutti_element *element, tutti_text *text)
{
    element_bytes_put(text, (uint64_t)element->count, 4);
    for (int c = 0; c < element->count; c++) {
        tutti_tensor *tensor;
        TUTTI_TRY(tutti_tensor_contiguous(element->tensors[c], &tensor));
        element_bytes_put(text, (uint64_t)tutti_tensor_dtype(tensor), 4);
        element_bytes_put(text, (uint64_t)tutti_tensor_rank(tensor), 4);
        for (int i = 0; i < tutti_tensor_rank(tensor); i++)
            element_bytes_put(text, (uint64_t)tutti_tensor_dims(tensor)[i], 8);
        encode_values(tensor, text);
        tutti_tensor_release(tensor);
    }
    return text->failed ? tutti_fail(TUTTI_NO_MEMORY, "cache: no memory for an element's bytes")
                        : TUTTI_OK;
}

typedef struct reader {
    const uint8_t *data;
    size_t size, at;
} reader;

static bool element_bytes_take(reader *r, size_t size, uint64_t *ret)
{
    if (r->size - r->at < size)
        return false;
    *ret = size == 4 ? tutti__get_u32(r->data + r->at) : tutti__get_u64(r->data + r->at);
    r->at += size;
    return true;
}

/* A type whose values could stand in what is left. */
static bool take_type(reader *r, tutti_type *ret)
{
    uint64_t dtype, rank, dim;
    int64_t count, bytes;
    if (!element_bytes_take(r, 4, &dtype) || !element_bytes_take(r, 4, &rank) || dtype == 0 ||
        dtype >= TUTTI_DTYPE_END || rank > TUTTI_MAX_RANK)
        return false;
    *ret = (tutti_type){.dtype = (tutti_dtype)dtype, .rank = (int32_t)rank};
    for (uint64_t i = 0; i < rank; i++) {
        if (!element_bytes_take(r, 8, &dim) || dim > INT64_MAX)
            return false;
        ret->dims[i] = (int64_t)dim;
    }
    count = tutti_type_count(ret);
    int64_t least = ret->dtype == TUTTI_STRING ? 8 : (int64_t)tutti_dtype_size(ret->dtype);
    return count >= 0 && tutti__mul_size(count, least, &bytes) &&
           (uint64_t)bytes <= r->size - r->at;
}

/* *ret_good false: the bytes are no values. */
static tutti_status take_values(reader *r, tutti_tensor *tensor, bool *ret_good)
{
    int64_t count = tutti_tensor_count(tensor);
    *ret_good = true;
    if (tutti_tensor_dtype(tensor) != TUTTI_STRING) {
        size_t bytes = (size_t)count * tutti_dtype_size(tutti_tensor_dtype(tensor));
        if (bytes > 0)
            memcpy(tutti_tensor_data(tensor), r->data + r->at, bytes);
        r->at += bytes;
        return TUTTI_OK;
    }
    for (int64_t i = 0; i < count; i++) {
        uint64_t size;
        if (!element_bytes_take(r, 8, &size) || size > r->size - r->at) {
            *ret_good = false;
            return TUTTI_OK;
        }
        TUTTI_TRY(tutti_tensor_set_string(tensor, i, (const char *)r->data + r->at, (int64_t)size));
        r->at += size;
    }
    return TUTTI_OK;
}

static tutti_status element_bytes_refuse(const char *name, tutti_element *made)
{
    tutti_element_release(made);
    return tutti_fail(TUTTI_CORRUPT, "%s: an element's bytes make no sense; remove the file", name);
}

tutti_status tutti__element_decode(const char *name, const void *data, size_t size,
                                   tutti_element *ret)
{
    reader r = {data, size, 0};
    tutti_element made = {0};
    uint64_t components;
    if (!element_bytes_take(&r, 4, &components) || components == 0 ||
        components > TUTTI_MAX_COMPONENTS)
        return element_bytes_refuse(name, &made);
    for (uint64_t c = 0; c < components; c++) {
        tutti_type type;
        bool good;
        if (!take_type(&r, &type))
            return element_bytes_refuse(name, &made);
        tutti_status status =
            tutti_tensor_create(type.dtype, type.rank, type.dims, &made.tensors[made.count]);
        if (status == TUTTI_OK)
            status = take_values(&r, made.tensors[made.count++], &good);
        if (status != TUTTI_OK) {
            tutti_element_release(&made);
            return status;
        }
        if (!good)
            return element_bytes_refuse(name, &made);
    }
    if (r.at != r.size)
        return element_bytes_refuse(name, &made);
    *ret = made;
    return TUTTI_OK;
}
