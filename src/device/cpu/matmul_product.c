/* matmul_product.c: see matmul_product.h. */
#include "device/cpu/matmul_product.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/pool.h"
#include "device/cpu/conversion.h"
#include "device/cpu/gemm/gemm.h"
#include "device/cpu/kept.h"
#include "device/cpu/slots.h"
#include "tensor/pending.h"

#define SIDE_BY_SIDE_FLOPS 4e6 /* batches of smaller products: one product a thread */

struct tutti_matmul_plan {
    tutti_gemm_plan gemm;
    tutti_gemm shape; /* pointers are set for each product */
    int64_t batch, a_count, b_count;
    int batch_rank;
    int64_t batch_dims[TUTTI_MAX_RANK], a_steps[TUTTI_MAX_RANK], b_steps[TUTTI_MAX_RANK];
    bool side_by_side;
    int threads;
    size_t gemm_bytes, a_bytes, b_bytes, y_bytes; /* parts of the workspace */
    size_t room;                   /* last of them: b packed in the first run, or 0 */
    tutti_tile_loop *load, *store; /* of 16-bit floats, else NULL */
    size_t element;
    bool bf16;        /* a, b and y as they stand */
    tutti_kept *kept; /* b packed, NULL: not */
};
typedef struct tutti_matmul_plan matmul_plan;

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
    plan->bf16 = dtype == TUTTI_BF16;
    plan->shape.a_bf16 = plan->shape.b_bf16 = plan->shape.c_bf16 = plan->bf16;
    if (dtype != TUTTI_F16)
        return;
    plan->load = tutti__tile_find(".load_f16", NULL, 0)->f32;
    plan->store = tutti__tile_find(".store_f16", NULL, 0)->f32;
    plan->a_bytes = tutti__slot_bytes((size_t)plan->a_count * sizeof(float));
    plan->b_bytes = tutti__slot_bytes((size_t)plan->b_count * sizeof(float));
    plan->y_bytes =
        tutti__slot_bytes((size_t)(plan->batch * plan->shape.m * plan->shape.n) * sizeof(float));
}

static int64_t packed_floats(const tutti_gemm *shape)
{
    return shape->m == 1 ? tutti__gemm_row_floats(shape->n, shape->k)
                         : tutti__gemm_packed_floats(shape->n, shape->k);
}

static matmul_plan make_plan(const tutti_kernel_query *query, uint32_t more)
{
    matmul_plan plan = {.threads = query->threads};
    read_shapes(&query->node, &plan);
    read_types(&query->node, &plan);
    const tutti_gemm *g = &plan.shape;
    double flops = 2.0 * (double)g->m * (double)g->n * (double)g->k;
    plan.side_by_side = plan.batch > 1 && flops < SIDE_BY_SIDE_FLOPS;
    uint32_t flags = (plan.side_by_side ? TUTTI_GEMM_ONE_THREAD | TUTTI_GEMM_PLAIN : 0) |
                     (query->deterministic ? TUTTI_GEMM_PLAIN : 0) |
                     (plan.bf16 ? TUTTI_GEMM_ROUNDED : 0) | more;
    plan.gemm = tutti__gemm_plan(g->m, g->n, g->k, flags);
    bool floats = query->node.outputs[0].dtype == TUTTI_F32 && g->n > 0 && g->k > 0;
    if (floats && plan.batch == 1 && (plan.gemm.engine == NULL || g->m == 1) &&
        plan.b_count == g->n * g->k && tutti__kept_source(query, 1) != NULL)
        plan.gemm = tutti__gemm_plan(g->m, g->n, g->k, flags | TUTTI_GEMM_PACKED);
    plan.room = plan.gemm.packed ? tutti__kept_room(packed_floats(g)) : 0;
    plan.gemm_bytes = tutti__slot_bytes(tutti__gemm_workspace(&plan.gemm));
    if (plan.side_by_side)
        plan.gemm_bytes *= (size_t)tutti__slot_count(plan.threads);
    return plan;
}

size_t tutti__matmul_workspace(const tutti_kernel_query *query, uint32_t flags)
{
    matmul_plan plan = make_plan(query, flags);
    return plan.gemm_bytes + plan.a_bytes + plan.b_bytes + plan.y_bytes + plan.room;
}

/* Panels of b [k, n] for a product of one row. */
typedef struct packing {
    const tutti_gemm *shape;
    tutti_standing b;
    int64_t strides[2];
    float *to;
} packing;

static void pack_row_piece(void *context, int64_t panel)
{
    const packing *p = context;
    tutti__gemm_pack_row_panel(p->shape->n, p->shape->k, p->b.bytes, p->strides, panel, p->to);
}

static void pack(const void *context, tutti_pool *pool, tutti_tensor *source, float *to)
{
    tutti_gemm shape = ((const matmul_plan *)context)->shape;
    if (shape.m != 1) {
        shape.b = tutti_tensor_data(source);
        tutti__gemm_pack(tutti__gemm_tile(), &shape, to);
        return;
    }
    int rank = tutti_tensor_rank(source);
    int64_t width = tutti__gemm_row_columns(tutti__gemm_tile(), shape.n);
    packing p = {.shape = &shape, .b = tutti__tensor_standing(source), .to = to};
    p.strides[0] = p.b.strides[rank - (shape.trans_b ? 1 : 2)];
    p.strides[1] = p.b.strides[rank - (shape.trans_b ? 2 : 1)];
    tutti__pool_run(pool, (shape.n + width - 1) / width, pack_row_piece, &p);
    tutti__buffer_release(p.b.holder);
}

