/* loss_and_gradient.c: the sparse cross entropy of rows of logits beside its gradient, in one pass
 * over them; logits of 16 bits, whose loss is computed in 32, are never widened in memory. */
#include <string.h>

#include "device/cuda/kernels/common.h"
#include "device/cuda/operators/operator.h"
#include "graph/graph.h"

enum { LOGITS, LABELS, GRAD, GRADIENT = 0, LOSS = 1 };

static bool house_type(tutti_dtype dtype, tutti_cuda_type *ret)
{
    *ret = dtype == TUTTI_F32    ? TUTTI_CUDA_F32
           : dtype == TUTTI_BF16 ? TUTTI_CUDA_BF16
                                 : TUTTI_CUDA_F16;
    return dtype == TUTTI_F32 || dtype == TUTTI_BF16 || dtype == TUTTI_F16;
}

static tutti_edge behind_cast(tutti_edge edge)
{
    return tutti__is(edge.node, "cast") ? edge.node->inputs[0] : edge;
}

static bool is_input(tutti_edge edge, int index)
{
    edge = behind_cast(edge);
    return tutti__is(edge.node, "parameter") && (int)tutti__int(edge.node, "index") == index;
}

static int loss_and_gradient_score(const tutti_kernel_query *query)
{
    tutti_cuda_type type;
    const tutti_infer *node = &query->node;
    const tutti_attr *body = tutti_attr_find(node->attrs, node->attr_count, "body");
    const tutti_type *logits = &node->inputs[LOGITS];
    if (!body || node->input_count != 3 || node->output_count != 2 ||
        strcmp(tutti_attr_string(node->attrs, node->attr_count, "pattern"), "loss_and_gradient") !=
            0 ||
        !house_type(logits->dtype, &type) || logits->rank < 1 ||
        logits->dims[logits->rank - 1] > TUTTI_CUDA_MOST_CLASSES ||
        node->inputs[GRAD].dtype != TUTTI_F32 || node->outputs[LOSS].dtype != TUTTI_F32 ||
        node->outputs[GRADIENT].dtype != logits->dtype ||
        (node->inputs[LABELS].dtype != TUTTI_I32 && node->inputs[LABELS].dtype != TUTTI_I64))
        return 0;
    const tutti_edge *results = body->value.graph->results.data;
    tutti_edge back = behind_cast(results[GRADIENT]), loss = results[LOSS];
    if (!tutti__is(back.node, "sparse_softmax_cross_entropy_backward") ||
        !tutti__is(loss.node, "sparse_softmax_cross_entropy"))
        return 0;
    for (int i = 0; i < 3; i++)
        if (!is_input(back.node->inputs[i], i) || (i < 2 && !is_input(loss.node->inputs[i], i)))
            return 0;
    return 100;
}

static tutti_status loss_and_gradient_run(const tutti_cuda_call *c)
{
    const tutti_view *logits = &c->call->inputs[LOGITS];
    int width = (int)logits->dims[logits->rank - 1];
    tutti_cuda_cross_entropy call = {.logits = tutti__cuda_in(c, LOGITS),
                                     .labels = tutti__cuda_in(c, LABELS),
                                     .index = tutti__cuda_dtype(c->call->inputs[LABELS].dtype),
                                     .rows = tutti__cuda_count(&c->call->inputs[LABELS]),
                                     .width = width,
                                     .stride = width,
                                     .scales = tutti__cuda_in(c, GRAD),
                                     .loss = tutti__cuda_out(c, LOSS),
                                     .gradient = tutti__cuda_out(c, GRADIENT),
                                     .fault = c->fault};
    house_type(logits->dtype, &call.type);
    return call.rows > 0 ? tutti__cuda_softmax_cross_entropy(c->on, &call) : TUTTI_OK;
}

const tutti_cuda_kernel tutti_cuda_kernel_loss_and_gradient = {
    .name = "loss_and_gradient",
    .version = 1,
    .op = "fused_checked",
    .inplace = 1,
    .score = loss_and_gradient_score,
    .run = loss_and_gradient_run,
};
