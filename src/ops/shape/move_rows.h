/* move_rows.h: the loops of move.c: rows and blocks of elements of each size. */
#ifndef TUTTI_OPS_SHAPE_MOVE_ROWS_H
#define TUTTI_OPS_SHAPE_MOVE_ROWS_H

#include "ops/shape/move.h"

enum {
    LINE = 64,    /* bytes of a cache line */
    FILLED = 256, /* bytes of repeated elements that are stored; */
    FILL = 4096   /* that are copied at once from what stands there */
};

/* An element of each size, whatever type its bytes were written as. */
typedef uint8_t element_1 __attribute__((may_alias));
typedef uint16_t element_2 __attribute__((may_alias));
typedef uint32_t element_4 __attribute__((may_alias));
typedef uint64_t element_8 __attribute__((may_alias));
typedef struct __attribute__((may_alias)) {
    uint64_t half[2];
} element_16;

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll_count(8)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

/* Whether so many places, `step` bytes apart, stay in the nearest cache until each has been visited
 * several times: they lie close together or fall on many of its sets. */
static bool stays_near(int64_t count, int64_t step)
{
    return step % 512 != 0 || (step < 0 ? -step : step) * count <= 32 * 1024;
}

/* For each size of element:
 *   row    to[i to_step] = from[i from_step]
 *   block  to[r to_row + c] = from[r + c from_column], for what has neighbours side by side in
 *          different axes. Squares of one cache line a side go through `square`, so that each line
 *          is read and written once, however the rows fall on the sets of the cache. What is
 *          narrower than a square goes element by element, along the longer side, where the lines
 *          that it comes back to are still there. */
#define TYPED(bytes)                                                                               \
    static void row_##bytes(int64_t count, void *to_, int64_t to_step, const void *from_,          \
                            int64_t from_step)                                                     \
    {                                                                                              \
        element_##bytes *to = to_;                                                                 \
        const element_##bytes *from = from_;                                                       \
        for (int64_t i = 0; i < count; i++)                                                        \
            to[i * to_step] = from[i * from_step];                                                 \
    }                                                                                              \
    static inline __attribute__((always_inline)) void square_##bytes(                              \
        int high, int wide, element_##bytes *to, int64_t to_row, const element_##bytes *from,      \
        int64_t from_column)                                                                       \
    {                                                                                              \
        element_##bytes square[LINE / (bytes)][LINE / (bytes)];                                    \
        for (int c = 0; c < wide; c++)                                                             \
            memcpy(square[c], from + c * from_column, (size_t)high * (bytes));                     \
        for (int r = 0; r < high; r++) {                                                           \
            element_##bytes *row = to + r * to_row;                                                \
            UNROLL                                                                                 \
            for (int c = 0; c < wide; c++)                                                         \
                row[c] = square[c][r];                                                             \
        }                                                                                          \
    }                                                                                              \
    static void edge_##bytes(int64_t rows, int64_t columns, element_##bytes *to, int64_t to_row,   \
                             const element_##bytes *from, int64_t from_column)                     \
    {                                                                                              \
        enum { SIDE = LINE / (bytes) };                                                            \
        bool low = rows < columns;                                                                 \
        if (!stays_near(low ? columns : rows, (low ? from_column : to_row) * (bytes)))             \
            for (int64_t r = 0; r < rows; r += SIDE)                                               \
                for (int64_t c = 0; c < columns; c += SIDE)                                        \
                    square_##bytes(rows - r < SIDE ? (int)(rows - r) : SIDE,                       \
                                   columns - c < SIDE ? (int)(columns - c) : SIDE,                 \
                                   to + r * to_row + c, to_row, from + r + c * from_column,        \
                                   from_column);                                                   \
        else if (low)                                                                              \
            for (int64_t r = 0; r < rows; r++)                                                     \
                row_##bytes(columns, to + r * to_row, 1, from + r, from_column);                   \
        else                                                                                       \
            for (int64_t c = 0; c < columns; c++)                                                  \
                row_##bytes(rows, to + c, to_row, from + c * from_column, 1);                      \
    }                                                                                              \
    static void block_##bytes(int64_t rows, int64_t columns, void *to_, int64_t to_row,            \
                              const void *from_, int64_t from_column)                              \
    {                                                                                              \
        enum { SIDE = LINE / (bytes) };                                                            \
        element_##bytes *to = to_;                                                                 \
        const element_##bytes *from = from_;                                                       \
        int64_t high = rows - rows % SIDE, wide = columns - columns % SIDE;                        \
        for (int64_t r = 0; r < high; r += SIDE)                                                   \
            for (int64_t c = 0; c < wide; c += SIDE)                                               \
                square_##bytes(SIDE, SIDE, to + r * to_row + c, to_row,                            \
                               from + r + c * from_column, from_column);                           \
        edge_##bytes(rows - high, wide, to + high * to_row, to_row, from + high, from_column);     \
        edge_##bytes(rows, columns - wide, to + wide, to_row, from + wide * from_column,           \
                     from_column);                                                                 \
    }
TYPED(1)
TYPED(2)
TYPED(4)
TYPED(8)
TYPED(16)
#undef TYPED
#undef UNROLL

