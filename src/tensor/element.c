/* element.c: single elements and blocks of elements, converted to and from double and int64_t. */
#include "base/container.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

#include <math.h>
#include <string.h>

#define TO_NEAREST(name, type, low, high)                                                          \
    static inline type name(double value)                                                          \
    {                                                                                              \
        if (value >= (double)(high))                                                               \
            return (type)(high);                                                                   \
        if (value <= (double)(low))                                                                \
            return (type)(low);                                                                    \
        return isnan(value) ? (type)0 : (type)value;                                               \
    }
TO_NEAREST(to_i8, int8_t, INT8_MIN, INT8_MAX)
TO_NEAREST(to_u8, uint8_t, 0, UINT8_MAX)
TO_NEAREST(to_i32, int32_t, INT32_MIN, INT32_MAX)
TO_NEAREST(to_i64, int64_t, INT64_MIN, INT64_MAX)
#undef TO_NEAREST

/* The double next to an integer, in whose last place the bits that were lost are marked (round to
 * odd): rounding on to bf16 then gives what rounding the integer once would give. */
static double int_to_odd_double(int64_t value)
{
    uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
    if (magnitude >> 53 != 0)
        magnitude = (magnitude & ~UINT64_C(0xfff)) | (uint64_t)((magnitude & UINT64_C(0xfff)) != 0)
                                                         << 11;
    return value < 0 ? -(double)magnitude : (double)magnitude;
}

/* x is the element, of the dtype's C type. */
#define EACH(type, expression)                                                                     \
    for (int64_t i = 0; i < count; i++) {                                                          \
        type x;                                                                                    \
        memcpy(&x, (const char *)data + i * (int64_t)sizeof x, sizeof x);                          \
        ret[i] = (expression);                                                                     \
    }                                                                                              \
    break

void tutti__elements_to_doubles(tutti_dtype dtype, const void *data, int64_t count, double *ret)
{
    switch (dtype) {
    case TUTTI_F32:
        EACH(float, (double)x);
    case TUTTI_F64:
        EACH(double, x);
    case TUTTI_F16:
        EACH(uint16_t, (double)tutti_f16_to_f32(x));
    case TUTTI_BF16:
        tutti__bf16s_to_doubles(count, data, ret);
        break;
    case TUTTI_I8:
        EACH(int8_t, (double)x);
    case TUTTI_U8:
        EACH(uint8_t, (double)x);
    case TUTTI_I32:
        EACH(int32_t, (double)x);
    case TUTTI_I64:
        EACH(int64_t, (double)x);
    case TUTTI_BOOL:
        EACH(uint8_t, x != 0 ? 1.0 : 0.0);
    case TUTTI_STRING:
    case TUTTI_NO_DTYPE:
    case TUTTI_DTYPE_END:
        for (int64_t i = 0; i < count; i++)
            ret[i] = (double)NAN;
    }
}

void tutti__elements_to_ints(tutti_dtype dtype, const void *data, int64_t count, int64_t *ret)
{
    switch (dtype) {
    case TUTTI_F32:
        EACH(float, to_i64((double)x));
    case TUTTI_F64:
        EACH(double, to_i64(x));
    case TUTTI_F16:
        EACH(uint16_t, to_i64((double)tutti_f16_to_f32(x)));
    case TUTTI_BF16:
        EACH(uint16_t, to_i64((double)tutti_bf16_to_f32(x)));
    case TUTTI_I8:
        EACH(int8_t, (int64_t)x);
    case TUTTI_U8:
        EACH(uint8_t, x);
    case TUTTI_I32:
        EACH(int32_t, x);
    case TUTTI_I64:
        EACH(int64_t, x);
    case TUTTI_BOOL:
        EACH(uint8_t, x != 0);
    case TUTTI_STRING:
    case TUTTI_NO_DTYPE:
    case TUTTI_DTYPE_END:
        for (int64_t i = 0; i < count; i++)
            ret[i] = 0;
    }
}
#undef EACH

/* v is the value; the expression gives the element of the dtype's C type. */
#define EACH(type, expression)                                                                     \
    for (int64_t i = 0; i < count; i++) {                                                          \
        type x = (expression);                                                                     \
        memcpy((char *)data + i * (int64_t)sizeof x, &x, sizeof x);                                \
    }                                                                                              \
    break

void tutti__elements_from_doubles(tutti_dtype dtype, void *data, int64_t count,
                                  const double *values)
{
    switch (dtype) {
    case TUTTI_F32:
        EACH(float, (float)values[i]);
    case TUTTI_F64:
        EACH(double, values[i]);
    case TUTTI_F16:
        EACH(uint16_t, tutti__f64_to_f16(values[i]));
    case TUTTI_BF16:
        tutti__doubles_to_bf16s(count, values, data);
        break;
    case TUTTI_I8:
        EACH(int8_t, to_i8(values[i]));
    case TUTTI_U8:
        EACH(uint8_t, to_u8(values[i]));
    case TUTTI_I32:
        EACH(int32_t, to_i32(values[i]));
    case TUTTI_I64:
        EACH(int64_t, to_i64(values[i]));
    case TUTTI_BOOL:
        EACH(uint8_t, values[i] != 0);
    case TUTTI_STRING:
    case TUTTI_NO_DTYPE:
    case TUTTI_DTYPE_END:
        break;
    }
}