static tutti_status matmul_product_keep(const tutti_kernel_query *query, matmul_plan *plan)
{
    char form[96];
    const tutti_gemm *shape = &plan->shape;
    snprintf(form, sizeof form, "matmul %s %s %lld%s", shape->m == 1 ? "row" : "panels",
             plan->gemm.tile->isa, (long long)shape->n, shape->trans_b ? " turned" : "");
    return tutti__kept_take(tutti__kept_source(query, 1), form, packed_floats(shape), &plan->kept);
}

bool tutti__matmul_by_library(const tutti_kernel_query *query)
{
    return make_plan(query, TUTTI_GEMM_RIVALS).gemm.engine != NULL;
}

tutti_status tutti__matmul_prepare(const tutti_kernel_query *query, uint32_t flags,
                                   tutti_matmul_plan **ret_plan)
{
    const tutti_gemm_engine *engine;
    TUTTI_TRY(tutti__gemm_engine(false, &engine));
    matmul_plan *plan = malloc(sizeof *plan);
    if (plan == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of '%s'", query->node.name);
    *plan = make_plan(query, flags);
    tutti_status status = plan->gemm.packed ? matmul_product_keep(query, plan) : TUTTI_OK;
    if (status != TUTTI_OK)
        free(plan);
    else
        *ret_plan = plan;
    return status;
}

bool tutti__matmul_reads(const void *self, int input)
{
    const tutti_matmul_plan *plan = self;
    return input != 1 || plan->kept == NULL;
}

void tutti__matmul_discard(void *self)
{
    tutti_matmul_plan *plan = self;
    if (plan != NULL)
        tutti__kept_give(plan->kept);
    free(plan);
}

typedef struct products {
    const matmul_plan *plan;
    const char *a, *b;
    const float *packed; /* b, or NULL */
    char *y;
    tutti_matmul_finish finish;
    char *workspace;
    tutti_slots slots;
} products;

static tutti_gemm product_at(const products *p, int64_t index)
{
    const matmul_plan *plan = p->plan;
    tutti_gemm gemm = plan->shape;
    int64_t a = 0, b = 0, y = index * gemm.m * gemm.n;
    for (int axis = plan->batch_rank - 1; axis >= 0; axis--) {
        int64_t at = index % plan->batch_dims[axis];
        index /= plan->batch_dims[axis];
        a += at * plan->a_steps[axis];
        b += at * plan->b_steps[axis];
    }
    size_t element = plan->bf16 ? sizeof(uint16_t) : sizeof(float);
    gemm.a = (const void *)(p->a + (size_t)a * element);
    gemm.b = p->b == NULL ? NULL : (const void *)(p->b + (size_t)b * element);
    gemm.c = (void *)(p->y + (size_t)y * element);
    gemm.packed_b = p->packed;
    gemm.bias = p->finish.bias;
    gemm.bias_bf16 = plan->bf16;
    gemm.relu = p->finish.relu;
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

static void matmul_product_multiply(const tutti_kernel_call *call, products *p)
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

/* Where B is packed in every call; NULL where it is not, for there may be no workspace at all. */
static float *room_of(const tutti_kernel_call *call, const tutti_matmul_plan *plan)
{
    if (plan->room == 0)
        return NULL;
    size_t before = plan->gemm_bytes + plan->a_bytes + plan->b_bytes + plan->y_bytes;
    return (float *)(void *)((char *)call->workspace + before);
}

void tutti__matmul_run(const tutti_kernel_call *call, const tutti_matmul_plan *plan,
                       const tutti_view *a, const tutti_view *b, tutti_matmul_finish finish)
{
    products p = {.plan = plan,
                  .a = a->data,
                  .b = b->data,
                  .packed =
                      tutti__kept_data(plan->kept, pack, plan, call->pool, room_of(call, plan)),
                  .y = call->outputs[0].data,
                  .finish = finish,
                  .workspace = call->workspace};
    if (plan->load == NULL) {
        matmul_product_multiply(call, &p);
        return;
    }
    char *floats_a = p.workspace + plan->gemm_bytes, *floats_b = floats_a + plan->a_bytes;
    char *floats_y = floats_b + plan->b_bytes;
    convert(call,
            (conversion){plan->load, p.a, floats_a, plan->element, sizeof(float), plan->a_count});
    convert(call,
            (conversion){plan->load, p.b, floats_b, plan->element, sizeof(float), plan->b_count});
    p.a = floats_a;
    p.b = floats_b;
    p.y = floats_y;
    matmul_product_multiply(call, &p);
    convert(call, (conversion){plan->store, floats_y, call->outputs[0].data, sizeof(float),
                               plan->element, plan->batch * plan->shape.m * plan->shape.n});
}
