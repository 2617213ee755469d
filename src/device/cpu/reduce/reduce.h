/* reduce.h: sums, products, means and extremes over any axes, of f32, f64 and integers, and what is
 * true of bools.
 *
 * Neighbouring axes that are all reduced, or all kept, are one. Each reduced block is then one
 * stage, from the last block to the first: x [outer, count, inner] to y [outer, inner]. A stage
 * cuts its elements by shape: long rows and tall columns into chunks, whose results are joined over
 * one binary tree. Products of floats are taken in double, from the first stage to the last, and
 * rounded once: in f32 they would leave its range on the way. */
#ifndef TUTTI_DEVICE_CPU_REDUCE_REDUCE_H
#define TUTTI_DEVICE_CPU_REDUCE_REDUCE_H

#include <stdlib.h>

#include "device/cpu/reduce/loops.h"

enum {
    REDUCE_STAGES = TUTTI_MAX_RANK / 2 + 1,
    REDUCE_PIECE = 16384,  /* elements that one piece reads, about */
    REDUCE_WIDE = 1024,    /* columns from which on pieces take columns instead of rows */
    REDUCE_COLUMNS = 2048, /* of such a piece */
    REDUCE_ROWS = 64,      /* rows that are summed before they go into a larger sum, */
    REDUCE_MANY = 4096,    /* and these before they go into the total */
};

typedef struct reduce_stage {
    int64_t outer, count, inner;
    int64_t chunks, rows_per_piece, column_blocks;
} reduce_stage;

typedef struct reduce_plan {
    int stage_count;
    reduce_stage stages[REDUCE_STAGES];
    int64_t results[REDUCE_STAGES], partials[REDUCE_STAGES]; /* elements */
    size_t result_at[REDUCE_STAGES], partial_at[REDUCE_STAGES], bytes;
    size_t element; /* bytes of a partial result, and of a stage's */
    double divisor; /* 1 but for mean */
} reduce_plan;

static inline void reduce_cut(reduce_stage *s)
{
    s->chunks = s->rows_per_piece = s->column_blocks = 1;
    if (s->inner >= REDUCE_WIDE) {
        s->column_blocks = (s->inner + REDUCE_COLUMNS - 1) / REDUCE_COLUMNS;
        return;
    }
    int64_t elements = s->count * s->inner;
    s->chunks = elements / REDUCE_PIECE < s->count ? elements / REDUCE_PIECE : s->count;
    s->chunks = s->chunks < 1 ? 1 : s->chunks;
    if (s->chunks == 1)
        s->rows_per_piece = REDUCE_PIECE / (elements + 1) + 1;
}

/* Axes of x as blocks, alternately kept and reduced, the first one kept (of size 1 if need be). */
static inline int reduce_blocks(const tutti_type *x, const bool *reduced, int64_t *ret_blocks)
{
    int count = 1;
    ret_blocks[0] = 1;
    for (int axis = 0; axis < x->rank; axis++) {
        if (x->dims[axis] == 1)
            continue;
        bool in_reduced = count % 2 == 0;
        if (reduced[axis] != in_reduced)
            ret_blocks[count++] = 1;
        ret_blocks[count - 1] *= x->dims[axis];
    }
    if (count % 2 == 0)
        ret_blocks[count++] = 1;
    return count;
}

/* `wide`: floats become doubles. */
static inline bool reduce_plan_of(const tutti_kernel_query *query, bool mean, bool wide,
                                  reduce_plan *ret)
{
    const tutti_infer *node = &query->node;
    const tutti_type *x = &node->inputs[0];
    const int64_t *axes;
    int axis_count = tutti_attr_ints(node->attrs, node->attr_count, "axes", &axes);
    bool reduced[TUTTI_MAX_RANK];
    int64_t blocks[TUTTI_MAX_RANK + 3];
    if (tutti_type_count(x) <= 0)
        return false;
    for (int i = 0; i < x->rank; i++)
        reduced[i] = axis_count == 0;
    for (int i = 0; i < axis_count; i++)
        reduced[axes[i] < 0 ? axes[i] + x->rank : axes[i]] = true;
    if (query->deterministic && tutti_dtype_is_float(x->dtype) && x->rank > 0 && reduced[0])
        return false; /* sums over the batch are for others */
    int count = reduce_blocks(x, reduced, blocks);
    reduce_plan plan = {.element = wide ? sizeof(double) : tutti_dtype_size(x->dtype),
                        .divisor = 1};
    for (int b = count - 2; b > 0; b -= 2) {
        reduce_stage *s = &plan.stages[plan.stage_count];
        *s = (reduce_stage){.outer = 1, .count = blocks[b], .inner = 1};
        for (int i = 0; i < b; i++)
            s->outer *= blocks[i];
        for (int i = b + 1; i < count; i += 2)
            s->inner *= blocks[i];
        reduce_cut(s);
        plan.divisor *= mean ? (double)s->count : 1;
        plan.results[plan.stage_count] = s->outer * s->inner;
        plan.partials[plan.stage_count] = s->chunks > 1 ? s->outer * s->chunks * s->inner : 0;
        plan.partial_at[plan.stage_count] = plan.bytes;
        plan.bytes += ((size_t)plan.partials[plan.stage_count] * plan.element + 63) / 64 * 64;
        plan.result_at[plan.stage_count] = plan.bytes;
        plan.bytes += ((size_t)plan.results[plan.stage_count] * plan.element + 63) / 64 * 64;
        plan.stage_count++;
    }
    *ret = plan;
    return true;
}

