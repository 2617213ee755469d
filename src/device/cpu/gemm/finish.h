/* finish.h: finished sums on their way to C, in every instruction set that tiles are made for. */
#ifndef TUTTI_DEVICE_CPU_GEMM_FINISH_H
#define TUTTI_DEVICE_CPU_GEMM_FINISH_H

#include <string.h>

#include "device/cpu/gemm/round.h"
#include "device/cpu/gemm/tile.h"

/* As relu says, a NaN stays one. */
VEC_INLINE void finish_row(const tutti_gemm_finish *f, int64_t row, int64_t first, int64_t n,
                           const float *bias, bool relu, bool bf16)
{
    const float *from = f->from + row * f->ld + first;
    float *to = (float *)f->to + row * f->ldc + first;
    uint16_t *to16 = (uint16_t *)f->to + row * f->ldc + first;
    int64_t i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES) {
        vec sum = vec_load(from + i) + vec_load(bias + i);
        if (relu)
            sum = vec_select(vec_le(sum, (vec){0}), (vec){0}, sum);
        if (bf16)
            round_vec(sum, to16 + i);
        else
            vec_store(to + i, sum);
    }
#if VEC_MASKED
    if (i < n) {
        vec sum = vec_load_part(from + i, n - i) + vec_load_part(bias + i, n - i);
        if (relu)
            sum = vec_select(vec_le(sum, (vec){0}), (vec){0}, sum);
        if (bf16)
            round_part(sum, n - i, to16 + i);
        else
            vec_store_part(to + i, sum, n - i);
    }
#else
    for (; i < n; i++) {
        float sum = from[i] + bias[i];
        sum = relu && sum <= 0 ? 0 : sum;
        if (bf16)
            to16[i] = round_one(sum);
        else
            to[i] = sum;
    }
#endif
}

static void finish(const tutti_gemm_finish *f)
{
    enum { PART = 64 };
    for (int64_t first = 0; first < f->n; first += PART) {
        int64_t n = f->n - first < PART ? f->n - first : PART;
        float bias[PART];
        for (int64_t i = 0; i < n; i++) {
            uint32_t bits = f->bias == NULL || !f->bias_bf16
                                ? 0x80000000 /* -0: x + -0 = x */
                                : (uint32_t)((const uint16_t *)f->bias)[first + i] << 16;
            memcpy(bias + i, &bits, sizeof bits);
        }
        if (f->bias != NULL && !f->bias_bf16)
            memcpy(bias, (const float *)f->bias + first, (size_t)n * sizeof(float));
        for (int64_t row = 0; row < f->rows; row++)
            if (f->bf16 && f->relu)
                finish_row(f, row, first, n, bias, true, true);
            else if (f->bf16)
                finish_row(f, row, first, n, bias, false, true);
            else if (f->relu)
                finish_row(f, row, first, n, bias, true, false);
            else
                finish_row(f, row, first, n, bias, false, false);
    }
}

#endif
