/* cond.c: runs one of two sub-graphs. */
#include <stdlib.h>

#include "exec/kernels/sub_graph.h"

static tutti_status cond_run(const tutti_kernel_call *call)
{
    bool yes = *(const uint8_t *)call->inputs[0].data != 0;
    const tutti_attr *body =
        tutti_attr_find(call->attrs, call->attr_count, yes ? "then_graph" : "else_graph");
    tutti_values in = {0}, out = {0};
    tutti_status status = tutti__values_borrow(call, 1, call->input_count - 1, &in);
    if (status == TUTTI_OK)
        status = tutti__values_call(call, body->value.graph, &in, &out);
    for (int i = 0; status == TUTTI_OK && i < call->output_count; i++)
        status = tutti__fill_output(call, i, out.list[i]);
    tutti__values_free(&in);
    tutti__values_free(&out);
    return status;
}

const tutti_kernel tutti_kernel_cond = {
    .name = "cond.sub_graph",
    .version = 1,
    .op = "cond",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_HOST | TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .run = cond_run,
};