typedef struct reduce_work {
    reduce_stage s;
    const void *x;
    void *y, *partial;
    reduce_kind kind;
    bool last;
    double divisor;
} reduce_work;

/* The element types: the same walk from elements of type T to results of type R, which are joined
 * by the functions of `results`. */
#define REDUCE_WALKS(T, R, suffix, results)                                                        \
    /* Rows [first, end) of columns [column, column + width), into `to`. */                        \
    VEC_INLINE void reduce_some_##suffix(const reduce_work *w, const T *x, int64_t first,          \
                                         int64_t end, int64_t width, R *to)                        \
    {                                                                                              \
        R block[REDUCE_COLUMNS];                                                                   \
        for (int64_t row = first; row < end;) {                                                    \
            int64_t stop = end - row < REDUCE_ROWS ? end : row + REDUCE_ROWS;                      \
            R *sum = row == first ? to : block;                                                    \
            bool narrow = w->s.inner == width && reduce_narrow_##suffix(w->kind, x + row * width,  \
                                                                        stop - row, width, sum);   \
            for (int64_t c = 0; c < width && !narrow; c++)                                         \
                sum[c] = (R)x[row * w->s.inner + c];                                               \
            for (int64_t r = row + 1; r < stop && !narrow; r++)                                    \
                reduce_join_##suffix(w->kind, sum, x + r * w->s.inner, width);                     \
            if (sum == block)                                                                      \
                reduce_join_##results(w->kind, to, block, width);                                  \
            row = stop;                                                                            \
        }                                                                                          \
    }                                                                                              \
    VEC_INLINE void reduce_columns_##suffix(const reduce_work *w, const T *x, int64_t first,       \
                                            int64_t end, int64_t width, R *to)                     \
    {                                                                                              \
        R some[REDUCE_COLUMNS];                                                                    \
        for (int64_t row = first; row < end; row += REDUCE_MANY) {                                 \
            int64_t stop = end - row < REDUCE_MANY ? end : row + REDUCE_MANY;                      \
            reduce_some_##suffix(w, x, row, stop, width, row == first ? to : some);                \
            if (row != first)                                                                      \
                reduce_join_##results(w->kind, to, some, width);                                   \
        }                                                                                          \
    }                                                                                              \
    VEC_INLINE void reduce_piece_##suffix(const reduce_work *w, int64_t piece)                     \
    {                                                                                              \
        const reduce_stage *s = &w->s;                                                             \
        const T *x = w->x;                                                                         \
        if (s->inner >= REDUCE_WIDE) {                                                             \
            int64_t outer = piece / s->column_blocks;                                              \
            int64_t column = piece % s->column_blocks * REDUCE_COLUMNS;                            \
            int64_t width =                                                                        \
                s->inner - column < REDUCE_COLUMNS ? s->inner - column : REDUCE_COLUMNS;           \
            reduce_columns_##suffix(w, x + outer * s->count * s->inner + column, 0, s->count,      \
                                    width, (R *)w->y + outer * s->inner + column);                 \
            return;                                                                                \
        }                                                                                          \
        R *to = s->chunks > 1 ? w->partial : w->y;                                                 \
        int64_t end = (piece + 1) * s->rows_per_piece, all = s->outer * s->chunks;                 \
        if (s->inner == 1 && s->chunks == 1) {                                                     \
            int64_t first = piece * s->rows_per_piece;                                             \
            reduce_rows_##suffix(w->kind, x + first * s->count, s->count,                          \
                                 (end < all ? end : all) - first, to + first);                     \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = piece * s->rows_per_piece; i < end && i < all; i++) {                     \
            int64_t outer = i / s->chunks, chunk = i % s->chunks;                                  \
            int64_t first = s->count * chunk / s->chunks;                                          \
            int64_t stop = s->count * (chunk + 1) / s->chunks;                                     \
            const T *from = x + outer * s->count * s->inner;                                       \
            if (s->inner == 1)                                                                     \
                to[i] = reduce_row_##suffix(w->kind, from + first, stop - first);                  \
            else                                                                                   \
                reduce_columns_##suffix(w, from, first, stop, s->inner, to + i * s->inner);        \
        }                                                                                          \
    }                                                                                              \
    VEC_INLINE void reduce_finish_##suffix(const reduce_work *w, int64_t outer)                    \
    {                                                                                              \
        int64_t inner = w->s.inner;                                                                \
        R *partial = (R *)w->partial + outer * w->s.chunks * inner;                                \
        for (int64_t span = 1; span < w->s.chunks; span *= 2)                                      \
            for (int64_t c = 0; c + span < w->s.chunks; c += 2 * span)                             \
                reduce_join_##results(w->kind, partial + c * inner, partial + (c + span) * inner,  \
                                      inner);                                                      \
        memcpy((R *)w->y + outer * inner, partial, (size_t)inner * sizeof(R));                     \
    }
