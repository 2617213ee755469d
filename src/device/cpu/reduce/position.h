/* position.h: argmax and argmin: the first best element; the first NaN is better than any number.
 * Along rows the best value is found first, then where it stands. */
#ifndef TUTTI_DEVICE_CPU_REDUCE_POSITION_H
#define TUTTI_DEVICE_CPU_REDUCE_POSITION_H

#include "device/cpu/count.h"
#include "device/cpu/reduce/reduce.h"

enum {
    POSITION_PIECE = 8192, /* elements that one piece reads, about */
    POSITION_BLOCK = 64    /* elements that are looked at together */
};

typedef struct position_work {
    const void *x;
    int64_t *y;
    int64_t count, inner, results, per_piece;
} position_work;

VEC_INLINE float position_best_f32(bool largest, const float *x, int64_t count)
{
    return largest ? row_max(x, count) : row_minimum(x, count);
}

VEC_INLINE double position_best_f64(bool largest, const double *x, int64_t count)
{
    return reduce_extreme_f64(largest, x, count);
}

#define POSITION_BEST(T, suffix)                                                                   \
    VEC_INLINE T position_best_##suffix(bool largest, const T *x, int64_t count)                   \
    {                                                                                              \
        enum { LANES = 256 / sizeof(T) };                                                          \
        T best[LANES];                                                                             \
        for (int k = 0; k < LANES; k++)                                                            \
            best[k] = x[0];                                                                        \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= count; i += LANES)                                                     \
            for (int k = 0; k < LANES; k++)                                                        \
                best[k] =                                                                          \
                    (largest ? x[i + k] > best[k] : x[i + k] < best[k]) ? x[i + k] : best[k];      \
        for (int k = 0; i < count; i++, k++)                                                       \
            best[k] = (largest ? x[i] > best[k] : x[i] < best[k]) ? x[i] : best[k];                \
        for (int k = 1; k < LANES; k++)                                                            \
            best[0] = (largest ? best[k] > best[0] : best[k] < best[0]) ? best[k] : best[0];       \
        return best[0];                                                                            \
    }
POSITION_BEST(int8_t, i8)
POSITION_BEST(uint8_t, u8)
POSITION_BEST(int32_t, i32)
POSITION_BEST(int64_t, i64)

/* MASK: an integer as wide as T; PLACE: one that holds positions. */
#define POSITION_LOOPS(T, MASK, PLACE, suffix)                                                     \
    VEC_INLINE int64_t position_in_row_##suffix(bool largest, const T *x, int64_t count)           \
    {                                                                                              \
        const T best = position_best_##suffix(largest, x, count);                                  \
        int64_t i = 0;                                                                             \
        MASK found = 0;                                                                            \
        for (; best != best; i++)                                                                  \
            if (x[i] != x[i])                                                                      \
                return i;                                                                          \
        for (; found == 0 && i + POSITION_BLOCK <= count; i += POSITION_BLOCK)                     \
            for (int k = 0; k < POSITION_BLOCK; k++)                                               \
                found = (MASK)(found | (x[i + k] == best));                                        \
        for (i -= found ? POSITION_BLOCK : 0; x[i] != best;)                                       \
            i++;                                                                                   \
        return i;                                                                                  \
    }                                                                                              \
    /* Columns side by side, at most a block of them. */                                           \
    VEC_INLINE void position_in_columns_##suffix(bool largest, const T *x, int64_t count,          \
                                                 int64_t inner, int64_t columns, int64_t *y)       \
    {                                                                                              \
        T best[POSITION_BLOCK];                                                                    \
        PLACE at[POSITION_BLOCK] = {0};                                                            \
        memcpy(best, x, (size_t)columns * sizeof(T));                                              \
        for (PLACE i = 1; i < count; i++) {                                                        \
            const T *row = x + i * inner;                                                          \
            for (int64_t k = 0; k < columns; k++) {                                                \
                bool worse = largest ? row[k] <= best[k] : row[k] >= best[k];                      \
                bool better = !worse & (best[k] == best[k]);                                       \
                at[k] = better ? i : at[k];                                                        \
                best[k] = better ? row[k] : best[k];                                               \
            }                                                                                      \
        }                                                                                          \
        for (int64_t k = 0; k < columns; k++)                                                      \
            y[k] = at[k];                                                                          \
    }                                                                                              \
    VEC_INLINE void position_piece_##suffix(bool largest, const position_work *w, int64_t piece)   \
    {                                                                                              \
        int64_t end = least((piece + 1) * w->per_piece, w->results), n = 1;                        \
        for (int64_t i = piece * w->per_piece; i < end; i += n) {                                  \
            const T *x = (const T *)w->x + i / w->inner * w->count * w->inner + i % w->inner;      \
            n = least(least(w->inner - i % w->inner, end - i), POSITION_BLOCK);                    \
            if (w->inner == 1)                                                                     \
                w->y[i] = position_in_row_##suffix(largest, x, w->count);                          \
            else                                                                                   \
                position_in_columns_##suffix(largest, x, w->count, w->inner, n, w->y + i);         \
        }                                                                                          \
    }
