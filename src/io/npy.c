/* npy.c: see npy.h. Elements that need no conversion are read straight into the tensor. */
#include "io/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "\x93NUMPY"
#define HEADER_LIMIT ((size_t)1 << 20) /* bytes; NumPy itself writes under 64 KiB */

/* The dictionary's place and size. */
static tutti_status read_sizes(tutti_source *source, int64_t *ret_at, size_t *ret_size)
{
    uint8_t start[12];
    TUTTI_TRY(tutti__source_read(source, 0, start, 10, "the start of an NPY array"));
    if (memcmp(start, MAGIC, 6) != 0)
        return tutti_fail(TUTTI_CORRUPT, "%s: no NPY array: offset 0 must hold \\x93NUMPY",
                          source->name);
    if (start[6] < 1 || start[6] > 3)
        return tutti_fail(TUTTI_UNSUPPORTED, "%s: NPY version %u.%u, 1.0 to 3.0 are read",
                          source->name, start[6], start[7]);
    *ret_at = 10;
    *ret_size = tutti__get_u16(start + 8);
    if (start[6] > 1) {
        TUTTI_TRY(tutti__source_read(source, 10, start + 10, 2, "the size of an NPY header"));
        *ret_at = 12;
        *ret_size = tutti__get_u32(start + 8);
    }
    if (*ret_size > HEADER_LIMIT || (int64_t)*ret_size > source->size - *ret_at)
        return tutti_fail(TUTTI_CORRUPT,
                          "%s: offset 8 promises an NPY header of %zu bytes, the file has %lld",
                          source->name, *ret_size, (long long)source->size);
    return TUTTI_OK;
}

static tutti_status read_header(tutti_source *source, tutti_npy_header *ret, int64_t *ret_end)
{
    int64_t at;
    size_t size;
    TUTTI_TRY(read_sizes(source, &at, &size));
    char *text = malloc(size + 1);
    if (text == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for a header of %zu bytes", source->name,
                          size);
    tutti_status status = tutti__source_read(source, at, text, size, "the NPY header");
    if (status == TUTTI_OK)
        status = tutti__npy_parse_header(source->name, text, size, at, ret);
    free(text);
    *ret_end = at + (int64_t)size;
    return status;
}

/* The elements must fill the rest of the file. */
static tutti_status check_size(const tutti_source *source, const tutti_npy_header *header,
                               int64_t at, int64_t *ret_count)
{
    int64_t count = 1, bytes;
    for (int i = 0; i < header->rank; i++)
        if (!tutti__mul_size(count, header->dims[i], &count))
            return tutti_fail(TUTTI_TOO_LARGE, "%s: its dimensions overflow 64 bits", source->name);
    if (!tutti__mul_size(count, header->kind.size, &bytes) || bytes != source->size - at)
        return tutti_fail(
            TUTTI_CORRUPT,
            "%s: the NPY header promises %lld elements of %lld bytes, from offset %lld "
            "on there are %lld bytes",
            source->name, (long long)count, (long long)header->kind.size, (long long)at,
            (long long)(source->size - at));
    if (header->kind.dtype == TUTTI_STRING && header->kind.size == 0 && count > 1 << 20)
        return tutti_fail(TUTTI_TOO_LARGE, "%s: %lld empty texts, at most 2^20 are read",
                          source->name, (long long)count);
    *ret_count = count;
    return TUTTI_OK;
}

/* Column-major elements are the row-major ones of the transposed array. */
static tutti_status turn(const tutti_npy_header *header, tutti_tensor *tensor,
                         tutti_tensor **ret_tensor)
{
    int order[TUTTI_MAX_RANK];
    tutti_tensor *view;
    for (int i = 0; i < header->rank; i++)
        order[i] = header->rank - 1 - i;
    TUTTI_TRY(tutti_tensor_permute(tensor, order, &view));
    tutti_status status = tutti_tensor_contiguous(view, ret_tensor);
    tutti_tensor_release(view);
    return status;
}

