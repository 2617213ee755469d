/* softmax_cross_entropy.c: see softmax_cross_entropy.cu. */
#include "device/cuda/kernels/common.h"
#include "tables/cuda_texts.h"

tutti_status tutti__cuda_softmax_cross_entropy(tutti_cuda_stream on,
                                               const tutti_cuda_cross_entropy *call)
{
    char options[TUTTI_CUDA_OPTIONS_SIZE];
    int size = tutti__cuda_type_size(call->type), bytes = call->stride * size, per = 16 / size;
    if (call->width <= 0 || call->width > call->stride || call->stride > TUTTI_CUDA_MOST_CLASSES)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "softmax_cross_entropy: %d classes in rows of %d; it takes at most %d",
                          call->width, call->stride, (int)TUTTI_CUDA_MOST_CLASSES);
    bool kept = bytes % 16 == 0 && bytes <= on.device->shared_bytes - 1024;
    while (call->stride % per != 0)
        per /= 2;
    int threads = bytes >= 64 << 10 ? 1024 : bytes >= 8 << 10 ? 512 : bytes >= 2 << 10 ? 128 : 32;
    snprintf(options, sizeof options,
             "-DTYPE=%s -DINDEX=%s -DWIDTH=%d -DSTRIDE=%d -DPER=%d -DTHREADS=%d -DKEPT=%d",
             tutti__cuda_type_name(call->type), call->index ? call->index : "i32", call->width,
             call->stride, per, threads, kept);
    tutti_cuda_cross_entropy c = *call;
    return TUTTI_CUDA_LAUNCH(on.device, on.stream,
                             (&(tutti_cuda_launch){
                                 .source = &tutti_cuda_source_softmax_cross_entropy,
                                 .options = options,
                                 .entry = "softmax_cross_entropy",
                                 .grid = {(unsigned)c.rows},
                                 .threads = (unsigned)threads,
                                 .shared = kept ? bytes : 0,
                             }),
                             &c.logits, &c.labels, &c.scale, &c.scales, &c.loss, &c.gradient,
                             &c.fault);
}

static const char *const variants[] = {
    "-DTYPE=bf16 -DINDEX=i32 -DWIDTH=50257 -DSTRIDE=50304 -DPER=8 -DTHREADS=1024 -DKEPT=1",
    "-DTYPE=bf16 -DINDEX=i64 -DWIDTH=50257 -DSTRIDE=50257 -DPER=1 -DTHREADS=1024 -DKEPT=0",
    "-DTYPE=float -DINDEX=i32 -DWIDTH=10 -DSTRIDE=12 -DPER=4 -DTHREADS=32 -DKEPT=1",
    "-DTYPE=f16 -DINDEX=i32 -DWIDTH=1000 -DSTRIDE=1000 -DPER=8 -DTHREADS=128 -DKEPT=1", NULL};

const tutti_cuda_source tutti_cuda_source_softmax_cross_entropy = {
    .name = "softmax_cross_entropy",
    .text = &tutti__cuda_text_softmax_cross_entropy_cu,
    .variants = variants,
};
