#include "tensor/dtype.h"

#include "base/test.h"

#include <math.h>
#include <string.h>

TUTTI_TEST(dtype_names_sizes_and_kinds)
{
    CHECK_STR(tutti_dtype_name(TUTTI_BF16), "bf16");
    CHECK_STR(tutti_dtype_name(TUTTI_NO_DTYPE), "?");
    CHECK_STR(tutti_dtype_name((tutti_dtype)77), "?");
    CHECK_STR(tutti_dtype_name((tutti_dtype)-3), "?");
    CHECK_INT(tutti_dtype_size(TUTTI_F64), 8);
    CHECK_INT(tutti_dtype_size(TUTTI_STRING), sizeof(tutti_string));
    CHECK_INT(tutti_dtype_size(TUTTI_DTYPE_END), 0);
    CHECK(tutti_dtype_is_float(TUTTI_F16) && !tutti_dtype_is_float(TUTTI_I8));
    CHECK(tutti_dtype_is_int(TUTTI_U8) && !tutti_dtype_is_int(TUTTI_BOOL));
}

TUTTI_TEST(dtype_parse_reads_every_name_and_lists_them_on_error)
{
    for (int i = 1; i < TUTTI_DTYPE_END; i++) {
        tutti_dtype dtype = TUTTI_NO_DTYPE;
        CHECK_OK(tutti_dtype_parse(tutti_dtype_name((tutti_dtype)i), &dtype));
        CHECK_INT(dtype, i);
    }
    tutti_dtype untouched = TUTTI_I8;
    CHECK_STATUS(tutti_dtype_parse("float32", &untouched), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "'float32'");
    CHECK_CONTAINS(tutti_error_message(), " f32 f64 ");
    CHECK_STATUS(tutti_dtype_parse(NULL, &untouched), TUTTI_INVALID);
    CHECK_INT(untouched, TUTTI_I8);
}

/* Value of a finite 16-bit float by its definition. */
static double by_definition(uint32_t bits, int exponent_bits, int fraction_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = (int)(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
    int fraction = (int)bits & ((1 << fraction_bits) - 1);
    double sign = bits >> 15 ? -1 : 1;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - bias - fraction_bits);
    return sign * ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

TUTTI_TEST(f16_round_trips_exhaustively)
{
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        float value = tutti_f16_to_f32((uint16_t)bits);
        uint32_t magnitude = bits & 0x7fff;
        if (magnitude > 0x7c00) { /* NaNs become quiet */
            CHECK(isnan(value) && !!signbit(value) == bits >> 15);
            CHECK_INT(tutti_f32_to_f16(value), bits | 0x200);
            continue;
        }
        if (magnitude == 0x7c00)
            CHECK(isinf(value) && !!signbit(value) == bits >> 15);
        else
            CHECK((double)value == by_definition(bits, 5, 10));
        CHECK_INT(tutti_f32_to_f16(value), bits);
        CHECK_INT(tutti__f64_to_f16((double)value), bits);
    }
}

TUTTI_TEST(bf16_round_trips_exhaustively)
{
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        float value = tutti_bf16_to_f32((uint16_t)bits);
        uint32_t magnitude = bits & 0x7fff;
        if (magnitude > 0x7f80) {
            CHECK(isnan(value));
            CHECK_INT(tutti_f32_to_bf16(value), bits | 0x40);
            continue;
        }
        if (magnitude < 0x7f80)
            CHECK((double)value == by_definition(bits, 8, 7));
        CHECK_INT(tutti_f32_to_bf16(value), bits);
        CHECK_INT(tutti__f64_to_bf16((double)value), bits);
    }
}

/* Between every two neighbours: below, at and above the middle. */
static void check_middles(uint16_t (*to_bits)(double), float (*to_float)(uint16_t),
                          uint32_t infinity, double beyond)
{
    for (uint32_t bits = 0; bits < infinity; bits++) {
        double low = (double)to_float((uint16_t)bits);
        double high = bits + 1 == infinity ? beyond : (double)to_float((uint16_t)(bits + 1));
        double middle = (low + high) / 2, inch = middle * 0x1p-50;
        uint32_t even = bits & 1 ? bits + 1 : bits;
        CHECK_INT(to_bits(middle), even);
        CHECK_INT(to_bits(-middle), even | 0x8000);
        CHECK_INT(to_bits(middle - inch), bits);
        CHECK_INT(to_bits(middle + inch), bits + 1);
        CHECK_INT(to_bits(-middle - inch), (bits + 1) | 0x8000);
    }
}

static uint16_t f32_path_f16(double value)
{
    return tutti_f32_to_f16((float)value);
}

static uint16_t f32_path_bf16(double value)
{
    return tutti_f32_to_bf16((float)value);
}

TUTTI_TEST(f64_to_16_bit_floats_rounds_once_to_nearest_even)
{
    check_middles(tutti__f64_to_f16, tutti_f16_to_f32, 0x7c00, 65536.0);
    check_middles(tutti__f64_to_bf16, tutti_bf16_to_f32, 0x7f80, 0x1p128);
}

TUTTI_TEST(f32_to_16_bit_floats_rounds_to_nearest_even)
{
    for (uint32_t bits = 0; bits + 1 < 0x7c00; bits++) {
        float low = tutti_f16_to_f32((uint16_t)bits), high = tutti_f16_to_f32((uint16_t)(bits + 1));
        float middle = (low + high) / 2;
        CHECK_INT(f32_path_f16((double)middle), bits & 1 ? bits + 1 : bits);
        CHECK_INT(f32_path_f16((double)nextafterf(middle, 0)), bits);
        CHECK_INT(f32_path_f16((double)nextafterf(middle, INFINITY)), bits + 1);
    }
    for (uint32_t bits = 1; bits + 1 < 0x7f80; bits++) {
        float low = tutti_bf16_to_f32((uint16_t)bits);
        float middle = low + (tutti_bf16_to_f32((uint16_t)(bits + 1)) - low) / 2;
        CHECK_INT(f32_path_bf16((double)middle), bits & 1 ? bits + 1 : bits);
        CHECK_INT(f32_path_bf16((double)nextafterf(middle, 0)), bits);
        CHECK_INT(f32_path_bf16((double)nextafterf(middle, INFINITY)), bits + 1);
    }
}

TUTTI_TEST(sixteen_bit_floats_overflow_to_infinity)
{
    CHECK_INT(tutti_f32_to_f16(65519.996f), 0x7bff);
    CHECK_INT(tutti_f32_to_f16(65520.0f), 0x7c00);
    CHECK_INT(tutti_f32_to_f16(-1e30f), 0xfc00);
    CHECK_INT(tutti__f64_to_f16(1e300), 0x7c00);
    CHECK_INT(tutti__f64_to_bf16(-1e300), 0xff80);
    CHECK_INT(tutti_f32_to_bf16(3.4028235e38f), 0x7f80);
    CHECK_INT(tutti__f64_to_f16(1e-300), 0);
    CHECK_INT(tutti__f64_to_f16((double)NAN) & 0x7fff, 0x7e00);
}
