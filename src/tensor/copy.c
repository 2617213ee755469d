/* copy.c: moving elements between strided arrays, and tensors between memories. */
#include "base/require.h"
#include "tensor/tensor.h"

#include <stdlib.h>
#include <string.h>

/* The axes of a copy with sizes of 1 left out and neighbours that step alike on both sides merged:
 * axis i and i+1 are one axis when stride[i] = stride[i+1] dims[i+1] in both arrays. */
typedef struct tutti_copy_loop {
    int rank;
    int64_t dims[TUTTI_MAX_RANK + 1];
    int64_t to[TUTTI_MAX_RANK + 1], from[TUTTI_MAX_RANK + 1]; /* strides in bytes */
} copy_loop;

static copy_loop merge_axes(int rank, const int64_t *dims, int64_t size, const int64_t *to,
                            const int64_t *from)
{
    copy_loop loop = {0};
    for (int i = 0; i < rank; i++) {
        if (dims[i] == 1)
            continue;
        int last = loop.rank - 1;
        int64_t to_bytes = to[i] * size, from_bytes = from[i] * size;
        if (last >= 0 && loop.to[last] == to_bytes * dims[i] &&
            loop.from[last] == from_bytes * dims[i]) {
            loop.dims[last] *= dims[i];
            loop.to[last] = to_bytes;
            loop.from[last] = from_bytes;
            continue;
        }
        loop.dims[loop.rank] = dims[i];
        loop.to[loop.rank] = to_bytes;
        loop.from[loop.rank] = from_bytes;
        loop.rank++;
    }
    if (loop.rank == 0) {
        loop = (copy_loop){.rank = 1, .dims = {1}, .to = {size}, .from = {size}};
    }
    return loop;
}

#define COPY_ROW(bytes)                                                                            \
    static void copy_row_##bytes(int64_t count, char *to, int64_t to_step, const char *from,       \
                                 int64_t from_step)                                                \
    {                                                                                              \
        for (int64_t i = 0; i < count; i++)                                                        \
            memcpy(to + i * to_step, from + i * from_step, bytes);                                 \
    }
COPY_ROW(1)
COPY_ROW(2)
COPY_ROW(4)
COPY_ROW(8)
COPY_ROW(16)
#undef COPY_ROW

static void copy_row(size_t size, int64_t count, char *to, int64_t to_step, const char *from,
                     int64_t from_step)
{
    if (to_step == (int64_t)size && from_step == (int64_t)size)
        memcpy(to, from, (size_t)count * size);
    else if (size == 1)
        copy_row_1(count, to, to_step, from, from_step);
    else if (size == 2)
        copy_row_2(count, to, to_step, from, from_step);
    else if (size == 4)
        copy_row_4(count, to, to_step, from, from_step);
    else if (size == 8)
        copy_row_8(count, to, to_step, from, from_step);
    else
        copy_row_16(count, to, to_step, from, from_step);
}

/* Elements (a, b), a < rows, b < columns, from from + a * near + b * apart to to + a * over + b *
 * step: tiles of them, so that lines of memory are used whole on both sides while they are in the
 * cache. */
typedef struct tutti_copy_plane {
    int64_t rows, columns;
    int64_t near, apart; /* of the source; rows lie near each other */
    int64_t over, step;  /* of the destination */
} copy_plane;

enum { TILE = 16 };

#define COPY_TILE(bytes)                                                                           \
    static void copy_tile_##bytes(const copy_plane *p, int64_t rows, int64_t columns, char *to,    \
                                  const char *from)                                                \
    {                                                                                              \
        for (int64_t a = 0; a < rows; a++)                                                         \
            for (int64_t b = 0; b < columns; b++)                                                  \
                memcpy(to + a * p->over + b * p->step, from + a * p->near + b * p->apart, bytes);  \
    }
