/* matmul_dense.c: see matmul_dense.h. */
#include "device/cpu/matmul_dense.h"

#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

bool tutti__dense_take(const tutti_infer *fused, tutti_dense *ret)
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
    if (!tutti__is(add, "add") ||
        (add->types[0].dtype != TUTTI_F32 && add->types[0].dtype != TUTTI_BF16))
        return false;
    int product = tutti__is(add->inputs[0].node, "matmul") ? 0 : 1;
    ret->product = add->inputs[product].node;
    if (!tutti__is(ret->product, "matmul"))
        return false;
    ret->a = tutti__parameter_of(ret->product->inputs[0]);
    ret->b = tutti__parameter_of(ret->product->inputs[1]);
    ret->bias = tutti__parameter_of(add->inputs[1 - product]);
    return ret->a >= 0 && ret->b >= 0 && ret->bias >= 0;
}

/* What a kernel for the product alone is asked. */
tutti_kernel_query tutti__dense_query(const tutti_kernel_query *query, const tutti_dense *layer,
                                      tutti_type types[2], tutti_tensor *values[2])
{
    const tutti_node *product = layer->product;
    tutti_kernel_query inner = *query;
    types[0] = *tutti__edge_type(product->inputs[0]);
    types[1] = *tutti__edge_type(product->inputs[1]);
    values[0] = query->node.values == NULL ? NULL : query->node.values[layer->a];
    values[1] = query->node.values == NULL ? NULL : query->node.values[layer->b];
    inner.node = (tutti_infer){.op = product->op,
                               .name = query->node.name,
                               .input_count = 2,
                               .output_count = 1,
                               .inputs = types,
                               .attrs = product->attrs,
                               .attr_count = product->attr_count,
                               .values = values,
                               .outputs = product->types};
    return inner;
}

tutti_status tutti__dense_prepare(const tutti_kernel_query *query, bool bf16_tile, void **ret_plan)
{
    tutti_type types[2];
    tutti_tensor *values[2];
    tutti_dense_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of '%s'", query->node.name);
    tutti_status status = TUTTI_INTERNAL;
    if (tutti__dense_take(&query->node, &plan->layer)) {
        tutti_kernel_query product = tutti__dense_query(query, &plan->layer, types, values);
        status = tutti__matmul_prepare(&product, bf16_tile ? TUTTI_GEMM_BF16 : 0, &plan->product);
    } else {
        tutti_fail(status, "'%s' is no product with a bias", query->node.name);
    }
    if (status != TUTTI_OK)
        free(plan);
    else
        *ret_plan = plan;
    return status;
}

size_t tutti__dense_workspace(const tutti_kernel_query *query, bool bf16_tile)
{
    tutti_dense layer;
    tutti_type types[2];
    tutti_tensor *values[2];
    if (!tutti__dense_take(&query->node, &layer))
        return 0;
    tutti_kernel_query product = tutti__dense_query(query, &layer, types, values);
    return tutti__matmul_workspace(&product, bf16_tile ? TUTTI_GEMM_BF16 : 0);
}

/* b is not wanted where its panels are kept, unless it is another input as well. */
bool tutti__dense_reads(const void *self, int input)
{
    const tutti_dense_plan *plan = self;
    const tutti_dense *layer = &plan->layer;
    return input != layer->b || input == layer->a || input == layer->bias ||
           tutti__matmul_reads(plan->product, 1);
}

void tutti__dense_discard(void *self)
{
    tutti_dense_plan *plan = self;
    if (plan != NULL)
        tutti__matmul_discard(plan->product);
    free(plan);
}

tutti_status tutti__dense_run(const tutti_kernel_call *call)
{
    const tutti_dense_plan *plan = call->plan;
    const tutti_dense *layer = &plan->layer;
    tutti__matmul_run(call, plan->product, &call->inputs[layer->a], &call->inputs[layer->b],
                      (tutti_matmul_finish){call->inputs[layer->bias].data, layer->relu});
    return TUTTI_OK;
}
