/* matmul_rows.c: products of matrices of integers, and of doubles with few columns, y[.., m, n] =
 * a[.., m, k] b[.., k, n]: a row of y is the sum over k, in order, of a's elements times rows of b.
 * A transposed b is turned round first. Integers wrap round. */
#include <stdlib.h>
#include <string.h>

#include "base/isa.h"
#include "device/cpu/matmul_batch.h"

enum { ROWS = 4, TURN = 16 };

typedef void piece_function(void *product, int64_t piece);

/* Of one element type. */
typedef struct type_loops {
    piece_function *turn, *multiply;
} type_loops;

typedef struct rows_plan {
    type_loops loops;
    size_t element; /* bytes */
    int64_t m, n, k;
    matmul_batch batch;
    bool trans_a, trans_b;
} rows_plan;

typedef struct product {
    const rows_plan *plan;
    const char *a, *b;
    char *turned, *y;
} product;

/* Rows [TURN * piece, ..) of b, stored [n, k], become columns of [k, n]; and ROWS rows of y. `wide`
 * is the type to multiply in, without a sign where that wraps round. */
#define LOOPS(name, type, wide)                                                                    \
    static void turn_##name(void *context, int64_t piece)                                          \
    {                                                                                              \
        const product *w = context;                                                                \
        const type *b = (const void *)w->b;                                                        \
        type *turned = (void *)w->turned;                                                          \
        int64_t n = w->plan->n, k = w->plan->k, first = piece * TURN;                              \
        int64_t end = n - first < TURN ? n : first + TURN;                                         \
        for (int64_t p = 0; p < k; p++)                                                            \
            for (int64_t j = first; j < end; j++)                                                  \
                turned[p * n + j] = b[j * k + p];                                                  \
    }                                                                                              \
    static void multiply_##name(void *context, int64_t piece)                                      \
    {                                                                                              \
        const product *w = context;                                                                \
        const rows_plan *plan = w->plan;                                                           \
        const type *a = (const void *)w->a;                                                        \
        const int64_t n = plan->n, first = piece * ROWS;                                           \
        const int64_t end = plan->m - first < ROWS ? plan->m : first + ROWS;                       \
        type *rows = (type *)(void *)w->y + first * n;                                             \
        memset(rows, 0, (size_t)((end - first) * n) * sizeof(type));                               \
        for (int64_t p = 0; p < plan->k; p++) {                                                    \
            const type *restrict b = (const type *)(const void *)w->b + p * n;                     \
            for (int64_t i = first; i < end; i++) {                                                \
                type *restrict y = rows + (i - first) * n;                                         \
                const wide x = (wide)(plan->trans_a ? a[p * plan->m + i] : a[i * plan->k + p]);    \
                for (int64_t j = 0; j < n; j++)                                                    \
                    y[j] = (type)((wide)y[j] + x * (wide)b[j]);                                    \
            }                                                                                      \
        }                                                                                          \
    }
LOOPS(f64, double, double)
LOOPS(i8, int8_t, uint8_t)
LOOPS(u8, uint8_t, uint8_t)
LOOPS(i32, int32_t, uint32_t)
LOOPS(i64, int64_t, uint64_t)

static const type_loops all_loops[TUTTI_DTYPE_END] = {
    [TUTTI_F64] = {turn_f64, multiply_f64}, [TUTTI_I8] = {turn_i8, multiply_i8},
    [TUTTI_U8] = {turn_u8, multiply_u8},    [TUTTI_I32] = {turn_i32, multiply_i32},
    [TUTTI_I64] = {turn_i64, multiply_i64},
};

static rows_plan matmul_rows_plan_of(const tutti_infer *node)
{
    const tutti_type *a = &node->inputs[0], *y = &node->outputs[0];
    rows_plan p = {
        .m = y->dims[y->rank - 2], .n = y->dims[y->rank - 1], .batch = matmul_batch_of(node)};
    p.trans_a = tutti_attr_int(node->attrs, node->attr_count, "transpose_a") != 0;
    p.trans_b = tutti_attr_int(node->attrs, node->attr_count, "transpose_b") != 0;
    p.loops = all_loops[y->dtype];
    p.element = tutti_dtype_size(y->dtype);
    p.k = a->dims[a->rank - 1 - p.trans_a];
    return p;
}

static int matmul_rows_score(const tutti_kernel_query *query)
{
    return all_loops[query->node.outputs[0].dtype].multiply != NULL ? 100 : 0;
}

static size_t matmul_rows_workspace(const tutti_kernel_query *query)
{
    rows_plan p = matmul_rows_plan_of(&query->node);
    return p.trans_b ? (size_t)(p.k * p.n) * p.element : 0;
}

static tutti_status matmul_rows_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    rows_plan plan = matmul_rows_plan_of(&query->node);
    return tutti__kernel_keep(query, &plan, sizeof plan, ret_plan);
}

static void matmul_rows_multiply(const tutti_kernel_call *call, product w)
{
    if (w.plan->trans_b) {
        tutti_parallel(call, (w.plan->n + TURN - 1) / TURN, w.plan->loops.turn, &w);
        w.b = w.turned;
    }
    tutti_parallel(call, (w.plan->m + ROWS - 1) / ROWS, w.plan->loops.multiply, &w);
}

static tutti_status matmul_rows_run(const tutti_kernel_call *call)
{
    const rows_plan *plan = call->plan;
    for (int64_t i = 0; i < plan->batch.count; i++) {
        product w = {plan, call->inputs[0].data, call->inputs[1].data, call->workspace,
                     (char *)call->outputs[0].data +
                         (size_t)(i * plan->m * plan->n) * plan->element};
        int64_t a, b;
        matmul_batch_at(&plan->batch, i, &a, &b);
        w.a += (size_t)a * plan->element;
        w.b += (size_t)b * plan->element;
        matmul_rows_multiply(call, w);
    }
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_matmul_rows) = {
    .name = "matmul.rows",
    .version = 1,
    .op = "matmul",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = matmul_rows_score,
    .workspace = matmul_rows_workspace,
    .prepare = matmul_rows_prepare,
    .discard = free,
    .run = matmul_rows_run,
};
