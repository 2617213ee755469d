/* dropout.c: y = x / (1 - rate) where a random number is at least rate, else 0. */
#include "device/cpu/random/dropout.h"

static int dropout_score(const tutti_kernel_query *query)
{
    bool whole = dropout_is_whole(query->node.attrs, query->node.attr_count);
    return whole && row_floats(query, 1) ? 100 : 0;
}

static tutti_status run(const tutti_kernel_call *call)
{
    dropout_work w = {.count = tutti_view_count(&call->inputs[0]),
                      .x = call->inputs[0].data,
                      .y = call->outputs[0].data};
    dropout_run(call, &w, dropout_draw_of(call->attrs, call->attr_count), &call->inputs[1]);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_dropout) = {
    .name = "dropout.blocks",
    .version = 1,
    .op = "dropout",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .inplace = 1,
    .score = dropout_score,
    .run = run,
};
