/* row.h: work on rows of floats, for files that are compiled once for each instruction set.
 *
 * A sum is taken in ROW_SUMS vectors side by side and finished over one binary tree, block by
 * block, and of blocks in a double: it depends on the row only, and of a long row it is as exact as
 * of a block. */
#ifndef TUTTI_DEVICE_CPU_ROW_ROW_H
#define TUTTI_DEVICE_CPU_ROW_ROW_H

#include <string.h>

#include "base/isa.h"
#include "device/cpu/tile/loops.h"
#include "program/kernel.h"

enum { ROW_SUMS = 4, ROW_BLOCK = 64 * ROW_SUMS * VEC_LANES, ROW_PIECE_FLOATS = 8192 };

/* x as a matrix: all axes but the last are rows. */
typedef struct row_matrix {
    int64_t rows, columns, rows_per_piece, pieces;
} row_matrix;

static inline row_matrix row_matrix_of(const tutti_view *x)
{
    row_matrix m = {.rows = 1, .columns = x->rank > 0 ? x->dims[x->rank - 1] : 1};
    for (int i = 0; i + 1 < x->rank; i++)
        m.rows *= x->dims[i];
    m.rows_per_piece =
        m.columns > 0 && m.columns < ROW_PIECE_FLOATS ? ROW_PIECE_FLOATS / m.columns : 1;
    m.pieces = m.columns == 0 ? 0 : (m.rows + m.rows_per_piece - 1) / m.rows_per_piece;
    return m;
}

/* The rows of one piece: [*ret_first, returned end). */
static inline int64_t row_range(const row_matrix *m, int64_t piece, int64_t *ret_first)
{
    *ret_first = piece * m->rows_per_piece;
    int64_t end = *ret_first + m->rows_per_piece;
    return end < m->rows ? end : m->rows;
}

/* Whether inputs [0, count) and the first output are floats. */
static inline bool row_floats(const tutti_kernel_query *query, uint32_t inputs)
{
    for (int i = 0; i < query->node.input_count; i++)
        if (inputs >> i & 1 && query->node.inputs[i].dtype != TUTTI_F32)
            return false;
    return query->node.outputs[0].dtype == TUTTI_F32;
}

/* `count` < VEC_LANES elements, `other` beyond them. */
VEC_INLINE vec row_load_rest(const float *from, int64_t count, float other)
{
    return vec_select(vec_first(count), tile_load_rest(from, count), vec_splat(other));
}

/* The sum of the lanes, over a binary tree: of each pair of halves. */
VEC_INLINE float row_total(vec x)
{
#if VEC_LANES == 16
    x = x + VEC_TURN(x, 8);
#endif
#if VEC_LANES >= 8
    x = x + VEC_TURN(x, 4);
#endif
    x = x + VEC_TURN(x, 2);
    return (x + VEC_TURN(x, 1))[0];
}

VEC_INLINE float row_total_of(const vec *sums)
{
    return row_total((sums[0] + sums[2]) + (sums[1] + sums[3]));
}

/* vec_maximum, but of two zeros either: less work on x86. */
VEC_INLINE vec row_larger(vec a, vec b)
{
#if defined(__AVX512F__)
    return vec_select(vec_ne(a, a), a, _mm512_maskz_max_ps(0xffff, a, b));
#elif defined(__AVX2__)
    return vec_select(vec_ne(a, a), a, _mm256_max_ps(a, b));
#else
    return vec_maximum(a, b);
#endif
}

VEC_INLINE float row_largest(vec x)
{
#if VEC_LANES == 16
    x = row_larger(x, VEC_TURN(x, 8));
#endif
#if VEC_LANES >= 8
    x = row_larger(x, VEC_TURN(x, 4));
#endif
    x = row_larger(x, VEC_TURN(x, 2));
    return row_larger(x, VEC_TURN(x, 1))[0];
}

VEC_INLINE float row_smallest(vec x)
{
#if VEC_LANES == 16
    x = vec_minimum(x, VEC_TURN(x, 8));
#endif
#if VEC_LANES >= 8
    x = vec_minimum(x, VEC_TURN(x, 4));
#endif
    x = vec_minimum(x, VEC_TURN(x, 2));
    return vec_minimum(x, VEC_TURN(x, 1))[0];
}

/* The sum of EACH, an expression of vectors that reads its operands by ROW_AT(pointer): elements
 * [row_i, row_i + VEC_LANES), zeros beyond the end. */
#define ROW_AT(pointer)                                                                            \
    (row_rest > 0 ? row_load_rest((pointer) + row_i, row_rest, 0) : vec_load((pointer) + row_i))
#define ROW_AT_OR(pointer, beyond)                                                                 \
    (row_rest > 0 ? row_load_rest((pointer) + row_i, row_rest, beyond)                             \
                  : vec_load((pointer) + row_i))