COPY_TILE(1)
COPY_TILE(2)
COPY_TILE(4)
COPY_TILE(8)
COPY_TILE(16)
#undef COPY_TILE

/* Elements of 4 bytes that lie side by side along rows in the source and along columns in the
 * destination: blocks of 4 x 4 are turned in registers. */
typedef uint32_t quad __attribute__((vector_size(16)));

static quad quad_load(const char *from)
{
    quad value;
    memcpy(&value, from, sizeof value);
    return value;
}

static void turn_block(const copy_plane *p, char *to, const char *from)
{
    quad a = quad_load(from), b = quad_load(from + p->apart), c = quad_load(from + 2 * p->apart),
         d = quad_load(from + 3 * p->apart);
    quad ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    quad ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    quad cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    quad cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    quad rows[4] = {__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5),
                    __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
                    __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
                    __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
    for (int i = 0; i < 4; i++)
        memcpy(to + i * p->over, &rows[i], sizeof rows[i]);
}

static void turn_tile(const copy_plane *p, int64_t rows, int64_t columns, char *to,
                      const char *from)
{
    int64_t whole = columns / 4 * 4, a = 0;
    for (; a + 4 <= rows; a += 4)
        for (int64_t b = 0; b < whole; b += 4)
            turn_block(p, to + a * p->over + b * 4, from + a * 4 + b * p->apart);
    if (a < rows) /* the rows below, then the columns beside */
        copy_tile_4(p, rows - a, columns, to + a * p->over, from + a * 4);
    if (whole < columns)
        copy_tile_4(p, a, columns - whole, to + whole * 4, from + whole * p->apart);
}

static void copy_plane_tiles(size_t size, const copy_plane *p, char *to, const char *from)
{
    void (*tile)(const copy_plane *, int64_t, int64_t, char *, const char *) =
        size == 1   ? copy_tile_1
        : size == 2 ? copy_tile_2
        : size == 4 ? (p->near == 4 && p->step == 4 ? turn_tile : copy_tile_4)
        : size == 8 ? copy_tile_8
                    : copy_tile_16;
    for (int64_t b = 0; b < p->columns; b += TILE)
        for (int64_t a = 0; a < p->rows; a += TILE)
            tile(p, p->rows - a < TILE ? p->rows - a : TILE,
                 p->columns - b < TILE ? p->columns - b : TILE, to + a * p->over + b * p->step,
                 from + a * p->near + b * p->apart);
}

/* The axis along which the source lies without gaps, when that is not the last: else -1. */
static int near_axis(const copy_loop *loop, size_t size)
{
    int inner = loop->rank - 1;
    if (loop->from[inner] == (int64_t)size || loop->from[inner] == 0)
        return -1;
    for (int i = 0; i < inner; i++)
        if (loop->from[i] == (int64_t)size)
            return i;
    return -1;
}

void tutti__copy_strided(int rank, const int64_t *dims, size_t size, void *to,
                         const int64_t *to_strides, const void *from, const int64_t *from_strides)
{
    for (int i = 0; i < rank; i++)
        if (dims[i] == 0)
            return;
    copy_loop loop = merge_axes(rank, dims, (int64_t)size, to_strides, from_strides);
    int inner = loop.rank - 1, turned = near_axis(&loop, size);
    copy_plane plane = {.columns = loop.dims[inner], .apart = loop.from[inner]};
    plane.step = loop.to[inner];
    if (turned >= 0) { /* that axis goes into the plane, and out of the odometer */
        plane.rows = loop.dims[turned];
        plane.near = loop.from[turned];
        plane.over = loop.to[turned];
        loop.dims[turned] = 1;
    }
    int64_t index[TUTTI_MAX_RANK] = {0};
    char *to_row = to;
    const char *from_row = from;
    for (;;) {
        if (turned >= 0)
            copy_plane_tiles(size, &plane, to_row, from_row);
        else
            copy_row(size, loop.dims[inner], to_row, loop.to[inner], from_row, loop.from[inner]);
        int axis = inner - 1;
        for (; axis >= 0; axis--) { /* the odometer over the outer axes */
            to_row += loop.to[axis];
            from_row += loop.from[axis];
            if (++index[axis] < loop.dims[axis])
                break;
            to_row -= loop.to[axis] * loop.dims[axis];
            from_row -= loop.from[axis] * loop.dims[axis];
            index[axis] = 0;
        }
        if (axis < 0)
            return;
    }
}

