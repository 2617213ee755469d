/* transform_test.c: what each transform gives. What holds for all stands in pipelines_test.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "tutti/data.h"
#include "tutti/dataset.h"

static tutti_dataset *numbers(tutti_job *job, int64_t count)
{
    return tutti_range_dataset(job, 0, count, 1);
}

/* All values of component 0 over an epoch, one after the other, as text. */
static const char *read_all(tutti_dataset *dataset, uint64_t epoch)
{
    static char text[1024];
    size_t used = 0;
    tutti_iterator *iterator = tutti_iterate(dataset, epoch);
    tutti_element element = {0};
    text[0] = 0;
    for (;;) {
        CHECK_OK(tutti_next_element(iterator, &element));
        if (element.count == 0)
            break;
        tutti_tensor *x = element.tensors[0];
        used += (size_t)snprintf(text + used, sizeof text - used, used ? "|" : "");
        for (int64_t i = 0; i < tutti_tensor_count(x); i++)
            used += (size_t)snprintf(text + used, sizeof text - used, i ? " %lld" : "%lld",
                                     (long long)tutti_tensor_get_int(x, i));
        CHECK(used < sizeof text - 64);
        tutti_element_release(&element);
    }
    tutti_iterator_close(iterator);
    return text;
}

TUTTI_TEST(simple_transforms_give_what_they_say)
{
    tutti_job *job = tutti_open(NULL, NULL);
    CHECK_STR(read_all(tutti_range_dataset(job, 3, 10, 3), 0), "3|6|9");
    CHECK_STR(read_all(tutti_range_dataset(job, 2, -3, -2), 0), "2|0|-2");
    CHECK_STR(read_all(tutti_batch(numbers(job, 5), 2), 0), "0 1|2 3|4");
    CHECK_STR(read_all(tutti_batch(numbers(job, 5), 2, .drop_remainder = true), 0), "0 1|2 3");
    CHECK_STR(read_all(tutti_take(numbers(job, 5), 2), 0), "0|1");
    CHECK_STR(read_all(tutti_take(numbers(job, 5), 0), 0), "");
    CHECK_STR(read_all(tutti_skip(numbers(job, 5), 3), 0), "3|4");
    CHECK_STR(read_all(tutti_skip(numbers(job, 5), 9), 0), "");
    CHECK_STR(read_all(tutti_shard(numbers(job, 8), 3, 1), 0), "1|4|7");
    CHECK_STR(read_all(tutti_repeat(numbers(job, 2), 3), 0), "0|1|0|1|0|1");
    CHECK_STR(read_all(tutti_take(tutti_repeat(numbers(job, 2), 0), 5), 0), "0|1|0|1|0");
    CHECK_STR(read_all(tutti_unbatch(tutti_batch(numbers(job, 5), 2)), 0), "0|1|2|3|4");
    CHECK_STR(read_all(tutti_zip(tutti_skip(numbers(job, 9), 4), numbers(job, 3)), 0), "4|5|6");
    CHECK_STR(read_all(tutti_prefetch(numbers(job, 5), 2), 0), "0|1|2|3|4");
    CHECK_STR(read_all(tutti_cache(numbers(job, 3)), 7), "0|1|2");
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(windows_slide_shift_and_stride)
{
    tutti_job *job = tutti_open(NULL, NULL);
    CHECK_STR(read_all(tutti_window(numbers(job, 7), 3), 0), "0 1 2|3 4 5");
    CHECK_STR(read_all(tutti_window(numbers(job, 7), 3, .keep_remainder = true), 0),
              "0 1 2|3 4 5|6");
    CHECK_STR(read_all(tutti_window(numbers(job, 5), 3, .shift = 1), 0), "0 1 2|1 2 3|2 3 4");
    CHECK_STR(read_all(tutti_window(numbers(job, 9), 3, .shift = 1, .stride = 3), 0),
              "0 3 6|1 4 7|2 5 8");
    CHECK_STR(read_all(tutti_window(numbers(job, 9), 2, .shift = 4), 0), "0 1|4 5");
    CHECK_STR(read_all(tutti_window(numbers(job, 2), 3), 0), "");
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(interleave_takes_blocks_in_turn)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *a = numbers(job, 4), *b = tutti_range_dataset(job, 10, 12, 1),
                  *c = tutti_range_dataset(job, 20, 23, 1);
    CHECK_STR(read_all(tutti_interleave(.datasets = TUTTI_DATASETS(a, b, c)), 0),
              "0|10|20|1|11|21|2|22|3");
    CHECK_STR(read_all(tutti_interleave(.datasets = TUTTI_DATASETS(a, b, c), .block = 2), 0),
              "0|1|10|11|20|21|2|3|22");
    CHECK_STR(read_all(tutti_interleave(.datasets = TUTTI_DATASETS(a, b, c), .cycle = 2), 0),
              "0|10|1|11|2|3|20|21|22");
    CHECK_STR(read_all(tutti_interleave(.datasets = TUTTI_DATASETS(a), .cycle = 9), 0), "0|1|2|3");
    CHECK_INT(tutti_close(job), 0);
}

static tutti_status grow(void *context, tutti_element *element)
{
    int64_t value = tutti_tensor_get_int(element->tensors[0], 0);
    tutti_tensor *row;
    TUTTI_TRY(tutti_tensor_create(TUTTI_I64, 1, &value, &row));
    for (int64_t i = 0; i < value; i++)
        tutti_tensor_set_int(row, i, value);
    return tutti_element_set(element, 0, row);
}

TUTTI_TEST(padded_batches_pad_at_the_end)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *ragged = tutti_map(tutti_range_dataset(job, 1, 4, 1), grow);
    CHECK_STR(read_all(tutti_padded_batch(ragged, 2), 0), "1 0 2 2|3 3 3");
    CHECK_STR(read_all(tutti_padded_batch(ragged, 3, .values = {-7}), 0), "1 -7 -7 2 2 -7 3 3 3");
    CHECK_STR(read_all(tutti_padded_batch(ragged, 2, .lengths = {4}, .drop_remainder = true), 0),
              "1 0 0 0 2 2 0 0");
    CHECK_STR(read_all(tutti_padded_batch(ragged, 3, .lengths = {2}, .truncate = true), 0),
              "1 0 2 2 3 3");
    CHECK_STR(read_all(tutti_padded_batch(tutti_map(numbers(job, 2), grow), 2), 0), "0 1");
    tutti_element element;
    CHECK_STATUS(tutti_dataset_peek(tutti_padded_batch(ragged, 3, .lengths = {2}), &element),
                 TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), ".truncate = true");
    tutti_close(job);
}

