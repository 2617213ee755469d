/* conv2d_bias_activation.c: y = f(conv2d(x, kernel) + bias), f the identity or relu: bias and f
 * while the sums are in registers. */
#include "base/isa.h"
#include "device/cpu/conv/direct.h"
#include "device/cpu/conv/layer.h"
#include "device/cpu/conv/winograd_run.h"

typedef struct layer_plan {
    tutti_conv_layer layer;
    bool tiles; /* by transformed tiles, or direct */
    winograd_plan winograd;
    tutti_conv_windows *walk;
} layer_plan;

/* Everything but the walk. */
static bool conv2d_bias_activation_make(const tutti_kernel_query *query, layer_plan *ret)
{
    if (!tutti__conv_layer(&query->node, "conv2d_bias_activation", &ret->layer))
        return false;
    ret->tiles = winograd_plan_make(query, &ret->layer.shape, false, &ret->winograd) &&
                 winograd_pays(&ret->winograd);
    return true;
}

static int conv2d_bias_activation_score(const tutti_kernel_query *query)
{
    layer_plan p;
    return conv2d_bias_activation_make(query, &p) ? 100 : 0;
}

static size_t conv2d_bias_activation_workspace(const tutti_kernel_query *query)
{
    layer_plan p;
    if (!conv2d_bias_activation_make(query, &p))
        return 0;
    tutti_conv_windows sizes = tutti__conv_windows_sizes(&p.layer.shape, false);
    return p.tiles ? winograd_workspace(&p.winograd) : direct_workspace(&sizes);
}

static void conv2d_bias_activation_discard(void *pointer)
{
    layer_plan *p = pointer;
    if (p != NULL)
        free(p->walk);
    free(p);
}

static tutti_status conv2d_bias_activation_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    layer_plan *p = calloc(1, sizeof *p);
    if (p == NULL || !conv2d_bias_activation_make(query, p)) {
        free(p);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of '%s'", query->node.name);
    }
    tutti_status status = tutti__conv_windows(&p->layer.shape, false, &p->walk);
    if (status != TUTTI_OK)
        conv2d_bias_activation_discard(p);
    else
        *ret_plan = p;
    return status;
}

static tutti_status conv2d_bias_activation_run(const tutti_kernel_call *call)
{
    const layer_plan *p = call->plan;
    const float *x = call->inputs[p->layer.x].data, *kernel = call->inputs[p->layer.kernel].data,
                *bias = call->inputs[p->layer.bias].data;
    conv_finish finish = conv_finish_of(bias, p->layer.relu);
    if (p->tiles) {
        winograd_run(call, &p->winograd, false, x, kernel, NULL, &finish);
        return TUTTI_OK;
    }
    direct_work work = {.x = x, .kernel = kernel, .y = call->outputs[0].data, .finish = finish};
    direct_run(call, p->walk, &work);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv2d_bias_activation) = {
    .name = "fused.conv2d_bias_activation",
    .version = 1,
    .op = "fused",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = conv2d_bias_activation_score,
    .workspace = conv2d_bias_activation_workspace,
    .prepare = conv2d_bias_activation_prepare,
    .discard = conv2d_bias_activation_discard,
    .run = conv2d_bias_activation_run,
};
