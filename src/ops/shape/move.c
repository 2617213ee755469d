/* move.c: moves elements between two strided arrays; see move.h. */
#include "ops/shape/move.h"

enum {
    LINE = 64,   /* bytes of a cache line */
    BLOCK = 128, /* elements along both sides of what is transposed at once: few pages */
    PIECE_BYTES = 256 * 1024 /* what one thread takes at a time */
};

/* An element of each size, whatever type its bytes were written as. */
typedef uint8_t element_1 __attribute__((may_alias));
typedef uint16_t element_2 __attribute__((may_alias));
typedef uint32_t element_4 __attribute__((may_alias));
typedef uint64_t element_8 __attribute__((may_alias));
typedef struct __attribute__((may_alias)) {
    uint64_t half[2];
} element_16;

/* For each size of element:
 *   row    to[i to_step] = from[i from_step]
 *   block  to[r to_row + c] = from[r + c from_column], for what has neighbours side by side in
 *          different axes. Squares of one cache line a side go through `square`, so that each line
 * is read and written once, however the rows fall on the sets of the cache. */
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
        for (int r = 0; r < high; r++)                                                             \
            for (int c = 0; c < wide; c++)                                                         \
                to[r * to_row + c] = square[c][r];                                                 \
    }                                                                                              \
    static void block_##bytes(int64_t rows, int64_t columns, void *to_, int64_t to_row,            \
                              const void *from_, int64_t from_column)                              \
    {                                                                                              \
        enum { SIDE = LINE / (bytes) };                                                            \
        for (int64_t r = 0; r < rows; r += SIDE)                                                   \
            for (int64_t c = 0; c < columns; c += SIDE) {                                          \
                element_##bytes *to = (element_##bytes *)to_ + r * to_row + c;                     \
                const element_##bytes *from =                                                      \
                    (const element_##bytes *)from_ + r + c * from_column;                          \
                int high = rows - r < SIDE ? (int)(rows - r) : SIDE;                               \
                int wide = columns - c < SIDE ? (int)(columns - c) : SIDE;                         \
                if (high == SIDE && wide == SIDE)                                                  \
                    square_##bytes(SIDE, SIDE, to, to_row, from, from_column);                     \
                else                                                                               \
                    square_##bytes(high, wide, to, to_row, from, from_column);                     \
            }                                                                                      \
    }
TYPED(1)
TYPED(2)
TYPED(4)
TYPED(8)
TYPED(16)
#undef TYPED

static void copy_row(size_t size, int64_t count, void *to, int64_t to_step, const void *from,
                     int64_t from_step)
{
    if (to_step == 1 && from_step == 1) {
        memcpy(to, from, (size_t)count * size);
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

/* The last two axes: rows side by side where it is read, columns where it is written. */
static void copy_transposed(const tutti_move *move, char *to, const char *from)
{
    int64_t rows = move->dims[move->rank - 2], columns = move->dims[move->rank - 1];
    int64_t to_row = move->to[move->rank - 2], from_column = move->from[move->rank - 1];
    int64_t size = (int64_t)move->size;
    for (int64_t r = 0; r < rows; r += BLOCK) {
        int64_t high = rows - r < BLOCK ? rows - r : BLOCK;
        for (int64_t c = 0; c < columns; c += BLOCK) {
            int64_t wide = columns - c < BLOCK ? columns - c : BLOCK;
            copy_block(move->size, high, wide, to + (r * to_row + c) * size, to_row,
                       from + (r + c * from_column) * size, from_column);
        }
    }
}

static bool is_transposed(const tutti_move *move)
{
    int last = move->rank - 1;
    return move->rank >= 2 && move->to[last] == 1 && move->from[last] != 1 &&
           move->from[last - 1] == 1;
}

/* An odometer over the axes that the inner loop leaves. */
static void move_serially(const tutti_move *move, char *to, const char *from)
{
    int64_t index[TUTTI_MOVE_RANK] = {0}, size = (int64_t)move->size;
    bool transposed = is_transposed(move);
    int last = move->rank - 1, outer = transposed ? last - 1 : last;
    for (;;) {
        if (transposed)
            copy_transposed(move, to, from);
        else
            copy_row(move->size, move->dims[last], to, move->to[last], from, move->from[last]);
        int axis = outer - 1;
        for (; axis >= 0; axis--) {
            to += move->to[axis] * size;
            from += move->from[axis] * size;
            if (++index[axis] < move->dims[axis])
                break;
            to -= move->to[axis] * size * move->dims[axis];
            from -= move->from[axis] * size * move->dims[axis];
            index[axis] = 0;
        }
        if (axis < 0)
            return;
    }
}

/* Axes of size 1 left out; neighbours that step alike on both sides merged. At least one axis. */
static tutti_move merge_axes(const tutti_move *move)
{
    tutti_move merged = {.size = move->size};
    for (int i = 0; i < move->rank; i++) {
        int last = merged.rank - 1;
        if (move->dims[i] == 1)
            continue;
        if (last >= 0 && merged.to[last] == move->to[i] * move->dims[i] &&
            merged.from[last] == move->from[i] * move->dims[i]) {
            merged.dims[last] *= move->dims[i];
        } else {
            last = merged.rank++;
            merged.dims[last] = move->dims[i];
        }
        merged.to[last] = move->to[i];
        merged.from[last] = move->from[i];
    }
    if (merged.rank == 0) {
        merged.rank = 1;
        merged.dims[0] = merged.to[0] = merged.from[0] = 1;
    }
    return merged;
}

/* Brings the axis along which neighbours are read to the last place but one. */
static void bring_rows_inside(tutti_move *move)
{
    int last = move->rank - 1, found = -1;
    if (move->from[last] == 1 || move->to[last] != 1)
        return;
    for (int i = 0; i < last; i++)
        if (move->from[i] == 1)
            found = i;
    if (found < 0)
        return;
    int64_t dim = move->dims[found], to = move->to[found];
    for (int i = found; i < last - 1; i++) {
        move->dims[i] = move->dims[i + 1];
        move->from[i] = move->from[i + 1];
        move->to[i] = move->to[i + 1];
    }
    move->dims[last - 1] = dim;
    move->from[last - 1] = 1;
    move->to[last - 1] = to;
}

typedef struct {
    const tutti_move *move;
    char *to;
    const char *from;
    int64_t chunk; /* along axis 0 */
} job;

static void move_piece(void *context, int64_t index)
{
    const job *all = context;
    tutti_move piece = *all->move;
    int64_t start = index * all->chunk, size = (int64_t)piece.size;
    if (piece.dims[0] - start < all->chunk)
        piece.dims[0] -= start;
    else
        piece.dims[0] = all->chunk;
    move_serially(&piece, all->to + start * piece.to[0] * size,
                  all->from + start * piece.from[0] * size);
}

void tutti__move(const tutti_call *call, const tutti_move *move, const void *from, void *to)
{
    int64_t bytes = (int64_t)move->size;
    for (int i = 0; i < move->rank; i++)
        if (move->dims[i] == 0)
            return;
    tutti_move merged = merge_axes(move);
    bring_rows_inside(&merged);
    for (int i = 1; i < merged.rank; i++)
        bytes *= merged.dims[i];
    int64_t chunk = PIECE_BYTES / bytes < 1 ? 1 : PIECE_BYTES / bytes;
    if (merged.dims[0] <= chunk) {
        move_serially(&merged, to, from);
        return;
    }
    job all = {.move = &merged, .to = to, .from = from, .chunk = chunk};
    tutti_parallel(call, (merged.dims[0] + chunk - 1) / chunk, move_piece, &all);
}

void tutti__move_rows(const tutti_call *call, size_t size, int64_t rows, int64_t row,
                      const void *from, int64_t from_step, void *to, int64_t to_step)
{
    tutti_move move = {
        .rank = 2, .size = size, .dims = {rows, row}, .from = {from_step, 1}, .to = {to_step, 1}};
    tutti__move(call, &move, from, to);
}

#define PICK(bytes)                                                                                \
    for (int64_t i = 0; i < count; i++)                                                            \
        memcpy(out + i * (int64_t)(bytes), in + places[i] * (int64_t)(bytes), bytes);              \
    break

/* Of a few bytes copies without a call. */
void tutti__pick(size_t bytes, int64_t count, void *to, const void *from, const int64_t *places)
{
    char *out = to;
    const char *in = from;
    switch (bytes) {
    case 1:
        PICK(1);
    case 2:
        PICK(2);
    case 3:
        PICK(3);
    case 4:
        PICK(4);
    case 6:
        PICK(6);
    case 8:
        PICK(8);
    case 12:
        PICK(12);
    case 16:
        PICK(16);
    case 24:
        PICK(24);
    case 32:
        PICK(32);
    default:
        PICK(bytes);
    }
}
#undef PICK
