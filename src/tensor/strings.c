/* strings.c: elements of string tensors. Their bytes belong to the tensor's buffer (buffer.h). */
#include "base/container.h"
#include "base/given.h"
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
    TUTTI_GIVEN(tensor);
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