POSITION_LOOPS(float, int32_t, int32_t, f32)
POSITION_LOOPS(double, int64_t, int64_t, f64)
POSITION_LOOPS(int8_t, int8_t, int32_t, i8)
POSITION_LOOPS(uint8_t, uint8_t, int32_t, u8)
POSITION_LOOPS(int32_t, int32_t, int32_t, i32)
POSITION_LOOPS(int64_t, int64_t, int64_t, i64)

typedef void position_fn(void *work, int64_t piece);

/* The pieces of a file's kernel, and `pieces`, by element type. */
#define POSITION_PIECE_OF(LARGEST, suffix)                                                         \
    static void piece_##suffix(void *work, int64_t piece)                                          \
    {                                                                                              \
        position_piece_##suffix(LARGEST, work, piece);                                             \
    }
#define POSITION_PIECES(LARGEST)                                                                   \
    POSITION_PIECE_OF(LARGEST, f32)                                                                \
    POSITION_PIECE_OF(LARGEST, f64)                                                                \
    POSITION_PIECE_OF(LARGEST, i8)                                                                 \
    POSITION_PIECE_OF(LARGEST, u8)                                                                 \
    POSITION_PIECE_OF(LARGEST, i32)                                                                \
    POSITION_PIECE_OF(LARGEST, i64)                                                                \
    static position_fn *const pieces[TUTTI_DTYPE_END] = {                                          \
        [TUTTI_F32] = piece_f32, [TUTTI_F64] = piece_f64, [TUTTI_I8] = piece_i8,                   \
        [TUTTI_U8] = piece_u8,   [TUTTI_I32] = piece_i32, [TUTTI_I64] = piece_i64};

static inline int position_score(const tutti_kernel_query *query)
{
    const tutti_type *x = &query->node.inputs[0];
    bool taken = x->dtype == TUTTI_F32 || x->dtype == TUTTI_F64 || tutti_dtype_is_int(x->dtype);
    int64_t axis = tutti_attr_int(query->node.attrs, query->node.attr_count, "axis");
    axis = axis < 0 ? axis + x->rank : axis;
    return taken && tutti_type_count(x) > 0 && x->dims[axis] <= INT32_MAX ? 100 : 0;
}

static inline tutti_status position_run(const tutti_kernel_call *call, position_fn *const *pieces)
{
    const tutti_view *x = &call->inputs[0];
    int64_t axis = tutti__call_int(call, "axis");
    axis = axis < 0 ? axis + x->rank : axis;
    position_work w = {.x = x->data,
                       .y = call->outputs[0].data,
                       .count = x->dims[axis],
                       .inner = 1,
                       .results = tutti_view_count(&call->outputs[0])};
    for (int i = (int)axis + 1; i < x->rank; i++)
        w.inner *= x->dims[i];
    w.per_piece = most(POSITION_PIECE / w.count + 1, w.inner > 1 ? POSITION_BLOCK : 1);
    tutti_parallel(call, divide_up(w.results, w.per_piece), pieces[x->dtype], &w);
    return TUTTI_OK;
}

#endif
