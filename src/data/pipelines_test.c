/* pipelines_test.c: what must hold for every pipeline, over a list of them that uses each
 * transform: an epoch is the same each time; any position restores exactly, also into a dataset
 * made anew; skipping is the same as reading; cardinality is what comes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/test.h"
#include "tutti/data.h"
#include "tutti/dataset.h"

static tutti_status add_index(void *context, tutti_element *element)
{
    tutti_tensor *sum;
    int64_t dims[1] = {2};
    TUTTI_TRY(tutti_tensor_create(TUTTI_I64, 1, dims, &sum));
    tutti_tensor_set_int(sum, 0, tutti_tensor_get_int(element->tensors[0], 0) * 3);
    tutti_tensor_set_int(sum, 1, (int64_t)(element->random >> 40));
    return tutti_element_set(element, 0, sum);
}

static bool not_third(void *context, const tutti_element *element)
{
    return tutti_tensor_get_int(element->tensors[0], 0) % 3 != 0;
}

/* Element i has i % 4 + 1 values. */
static tutti_status ragged(void *context, tutti_element *element)
{
    int64_t value = tutti_tensor_get_int(element->tensors[0], 0), size = value % 4 + 1;
    tutti_tensor *row;
    TUTTI_TRY(tutti_tensor_create(TUTTI_I64, 1, &size, &row));
    for (int64_t i = 0; i < size; i++)
        tutti_tensor_set_int(row, i, value);
    return tutti_element_set(element, 0, row);
}

typedef struct counter {
    int64_t next, stop;
    uint64_t epoch;
} counter;

static tutti_status count_next(void *context, tutti_element *ret)
{
    counter *c = context;
    tutti_tensor *value;
    if (c->next == c->stop)
        return TUTTI_OK;
    TUTTI_TRY(tutti_tensor_create(TUTTI_I64, 0, NULL, &value));
    tutti_tensor_set_int(value, 0, c->next++ + (int64_t)c->epoch * 100);
    return tutti_element_set(ret, 0, value);
}

static tutti_status count_reset(void *context, uint64_t epoch)
{
    counter *c = context;
    c->next = 0;
    c->epoch = epoch;
    return TUTTI_OK;
}

static tutti_dataset *numbers(tutti_job *job, int64_t count)
{
    return tutti_range_dataset(job, 0, count, 1);
}

/* A stream without random access. */
static tutti_dataset *stream(tutti_job *job, int64_t count)
{
    static counter counters[64];
    static int used;
    counter *c = &counters[used++ % 64];
    *c = (counter){.stop = count};
    return tutti_from_generator(job, &(tutti_generator){.next = count_next,
                                                        .reset = count_reset,
                                                        .context = c,
                                                        .components = 1,
                                                        .types = {{.dtype = TUTTI_I64}}});
}

static tutti_dataset *pairs(tutti_job *job)
{
    tutti_tensor *x, *y;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){23, 3}, &x));
    CHECK_OK(tutti_tensor_create(TUTTI_I64, 1, (int64_t[]){23}, &y));
    for (int64_t i = 0; i < 69; i++)
        tutti_tensor_set(x, i, (double)i / 4);
    for (int64_t i = 0; i < 23; i++)
        tutti_tensor_set_int(y, i, i % 5);
    tutti_dataset *dataset = tutti_from_tensor_slices(job, x, y);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    return dataset;
}

static tutti_dataset *texts(tutti_job *job)
{
    tutti_tensor *x;
    char text[32];
    CHECK_OK(tutti_tensor_create(TUTTI_STRING, 2, (int64_t[]){9, 2}, &x));
    for (int64_t i = 0; i < 18; i++) {
        snprintf(text, sizeof text, "word %d", (int)i);
        CHECK_OK(tutti_tensor_set_string(x, i, text, (int64_t)strlen(text)));
    }
    tutti_dataset *dataset = tutti_from_tensor_slices(job, x);
    tutti_tensor_release(x);
    return dataset;
}

