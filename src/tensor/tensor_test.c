#include "tensor/tensor.h"

#include "base/test.h"

#include <pthread.h>
#include <string.h>

#define DIMS(...)                                                                                  \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (const int64_t[])                                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

TUTTI_TEST(tensor_create_is_zeroed_and_aligned)
{
    tutti_tensor *t = NULL;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, DIMS(3, 5), &t));
    CHECK_INT((uintptr_t)tutti_tensor_data(t) % 64, 0);
    CHECK_INT(tutti_tensor_count(t), 15);
    CHECK_INT(tutti_tensor_rank(t), 2);
    CHECK_INT(tutti_tensor_dims(t)[1], 5);
    CHECK_INT(tutti_tensor_strides(t)[0], 5);
    CHECK_INT(tutti_tensor_strides(t)[1], 1);
    CHECK_INT(tutti_tensor_dtype(t), TUTTI_F32);
    CHECK(tutti_tensor_is_contiguous(t));
    for (int64_t i = 0; i < 15; i++)
        CHECK(tutti_tensor_get(t, i) == 0);
    CHECK(tutti__tensor_unique(t));
    CHECK(tutti__tensor_view_of(t).strides == NULL);
    tutti_tensor_release(t);
    tutti_tensor_release(NULL);
}

TUTTI_TEST(tensor_scalar_and_empty_are_legal)
{
    tutti_tensor *scalar = NULL, *empty = NULL, *copy = NULL;
    CHECK_OK(tutti_tensor_create(TUTTI_I32, 0, NULL, &scalar));
    CHECK_INT(tutti_tensor_count(scalar), 1);
    int64_t large = INT64_C(1) << 40;
    CHECK_OK(tutti_tensor_create(TUTTI_F64, DIMS(large, 0, large), &empty));
    CHECK_INT(tutti_tensor_count(empty), 0);
    CHECK(tutti_tensor_data(empty) != NULL);
    CHECK(tutti_tensor_is_contiguous(empty));
    CHECK_OK(tutti_tensor_from(TUTTI_F64, DIMS(large, 0, large), NULL, &copy));
    CHECK(tutti_tensor_same(empty, copy));
    CHECK_OK(tutti_tensor_copy(copy, empty));
    tutti_tensor_release(scalar);
    tutti_tensor_release(empty);
    tutti_tensor_release(copy);
}

TUTTI_TEST(tensor_refuses_bad_shapes)
{
    tutti_tensor *none = NULL;
    int64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    CHECK_STATUS(tutti_tensor_create(TUTTI_F32, 9, nine, &none), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "rank 9");
    CHECK_STATUS(tutti_tensor_create(TUTTI_F32, -1, nine, &none), TUTTI_INVALID);
    CHECK_STATUS(tutti_tensor_create(TUTTI_F32, 1, NULL, &none), TUTTI_INVALID);
    CHECK_STATUS(tutti_tensor_create(TUTTI_F32, DIMS(4, -1), &none), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "[4,?]");
    CHECK_STATUS(tutti_tensor_create(TUTTI_F32, DIMS(4, -5), &none), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "[4,-5]");
    CHECK_STATUS(tutti_tensor_create((tutti_dtype)99, DIMS(4), &none), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "99");
    CHECK_STATUS(tutti_tensor_from(TUTTI_F32, DIMS(4), NULL, &none), TUTTI_INVALID);
    CHECK_STATUS(tutti_tensor_wrap(TUTTI_F32, DIMS(4), NULL, NULL, NULL, &none), TUTTI_INVALID);
    CHECK(none == NULL);
}

TUTTI_TEST(tensor_refuses_sizes_that_overflow)
{
    tutti_tensor *none = NULL;
    int64_t large = INT64_C(1) << 32;
    CHECK_STATUS(tutti_tensor_create(TUTTI_F32, DIMS(large, large), &none), TUTTI_TOO_LARGE);
    CHECK_CONTAINS(tutti_error_message(), "f32[4294967296,4294967296]");
    CHECK_STATUS(tutti_tensor_create(TUTTI_F64, DIMS(INT64_MAX), &none), TUTTI_TOO_LARGE);
    CHECK_STATUS(tutti_tensor_create(TUTTI_U8, DIMS(INT64_MAX), &none), TUTTI_TOO_LARGE);
    CHECK_CONTAINS(tutti_error_message(), "u8[9223372036854775807]");
    CHECK(none == NULL);
}

static void count_release(void *context)
{
    ++*(int *)context;
}

TUTTI_TEST(tensor_wrap_borrows_and_releases_once)
{
    float data[4] = {1, 2, 3, 4};
    int released = 0;
    tutti_tensor *t = NULL, *view = NULL;
    CHECK_STATUS(tutti_tensor_wrap(TUTTI_F32, DIMS(-4), data, count_release, &released, &t),
                 TUTTI_INVALID);
    CHECK_INT(released, 0);
    CHECK_OK(tutti_tensor_wrap(TUTTI_F32, DIMS(4), data, count_release, &released, &t));
    CHECK(tutti_tensor_data(t) == data);
    CHECK_OK(tutti_tensor_slice(t, 0, 1, 2, 1, &view));
    CHECK(!tutti__tensor_unique(t));
    CHECK(!tutti__tensor_unique(view));
    tutti_tensor_release(t);
    CHECK_INT(released, 0);
    CHECK(tutti_tensor_get(view, 1) == 3);
    CHECK(tutti__tensor_unique(view));
    tutti_tensor_release(view);
    CHECK_INT(released, 1);
}

TUTTI_TEST(tensor_over_stays_inside_its_buffer)
{
    tutti_buffer *buffer = NULL;
    tutti_tensor *t = NULL;
    CHECK_OK(tutti__buffer_create(tutti__host_memory(), 64, &buffer));
    memset(buffer->data, 0, 64);
    tutti_type type = tutti_type_make(TUTTI_I32, DIMS(4));
    CHECK_STATUS(tutti__tensor_over(buffer, &type, 49, &t), TUTTI_OUT_OF_RANGE);
    CHECK_CONTAINS(tutti_error_message(), "i32[4] at byte 49");
    CHECK_STATUS(tutti__tensor_over(buffer, &type, SIZE_MAX - 7, &t), TUTTI_OUT_OF_RANGE);
    CHECK_OK(tutti__tensor_over(buffer, &type, 48, &t));
    tutti_tensor_set_int(t, 3, 7);
    CHECK_INT(((int32_t *)buffer->data)[15], 7);
    CHECK(!tutti__tensor_unique(t));
    tutti__buffer_release(buffer);
    CHECK(tutti__tensor_unique(t));
    tutti_tensor_release(t);
}

static void *retain_and_release(void *argument)
{
    tutti_tensor *t = argument;
    for (int i = 0; i < 10000; i++) {
        tutti_tensor *view = NULL;
        tutti_tensor_retain(t);
        CHECK_OK(tutti_tensor_slice(t, 0, 0, 1, 1, &view));
        tutti_tensor_release(view);
        tutti_tensor_release(t);
    }
    tutti_tensor_release(t);
    return NULL;
}

TUTTI_TEST(tensor_references_are_counted_across_threads)
{
    int released = 0;
    float data[2] = {0};
    tutti_tensor *t = NULL;
    pthread_t threads[4];
    CHECK_OK(tutti_tensor_wrap(TUTTI_F32, DIMS(2), data, count_release, &released, &t));
    for (int i = 0; i < 4; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, retain_and_release, tutti_tensor_retain(t)), 0);
    tutti_tensor_release(t);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK_INT(released, 1);
}
