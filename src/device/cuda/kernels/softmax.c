/* softmax.c: see softmax.cu. */
#include "device/cuda/kernels/common.h"
#include "tables/cuda_texts.h"

static tutti_status softmax_start(tutti_cuda_stream on, tutti_cuda_type type, const char *entry,
                                  int64_t rows, int width, void **arguments)
{
    char options[TUTTI_CUDA_OPTIONS_SIZE];
    TUTTI_TRY(tutti__cuda_row_check(entry, type, width, TUTTI_CUDA_MOST_WIDTH));
    int threads = tutti__cuda_row_threads(width * tutti__cuda_type_size(type) / 16);
    int each = threads == 32 ? 4 : 1;
    snprintf(options, sizeof options, "-DTYPE=%s -DWIDTH=%d -DTHREADS=%d",
             tutti__cuda_type_name(type), width, threads);
    return tutti__cuda_launch_on(on.device, on.stream,
                                 &(tutti_cuda_launch){
                                     .source = &tutti_cuda_source_softmax,
                                     .options = options,
                                     .entry = entry,
                                     .grid = {(unsigned)tutti__cuda_ceil(rows, each)},
                                     .threads = (unsigned)(threads * each),
                                 },
                                 arguments);
}

tutti_status tutti__cuda_softmax(tutti_cuda_stream on, tutti_cuda_type type, tutti_cu_pointer x,
                                 tutti_cu_pointer y, int64_t rows, int width)
{
    return softmax_start(on, type, "softmax", rows, width, (void *[]){&x, &y, &rows});
}

tutti_status tutti__cuda_softmax_gradient(tutti_cuda_stream on, tutti_cuda_type type,
                                          tutti_cu_pointer y, tutti_cu_pointer dy,
                                          tutti_cu_pointer dx, int64_t rows, int width)
{
    return softmax_start(on, type, "softmax_gradient", rows, width,
                         (void *[]){&y, &dy, &dx, &rows});
}

static const char *const variants[] = {"-DTYPE=float -DWIDTH=64 -DTHREADS=32",
                                       "-DTYPE=bf16 -DWIDTH=1024 -DTHREADS=32",
                                       "-DTYPE=f16 -DWIDTH=16384 -DTHREADS=512", NULL};

const tutti_cuda_source tutti_cuda_source_softmax = {
    .name = "softmax",
    .text = &tutti__cuda_text_softmax_cu,
    .variants = variants,
};
