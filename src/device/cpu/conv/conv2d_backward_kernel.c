/* conv2d_backward_kernel.c: the gradient of the kernel, direct. */
#include "base/isa.h"
#include "device/cpu/conv/kernel_sum.h"

static bool conv2d_backward_kernel_make(const tutti_kernel_query *query, tutti_convolution *ret_c,
                                        kernel_sum *ret)
{
    if (!tutti__conv_query(query, 0, -1, 1, ret_c))
        return false;
    kernel_sum_make(ret_c, 1, 0, ret);
    return true;
}

static int conv2d_backward_kernel_score(const tutti_kernel_query *query)
{
    kernel_sum p;
    tutti_convolution c;
    return conv2d_backward_kernel_make(query, &c, &p) ? 100 : 0;
}

static size_t conv2d_backward_kernel_workspace(const tutti_kernel_query *query)
{
    kernel_sum p;
    tutti_convolution c;
    if (!conv2d_backward_kernel_make(query, &c, &p))
        return 0;
    return (size_t)(tutti__conv_windows_sizes(&c, false).padded + kernel_sum_partials(&p)) *
           sizeof(float);
}

static void conv2d_backward_kernel_discard(void *pointer)
{
    if (pointer != NULL)
        kernel_sum_free(pointer);
    free(pointer);
}

static tutti_status conv2d_backward_kernel_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    tutti_convolution c;
    kernel_sum *p = calloc(1, sizeof *p);
    if (p == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of a convolution");
    conv2d_backward_kernel_make(query, &c, p);
    tutti_status status = kernel_sum_prepare(&c, p);
    if (status != TUTTI_OK)
        free(p);
    else
        *ret_plan = p;
    return status;
}

typedef struct work {
    const kernel_sum *sum;
    const float *x, *grad, *end;
    float *partial;
} work;

/* Piece: a chunk, block after block. */
static void conv2d_backward_kernel_sum_piece(void *context, int64_t chunk)
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

static tutti_status conv2d_backward_kernel_run(const tutti_kernel_call *call)
{
    const kernel_sum *p = call->plan;
    float *padded = call->workspace;
    work w = {.sum = p,
              .grad = call->inputs[1].data,
              .end = (const float *)call->inputs[1].data + tutti_view_count(&call->inputs[1]),
              .partial = padded + p->walk->padded};
    w.x = tutti__conv_pad(call, p->walk, call->inputs[0].data, padded);
    tutti_parallel(call, p->chunks, conv2d_backward_kernel_sum_piece, &w);
    kernel_sum_finish(call, p, w.partial, call->outputs[0].data, NULL);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv2d_backward_kernel_direct) = {
    .name = "conv2d_backward_kernel.direct",
    .version = 2,
    .op = "conv2d_backward_kernel",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_TUNED,
    .score = conv2d_backward_kernel_score,
    .workspace = conv2d_backward_kernel_workspace,
    .prepare = conv2d_backward_kernel_prepare,
    .discard = conv2d_backward_kernel_discard,
    .run = conv2d_backward_kernel_run,
};
