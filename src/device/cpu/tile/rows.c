/* rows.c: loops that know how long a row of the tile is, params[0]: operators over rows, reductions
 * of rows, and totals. `count` is that of all elements; a reduction gives one element for each row.
 *
 * A result may stand over the operand: row r of it ends before row r + 1 of the operand begins. */
#include "device/cpu/row/norm.h"
#include "device/cpu/row/softmax.h"
#include "device/cpu/tile/tile.h"

enum { NARROW = 16 }; /* columns up to which a total takes as many registers */

static void softmax_tile(const tutti_tile_args *t, bool logarithm)
{
    softmax_work w = {
        .x = t->x[0], .y = t->y, .count = (int64_t)t->params[0], .logarithm = logarithm};
    for (int64_t row = 0; row < t->count / w.count; row++)
        softmax_row(&w, row);
}

static void softmax(const tutti_tile_args *t)
{
    softmax_tile(t, false);
}

static void log_softmax(const tutti_tile_args *t)
{
    softmax_tile(t, true);
}

static void norm_tile(const tutti_tile_args *t, bool centred)
{
    int64_t columns = (int64_t)t->params[0], rows = t->count / columns;
    norm_work w = {.x = t->x[0],
                   .scale = t->x[1],
                   .offset = centred ? t->x[2] : NULL,
                   .y = t->y,
                   .matrix = {rows, columns, rows, 1},
                   .centred = centred,
                   .epsilon = (float)t->params[1]};
    norm_forward(&w, 0);
}

static void layer_norm(const tutti_tile_args *t)
{
    norm_tile(t, true);
}

static void rms_norm(const tutti_tile_args *t)
{
    norm_tile(t, false);
}

static void sum_rows(const tutti_tile_args *t, float divisor)
{
    const int64_t columns = (int64_t)t->params[0];
    const float *x = t->x[0];
    float *y = t->y;
    for (int64_t row = 0; row < t->count / columns; row++, x += columns) {
        float sum;
        ROW_SUM(sum, columns, ROW_AT(x));
        y[row] = sum / divisor;
    }
}

static void sum(const tutti_tile_args *t)
{
    sum_rows(t, 1);
}

static void mean(const tutti_tile_args *t)
{
    sum_rows(t, (float)t->params[0]);
}

static void max(const tutti_tile_args *t)
{
    const int64_t columns = (int64_t)t->params[0];
    for (int64_t row = 0; row < t->count / columns; row++)
        ((float *)t->y)[row] = row_maximum((const float *)t->x[0] + row * columns, columns);
}

static void min(const tutti_tile_args *t)
{
    const int64_t columns = (int64_t)t->params[0];
    for (int64_t row = 0; row < t->count / columns; row++)
        ((float *)t->y)[row] = row_minimum((const float *)t->x[0] + row * columns, columns);
}

static void widen(const tutti_tile_args *t)
{
    const int64_t columns = (int64_t)t->params[0];
    float *y = t->y;
    for (int64_t row = 0; row < t->count / columns; row++, y += columns) {
        const vec value = vec_splat(((const float *)t->x[0])[row]);
        ROW_MAP(y, columns, value);
    }
}

/* The sum of all into a double. */
static void total(const tutti_tile_args *t)
{
    const float *x = t->x[0];
    float sum;
    ROW_SUM(sum, t->count, ROW_AT(x));
    *(double *)t->y += (double)sum;
}

/* Narrow rows: VEC_LANES of them fill `columns` registers, in which element i belongs to column
 * i % columns. */
static int64_t total_narrow(const float *x, int64_t count, int64_t columns, float *y)
{
    float sums[NARROW * VEC_LANES];
    const int64_t period = columns * VEC_LANES;
    int64_t at = 0;
    if (count < 2 * period)
        return 0;
    memcpy(sums, x, (size_t)period * sizeof(float));
    for (at = period; at + period <= count; at += period)
        for (int64_t i = 0; i < period; i += VEC_LANES)
            vec_store(sums + i, vec_load(sums + i) + vec_load(x + at + i));
    for (int64_t i = 0; i < period; i++)
        y[i % columns] += sums[i];
    return at;
}

/* y[c] += the sum of column c, four registers of columns at a time. */
static void total_columns(const tutti_tile_args *t)
{
    const int64_t columns = (int64_t)t->params[0];
    const float *x = t->x[0];
    float *y = t->y;
    int64_t done =
        columns % VEC_LANES != 0 && columns <= NARROW ? total_narrow(x, t->count, columns, y) : 0;
    const int64_t rows = (t->count - done) / columns;
    int64_t c = 0;
    x += done;
    for (; c + 4 * VEC_LANES <= columns; c += 4 * VEC_LANES) {
        vec sums[4] = {{0}};
        for (int64_t row = 0; row < rows; row++) {
            VEC_UNROLL for (int k = 0; k < 4; k++) sums[k] =
                sums[k] + vec_load(x + row * columns + c + k * VEC_LANES);
        }
        VEC_UNROLL for (int k = 0; k < 4; k++)
            vec_store(y + c + k * VEC_LANES, vec_load(y + c + k * VEC_LANES) + sums[k]);
    }
    for (; c + VEC_LANES <= columns; c += VEC_LANES) {
        vec some = {0};
        for (int64_t row = 0; row < rows; row++)
            some = some + vec_load(x + row * columns + c);
        vec_store(y + c, vec_load(y + c) + some);
    }
    for (; c < columns; c++) {
        float one = 0;
        for (int64_t row = 0; row < rows; row++)
            one += x[row * columns + c];
        y[c] += one;
    }
}

static const tutti_tile_op ops[] = {
    {".rows_softmax", 1, softmax, NULL, {0}, NULL},
    {".rows_log_softmax", 1, log_softmax, NULL, {0}, NULL},
    {".rows_layer_norm", 3, layer_norm, NULL, {"epsilon"}, NULL},
    {".rows_rms_norm", 2, rms_norm, NULL, {"epsilon"}, NULL},
    {".rows_sum", 1, sum, NULL, {0}, NULL},
    {".rows_mean", 1, mean, NULL, {0}, NULL},
    {".rows_max", 1, max, NULL, {0}, NULL},
    {".rows_min", 1, min, NULL, {0}, NULL},
    {".widen", 1, widen, NULL, {0}, NULL},
    {".total", 1, total, NULL, {0}, NULL},
    {".total_columns", 1, total_columns, NULL, {0}, NULL},
    {0},
};

const tutti_tile_family TUTTI_ISA_NAME(tutti_tile_family_rows) = {
    .isa = TUTTI_ISA_TEXT,
    .ops = ops,
};