static tutti_dataset *make(tutti_job *job, int which)
{
    switch (which) {
    case 0:
        return numbers(job, 10);
    case 1:
        return pairs(job);
    case 2:
        return tutti_shuffle(pairs(job), 0);
    case 3:
        return tutti_batch(tutti_shuffle(pairs(job), 0), 4);
    case 4:
        return tutti_batch(tutti_shuffle(pairs(job), 5), 4, .drop_remainder = true);
    case 5:
        return tutti_batch(tutti_repeat(tutti_shuffle(pairs(job), 0), 3), 7);
    case 6:
        return tutti_map(numbers(job, 20), add_index);
    case 7:
        return tutti_map(numbers(job, 20), add_index, .parallel = 2);
    case 8:
        return tutti_map(numbers(job, 20), add_index, .parallel = 4);
    case 9:
        return tutti_filter(numbers(job, 20), not_third, NULL);
    case 10:
        return tutti_shuffle(tutti_filter(numbers(job, 20), not_third, NULL), 4);
    case 11:
        return tutti_shuffle(stream(job, 15), 0);
    case 12:
        return tutti_batch(stream(job, 15), 4);
    case 13:
        return tutti_repeat(tutti_shuffle(stream(job, 7), 3), 3);
    case 14:
        return tutti_padded_batch(tutti_map(numbers(job, 13), ragged), 4, .values = {-1});
    case 15:
        return tutti_unbatch(tutti_batch(tutti_shuffle(pairs(job), 0), 4));
    case 16:
        return tutti_prefetch(tutti_batch(tutti_shuffle(pairs(job), 0), 4), 2);
    case 17:
        return tutti_prefetch(tutti_map(stream(job, 12), add_index, .parallel = 3), 3);
    case 18:
        return tutti_interleave(.datasets = TUTTI_DATASETS(numbers(job, 5), stream(job, 9),
                                                           tutti_range_dataset(job, 50, 53, 1)),
                                .block = 2, .cycle = 2);
    case 19:
        return tutti_zip(tutti_shuffle(numbers(job, 11), 0), pairs(job));
    case 20:
        return tutti_zip(stream(job, 11), pairs(job));
    case 21:
        return tutti_take(tutti_shuffle(pairs(job), 0), 9);
    case 22:
        return tutti_take(tutti_repeat(stream(job, 4), 0), 9);
    case 23:
        return tutti_skip(tutti_shuffle(pairs(job), 0), 9);
    case 24:
        return tutti_skip(stream(job, 9), 4);
    case 25:
        return tutti_shard(tutti_shuffle(numbers(job, 20), 0), 3, 1);
    case 26:
        return tutti_shard(stream(job, 20), 3, 2);
    case 27:
        return tutti_window(numbers(job, 20), 4, .shift = 2);
    case 28:
        return tutti_window(stream(job, 20), 3, .shift = 7, .stride = 2, .keep_remainder = true);
    case 29:
        return tutti_batch(tutti_one_hot_labels(tutti_shuffle(pairs(job), 0), 1, 5), 4);
    case 30:
        return tutti_one_hot_labels(tutti_map(pairs(job), ragged), 1, 5);
    case 31:
        return tutti_name_components(pairs(job), "image", "label");
    case 32:
        return tutti_cache(tutti_shuffle(pairs(job), 0));
    case 33:
        return tutti_batch(tutti_shuffle(tutti_cache(stream(job, 10)), 4), 3);
    case 34:
        return tutti_batch(tutti_shuffle(texts(job), 0), 4);
    case 35:
        return tutti_prefetch(tutti_batch(tutti_prefetch(stream(job, 10), 2), 3), 2);
    case 36:
        return tutti_batch(tutti_repeat(numbers(job, 5), 2), 10);
    case 37:
        return tutti_batch(tutti_zip(numbers(job, 23), tutti_shuffle(pairs(job), 0)), 5);
    case 38:
        return tutti_shuffle(tutti_map(numbers(job, 20), add_index, .parallel = 2), 0);
    case 39:
        return tutti_shuffle(tutti_cache(tutti_map(numbers(job, 20), add_index)), 0);
    case 40:
        return tutti_window(tutti_shuffle(texts(job), 3), 2, .shift = 1);
    default:
        return NULL;
    }
}
#define PIPELINES 41

