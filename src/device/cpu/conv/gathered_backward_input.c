/* gathered_backward_input.c: the gradient of a convolution's input by gathering, see gathered.h: of
 * several groups, and over volumes. */
#include "base/isa.h"
#include "device/cpu/conv/direct.h"
#include "device/cpu/conv/gathered.h"
#include "device/cpu/conv/has_nan.h"

typedef struct gathered_plan {
    tutti_gathering gathering;
    tutti_conv_windows *walk;
} gathered_plan;

static int score_volume(const tutti_kernel_query *query)
{
    tutti_gathering g;
    return tutti__gathering(query, -1, 0, 1, true, &g) ? 100 : 0;
}

static int score_groups(const tutti_kernel_query *query)
{
    tutti_gathering g;
    return tutti__gathering(query, -1, 0, 1, true, &g) && g.whole.groups * g.joined > 1 ? 60 : 0;
}

static size_t gathered_backward_input_workspace(const tutti_kernel_query *query)
{
    tutti_gathering g;
    if (!tutti__gathering(query, -1, 0, 1, true, &g))
        return 0;
    tutti_conv_windows sizes = tutti__conv_windows_sizes(&g.part, true);
    return (size_t)(g.x + g.kernel + g.y) * sizeof(float) + direct_workspace(&sizes);
}

static tutti_status gathered_backward_input_prepare(const tutti_kernel_query *query,
                                                    void **ret_plan)
{
    gathered_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of a convolution");
    tutti__gathering(query, -1, 0, 1, true, &plan->gathering);
    plan->gathering.has_nan = has_nan;
    tutti_status status = tutti__conv_windows(&plan->gathering.part, true, &plan->walk);
    if (status != TUTTI_OK)
        free(plan);
    else
        *ret_plan = plan;
    return status;
}

static void gathered_backward_input_discard(void *pointer)
{
    gathered_plan *plan = pointer;
    if (plan != NULL)
        free(plan->walk);
    free(plan);
}

/* The workspace holds x's gradient, the kernel and grad as gathered, then direct_run's own. */
static tutti_status gathered_backward_input_run(const tutti_kernel_call *call)
{
    const gathered_plan *plan = call->plan;
    const tutti_gathering *g = &plan->gathering;
    float *x = call->workspace, *kernel = x + g->x, *grad = kernel + g->kernel;
    tutti_kernel_call inner = *call;
    inner.workspace = grad + g->y;
    for (int64_t set = 0; set < g->whole.groups; set++) {
        tutti__gather_kernel(call, g, set, call->inputs[0].data, kernel);
        for (int64_t round = 0; round < g->rounds; round++) {
            const float *from = tutti__gather_y(call, g, set, round, call->inputs[1].data, grad);
            direct_work work = {.x = from,
                                .kernel = kernel,
                                .y = x,
                                .backward = true,
                                .finish = conv_finish_of(NULL, false)};
            direct_run(&inner, plan->walk, &work);
            tutti__scatter_x(call, g, set, round, from, kernel, x, call->outputs[0].data);
        }
    }
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv2d_backward_input_grouped) = {
    .name = "conv2d_backward_input.grouped",
    .version = 2,
    .op = "conv2d_backward_input",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = score_groups,
    .workspace = gathered_backward_input_workspace,
    .prepare = gathered_backward_input_prepare,
    .discard = gathered_backward_input_discard,
    .run = gathered_backward_input_run,
};

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv3d_backward_input_gathered) = {
    .name = "conv3d_backward_input.gathered",
    .version = 2,
    .op = "conv3d_backward_input",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = score_volume,
    .workspace = gathered_backward_input_workspace,
    .prepare = gathered_backward_input_prepare,
    .discard = gathered_backward_input_discard,
    .run = gathered_backward_input_run,
};
