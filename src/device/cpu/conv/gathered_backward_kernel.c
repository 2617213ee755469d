/* gathered_backward_kernel.c: the gradient of a convolution's kernel by gathering, see gathered.h:
 * of several groups, and over volumes. */
#include "base/isa.h"
#include "device/cpu/conv/gathered.h"
#include "device/cpu/conv/kernel_sum.h"

typedef struct gathered_plan {
    tutti_gathering gathering;
    kernel_sum sum;
} gathered_plan;

static bool gathered_backward_kernel_make(const tutti_kernel_query *query, gathered_plan *ret)
{
    if (!tutti__gathering(query, 0, -1, 1, false, &ret->gathering))
        return false;
    kernel_sum_make(&ret->gathering.part, 1, 0, &ret->sum);
    return true;
}

static int score_volume(const tutti_kernel_query *query)
{
    gathered_plan plan = {0};
    return gathered_backward_kernel_make(query, &plan) ? 100 : 0;
}

static int score_groups(const tutti_kernel_query *query)
{
    gathered_plan plan = {0};
    return gathered_backward_kernel_make(query, &plan) &&
                   plan.gathering.whole.groups * plan.gathering.joined > 1
               ? 60
               : 0;
}

static size_t gathered_backward_kernel_workspace(const tutti_kernel_query *query)
{
    gathered_plan plan = {0};
    if (!gathered_backward_kernel_make(query, &plan))
        return 0;
    const tutti_gathering *g = &plan.gathering;
    return (size_t)(g->x + g->kernel + g->y + kernel_sum_partials(&plan.sum)) * sizeof(float);
}

static void gathered_backward_kernel_discard(void *pointer)
{
    gathered_plan *plan = pointer;
    if (plan != NULL)
        kernel_sum_free(&plan->sum);
    free(plan);
}

static tutti_status gathered_backward_kernel_prepare(const tutti_kernel_query *query,
                                                     void **ret_plan)
{
    gathered_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of a convolution");
    gathered_backward_kernel_make(query, plan);
    tutti_status status = kernel_sum_prepare(&plan->gathering.part, &plan->sum);
    if (status != TUTTI_OK)
        free(plan);
    else
        *ret_plan = plan;
    return status;
}

typedef struct work {
    const kernel_sum *sum;
    const float *x, *grad, *end;
    float *partial;
} work;

/* Piece: a chunk, block after block. */
static void gathered_backward_kernel_sum_piece(void *context, int64_t chunk)
{
    const work *w = context;
    const kernel_sum *p = w->sum;
    int64_t first = chunk_begin(p, chunk), line = p->walk->out[1] * p->walk->filters;
    for (int64_t block = first; block < chunk_begin(p, chunk + 1); block++) {
        block_place at = block_at(p, block);
        kernel_sum_block(p, at, w->x, w->grad + (at.image * p->walk->out[0] + at.row) * line,
                         w->end, w->partial + chunk * p->lines * p->width, block > first);
    }
}

/* The workspace holds x, the kernel's gradient and grad as gathered, then partial sums. */
static tutti_status gathered_backward_kernel_run(const tutti_kernel_call *call)
{
    const gathered_plan *plan = call->plan;
    const tutti_gathering *g = &plan->gathering;
    const tutti_windows *w = &g->part.windows;
    float *x = call->workspace, *kernel = x + g->x, *grad = kernel + g->kernel;
    work sums = {.sum = &plan->sum, .x = x, .partial = grad + g->y};
    for (int64_t set = 0; set < g->whole.groups; set++)
        for (int64_t round = 0; round < g->rounds; round++) {
            tutti__gather_x(call, g, set, round, call->inputs[0].data, x);
            sums.grad = tutti__gather_y(call, g, set, round, call->inputs[1].data, grad);
            sums.end = sums.grad + g->part.batch * w->out[0] * w->out[1] * g->part.cout;
            tutti_parallel(call, plan->sum.chunks, gathered_backward_kernel_sum_piece, &sums);
            kernel_sum_finish(call, &plan->sum, sums.partial, kernel, NULL);
            tutti__scatter_kernel(call, g, set, round > 0, kernel, call->outputs[0].data);
        }
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv2d_backward_kernel_grouped) = {
    .name = "conv2d_backward_kernel.grouped",
    .version = 1,
    .op = "conv2d_backward_kernel",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .score = score_groups,
    .workspace = gathered_backward_kernel_workspace,
    .prepare = gathered_backward_kernel_prepare,
    .discard = gathered_backward_kernel_discard,
    .run = gathered_backward_kernel_run,
};

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv3d_backward_kernel_gathered) = {
    .name = "conv3d_backward_kernel.gathered",
    .version = 1,
    .op = "conv3d_backward_kernel",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .score = score_volume,
    .workspace = gathered_backward_kernel_workspace,
    .prepare = gathered_backward_kernel_prepare,
    .discard = gathered_backward_kernel_discard,
    .run = gathered_backward_kernel_run,
};
