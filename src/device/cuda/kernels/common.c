/* common.c: what launchers share. */
#include "device/cuda/kernels/common.h"

int tutti__cuda_type_size(tutti_cuda_type type)
{
    return type == TUTTI_CUDA_F32 ? 4 : 2;
}

const char *tutti__cuda_type_name(tutti_cuda_type type)
{
    static const char *const names[] = {"float", "bf16", "f16"};
    return names[type];
}

int tutti__cuda_row_threads(int vectors)
{
    int threads = 32;
    while (threads < 1024 && vectors > 4 * threads)
        threads *= 2;
    return threads;
}

tutti_status tutti__cuda_row_check(const char *kernel, tutti_cuda_type type, int width, int most)
{
    if (width <= 0 || width > most || width * tutti__cuda_type_size(type) % 16 != 0)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "%s: rows of %d elements of %d bytes; it takes rows of a multiple of 16 "
                          "bytes, of at most %d elements",
                          kernel, width, tutti__cuda_type_size(type), most);
    return TUTTI_OK;
}
