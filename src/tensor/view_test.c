#include "tensor/tensor.h"

#include "base/test.h"

#include <stdio.h>
#include <string.h>

#define DIMS(...)                                                                                  \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (const int64_t[])                                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* 0, 1, 2, … in the given shape. */
static tutti_tensor *counting(int rank, const int64_t *dims)
{
    tutti_tensor *t = NULL;
    CHECK_OK(tutti_tensor_create(TUTTI_I32, rank, dims, &t));
    for (int64_t i = 0; i < tutti_tensor_count(t); i++)
        tutti_tensor_set_int(t, i, i);
    return t;
}

/* Type and values as text: "i32[2,2]: 0 1 2 3". */
static void check_tensor(const tutti_tensor *t, const char *expected)
{
    char text[1024];
    tutti_type_text(tutti_tensor_type(t), text);
    size_t used = strlen(text);
    used += (size_t)snprintf(text + used, sizeof text - used, ":");
    for (int64_t i = 0; i < tutti_tensor_count(t); i++)
        used += (size_t)snprintf(text + used, sizeof text - used, " %d",
                                 (int)tutti_tensor_get_int(t, i));
    CHECK_STR(text, expected);
}

TUTTI_TEST(slice_takes_steps_both_ways)
{
    tutti_tensor *t = counting(DIMS(3, 4)), *v = NULL;
    CHECK_OK(tutti_tensor_slice(t, 0, 1, 2, 1, &v));
    check_tensor(v, "i32[2,4]: 4 5 6 7 8 9 10 11");
    CHECK(tutti_tensor_is_contiguous(v));
    tutti_tensor_release(v);
    CHECK_OK(tutti_tensor_slice(t, -1, 3, 2, -2, &v));
    check_tensor(v, "i32[3,2]: 3 1 7 5 11 9");
    CHECK(!tutti_tensor_is_contiguous(v));
    CHECK(tutti__tensor_view_of(v).strides != NULL);
    tutti_tensor *w = NULL;
    CHECK_OK(tutti_tensor_slice(v, 0, 2, 3, -1, &w));
    check_tensor(w, "i32[3,2]: 11 9 7 5 3 1");
    tutti_tensor_set_int(w, 0, 99);
    CHECK_INT(tutti_tensor_get_int(t, 11), 99);
    tutti_tensor_release(w);
    tutti_tensor_release(v);
    CHECK_OK(tutti_tensor_slice(t, 1, 4, 0, 1, &v));
    check_tensor(v, "i32[3,0]:");
    tutti_tensor_release(v);
    CHECK_OK(tutti_tensor_slice(t, 1, 2, 1, INT64_MIN, &v));
    check_tensor(v, "i32[3,1]: 2 6 10");
    tutti_tensor_release(v);
    tutti_tensor_release(t);
}

TUTTI_TEST(slice_refuses_what_leaves_the_axis)
{
    tutti_tensor *t = counting(DIMS(3, 4)), *v = NULL;
    CHECK_STATUS(tutti_tensor_slice(t, 2, 0, 1, 1, &v), TUTTI_INVALID);
    CHECK_STATUS(tutti_tensor_slice(t, -3, 0, 1, 1, &v), TUTTI_INVALID);
    CHECK_STATUS(tutti_tensor_slice(t, 0, 0, 1, 0, &v), TUTTI_INVALID);
    CHECK_STATUS(tutti_tensor_slice(t, 0, 0, -1, 1, &v), TUTTI_INVALID);
    CHECK_STATUS(tutti_tensor_slice(t, 0, 2, 2, 1, &v), TUTTI_OUT_OF_RANGE);
    CHECK_CONTAINS(tutti_error_message(), "i32[3,4]");
    CHECK_STATUS(tutti_tensor_slice(t, 0, -1, 1, 1, &v), TUTTI_OUT_OF_RANGE);
    CHECK_STATUS(tutti_tensor_slice(t, 0, 3, 1, 1, &v), TUTTI_OUT_OF_RANGE);
    CHECK_STATUS(tutti_tensor_slice(t, 0, 0, 2, -1, &v), TUTTI_OUT_OF_RANGE);
    CHECK_STATUS(tutti_tensor_slice(t, 0, 0, INT64_MAX, INT64_MAX, &v), TUTTI_OUT_OF_RANGE);
    CHECK_STATUS(tutti_tensor_slice(t, 0, 4, 0, 1, &v), TUTTI_OUT_OF_RANGE);
    CHECK(v == NULL);
    tutti_tensor_release(t);
}

TUTTI_TEST(permute_turns_axes)
{
    tutti_tensor *t = counting(DIMS(2, 1, 3)), *v = NULL;
    CHECK_OK(tutti_tensor_permute(t, (int[]){2, 0, 1}, &v));
    check_tensor(v, "i32[3,2,1]: 0 3 1 4 2 5");
    CHECK(!tutti_tensor_is_contiguous(v));
    tutti_tensor_release(v);
    CHECK_OK(tutti_tensor_permute(t, (int[]){1, 0, 2}, &v));
    CHECK(tutti_tensor_is_contiguous(v)); /* an axis of size 1 may stand anywhere */
    tutti_tensor_release(v);
    v = NULL;
    CHECK_STATUS(tutti_tensor_permute(t, (int[]){0, 0, 1}, &v), TUTTI_INVALID);
    CHECK_STATUS(tutti_tensor_permute(t, (int[]){0, 1, 3}, &v), TUTTI_INVALID);
    CHECK_STATUS(tutti_tensor_permute(t, (int[]){0, 1, -1}, &v), TUTTI_INVALID);
    CHECK(v == NULL);
    tutti_tensor_release(t);
}

