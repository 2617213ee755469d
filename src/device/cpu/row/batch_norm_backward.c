/* batch_norm_backward.c: gradients of batch norm; the formulas are in batch_norm.h. */
#include "device/cpu/row/batch_norm.h"

enum { X, SCALE, MEAN, VARIANCE, GRAD };

static int batch_norm_backward_score(const tutti_kernel_query *query)
{
    return row_floats(query, ~0u) && tutti_type_count(&query->node.inputs[0]) > 0 ? 100 : 0;
}

static size_t batch_norm_backward_workspace(const tutti_kernel_query *query)
{
    return (size_t)batch_backward_floats(&query->node.inputs[0]) * sizeof(float);
}

static tutti_status batch_norm_backward_run(const tutti_kernel_call *call)
{
    batch_backward w = {.x = call->inputs[X].data,
                        .scale = call->inputs[SCALE].data,
                        .mean = call->inputs[MEAN].data,
                        .variance = call->inputs[VARIANCE].data,
                        .given = call->inputs[GRAD].data,
                        .dx = call->outputs[0].data,
                        .partial = call->workspace,
                        .matrix = norm_chunks(&call->inputs[X])};
    batch_backward_run(call, &w, (float)tutti__call_float(call, "epsilon"), call->outputs[1].data,
                       call->outputs[2].data);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_batch_norm_backward) = {
    .name = "batch_norm_backward.rows",
    .version = 3,
    .op = "batch_norm_backward",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .score = batch_norm_backward_score,
    .workspace = batch_norm_backward_workspace,
    .run = batch_norm_backward_run,
};
