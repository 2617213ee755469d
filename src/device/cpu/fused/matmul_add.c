/* matmul_add.c: y = x + a b: the product accumulates in y, which lies over x where it may. */
#include <stdlib.h>
#include <string.h>

#include "base/isa.h"
#include "device/cpu/gemm/gemm.h"
#include "device/cpu/isa.h"
#include "graph/graph.h"
#include "program/kernel.h"

enum { A, B, X, LEAST = 32 }; /* inputs; the least size of a side that pays */

typedef struct add_plan {
    tutti_gemm shape;
    tutti_gemm_plan gemm;
} add_plan;

/* Whether a body's edge is parameter `index`. */
static bool is_input(tutti_edge edge, int index)
{
    return tutti__is(edge.node, "parameter") && (int)tutti__int(edge.node, "index") == index;
}

/* The product of a body x + a b, or NULL when it is something else. */
static const tutti_node *take_apart(const tutti_infer *fused)
{
    const tutti_attr *body = tutti_attr_find(fused->attrs, fused->attr_count, "body");
    if (strcmp(tutti_attr_string(fused->attrs, fused->attr_count, "pattern"), "matmul_add") != 0 ||
        body == NULL || fused->input_count != 3 || body->value.graph->results.count != 1)
        return NULL;
    const tutti_node *add = body->value.graph->results.data[0].node;
    int product = tutti__is(add, "add") && tutti__is(add->inputs[0].node, "matmul") ? 0 : 1;
    const tutti_node *matmul = tutti__is(add, "add") ? add->inputs[product].node : NULL;
    if (matmul == NULL || !tutti__is(matmul, "matmul") || !is_input(matmul->inputs[0], A) ||
        !is_input(matmul->inputs[1], B) || !is_input(add->inputs[1 - product], X))
        return NULL;
    return matmul;
}

/* The product as one of matrices: b has no leading axes, those of a count as rows. */
static bool read_shape(const tutti_infer *fused, tutti_gemm *ret)
{
    const tutti_node *product = take_apart(fused);
    const tutti_type *a = &fused->inputs[A], *b = &fused->inputs[B], *y = &fused->outputs[0];
    if (product == NULL || y->dtype != TUTTI_F32 || b->rank != 2 || a->rank < 2)
        return false;
    tutti_gemm g = {.add = true,
                    .trans_a = tutti__int(product, "transpose_a") != 0,
                    .trans_b = tutti__int(product, "transpose_b") != 0,
                    .n = y->dims[y->rank - 1],
                    .lda = a->dims[a->rank - 1],
                    .ldb = b->dims[1]};
    if (g.trans_a && a->rank != 2)
        return false;
    g.ldc = g.n;
    g.m = g.n > 0 ? tutti_type_count(y) / g.n : 0;
    g.k = g.trans_b ? b->dims[1] : b->dims[0];
    *ret = g;
    return g.m >= LEAST && g.n >= LEAST && g.k >= LEAST;
}

static int matmul_add_score(const tutti_kernel_query *query)
{
    tutti_gemm g;
    return strcmp(TUTTI_ISA_TEXT, tutti__best_isa()) == 0 && read_shape(&query->node, &g) ? 100 : 0;
}

static add_plan matmul_add_plan_of(const tutti_kernel_query *query)
{
    add_plan plan = {0};
    if (read_shape(&query->node, &plan.shape))
        plan.gemm = tutti__gemm_plan(plan.shape.m, plan.shape.n, plan.shape.k,
                                     query->deterministic ? TUTTI_GEMM_PLAIN : 0);
    return plan;
}

static size_t matmul_add_workspace(const tutti_kernel_query *query)
{
    add_plan plan = matmul_add_plan_of(query);
    return tutti__gemm_workspace(&plan.gemm);
}

static tutti_status matmul_add_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    const tutti_gemm_engine *engine;
    TUTTI_TRY(tutti__gemm_engine(false, &engine));
    add_plan plan = matmul_add_plan_of(query);
    return tutti__kernel_keep(query, &plan, sizeof plan, ret_plan);
}

static tutti_status matmul_add_run(const tutti_kernel_call *call)
{
    const add_plan *plan = call->plan;
    tutti_gemm gemm = plan->shape;
    float *y = call->outputs[0].data;
    gemm.a = call->inputs[A].data;
    gemm.b = call->inputs[B].data;
    gemm.c = y;
    if (y != call->inputs[X].data)
        memcpy(y, call->inputs[X].data, (size_t)(gemm.m * gemm.n) * sizeof(float));
    tutti__gemm_run(&plan->gemm, call->pool, &gemm, call->workspace);
    return TUTTI_OK;
}

/* Row-invariant as the plain tiles are, which deterministic mode takes. */
const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_matmul_add) = {
    .name = "fused.matmul_add",
    .version = 1,
    .op = "fused",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .inplace = 1u << X,
    .score = matmul_add_score,
    .workspace = matmul_add_workspace,
    .prepare = matmul_add_prepare,
    .discard = free,
    .run = matmul_add_run,
};
