/* common.h: what launchers share. */
#ifndef TUTTI_CUDA_KERNELS_COMMON_H
#define TUTTI_CUDA_KERNELS_COMMON_H

#include <stdio.h>

#include "device/cuda/compile/load.h"
#include "device/cuda/kernels/kernels.h"

enum { TUTTI_CUDA_OPTIONS_SIZE = 256, TUTTI_CUDA_MOST_WIDTH = 16384 };

/* Threads for a row of so many 16-byte vectors, so that each holds at most four. */
int tutti__cuda_row_threads(int vectors);
tutti_status tutti__cuda_row_check(const char *kernel, tutti_cuda_type type, int width, int most);

static inline int64_t tutti__cuda_ceil(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

#endif
