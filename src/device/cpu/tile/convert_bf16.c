/* convert_bf16.c: roundings to bf16 by the CPU's own instruction, where that rounds as convert.c
 * does: bfcvtn does, vcvtneps2bf16 makes zeros of the smallest numbers. */
#include <string.h>

#include "device/cpu/tile/loops.h"
#include "device/cpu/tile/odd.h"

#if defined(__aarch64__)
#include <arm_neon.h>

static void store_loop_f32(const tutti_tile_args *t)
{
    const float *x = t->x[0];
    bfloat16_t *y = t->y;
    int64_t i = 0;
    for (; i + 8 <= t->count; i += 8) {
        bfloat16x8_t low = vcvtq_low_bf16_f32(vld1q_f32(x + i));
        vst1q_bf16(y + i, vcvtq_high_bf16_f32(low, vld1q_f32(x + i + 4)));
    }
    for (; i < t->count; i++)
        y[i] = vcvth_bf16_f32(x[i]);
}

static void store_loop_f64(const tutti_tile_args *t)
{
    const double *x = t->x[0];
    bfloat16_t *y = t->y;
    for (int64_t i = 0; i < t->count; i++)
        y[i] = vcvth_bf16_f32(tutti__odd_float(x[i]));
}

/* bf16 is the upper half of a float. Not vcvtah_f32_bf16, which reads 4 bytes of the 2 in the
 * headers of some compilers. */
static inline float rounded(float x)
{
    bfloat16_t half = vcvth_bf16_f32(x);
    uint16_t bits;
    memcpy(&bits, &half, sizeof bits);
    uint32_t whole = (uint32_t)bits << 16;
    memcpy(&x, &whole, sizeof x);
    return x;
}

/* Rounded, and as floats again. */
static void round_loop_f32(const tutti_tile_args *t)
{
    const float *x = t->x[0];
    float *y = t->y;
    int64_t i = 0;
    for (; i + 8 <= t->count; i += 8) {
        bfloat16x8_t low = vcvtq_low_bf16_f32(vld1q_f32(x + i));
        uint16x8_t all = vreinterpretq_u16_bf16(vcvtq_high_bf16_f32(low, vld1q_f32(x + i + 4)));
        vst1q_f32(y + i, vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(all), 16)));
        vst1q_f32(y + i + 4, vreinterpretq_f32_u32(vshll_high_n_u16(all, 16)));
    }
    for (; i < t->count; i++)
        y[i] = rounded(x[i]);
}

static void round_loop_f64(const tutti_tile_args *t)
{
    const double *x = t->x[0];
    double *y = t->y;
    for (int64_t i = 0; i < t->count; i++)
        y[i] = (double)rounded(tutti__odd_float(x[i]));
}

static const tutti_tile_op ops[] = {
    {.name = ".store_bf16", .inputs = 1, .f32 = store_loop_f32, .f64 = store_loop_f64},
    {.name = ".round_bf16", .inputs = 1, .f32 = round_loop_f32, .f64 = round_loop_f64},
    {0},
};
#else
static const tutti_tile_op ops[] = {{0}};
#endif

const tutti_tile_family TUTTI_ISA_NAME(tutti_tile_family_convert_bf16) = {
    .isa = TUTTI_ISA_TEXT,
    .ops = ops,
};
