/* conv2d_bias_activation_bf16.c: y = f(conv2d(x, kernel) + bias), f the identity or relu, by
 * products of bf16, where the convolution allows them. */
#include <stdlib.h>

#include "base/isa.h"
#include "device/cpu/conv/layer.h"
#include "device/cpu/conv/rounded.h"

typedef struct layer_plan {
    tutti_conv_layer layer;
    tutti_rounded_plan sizes, *rounded;
} layer_plan;

/* Everything but the plan. */
static bool conv2d_bias_activation_bf16_make(const tutti_kernel_query *query, layer_plan *ret)
{
    ret->rounded = NULL;
    return tutti__conv_layer(&query->node, "conv2d_bias_activation", &ret->layer) &&
           tutti__bf16_products(ret->layer.attrs, ret->layer.attr_count, TUTTI_ISA_TEXT) &&
           tutti__rounded_sizes(&ret->layer.shape, false, query->threads, &ret->sizes);
}

static int conv2d_bias_activation_bf16_score(const tutti_kernel_query *query)
{
    layer_plan p;
    return conv2d_bias_activation_bf16_make(query, &p) ? 130 : 0;
}

static size_t conv2d_bias_activation_bf16_workspace(const tutti_kernel_query *query)
{
    layer_plan p;
    return conv2d_bias_activation_bf16_make(query, &p) ? tutti__rounded_workspace(&p.sizes) : 0;
}

static void conv2d_bias_activation_bf16_discard(void *pointer)
{
    layer_plan *p = pointer;
    if (p != NULL)
        free(p->rounded);
    free(p);
}

static tutti_status conv2d_bias_activation_bf16_prepare(const tutti_kernel_query *query,
                                                        void **ret_plan)
{
    layer_plan *p = malloc(sizeof *p);
    if (p == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of '%s'", query->node.name);
    conv2d_bias_activation_bf16_make(query, p);
    tutti_status status = tutti__rounded_plan(&p->sizes, &p->rounded);
    if (status != TUTTI_OK)
        free(p);
    else
        *ret_plan = p;
    return status;
}

static tutti_status conv2d_bias_activation_bf16_run(const tutti_kernel_call *call)
{
    const layer_plan *p = call->plan;
    const tutti_conv_layer *l = &p->layer;
    tutti__rounded_run(call, p->rounded,
                       (tutti_rounded_layer){.x = call->inputs[l->x].data,
                                             .kernel = call->inputs[l->kernel].data,
                                             .bias = call->inputs[l->bias].data,
                                             .y = call->outputs[0].data,
                                             .relu = l->relu});
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv2d_bias_activation_bf16) = {
    .name = "fused.conv2d_bias_activation_bf16",
    .version = 1,
    .op = "fused",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = conv2d_bias_activation_bf16_score,
    .workspace = conv2d_bias_activation_bf16_workspace,
    .prepare = conv2d_bias_activation_bf16_prepare,
    .discard = conv2d_bias_activation_bf16_discard,
    .run = conv2d_bias_activation_bf16_run,
};
