/* rounded_node.c: kernels that are one convolution by products of bf16, see rounded.h. */
#include "device/cpu/conv/rounded.h"

bool tutti__rounded_query(const tutti_kernel_query *query, const char *isa, bool turned,
                          tutti_rounded_plan *ret_sizes)
{
    tutti_convolution c;
    return tutti__bf16_products(query->node.attrs, query->node.attr_count, isa) &&
           (turned ? tutti__conv_query(query, -1, 0, 1, &c)
                   : tutti__conv_query(query, 0, 1, -1, &c)) &&
           tutti__rounded_sizes(&c, turned, query->threads, ret_sizes);
}

int tutti__rounded_score(const tutti_kernel_query *query, const char *isa, bool turned)
{
    tutti_rounded_plan sizes;
    return tutti__rounded_query(query, isa, turned, &sizes) ? 130 : 0;
}

size_t tutti__rounded_needs(const tutti_kernel_query *query, const char *isa, bool turned)
{
    tutti_rounded_plan sizes;
    return tutti__rounded_query(query, isa, turned, &sizes) ? tutti__rounded_workspace(&sizes) : 0;
}

tutti_status tutti__rounded_prepare(const tutti_kernel_query *query, const char *isa, bool turned,
                                    void **ret_plan)
{
    tutti_rounded_plan sizes, *plan;
    tutti__rounded_query(query, isa, turned, &sizes);
    TUTTI_TRY(tutti__rounded_plan(&sizes, &plan));
    *ret_plan = plan;
    return TUTTI_OK;
}

tutti_status tutti__rounded_run_node(const tutti_kernel_call *call)
{
    const tutti_rounded_plan *plan = call->plan;
    int x = plan->turned ? 1 : 0;
    tutti__rounded_run(call, plan,
                       (tutti_rounded_layer){.x = call->inputs[x].data,
                                             .kernel = call->inputs[1 - x].data,
                                             .y = call->outputs[0].data});
    return TUTTI_OK;
}