/* Bytes of its buffer that a tensor reaches: [*ret_low, *ret_high). */
static void span_of(const tutti_tensor *tensor, int64_t *ret_low, int64_t *ret_high)
{
    int64_t size = (int64_t)tutti_dtype_size(tensor->type.dtype);
    int64_t low = (int64_t)tensor->offset, high = low;
    if (tensor->count > 0) {
        for (int i = 0; i < tensor->type.rank; i++) {
            int64_t reach = (tensor->type.dims[i] - 1) * tensor->strides[i] * size;
            low += reach < 0 ? reach : 0;
            high += reach > 0 ? reach : 0;
        }
        high += size;
    }
    *ret_low = low;
    *ret_high = high;
}

static bool overlap(const tutti_tensor *a, const tutti_tensor *b)
{
    int64_t low_a, high_a, low_b, high_b;
    span_of(a, &low_a, &high_a);
    span_of(b, &low_b, &high_b);
    uintptr_t base_a = (uintptr_t)a->buffer->data, base_b = (uintptr_t)b->buffer->data;
    return base_a + (uintptr_t)low_a < base_b + (uintptr_t)high_b &&
           base_b + (uintptr_t)low_b < base_a + (uintptr_t)high_a;
}

static bool repeats(const tutti_tensor *tensor)
{
    for (int i = 0; i < tensor->type.rank; i++)
        if (tensor->strides[i] == 0 && tensor->type.dims[i] > 1 && tensor->count > 0)
            return true;
    return false;
}

/* Both in host memory. Strings are moved first; own_strings then makes the bytes the
 * destination's while the source still lives. */
static tutti_status copy_on_host(tutti_tensor *to, tutti_tensor *from)
{
    tutti_tensor *apart = NULL;
    if (overlap(to, from)) {
        TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), &from->type, &apart));
        tutti__copy_strided(from->type.rank, from->type.dims, tutti_dtype_size(from->type.dtype),
                            tutti_tensor_data(apart), apart->strides, tutti_tensor_data(from),
                            from->strides);
        from = apart;
    }
    tutti__copy_strided(to->type.rank, to->type.dims, tutti_dtype_size(to->type.dtype),
                        tutti_tensor_data(to), to->strides, tutti_tensor_data(from), from->strides);
    tutti_tensor_release(apart);
    return tutti__tensor_own_strings(to);
}

/* Brings the span of a tensor in other memory to the host: a tensor with the same strides. */
static tutti_status span_to_host(const tutti_tensor *tensor, tutti_tensor **ret)
{
    const tutti_memory *memory = tensor->buffer->memory;
    int64_t low, high;
    tutti_buffer *buffer = NULL;
    span_of(tensor, &low, &high);
    TUTTI_TRY(tutti__buffer_create(tutti__host_memory(), (size_t)(high - low), &buffer));
    tutti_tensor over = {.buffer = buffer};
    tutti_status status = memory->copy_out(
        memory->self, buffer->data, (const char *)tensor->buffer->data + low, (size_t)(high - low));
    if (status == TUTTI_OK)
        status = tutti__tensor_strided(&over, &tensor->type, tensor->strides,
                                       tensor->offset - (size_t)low, ret);
    tutti__buffer_release(buffer);
    return status;
}