static uint64_t hash_tensor(uint64_t seed, const tutti_tensor *tensor)
{
    tutti_tensor *flat;
    CHECK_OK(tutti_tensor_contiguous((tutti_tensor *)(uintptr_t)tensor, &flat));
    seed = tutti__hash_mix(seed, (uint64_t)tutti_tensor_dtype(flat));
    for (int i = 0; i < tutti_tensor_rank(flat); i++)
        seed = tutti__hash_mix(seed, (uint64_t)tutti_tensor_dims(flat)[i] + 1);
    size_t size = tutti_dtype_size(tutti_tensor_dtype(flat));
    if (tutti_tensor_dtype(flat) != TUTTI_STRING)
        seed = tutti__hash_bytes(seed, tutti_tensor_data(flat),
                                 size * (size_t)tutti_tensor_count(flat));
    else
        for (int64_t i = 0; i < tutti_tensor_count(flat); i++) {
            tutti_string text = tutti_tensor_get_string(flat, i);
            seed = tutti__hash_bytes(seed, text.data, (size_t)text.size);
        }
    tutti_tensor_release(flat);
    return seed;
}

/* A number for what comes next; 0 at the end. */
static uint64_t next_hash(tutti_iterator *iterator)
{
    tutti_element element = {0};
    uint64_t hash = 1;
    CHECK_OK(tutti_next_element(iterator, &element));
    if (element.count == 0)
        return 0;
    for (int c = 0; c < element.count; c++)
        hash = tutti__hash_mix(hash, hash_tensor((uint64_t)c, element.tensors[c]));
    tutti_element_release(&element);
    return hash | 1;
}

#define MOST 200

static int read_epoch(tutti_dataset *dataset, uint64_t epoch, uint64_t *ret_hashes)
{
    int count = 0;
    tutti_iterator *iterator = tutti_iterate(dataset, epoch);
    CHECK(iterator != NULL);
    while ((ret_hashes[count] = next_hash(iterator)) != 0)
        CHECK(++count < MOST);
    CHECK(next_hash(iterator) == 0); /* the end is the end */
    tutti_iterator_close(iterator);
    return count;
}

TUTTI_TEST(every_pipeline_is_the_same_each_time)
{
    for (int p = 0; p < PIPELINES; p++) {
        uint64_t first[MOST], again[MOST], other[MOST];
        tutti_job *job = tutti_open(NULL, NULL), *second = tutti_open(NULL, NULL);
        tutti_dataset *dataset = make(job, p);
        tutti_dataset_info info;
        CHECK_OK(tutti_dataset_describe(dataset, &info));
        int count = read_epoch(dataset, 2, first);
        CHECK(count > 0);
        if (info.cardinality >= 0)
            CHECK_INT(info.cardinality, count);
        CHECK_INT(read_epoch(make(second, p), 2, again), count);
        CHECK(memcmp(first, again, (size_t)count * sizeof *first) == 0);
        CHECK_INT(read_epoch(dataset, 5, other), count);
        CHECK_INT(read_epoch(dataset, 2, again), count);
        CHECK(memcmp(first, again, (size_t)count * sizeof *first) == 0);
        CHECK_INT(tutti_close(second), 0);
        CHECK_INT(tutti_close(job), 0);
    }
}

