/* dropout_add.c: y = residual + dropout(x) in one pass. */
#include <stdlib.h>

#include "device/cpu/fused/part.h"
#include "device/cpu/random/dropout.h"

typedef struct plan {
    int x, counter, residual; /* which inputs they are */
    dropout_draw draw;
} plan;

static bool dropout_add_make(const tutti_kernel_query *query, plan *ret)
{
    const tutti_graph *body = tutti__part_body(&query->node, "dropout_add");
    const tutti_node *dropout = body == NULL ? NULL : tutti__part_find(body, "dropout"),
                     *add = dropout == NULL ? NULL : tutti__part_find(body, "add");
    if (add == NULL || !dropout_is_whole(dropout->attrs, dropout->attr_count))
        return false;
    *ret = (plan){.x = tutti__parameter_of(dropout->inputs[0]),
                  .counter = tutti__parameter_of(dropout->inputs[1]),
                  .residual = tutti__parameter_of(add->inputs[add->inputs[0].node == dropout]),
                  .draw = dropout_draw_of(dropout->attrs, dropout->attr_count)};
    return ret->x >= 0 && ret->counter >= 0 && ret->residual >= 0 &&
           row_floats(query, 1u << ret->x | 1u << ret->residual);
}

static int dropout_add_score(const tutti_kernel_query *query)
{
    plan p;
    return dropout_add_make(query, &p) ? 100 : 0;
}

static tutti_status dropout_add_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    plan p = {0};
    dropout_add_make(query, &p);
    return tutti__kernel_keep(query, &p, sizeof p, ret_plan);
}

static tutti_status dropout_add_run(const tutti_kernel_call *call)
{
    const plan *p = call->plan;
    dropout_work w = {.count = tutti_view_count(&call->inputs[p->x]),
                      .x = call->inputs[p->x].data,
                      .residual = call->inputs[p->residual].data,
                      .y = call->outputs[0].data};
    dropout_run(call, &w, p->draw, &call->inputs[p->counter]);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_dropout_add) = {
    .name = "fused.dropout_add",
    .version = 1,
    .op = "fused",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = dropout_add_score,
    .prepare = dropout_add_prepare,
    .discard = free,
    .run = dropout_add_run,
};