TUTTI_TEST(batches_of_unequal_elements_are_refused)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_element element;
    CHECK_STATUS(tutti_dataset_peek(tutti_batch(tutti_map(numbers(job, 4), grow), 2), &element),
                 TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "batch (transform_test.c:");
    CHECK_CONTAINS(tutti_error_message(), "i64[0] in the first element");
    CHECK_CONTAINS(tutti_error_message(), "tutti_padded_batch");
    CHECK(tutti_close(job) != 0);
}

TUTTI_TEST(shuffles_are_permutations_that_change_with_the_epoch)
{
    tutti_job *job = tutti_open(NULL, NULL);
    char first[1024], second[1024];
    for (int64_t buffer = 0; buffer < 12; buffer += 3) {
        int64_t seen[30] = {0};
        tutti_dataset *dataset = tutti_shuffle(numbers(job, 30), buffer);
        strcpy(first, read_all(dataset, 0));
        strcpy(second, read_all(dataset, 1));
        CHECK(strcmp(first, second) != 0);
        CHECK_STR(read_all(dataset, 0), first);
        for (char *word = strtok(first, "|"); word; word = strtok(NULL, "|"))
            seen[atoi(word)]++;
        for (int i = 0; i < 30; i++)
            CHECK_INT(seen[i], 1);
    }
    tutti_dataset *same = tutti_shuffle(numbers(job, 30), 0, .same_order = true);
    strcpy(first, read_all(same, 0));
    CHECK_STR(read_all(same, 4), first);
    CHECK(strcmp(first, read_all(tutti_shuffle(numbers(job, 30), 0, .seed = 99), 0)) != 0);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(a_full_shuffle_has_the_order_of_shuffled)
{
    tutti_job *job = tutti_open(NULL, NULL);
    int64_t order[20];
    tutti_shuffled(tutti_job_seed(job), 3, 20, order);
    tutti_iterator *iterator = tutti_iterate(tutti_shuffle(numbers(job, 20), 0), 3);
    for (int i = 0; i < 20; i++) {
        tutti_element element = {0};
        CHECK_OK(tutti_next_element(iterator, &element));
        CHECK_INT(tutti_tensor_get_int(element.tensors[0], 0), order[i]);
        tutti_element_release(&element);
    }
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(rounds_of_repeat_are_shuffled_anew)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *inner = tutti_shuffle(numbers(job, 6), 0);
    char expected[256];
    strcpy(expected, read_all(inner, 4));
    strcat(expected, "|");
    strcat(expected, read_all(inner, 5));
    CHECK_STR(read_all(tutti_repeat(inner, 2), 2), expected);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(one_hot_marks_the_class)
{
    tutti_job *job = tutti_open(NULL, NULL);
    CHECK_STR(read_all(tutti_one_hot_labels(numbers(job, 3), 0, 3), 0), "1 0 0|0 1 0|0 0 1");
    CHECK_STR(read_all(tutti_batch(tutti_one_hot_labels(numbers(job, 3), -1, 3), 2), 0),
              "1 0 0 0 1 0|0 0 1");
    CHECK_STR(read_all(tutti_one_hot_labels(tutti_batch(numbers(job, 3), 2), 0, 3), 0),
              "1 0 0 0 1 0|0 0 1");
    tutti_element element;
    CHECK_STATUS(
        tutti_dataset_peek(tutti_batch(tutti_one_hot_labels(numbers(job, 9), 0, 3), 9), &element),
        TUTTI_OUT_OF_RANGE);
    CHECK_CONTAINS(tutti_error_message(), "label 3 is none of the 3 classes");
    tutti_close(job);
}

TUTTI_TEST(names_and_types_go_through_transforms)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *x, *y;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 3, (int64_t[]){10, 4, 2}, &x));
    CHECK_OK(tutti_tensor_create(TUTTI_I64, 1, (int64_t[]){10}, &y));
    tutti_dataset *dataset =
        tutti_name_components(tutti_from_tensor_slices(job, x, y), "image", "label");
    dataset = tutti_prefetch(tutti_batch(tutti_shuffle(dataset, 0), 4), 2);
    tutti_dataset_info info;
    char text[TUTTI_TYPE_TEXT], *printed;
    CHECK_OK(tutti_dataset_describe(dataset, &info));
    CHECK_INT(info.components, 2);
    CHECK_STR(info.names[0], "image");
    CHECK_STR(info.names[1], "label");
    CHECK_STR(tutti_type_text(&info.types[0], text), "f32[?,4,2]");
    CHECK_STR(tutti_type_text(&info.types[1], text), "i64[?]");
    CHECK_INT(info.cardinality, 3);
    CHECK_INT(info.batch, 4);
    CHECK_OK(tutti_dataset_print(dataset, &printed));
    CHECK_STR(printed, "prefetch(batch(shuffle(named(tensors))))");
    free(printed);
    CHECK_OK(tutti_dataset_describe(tutti_batch(tutti_from_tensor_slices(job, x, y), 5), &info));
    CHECK_STR(tutti_type_text(&info.types[0], text), "f32[5,4,2]");
    CHECK_STR(info.names[1], "y");
    CHECK_OK(tutti_dataset_describe(tutti_repeat(tutti_from_tensor_slices(job, x), 0), &info));
    CHECK_INT(info.cardinality, TUTTI_ENDLESS);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(wrong_arguments_are_the_jobs_error_and_null_is_quiet)
{
    tutti_job *job = tutti_open(NULL, NULL);
    CHECK(tutti_batch(tutti_shuffle((tutti_dataset *)NULL, 10), 4) == NULL);
    CHECK(tutti_iterate(NULL, 0) == NULL);
    CHECK_OK(tutti_job_check(job));
    CHECK(tutti_prefetch(tutti_batch(numbers(job, 10), 0), 2) == NULL);
    CHECK_STATUS(tutti_job_check(job), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "batch (transform_test.c:");
    CHECK(numbers(job, 10) == NULL); /* later calls do nothing */
    tutti_close(job);
    static const char *const expected[] = {"shuffle", "repeat", "take", "shard",
                                           "window",  "named",  "map",  "zip"};
    for (int i = 0; i < 8; i++) {
        job = tutti_open(NULL, NULL);
        tutti_dataset *d = numbers(job, 10);
        tutti_dataset *many = tutti_zip(d, d, d, d, d, d, d, d, d);
        CHECK((i == 0   ? tutti_shuffle(d, -1)
               : i == 1 ? tutti_repeat(d, -1)
               : i == 2 ? tutti_take(d, -1)
               : i == 3 ? tutti_shard(d, 2, 2)
               : i == 4 ? tutti_window(d, 0)
               : i == 5 ? tutti_name_components(d, "a", "b")
               : i == 6 ? tutti_map(d, NULL)
                        : tutti_zip(many, many)) == NULL);
        CHECK_STATUS(tutti_job_check(job), TUTTI_INVALID);
        CHECK_CONTAINS(tutti_error_message(), expected[i]);
        tutti_close(job);
    }
}

