/* matmul_bias_activation.c: y = f(a b + bias), bias a row, f the identity or relu: the product by
 * the best kernel for it, then bias and f in place, rows side by side. */
#include <stdlib.h>
#include <string.h>

#include "device/cpu/isa.h"
#include "graph/graph.h"
#include "program/isa.h"

enum { PIECE = 16384 }; /* elements that one piece finishes */

/* A fused body of the pattern, taken apart. */
typedef struct dense_layer {
    const tutti_node *product;
    int a, b, bias; /* which inputs of the fused node they are */
    bool relu;
} dense_layer;

typedef struct dense_plan {
    const tutti_kernel *kernel; /* of the product */
    void *plan;                 /* and its plan */
    const tutti_node *product;
    int a, b, bias;
    bool relu;
    int64_t rows, columns;
} dense_plan;

/* The number of the parameter behind an edge; -1 when it is none. */
static int parameter_of(tutti_edge edge)
{
    return tutti__is(edge.node, "parameter") ? (int)tutti__int(edge.node, "index") : -1;
}

static bool take_apart(const tutti_infer *fused, dense_layer *ret)
{
    const tutti_attr *body = tutti_attr_find(fused->attrs, fused->attr_count, "body");
    if (strcmp(tutti_attr_string(fused->attrs, fused->attr_count, "pattern"),
               "matmul_bias_activation") != 0 ||
        body == NULL || body->value.graph->results.count != 1)
        return false;
    const tutti_node *add = body->value.graph->results.data[0].node;
    ret->relu = tutti__is(add, "relu");
    if (ret->relu)
        add = add->inputs[0].node;
    if (!tutti__is(add, "add") || add->types[0].dtype != TUTTI_F32)
        return false;
    int product = tutti__is(add->inputs[0].node, "matmul") ? 0 : 1;
    ret->product = add->inputs[product].node;
    if (!tutti__is(ret->product, "matmul"))
        return false;
    ret->a = parameter_of(ret->product->inputs[0]);
    ret->b = parameter_of(ret->product->inputs[1]);
    ret->bias = parameter_of(add->inputs[1 - product]);
    return ret->a >= 0 && ret->b >= 0 && ret->bias >= 0;
}

/* What a kernel for the product alone is asked. */
static tutti_kernel_query product_query(const tutti_kernel_query *query, const dense_layer *layer,
                                        tutti_type types[2])
{
    const tutti_node *product = layer->product;
    tutti_kernel_query inner = *query;
    types[0] = *tutti__edge_type(product->inputs[0]);
    types[1] = *tutti__edge_type(product->inputs[1]);
    inner.node = (tutti_infer){.op = product->op,
                               .name = query->node.name,
                               .input_count = 2,
                               .output_count = 1,
                               .inputs = types,
                               .attrs = product->attrs,
                               .attr_count = product->attr_count,
                               .outputs = product->types};
    return inner;
}

static int score(const tutti_kernel_query *query)
{
    dense_layer layer;
    tutti_type types[2];
    if (strcmp(TUTTI_ISA_TEXT, tutti__best_isa()) != 0 || !take_apart(&query->node, &layer))
        return 0;
    tutti_kernel_query inner = product_query(query, &layer, types);
    return tutti__kernel_pick("cpu", &inner) != NULL ? 100 : 0;
}

static size_t workspace(const tutti_kernel_query *query)
{
    dense_layer layer;
    tutti_type types[2];
    if (!take_apart(&query->node, &layer))
        return 0;
    tutti_kernel_query inner = product_query(query, &layer, types);
    const tutti_kernel *kernel = tutti__kernel_pick("cpu", &inner);
    return kernel != NULL && kernel->workspace != NULL ? kernel->workspace(&inner) : 0;
}

static tutti_status prepare(const tutti_kernel_query *query, void **ret_plan)
{
    dense_layer layer;
    tutti_type types[2];
    if (!take_apart(&query->node, &layer))
        return tutti_fail(TUTTI_INTERNAL, "'%s' is no product with a bias", query->node.name);
    tutti_kernel_query inner = product_query(query, &layer, types);
    const tutti_type *y = &layer.product->types[0];
    dense_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of '%s'", query->node.name);
    *plan = (dense_plan){.kernel = tutti__kernel_pick("cpu", &inner),
                         .product = layer.product,
                         .a = layer.a,
                         .b = layer.b,
                         .bias = layer.bias,
                         .relu = layer.relu,
                         .columns = y->dims[y->rank - 1]};
    plan->rows = plan->columns > 0 ? tutti_type_count(y) / plan->columns : 0;
    tutti_status status =
        plan->kernel->prepare != NULL ? plan->kernel->prepare(&inner, &plan->plan) : TUTTI_OK;
    if (status != TUTTI_OK)
        free(plan);
    else
        *ret_plan = plan;
    return status;
}

static void discard(void *self)
{
    dense_plan *plan = self;
    if (plan != NULL && plan->kernel->discard != NULL)
        plan->kernel->discard(plan->plan);
    free(plan);
}

typedef struct finish {
    const dense_plan *plan;
    const float *bias;
    float *y;
    int64_t rows; /* of one piece */
} finish;

/* As relu says: a NaN stays one. */
static void add_row(float *restrict y, const float *restrict bias, int64_t count, bool relu)
{
    if (!relu) {
        for (int64_t i = 0; i < count; i++)
            y[i] = y[i] + bias[i];
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        float sum = y[i] + bias[i];
        y[i] = sum <= 0 ? 0 : sum;
    }
}

static void finish_piece(void *context, int64_t index)
{
    const finish *f = context;
    int64_t columns = f->plan->columns, first = index * f->rows, end = first + f->rows;
    end = end < f->plan->rows ? end : f->plan->rows;
    for (int64_t row = first; row < end; row++)
        add_row(f->y + row * columns, f->bias, columns, f->plan->relu);
}

static tutti_status run(const tutti_call *call)
{
    const dense_plan *plan = call->plan;
    tutti_view inputs[2] = {call->inputs[plan->a], call->inputs[plan->b]};
    tutti_call product = *call;
    product.op = plan->product->op;
    product.attrs = plan->product->attrs;
    product.attr_count = plan->product->attr_count;
    product.input_count = 2;
    product.inputs = inputs;
    product.plan = plan->plan;
    TUTTI_TRY(plan->kernel->run(&product));
    finish f = {.plan = plan, .bias = call->inputs[plan->bias].data, .y = call->outputs[0].data};
    f.rows = plan->columns < PIECE ? PIECE / (plan->columns > 0 ? plan->columns : 1) : 1;
    tutti_parallel(call, (plan->rows + f.rows - 1) / f.rows, finish_piece, &f);
    return TUTTI_OK;
}

/* Row-invariant when the product's kernel is, which deterministic mode sees to. */
const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_matmul_bias_activation) = {
    .name = "fused.matmul_bias_activation",
    .version = 1,
    .op = "fused",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = score,
    .workspace = workspace,
    .prepare = prepare,
    .discard = discard,
    .run = run,
};
