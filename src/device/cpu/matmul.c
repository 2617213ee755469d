/* matmul.c: products of matrices of floats: y[.., m, n] = a[.., m, k] b[.., k, n], each optionally
 * stored transposed. Leading axes broadcast. f16 and bf16 are converted, multiplied as floats and
 * rounded once. */
#include <stdlib.h>
#include <string.h>

#include "device/cpu/gemm/gemm.h"
#include "device/cpu/isa.h"
#include "device/cpu/slots.h"
#include "device/cpu/tile/tile.h"
#include "program/isa.h"

#define SIDE_BY_SIDE_FLOPS 4e6 /* batches of smaller products: one product a thread */

enum { CONVERT_PIECE = 8192 };

typedef struct matmul_plan {
    tutti_gemm_plan gemm;
    tutti_gemm shape; /* pointers are set for each product */
    int64_t batch, a_count, b_count;
    int batch_rank;
    int64_t batch_dims[TUTTI_MAX_RANK], a_steps[TUTTI_MAX_RANK], b_steps[TUTTI_MAX_RANK];
    bool side_by_side;
    int threads;
    size_t gemm_bytes, a_bytes, b_bytes, y_bytes; /* parts of the workspace */
    tutti_tile_loop *load, *store;                /* of 16-bit floats, else NULL */
    size_t element;
} matmul_plan;

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

/* One matrix b for all of a batch of plain a: the batch is more rows of a. */
static void join_batch(matmul_plan *plan, const tutti_type *a, const tutti_type *b)
{
    int64_t matrix = b->dims[b->rank - 1] * b->dims[b->rank - 2];
    if (plan->b_count != matrix || plan->shape.trans_a ||
        plan->a_count != plan->batch * plan->shape.m * plan->shape.k || a->rank < 3)
        return;
    plan->shape.m *= plan->batch;
    plan->batch = 1;
    plan->batch_rank = 0;
}

static void read_shapes(const tutti_infer *node, matmul_plan *plan)
{
    const tutti_type *a = &node->inputs[0], *b = &node->inputs[1], *y = &node->outputs[0];
    tutti_gemm *g = &plan->shape;
    g->trans_a = tutti_attr_int(node->attrs, node->attr_count, "transpose_a") != 0;
    g->trans_b = tutti_attr_int(node->attrs, node->attr_count, "transpose_b") != 0;
    g->m = y->dims[y->rank - 2];
    g->n = y->dims[y->rank - 1];
    g->k = a->dims[a->rank - 1 - g->trans_a];
    plan->a_count = tutti_type_count(a);
    plan->b_count = tutti_type_count(b);
    plan->batch = 1;
    plan->batch_rank = y->rank - 2;
    for (int axis = 0; axis < plan->batch_rank; axis++)
        plan->batch *= plan->batch_dims[axis] = y->dims[axis];
    batch_steps(a, y, plan->a_steps);
    batch_steps(b, y, plan->b_steps);
    g->lda = a->dims[a->rank - 1];
    g->ldb = b->dims[b->rank - 1];
    g->ldc = g->n;
    join_batch(plan, a, b);
}

static void read_types(const tutti_infer *node, matmul_plan *plan)
{
    tutti_dtype dtype = node->outputs[0].dtype;
    plan->element = tutti_dtype_size(dtype);
    if (dtype == TUTTI_F32)
        return;
    plan->load = tutti__tile_find(dtype == TUTTI_F16 ? ".load_f16" : ".load_bf16", NULL, 0)->f32;
    plan->store = tutti__tile_find(dtype == TUTTI_F16 ? ".store_f16" : ".store_bf16", NULL, 0)->f32;
    plan->a_bytes = tutti__slot_bytes((size_t)plan->a_count * sizeof(float));
    plan->b_bytes = tutti__slot_bytes((size_t)plan->b_count * sizeof(float));
    plan->y_bytes =
        tutti__slot_bytes((size_t)(plan->batch * plan->shape.m * plan->shape.n) * sizeof(float));
}

static matmul_plan make_plan(const tutti_kernel_query *query)
{
    matmul_plan plan = {.threads = query->threads};
    read_shapes(&query->node, &plan);
    read_types(&query->node, &plan);
    const tutti_gemm *g = &plan.shape;
    double flops = 2.0 * (double)g->m * (double)g->n * (double)g->k;
    plan.side_by_side = plan.batch > 1 && flops < SIDE_BY_SIDE_FLOPS;
    uint32_t flags = (plan.side_by_side ? TUTTI_GEMM_ONE_THREAD | TUTTI_GEMM_PLAIN : 0) |
                     (query->deterministic ? TUTTI_GEMM_PLAIN : 0);
    plan.gemm = tutti__gemm_plan(g->m, g->n, g->k, flags);
    plan.gemm_bytes = tutti__slot_bytes(tutti__gemm_workspace(&plan.gemm));
    if (plan.side_by_side)
        plan.gemm_bytes *= (size_t)tutti__slot_count(plan.threads);
    return plan;
}

