#include "tensor/tensor.h"

#include "base/test.h"

#include <stdio.h>
#include <string.h>

static void check_string(const tutti_tensor *t, int64_t index, const char *expected, int64_t size)
{
    tutti_string got = tutti_tensor_get_string(t, index);
    CHECK_INT(got.size, size);
    CHECK(memcmp(got.data, expected, (size_t)size) == 0);
}

TUTTI_TEST(string_tensor_owns_its_bytes)
{
    char text[] = "abc";
    tutti_string data[2] = {{text, 3}, {NULL, 0}};
    tutti_tensor *t = NULL;
    CHECK_OK(tutti_tensor_from(TUTTI_STRING, 1, (int64_t[]){2}, data, &t));
    memset(text, 'x', 3);
    check_string(t, 0, "abc", 3);
    check_string(t, 1, "", 0);
    CHECK(tutti_tensor_get_string(t, 1).data != NULL);
    CHECK_OK(tutti_tensor_set_string(t, 1, "with\0nul", 8));
    check_string(t, 1, "with\0nul", 8);
    /* From its own bytes. */
    tutti_string own = tutti_tensor_get_string(t, 1);
    CHECK_OK(tutti_tensor_set_string(t, 1, own.data + 5, 3));
    check_string(t, 1, "nul", 3);
    check_string(t, 0, "abc", 3);
    check_string(t, 2, "", 0);
    tutti_tensor_release(t);
}

TUTTI_TEST(string_set_refuses_what_is_none)
{
    tutti_tensor *t = NULL, *number = NULL, *none = NULL;
    CHECK_OK(tutti_tensor_create(TUTTI_STRING, 1, (int64_t[]){2}, &t));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){2}, &number));
    CHECK_STATUS(tutti_tensor_set_string(t, 2, "a", 1), TUTTI_OUT_OF_RANGE);
    CHECK_STATUS(tutti_tensor_set_string(t, -1, "a", 1), TUTTI_OUT_OF_RANGE);
    CHECK_STATUS(tutti_tensor_set_string(t, 0, "a", -1), TUTTI_INVALID);
    CHECK_STATUS(tutti_tensor_set_string(t, 0, NULL, 1), TUTTI_INVALID);
    CHECK_STATUS(tutti_tensor_set_string(t, 0, "a", INT64_MAX), TUTTI_TOO_LARGE);
    CHECK_STATUS(tutti_tensor_set_string(number, 0, "a", 1), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "f32[2]");
    tutti_string bad[2] = {{"a", 1}, {"b", -2}};
    CHECK_STATUS(tutti_tensor_from(TUTTI_STRING, 1, (int64_t[]){2}, bad, &none), TUTTI_INVALID);
    bad[1].size = INT64_MAX;
    CHECK_STATUS(tutti_tensor_from(TUTTI_STRING, 1, (int64_t[]){2}, bad, &none), TUTTI_TOO_LARGE);
    CHECK(none == NULL);
    tutti_tensor_release(t);
    tutti_tensor_release(number);
}

TUTTI_TEST(string_copies_are_deep_and_views_share)
{
    tutti_string data[4] = {{"a", 1}, {"bb", 2}, {"ccc", 3}, {"dddd", 4}};
    tutti_tensor *t = NULL, *turned = NULL, *copy = NULL, *cast = NULL, *row = NULL;
    CHECK_OK(tutti_tensor_from(TUTTI_STRING, 2, (int64_t[]){2, 2}, data, &t));
    CHECK_OK(tutti_tensor_permute(t, (int[]){1, 0}, &turned));
    check_string(turned, 1, "ccc", 3);
    CHECK_OK(tutti_tensor_contiguous(turned, &copy));
    CHECK_OK(tutti_tensor_cast(turned, TUTTI_STRING, &cast));
    CHECK(tutti_tensor_same(copy, turned) && tutti_tensor_same(cast, copy));
    CHECK_OK(tutti_tensor_set_string(t, 2, "zzz", 3));
    check_string(turned, 1, "zzz", 3);
    CHECK(!tutti_tensor_same(copy, turned));
    tutti_tensor_release(turned);
    CHECK_OK(tutti_tensor_slice(t, 0, 1, 1, 1, &row));
    tutti_tensor_release(t);
    check_string(row, 0, "zzz", 3); /* the buffer lives on with the view */
    check_string(copy, 1, "ccc", 3);
    tutti_tensor_release(row);
    tutti_tensor_release(copy);
    tutti_tensor_release(cast);
}

TUTTI_TEST(string_copy_within_one_buffer)
{
    tutti_string data[3] = {{"a", 1}, {"bb", 2}, {"ccc", 3}};
    tutti_tensor *t = NULL, *backwards = NULL;
    CHECK_OK(tutti_tensor_from(TUTTI_STRING, 1, (int64_t[]){3}, data, &t));
    CHECK_OK(tutti_tensor_slice(t, 0, 2, 3, -1, &backwards));
    CHECK_OK(tutti_tensor_copy(t, backwards));
    check_string(t, 0, "ccc", 3);
    check_string(t, 2, "a", 1);
    tutti_tensor_release(t);
    tutti_tensor_release(backwards);
}

TUTTI_TEST(string_payload_does_not_grow_without_bound)
{
    tutti_tensor *t = NULL;
    CHECK_OK(tutti_tensor_create(TUTTI_STRING, 1, (int64_t[]){3}, &t));
    CHECK_OK(tutti_tensor_set_string(t, 2, "kept", 4));
    char text[1000] = {0};
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "number %d", i);
        CHECK_OK(tutti_tensor_set_string(t, i % 2, text, sizeof text));
        check_string(t, i % 2, text, sizeof text);
        check_string(t, 2, "kept", 4);
        CHECK(t->buffer->payload_size <= 16 * 1024);
    }
    tutti_tensor_release(t);
}

TUTTI_TEST(string_elements_moved_by_a_kernel_become_owned)
{
    tutti_string data[2] = {{"left", 4}, {"right", 5}};
    tutti_tensor *source = NULL, *moved = NULL;
    CHECK_OK(tutti_tensor_from(TUTTI_STRING, 1, (int64_t[]){2}, data, &source));
    CHECK_OK(tutti_tensor_create(TUTTI_STRING, 1, (int64_t[]){2}, &moved));
    memcpy(tutti_tensor_data(moved), tutti_tensor_data(source), 2 * sizeof(tutti_string));
    CHECK_OK(tutti__tensor_own_strings(moved));
    tutti_tensor_release(source);
    check_string(moved, 0, "left", 4);
    check_string(moved, 1, "right", 5);
    tutti_tensor_release(moved);
}

TUTTI_TEST(string_wrap_borrows_elements_and_bytes)
{
    char text[] = "mine";
    tutti_string data[2] = {{text, 4}, {NULL, 0}};
    tutti_tensor *t = NULL;
    CHECK_OK(tutti_tensor_wrap(TUTTI_STRING, 1, (int64_t[]){2}, data, NULL, NULL, &t));
    CHECK(tutti_tensor_get_string(t, 0).data == text);
    CHECK_OK(tutti_tensor_set_string(t, 1, "more", 4));
    CHECK(data[0].data == text && data[1].size == 4);
    tutti_tensor_release(t);
}
