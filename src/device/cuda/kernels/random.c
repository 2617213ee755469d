/* random.c: see random.cu. */
#include "device/cuda/kernels/common.h"
#include "tables/cuda_texts.h"

static tutti_status random_start(tutti_cuda_stream on, tutti_cuda_type type, const char *entry,
                                 tutti_random_key key, uint64_t first, int64_t count, float a,
                                 float b, tutti_cu_pointer y)
{
    char options[TUTTI_CUDA_OPTIONS_SIZE];
    if (first % 4 != 0)
        return tutti_fail(TUTTI_INVALID, "%s: it begins at number %llu, not at a multiple of 4",
                          entry, (unsigned long long)first);
    snprintf(options, sizeof options, "-DTYPE=%s", tutti__cuda_type_name(type));
    return TUTTI_CUDA_LAUNCH(on.device, on.stream,
                             (&(tutti_cuda_launch){
                                 .source = &tutti_cuda_source_random,
                                 .options = options,
                                 .entry = entry,
                                 .grid = {(unsigned)tutti__cuda_ceil(count, 1024)},
                                 .threads = 256,
                             }),
                             &key.seed, &key.stream, &first, &count, &a, &b, &y);
}

tutti_status tutti__cuda_random_uniform(tutti_cuda_stream on, tutti_cuda_type type,
                                        tutti_random_key key, uint64_t first, int64_t count,
                                        float low, float scale, tutti_cu_pointer y)
{
    return random_start(on, type, "random_uniform", key, first, count, low, scale, y);
}

tutti_status tutti__cuda_random_normal(tutti_cuda_stream on, tutti_cuda_type type,
                                       tutti_random_key key, uint64_t first, int64_t count,
                                       float mean, float deviation, tutti_cu_pointer y)
{
    return random_start(on, type, "random_normal", key, first, count, mean, deviation, y);
}

static const char *const variants[] = {"-DTYPE=float", "-DTYPE=bf16", "-DTYPE=f16", NULL};

const tutti_cuda_source tutti_cuda_source_random = {
    .name = "random",
    .text = &tutti__cuda_text_random_cu,
    .variants = variants,
};
