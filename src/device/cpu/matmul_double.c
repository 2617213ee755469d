/* matmul_double.c: products of matrices of doubles, y[.., m, n] = a[.., m, k] b[.., k, n]: a row of
 * y is the sum over k, in order, of a's elements times rows of b. A transposed b is turned round
 * first. */
#include <stdlib.h>
#include <string.h>

#include "base/isa.h"
#include "program/kernel.h"

enum { ROWS = 4, TURN = 16 };

typedef struct double_plan {
    int64_t m, n, k, batch;
    bool trans_a, trans_b;
    int rank;
    int64_t dims[TUTTI_MAX_RANK], a_steps[TUTTI_MAX_RANK], b_steps[TUTTI_MAX_RANK];
} double_plan;

/* Elements from one matrix to the next along each leading axis of y, 0 where repeated. */
static void batch_steps(const tutti_type *x, const tutti_type *y, int64_t *ret_steps)
{
    int64_t step = x->dims[x->rank - 1] * x->dims[x->rank - 2];
    for (int axis = y->rank - 3; axis >= 0; axis--) {
        int own = axis - (y->rank - x->rank);
        int64_t dim = own < 0 ? 1 : x->dims[own];
        ret_steps[axis] = dim == 1 ? 0 : step;
        step *= dim;
    }
}

static double_plan plan_of(const tutti_infer *node)
{
    const tutti_type *a = &node->inputs[0], *y = &node->outputs[0];
    double_plan p = {
        .m = y->dims[y->rank - 2], .n = y->dims[y->rank - 1], .batch = 1, .rank = y->rank - 2};
    p.trans_a = tutti_attr_int(node->attrs, node->attr_count, "transpose_a") != 0;
    p.trans_b = tutti_attr_int(node->attrs, node->attr_count, "transpose_b") != 0;
    p.k = a->dims[a->rank - 1 - p.trans_a];
    for (int axis = 0; axis < p.rank; axis++)
        p.batch *= p.dims[axis] = y->dims[axis];
    batch_steps(a, y, p.a_steps);
    batch_steps(&node->inputs[1], y, p.b_steps);
    return p;
}

static int score(const tutti_kernel_query *query)
{
    return query->node.outputs[0].dtype == TUTTI_F64 ? 100 : 0;
}

static size_t workspace(const tutti_kernel_query *query)
{
    double_plan p = plan_of(&query->node);
    return p.trans_b ? (size_t)(p.k * p.n) * sizeof(double) : 0;
}

static tutti_status prepare(const tutti_kernel_query *query, void **ret_plan)
{
    double_plan plan = plan_of(&query->node);
    return tutti__kernel_keep(query, &plan, sizeof plan, ret_plan);
}

typedef struct product {
    const double_plan *plan;
    const double *a, *b;
    double *turned, *y;
} product;

/* Rows [TURN * piece, ..) of b, stored [n, k], become columns of [k, n]. */
static void turn_piece(void *context, int64_t piece)
{
    const product *w = context;
    int64_t n = w->plan->n, k = w->plan->k, first = piece * TURN;
    int64_t end = n - first < TURN ? n : first + TURN;
    for (int64_t p = 0; p < k; p++)
        for (int64_t j = first; j < end; j++)
            w->turned[p * n + j] = w->b[j * k + p];
}

static void rows_piece(void *context, int64_t piece)
{
    const product *w = context;
    const double_plan *plan = w->plan;
    int64_t first = piece * ROWS, end = plan->m - first < ROWS ? plan->m : first + ROWS;
    memset(w->y + first * plan->n, 0, (size_t)((end - first) * plan->n) * sizeof(double));
    for (int64_t p = 0; p < plan->k; p++) {
        const double *restrict b = w->b + p * plan->n;
        for (int64_t i = first; i < end; i++) {
            double *restrict y = w->y + i * plan->n;
            const double x = plan->trans_a ? w->a[p * plan->m + i] : w->a[i * plan->k + p];
            for (int64_t j = 0; j < plan->n; j++)
                y[j] += x * b[j];
        }
    }
}

static void multiply(const tutti_call *call, product w)
{
    if (w.plan->trans_b) {
        tutti_parallel(call, (w.plan->n + TURN - 1) / TURN, turn_piece, &w);
        w.b = w.turned;
    }
    tutti_parallel(call, (w.plan->m + ROWS - 1) / ROWS, rows_piece, &w);
}

static tutti_status run(const tutti_call *call)
{
    const double_plan *plan = call->plan;
    for (int64_t i = 0; i < plan->batch; i++) {
        product w = {plan, call->inputs[0].data, call->inputs[1].data, call->workspace,
                     (double *)call->outputs[0].data + i * plan->m * plan->n};
        int64_t rest = i;
        for (int axis = plan->rank - 1; axis >= 0; axis--) {
            w.a += rest % plan->dims[axis] * plan->a_steps[axis];
            w.b += rest % plan->dims[axis] * plan->b_steps[axis];
            rest /= plan->dims[axis];
        }
        multiply(call, w);
    }
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_matmul_double) = {
    .name = "matmul.double",
    .version = 1,
    .op = "matmul",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = score,
    .workspace = workspace,
    .prepare = prepare,
    .discard = free,
    .run = run,
};