tutti_status tutti__tensor_to_host(tutti_tensor *tensor, tutti_tensor **ret)
{
    if (tutti__tensor_on_host(tensor)) {
        *ret = tutti_tensor_retain(tensor);
        return TUTTI_OK;
    }
    tutti_tensor *span = NULL;
    TUTTI_TRY(span_to_host(tensor, &span));
    tutti_status status = tutti_tensor_contiguous(span, ret);
    tutti_tensor_release(span);
    return status;
}

/* From host memory into other memory. Gaps between strided elements keep their bytes: the span is
 * read, changed and written back. */
static tutti_status copy_to_device(tutti_tensor *to, tutti_tensor *from)
{
    const tutti_memory *memory = to->buffer->memory;
    int64_t low, high;
    tutti_tensor *staged = NULL;
    tutti_status status = TUTTI_OK;
    span_of(to, &low, &high);
    if (to->contiguous) {
        TUTTI_TRY(tutti_tensor_contiguous(from, &staged));
    } else {
        TUTTI_TRY(span_to_host(to, &staged));
        status = copy_on_host(staged, from);
    }
    const char *bytes = to->contiguous ? tutti_tensor_data(staged) : staged->buffer->data;
    if (status == TUTTI_OK)
        status = memory->copy_in(memory->self, (char *)to->buffer->data + low, bytes,
                                 (size_t)(high - low));
    tutti_tensor_release(staged);
    return status;
}

tutti_status tutti_tensor_copy(tutti_tensor *destination, tutti_tensor *source)
{
    TUTTI_REQUIRE(destination);
    TUTTI_REQUIRE(source);
    char to_text[TUTTI_TYPE_TEXT], from_text[TUTTI_TYPE_TEXT];
    if (!tutti_type_equal(&destination->type, &source->type))
        return tutti_fail(TUTTI_INVALID, "copy: source is %s, destination %s; both need one type",
                          tutti_type_text(&source->type, from_text),
                          tutti_type_text(&destination->type, to_text));
    if (repeats(destination))
        return tutti_fail(TUTTI_INVALID,
                          "copy: destination %s is a broadcast view whose elements share memory; "
                          "make it contiguous first",
                          tutti_type_text(&destination->type, to_text));
    if (destination->count == 0)
        return TUTTI_OK;
    tutti_tensor *from = NULL;
    TUTTI_TRY(tutti__tensor_to_host(source, &from));
    tutti_status status = tutti__tensor_on_host(destination) ? copy_on_host(destination, from)
                                                             : copy_to_device(destination, from);
    tutti_tensor_release(from);
    return status;
}

tutti_status tutti_tensor_contiguous(tutti_tensor *tensor, tutti_tensor **ret_tensor)
{
    TUTTI_REQUIRE(tensor);
    TUTTI_REQUIRE(ret_tensor);
    if (tensor->contiguous) {
        *ret_tensor = tutti_tensor_retain(tensor);
        return TUTTI_OK;
    }
    tutti_tensor *copy = NULL;
    TUTTI_TRY(tutti__tensor_in(tensor->buffer->memory, &tensor->type, &copy));
    tutti_status status = tutti_tensor_copy(copy, tensor);
    if (status != TUTTI_OK) {
        tutti_tensor_release(copy);
        return status;
    }
    *ret_tensor = copy;
    return TUTTI_OK;
}

tutti_status tutti__tensor_from_view(const tutti_view *view, tutti_tensor **ret)
{
    tutti_type type = tutti_type_make(view->dtype, view->rank, view->dims);
    tutti_tensor *copy = NULL;
    TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), &type, &copy));
    tutti__copy_strided(view->rank, view->dims, tutti_dtype_size(view->dtype),
                        tutti_tensor_data(copy), copy->strides, view->data,
                        view->strides != NULL ? view->strides : copy->strides);
    tutti_status status = tutti__tensor_own_strings(copy);
    if (status != TUTTI_OK) {
        tutti_tensor_release(copy);
        return status;
    }
    *ret = copy;
    return TUTTI_OK;
}
