/* hold.c: see hold.cu. */
#include "device/cuda/kernels/common.h"
#include "tables/cuda_texts.h"

tutti_status tutti__cuda_hold(tutti_cuda_stream on, double seconds)
{
    uint64_t nanoseconds = (uint64_t)(seconds * 1e9);
    return TUTTI_CUDA_LAUNCH(on.device, on.stream,
                             (&(tutti_cuda_launch){.source = &tutti_cuda_source_hold,
                                                   .options = "",
                                                   .entry = "hold",
                                                   .grid = {1},
                                                   .threads = 1}),
                             &nanoseconds);
}

static const char *const variants[] = {"", NULL};

const tutti_cuda_source tutti_cuda_source_hold = {
    .name = "hold",
    .text = &tutti__cuda_text_hold_cu,
    .variants = variants,
};
