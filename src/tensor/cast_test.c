#include "base/test.h"
#include "tutti/tensor.h"

#include <math.h>

/* Casting a tensor of 600 elements gives, for each pair of types, what its elements give one by
 * one. */
static void check_pair(tutti_dtype from, tutti_dtype to)
{
    tutti_tensor *source = NULL, *view = NULL, *result = NULL;
    CHECK_OK(tutti_tensor_create(from, 2, (int64_t[]){2, 300}, &source));
    for (int64_t i = 0; i < 600; i++)
        tutti_tensor_set(source, i, (double)(i - 300) * 1.37);
    CHECK_OK(tutti_tensor_permute(source, (int[]){1, 0}, &view));
    CHECK_OK(tutti_tensor_cast(view, to, &result));
    CHECK_INT(tutti_tensor_dtype(result), to);
    CHECK_INT(tutti_tensor_dims(result)[0], 300);
    CHECK(tutti_tensor_is_contiguous(result));
    tutti_tensor *one = NULL;
    CHECK_OK(tutti_tensor_create(to, 0, NULL, &one));
    for (int64_t i = 0; i < 600; i++) {
        if (tutti_dtype_is_float(from))
            tutti_tensor_set(one, 0, tutti_tensor_get(view, i));
        else
            tutti_tensor_set_int(one, 0, tutti_tensor_get_int(view, i));
        CHECK_NEAR(tutti_tensor_get(result, i), tutti_tensor_get(one, 0), 0);
    }
    tutti_tensor_release(one);
    tutti_tensor_release(source);
    tutti_tensor_release(view);
    tutti_tensor_release(result);
}

TUTTI_TEST(cast_converts_every_pair_of_types)
{
    for (int from = TUTTI_F32; from < TUTTI_STRING; from++)
        for (int to = TUTTI_F32; to < TUTTI_STRING; to++)
            check_pair((tutti_dtype)from, (tutti_dtype)to);
}

TUTTI_TEST(cast_keeps_large_integers_exact)
{
    tutti_tensor *wide = NULL, *result = NULL;
    int64_t values[2] = {INT64_MAX, INT64_C(0x100000007)};
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 1, (int64_t[]){2}, values, &wide));
    CHECK_OK(tutti_tensor_cast(wide, TUTTI_I32, &result));
    CHECK_INT(tutti_tensor_get_int(result, 0), -1);
    CHECK_INT(tutti_tensor_get_int(result, 1), 7);
    tutti_tensor_release(result);
    CHECK_OK(tutti_tensor_cast(wide, TUTTI_I64, &result));
    CHECK(tutti_tensor_data(result) != tutti_tensor_data(wide));
    CHECK(tutti_tensor_same(result, wide));
    tutti_tensor_release(result);
    tutti_tensor_release(wide);
}

TUTTI_TEST(cast_refuses_strings_and_unknown_types)
{
    tutti_tensor *t = NULL, *none = NULL;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 0, NULL, &t));
    CHECK_STATUS(tutti_tensor_cast(t, TUTTI_STRING, &none), TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), "f32[] cannot become string");
    CHECK_STATUS(tutti_tensor_cast(t, (tutti_dtype)0, &none), TUTTI_INVALID);
    CHECK(none == NULL);
    tutti_tensor_release(t);
}

TUTTI_TEST(same_compares_bits_and_types)
{
    tutti_tensor *a = NULL, *b = NULL, *c = NULL;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){2}, &a));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){2}, &b));
    CHECK_OK(tutti_tensor_create(TUTTI_I32, 1, (int64_t[]){2}, &c));
    CHECK(tutti_tensor_same(a, b) && !tutti_tensor_same(a, c));
    tutti_tensor_set(a, 1, (double)NAN);
    CHECK(!tutti_tensor_same(a, b));
    tutti_tensor_set(b, 1, (double)NAN);
    CHECK(tutti_tensor_same(a, b));
    tutti_tensor_set(a, 0, -0.0);
    CHECK(!tutti_tensor_same(a, b));
    tutti_tensor_release(a);
    tutti_tensor_release(b);
    tutti_tensor_release(c);
}