static tutti_status read_elements(tutti_source *source, const tutti_npy_kind *kind, int64_t at,
                                  int64_t count, tutti_tensor *tensor)
{
    bool direct = kind->dtype != TUTTI_STRING &&
                  tutti_dtype_size(kind->dtype) == (size_t)kind->size && kind->letter != 'U';
    size_t bytes = (size_t)(count * kind->size);
    uint8_t *elements = direct ? tutti_tensor_data(tensor) : malloc(bytes + 1);
    if (elements == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for %zu bytes", source->name, bytes);
    tutti_status status = tutti__source_read(source, at, elements, bytes, "the elements");
    if (status == TUTTI_OK)
        status = tutti__npy_convert(source->name, kind, elements, count, tensor);
    if (!direct)
        free(elements);
    return status;
}

tutti_status tutti__npy_read(tutti_source *source, tutti_tensor **ret_tensor)
{
    tutti_npy_header header;
    int64_t at, count, dims[TUTTI_MAX_RANK];
    TUTTI_TRY(read_header(source, &header, &at));
    TUTTI_TRY(check_size(source, &header, at, &count));
    for (int i = 0; i < header.rank; i++)
        dims[i] = header.dims[header.fortran_order ? header.rank - 1 - i : i];
    tutti_tensor *tensor, *turned;
    TUTTI_TRY(tutti_tensor_create(header.kind.dtype, header.rank, dims, &tensor));
    tutti_status status = read_elements(source, &header.kind, at, count, tensor);
    if (status == TUTTI_OK && header.fortran_order && header.rank > 1) {
        status = turn(&header, tensor, &turned);
        if (status == TUTTI_OK) {
            tutti_tensor_release(tensor);
            tensor = turned;
        }
    }
    if (status != TUTTI_OK)
        tutti_tensor_release(tensor);
    else
        *ret_tensor = tensor;
    return status;
}

/* Version 1.0; the elements begin at a multiple of 64. */
static tutti_status write_header(tutti_sink *sink, const char *descr, const tutti_tensor *tensor)
{
    char text[512];
    int rank = tutti_tensor_rank(tensor);
    size_t size = (size_t)snprintf(text, sizeof text,
                                   "%s%c%c  {'descr': '%s', 'fortran_order': False, 'shape': (",
                                   MAGIC, 1, 0, descr);
    text[7] = '\0';
    for (int i = 0; i < rank; i++)
        size +=
            (size_t)snprintf(text + size, sizeof text - size, i + 1 < rank ? "%lld, " : "%lld%s",
                             (long long)tutti_tensor_dims(tensor)[i], rank == 1 ? "," : "");
    size += (size_t)snprintf(text + size, sizeof text - size, "), }");
    while ((size + 1) % 64 != 0)
        text[size++] = ' ';
    text[size++] = '\n';
    tutti__put_u16(text + 8, (uint16_t)(size - 10));
    return tutti__sink_write(sink, text, size);
}

static tutti_status write_texts(tutti_sink *sink, const tutti_tensor *tensor)
{
    int64_t longest = 1, count = tutti_tensor_count(tensor);
    for (int64_t i = 0; i < count; i++) {
        tutti_string text = tutti_tensor_get_string(tensor, i);
        if (text.size > 0 && text.data[text.size - 1] == '\0')
            return tutti_fail(
                TUTTI_UNSUPPORTED,
                "%s: text %lld ends in NUL, which NPY cannot keep; use safetensors of "
                "u8",
                sink->name, (long long)i);
        longest = text.size > longest ? text.size : longest;
    }
    char descr[32];
    snprintf(descr, sizeof descr, "|S%lld", (long long)longest);
    TUTTI_TRY(write_header(sink, descr, tensor));
    char *row = calloc(1, (size_t)longest);
    tutti_status status = row != NULL ? TUTTI_OK
                                      : tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for %lld bytes",
                                                   sink->name, (long long)longest);
    for (int64_t i = 0; i < count && status == TUTTI_OK; i++) {
        tutti_string text = tutti_tensor_get_string(tensor, i);
        memset(row, 0, (size_t)longest);
        if (text.size > 0)
            memcpy(row, text.data, (size_t)text.size);
        status = tutti__sink_write(sink, row, (size_t)longest);
    }
    free(row);
    return status;
}

static tutti_status write_contiguous(tutti_sink *sink, tutti_tensor *tensor)
{
    static const char *const descr[TUTTI_DTYPE_END] = {
        [TUTTI_F32] = "<f4", [TUTTI_F64] = "<f8", [TUTTI_F16] = "<f2", [TUTTI_I8] = "|i1",
        [TUTTI_U8] = "|u1",  [TUTTI_I32] = "<i4", [TUTTI_I64] = "<i8", [TUTTI_BOOL] = "|b1"};
    tutti_dtype dtype = tutti_tensor_dtype(tensor);
    if (dtype == TUTTI_STRING)
        return write_texts(sink, tensor);
    TUTTI_TRY(write_header(sink, descr[dtype], tensor));
    return tutti__sink_write(sink, tutti_tensor_data(tensor),
                             (size_t)tutti_tensor_count(tensor) * tutti_dtype_size(dtype));
}

tutti_status tutti__npy_write(tutti_sink *sink, tutti_tensor *tensor)
{
    tutti_tensor *host, *ready;
    TUTTI_TRY(tutti__tensor_to_host(tensor, &host));
    tutti_status status = tutti_tensor_dtype(tensor) == TUTTI_BF16
                              ? tutti_tensor_cast(host, TUTTI_F32, &ready)
                              : tutti_tensor_contiguous(host, &ready);
    tutti_tensor_release(host);
    TUTTI_TRY(status);
    status = write_contiguous(sink, ready);
    tutti_tensor_release(ready);
    return status;
}