/* Eight bytes of elements of 1, 2, 4 or 8. */
static uint64_t repeated(size_t size, const void *element)
{
    uint8_t one;
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (size) {
    case 1:
        memcpy(&one, element, 1);
        return one * UINT64_C(0x0101010101010101);
    case 2:
        memcpy(&two, element, 2);
        return two * UINT64_C(0x0001000100010001);
    case 4:
        memcpy(&four, element, 4);
        return four * UINT64_C(0x0000000100000001);
    default:
        memcpy(&eight, element, 8);
        return eight;
    }
}

/* to[i] = *from: some by stores, then what is there is copied behind itself. */
static void fill_row(size_t size, int64_t count, char *to, const void *from)
{
    size_t bytes = (size_t)count * size, done = 0;
    if (size <= 8 && bytes >= 8) {
        uint64_t eight = repeated(size, from);
        for (; done + 8 <= bytes && done < FILLED; done += 8)
            memcpy(to + done, &eight, 8);
    }
    for (; done < bytes && done < FILLED; done += size)
        memcpy(to + done, from, size);
    for (size_t more; done < bytes; done += more) {
        more = done < FILL ? done : FILL;
        more = more < bytes - done ? more : bytes - done;
        memcpy(to + done, to, more);
    }
}

/* Eight bytes the other way round, as elements of 1, 2, 4 or 8. */
static inline uint64_t turned(size_t size, uint64_t x)
{
    if (size == 1)
        return __builtin_bswap64(x);
    if (size <= 4)
        x = x >> 32 | x << 32;
    if (size == 2)
        x = (x >> 16 & UINT64_C(0x0000ffff0000ffff)) | (x & UINT64_C(0x0000ffff0000ffff)) << 16;
    return x;
}

/* to[i] = from[-i], for elements of up to 8 bytes. */
static inline __attribute__((always_inline)) void turn_row(size_t size, int64_t count, char *to,
                                                           const char *from)
{
    int64_t step = 8 / (int64_t)size, bytes = (int64_t)size;
    uint64_t x;
    for (; count >= step; count -= step, to += 8, from -= 8) {
        memcpy(&x, from + bytes - 8, 8);
        x = turned(size, x);
        memcpy(to, &x, 8);
    }
    for (; count > 0; count--, to += bytes, from -= bytes)
        memcpy(to, from, size);
}

static void copy_backwards(size_t size, int64_t count, void *to, const void *from)
{
    switch (size) {
    case 1:
        turn_row(1, count, to, from);
        break;
    case 2:
        turn_row(2, count, to, from);
        break;
    case 4:
        turn_row(4, count, to, from);
        break;
    case 8:
        turn_row(8, count, to, from);
        break;
    default:
        row_16(count, to, 1, from, -1);
        break;
    }
}

static void copy_row(size_t size, int64_t count, void *to, int64_t to_step, const void *from,
                     int64_t from_step)
{
    if (to_step == 1 && from_step == 1) {
        memcpy(to, from, (size_t)count * size);
        return;
    }
    if (to_step == 1 && from_step == 0) {
        fill_row(size, count, to, from);
        return;
    }
    if (to_step == 1 && from_step == -1) {
        copy_backwards(size, count, to, from);
        return;
    }
    switch (size) {
    case 1:
        row_1(count, to, to_step, from, from_step);
        break;
    case 2:
        row_2(count, to, to_step, from, from_step);
        break;
    case 4:
        row_4(count, to, to_step, from, from_step);
        break;
    case 8:
        row_8(count, to, to_step, from, from_step);
        break;
    default:
        row_16(count, to, to_step, from, from_step);
        break;
    }
}

static void copy_block(size_t size, int64_t rows, int64_t columns, void *to, int64_t to_row,
                       const void *from, int64_t from_column)
{
    switch (size) {
    case 1:
        block_1(rows, columns, to, to_row, from, from_column);
        break;
    case 2:
        block_2(rows, columns, to, to_row, from, from_column);
        break;
    case 4:
        block_4(rows, columns, to, to_row, from, from_column);
        break;
    case 8:
        block_8(rows, columns, to, to_row, from, from_column);
        break;
    default:
        block_16(rows, columns, to, to_row, from, from_column);
        break;
    }
}

/* Rows of `bytes`: the first and the last `part` of each, which meet or overlap. */
#define PARTS(part)                                                                                \
    for (int64_t r = 0; r < rows; r++, to += to_step, from += from_step) {                         \
        memcpy(to, from, part);                                                                    \
        memcpy(to + bytes - (part), from + bytes - (part), part);                                  \
    }

static void copy_short_rows(int64_t rows, int64_t bytes, char *to, int64_t to_step,
                            const char *from, int64_t from_step)
{
    if (bytes < 2)
        PARTS(1)
    else if (bytes < 4)
        PARTS(2)
    else if (bytes < 8)
        PARTS(4)
    else if (bytes < 16)
        PARTS(8)
    else if (bytes < 32)
        PARTS(16)
    else
        PARTS(32)
}
#undef PARTS

#endif
