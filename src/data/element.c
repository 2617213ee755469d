/* element.c: elements and their rows. */
#include <string.h>

#include "data/dataset.h"
#include "tensor/tensor.h"

tutti_status tutti_element_set(tutti_element *element, int which, tutti_tensor *tensor)
{
    if (!tensor || !element || which < 0 || which > element->count ||
        which >= TUTTI_MAX_COMPONENTS) {
        int count = element ? element->count : 0;
        tutti_tensor_release(tensor);
        return tutti_fail(TUTTI_INVALID,
                          "component %d is set in an element of %d: needs a tensor, and a number "
                          "from 0 to %d",
                          which, count, count < TUTTI_MAX_COMPONENTS ? count : count - 1);
    }
    if (which == element->count)
        element->count++;
    else
        tutti_tensor_release(element->tensors[which]);
    element->tensors[which] = tensor;
    return TUTTI_OK;
}

void tutti_element_release(tutti_element *element)
{
    if (!element)
        return;
    for (int i = 0; i < element->count; i++)
        tutti_tensor_release(element->tensors[i]);
    element->count = 0;
}

tutti_element tutti__element_share(const tutti_element *element)
{
    tutti_element shared = *element;
    for (int i = 0; i < element->count; i++)
        tutti_tensor_retain(shared.tensors[i]);
    return shared;
}

tutti_status tutti__element_create(int components, const tutti_type *types, int64_t rows,
                                   tutti_element *ret)
{
    tutti_element made = {0};
    for (int i = 0; i < components; i++) {
        tutti_type type = types[i];
        if (rows >= 0) {
            if (type.rank >= TUTTI_MAX_RANK) {
                tutti_element_release(&made);
                return tutti_fail(TUTTI_INVALID, "elements of %d axes cannot be stacked",
                                  type.rank);
            }
            memmove(type.dims + 1, type.dims, (size_t)type.rank * sizeof *type.dims);
            type.dims[0] = rows;
            type.rank++;
        }
        tutti_status status =
            tutti__tensor_in(tutti__host_memory(), &type, &made.tensors[made.count]);
        if (status != TUTTI_OK) {
            tutti_element_release(&made);
            return status;
        }
        made.count++;
    }
    *ret = made;
    return TUTTI_OK;
}

tutti_status tutti__row_put(tutti_tensor *rows, int64_t row, const tutti_tensor *tensor)
{
    int64_t count = tensor->count;
    if (tensor->type.dtype == TUTTI_STRING) {
        for (int64_t i = 0; i < count; i++) {
            tutti_string text = tutti_tensor_get_string(tensor, i);
            TUTTI_TRY(tutti_tensor_set_string(rows, row * count + i, text.data, text.size));
        }
        return TUTTI_OK;
    }
    size_t size = tutti_dtype_size(tensor->type.dtype);
    char *to = (char *)tutti_tensor_data(rows) + (size_t)(row * count) * size;
    if (tensor->contiguous) {
        memcpy(to, tutti_tensor_data(tensor), (size_t)count * size);
        return TUTTI_OK;
    }
    int64_t strides[TUTTI_MAX_RANK], stride = 1;
    for (int i = tensor->type.rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= tensor->type.dims[i];
    }
    tutti__copy_strided(tensor->type.rank, tensor->type.dims, size, to, strides,
                        tutti_tensor_data(tensor), tensor->strides);
    return TUTTI_OK;
}

tutti_status tutti__row_of(tutti_tensor *tensor, int64_t row, tutti_tensor **ret)
{
    tutti_type type = tensor->type;
    type.rank--;
    memmove(type.dims, type.dims + 1, (size_t)type.rank * sizeof *type.dims);
    size_t shift = (size_t)(row * tensor->strides[0]) * tutti_dtype_size(type.dtype);
    return tutti__tensor_strided(tensor, &type, tensor->strides + 1, tensor->offset + shift, ret);
}

static tutti_status element_refuse(int component, int64_t number, const tutti_type *first,
                                   const tutti_type *other)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    return tutti_fail(TUTTI_INVALID,
                      "component %d is %s in the first element of a batch and %s in element %lld; "
                      "use tutti_padded_batch, or a map that makes them equal",
                      component, tutti_type_text(first, a), tutti_type_text(other, b),
                      (long long)number);
}

static tutti_status check_equal(int64_t count, const tutti_element *elements)
{
    for (int64_t i = 1; i < count; i++) {
        if (elements[i].count != elements[0].count)
            return tutti_fail(TUTTI_INVALID, "elements of one batch have %d and %d components",
                              elements[0].count, elements[i].count);
        for (int c = 0; c < elements[0].count; c++) {
            const tutti_type *first = tutti_tensor_type(elements[0].tensors[c]);
            const tutti_type *other = tutti_tensor_type(elements[i].tensors[c]);
            if (!tutti_type_equal(first, other))
                return element_refuse(c, i, first, other);
        }
    }
    return TUTTI_OK;
}

tutti_status tutti__element_stack(int64_t count, const tutti_element *elements, tutti_element *ret)
{
    tutti_element stacked;
    tutti_type types[TUTTI_MAX_COMPONENTS];
    TUTTI_TRY(check_equal(count, elements));
    for (int c = 0; c < elements[0].count; c++)
        types[c] = *tutti_tensor_type(elements[0].tensors[c]);
    TUTTI_TRY(tutti__element_create(elements[0].count, types, count, &stacked));
    for (int64_t i = 0; i < count; i++)
        for (int c = 0; c < stacked.count; c++) {
            tutti_status status = tutti__row_put(stacked.tensors[c], i, elements[i].tensors[c]);
            if (status != TUTTI_OK) {
                tutti_element_release(&stacked);
                return status;
            }
        }
    *ret = stacked;
    return TUTTI_OK;
}
