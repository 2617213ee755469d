/* tensor.c: making tensors and asking them what they are. */
#include "tensor/tensor.h"

#include "base/recycle.h"
#include "base/require.h"
#include "base/status.h"
#include "tensor/pending.h"
#include "tensor/type.h"

#include <stdlib.h>
#include <string.h>

static bool is_contiguous(const tutti_type *type, const int64_t *strides)
{
    int64_t expected = 1;
    for (int i = type->rank - 1; i >= 0; i--) {
        if (type->dims[i] == 1)
            continue;
        if (strides[i] != expected)
            return false;
        expected *= type->dims[i];
    }
    return true;
}

/* Takes no reference of the buffer: the caller gives it one. */
static tutti_status make_tensor(const tutti_type *type, const int64_t *strides, size_t offset,
                                tutti_buffer *buffer, tutti_tensor **ret)
{
    tutti_tensor *tensor = tutti__recycle_take(sizeof *tensor);
    if (tensor == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "tensor: no memory for its header");
    *tensor = (tutti_tensor){
        .type = *type, .count = tutti_type_count(type), .offset = offset, .buffer = buffer};
    atomic_init(&tensor->references, 1);
    if (strides == NULL)
        tutti__row_major(type->rank, type->dims, tensor->strides);
    else
        for (int i = 0; i < type->rank; i++)
            tensor->strides[i] = strides[i];
    tensor->contiguous =
        strides == NULL || tensor->count == 0 || is_contiguous(type, tensor->strides);
    *ret = tensor;
    return TUTTI_OK;
}

/* As make_tensor with a new buffer, which goes again on failure. */
static tutti_status tensor_of_buffer(const tutti_type *type, tutti_buffer *buffer,
                                     tutti_tensor **ret)
{
    tutti_status status = make_tensor(type, NULL, 0, buffer, ret);
    if (status != TUTTI_OK)
        tutti__buffer_release(buffer);
    return status;
}

tutti_status tutti__tensor_in(const tutti_memory *memory, const tutti_type *type,
                              tutti_tensor **ret)
{
    tutti_type checked;
    int64_t bytes = 0;
    tutti_buffer *buffer = NULL;
    char text[TUTTI_TYPE_TEXT];
    TUTTI_TRY(tutti__type_check(type->dtype, type->rank, type->dims, &checked));
    TUTTI_TRY(tutti__type_bytes(&checked, &bytes));
    if (checked.dtype == TUTTI_STRING && !memory->host_visible)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "tensor %s: strings cannot live in memory '%s'; keep them on the host",
                          tutti_type_text(type, text), memory->name);
    tutti_status status = tutti__buffer_create(memory, (size_t)bytes, &buffer);
    if (status != TUTTI_OK) {
        tutti__error_prefix(status, "tensor %s", tutti_type_text(type, text));
        return status;
    }
    if (checked.dtype == TUTTI_STRING) {
        buffer->strings = true;
        memset(buffer->data, 0, (size_t)bytes);
    }
    return tensor_of_buffer(&checked, buffer, ret);
}

tutti_status tutti__tensor_over(tutti_buffer *buffer, const tutti_type *type, size_t byte_offset,
                                tutti_tensor **ret)
{
    tutti_type checked;
    int64_t bytes = 0;
    char text[TUTTI_TYPE_TEXT];
    TUTTI_TRY(tutti__type_check(type->dtype, type->rank, type->dims, &checked));
    TUTTI_TRY(tutti__type_bytes(&checked, &bytes));
    if (byte_offset > buffer->size || (size_t)bytes > buffer->size - byte_offset)
        return tutti_fail(TUTTI_OUT_OF_RANGE,
                          "tensor %s at byte %zu ends beyond its buffer of %zu bytes",
                          tutti_type_text(type, text), byte_offset, buffer->size);
    TUTTI_TRY(make_tensor(&checked, NULL, byte_offset, buffer, ret));
    tutti__buffer_retain(buffer);
    return TUTTI_OK;
}

tutti_status tutti__tensor_strided(const tutti_tensor *tensor, const tutti_type *type,
                                   const int64_t *strides, size_t byte_offset, tutti_tensor **ret)
{
    TUTTI_TRY(make_tensor(type, strides, byte_offset, tensor->buffer, ret));
    tutti__buffer_retain(tensor->buffer);
    return TUTTI_OK;
}

tutti_status tutti_tensor_create(tutti_dtype dtype, int rank, const int64_t *dims,
                                 tutti_tensor **ret_tensor)
{
    TUTTI_REQUIRE(ret_tensor);
    tutti_type type;
    tutti_tensor *tensor = NULL;
    TUTTI_TRY(tutti__type_check(dtype, rank, dims, &type));
    TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), &type, &tensor));
    memset(tensor->buffer->data, 0, tensor->buffer->size);
    *ret_tensor = tensor;
    return TUTTI_OK;
}

