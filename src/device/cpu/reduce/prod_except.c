/* prod_except.c: the product of all others along an axis: the bits of the reference, by strips of
 * columns side by side. */
#include "device/cpu/reduce/running.h"

enum { ROOM = 33 * RUNNING_COLUMNS }; /* products from a block on that one level holds */

/* Rows [0, count) of a strip; before: the products of the rows before these, which become those
 * of these too; behind: of the rows behind them. Blocks of rows are strips again: how many there
 * are changes no result, since each is the product of those before times that of those behind. */
#define EXCEPT(name, T, WIDTH)                                                                     \
    static void name(const T *x, T *y, int64_t count, int64_t inner, int64_t columns,              \
                     double *before, const double *behind)                                         \
    {                                                                                              \
        const int64_t width = WIDTH, most = ROOM / width - 1;                                      \
        const int64_t size = (count + most - 1) / most, blocks = (count + size - 1) / size;        \
        double rest[ROOM];                                                                         \
        __builtin_memcpy(rest + blocks * width, behind, (size_t)width * sizeof *rest);             \
        for (int64_t b = blocks - 1; b >= 0; b--) {                                                \
            const int64_t end = (b + 1) * size < count ? (b + 1) * size : count;                   \
            double *to = rest + b * width;                                                         \
            for (int64_t c = 0; c < width; c++)                                                    \
                to[c] = to[width + c];                                                             \
            for (int64_t i = end - 1; i >= b * size; i--)                                          \
                for (int64_t c = 0; c < width; c++)                                                \
                    to[c] *= (double)x[i * inner + c];                                             \
        }                                                                                          \
        for (int64_t b = 0; b < blocks; b++) {                                                     \
            const double *after = rest + (b + 1) * width;                                          \
            const int64_t at = b * size * inner, left = count - b * size;                          \
            if (size > 1) {                                                                        \
                name(x + at, y + at, left < size ? left : size, inner, columns, before, after);    \
                continue;                                                                          \
            }                                                                                      \
            for (int64_t c = 0; c < width; c++) {                                                  \
                const double own = (double)x[at + c];                                              \
                y[at + c] = (T)(before[c] * after[c]);                                             \
                before[c] *= own;                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
#define STRIPS(name, T)                                                                            \
    EXCEPT(line_##name, T, 1)                                                                      \
    EXCEPT(columns_##name, T, columns)                                                             \
    static void piece_##name(void *context, int64_t index)                                         \
    {                                                                                              \
        const tutti_kernel_call *call = context;                                                   \
        const running_plan *p = call->plan;                                                        \
        int64_t first = index * p->strips_of_piece, end = first + p->strips_of_piece;              \
        for (int64_t s = first; s < end && s < p->strips; s++) {                                   \
            int64_t column = s % p->across * RUNNING_COLUMNS, rest = p->inner - column;            \
            int64_t at = s / p->across * p->size * p->inner + column;                              \
            double before[RUNNING_COLUMNS], behind[RUNNING_COLUMNS];                               \
            for (int c = 0; c < RUNNING_COLUMNS; c++)                                              \
                before[c] = behind[c] = 1;                                                         \
            (p->inner == 1 ? line_##name : columns_##name)(                                        \
                (const T *)call->inputs[0].data + at, (T *)call->outputs[0].data + at, p->size,    \
                p->inner, rest < RUNNING_COLUMNS ? rest : RUNNING_COLUMNS, before, behind);        \
        }                                                                                          \
    }
STRIPS(f32, float)
STRIPS(f64, double)

static int prod_except_score(const tutti_kernel_query *query)
{
    const tutti_type *x = &query->node.inputs[0];
    return (x->dtype == TUTTI_F32 || x->dtype == TUTTI_F64) && tutti_type_count(x) > 0 ? 100 : 0;
}

static tutti_status prod_except_run(const tutti_kernel_call *call)
{
    const running_plan *p = call->plan;
    tutti_parallel(call, (p->strips + p->strips_of_piece - 1) / p->strips_of_piece,
                   call->inputs[0].dtype == TUTTI_F32 ? piece_f32 : piece_f64,
                   (void *)(uintptr_t)call);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_prod_except) = {
    .name = "prod_except.strips",
    .version = 1,
    .op = "prod_except",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .inplace = 1,
    .score = prod_except_score,
    .prepare = running_prepare,
    .discard = free,
    .run = prod_except_run,
};
