/* norm.c: see norm.cu. */
#include "device/cuda/kernels/common.h"
#include "tables/cuda_texts.h"

/* Groups of threads share the rows of a gradient by their number, not by the chip's size, so that
 * every chip gives the same bits. */
enum { MOST_BLOCKS = 264 };

static int threads_of(const tutti_cuda_norm *call)
{
    return tutti__cuda_row_threads(call->width * tutti__cuda_type_size(call->type) / 16);
}

static int rows_of_a_block(const tutti_cuda_norm *call)
{
    return threads_of(call) == 32 ? 4 : 1;
}

static int64_t gradient_blocks(const tutti_cuda_norm *call)
{
    int64_t blocks = tutti__cuda_ceil(call->rows, rows_of_a_block(call));
    int64_t most = MOST_BLOCKS * (threads_of(call) <= 256 ? 4 : 1);
    return blocks < most ? blocks : most;
}

size_t tutti__cuda_norm_workspace(const tutti_cuda_norm *call)
{
    return (size_t)(gradient_blocks(call) * rows_of_a_block(call) * 2 * call->width) *
           sizeof(float);
}

static tutti_status norm_prepare(const tutti_cuda_norm *call, char *options,
                                 tutti_cuda_launch *launch)
{
    TUTTI_TRY(tutti__cuda_row_check("norm", call->type, call->width, TUTTI_CUDA_MOST_WIDTH));
    snprintf(options, TUTTI_CUDA_OPTIONS_SIZE, "-DTYPE=%s -DWIDTH=%d -DTHREADS=%d -DRMS=%d",
             tutti__cuda_type_name(call->type), call->width, threads_of(call), call->rms);
    *launch = (tutti_cuda_launch){.source = &tutti_cuda_source_norm,
                                  .options = options,
                                  .threads = (unsigned)(threads_of(call) * rows_of_a_block(call))};
    return TUTTI_OK;
}

tutti_status tutti__cuda_norm(tutti_cuda_stream on, const tutti_cuda_norm *call)
{
    char options[TUTTI_CUDA_OPTIONS_SIZE];
    tutti_cuda_launch launch;
    tutti_cuda_norm c = *call;
    TUTTI_TRY(norm_prepare(call, options, &launch));
    launch.entry = "norm_rows";
    launch.grid[0] = (unsigned)tutti__cuda_ceil(c.rows, rows_of_a_block(call));
    return TUTTI_CUDA_LAUNCH(on.device, on.stream, &launch, &c.x, &c.residual, &c.gamma, &c.beta,
                             &c.epsilon, &c.rows, &c.sum, &c.y, &c.mean, &c.rstd);
}

tutti_status tutti__cuda_norm_gradient(tutti_cuda_stream on, const tutti_cuda_norm *call)
{
    char options[TUTTI_CUDA_OPTIONS_SIZE];
    tutti_cuda_launch launch;
    tutti_cuda_norm c = *call;
    TUTTI_TRY(norm_prepare(call, options, &launch));
    launch.entry = "norm_gradient";
    launch.grid[0] = (unsigned)gradient_blocks(call);
    TUTTI_TRY(TUTTI_CUDA_LAUNCH(on.device, on.stream, &launch, &c.x, &c.dy, &c.along, &c.gamma,
                                &c.mean, &c.rstd, &c.epsilon, &c.rows, &c.dx, &c.workspace));
    int groups = (int)(gradient_blocks(call) * rows_of_a_block(call));
    launch.entry = "norm_weights";
    launch.threads = 1024;
    launch.grid[0] = (unsigned)tutti__cuda_ceil(2 * (int64_t)c.width, 32);
    return TUTTI_CUDA_LAUNCH(on.device, on.stream, &launch, &c.workspace, &groups, &c.dgamma,
                             &c.dbeta);
}

static const char *const variants[] = {"-DTYPE=bf16 -DWIDTH=768 -DTHREADS=32 -DRMS=0",
                                       "-DTYPE=float -DWIDTH=64 -DTHREADS=32 -DRMS=0",
                                       "-DTYPE=f16 -DWIDTH=4096 -DTHREADS=128 -DRMS=1", NULL};

const tutti_cuda_source tutti_cuda_source_norm = {
    .name = "norm",
    .text = &tutti__cuda_text_norm_cu,
    .variants = variants,
};
