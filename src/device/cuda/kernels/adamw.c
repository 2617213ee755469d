/* adamw.c: see adamw.cu. */
#include "device/cuda/kernels/common.h"
#include "tables/cuda_texts.h"

enum { CHUNK = 4096 };

uint32_t tutti__cuda_adamw_blocks(tutti_cuda_adamw_tensor *tensors, int count)
{
    int64_t blocks = 0;
    for (int i = 0; i < count; i++) {
        tensors[i].first_block = (uint32_t)blocks;
        blocks += tutti__cuda_ceil(tensors[i].count, CHUNK);
    }
    return (uint32_t)blocks;
}

tutti_status tutti__cuda_adamw(tutti_cuda_stream on, tutti_cuda_type type, tutti_cu_pointer tensors,
                               int count, uint32_t blocks, tutti_cu_pointer state)
{
    char options[TUTTI_CUDA_OPTIONS_SIZE];
    snprintf(options, sizeof options, "-DTYPE=%s", tutti__cuda_type_name(type));
    tutti_cuda_launch launch = {.source = &tutti_cuda_source_adamw,
                                .options = options,
                                .entry = "adamw_next",
                                .threads = 1};
    TUTTI_TRY(TUTTI_CUDA_LAUNCH(on.device, on.stream, &launch, &state));
    launch.entry = "adamw";
    launch.grid[0] = blocks;
    launch.threads = 256;
    return TUTTI_CUDA_LAUNCH(on.device, on.stream, &launch, &tensors, &count, &state);
}

static const char *const variants[] = {"-DTYPE=bf16", "-DTYPE=float", "-DTYPE=f16", NULL};

const tutti_cuda_source tutti_cuda_source_adamw = {
    .name = "adamw",
    .text = &tutti__cuda_text_adamw_cu,
    .variants = variants,
};
