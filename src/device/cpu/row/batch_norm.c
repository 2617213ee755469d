/* batch_norm.c: y = (x - mean) r scale + offset with mean and variance of each column over all
 * rows. */
#include "device/cpu/row/batch_norm.h"

static int batch_norm_score(const tutti_kernel_query *query)
{
    return row_floats(query, ~0u) && tutti_type_count(&query->node.inputs[0]) > 0 ? 100 : 0;
}

static size_t batch_norm_workspace(const tutti_kernel_query *query)
{
    return (size_t)batch_forward_floats(&query->node.inputs[0]) * sizeof(float);
}

static tutti_status batch_norm_run(const tutti_kernel_call *call)
{
    batch_forward w = {.x = call->inputs[0].data,
                       .scale = call->inputs[1].data,
                       .offset = call->inputs[2].data,
                       .y = call->outputs[0].data,
                       .mean = call->outputs[1].data,
                       .variance = call->outputs[2].data,
                       .moments = call->workspace,
                       .matrix = norm_chunks(&call->inputs[0])};
    batch_forward_run(call, &w, (float)tutti__call_float(call, "epsilon"));
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_batch_norm) = {
    .name = "batch_norm.rows",
    .version = 2,
    .op = "batch_norm",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .inplace = 1,
    .score = batch_norm_score,
    .workspace = batch_norm_workspace,
    .run = batch_norm_run,
};