TUTTI_TEST(next_batch_goes_round)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *dataset =
        tutti_batch(tutti_zip(numbers(job, 5), tutti_range_dataset(job, 50, 55, 1)), 2);
    static const int64_t first[] = {0, 2, 4, 0, 2, 4, 0};
    tutti_tensor *x, *y;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        CHECK_OK(tutti_next_batch(dataset, &x, &y));
        CHECK_INT(tutti_tensor_get_int(x, 0), first[i]);
        CHECK_INT(tutti_tensor_get_int(y, 0), first[i] + 50);
    }
    CHECK_STATUS(tutti_next_batch(tutti_take(numbers(job, 5), 0), &x, NULL), TUTTI_INVALID);
    CHECK(x == NULL);
    CHECK_CONTAINS(tutti_error_message(), "no elements");
    tutti_close(job);
}

TUTTI_TEST(each_batch_is_one_epoch)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *dataset = tutti_prefetch(
        tutti_batch(tutti_zip(tutti_shuffle(numbers(job, 9), 0), numbers(job, 9)), 2), 2);
    int64_t sum = 0, rounds = 0, firsts[2] = {0};
    for (int epoch = 0; epoch < 2; epoch++)
        TUTTI_EACH_BATCH(dataset, x, y) {
            for (int64_t i = 0; i < tutti_tensor_count(x); i++)
                sum += tutti_tensor_get_int(x, i);
            firsts[epoch] = firsts[epoch] * 10 + tutti_tensor_get_int(x, 0);
            if (tutti_tensor_get_int(y, 0) == 4)
                continue;
            rounds++;
        }
    CHECK_INT(sum, 72);
    CHECK_INT(rounds, 8);
    CHECK(firsts[0] != firsts[1]);
    TUTTI_EACH_BATCH(dataset, x, y) {
        CHECK(y != NULL);
        if (tutti_tensor_count(x) > 0)
            break;
    }
    TUTTI_EACH_BATCH((tutti_dataset *)NULL, x, y)
        CHECK(x == y); /* not reached */
    CHECK_INT(tutti_close(job), 0);
}
