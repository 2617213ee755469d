/* relu_pool_gradient.c: from y = relu(z) and the gradient of max_pool2d(y) that of z, in one pass
 * over the map. */
#include "base/isa.h"
#include "device/cpu/pool/max_gradient.h"
#include "graph/graph.h"

typedef struct gradient_plan {
    pool_plan pool;
    int y, grad; /* inputs */
} gradient_plan;

/* The pool's gradient in the body; NULL when it is of another pattern or no floats. */
static const tutti_node *take_apart(const tutti_infer *fused)
{
    const tutti_attr *body = tutti_attr_find(fused->attrs, fused->attr_count, "body");
    if (strcmp(tutti_attr_string(fused->attrs, fused->attr_count, "pattern"),
               "relu_pool_gradient") != 0 ||
        body == NULL || body->value.graph->results.count != 1)
        return NULL;
    const tutti_node *where = body->value.graph->results.data[0].node,
                     *pool = where->inputs[1].node;
    const tutti_type *type = &where->types[0];
    bool plain = type->dtype == TUTTI_F32 && tutti_type_is_static(type);
    return plain && tutti__parameter_of(pool->inputs[0]) >= 0 &&
                   tutti__parameter_of(pool->inputs[1]) >= 0
               ? pool
               : NULL;
}

static int relu_pool_gradient_score(const tutti_kernel_query *query)
{
    return take_apart(&query->node) != NULL ? 100 : 0;
}

static tutti_status relu_pool_gradient_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    const tutti_node *pool = take_apart(&query->node);
    gradient_plan p = {.y = tutti__parameter_of(pool->inputs[0]),
                       .grad = tutti__parameter_of(pool->inputs[1])};
    pool_plan_make(pool->attrs, pool->attr_count, tutti__edge_type(pool->inputs[0])->dims, &p.pool);
    return tutti__kernel_keep(query, &p, sizeof p, ret_plan);
}

static void run_image(void *context, int64_t image)
{
    max_gradient_image(true, context, image);
}

static tutti_status relu_pool_gradient_run(const tutti_kernel_call *call)
{
    const gradient_plan *p = call->plan;
    max_gradient w = {&p->pool, call->inputs[p->y].data, call->inputs[p->grad].data,
                      call->outputs[0].data};
    tutti_parallel(call, p->pool.batch, run_image, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_relu_pool_gradient) = {
    .name = "fused.relu_pool_gradient",
    .version = 2,
    .op = "fused",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = relu_pool_gradient_score,
    .prepare = relu_pool_gradient_prepare,
    .discard = free,
    .run = relu_pool_gradient_run,
};
