/* npy_elements.c: elements of an NPY file to those of a tensor. */
#include <stdlib.h>
#include <string.h>

#include "io/json.h"
#include "io/npy.h"

static void reverse(uint8_t *element, size_t size)
{
    for (size_t i = 0; i < size / 2; i++) {
        uint8_t kept = element[i];
        element[i] = element[size - 1 - i];
        element[size - 1 - i] = kept;
    }
}

static tutti_status convert_number(const char *name, const tutti_npy_kind *kind,
                                   const uint8_t *element, tutti_tensor *tensor, int64_t i)
{
    uint64_t bits = 0;
    memcpy(&bits, element, (size_t)kind->size);
    if (kind->letter == 'u' && bits > INT64_MAX)
        return tutti_fail(TUTTI_OUT_OF_RANGE, "%s: element %lld, %llu, does not fit i64", name,
                          (long long)i, (unsigned long long)bits);
    tutti_tensor_set_int(tensor, i, kind->letter == 'i' ? (int16_t)bits : (int64_t)bits);
    return TUTTI_OK;
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
        for (int64_t i = 0; i < count * kind->size / unit; i++)
            reverse(elements + i * unit, (size_t)unit);
    if (kind->dtype == TUTTI_STRING)
        return convert_texts(name, kind, elements, count, tensor);
    for (int64_t i = 0; kind->dtype == TUTTI_BOOL && i < count; i++)
        if (elements[i] > 1)
            return tutti_fail(TUTTI_CORRUPT, "%s: element %lld is the byte %u, no boolean (0 or 1)",
                              name, (long long)i, elements[i]);
    if ((size_t)kind->size == tutti_dtype_size(kind->dtype) && kind->letter != 'u') {
        uint8_t *to = tutti_tensor_data(tensor);
        if (to != elements && count > 0)
            memcpy(to, elements, (size_t)(count * kind->size));
        return TUTTI_OK;
    }
    for (int64_t i = 0; i < count; i++)
        TUTTI_TRY(convert_number(name, kind, elements + i * kind->size, tensor, i));
    return TUTTI_OK;
}
