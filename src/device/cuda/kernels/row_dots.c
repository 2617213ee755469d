/* row_dots.c: see row_dots.cu. */
#include "device/cuda/kernels/common.h"
#include "tables/cuda_texts.h"

tutti_status tutti__cuda_row_dots(tutti_cuda_stream on, tutti_cuda_type type, tutti_cu_pointer x,
                                  tutti_cu_pointer y, const int64_t dims[4],
                                  const int64_t strides[3], tutti_cu_pointer sums)
{
    char options[TUTTI_CUDA_OPTIONS_SIZE];
    int64_t d[4] = {dims[0], dims[1], dims[2], dims[3]};
    int64_t s[3] = {strides[0], strides[1], strides[2]};
    int vectors = (int)d[3] * tutti__cuda_type_size(type) / 16, lanes = 1;
    TUTTI_TRY(tutti__cuda_row_check("row_dots", type, (int)d[3], TUTTI_CUDA_MOST_WIDTH));
    while (lanes < 32 && lanes < vectors)
        lanes *= 2;
    snprintf(options, sizeof options, "-DTYPE=%s -DSIZE=%d -DLANES=%d", tutti__cuda_type_name(type),
             (int)d[3], lanes);
    return TUTTI_CUDA_LAUNCH(
        on.device, on.stream,
        (&(tutti_cuda_launch){
            .source = &tutti_cuda_source_row_dots,
            .options = options,
            .entry = "row_dots",
            .grid = {(unsigned)tutti__cuda_ceil(d[0] * d[1] * d[2] * lanes, 256)},
            .threads = 256,
        }),
        &x, &y, &d[0], &d[1], &d[2], &s[0], &s[1], &s[2], &sums);
}

static const char *const variants[] = {"-DTYPE=bf16 -DSIZE=64 -DLANES=8",
                                       "-DTYPE=f16 -DSIZE=1024 -DLANES=32", NULL};

const tutti_cuda_source tutti_cuda_source_row_dots = {
    .name = "row_dots",
    .text = &tutti__cuda_text_row_dots_cu,
    .variants = variants,
};
