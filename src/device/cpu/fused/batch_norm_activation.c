/* batch_norm_activation.c: y = relu(batch_norm(x) + residual) in the two passes that batch norm
 * itself takes. */
#include <stdlib.h>

#include "device/cpu/fused/part.h"
#include "device/cpu/row/batch_norm.h"

typedef struct plan {
    int x, scale, offset, residual; /* which inputs they are; residual -1: none */
    int y, mean, variance;          /* which outputs; -1: not wanted */
    float epsilon;
} plan;

static bool batch_norm_activation_make(const tutti_kernel_query *query, plan *ret)
{
    const tutti_graph *body = tutti__part_body(&query->node, "batch_norm_activation");
    const tutti_node *norm = body == NULL ? NULL : tutti__part_find(body, "batch_norm"),
                     *relu = norm == NULL ? NULL : tutti__part_find(body, "relu");
    if (relu == NULL || !row_floats(query, ~0u) || tutti_type_count(&norm->types[0]) == 0)
        return false;
    const tutti_node *add = tutti__part_find(body, "add");
    *ret = (plan){.x = tutti__parameter_of(norm->inputs[0]),
                  .scale = tutti__parameter_of(norm->inputs[1]),
                  .offset = tutti__parameter_of(norm->inputs[2]),
                  .residual = -1,
                  .y = tutti__part_result(body, relu, 0),
                  .mean = tutti__part_result(body, norm, 1),
                  .variance = tutti__part_result(body, norm, 2),
                  .epsilon = (float)tutti__float(norm, "epsilon")};
    if (add != NULL)
        ret->residual = tutti__parameter_of(add->inputs[add->inputs[0].node == norm ? 1 : 0]);
    return ret->x >= 0 && ret->scale >= 0 && ret->offset >= 0 && ret->y >= 0 &&
           (add == NULL || ret->residual >= 0) && tutti__part_result(body, norm, 0) < 0;
}

static int batch_norm_activation_score(const tutti_kernel_query *query)
{
    plan p;
    return batch_norm_activation_make(query, &p) ? 100 : 0;
}

/* As batch norm, and mean and variance where nobody wants them. */
static size_t batch_norm_activation_workspace(const tutti_kernel_query *query)
{
    plan p;
    if (!batch_norm_activation_make(query, &p))
        return 0;
    const tutti_type *x = &query->node.inputs[p.x];
    return (size_t)(batch_forward_floats(x) + 2 * x->dims[x->rank - 1]) * sizeof(float);
}

static tutti_status batch_norm_activation_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    plan p = {0};
    batch_norm_activation_make(query, &p);
    return tutti__kernel_keep(query, &p, sizeof p, ret_plan);
}

static tutti_status batch_norm_activation_run(const tutti_kernel_call *call)
{
    const plan *p = call->plan;
    batch_forward w = {.x = call->inputs[p->x].data,
                       .scale = call->inputs[p->scale].data,
                       .offset = call->inputs[p->offset].data,
                       .residual = p->residual < 0 ? NULL : call->inputs[p->residual].data,
                       .y = call->outputs[p->y].data,
                       .matrix = norm_chunks(&call->inputs[p->x]),
                       .relu = true};
    float *own = call->workspace;
    w.mean = p->mean < 0 ? own : call->outputs[p->mean].data;
    w.variance = p->variance < 0 ? own + w.matrix.columns : call->outputs[p->variance].data;
    w.moments = own + 2 * w.matrix.columns;
    batch_forward_run(call, &w, p->epsilon);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_batch_norm_activation) = {
    .name = "fused.batch_norm_activation",
    .version = 2,
    .op = "fused",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .score = batch_norm_activation_score,
    .workspace = batch_norm_activation_workspace,
    .prepare = batch_norm_activation_prepare,
    .discard = free,
    .run = batch_norm_activation_run,
};
