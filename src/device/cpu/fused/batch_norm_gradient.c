/* batch_norm_gradient.c: the gradients of y = relu(batch_norm(x) + residual): the gradient of y is
 * summed and masked in the first of the two passes that batch norm's gradient takes. */
#include <stdlib.h>

#include "device/cpu/fused/part.h"
#include "device/cpu/row/batch_norm.h"

enum { X, SCALE, MEAN, VARIANCE, GRAD };

typedef struct plan {
    int inputs[GRAD];              /* which inputs x, scale, mean and variance are */
    int given, more, y;            /* the same; more -1: none */
    int masked, dx, scale, offset; /* which outputs; -1: not wanted */
    float epsilon;
} plan;

static bool batch_norm_gradient_make(const tutti_kernel_query *query, plan *ret)
{
    const tutti_graph *body = tutti__part_body(&query->node, "batch_norm_gradient");
    const tutti_node *norm = body == NULL ? NULL : tutti__part_find(body, "batch_norm_backward"),
                     *mask = norm == NULL ? NULL : tutti__part_find(body, "where");
    if (mask == NULL || !row_floats(query, ~0u) || tutti_type_count(&norm->types[0]) == 0)
        return false;
    const tutti_node *add = tutti__part_find(body, "add");
    *ret = (plan){.given = tutti__parameter_of(add != NULL ? add->inputs[0] : mask->inputs[1]),
                  .more = add != NULL ? tutti__parameter_of(add->inputs[1]) : -1,
                  .y = tutti__parameter_of(mask->inputs[0].node->inputs[0]),
                  .masked = tutti__part_result(body, mask, 0),
                  .dx = tutti__part_result(body, norm, 0),
                  .scale = tutti__part_result(body, norm, 1),
                  .offset = tutti__part_result(body, norm, 2),
                  .epsilon = (float)tutti__float(norm, "epsilon")};
    bool known = ret->given >= 0 && ret->y >= 0 && ret->dx >= 0 && (add == NULL || ret->more >= 0);
    for (int i = 0; i < GRAD; i++) {
        ret->inputs[i] = tutti__parameter_of(norm->inputs[i]);
        known = known && ret->inputs[i] >= 0;
    }
    return known;
}

static int batch_norm_gradient_score(const tutti_kernel_query *query)
{
    plan p;
    return batch_norm_gradient_make(query, &p) ? 100 : 0;
}

static size_t batch_norm_gradient_workspace(const tutti_kernel_query *query)
{
    plan p;
    return batch_norm_gradient_make(query, &p)
               ? (size_t)batch_backward_floats(&query->node.inputs[p.inputs[X]]) * sizeof(float)
               : 0;
}

static tutti_status batch_norm_gradient_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    plan p = {0};
    batch_norm_gradient_make(query, &p);
    return tutti__kernel_keep(query, &p, sizeof p, ret_plan);
}

static float *output_of(const tutti_kernel_call *call, int index)
{
    return index < 0 ? NULL : call->outputs[index].data;
}

/* Where nobody wants the masked gradient, it stands in dx until that is made of it. */
static tutti_status batch_norm_gradient_run(const tutti_kernel_call *call)
{
    const plan *p = call->plan;
    batch_backward w = {.x = call->inputs[p->inputs[X]].data,
                        .scale = call->inputs[p->inputs[SCALE]].data,
                        .mean = call->inputs[p->inputs[MEAN]].data,
                        .variance = call->inputs[p->inputs[VARIANCE]].data,
                        .given = call->inputs[p->given].data,
                        .more = p->more < 0 ? NULL : call->inputs[p->more].data,
                        .y = call->inputs[p->y].data,
                        .dx = call->outputs[p->dx].data,
                        .masked = output_of(call, p->masked < 0 ? p->dx : p->masked),
                        .partial = call->workspace,
                        .matrix = norm_chunks(&call->inputs[p->inputs[X]])};
    batch_backward_run(call, &w, p->epsilon, output_of(call, p->scale), output_of(call, p->offset));
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_batch_norm_gradient) = {
    .name = "fused.batch_norm_gradient",
    .version = 2,
    .op = "fused",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .score = batch_norm_gradient_score,
    .workspace = batch_norm_gradient_workspace,
    .prepare = batch_norm_gradient_prepare,
    .discard = free,
    .run = batch_norm_gradient_run,
};