/* Stops after each number of elements, continues in another job. */
static void check_positions(int p)
{
    uint64_t all[MOST];
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *dataset = make(job, p);
    int count = read_epoch(dataset, 1, all);
    for (int stop = 0; stop <= count; stop++) {
        tutti_position position;
        tutti_iterator *iterator = tutti_iterate(dataset, 1);
        for (int i = 0; i < stop; i++)
            CHECK(next_hash(iterator) == all[i]);
        tutti_iterator_save(iterator, &position);
        tutti_iterator_close(iterator);
        tutti_job *later = tutti_open(NULL, NULL);
        iterator = tutti_iterate_from(make(later, p), &position);
        CHECK(iterator != NULL);
        for (int i = stop; i <= count; i++)
            CHECK(next_hash(iterator) == all[i]);
        CHECK_INT(tutti_close(later), 0);
    }
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(every_pipeline_restores_any_position)
{
    for (int p = 0; p < PIPELINES; p++)
        check_positions(p);
}

TUTTI_TEST(skipping_in_the_middle_is_reading)
{
    for (int p = 0; p < PIPELINES; p++) {
        uint64_t all[MOST];
        tutti_job *job = tutti_open(NULL, NULL);
        tutti_dataset *dataset = make(job, p);
        int count = read_epoch(dataset, 0, all), at = 0;
        tutti_iterator *iterator = tutti_iterate(dataset, 0);
        for (int round = 0; at < count; round++) {
            CHECK(next_hash(iterator) == all[at++]);
            CHECK_OK(tutti_iterator_skip(iterator, round % 3));
            at = at + round % 3 < count ? at + round % 3 : count;
        }
        CHECK(next_hash(iterator) == 0);
        CHECK_OK(tutti_iterator_skip(iterator, 5));
        CHECK(next_hash(iterator) == 0);
        CHECK_INT(tutti_close(job), 0);
    }
}

TUTTI_TEST(every_pipeline_closes_early)
{
    for (int p = 0; p < PIPELINES; p++)
        for (int stop = 0; stop < 3; stop++) {
            tutti_job *job = tutti_open(NULL, NULL);
            tutti_iterator *iterator = tutti_iterate(make(job, p), 0);
            for (int i = 0; i < stop; i++)
                CHECK(next_hash(iterator) != 0 || i > 0);
            if (stop == 1)
                tutti_iterator_close(iterator);
            CHECK_INT(tutti_close(job), 0);
        }
}

TUTTI_TEST(threads_do_not_change_the_order)
{
    uint64_t one[MOST], more[MOST];
    tutti_job *job = tutti_open(NULL, NULL);
    int count = read_epoch(make(job, 6), 3, one);
    for (int p = 7; p <= 8; p++) {
        CHECK_INT(read_epoch(make(job, p), 3, more), count);
        CHECK(memcmp(one, more, (size_t)count * sizeof *one) == 0);
    }
    CHECK_INT(tutti_close(job), 0);
}

/* A shuffle over numbers gives the order that a shuffle over a stream gives. */
TUTTI_TEST(shuffles_agree_with_and_without_random_access)
{
    for (int64_t buffer = 0; buffer < 30; buffer += 7) {
        uint64_t by_number[MOST], by_element[MOST];
        tutti_job *job = tutti_open(NULL, NULL);
        int count = read_epoch(tutti_shuffle(numbers(job, 20), buffer), 0, by_number);
        CHECK_INT(read_epoch(tutti_shuffle(stream(job, 20), buffer), 0, by_element), count);
        CHECK(memcmp(by_number, by_element, (size_t)count * sizeof *by_number) == 0);
        CHECK_INT(tutti_close(job), 0);
    }
}

TUTTI_TEST(a_position_of_another_pipeline_is_refused)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_position position;
    tutti_iterator *iterator = tutti_iterate(tutti_batch(numbers(job, 10), 3), 0);
    tutti_iterator_save(iterator, &position);
    CHECK(tutti_iterate_from(tutti_batch(numbers(job, 10), 4), &position) == NULL);
    CHECK_STATUS(tutti_job_check(job), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "another pipeline");
    tutti_close(job);
}