REDUCE_WALKS(float, float, f32, f32)
REDUCE_WALKS(double, double, f64, f64)
REDUCE_WALKS(float, double, wide, f64)
REDUCE_WALKS(int8_t, int8_t, i8, i8)
REDUCE_WALKS(uint8_t, uint8_t, u8, u8)
REDUCE_WALKS(int32_t, int32_t, i32, i32)
REDUCE_WALKS(int64_t, int64_t, i64, i64)

/* Of one element type; `piece` is NULL where a kernel does not have it. */
typedef struct reduce_functions {
    void (*piece)(void *context, int64_t piece);
    void (*finish)(void *context, int64_t outer);
    const struct reduce_functions *next; /* of results of another type: doubles; NULL: the same */
} reduce_functions;

/* For one kind and element type: loops over the kind must know it. */
#define REDUCE_FUNCTIONS(KIND, suffix)                                                             \
    static void piece_##suffix(void *context, int64_t piece)                                       \
    {                                                                                              \
        reduce_work w = *(const reduce_work *)context;                                             \
        w.kind = KIND;                                                                             \
        reduce_piece_##suffix(&w, piece);                                                          \
    }                                                                                              \
    static void finish_##suffix(void *context, int64_t outer)                                      \
    {                                                                                              \
        reduce_work w = *(const reduce_work *)context;                                             \
        w.kind = KIND;                                                                             \
        reduce_finish_##suffix(&w, outer);                                                         \
    }
#define REDUCE_ROW_THEN(suffix, next)                                                              \
    {                                                                                              \
        piece_##suffix, finish_##suffix, next                                                      \
    }
#define REDUCE_ROW(suffix) REDUCE_ROW_THEN(suffix, NULL)

/* A kernel begins with the types that it has: one of these. */
#define REDUCE_FLOATS(KIND)                                                                        \
    REDUCE_FUNCTIONS(KIND, f32)                                                                    \
    REDUCE_FUNCTIONS(KIND, f64)                                                                    \
    static const reduce_functions functions[TUTTI_DTYPE_END] = {                                   \
        [TUTTI_F32] = REDUCE_ROW(f32), [TUTTI_F64] = REDUCE_ROW(f64)};
#define REDUCE_NUMBERS(KIND)                                                                       \
    REDUCE_FUNCTIONS(KIND, f32)                                                                    \
    REDUCE_FUNCTIONS(KIND, f64)                                                                    \
    REDUCE_FUNCTIONS(KIND, i8)                                                                     \
    REDUCE_FUNCTIONS(KIND, u8)                                                                     \
    REDUCE_FUNCTIONS(KIND, i32)                                                                    \
    REDUCE_FUNCTIONS(KIND, i64)                                                                    \
    static const reduce_functions functions[TUTTI_DTYPE_END] =                                     \
        {                                                                                          \
            [TUTTI_F32] = REDUCE_ROW(f32), [TUTTI_F64] = REDUCE_ROW(f64),                          \
            [TUTTI_I8] = REDUCE_ROW(i8),   [TUTTI_U8] = REDUCE_ROW(u8),                            \
            [TUTTI_I32] = REDUCE_ROW(i32), [TUTTI_I64] = REDUCE_ROW(i64),                          \
    };
/* Of products. */
#define REDUCE_WIDE_NUMBERS(KIND)                                                                  \
    REDUCE_FUNCTIONS(KIND, wide)                                                                   \
    REDUCE_FUNCTIONS(KIND, f64)                                                                    \
    REDUCE_FUNCTIONS(KIND, i8)                                                                     \
    REDUCE_FUNCTIONS(KIND, u8)                                                                     \
    REDUCE_FUNCTIONS(KIND, i32)                                                                    \
    REDUCE_FUNCTIONS(KIND, i64)                                                                    \
    static const reduce_functions functions[TUTTI_DTYPE_END] = {                                   \
        [TUTTI_F32] = REDUCE_ROW_THEN(wide, &functions[TUTTI_F64]),                                \
        [TUTTI_F64] = REDUCE_ROW(f64),                                                             \
        [TUTTI_I8] = REDUCE_ROW(i8),                                                               \
        [TUTTI_U8] = REDUCE_ROW(u8),                                                               \
        [TUTTI_I32] = REDUCE_ROW(i32),                                                             \
        [TUTTI_I64] = REDUCE_ROW(i64),                                                             \
    };
