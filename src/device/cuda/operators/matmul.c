/* matmul.c: products of matrices: cuBLASLt for f32, bf16 and f16, where leading axes are one batch
 * or can be rows of one product; else tiles of our own. */
#include "device/cuda/blas/product.h"
#include "device/cuda/operators/lines.h"

static bool house_type(tutti_dtype dtype, tutti_cuda_type *ret)
{
    *ret = dtype == TUTTI_F32    ? TUTTI_CUDA_F32
           : dtype == TUTTI_BF16 ? TUTTI_CUDA_BF16
                                 : TUTTI_CUDA_F16;
    return dtype == TUTTI_F32 || dtype == TUTTI_BF16 || dtype == TUTTI_F16;
}

static tutti_status by_tiles(const tutti_cuda_call *c, const tutti_cuda_matmul *p)
{
    tutti_cuda_multiply m = {.a = p->a, .b = p->b, .y = p->y, .m = p->m, .n = p->n, .k = p->k};
    m.batch = (tutti_cuda_shape){1, {p->batch}};
    m.at_a.stride[0] = p->m * p->k;
    m.at_b.stride[0] = p->k * p->n;
    m.strides_a.row = p->transpose_a ? 1 : p->k;
    m.strides_a.column = p->transpose_a ? p->m : 1;
    m.strides_b.row = p->transpose_b ? 1 : p->n;
    m.strides_b.column = p->transpose_b ? p->k : 1;
    return tutti__cuda_multiply(c, &m);
}

tutti_status tutti__cuda_matmul(const tutti_cuda_call *c, const tutti_cuda_matmul *p)
{
    const tutti_cuda_product_plan *plan;
    tutti_cuda_product product = {.transpose_a = p->transpose_a,
                                  .transpose_b = p->transpose_b,
                                  .tf32 = c->tf32,
                                  .accumulate = p->accumulate,
                                  .any_rows = c->deterministic && !p->transpose_a,
                                  .m = p->m,
                                  .n = p->n,
                                  .k = p->k,
                                  .batch = p->batch};
    if (p->m == 0 || p->n == 0 || p->batch == 0)
        return TUTTI_OK;
    if (p->k == 0 && !p->accumulate)
        return tutti__cuda_clear(c, p->y,
                                 p->batch * p->m * p->n * (int64_t)tutti_dtype_size(p->dtype));
    if (!c->products || !house_type(p->dtype, &product.type)) {
        if (p->accumulate)
            return tutti_fail(TUTTI_UNSUPPORTED, "%s '%s': a product of %s that adds",
                              c->call->op->name, c->call->name, tutti_dtype_name(p->dtype));
        return by_tiles(c, p);
    }
    product.out = product.type;
    tutti_status status =
        tutti__cuda_product_plan(c->products, c->on.stream, &product, !c->deterministic, &plan);
    if (status == TUTTI_UNSUPPORTED && !p->accumulate)
        return by_tiles(c, p);
    if (status != TUTTI_OK)
        return status;
    return tutti__cuda_product_run(plan, c->on.stream, p->a, p->b, p->y, 0, 0);
}

/* Matrices of an input in the order of y's leading axes. */
static tutti_cuda_places batch_places(const tutti_view *x, const tutti_cuda_shape *batch)
{
    int64_t dims[TUTTI_MAX_RANK];
    int rank = x->rank - 2;
    int64_t one = x->dims[x->rank - 1] * x->dims[x->rank - 2];
    for (int i = 0; i < rank; i++)
        dims[i] = x->dims[i];
    tutti_cuda_places at = tutti__cuda_spread(batch, rank, dims);
    for (int i = 0; i < TUTTI_MAX_RANK; i++)
        at.stride[i] *= one;
    return at;
}

static int64_t batch_of(const tutti_view *x)
{
    int64_t count = 1;
    for (int i = 0; i < x->rank - 2; i++)
        count *= x->dims[i];
    return count;
}

static tutti_status matmul_run(const tutti_cuda_call *c)
{
    const tutti_view *a = &c->call->inputs[0], *b = &c->call->inputs[1], *y = &c->call->outputs[0];
    tutti_cuda_matmul p = {.dtype = y->dtype,
                           .a = tutti__cuda_in(c, 0),
                           .b = tutti__cuda_in(c, 1),
                           .y = tutti__cuda_out(c, 0),
                           .batch = batch_of(y),
                           .m = y->dims[y->rank - 2],
                           .n = y->dims[y->rank - 1]};
    p.transpose_a = tutti_attr_int(c->call->attrs, c->call->attr_count, "transpose_a") != 0;
    p.transpose_b = tutti_attr_int(c->call->attrs, c->call->attr_count, "transpose_b") != 0;
    p.k = a->dims[a->rank - 1 - p.transpose_a];
    if (batch_of(b) == 1 && !p.transpose_a && batch_of(a) == p.batch) {
        p.m *= p.batch;
        p.batch = 1;
    }
    if (p.batch == 1 || (batch_of(a) == p.batch && batch_of(b) == p.batch))
        return tutti__cuda_matmul(c, &p);
    tutti_cuda_multiply m = {.a = p.a, .b = p.b, .y = p.y, .m = p.m, .n = p.n, .k = p.k};
    m.batch = tutti__cuda_shape(y->rank - 2, y->dims);
    m.at_a = batch_places(a, &m.batch);
    m.at_b = batch_places(b, &m.batch);
    m.strides_a.row = p.transpose_a ? 1 : p.k;
    m.strides_a.column = p.transpose_a ? p.m : 1;
    m.strides_b.row = p.transpose_b ? 1 : p.n;
    m.strides_b.column = p.transpose_b ? p.k : 1;
    return tutti__cuda_multiply(c, &m);
}

static int matmul_score(const tutti_kernel_query *query)
{
    return query->node.inputs[0].dtype == query->node.inputs[1].dtype &&
                   query->node.inputs[0].rank >= 2 && query->node.inputs[1].rank >= 2
               ? 100
               : 0;
}

const tutti_cuda_kernel tutti_cuda_kernel_matmul = {
    .name = "matmul",
    .version = 1,
    .op = "matmul",
    .score = matmul_score,
    .run = matmul_run,
};
