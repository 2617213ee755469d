#include "tensor/dtype.h"

#include "base/test.h"

#include <math.h>
#include <stdalign.h>

/* Writes one double and one integer into an element of each type and reads them back. */
static void check_set(tutti_dtype dtype, double value, double expected)
{
    alignas(16) unsigned char data[16] = {0};
    tutti_view view = {.data = data, .dtype = dtype};
    tutti_view_set(&view, 0, value);
    double got = tutti_view_get(&view, 0);
    if (isnan(expected))
        CHECK(isnan(got));
    else
        CHECK_NEAR(got, expected, 0);
}

static void check_set_int(tutti_dtype dtype, int64_t value, int64_t expected)
{
    alignas(16) unsigned char data[16] = {0};
    tutti_view view = {.data = data, .dtype = dtype};
    tutti_view_set_int(&view, 0, value);
    CHECK_INT(tutti_view_get_int(&view, 0), expected);
}

TUTTI_TEST(view_elements_convert_floats)
{
    check_set(TUTTI_F32, 0.1, (double)0.1f);
    check_set(TUTTI_F64, 0.1, 0.1);
    check_set(TUTTI_F16, 0.1, 0x1.998p-4);
    check_set(TUTTI_BF16, 0.1, 0x1.9ap-4);
    check_set(TUTTI_I8, -1.9, -1);
    check_set(TUTTI_I8, 1e9, 127);
    check_set(TUTTI_I8, -1e9, -128);
    check_set(TUTTI_U8, -5, 0);
    check_set(TUTTI_U8, 255.9, 255);
    check_set(TUTTI_I32, 2147483646.7, 2147483646);
    check_set(TUTTI_I32, (double)INFINITY, 2147483647);
    check_set(TUTTI_I64, -1e300, -0x1p63);
    check_set(TUTTI_I64, (double)NAN, 0);
    check_set(TUTTI_F16, (double)NAN, (double)NAN);
    check_set(TUTTI_BOOL, 0.5, 1);
    check_set(TUTTI_BOOL, -0.0, 0);
    check_set(TUTTI_STRING, 3, (double)NAN);
}

TUTTI_TEST(view_elements_convert_integers)
{
    check_set_int(TUTTI_I8, 200, -56);
    check_set_int(TUTTI_U8, -1, 255);
    check_set_int(TUTTI_I32, INT64_C(1) << 32, 0);
    check_set_int(TUTTI_I64, INT64_MIN, INT64_MIN);
    check_set_int(TUTTI_I64, INT64_MAX - 1, INT64_MAX - 1);
    check_set_int(TUTTI_BOOL, 256, 1);
    check_set_int(TUTTI_F32, 16777217, 16777216);
    check_set_int(TUTTI_F64, (INT64_C(1) << 53) + 1, INT64_C(1) << 53);
    check_set_int(TUTTI_F64, INT64_MAX, INT64_MAX); /* 2^63, read back as the nearest */
    check_set_int(TUTTI_F16, 2049, 2048);
    check_set_int(TUTTI_F16, INT64_MIN, INT64_MIN); /* minus infinity */
    check_set_int(TUTTI_STRING, 3, 0);
}

TUTTI_TEST(integers_round_once_to_16_bit_floats)
{
    /* One above the middle of two bf16 neighbours, far below a double's last place. */
    int64_t odd = (INT64_C(0x81) << 54) + (INT64_C(1) << 53);
    check_set_int(TUTTI_BF16, odd, INT64_C(0x82) << 54);
    check_set_int(TUTTI_BF16, odd - 1, INT64_C(0x81) << 54);
    int64_t even = (INT64_C(0x80) << 54) + (INT64_C(1) << 53);
    check_set_int(TUTTI_BF16, even, INT64_C(0x80) << 54);
    check_set_int(TUTTI_BF16, even + 1, INT64_C(0x81) << 54);
    check_set_int(TUTTI_BF16, -even - 1, -(INT64_C(0x81) << 54));
    check_set_int(TUTTI_BF16, -even, -(INT64_C(0x80) << 54));
}

TUTTI_TEST(view_index_walks_strides_in_row_major_order)
{
    int32_t data[6] = {0, 1, 2, 3, 4, 5};
    int64_t dims[2] = {3, 2}, strides[2] = {1, 3};
    tutti_view view = {.data = data, .dtype = TUTTI_I32, .rank = 2, .dims = dims};
    CHECK_INT(tutti_view_count(&view), 6);
    CHECK_INT(tutti_view_get_int(&view, 3), 3);
    view.strides = strides;
    static const int expected[] = {0, 3, 1, 4, 2, 5};
    for (int i = 0; i < 6; i++)
        CHECK_INT(tutti_view_get_int(&view, i), expected[i]);
    tutti_view_set_int(&view, 1, 30);
    CHECK_INT(data[3], 30);
    dims[0] = 0;
    CHECK_INT(tutti_view_count(&view), 0);
    view.rank = 0;
    CHECK_INT(tutti_view_count(&view), 1);
}

TUTTI_TEST(tensor_elements_outside_read_as_nothing)
{
    tutti_tensor *t = NULL;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){2}, &t));
    tutti_tensor_set(t, 2, 5);
    tutti_tensor_set_int(t, -1, 5);
    CHECK(isnan(tutti_tensor_get(t, 2)));
    CHECK(isnan(tutti_tensor_get(t, -1)));
    CHECK_INT(tutti_tensor_get_int(t, 2), 0);
    CHECK_INT(tutti_tensor_get_string(t, 0).size, 0);
    CHECK(tutti_tensor_get(t, 0) == 0 && tutti_tensor_get(t, 1) == 0);
    tutti_tensor_release(t);
}
