#include "comm/coll/fold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/denormals.h"
#include "base/test.h"

enum { VALUES = 1 << 16 };

static void check_all(tutti_dtype dtype, float (*reference)(uint16_t bits))
{
    uint16_t *bits = malloc(VALUES * sizeof *bits), *back = malloc(VALUES * sizeof *back);
    float *wide = malloc(VALUES * sizeof *wide);
    CHECK(bits && back && wide);
    for (int i = 0; i < VALUES; i++)
        bits[i] = (uint16_t)i;
    uint64_t before = tutti__denormals_to_zero(); /* as where kernels run */
    tutti__fold_best()->widen[dtype](bits, VALUES, wide);
    tutti__fold_best()->narrow[dtype](wide, VALUES, back);
    tutti__denormals_set(before);
    for (int i = 0; i < VALUES; i++) {
        float expected = reference(bits[i]);
        if (isnan(expected)) {
            CHECK(isnan(wide[i]));
            CHECK(isnan(reference(back[i])));
            continue;
        }
        CHECK_INT(memcmp(&wide[i], &expected, sizeof expected), 0);
        CHECK_INT(back[i], bits[i]);
    }
    free(bits);
    free(back);
    free(wide);
}

TUTTI_TEST(every_number_of_16_bits_is_kept_where_tiny_numbers_are_zero)
{
    check_all(TUTTI_F16, tutti_f16_to_f32);
    check_all(TUTTI_BF16, tutti_bf16_to_f32);
}

enum { MOST_SOURCES = 14, COUNT = 2051 };

/* Whose sums and products depend on the order in floats, and wrap in integers. */
static double value_of(int source, int64_t i)
{
    return (double)((i * 7 + source * 13) % 1021) * (source % 3 == 1 ? 1.0 / 3 : 17) + 1;
}

#define DEFINE_CHECK(name, type, wide)                                                             \
    static void check_##name(tutti_dtype dtype, tutti_reduction reduction, int sources, int into)  \
    {                                                                                              \
        static type in[MOST_SOURCES][COUNT], out[COUNT], expected[COUNT];                          \
        const void *inputs[MOST_SOURCES];                                                          \
        for (int s = 0; s < sources; s++) {                                                        \
            inputs[s] = in[s];                                                                     \
            for (int64_t i = 0; i < COUNT; i++)                                                    \
                in[s][i] = (type)fmod(value_of(s, i), sizeof(type) > 1 ? 1e9 : 256);               \
        }                                                                                          \
        for (int64_t i = 0; i < COUNT; i++) {                                                      \
            type x = in[0][i];                                                                     \
            for (int s = 1; s < sources; s++) {                                                    \
                type y = in[s][i];                                                                 \
                x = reduction == TUTTI_SUM    ? (type)((wide)x + (wide)y)                          \
                    : reduction == TUTTI_PROD ? (type)((wide)x * (wide)y)                          \
                    : reduction == TUTTI_MIN  ? (x < y ? x : y)                                    \
                                              : (x > y ? x : y);                                    \
            }                                                                                      \
            expected[i] = x;                                                                       \
        }                                                                                          \
        type *to = into < 0 ? out : in[into];                                                      \
        tutti__fold_find(dtype, reduction)(to, inputs, sources, COUNT);                            \
        CHECK_INT(memcmp(to, expected, sizeof expected), 0);                                       \
    }

DEFINE_CHECK(f32, float, float)
DEFINE_CHECK(f64, double, double)
DEFINE_CHECK(i32, int32_t, uint32_t)
DEFINE_CHECK(i64, int64_t, uint64_t)
DEFINE_CHECK(u8, uint8_t, uint8_t)

/* Into other memory, and into any of the sources. */
static void check_sources(void check(tutti_dtype, tutti_reduction, int, int), tutti_dtype dtype)
{
    static const tutti_reduction reductions[] = {TUTTI_SUM, TUTTI_MIN, TUTTI_MAX, TUTTI_PROD};
    for (size_t r = 0; r < sizeof reductions / sizeof *reductions; r++)
        for (int sources = 1; sources <= MOST_SOURCES; sources++)
            for (int into = -1; into < sources; into++)
                check(dtype, reductions[r], sources, into);
}

TUTTI_TEST(any_number_of_sources_is_folded_from_left_to_right)
{
    check_sources(check_f32, TUTTI_F32);
    check_sources(check_f64, TUTTI_F64);
    check_sources(check_i32, TUTTI_I32);
    check_sources(check_i64, TUTTI_I64);
    check_sources(check_u8, TUTTI_U8);
}
