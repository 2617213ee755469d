#include <math.h>
#include <string.h>

#include "base/test.h"
#include "device/cpu/kernel_check.h"
#include "device/cpu/tile/tile.h"
#include "tensor/dtype.h"

enum { COUNT = 203 }; /* some whole vectors of any set, and a rest */

static tutti_tile_args args_of(const void *x, void *y)
{
    static const double none[TUTTI_TILE_PARAMS];
    return (tutti_tile_args){.count = COUNT, .x = {x}, .y = y, .params = none};
}

static bool same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

static void check_loads(void)
{
    const tutti_tile_op *load = tutti__tile_find(".load_f16", NULL, 0);
    for (int first = 0; first < 65536; first += COUNT) {
        uint16_t x[COUNT];
        float floats[COUNT + 1];
        double doubles[COUNT + 1];
        for (int i = 0; i < COUNT; i++)
            x[i] = (uint16_t)(first + i);
        floats[COUNT] = 7;
        doubles[COUNT] = 7;
        tutti_tile_args to_floats = args_of(x, floats), to_doubles = args_of(x, doubles);
        load->f32(&to_floats);
        load->f64(&to_doubles);
        for (int i = 0; i < COUNT; i++) {
            CHECK(same((double)floats[i], (double)tutti_f16_to_f32(x[i])));
            CHECK(same(doubles[i], (double)tutti_f16_to_f32(x[i])));
        }
        CHECK(floats[COUNT] == 7 && doubles[COUNT] == 7);
    }
}

static void check_stores(uint32_t bits, uint32_t step)
{
    const tutti_tile_op *store = tutti__tile_find(".store_f16", NULL, 0);
    const tutti_tile_op *round = tutti__tile_find(".round_f16", NULL, 0);
    float x[COUNT], rounded[COUNT];
    double wide[COUNT], wide_rounded[COUNT];
    uint16_t y[COUNT + 1], z[COUNT + 1];
    for (int i = 0; i < COUNT; i++, bits += step) {
        memcpy(&x[i], &bits, sizeof bits);
        wide[i] = (double)x[i] * (1 + (i % 3 - 1) * 0x1p-40); /* beside the middle of two f16 */
    }
    y[COUNT] = z[COUNT] = 7;
    tutti_tile_args narrow = args_of(x, y), narrow_wide = args_of(wide, z);
    tutti_tile_args again = args_of(x, rounded), again_wide = args_of(wide, wide_rounded);
    store->f32(&narrow);
    store->f64(&narrow_wide);
    round->f32(&again);
    round->f64(&again_wide);
    for (int i = 0; i < COUNT; i++) {
        double expected = (double)tutti_f16_to_f32(tutti_f32_to_f16(x[i]));
        double expected_wide = (double)tutti_f16_to_f32(tutti__f64_to_f16(wide[i]));
        CHECK(same((double)tutti_f16_to_f32(y[i]), expected));
        CHECK(same((double)tutti_f16_to_f32(z[i]), expected_wide));
        CHECK(same((double)rounded[i], expected));
        CHECK(same(wide_rounded[i], expected_wide));
    }
    CHECK(y[COUNT] == 7 && z[COUNT] == 7);
}

/* Floats of every size and sign, then around the middles of two f16; NaN stays NaN. */
TUTTI_TEST(tile_conversions_of_f16_are_those_of_elements)
{
    for (const char *const *isa = tutti__kernel_check_isas; *isa; isa++) {
        if (!tutti__kernel_check_under(*isa))
            continue;
        check_loads();
        for (uint64_t at = 0; at < UINT64_C(1) << 32; at += UINT64_C(500009) * COUNT)
            check_stores((uint32_t)at, 500009);
        for (uint32_t middle = 0; middle < 1u << 19; middle += 1000)
            check_stores((middle << 13) + (1u << 12) - COUNT / 2, 1);
    }
    CHECK(tutti__kernel_check_under(NULL));
}