void tutti__elements_from_ints(tutti_dtype dtype, void *data, int64_t count, const int64_t *values)
{
    switch (dtype) {
    case TUTTI_F32:
        EACH(float, (float)values[i]);
    case TUTTI_F64:
        EACH(double, (double)values[i]);
    case TUTTI_F16:
        EACH(uint16_t, tutti__f64_to_f16(int_to_odd_double(values[i])));
    case TUTTI_BF16:
        EACH(uint16_t, tutti__f64_to_bf16(int_to_odd_double(values[i])));
    case TUTTI_I8:
        EACH(int8_t, (int8_t)values[i]);
    case TUTTI_U8:
        EACH(uint8_t, (uint8_t)values[i]);
    case TUTTI_I32:
        EACH(int32_t, (int32_t)values[i]);
    case TUTTI_I64:
        EACH(int64_t, values[i]);
    case TUTTI_BOOL:
        EACH(uint8_t, values[i] != 0);
    case TUTTI_STRING:
    case TUTTI_NO_DTYPE:
    case TUTTI_DTYPE_END:
        break;
    }
}
#undef EACH

int64_t tutti_view_count(const tutti_view *view)
{
    int64_t count = 1;
    for (int i = 0; i < view->rank; i++)
        if (view->dims[i] == 0)
            return 0; /* the others may be so large that their product overflows */
    for (int i = 0; i < view->rank; i++)
        count *= view->dims[i];
    return count;
}

/* Offset in elements of the index-th element in row-major order. */
static int64_t element_offset(int rank, const int64_t *dims, const int64_t *strides, int64_t index)
{
    if (strides == NULL)
        return index;
    int64_t offset = 0;
    for (int i = rank - 1; i >= 0; i--) {
        offset += index % dims[i] * strides[i];
        index /= dims[i];
    }
    return offset;
}

static void *view_element(const tutti_view *view, int64_t index)
{
    int64_t offset = element_offset(view->rank, view->dims, view->strides, index);
    return (char *)view->data + offset * (int64_t)tutti_dtype_size(view->dtype);
}

double tutti_view_get(const tutti_view *view, int64_t index)
{
    double value;
    tutti__elements_to_doubles(view->dtype, view_element(view, index), 1, &value);
    return value;
}

int64_t tutti_view_get_int(const tutti_view *view, int64_t index)
{
    int64_t value;
    tutti__elements_to_ints(view->dtype, view_element(view, index), 1, &value);
    return value;
}

void tutti_view_set(const tutti_view *view, int64_t index, double value)
{
    tutti__elements_from_doubles(view->dtype, view_element(view, index), 1, &value);
}

void tutti_view_set_int(const tutti_view *view, int64_t index, int64_t value)
{
    tutti__elements_from_ints(view->dtype, view_element(view, index), 1, &value);
}

/* The address of an element, or NULL when the index is none. */
static void *tensor_element(const tutti_tensor *tensor, int64_t index)
{
    if (index < 0 || index >= tensor->count)
        return NULL;
    tutti_view view = tutti__tensor_view_of(tensor);
    return view_element(&view, index);
}

/* Brings one element into `ret`, from whatever memory. False when there is none to bring. */
static bool load_element(const tutti_tensor *tensor, int64_t index, unsigned char ret[16])
{
    const tutti_memory *memory = tensor->buffer->memory;
    size_t size = tutti_dtype_size(tensor->type.dtype);
    const void *element = tensor_element(tensor, index);
    if (element == NULL || tensor->type.dtype == TUTTI_STRING)
        return false;
    if (!memory->host_visible)
        return memory->copy_out(memory->self, ret, element, size) == TUTTI_OK;
    memcpy(ret, element, size);
    return true;
}

static void store_element(tutti_tensor *tensor, int64_t index, const unsigned char value[16])
{
    const tutti_memory *memory = tensor->buffer->memory;
    size_t size = tutti_dtype_size(tensor->type.dtype);
    void *element = tensor_element(tensor, index);
    if (element == NULL || tensor->type.dtype == TUTTI_STRING)
        return;
    if (memory->host_visible)
        memcpy(element, value, size);
    else
        (void)memory->copy_in(memory->self, element, value, size);
}

double tutti_tensor_get(const tutti_tensor *tensor, int64_t index)
{
    if (tensor == NULL)
        return (double)NAN;
    unsigned char element[16];
    double value = (double)NAN;
    if (load_element(tensor, index, element))
        tutti__elements_to_doubles(tensor->type.dtype, element, 1, &value);
    return value;
}

int64_t tutti_tensor_get_int(const tutti_tensor *tensor, int64_t index)
{
    if (tensor == NULL)
        return 0;
    unsigned char element[16];
    int64_t value = 0;
    if (load_element(tensor, index, element))
        tutti__elements_to_ints(tensor->type.dtype, element, 1, &value);
    return value;
}

void tutti_tensor_set(tutti_tensor *tensor, int64_t index, double value)
{
    if (tensor == NULL)
        return;
    unsigned char element[16] = {0};
    tutti__elements_from_doubles(tensor->type.dtype, element, 1, &value);
    store_element(tensor, index, element);
}

void tutti_tensor_set_int(tutti_tensor *tensor, int64_t index, int64_t value)
{
    if (tensor == NULL)
        return;
    unsigned char element[16] = {0};
    tutti__elements_from_ints(tensor->type.dtype, element, 1, &value);
    store_element(tensor, index, element);
}
