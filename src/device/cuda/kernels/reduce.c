/* reduce.c: see reduce.cu. */
#include "device/cuda/kernels/common.h"
#include "tables/cuda_texts.h"

enum {
    PIECE = 64 << 10, /* elements of a piece of a whole tensor */
    SHARE = 128,      /* least rows of a piece of columns */
    MOST_PIECES = 512,
};

static tutti_status reduce_start(tutti_cuda_stream on, tutti_cuda_type type, tutti_cuda_type out,
                                 bool maximum, const char *entry, unsigned across, unsigned down,
                                 void **arguments)
{
    char options[TUTTI_CUDA_OPTIONS_SIZE];
    snprintf(options, sizeof options, "-DTYPE=%s -DOUT=%s -DMAXIMUM=%d",
             tutti__cuda_type_name(type), tutti__cuda_type_name(out), maximum);
    return tutti__cuda_launch_on(on.device, on.stream,
                                 &(tutti_cuda_launch){.source = &tutti_cuda_source_reduce,
                                                      .options = options,
                                                      .entry = entry,
                                                      .grid = {across, down},
                                                      .threads = 256},
                                 arguments);
}

static int64_t share_of(const tutti_cuda_reduce *call)
{
    int64_t share = tutti__cuda_ceil(call->rows, MOST_PIECES);
    return share < SHARE ? SHARE : share;
}

size_t tutti__cuda_reduce_workspace(const tutti_cuda_reduce *call)
{
    int64_t pieces = tutti__cuda_ceil(call->rows * call->width, PIECE);
    int64_t columns = tutti__cuda_ceil(call->rows, share_of(call)) * call->width;
    return (size_t)(pieces > columns ? pieces : columns) * sizeof(float);
}

tutti_status tutti__cuda_reduce_rows(tutti_cuda_stream on, const tutti_cuda_reduce *call)
{
    tutti_cuda_reduce c = *call;
    int64_t total = c.rows * c.width;
    return reduce_start(on, c.type, TUTTI_CUDA_F32, c.maximum, "reduce_rows", (unsigned)c.rows, 1,
                        (void *[]){&c.x, &c.width, &total, &c.y});
}

tutti_status tutti__cuda_reduce_all(tutti_cuda_stream on, const tutti_cuda_reduce *call)
{
    tutti_cuda_reduce c = *call;
    int64_t total = c.rows * c.width, piece = PIECE, pieces = tutti__cuda_ceil(total, PIECE);
    TUTTI_TRY(reduce_start(on, c.type, TUTTI_CUDA_F32, c.maximum, "reduce_rows", (unsigned)pieces,
                           1, (void *[]){&c.x, &piece, &total, &c.workspace}));
    return reduce_start(on, TUTTI_CUDA_F32, TUTTI_CUDA_F32, c.maximum, "reduce_rows", 1, 1,
                        (void *[]){&c.workspace, &pieces, &pieces, &c.y});
}

tutti_status tutti__cuda_reduce_columns(tutti_cuda_stream on, const tutti_cuda_reduce *call)
{
    tutti_cuda_reduce c = *call;
    int64_t share = share_of(call), pieces = tutti__cuda_ceil(c.rows, share);
    int64_t across = tutti__cuda_ceil(c.width, 32 * (16 / tutti__cuda_type_size(c.type)));
    TUTTI_TRY(reduce_start(
        on, c.type, pieces == 1 ? c.out : TUTTI_CUDA_F32, c.maximum, "reduce_columns",
        (unsigned)across, (unsigned)pieces,
        (void *[]){&c.x, &c.rows, &c.width, &share, pieces == 1 ? &c.y : &c.workspace}));
    if (pieces == 1)
        return TUTTI_OK;
    across = tutti__cuda_ceil(c.width, 128);
    return reduce_start(on, TUTTI_CUDA_F32, c.out, c.maximum, "reduce_columns", (unsigned)across, 1,
                        (void *[]){&c.workspace, &pieces, &c.width, &pieces, &c.y});
}

static const char *const variants[] = {"-DTYPE=float -DOUT=float -DMAXIMUM=0",
                                       "-DTYPE=bf16 -DOUT=float -DMAXIMUM=1",
                                       "-DTYPE=f16 -DOUT=float -DMAXIMUM=0", NULL};

const tutti_cuda_source tutti_cuda_source_reduce = {
    .name = "reduce",
    .text = &tutti__cuda_text_reduce_cu,
    .variants = variants,
};