#define ROW_SUM(result, count, EACH)                                                               \
    do {                                                                                           \
        vec row_sums[ROW_SUMS] = {{0}};                                                            \
        double row_before = 0;                                                                     \
        int64_t row_at = 0, row_end = 0;                                                           \
        while (row_end < (count)) {                                                                \
            if (row_end > 0) {                                                                     \
                row_before += (double)row_total_of(row_sums);                                      \
                VEC_UNROLL for (int row_k = 0; row_k < ROW_SUMS; row_k++) row_sums[row_k] =        \
                    vec_splat(0);                                                                  \
            }                                                                                      \
            row_end = (count)-row_at < ROW_BLOCK ? (count) : row_at + ROW_BLOCK;                   \
            for (; row_at + ROW_SUMS * VEC_LANES <= row_end; row_at += ROW_SUMS * VEC_LANES) {     \
                VEC_UNROLL for (int row_k = 0; row_k < ROW_SUMS; row_k++)                          \
                {                                                                                  \
                    const int64_t row_i = row_at + row_k * VEC_LANES, row_rest = 0;                \
                    (void)row_i, (void)row_rest;                                                   \
                    row_sums[row_k] = row_sums[row_k] + (EACH);                                    \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        for (; row_at + VEC_LANES <= (count); row_at += VEC_LANES) {                               \
            const int64_t row_i = row_at, row_rest = 0;                                            \
            (void)row_i, (void)row_rest;                                                           \
            row_sums[0] = row_sums[0] + (EACH);                                                    \
        }                                                                                          \
        if (row_at < (count)) {                                                                    \
            const int64_t row_i = row_at, row_rest = (count)-row_at;                               \
            (void)row_i, (void)row_rest;                                                           \
            row_sums[1] = row_sums[1] + (EACH);                                                    \
        }                                                                                          \
        (result) = (float)(row_before + (double)row_total_of(row_sums));                           \
    } while (0)

/* to[..] = EACH for `count` elements, read as in ROW_SUM. Results may go over operands. */
#define ROW_MAP(to, count, EACH)                                                                   \
    do {                                                                                           \
        int64_t row_at = 0;                                                                        \
        for (; row_at + ROW_SUMS * VEC_LANES <= (count); row_at += ROW_SUMS * VEC_LANES) {         \
            vec row_values[ROW_SUMS];                                                              \
            VEC_UNROLL for (int row_k = 0; row_k < ROW_SUMS; row_k++)                              \
            {                                                                                      \
                const int64_t row_i = row_at + row_k * VEC_LANES, row_rest = 0;                    \
                (void)row_i, (void)row_rest;                                                       \
                row_values[row_k] = (EACH);                                                        \
            }                                                                                      \
            VEC_UNROLL for (int row_k = 0; row_k < ROW_SUMS; row_k++)                              \
                vec_store((to) + row_at + row_k * VEC_LANES, row_values[row_k]);                   \
        }                                                                                          \
        for (; row_at + VEC_LANES <= (count); row_at += VEC_LANES) {                               \
            const int64_t row_i = row_at, row_rest = 0;                                            \
            (void)row_i, (void)row_rest;                                                           \
            vec_store((to) + row_i, (EACH));                                                       \
        }                                                                                          \
        if (row_at < (count)) {                                                                    \
            const int64_t row_i = row_at, row_rest = (count)-row_at;                               \
            (void)row_i, (void)row_rest;                                                           \
            tile_store_rest((to) + row_i, (EACH), row_rest);                                       \
        }                                                                                          \
    } while (0)

/* The largest of x; a NaN stays. -inf for none. Of zeros either: for those to whom they are
 * equal. */
VEC_INLINE float row_max(const float *x, int64_t count)
{
    vec most[ROW_SUMS];
    int64_t i = 0;
    VEC_UNROLL for (int k = 0; k < ROW_SUMS; k++) most[k] = S(-INFINITY);
    for (; i + ROW_SUMS * VEC_LANES <= count; i += ROW_SUMS * VEC_LANES) {
        VEC_UNROLL for (int k = 0; k < ROW_SUMS; k++) most[k] =
            row_larger(vec_load(x + i + k * VEC_LANES), most[k]);
    }
    for (; i + VEC_LANES <= count; i += VEC_LANES)
        most[0] = row_larger(vec_load(x + i), most[0]);
    if (i < count)
        most[1] = row_larger(row_load_rest(x + i, count - i, -INFINITY), most[1]);
    return row_largest(row_larger(row_larger(most[0], most[2]), row_larger(most[1], most[3])));
}

/* The largest of x as vec_maximum has it. */
VEC_INLINE float row_maximum(const float *x, int64_t count)
{
    float most = row_max(x, count);
    if (most != 0)
        return most;
    for (int64_t i = 0; i < count; i++)
        if (x[i] == 0 && !__builtin_signbit(x[i]))
            return 0;
    return -0.0f;
}

/* The smallest of x; a NaN stays. inf for none. */
VEC_INLINE float row_minimum(const float *x, int64_t count)
{
    vec least[ROW_SUMS];
    int64_t i = 0;
    VEC_UNROLL for (int k = 0; k < ROW_SUMS; k++) least[k] = S(INFINITY);
    for (; i + ROW_SUMS * VEC_LANES <= count; i += ROW_SUMS * VEC_LANES) {
        VEC_UNROLL for (int k = 0; k < ROW_SUMS; k++) least[k] =
            vec_minimum(vec_load(x + i + k * VEC_LANES), least[k]);
    }
    for (; i + VEC_LANES <= count; i += VEC_LANES)
        least[0] = vec_minimum(vec_load(x + i), least[0]);
    if (i < count)
        least[1] = vec_minimum(row_load_rest(x + i, count - i, INFINITY), least[1]);
    return row_smallest(
        vec_minimum(vec_minimum(least[0], least[2]), vec_minimum(least[1], least[3])));
}

/* The sum of e^(x - most); beyond the end e^-inf is 0. */
VEC_INLINE float row_exp_sum(const float *x, int64_t count, float most)
{
    float sum;
    ROW_SUM(sum, count,
            vec_exp((row_rest > 0 ? row_load_rest(x + row_i, row_rest, -INFINITY)
                                  : vec_load(x + row_i)) -
                    most));
    return sum;
}

#endif
