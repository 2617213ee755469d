/* matmul_bias.c: a dense layer, y = f(a b + bias), f the identity or relu, as one product with an
 * epilogue; where cuBLASLt has none, a product and a walk over it. */
#include <string.h>

#include "device/cuda/blas/product.h"
#include "device/cuda/kernels/common.h"
#include "device/cuda/operators/lines.h"
#include "graph/graph.h"
#include "tables/cuda_texts.h"

/* What the body says: which inputs are which. */
typedef struct dense {
    int a, b, bias;
    bool transpose_a, transpose_b, relu;
} dense;

static int input_of(tutti_edge edge)
{
    return tutti__is(edge.node, "parameter") ? (int)tutti__int(edge.node, "index") : -1;
}

static bool dense_read(const tutti_infer *node, dense *ret)
{
    const tutti_attr *body = tutti_attr_find(node->attrs, node->attr_count, "body");
    if (!body || node->output_count != 1 || node->input_count != 3 ||
        strcmp(tutti_attr_string(node->attrs, node->attr_count, "pattern"),
               "matmul_bias_activation") != 0)
        return false;
    const tutti_node *add = body->value.graph->results.data[0].node;
    ret->relu = tutti__is(add, "relu");
    add = ret->relu ? add->inputs[0].node : add;
    if (!tutti__is(add, "add"))
        return false;
    int product = tutti__is(add->inputs[0].node, "matmul") ? 0 : 1;
    const tutti_node *matmul = add->inputs[product].node;
    if (!tutti__is(matmul, "matmul"))
        return false;
    ret->a = input_of(matmul->inputs[0]);
    ret->b = input_of(matmul->inputs[1]);
    ret->bias = input_of(add->inputs[1 - product]);
    ret->transpose_a = tutti__int(matmul, "transpose_a") != 0;
    ret->transpose_b = tutti__int(matmul, "transpose_b") != 0;
    return ret->a >= 0 && ret->b >= 0 && ret->bias >= 0;
}

/* One matrix b for all rows of a, whatever leading axes these have. */
static int matmul_bias_score(const tutti_kernel_query *query)
{
    dense d;
    const tutti_infer *node = &query->node;
    if (!dense_read(node, &d))
        return 0;
    const tutti_type *a = &node->inputs[d.a], *b = &node->inputs[d.b],
                     *bias = &node->inputs[d.bias];
    const tutti_type *y = &node->outputs[0];
    bool type = y->dtype == TUTTI_F32 || y->dtype == TUTTI_BF16 || y->dtype == TUTTI_F16;
    return type && !query->deterministic && a->dtype == y->dtype && b->dtype == y->dtype &&
                   bias->dtype == y->dtype && b->rank == 2 && a->rank >= 2 &&
                   (a->rank == 2 || !d.transpose_a) &&
                   tutti__cuda_type_count(bias) == y->dims[y->rank - 1]
               ? 100
               : 0;
}

static tutti_status walk(const tutti_cuda_call *c, const dense *d, int64_t count, int64_t columns)
{
    tutti_cu_pointer y = tutti__cuda_out(c, 0), bias = tutti__cuda_in(c, d->bias);
    int relu = d->relu;
    return tutti__cuda_start(c, &tutti_cuda_source_small, "add_row", tutti__cuda_blocks(count), 256,
                             (void *[]){&y, &bias, &count, &columns, &relu}, "-DTYPE=%s",
                             tutti__cuda_dtype(c->call->outputs[0].dtype));
}

static tutti_status matmul_bias_run(const tutti_cuda_call *c)
{
    dense d;
    const tutti_kernel_call *call = c->call;
    const tutti_cuda_product_plan *plan;
    tutti_infer node = {.op = call->op,
                        .attrs = call->attrs,
                        .attr_count = call->attr_count,
                        .input_count = call->input_count,
                        .output_count = call->output_count};
    if (!dense_read(&node, &d))
        return tutti_fail(TUTTI_INTERNAL, "'%s' is no dense layer", call->name);
    const tutti_view *a = &call->inputs[d.a], *y = &call->outputs[0];
    int64_t columns = y->dims[y->rank - 1], count = tutti__cuda_count(y);
    if (count == 0)
        return TUTTI_OK;
    int64_t rows = count / columns, k = a->dims[d.transpose_a ? a->rank - 2 : a->rank - 1];
    tutti_cuda_type type = y->dtype == TUTTI_F32    ? TUTTI_CUDA_F32
                           : y->dtype == TUTTI_BF16 ? TUTTI_CUDA_BF16
                                                    : TUTTI_CUDA_F16;
    tutti_cuda_product product = {.type = type,
                                  .out = type,
                                  .transpose_a = d.transpose_a,
                                  .transpose_b = d.transpose_b,
                                  .tf32 = c->tf32,
                                  .m = rows,
                                  .n = columns,
                                  .k = k,
                                  .epilogue = d.relu ? TUTTI_CUDA_BIAS_RELU : TUTTI_CUDA_BIAS};
    if (c->products && k > 0 &&
        tutti__cuda_product_plan(c->products, c->on.stream, &product, true, &plan) == TUTTI_OK)
        return tutti__cuda_product_run(plan, c->on.stream, tutti__cuda_in(c, d.a),
                                       tutti__cuda_in(c, d.b), tutti__cuda_out(c, 0),
                                       tutti__cuda_in(c, d.bias), 0);
    TUTTI_TRY(tutti__cuda_matmul(c, &(tutti_cuda_matmul){.dtype = y->dtype,
                                                         .a = tutti__cuda_in(c, d.a),
                                                         .b = tutti__cuda_in(c, d.b),
                                                         .y = tutti__cuda_out(c, 0),
                                                         .batch = 1,
                                                         .m = rows,
                                                         .n = columns,
                                                         .k = k,
                                                         .transpose_a = d.transpose_a,
                                                         .transpose_b = d.transpose_b}));
    return walk(c, &d, count, columns);
}

const tutti_cuda_kernel tutti_cuda_kernel_matmul_bias = {
    .name = "matmul.bias",
    .version = 1,
    .op = "fused",
    .score = matmul_bias_score,
    .run = matmul_bias_run,
};
