#include "tensor/pending.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/test.h"

enum { FILTERS = 40, CHANNELS = 12, SIZE = 3 };

/* [FILTERS, CHANNELS, SIZE, SIZE] that stands `shift` bytes beside its place, as in a file. */
static tutti_tensor *standing_weights(size_t shift)
{
    tutti_tensor *tensor;
    tutti_type type = tutti_type_make(TUTTI_F32, 4, (int64_t[]){FILTERS, CHANNELS, SIZE, SIZE});
    size_t count = FILTERS * CHANNELS * SIZE * SIZE;
    char *bytes = malloc(count * sizeof(float) + 4);
    tutti_buffer *holder;
    CHECK(bytes != NULL);
    for (size_t i = 0; i < count; i++) {
        float value = (float)i;
        memcpy(bytes + shift + i * sizeof value, &value, sizeof value);
    }
    CHECK_OK(tutti__buffer_wrap(tutti__host_memory(), bytes, count * sizeof(float) + 4, free, bytes,
                                &holder));
    tutti_standing standing = {.holder = holder,
                               .bytes = bytes + shift,
                               .strides = {CHANNELS * SIZE * SIZE, SIZE * SIZE, SIZE, 1}};
    CHECK_OK(tutti__tensor_pending(&type, &standing, &tensor));
    tutti__buffer_release(holder);
    return tensor;
}

/* [SIZE, SIZE, CHANNELS, FILTERS] */
static tutti_tensor *turned_weights(size_t shift)
{
    tutti_tensor *weights = standing_weights(shift), *turned;
    CHECK_OK(tutti__tensor_turned(weights, (int[]){2, 3, 1, 0}, &turned));
    CHECK(tutti__tensor_is_pending(weights)); /* nobody has read it */
    tutti_tensor_release(weights);
    return turned;
}

static bool is_turned(const tutti_tensor *turned)
{
    const float *data = tutti_tensor_data(turned);
    for (int at = 0; at < SIZE * SIZE; at++)
        for (int c = 0; c < CHANNELS; c++)
            for (int f = 0; f < FILTERS; f++)
                if (data[(at * CHANNELS + c) * FILTERS + f] !=
                    (float)((f * CHANNELS + c) * SIZE * SIZE + at))
                    return false;
    return true;
}

TUTTI_TEST(pending_tensors_are_moved_when_they_are_read)
{
    for (size_t shift = 0; shift < 4; shift++) {
        int64_t before = tutti__memory_now();
        tutti_tensor *turned = turned_weights(shift);
        CHECK(tutti__tensor_is_pending(turned) && tutti_tensor_is_contiguous(turned));
        CHECK_INT(tutti__memory_now(), before); /* nothing was written */
        CHECK(is_turned(turned));
        CHECK(!tutti__tensor_is_pending(turned));
        CHECK(tutti__memory_now() > before);
        tutti_tensor_release(turned);
        CHECK_INT(tutti__memory_now(), before);
    }
}

TUTTI_TEST(pending_tensors_say_where_their_elements_stand)
{
    tutti_tensor *turned = turned_weights(1);
    tutti_standing there = tutti__tensor_standing(turned);
    CHECK(tutti__tensor_is_pending(turned));
    CHECK_INT(there.strides[0], SIZE);
    CHECK_INT(there.strides[1], 1);
    CHECK_INT(there.strides[2], SIZE * SIZE);
    CHECK_INT(there.strides[3], CHANNELS * SIZE * SIZE);
    CHECK(is_turned(turned)); /* the holder lives as long as somebody has it */
    float last;
    memcpy(&last, there.bytes + (FILTERS * CHANNELS * SIZE * SIZE - 1) * sizeof last, sizeof last);
    CHECK(last == FILTERS * CHANNELS * SIZE * SIZE - 1);
    tutti__buffer_release(there.holder);
    there = tutti__tensor_standing(turned); /* now in its own memory */
    CHECK(there.bytes == tutti_tensor_data(turned) && there.strides[3] == 1);
    tutti__buffer_release(there.holder);
    tutti_tensor_release(turned);
}

TUTTI_TEST(pending_tensors_that_nobody_reads_go_without_a_copy)
{
    int64_t before = tutti__memory_now();
    tutti_tensor_release(turned_weights(2));
    CHECK_INT(tutti__memory_now(), before);
}

TUTTI_TEST(pending_tensors_show_their_values_through_views)
{
    tutti_tensor *turned = turned_weights(3), *row, *same;
    CHECK_OK(tutti_tensor_slice(turned, 3, 5, 1, 1, &row));
    CHECK(tutti__tensor_is_pending(row));
    CHECK(tutti_tensor_get(row, 1) == (5 * CHANNELS + 1) * SIZE * SIZE);
    tutti_tensor *again = turned_weights(0);
    CHECK(tutti_tensor_same(turned, again));
    CHECK_OK(tutti_tensor_contiguous(again, &same));
    CHECK(same == again);
    tutti_tensor_release(same);
    tutti_tensor_release(again);
    tutti_tensor_release(row);
    tutti_tensor_release(turned);
}

static void *read_it(void *tensor)
{
    return is_turned(tensor) ? tensor : NULL;
}

TUTTI_TEST(pending_tensors_may_be_read_by_several_threads)
{
    for (int round = 0; round < 20; round++) {
        pthread_t threads[3];
        void *good;
        tutti_tensor *turned = turned_weights((size_t)round % 4);
        for (int i = 0; i < 3; i++)
            CHECK(pthread_create(&threads[i], NULL, read_it, turned) == 0);
        for (int i = 0; i < 3; i++) {
            CHECK(pthread_join(threads[i], &good) == 0);
            CHECK(good == turned);
        }
        tutti_tensor_release(turned);
    }
}
