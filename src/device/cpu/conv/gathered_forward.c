/* gathered_forward.c: convolutions by gathering, see gathered.h: of several groups, and over
 * volumes. */
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
    return tutti__gathering(query, 0, 1, -1, false, &g) ? 100 : 0;
}

static int score_groups(const tutti_kernel_query *query)
{
    tutti_gathering g;
    return tutti__gathering(query, 0, 1, -1, false, &g) && g.whole.groups * g.joined > 1 ? 60 : 0;
}

static size_t gathered_forward_workspace(const tutti_kernel_query *query)
{
    tutti_gathering g;
    if (!tutti__gathering(query, 0, 1, -1, false, &g))
        return 0;
    tutti_conv_windows sizes = tutti__conv_windows_sizes(&g.part, false);
    return (size_t)(g.x + g.kernel + g.y) * sizeof(float) + direct_workspace(&sizes);
}

static tutti_status gathered_forward_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    gathered_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of a convolution");
    tutti__gathering(query, 0, 1, -1, false, &plan->gathering);
    plan->gathering.has_nan = has_nan;
    tutti_status status = tutti__conv_windows(&plan->gathering.part, false, &plan->walk);
    if (status != TUTTI_OK)
        free(plan);
    else
        *ret_plan = plan;
    return status;
}

static void gathered_forward_discard(void *pointer)
{
    gathered_plan *plan = pointer;
    if (plan != NULL)
        free(plan->walk);
    free(plan);
}

/* The workspace holds x, the kernel and y as gathered, then direct_run's own. */
static tutti_status gathered_forward_run(const tutti_kernel_call *call)
{
    const gathered_plan *plan = call->plan;
    const tutti_gathering *g = &plan->gathering;
    float *x = call->workspace, *kernel = x + g->x, *y = kernel + g->kernel;
    tutti_kernel_call inner = *call;
    inner.workspace = y + g->y;
    for (int64_t set = 0; set < g->whole.groups; set++) {
        tutti__gather_kernel(call, g, set, call->inputs[1].data, kernel);
        for (int64_t round = 0; round < g->rounds; round++) {
            tutti__gather_x(call, g, set, round, call->inputs[0].data, x);
            float *to = tutti__gathered_y(g, round, call->outputs[0].data, y);
            direct_work work = {.x = x,
                                .kernel = kernel,
                                .y = to,
                                .backward = false,
                                .finish = conv_finish_of(NULL, false)};
            direct_run(&inner, plan->walk, &work);
            tutti__scatter_y(call, g, set, round, x, kernel, to, call->outputs[0].data);
        }
    }
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv2d_grouped) = {
    .name = "conv2d.grouped",
    .version = 2,
    .op = "conv2d",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = score_groups,
    .workspace = gathered_forward_workspace,
    .prepare = gathered_forward_prepare,
    .discard = gathered_forward_discard,
    .run = gathered_forward_run,
};

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv3d_gathered) = {
    .name = "conv3d.gathered",
    .version = 2,
    .op = "conv3d",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = score_volume,
    .workspace = gathered_forward_workspace,
    .prepare = gathered_forward_prepare,
    .discard = gathered_forward_discard,
    .run = gathered_forward_run,
};
