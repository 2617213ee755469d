/* softmax_cross_entropy.c: see softmax_cross_entropy.cu. */
#include "device/cuda/kernels/common.h"
#include "tables/cuda_texts.h"

tutti_status tutti__cuda_softmax_cross_entropy(tutti_cuda_stream on,
                                               const tutti_cuda_cross_entropy *call)
{
    char options[TUTTI_CUDA_OPTIONS_SIZE];
    int bytes = call->stride * tutti__cuda_type_size(call->type);
    if (call->width <= 0 || call->width > call->stride || bytes % 16 != 0 ||
        bytes > on.device->shared_bytes - 1024)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "softmax_cross_entropy: %d classes in rows of %d bytes; it takes rows of "
                          "a multiple of 16 bytes, of at most %d",
                          call->width, bytes, on.device->shared_bytes - 1024);
    int threads = bytes >= 64 << 10 ? 1024 : bytes >= 8 << 10 ? 512 : bytes >= 2 << 10 ? 128 : 32;
    snprintf(options, sizeof options, "-DTYPE=%s -DWIDTH=%d -DSTRIDE=%d -DTHREADS=%d",
             tutti__cuda_type_name(call->type), call->width, call->stride, threads);
    tutti_cuda_cross_entropy c = *call;
    return TUTTI_CUDA_LAUNCH(on.device, on.stream,
                             (&(tutti_cuda_launch){
                                 .source = &tutti_cuda_source_softmax_cross_entropy,
                                 .options = options,
                                 .entry = "softmax_cross_entropy",
                                 .grid = {(unsigned)c.rows},
                                 .threads = (unsigned)threads,
                                 .shared = bytes,
                             }),
                             &c.logits, &c.labels, &c.scale, &c.loss, &c.gradient);
}

static const char *const variants[] = {"-DTYPE=bf16 -DWIDTH=50257 -DSTRIDE=50304 -DTHREADS=1024",
                                       "-DTYPE=float -DWIDTH=10 -DSTRIDE=12 -DTHREADS=32",
                                       "-DTYPE=f16 -DWIDTH=1000 -DSTRIDE=1000 -DTHREADS=128", NULL};

const tutti_cuda_source tutti_cuda_source_softmax_cross_entropy = {
    .name = "softmax_cross_entropy",
    .text = &tutti__cuda_text_softmax_cross_entropy_cu,
    .variants = variants,
};
