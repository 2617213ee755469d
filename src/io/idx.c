/* idx.c: see idx.h. Sizes are checked against the bytes at hand before memory is taken. */
#include "io/idx.h"

#include <string.h>

#include "base/container.h"

static tutti_dtype dtype_of(uint8_t code)
{
    switch (code) {
    case 0x08:
        return TUTTI_U8;
    case 0x09:
        return TUTTI_I8;
    case 0x0B: /* 16 bits; widened */
    case 0x0C:
        return TUTTI_I32;
    case 0x0D:
        return TUTTI_F32;
    case 0x0E:
        return TUTTI_F64;
    default:
        return TUTTI_NO_DTYPE;
    }
}

static int64_t big_endian(const uint8_t *p)
{
    return (int64_t)((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]);
}

/* Elements are big-endian in the file. */
static void copy_elements(uint8_t *to, const uint8_t *from, int64_t count, size_t size)
{
    if (size == 1) {
        memcpy(to, from, (size_t)count);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        for (size_t b = 0; b < size; b++)
            to[(size_t)i * size + b] = from[(size_t)i * size + size - 1 - b];
}

static void widen_elements(int32_t *to, const uint8_t *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = (int16_t)(from[2 * i] << 8 | from[2 * i + 1]);
}

tutti_status tutti__idx_parse(const char *name, const uint8_t *data, size_t size,
                              tutti_tensor **ret)
{
    if ((size > 0 && data[0]) || (size > 1 && data[1]))
        return tutti_fail(TUTTI_CORRUPT, "%s is no IDX file: it must begin with two zero bytes",
                          name);
    if (size < 4)
        return tutti_fail(TUTTI_CORRUPT, "%s ends too early: %zu bytes; an IDX file has at least 4",
                          name, size);
    tutti_dtype dtype = dtype_of(data[2]);
    int rank = data[3];
    if (dtype == TUTTI_NO_DTYPE)
        return tutti_fail(TUTTI_CORRUPT, "%s: element type 0x%02x is none that IDX knows", name,
                          data[2]);
    if (rank > TUTTI_MAX_RANK || size < 4 + 4 * (size_t)rank)
        return tutti_fail(TUTTI_CORRUPT, "%s: %d dimensions, but %zu bytes; at most %d are read",
                          name, rank, size, TUTTI_MAX_RANK);
    int64_t dims[TUTTI_MAX_RANK], count = 1, bytes;
    for (int i = 0; i < rank; i++) {
        dims[i] = big_endian(data + 4 + 4 * i);
        if (!tutti__mul_size(count, dims[i], &count))
            return tutti_fail(TUTTI_TOO_LARGE, "%s: its dimensions overflow 64 bits", name);
    }
    bool narrow = data[2] == 0x0B;
    size_t element = narrow ? 2 : tutti_dtype_size(dtype), header = 4 + 4 * (size_t)rank;
    if (!tutti__mul_size(count, (int64_t)element, &bytes) || (uint64_t)bytes != size - header)
        return tutti_fail(
            TUTTI_CORRUPT,
            "%s: the header promises %lld elements of %zu bytes, the file holds %zu bytes of them",
            name, (long long)count, element, size - header);
    tutti_tensor *tensor;
    TUTTI_TRY(tutti_tensor_create(dtype, rank, dims, &tensor));
    if (narrow)
        widen_elements(tutti_tensor_data(tensor), data + header, count);
    else
        copy_elements(tutti_tensor_data(tensor), data + header, count, element);
    *ret = tensor;
    return TUTTI_OK;
}