TUTTI_TEST(broadcast_view_repeats_without_copying)
{
    tutti_tensor *t = counting(DIMS(3, 1)), *v = NULL;
    CHECK_OK(tutti_tensor_broadcast(t, DIMS(2, 3, 2), &v));
    check_tensor(v, "i32[2,3,2]: 0 0 1 1 2 2 0 0 1 1 2 2");
    CHECK_INT(tutti_tensor_strides(v)[0], 0);
    CHECK_INT(tutti_tensor_strides(v)[1], 1);
    CHECK_INT(tutti_tensor_strides(v)[2], 0);
    CHECK_STATUS(tutti_tensor_copy(v, v), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "broadcast view");
    tutti_tensor_release(v);
    CHECK_OK(tutti_tensor_broadcast(t, DIMS(0, 3, 1), &v));
    check_tensor(v, "i32[0,3,1]:");
    tutti_tensor_release(v);
    v = NULL;
    CHECK_STATUS(tutti_tensor_broadcast(t, DIMS(2, 2), &v), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "i32[3,1] cannot become [2,2]");
    CHECK_STATUS(tutti_tensor_broadcast(t, DIMS(3), &v), TUTTI_INVALID);
    CHECK_STATUS(tutti_tensor_broadcast(t, DIMS(3, -1), &v), TUTTI_INVALID);
    CHECK_STATUS(tutti_tensor_broadcast(t, DIMS(INT64_MAX, 3, 1), &v), TUTTI_TOO_LARGE);
    CHECK(v == NULL);
    tutti_tensor_release(t);
}

TUTTI_TEST(reshape_shares_where_strides_allow)
{
    tutti_tensor *t = counting(DIMS(4, 6)), *rows = NULL, *v = NULL;
    CHECK_OK(tutti_tensor_reshape(t, DIMS(2, TUTTI_ANY, 3), &v));
    CHECK_INT(tutti_tensor_dims(v)[1], 4);
    CHECK(tutti_tensor_data(v) == tutti_tensor_data(t));
    tutti_tensor_release(v);
    /* Every second row: rows can be split, not joined with columns. */
    CHECK_OK(tutti_tensor_slice(t, 0, 0, 2, 2, &rows));
    CHECK_OK(tutti_tensor_reshape(rows, DIMS(1, 2, 1, 3, 2, 1), &v));
    check_tensor(v, "i32[1,2,1,3,2,1]: 0 1 2 3 4 5 12 13 14 15 16 17");
    CHECK(tutti_tensor_data(v) == tutti_tensor_data(t));
    tutti_tensor_release(v);
    CHECK_OK(tutti_tensor_reshape(rows, DIMS(12), &v));
    check_tensor(v, "i32[12]: 0 1 2 3 4 5 12 13 14 15 16 17");
    CHECK(tutti_tensor_data(v) != tutti_tensor_data(t));
    tutti_tensor_release(v);
    tutti_tensor_release(rows);
    tutti_tensor_release(t);
}

TUTTI_TEST(reshape_joins_axes_that_step_as_one)
{
    tutti_tensor *t = counting(DIMS(2, 3, 4)), *part = NULL, *v = NULL;
    CHECK_OK(tutti_tensor_slice(t, 2, 3, 2, -3, &part));
    CHECK_OK(tutti_tensor_reshape(part, DIMS(6, 2), &v));
    check_tensor(v, "i32[6,2]: 3 0 7 4 11 8 15 12 19 16 23 20");
    CHECK(tutti_tensor_data(v) == tutti_tensor_data(part));
    tutti_tensor_release(v);
    tutti_tensor_release(part);
    tutti_tensor_release(t);
}

TUTTI_TEST(reshape_refuses_other_counts)
{
    tutti_tensor *t = counting(DIMS(4, 6)), *empty = counting(DIMS(0, 3)), *v = NULL;
    CHECK_STATUS(tutti_tensor_reshape(t, DIMS(5, 5), &v), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "i32[4,6] has 24 elements");
    CHECK_CONTAINS(tutti_error_message(), "[5,5]");
    CHECK_STATUS(tutti_tensor_reshape(t, DIMS(5, -1), &v), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "[5,?]");
    CHECK_STATUS(tutti_tensor_reshape(t, DIMS(-1, -1), &v), TUTTI_INVALID);
    CHECK_STATUS(tutti_tensor_reshape(t, DIMS(-2, -12), &v), TUTTI_INVALID);
    CHECK_STATUS(tutti_tensor_reshape(t, DIMS(0, -1), &v), TUTTI_INVALID);
    CHECK_STATUS(tutti_tensor_reshape(t, DIMS(INT64_MAX, INT64_MAX, -1), &v), TUTTI_INVALID);
    CHECK_STATUS(tutti_tensor_reshape(t, 9, (int64_t[9]){24}, &v), TUTTI_INVALID);
    CHECK_STATUS(tutti_tensor_reshape(empty, DIMS(0, -1), &v), TUTTI_INVALID);
    CHECK(v == NULL);
    CHECK_OK(tutti_tensor_reshape(empty, DIMS(7, -1), &v));
    check_tensor(v, "i32[7,0]:");
    tutti_tensor_release(v);
    CHECK_OK(tutti_tensor_reshape(empty, DIMS(0), &v));
    check_tensor(v, "i32[0]:");
    tutti_tensor_release(v);
    tutti_tensor_release(empty);
    tutti_tensor_release(t);
}
