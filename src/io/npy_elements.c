/* npy_elements.c: elements of an NPY file to those of a tensor. */
#include <stdlib.h>
#include <string.h>

#include "io/json.h"
#include "io/npy.h"

#define SWAP(bits)                                                                                 \
    static void swap_##bits(uint8_t *elements, int64_t count)                                      \
    {                                                                                              \
        for (int64_t i = 0; i < count; i++) {                                                      \
            uint##bits##_t value;                                                                  \
            memcpy(&value, elements + i * (bits / 8), sizeof value);                               \
            value = __builtin_bswap##bits(value);                                                  \
            memcpy(elements + i * (bits / 8), &value, sizeof value);                               \
        }                                                                                          \
    }
SWAP(16)
SWAP(32)
SWAP(64)
#undef SWAP

static void swap(uint8_t *elements, int64_t count, int64_t size)
{
    if (size == 2)
        swap_16(elements, count);
    else if (size == 4)
        swap_32(elements, count);
    else if (size == 8)
        swap_64(elements, count);
}

#define WIDEN(name, from, to)                                                                      \
    static void name(const uint8_t *elements, int64_t count, void *data)                           \
    {                                                                                              \
        to *wide = data;                                                                           \
        for (int64_t i = 0; i < count; i++) {                                                      \
            from value;                                                                            \
            memcpy(&value, elements + i * (int64_t)sizeof value, sizeof value);                    \
            wide[i] = value;                                                                       \
        }                                                                                          \
    }
WIDEN(widen_i16, int16_t, int32_t)
WIDEN(widen_u16, uint16_t, int32_t)
WIDEN(widen_u32, uint32_t, int64_t)
#undef WIDEN

/* The top bit of any element is set: it is more than INT64_MAX. */
static tutti_status check_u64(const char *name, const uint8_t *elements, int64_t count)
{
    uint64_t bits = 0, all = 0;
    for (int64_t i = 0; i < count; i++) {
        memcpy(&bits, elements + i * 8, 8);
        all |= bits;
    }
    for (int64_t i = 0; all > INT64_MAX && i < count; i++) {
        memcpy(&bits, elements + i * 8, 8);
        if (bits > INT64_MAX)
            return tutti_fail(TUTTI_OUT_OF_RANGE, "%s: element %lld, %llu, does not fit i64", name,
                              (long long)i, (unsigned long long)bits);
    }
    return TUTTI_OK;
}

static void widen(const tutti_npy_kind *kind, const uint8_t *elements, int64_t count, void *data)
{
    if (kind->size == 4)
        widen_u32(elements, count, data);
    else if (kind->letter == 'u')
        widen_u16(elements, count, data);
    else
        widen_i16(elements, count, data);
}

/* NUL-padded bytes, or code points of 4 bytes. */
static tutti_status convert_text(const char *name, const tutti_npy_kind *kind,
                                 const uint8_t *element, char *room, tutti_tensor *tensor,
                                 int64_t index)
{
    size_t size = 0;
    if (kind->letter == 'S') {
        for (size = (size_t)kind->size; size > 0 && element[size - 1] == 0;)
            size--;
        return tutti_tensor_set_string(tensor, index, (const char *)element, (int64_t)size);
    }
    size_t length = (size_t)kind->size / 4;
    while (length > 0 && tutti__get_u32(element + 4 * (length - 1)) == 0)
        length--;
    for (size_t i = 0; i < length; i++) {
        uint32_t code = tutti__get_u32(element + 4 * i);
        if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
            return tutti_fail(TUTTI_CORRUPT, "%s: element %lld holds 0x%x, which is no character",
                              name, (long long)index, code);
        size += tutti__utf8_put(code, room + size);
    }
    return tutti_tensor_set_string(tensor, index, room, (int64_t)size);
}

static tutti_status convert_texts(const char *name, const tutti_npy_kind *kind,
                                  const uint8_t *elements, int64_t count, tutti_tensor *tensor)
{
    char *room = malloc((size_t)kind->size + 4);
    if (room == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for texts of %lld bytes", name,
                          (long long)kind->size);
    tutti_status status = TUTTI_OK;
    for (int64_t i = 0; i < count && status == TUTTI_OK; i++)
        status = convert_text(name, kind, elements + i * kind->size, room, tensor, i);
    free(room);
    return status;
}

tutti_status tutti__npy_convert(const char *name, const tutti_npy_kind *kind, uint8_t *elements,
                                int64_t count, tutti_tensor *tensor)
{
    int64_t unit = kind->letter == 'U' ? 4 : kind->letter == 'S' ? 1 : kind->size;
    if (kind->big_endian && unit > 1)
        swap(elements, count * kind->size / unit, unit);
    if (kind->dtype == TUTTI_STRING)
        return convert_texts(name, kind, elements, count, tensor);
    for (int64_t i = 0; kind->dtype == TUTTI_BOOL && i < count; i++)
        if (elements[i] > 1)
            return tutti_fail(TUTTI_CORRUPT, "%s: element %lld is the byte %u, no boolean (0 or 1)",
                              name, (long long)i, elements[i]);
    if (kind->letter == 'u' && kind->size == 8)
        TUTTI_TRY(check_u64(name, elements, count));
    uint8_t *to = tutti_tensor_data(tensor);
    if ((size_t)kind->size != tutti_dtype_size(kind->dtype))
        widen(kind, elements, count, to);
    else if (to != elements && count > 0)
        memcpy(to, elements, (size_t)(count * kind->size));
    return TUTTI_OK;
}