/* Of the bytes; see reduce_run. */
#define REDUCE_BOOLS(KIND)                                                                         \
    REDUCE_FUNCTIONS(KIND, u8)                                                                     \
    static const reduce_functions functions[TUTTI_DTYPE_END] = {[TUTTI_BOOL] = REDUCE_ROW(u8)};

/* And goes on with its other functions. */
#define REDUCE_KERNEL(MEAN)                                                                        \
    static int score(const tutti_kernel_query *query)                                              \
    {                                                                                              \
        const reduce_functions *f = &functions[query->node.inputs[0].dtype];                       \
        reduce_plan plan;                                                                          \
        return f->piece != NULL && reduce_plan_of(query, MEAN, f->next != NULL, &plan) ? 100 : 0;  \
    }                                                                                              \
    static size_t workspace(const tutti_kernel_query *query)                                       \
    {                                                                                              \
        const reduce_functions *f = &functions[query->node.inputs[0].dtype];                       \
        reduce_plan plan;                                                                          \
        return reduce_plan_of(query, MEAN, f->next != NULL, &plan) ? plan.bytes : 0;               \
    }                                                                                              \
    static tutti_status prepare(const tutti_kernel_query *query, void **ret_plan)                  \
    {                                                                                              \
        const reduce_functions *f = &functions[query->node.inputs[0].dtype];                       \
        return reduce_prepare(query, MEAN, f->next != NULL, ret_plan);                             \
    }                                                                                              \
    static tutti_status run(const tutti_kernel_call *call)                                         \
    {                                                                                              \
        return reduce_run(call, &functions[call->inputs[0].dtype]);                                \
    }

static inline tutti_status reduce_prepare(const tutti_kernel_query *query, bool mean, bool wide,
                                          void **ret_plan)
{
    reduce_plan plan = {0};
    reduce_plan_of(query, mean, wide, &plan);
    return tutti__kernel_keep(query, &plan, sizeof plan, ret_plan);
}

/* y / divisor, in place. */
static inline void reduce_divide(const tutti_view *y, int64_t count, double divisor)
{
    if (y->dtype == TUTTI_F32) {
        float *to = y->data;
        for (int64_t i = 0; i < count; i++)
            to[i] /= (float)divisor;
        return;
    }
    double *to = y->data;
    for (int64_t i = 0; i < count; i++)
        to[i] /= divisor;
}

/* y = x, rounded. */
static inline void reduce_narrow(const tutti_view *y, const double *x, int64_t count)
{
    float *to = y->data;
    for (int64_t i = 0; i < count; i++)
        to[i] = (float)x[i];
}

/* The largest byte of bools is not 0 where any is true, the smallest where all are. */
static inline void reduce_truth(const tutti_view *y, int64_t count)
{
    uint8_t *to = y->data;
    for (int64_t i = 0; i < count; i++)
        to[i] = to[i] != 0;
}

static inline tutti_status reduce_run(const tutti_kernel_call *call,
                                      const reduce_functions *functions)
{
    const reduce_plan *plan = call->plan;
    const tutti_view *y = &call->outputs[0];
    const void *from = call->inputs[0].data;
    int64_t count = tutti_view_count(y);
    bool wide = functions->next != NULL;
    for (int i = 0; i < plan->stage_count; i++) {
        const reduce_stage *s = &plan->stages[i];
        bool last = i + 1 == plan->stage_count;
        reduce_work w = {.s = *s,
                         .x = from,
                         .y =
                             last && !wide ? y->data : (char *)call->workspace + plan->result_at[i],
                         .partial = (char *)call->workspace + plan->partial_at[i]};
        int64_t rows = s->outer * s->chunks;
        tutti_parallel(call,
                       s->inner >= REDUCE_WIDE ? s->outer * s->column_blocks
                                               : (rows + s->rows_per_piece - 1) / s->rows_per_piece,
                       functions->piece, &w);
        if (s->chunks > 1)
            tutti_parallel(call, s->outer, functions->finish, &w);
        from = w.y;
        functions = functions->next != NULL ? functions->next : functions;
    }
    if (plan->stage_count == 0)
        memcpy(y->data, from, (size_t)count * tutti_dtype_size(y->dtype));
    else if (wide)
        reduce_narrow(y, from, count);
    if (plan->divisor != 1)
        reduce_divide(y, count, plan->divisor);
    if (y->dtype == TUTTI_BOOL)
        reduce_truth(y, count);
    return TUTTI_OK;
}

#endif