tutti_status tutti_tensor_wrap(tutti_dtype dtype, int rank, const int64_t *dims, void *data,
                               void (*release)(void *context), void *context,
                               tutti_tensor **ret_tensor)
{
    TUTTI_REQUIRE(ret_tensor);
    tutti_type type;
    int64_t bytes = 0;
    tutti_buffer *buffer = NULL;
    char text[TUTTI_TYPE_TEXT];
    TUTTI_TRY(tutti__type_check(dtype, rank, dims, &type));
    TUTTI_TRY(tutti__type_bytes(&type, &bytes));
    if (data == NULL && bytes > 0)
        return tutti_fail(TUTTI_INVALID, "tensor %s: data is NULL, needs %lld bytes",
                          tutti_type_text(&type, text), (long long)bytes);
    TUTTI_TRY(tutti__buffer_wrap(tutti__host_memory(), data, (size_t)bytes, NULL, NULL, &buffer));
    buffer->strings = dtype == TUTTI_STRING;
    TUTTI_TRY(tensor_of_buffer(&type, buffer, ret_tensor));
    buffer->release = release; /* from here on nothing fails */
    buffer->context = context;
    return TUTTI_OK;
}

tutti_status tutti_tensor_from(tutti_dtype dtype, int rank, const int64_t *dims, const void *data,
                               tutti_tensor **ret_tensor)
{
    TUTTI_REQUIRE(ret_tensor);
    tutti_type type;
    tutti_tensor *tensor = NULL;
    char text[TUTTI_TYPE_TEXT];
    TUTTI_TRY(tutti__type_check(dtype, rank, dims, &type));
    if (data == NULL && tutti_type_count(&type) > 0)
        return tutti_fail(TUTTI_INVALID, "tensor %s: data is NULL; tutti_tensor_create makes zeros",
                          tutti_type_text(&type, text));
    TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), &type, &tensor));
    if (data != NULL)
        memcpy(tensor->buffer->data, data, tensor->buffer->size);
    tutti_status status = tutti__tensor_own_strings(tensor);
    if (status != TUTTI_OK) {
        tutti_tensor_release(tensor);
        return status;
    }
    *ret_tensor = tensor;
    return TUTTI_OK;
}

tutti_tensor *tutti_tensor_retain(tutti_tensor *tensor)
{
    if (tensor == NULL)
        return NULL;
    atomic_fetch_add_explicit(&tensor->references, 1, memory_order_relaxed);
    return tensor;
}

void tutti_tensor_release(tutti_tensor *tensor)
{
    if (tensor == NULL ||
        atomic_fetch_sub_explicit(&tensor->references, 1, memory_order_acq_rel) > 1)
        return;
    tutti__buffer_release(tensor->buffer);
    tutti__recycle_give(tensor, sizeof *tensor);
}

bool tutti__tensor_held(const tutti_tensor *tensor, int references)
{
    return atomic_load_explicit(&tensor->references, memory_order_acquire) == references &&
           tutti__buffer_unique(tensor->buffer);
}

bool tutti__tensor_unique(const tutti_tensor *tensor)
{
    return tutti__tensor_held(tensor, 1);
}

tutti_view tutti__tensor_view_of(const tutti_tensor *tensor)
{
    return (tutti_view){.data = tutti_tensor_data(tensor),
                        .dtype = tensor->type.dtype,
                        .rank = tensor->type.rank,
                        .dims = tensor->type.dims,
                        .strides = tensor->contiguous ? NULL : tensor->strides};
}

tutti_dtype tutti_tensor_dtype(const tutti_tensor *tensor)
{
    return tensor != NULL ? tensor->type.dtype : TUTTI_NO_DTYPE;
}

int tutti_tensor_rank(const tutti_tensor *tensor)
{
    return tensor != NULL ? tensor->type.rank : 0;
}

const int64_t *tutti_tensor_dims(const tutti_tensor *tensor)
{
    return tutti_tensor_type(tensor)->dims;
}

const int64_t *tutti_tensor_strides(const tutti_tensor *tensor)
{
    return tensor != NULL ? tensor->strides : tutti_tensor_type(tensor)->dims;
}

int64_t tutti_tensor_count(const tutti_tensor *tensor)
{
    return tensor != NULL ? tensor->count : 0;
}

void *tutti_tensor_data(const tutti_tensor *tensor)
{
    if (tensor == NULL)
        return NULL;
    if (tutti__tensor_is_pending(tensor))
        tutti__buffer_resolve(tensor->buffer);
    return tensor->buffer->data == NULL ? NULL : (char *)tensor->buffer->data + tensor->offset;
}

bool tutti_tensor_is_contiguous(const tutti_tensor *tensor)
{
    return tensor == NULL || tensor->contiguous;
}

const tutti_type *tutti_tensor_type(const tutti_tensor *tensor)
{
    static const tutti_type none;
    return tensor != NULL ? &tensor->type : &none;
}