static int score(const tutti_kernel_query *query)
{
    tutti_dtype dtype = query->node.outputs[0].dtype;
    bool wanted = dtype == TUTTI_F32 || dtype == TUTTI_F16 || dtype == TUTTI_BF16;
    return wanted && strcmp(TUTTI_ISA_TEXT, tutti__best_isa()) == 0 ? 100 : 0;
}

static size_t workspace(const tutti_kernel_query *query)
{
    matmul_plan plan = make_plan(query);
    return plan.gemm_bytes + plan.a_bytes + plan.b_bytes + plan.y_bytes;
}

static tutti_status prepare(const tutti_kernel_query *query, void **ret_plan)
{
    const tutti_gemm_engine *engine;
    TUTTI_TRY(tutti__gemm_engine(false, &engine));
    matmul_plan *plan = malloc(sizeof *plan);
    if (plan == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of '%s'", query->node.name);
    *plan = make_plan(query);
    *ret_plan = plan;
    return TUTTI_OK;
}

/* Elements of one type converted to another, in pieces. */
typedef struct conversion {
    tutti_tile_loop *loop;
    const char *from;
    char *to;
    size_t from_element, to_element;
    int64_t count;
} conversion;

static void convert_piece(void *context, int64_t index)
{
    static const double none[TUTTI_TILE_PARAMS];
    const conversion *c = context;
    int64_t first = index * CONVERT_PIECE, rest = c->count - first;
    c->loop(&(tutti_tile_args){.count = rest < CONVERT_PIECE ? rest : CONVERT_PIECE,
                               .x = {c->from + (size_t)first * c->from_element},
                               .y = c->to + (size_t)first * c->to_element,
                               .params = none});
}

static void convert(const tutti_call *call, conversion c)
{
    tutti_parallel(call, (c.count + CONVERT_PIECE - 1) / CONVERT_PIECE, convert_piece, &c);
}

typedef struct products {
    const matmul_plan *plan;
    const float *a, *b;
    float *y;
    char *workspace;
    tutti_slots slots;
} products;

static tutti_gemm product_at(const products *p, int64_t index)
{
    const matmul_plan *plan = p->plan;
    tutti_gemm gemm = plan->shape;
    gemm.a = p->a;
    gemm.b = p->b;
    gemm.c = p->y + index * gemm.m * gemm.n;
    for (int axis = plan->batch_rank - 1; axis >= 0; axis--) {
        int64_t at = index % plan->batch_dims[axis];
        index /= plan->batch_dims[axis];
        gemm.a += at * plan->a_steps[axis];
        gemm.b += at * plan->b_steps[axis];
    }
    return gemm;
}

static void product_piece(void *context, int64_t index)
{
    products *p = context;
    void *slot = tutti__slot_take(&p->slots);
    tutti_gemm gemm = product_at(p, index);
    tutti__gemm_run(&p->plan->gemm, NULL, &gemm, slot);
    tutti__slot_give(&p->slots, slot);
}

static void multiply(const tutti_call *call, products *p)
{
    const matmul_plan *plan = p->plan;
    if (plan->side_by_side) {
        tutti__slots_start(&p->slots, p->workspace, tutti__gemm_workspace(&plan->gemm),
                           plan->threads);
        tutti_parallel(call, plan->batch, product_piece, p);
        return;
    }
    for (int64_t i = 0; i < plan->batch; i++) {
        tutti_gemm gemm = product_at(p, i);
        tutti__gemm_run(&plan->gemm, call->pool, &gemm, p->workspace);
    }
}

static tutti_status run(const tutti_call *call)
{
    const matmul_plan *plan = call->plan;
    products p = {.plan = plan,
                  .a = call->inputs[0].data,
                  .b = call->inputs[1].data,
                  .y = call->outputs[0].data,
                  .workspace = call->workspace};
    if (plan->load == NULL) {
        multiply(call, &p);
        return TUTTI_OK;
    }
    char *a = p.workspace + plan->gemm_bytes, *b = a + plan->a_bytes, *y = b + plan->b_bytes;
    convert(call, (conversion){plan->load, call->inputs[0].data, a, plan->element, sizeof(float),
                               plan->a_count});
    convert(call, (conversion){plan->load, call->inputs[1].data, b, plan->element, sizeof(float),
                               plan->b_count});
    p.a = (const float *)(void *)a;
    p.b = (const float *)(void *)b;
    p.y = (float *)(void *)y;
    multiply(call, &p);
    convert(call, (conversion){plan->store, y, call->outputs[0].data, sizeof(float), plan->element,
                               plan->batch * plan->shape.m * plan->shape.n});
    return TUTTI_OK;
}

/* Row-invariant with the plain tiles, which is what deterministic mode plans. */
const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_matmul) = {
    .name = "matmul.gemm",
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
