#include "tensor/tensor.h"

#include "base/random.h"
#include "base/test.h"

#include <stdlib.h>
#include <string.h>

#define DIMS(...)                                                                                  \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (const int64_t[])                                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* A random view of a fresh tensor, of a wanted shape: permuted, with gaps and reversed axes. */
static tutti_tensor *random_view(tutti_random_key key, tutti_dtype dtype, int rank,
                                 const int64_t *dims)
{
    int order[TUTTI_MAX_RANK], inverse[TUTTI_MAX_RANK];
    int64_t larger[TUTTI_MAX_RANK] = {0};
    for (int i = 0; i < rank; i++)
        order[i] = i;
    for (int i = rank - 1; i > 0; i--) {
        int other = (int)tutti__random_below(key, (uint64_t)i, (uint64_t)i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (int i = 0; i < rank; i++) {
        inverse[order[i]] = i;
        larger[i] = dims[order[i]] * 2 + 1;
    }
    tutti_tensor *view = NULL, *next = NULL;
    CHECK_OK(tutti_tensor_create(dtype, rank, larger, &view));
    for (int i = 0; i < rank; i++) {
        static const int64_t steps[] = {1, 2, -1, -2};
        int64_t size = dims[order[i]];
        int64_t step = steps[tutti__random_below(key, 100 + (uint64_t)i, 4)];
        CHECK_OK(tutti_tensor_slice(view, i, step < 0 ? 2 * size : 1, size, step, &next));
        tutti_tensor_release(view);
        view = next;
    }
    CHECK_OK(tutti_tensor_permute(view, inverse, &next));
    tutti_tensor_release(view);
    return next;
}

TUTTI_TEST(copy_moves_any_strides_of_any_type)
{
    static const tutti_dtype dtypes[] = {TUTTI_U8, TUTTI_F16, TUTTI_I32, TUTTI_F64};
    for (uint64_t round = 0; round < 400; round++) {
        tutti_random_key key = {.seed = 5, .stream = round};
        tutti_dtype dtype = dtypes[round % 4];
        int rank = (int)tutti__random_below(key, 200, 5);
        int64_t dims[TUTTI_MAX_RANK] = {0}, count = 1;
        for (int i = 0; i < rank; i++)
            count *= dims[i] = (int64_t)tutti__random_below(key, 300 + (uint64_t)i, 4) + (i != 1);
        tutti_tensor *from = random_view(key, dtype, rank, dims);
        key.seed = 6;
        tutti_tensor *to = random_view(key, dtype, rank, dims), *plain = NULL;
        for (int64_t i = 0; i < count; i++)
            tutti_tensor_set_int(from, i, i + 1);
        CHECK_OK(tutti_tensor_copy(to, from));
        CHECK_OK(tutti_tensor_contiguous(from, &plain));
        CHECK(tutti_tensor_is_contiguous(plain));
        for (int64_t i = 0; i < count; i++) {
            CHECK_INT(tutti_tensor_get_int(to, i), i + 1);
            CHECK_INT(tutti_tensor_get_int(plain, i), i + 1);
        }
        CHECK(tutti_tensor_same(to, from));
        /* Nothing else was written: the whole buffer holds the elements' sum. */
        int64_t sum = 0;
        tutti_tensor *whole = NULL;
        tutti_type all = tutti_type_make(
            dtype, 1, (int64_t[]){(int64_t)(to->buffer->size / tutti_dtype_size(dtype))});
        CHECK_OK(tutti__tensor_over(to->buffer, &all, 0, &whole));
        for (int64_t i = 0; i < tutti_tensor_count(whole); i++)
            sum += tutti_tensor_get_int(whole, i);
        CHECK_INT(sum, count * (count + 1) / 2);
        tutti_tensor_release(whole);
        tutti_tensor_release(plain);
        tutti_tensor_release(to);
        tutti_tensor_release(from);
    }
}

TUTTI_TEST(copy_onto_overlapping_memory_reverses)
{
    int32_t data[5] = {1, 2, 3, 4, 5};
    tutti_tensor *t = NULL, *backwards = NULL, *low = NULL, *high = NULL;
    CHECK_OK(tutti_tensor_from(TUTTI_I32, DIMS(5), data, &t));
    CHECK_OK(tutti_tensor_slice(t, 0, 4, 5, -1, &backwards));
    CHECK_OK(tutti_tensor_copy(t, backwards));
    for (int i = 0; i < 5; i++)
        CHECK_INT(tutti_tensor_get_int(t, i), 5 - i);
    CHECK_OK(tutti_tensor_slice(t, 0, 0, 4, 1, &low));
    CHECK_OK(tutti_tensor_slice(t, 0, 1, 4, 1, &high));
    CHECK_OK(tutti_tensor_copy(high, low));
    CHECK_INT(tutti_tensor_get_int(t, 0), 5);
    CHECK_INT(tutti_tensor_get_int(t, 1), 5);
    CHECK_INT(tutti_tensor_get_int(t, 4), 2);
    tutti_tensor_release(t);
    tutti_tensor_release(backwards);
    tutti_tensor_release(low);
    tutti_tensor_release(high);
}

TUTTI_TEST(copy_refuses_other_types)
{
    tutti_tensor *a = NULL, *b = NULL;
    CHECK_OK(tutti_tensor_create(TUTTI_I32, DIMS(2), &a));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, DIMS(2), &b));
    CHECK_STATUS(tutti_tensor_copy(a, b), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "source is f32[2], destination i32[2]");
    tutti_tensor_release(a);
    tutti_tensor_release(b);
}

