/* move.c: moves elements between two strided arrays; see move.h. */
#include "ops/shape/move.h"
#include "ops/shape/move_rows.h"

enum {
    BLOCK = 128, /* elements along both sides of what is transposed at once: few pages */
    SHORT = 64,  /* bytes of a row up to which its copy is no call */
    NARROW = 8,  /* elements of a row below which the axis before it is the inner loop */
    PIECE_BYTES = 256 * 1024 /* what one thread takes at a time */
};

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
           move->from[last] != 0 && move->from[last - 1] == 1;
}

/* How the last axes are copied. */
typedef enum { ROW, TRANSPOSED, SHORT_ROWS } inner;

/* A row that is short goes together with those of the axis before it, or, where it is not one
 * piece of memory, across them: that axis becomes the last. */
static inner inner_of(tutti_move *move)
{
    int last = move->rank - 1;
    if (is_transposed(move))
        return TRANSPOSED;
    if (last < 1)
        return ROW;
    if (move->to[last] == 1 && move->from[last] == 1)
        return move->dims[last] * (int64_t)move->size <= SHORT ? SHORT_ROWS : ROW;
    if (move->dims[last] < NARROW && move->dims[last] < move->dims[last - 1]) {
        tutti_move old = *move;
        move->dims[last] = old.dims[last - 1];
        move->to[last] = old.to[last - 1];
        move->from[last] = old.from[last - 1];
        move->dims[last - 1] = old.dims[last];
        move->to[last - 1] = old.to[last];
        move->from[last - 1] = old.from[last];
    }
    return ROW;
}

static void copy_inner(const tutti_move *move, inner way, char *to, const char *from)
{
    int last = move->rank - 1;
    int64_t size = (int64_t)move->size;
    if (way == TRANSPOSED)
        copy_transposed(move, to, from);
    else if (way == SHORT_ROWS)
        copy_short_rows(move->dims[last - 1], move->dims[last] * size, to,
                        move->to[last - 1] * size, from, move->from[last - 1] * size);
    else
        copy_row(move->size, move->dims[last], to, move->to[last], from, move->from[last]);
}

/* An odometer over the axes that the inner loop leaves. */
static void move_serially(const tutti_move *whole, char *to, const char *from)
{
    tutti_move own = *whole, *move = &own;
    int64_t index[TUTTI_MOVE_RANK] = {0}, size = (int64_t)move->size;
    inner way = inner_of(move);
    int outer = way == ROW ? move->rank - 1 : move->rank - 2;
    for (;;) {
        copy_inner(move, way, to, from);
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
    if (move->from[last] == 1 || move->from[last] == 0 || move->to[last] != 1)
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

void tutti__move(const tutti_kernel_call *call, const tutti_move *move, const void *from, void *to)
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

void tutti__move_rows(const tutti_kernel_call *call, size_t size, int64_t rows, int64_t row,
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
