/* strings.c: elements of string tensors. Their bytes belong to the tensor's buffer (buffer.h). */
#include "base/container.h"
#include "base/require.h"
#include "tensor/tensor.h"

#include <inttypes.h>
#include <string.h>

/* index must be inside. */
static tutti_string *element_at(const tutti_tensor *tensor, int64_t index)
{
    int64_t offset = 0;
    for (int i = tensor->type.rank - 1; i >= 0; i--) {
        offset += index % tensor->type.dims[i] * tensor->strides[i];
        index /= tensor->type.dims[i];
    }
    return (tutti_string *)tutti_tensor_data(tensor) + offset;
}

tutti_string tutti_tensor_get_string(const tutti_tensor *tensor, int64_t index)
{
    if (tensor == NULL || tensor->type.dtype != TUTTI_STRING || index < 0 || index >= tensor->count)
        return (tutti_string){.data = "", .size = 0};
    tutti_string element = *element_at(tensor, index);
    return element.data != NULL ? element : (tutti_string){.data = "", .size = 0};
}

tutti_status tutti_tensor_set_string(tutti_tensor *tensor, int64_t index, const char *data,
                                     int64_t size)
{
    TUTTI_REQUIRE(tensor);
    char text[TUTTI_TYPE_TEXT];
    if (tensor->type.dtype != TUTTI_STRING)
        return tutti_fail(TUTTI_INVALID, "set_string: tensor is %s, needs string elements",
                          tutti_type_text(&tensor->type, text));
    if (index < 0 || index >= tensor->count)
        return tutti_fail(TUTTI_OUT_OF_RANGE,
                          "set_string: index %" PRId64 " is not in %s, needs 0 to %" PRId64, index,
                          tutti_type_text(&tensor->type, text), tensor->count - 1);
    if (size < 0 || (data == NULL && size > 0))
        return tutti_fail(TUTTI_INVALID,
                          "set_string: element %" PRId64 " has size %" PRId64
                          " and data %s, needs a size of 0 or more and the bytes",
                          index, size, data == NULL ? "NULL" : "given");
    char *bytes = NULL;
    if (size > 0) {
        TUTTI_TRY(tutti__buffer_add_bytes(tensor->buffer, (size_t)size, &bytes));
        memcpy(bytes, data, (size_t)size);
    }
    *element_at(tensor, index) = (tutti_string){.data = bytes, .size = size};
    tutti__buffer_pack(tensor->buffer);
    return TUTTI_OK;
}

static tutti_status total_size(const tutti_tensor *tensor, int64_t *ret_total)
{
    int64_t total = 0;
    for (int64_t i = 0; i < tensor->count; i++) {
        const tutti_string *element = element_at(tensor, i);
        if (element->size < 0 || (element->data == NULL && element->size > 0))
            return tutti_fail(TUTTI_INVALID,
                              "string tensor: element %" PRId64 " has size %" PRId64
                              " and data %s, needs a size of 0 or more and the bytes",
                              i, element->size, element->data == NULL ? "NULL" : "given");
        if (!tutti__add_size(total, element->size, &total))
            return tutti_fail(TUTTI_TOO_LARGE, "string tensor: the sizes of its elements overflow "
                                               "64 bits");
    }
    *ret_total = total;
    return TUTTI_OK;
}

tutti_status tutti__tensor_own_strings(tutti_tensor *tensor)
{
    if (tensor->type.dtype != TUTTI_STRING || tensor->count == 0)
        return TUTTI_OK;
    int64_t total = 0;
    char *bytes = NULL;
    TUTTI_TRY(total_size(tensor, &total));
    TUTTI_TRY(tutti__buffer_add_bytes(tensor->buffer, (size_t)total, &bytes));
    for (int64_t i = 0; i < tensor->count; i++) {
        tutti_string *element = element_at(tensor, i);
        if (element->size == 0) {
            element->data = NULL;
            continue;
        }
        memcpy(bytes, element->data, (size_t)element->size);
        element->data = bytes;
        bytes += element->size;
    }
    tutti__buffer_pack(tensor->buffer);
    return TUTTI_OK;
}

tutti_status tutti__tensor_pack_strings(const tutti_tensor *strings, tutti_tensor **ret_bytes,
                                        tutti_tensor **ret_lengths)
{
    int64_t total = 0;
    tutti_tensor *bytes = NULL, *lengths;
    TUTTI_TRY(total_size(strings, &total));
    TUTTI_TRY(tutti_tensor_create(TUTTI_I64, strings->type.rank, strings->type.dims, &lengths));
    tutti_status status = tutti_tensor_create(TUTTI_U8, 1, &total, &bytes);
    if (status != TUTTI_OK) {
        tutti_tensor_release(lengths);
        return status;
    }
    char *to = tutti_tensor_data(bytes);
    int64_t *length = tutti_tensor_data(lengths);
    for (int64_t i = 0; i < strings->count; i++) {
        const tutti_string *element = element_at(strings, i);
        if (element->size > 0)
            memcpy(to, element->data, (size_t)element->size);
        to += element->size;
        length[i] = element->size;
    }
    *ret_bytes = bytes;
    *ret_lengths = lengths;
    return TUTTI_OK;
}

/* Elements that point into the bytes, which must be used up. */
static tutti_status lay_over(const tutti_tensor *bytes, const tutti_tensor *lengths,
                             tutti_string *elements)
{
    char *from = tutti_tensor_data(bytes);
    int64_t left = bytes->count;
    for (int64_t i = 0; i < lengths->count; i++) {
        int64_t length = tutti_tensor_get_int(lengths, i);
        if (length < 0 || length > left)
            return tutti_fail(TUTTI_CORRUPT,
                              "string %" PRId64 " has the length %" PRId64 ", of %" PRId64
                              " bytes that are left",
                              i, length, left);
        elements[i] = (tutti_string){.data = length > 0 ? from : NULL, .size = length};
        from += length;
        left -= length;
    }
    if (left > 0)
        return tutti_fail(TUTTI_CORRUPT, "%" PRId64 " bytes belong to none of its strings", left);
    return TUTTI_OK;
}

tutti_status tutti__tensor_unpack_strings(const tutti_tensor *bytes, const tutti_tensor *lengths,
                                          tutti_tensor **ret_strings)
{
    char text[TUTTI_TYPE_TEXT], other[TUTTI_TYPE_TEXT];
    tutti_tensor *strings;
    if (bytes->type.dtype != TUTTI_U8 || bytes->type.rank != 1 || !bytes->contiguous ||
        lengths->type.dtype != TUTTI_I64)
        return tutti_fail(TUTTI_CORRUPT, "strings are %s and lengths of %s, needs u8[n] and i64",
                          tutti_type_text(&bytes->type, text),
                          tutti_type_text(&lengths->type, other));
    TUTTI_TRY(tutti_tensor_create(TUTTI_STRING, lengths->type.rank, lengths->type.dims, &strings));
    tutti_status status = lay_over(bytes, lengths, tutti_tensor_data(strings));
    if (status == TUTTI_OK)
        status = tutti__tensor_own_strings(strings);
    if (status == TUTTI_OK)
        *ret_strings = strings;
    else
        tutti_tensor_release(strings);
    return status;
}
