#include "tensor/type.h"

#include "base/test.h"

#define DIMS(...)                                                                                  \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (const int64_t[])                                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

TUTTI_TEST(type_text_shows_dtype_and_dimensions)
{
    char text[TUTTI_TYPE_TEXT];
    tutti_type type = tutti_type_make(TUTTI_F32, DIMS(64, TUTTI_ANY, 10));
    CHECK_STR(tutti_type_text(&type, text), "f32[64,?,10]");
    type = tutti_type_make(TUTTI_STRING, 0, NULL);
    CHECK_STR(tutti_type_text(&type, text), "string[]");
    type = tutti_type_make(TUTTI_I64, DIMS(0));
    type.handle = true;
    CHECK_STR(tutti_type_text(&type, text), "handle i64[0]");
}

TUTTI_TEST(type_text_holds_the_longest_type)
{
    char text[TUTTI_TYPE_TEXT];
    int64_t least = INT64_MIN;
    tutti_type type =
        tutti_type_make(TUTTI_STRING, DIMS(least, least, least, least, least, least, least, least));
    type.handle = true;
    CHECK_CONTAINS(tutti_type_text(&type, text), "-9223372036854775808]");
    type.rank = 11;
    CHECK_STR(tutti_type_text(&type, text), "handle string[rank 11]");
}

TUTTI_TEST(type_make_refuses_ranks_that_are_none)
{
    int64_t dims[9] = {0};
    CHECK_INT(tutti_type_make(TUTTI_F32, 9, dims).dtype, TUTTI_NO_DTYPE);
    CHECK_INT(tutti_type_make(TUTTI_F32, -1, dims).dtype, TUTTI_NO_DTYPE);
    CHECK_INT(tutti_type_make(TUTTI_F32, 2, NULL).dtype, TUTTI_NO_DTYPE);
}

TUTTI_TEST(type_count_knows_unknown_overflow_and_zero)
{
    tutti_type type = tutti_type_make(TUTTI_F32, DIMS(3, 4));
    CHECK_INT(tutti_type_count(&type), 12);
    CHECK(tutti_type_is_static(&type));
    type = tutti_type_make(TUTTI_F32, DIMS(3, TUTTI_ANY));
    CHECK_INT(tutti_type_count(&type), TUTTI_ANY);
    CHECK(!tutti_type_is_static(&type));
    type = tutti_type_make(TUTTI_F32, DIMS(INT64_C(1) << 32, INT64_C(1) << 31));
    CHECK_INT(tutti_type_count(&type), -2);
    type = tutti_type_make(TUTTI_F32, DIMS(INT64_C(1) << 32, INT64_C(1) << 32, 0));
    CHECK_INT(tutti_type_count(&type), 0);
    type = tutti_type_make(TUTTI_F32, 0, NULL);
    CHECK_INT(tutti_type_count(&type), 1);
}

TUTTI_TEST(type_equal_and_fits)
{
    tutti_type a = tutti_type_make(TUTTI_F32, DIMS(2, 3)), b = a;
    CHECK(tutti_type_equal(&a, &b));
    b.dims[7] = 99; /* beyond the rank: no part of the type */
    CHECK(tutti_type_equal(&a, &b));
    b.dims[1] = TUTTI_ANY;
    CHECK(!tutti_type_equal(&a, &b));
    CHECK(tutti__type_fits(&a, &b));
    CHECK(!tutti__type_fits(&b, &a));
    b.handle = true;
    CHECK(!tutti__type_fits(&a, &b));
    b = a;
    b.dtype = TUTTI_I32;
    CHECK(!tutti_type_equal(&a, &b) && !tutti__type_fits(&a, &b));
    b = a;
    b.rank = 1;
    CHECK(!tutti_type_equal(&a, &b) && !tutti__type_fits(&a, &b));
}

static void check_broadcast(int rank_a, const int64_t *a, int rank_b, const int64_t *b,
                            const char *expected)
{
    int rank = -7;
    int64_t dims[TUTTI_MAX_RANK];
    char text[TUTTI_TYPE_TEXT];
    CHECK_OK(tutti_broadcast_dims(rank_a, a, rank_b, b, &rank, dims));
    CHECK_STR(tutti__dims_text(rank, dims, text), expected);
    CHECK_OK(tutti_broadcast_dims(rank_b, b, rank_a, a, &rank, dims));
    CHECK_STR(tutti__dims_text(rank, dims, text), expected);
}

TUTTI_TEST(broadcast_follows_the_rule_of_numpy)
{
    check_broadcast(DIMS(2, 3), DIMS(3), "[2,3]");
    check_broadcast(DIMS(4, 1, 3), DIMS(5, 1), "[4,5,3]");
    check_broadcast(DIMS(2), 0, NULL, "[2]");
    check_broadcast(0, NULL, 0, NULL, "[]");
    check_broadcast(DIMS(0, 3), DIMS(1, 1), "[0,3]");
    check_broadcast(DIMS(0), DIMS(0), "[0]");
}

TUTTI_TEST(broadcast_decides_unknown_dimensions_where_it_can)
{
    check_broadcast(DIMS(TUTTI_ANY), DIMS(1), "[?]");
    check_broadcast(DIMS(TUTTI_ANY), DIMS(TUTTI_ANY), "[?]");
    check_broadcast(DIMS(TUTTI_ANY, 3), DIMS(7, 1), "[7,3]");
    check_broadcast(DIMS(TUTTI_ANY), DIMS(0), "[0]");
    check_broadcast(DIMS(TUTTI_ANY, 3), DIMS(3), "[?,3]");
}

TUTTI_TEST(broadcast_error_shows_both_shapes)
{
    int rank = 42;
    int64_t dims[TUTTI_MAX_RANK] = {42};
    CHECK_STATUS(tutti_broadcast_dims(DIMS(2, 3), DIMS(TUTTI_ANY, 4), &rank, dims), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "shapes [2,3] and [?,4]");
    CHECK_CONTAINS(tutti_error_message(), "axis -1 has 3 and 4");
    CHECK_STATUS(tutti_broadcast_dims(DIMS(0), DIMS(2), &rank, dims), TUTTI_INVALID);
    CHECK_STATUS(tutti_broadcast_dims(9, dims, 0, NULL, &rank, dims), TUTTI_INVALID);
    CHECK_INT(rank, 42);
    CHECK_INT(dims[0], 42);
}
