/* int8_test.c: kernels on bytes against the operators' references, tile by tile. */
#include <string.h>

#include "base/test.h"
#include "device/cpu/int8/product.h"
#include "device/cpu/kernel_check.h"
#include "tables/int8_tile.h"

TUTTI_TEST(int8_kernels_agree_with_the_reference)
{
    static const char *const ops[] = {"matmul_integer", "qlinear_matmul",  "conv_integer",
                                      "qlinear_conv",   "quantize_linear", "dequantize_linear"};
    for (size_t i = 0; i < TUTTI_COUNT(ops); i++)
        tutti__kernel_check_op(ops[i]);
}

TUTTI_TEST(int8_quantizes_by_axis)
{
    static const char *const samples[] = {
        "f32[40000]{-3:3} f32[]{=0.02} i8[]{=-7}",
        "f32[70,1030]{-3:3} f32[1030]{0.01:0.1} u8[1030]{0:256}",
        "f32[70,1030]{-3:3} f32[70]{0.01:0.1} i8[70]{-128:128} | axis=0",
        "f32[5,33,40]{-9:9} f32[33]{0.01:0.1} i8[33]{-128:128} | axis=1",
        "f32[5,33,3]{-9:9} f32[33]{0.01:0.1} | axis=-2 dtype=i8",
        "f32[2,3]{=nan,inf,-inf,1e30,-1e30,-0.5} f32[3]{=1,2,0.5} u8[3]{=1,255,0}",
        "f32[40,1]{-3:3} f32[1]{=0.02} u8[1]{=128}",
        "f32[40,3]{-3:3} f32[]{=0.02} u8[]{=128} | axis=-9",
    };
    for (size_t i = 0; i < TUTTI_COUNT(samples); i++)
        CHECK(tutti__kernel_check("quantize_linear", samples[i], 0) > 0);
}

TUTTI_TEST(int8_products_have_edges)
{
    static const char *const samples[] = {
        "u8[1,7]{0:256} i8[7,1]{-128:128} u8[]{=3}",
        "u8[9,8]{0:256} i8[8,9]{-128:128}",
        "i8[33,17]{-128:128} i8[17,31]{-128:128} i8[]{=-128} i8[31]{-128:128}",
        "u8[40,130]{0:256} u8[130,70]{0:256} u8[40]{0:256} u8[70]{0:256}",
        "i8[2,3,5,64]{-128:128} u8[64,300]{0:256} i8[]{=-5} u8[]{=128}",
        "u8[600,24]{0:256} i8[24,40]{-128:128} u8[]{=255}",
    };
    for (size_t i = 0; i < TUTTI_COUNT(samples); i++)
        CHECK(tutti__kernel_check("matmul_integer", samples[i], 0) > 0);
    CHECK(tutti__kernel_check("conv_integer",
                              "u8[2,9,8,5]{0:256} i8[3,3,5,19]{-128:128} u8[]{=77} i8[19]{-9:9} | "
                              "padding=same strides=[2,1]",
                              0) > 0);
    CHECK(tutti__kernel_check("conv_integer",
                              "i8[1,12,13,6]{-128:128} u8[3,2,2,12]{0:256} i8[]{=7} u8[]{=9} | "
                              "padding=same groups=3 dilations=[2,1]",
                              0) > 0);
    CHECK(tutti__kernel_check("conv_integer",
                              "u8[2,7,6,150]{0:256} i8[3,3,1,150]{-128:128} u8[]{=200} "
                              "i8[150]{-9:9} i32[150]{-999:999} | padding=same groups=150 "
                              "strides=[2,1]",
                              0) > 1);
    CHECK(tutti__kernel_check("conv_integer",
                              "u8[2,11,10,16]{0:256} i8[1,1,16,33]{-128:128} u8[]{=128} | "
                              "strides=[2,2]",
                              0) > 0);
}

/* Every set's tile on panels of noise against plain sums. */
TUTTI_TEST(int8_tiles_are_exact)
{
    enum { BLOCKS = 5 };
    static int16_t wide[2][BLOCKS * 8 * 64];
    static uint8_t bytes[2][BLOCKS * 8 * 64];
    uint32_t noise = 1;
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < TUTTI_COUNT(bytes[0]); i++) {
            noise = noise * 1664525 + 1013904223;
            bytes[side][i] = (uint8_t)(i % 7 == 0 ? 128 : noise >> 24);
        }
    for (const tutti_int8_tile *const *at = tutti__int8_tile_table; *at != NULL; at++) {
        const tutti_int8_tile *t = *at;
        int32_t c[TUTTI_INT8_TILE_MOST];
        if (!tutti__isa_present(t->isa))
            continue;
        for (int side = 0; side < 2; side++)
            for (size_t i = 0; i < TUTTI_COUNT(bytes[0]); i++)
                wide[side][i] = side == 0 && t->left_unsigned ? (int16_t)bytes[side][i]
                                                              : (int16_t)(int8_t)bytes[side][i];
        t->run(BLOCKS, t->bytes == 1 ? (const void *)bytes[0] : wide[0],
               t->bytes == 1 ? (const void *)bytes[1] : wide[1], c);
        for (int i = 0; i < t->rows; i++)
            for (int j = 0; j < t->columns; j++) {
                int32_t sum = 0;
                for (int b = 0; b < BLOCKS; b++)
                    for (int d = 0; d < t->depth; d++)
                        sum += wide[0][(b * t->rows + i) * t->depth + d] *
                               wide[1][(b * t->columns + j) * t->depth + d];
                CHECK_INT(c[i * t->columns + j], sum);
            }
    }
}

TUTTI_TEST(kernel_dynamic_quantize_linear_matches)
{
    static const char *const samples[] = {
        "f32[3,7]{-3:5}",         "f32[70001]{-1:9}",    "f32[33]{1:2}",
        "f32[19]{-4:-2}",         "f32[40]{=nan}",       "f32[0]",
        "f32[5]{=nan,-1,2,-0,1}", "f32[4]{=inf,1,-1,0}", "f32[]"};
    tutti__kernel_check_op("dynamic_quantize_linear");
    for (size_t i = 0; i < TUTTI_COUNT(samples); i++)
        CHECK(tutti__kernel_check("dynamic_quantize_linear", samples[i], 0) > 0);
}