/* Memory that host code cannot read: bytes are kept inverted. */
static tutti_status odd_allocate(void *self, size_t size, void **ret)
{
    ++*(int *)self;
    *ret = malloc(size + 1);
    return *ret != NULL ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "odd memory");
}

static void odd_release(void *self, void *data, size_t size)
{
    (void)size;
    --*(int *)self;
    free(data);
}

static tutti_status odd_copy(void *self, void *to, const void *from, size_t size)
{
    (void)self;
    for (size_t i = 0; i < size; i++)
        ((unsigned char *)to)[i] = (unsigned char)~((const unsigned char *)from)[i];
    return TUTTI_OK;
}

TUTTI_TEST(copy_reaches_memory_through_its_table)
{
    int live = 0;
    const tutti_memory odd = {.name = "odd",
                              .allocate = odd_allocate,
                              .release = odd_release,
                              .copy_in = odd_copy,
                              .copy_out = odd_copy,
                              .alignment = 1,
                              .self = &live};
    tutti_type type = tutti_type_make(TUTTI_F32, DIMS(3, 4));
    tutti_tensor *device = NULL, *host = NULL, *columns = NULL, *back = NULL, *cast = NULL;
    CHECK_OK(tutti__tensor_in(&odd, &type, &device));
    CHECK(!tutti__tensor_on_host(device));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, DIMS(3, 4), &host));
    for (int64_t i = 0; i < 12; i++)
        tutti_tensor_set(host, i, (double)i);
    CHECK_OK(tutti_tensor_copy(device, host));
    CHECK(tutti_tensor_same(device, host));
    CHECK(tutti_tensor_get(device, 7) == 7);
    tutti_tensor_set(device, 7, 70);
    CHECK_INT(tutti_tensor_get_int(device, 7), 70);
    /* A strided piece, both ways: columns 3 and 1. */
    CHECK_OK(tutti_tensor_slice(device, 1, 3, 2, -2, &columns));
    CHECK_OK(tutti__tensor_to_host(columns, &back));
    CHECK(tutti__tensor_on_host(back) && tutti_tensor_is_contiguous(back));
    CHECK(tutti_tensor_get(back, 2) == 70 && tutti_tensor_get(back, 1) == 1);
    tutti_tensor_set(back, 5, -9);
    CHECK_OK(tutti_tensor_copy(columns, back));
    CHECK(tutti_tensor_get(device, 9) == -9);
    CHECK(tutti_tensor_get(device, 8) == 8);
    tutti_tensor_release(back);
    CHECK_OK(tutti_tensor_contiguous(columns, &back)); /* stays in its memory */
    CHECK(back->buffer->memory == &odd);
    CHECK(tutti_tensor_same(back, columns));
    CHECK_OK(tutti_tensor_cast(columns, TUTTI_I32, &cast));
    CHECK_INT(tutti_tensor_get_int(cast, 5), -9);
    CHECK_INT(live, 2);
    tutti_tensor *tensors[] = {device, host, columns, back, cast};
    for (size_t i = 0; i < TUTTI_COUNT(tensors); i++)
        tutti_tensor_release(tensors[i]);
    CHECK_INT(live, 0);
}

TUTTI_TEST(strings_stay_out_of_memory_the_host_cannot_read)
{
    int live = 0;
    const tutti_memory odd = {.name = "odd",
                              .allocate = odd_allocate,
                              .release = odd_release,
                              .copy_in = odd_copy,
                              .copy_out = odd_copy,
                              .self = &live};
    tutti_type type = tutti_type_make(TUTTI_STRING, DIMS(3));
    tutti_tensor *none = NULL;
    CHECK_STATUS(tutti__tensor_in(&odd, &type, &none), TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), "'odd'");
    CHECK(none == NULL && live == 0);
}

/* Planes whose lines lie along another axis than the destination's go in tiles. */
TUTTI_TEST(turned_tensors_are_copied_in_tiles)
{
    static const tutti_dtype dtypes[] = {TUTTI_U8, TUTTI_F16, TUTTI_I32, TUTTI_I64};
    static const int orders[][4] = {{2, 3, 1, 0}, {0, 2, 3, 1}, {3, 2, 1, 0}, {1, 0, 3, 2}};
    for (size_t i = 0; i < TUTTI_COUNT(dtypes) * TUTTI_COUNT(orders); i++) {
        const int *order = orders[i / TUTTI_COUNT(dtypes)];
        const int64_t dims[] = {37, 19, 3, 5};
        tutti_tensor *tensor, *view, *copy;
        CHECK_OK(tutti_tensor_create(dtypes[i % TUTTI_COUNT(dtypes)], 4, dims, &tensor));
        for (int64_t k = 0; k < tutti_tensor_count(tensor); k++)
            tutti_tensor_set(tensor, k, (double)(k % 101));
        CHECK_OK(tutti_tensor_permute(tensor, order, &view));
        CHECK_OK(tutti_tensor_contiguous(view, &copy));
        for (int64_t k = 0; k < tutti_tensor_count(copy); k++)
            CHECK(tutti_tensor_get(copy, k) == tutti_tensor_get(view, k));
        tutti_tensor_release(tensor);
        tutti_tensor_release(view);
        tutti_tensor_release(copy);
    }
}
