/* share_test.c: how processes share a dataset: every element once, whatever the policy; which
 * policy is chosen; what is refused. */
#include <string.h>

#include "base/params.h"
#include "data/dataset.h"
#include "data/test_folder.h"
#include "io/stream.h"
#include "io/tfrecord.h"

enum { MOST = 512 };

/* One process of several, without the others: `longest` is what a step of all of them would have.
 */
static void rows_of(const void *context, int64_t batch, int64_t *ret_first, int64_t *ret_rows)
{
    const tutti_share *s = context;
    *ret_first = (batch * s->index + s->count - 1) / s->count;
    *ret_rows = (batch * (s->index + 1) + s->count - 1) / s->count - *ret_first;
}

static tutti_status agree(const void *context, int64_t rows, tutti_likeness *like,
                          int64_t *ret_batch)
{
    (void)context;
    (void)like;
    *ret_batch = rows;
    return TUTTI_OK;
}

static void part_of(tutti_share *s, tutti_shard_policy policy, int count, int index)
{
    *s = (tutti_share){rows_of, s, policy, index, count, agree};
}

/* Files "0".."n-1" of lines that are numbers, some of them long, with and without a last end. */
static int write_lines(test_folder *folder, int files, const char **ret_paths, char names[][160])
{
    int line = 0;
    for (int f = 0; f < files; f++) {
        char text[40000] = "";
        size_t used = 0;
        int lines = f == 1 ? 0 : 7 + 11 * f; /* one is empty */
        for (int i = 0; i < lines; i++, line++) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%d", line);
            for (int k = 0; k < (line % 5 == 0 ? 120 : line % 3); k++)
                text[used++] = 'x';
            text[used] = 0;
            if (i + 1 < lines || f % 2 == 0)
                used += (size_t)snprintf(text + used, sizeof text - used, "%s",
                                         line % 4 ? "\n" : "\r\n");
        }
        char name[16];
        snprintf(name, sizeof name, "%d", f);
        strcpy(names[f], test_folder_write(folder, name, text, used));
        ret_paths[f] = names[f];
    }
    return line;
}

static void write_records(const char *path, int first, int count)
{
    tutti_sink *sink;
    CHECK_OK(tutti__sink_file(path, TUTTI_FILE_REPLACE, &sink));
    for (int i = 0; i < count; i++) {
        char text[64];
        int size = snprintf(text, sizeof text, "%d%.*s", first + i, i % 7, "xxxxxxxx");
        CHECK_OK(tutti__tfrecord_put(sink, text, (size_t)size));
    }
    CHECK_OK(tutti__sink_commit(sink));
}

/* Adds what one process sees to seen[]; returns the batches. */
static int see(tutti_dataset *data, const tutti_share *share, int *seen, int *ret_count)
{
    int batches = 0;
    CHECK(tutti__share_begin(data, share));
    tutti_iterator *iterator = tutti_iterate(data, 0);
    tutti__share_end(data);
    CHECK(iterator != NULL);
    *ret_count = 0;
    for (tutti_element e;; batches++) {
        CHECK_OK(tutti_next_element(iterator, &e));
        if (e.count == 0)
            break;
        int64_t rows = tutti_tensor_dims(e.tensors[0])[0], own, first;
        share->rows(share->context, 6, &first, &own);
        CHECK(e.own && e.rows == rows && rows >= 1 && rows <= own);
        for (int64_t i = 0; i < rows; i++) {
            char text[16] = "";
            tutti_string string = tutti_tensor_get_string(e.tensors[0], i);
            memcpy(text, string.data, string.size < 15 ? (size_t)string.size : 15);
            int value = atoi(text);
            CHECK(value >= 0 && value < MOST);
            seen[value]++;
            ++*ret_count;
        }
        tutti_element_release(&e);
    }
    tutti_iterator_close(iterator);
    return batches;
}

/* Every element once, or with `times` by every process. */
static void check_once(tutti_dataset *data, tutti_shard_policy policy, int elements, bool all)
{
    CHECK(data != NULL);
    for (int count = 1; count <= 5; count++) {
        int seen[MOST] = {0}, most = 0, least = elements;
        for (int index = 0; index < count; index++) {
            tutti_share share;
            int here;
            part_of(&share, policy, count, index);
            see(data, &share, seen, &here);
            most = here > most ? here : most;
            least = here < least ? here : least;
        }
        for (int i = 0; i < elements; i++)
            CHECK_INT(seen[i], all ? count : 1);
        for (int i = elements; i < MOST; i++)
            CHECK_INT(seen[i], 0);
    }
}

TUTTI_TEST(processes_share_files_and_bytes_and_see_every_line_once)
{
    test_folder folder;
    const char *paths[6];
    char names[6][160];
    test_folder_make(&folder);
    int lines = write_lines(&folder, 6, paths, names);
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *all = tutti_text_files(job, NULL, .count = 6, .paths = paths);
    for (int shuffled = 0; shuffled < 2; shuffled++) {
        tutti_dataset *data = tutti_prefetch(
            tutti_batch(shuffled ? tutti_shuffle(tutti_prefetch(all, 2), 9) : all, 6), 1);
        check_once(data, TUTTI_SHARD_FILE, lines, false);
        check_once(data, TUTTI_SHARD_BYTES, lines, false);
        check_once(data, TUTTI_SHARD_OFF, lines, true);
    }
    tutti_dataset *one = tutti_batch(tutti_text_files(job, paths[0]), 6);
    check_once(one, TUTTI_SHARD_BYTES, 7, false);
    check_once(one, TUTTI_SHARD_FILE, 7, false);
    tutti_dataset *inputs[6];
    for (int i = 0; i < 6; i++)
        inputs[i] = i % 2 ? tutti_text_lines(job, paths[i]) : tutti_text_files(job, paths[i]);
    CHECK_OK(tutti_job_check(job));
    check_once(tutti_batch(tutti_interleave_with(&(tutti_interleave_options){
                               .datasets = {6, inputs}, .cycle = 2, .block = 3}),
                           6),
               TUTTI_SHARD_FILE, lines, false);
    CHECK_INT(tutti_close(job), 0);
    test_folder_remove(&folder);
}

TUTTI_TEST(processes_share_records_by_file_and_bytes)
{
    test_folder folder;
    char first[160], second[160], third[160];
    test_folder_make(&folder);
    strcpy(first, test_folder_name(&folder, "a.tfrecord"));
    strcpy(second, test_folder_name(&folder, "b.tfrecord"));
    strcpy(third, test_folder_name(&folder, "c.tfrecord"));
    write_records(first, 0, 40);
    write_records(second, 40, 1);
    write_records(third, 41, 22);
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *all =
        tutti_tfrecords(job, NULL, .count = 3, .paths = (const char *[]){first, second, third});
    check_once(tutti_batch(all, 6), TUTTI_SHARD_FILE, 63, false);
    check_once(tutti_batch(all, 6), TUTTI_SHARD_BYTES, 63, false);
    check_once(tutti_batch(tutti_tfrecords(job, first), 6), TUTTI_SHARD_BYTES, 40, false);
    CHECK_INT(tutti_close(job), 0);
    test_folder_remove(&folder);
}

/* ---- order ---- */

TUTTI_TEST(processes_that_read_apart_shuffle_and_draw_apart)
{
    tutti_share first, second;
    part_of(&first, TUTTI_SHARD_OFF, 2, 0);
    part_of(&second, TUTTI_SHARD_OFF, 2, 1);
    CHECK(tutti__share_seed(&first, 7) == 7);
    CHECK(tutti__share_seed(&second, 7) != 7);
    second.policy = TUTTI_SHARD_ELEMENT;
    CHECK(tutti__share_seed(&second, 7) == 7 && tutti__share_seed(NULL, 7) == 7);
    tutti_job *job = tutti_open(NULL, NULL);
    for (int buffer = 0; buffer <= 9; buffer += 9) {
        tutti_dataset *data =
            tutti_batch(tutti_shuffle(tutti_range_dataset(job, 0, 30, 1), buffer), 60);
        double order[2][30];
        for (int index = 0; index < 2; index++) {
            tutti_share share;
            tutti_element e;
            part_of(&share, TUTTI_SHARD_OFF, 2, index);
            tutti__share_begin(data, &share);
            tutti_iterator *iterator = tutti_iterate(data, 0);
            tutti__share_end(data);
            CHECK_OK(tutti_next_element(iterator, &e));
            CHECK_INT(tutti_tensor_dims(e.tensors[0])[0], 30);
            for (int i = 0; i < 30; i++)
                order[index][i] = tutti_tensor_get(e.tensors[0], i);
            tutti_element_release(&e);
            tutti_iterator_close(iterator);
        }
        CHECK(memcmp(order[0], order[1], sizeof order[0]) != 0);
    }
    CHECK_INT(tutti_close(job), 0);
}

/* ---- positions ---- */

TUTTI_TEST(a_position_in_a_part_goes_on_there)
{
    test_folder folder;
    const char *paths[3];
    char names[3][160];
    test_folder_make(&folder);
    write_lines(&folder, 3, paths, names);
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *data = tutti_batch(tutti_text_files(job, NULL, .count = 3, .paths = paths), 6);
    for (tutti_shard_policy policy = TUTTI_SHARD_FILE; policy <= TUTTI_SHARD_OFF; policy++) {
        tutti_share share;
        part_of(&share, policy, 2, 0);
        tutti__share_begin(data, &share);
        tutti_iterator *one = tutti_iterate(data, 0), *other;
        tutti_element a, b;
        tutti_position position;
        CHECK_OK(tutti_next_element(one, &a));
        tutti_element_release(&a);
        tutti_iterator_save(one, &position);
        CHECK_OK(tutti_next_element(one, &a));
        other = tutti_iterate_from(data, &position);
        CHECK_OK(tutti_next_element(other, &b));
        CHECK(tutti_tensor_same(a.tensors[0], b.tensors[0]));
        tutti_element_release(&a);
        tutti_element_release(&b);
        position.delivered = 1000; /* others had more */
        tutti_iterator *end = tutti_iterate_from(data, &position);
        tutti__share_end(data);
        CHECK_OK(tutti_next_element(end, &b));
        CHECK_INT(b.count, 0);
        tutti_iterator_save(end, &position);
        CHECK_INT(position.delivered, 1000);
    }
    CHECK_INT(tutti_close(job), 0);
    test_folder_remove(&folder);
}

/* Where processes read apart, one may be through its data before others, or before so many as there
 * were; data that has become shorter is another one. */
TUTTI_TEST(a_position_in_a_part_goes_on_in_the_whole)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *data = tutti_batch(tutti_range_dataset(job, 0, 30, 1), 6);
    tutti_share share;
    tutti_element e;
    tutti_position position;
    part_of(&share, TUTTI_SHARD_OFF, 2, 0);
    tutti__share_begin(data, &share);
    tutti_iterator *part = tutti_iterate(data, 0);
    tutti__share_end(data);
    for (int i = 0; i < 7; i++) {
        CHECK_OK(tutti_next_element(part, &e));
        tutti_element_release(&e);
    }
    tutti_iterator_save(part, &position);
    CHECK(position.apart && position.delivered == 7);
    tutti_iterator *whole = tutti_iterate_from(data, &position);
    CHECK(whole != NULL);
    CHECK_OK(tutti_next_element(whole, &e));
    CHECK_INT(e.count, 0);
    position.apart = false;
    CHECK(tutti_iterate_from(data, &position) == NULL);
    CHECK_CONTAINS(tutti_error_message(), "behind 7 elements of batch, which now has 5");
    CHECK_INT(tutti_close(job), 1);
}

/* What the function of process `index` of `count` makes, which has files of its own, too. */
static tutti_dataset *own_data(tutti_job *job, const tutti_share *share)
{
    tutti_dataset *all = tutti_range_dataset(job, 0, 31 + share->index, 1);
    return tutti__dataset_own(
        tutti_batch(tutti_shuffle(tutti_shard(all, share->count, share->index), 0),
                    12 / share->count),
        share->count > 1 ? share : NULL);
}

TUTTI_TEST(positions_of_data_by_function_are_those_of_all_processes)
{
    tutti_position position = {0};
    char *loops = NULL;
    for (int count = 2; count >= 1; count--)
        for (int index = 0; index < count; index++) {
            tutti_share share;
            tutti_element e;
            tutti_tensor *x;
            tutti_job *job = tutti_open(NULL, NULL);
            part_of(&share, TUTTI_SHARD_OFF, count, index);
            tutti_dataset *data = own_data(job, &share);
            if (loops) { /* of rank 0 of two */
                CHECK(tutti_iterate_from(data, &position) != NULL);
                CHECK_OK(tutti__loops_restore(job, loops));
                CHECK_OK(tutti_next_batch(data, &x, NULL));
            } else {
                tutti_iterator *one = tutti_iterate(data, 0);
                CHECK_OK(tutti_next_element(one, &e));
                tutti_element_release(&e);
                tutti_iterator_save(one, &position);
                CHECK_OK(tutti_next_batch(data, &x, NULL));
                CHECK_OK(tutti__loops_save(job, &loops));
            }
            CHECK_INT(tutti_close(job), 0);
        }
    free(loops);
    tutti_share alone;
    int argc = 3;
    char **argv = (char *[]){(char[]){"test"}, (char[]){"--seed"}, (char[]){"77"}, NULL};
    tutti_job *job = tutti_open(&argc, &argv);
    part_of(&alone, TUTTI_SHARD_OFF, 1, 0);
    CHECK(tutti_iterate_from(own_data(job, &alone), &position) == NULL);
    CHECK_CONTAINS(tutti_error_message(), "with the same seed");
    CHECK_INT(tutti_close(job), 1);
}

/* A process whose part has no elements has none of an endless repetition, and is at its end; where
 * all is read and there is nothing, that is said. */
TUTTI_TEST(an_empty_part_repeated_endlessly_is_empty)
{
    test_folder folder;
    const char *paths[2];
    char names[2][160];
    test_folder_make(&folder);
    write_lines(&folder, 2, paths, names); /* the second is empty */
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *lines = tutti_text_files(job, NULL, .count = 2, .paths = paths);
    tutti_dataset *data = tutti_batch(tutti_shuffle(tutti_repeat(lines, 0), 4), 6);
    for (int index = 0; index < 2; index++) {
        tutti_share share;
        tutti_element e;
        part_of(&share, TUTTI_SHARD_FILE, 2, index);
        tutti__share_begin(data, &share);
        tutti_iterator *iterator = tutti_iterate(data, 0);
        tutti_iterator *later = tutti_iterate_from(
            data, &(tutti_position){.delivered = 100, .pipeline = data->hash, .apart = true});
        tutti__share_end(data);
        CHECK_OK(tutti_next_element(iterator, &e));
        CHECK_INT(e.count, index == 0);
        tutti_element_release(&e);
        CHECK_OK(tutti_next_element(later, &e));
        CHECK_INT(e.count, index == 0);
        tutti_element_release(&e);
    }
    data = tutti_batch(tutti_repeat(tutti_text_files(job, NULL, .count = 1, .paths = paths + 1), 0),
                       6);
    tutti_element e;
    CHECK_STATUS(tutti_next_element(tutti_iterate(data, 0), &e), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "repeat: the input has no elements");
    CHECK_INT(tutti_close(job), 1);
    test_folder_remove(&folder);
}

/* ---- the choice ---- */

static tutti_status nothing(void *context, tutti_element *element)
{
    (void)context;
    (void)element;
    return TUTTI_OK;
}

static tutti_shard_policy chosen(tutti_dataset *data, int count)
{
    tutti_shard_policy policy = TUTTI_SHARD_AUTO;
    CHECK(data != NULL);
    CHECK_OK(tutti__share_choose(data, TUTTI_SHARD_AUTO, count, &policy));
    return policy;
}

static void refused(tutti_dataset *data, tutti_shard_policy wanted, const char *text)
{
    tutti_shard_policy policy = TUTTI_SHARD_AUTO;
    CHECK_STATUS(tutti__share_choose(data, wanted, 2, &policy), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), text);
    CHECK_CONTAINS(tutti_error_message(), "shard=element");
}

TUTTI_TEST(the_policy_is_chosen_by_what_reading_costs)
{
    test_folder folder;
    const char *paths[6];
    char names[6][160];
    test_folder_make(&folder);
    write_lines(&folder, 6, paths, names);
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *six =
        tutti_batch(tutti_map(tutti_text_files(job, NULL, .count = 6, .paths = paths), nothing), 8);
    tutti_dataset *one = tutti_batch(tutti_text_files(job, paths[5]), 8);
    CHECK_INT(chosen(six, 2), TUTTI_SHARD_ELEMENT); /* small files: the order of one process */
    CHECK_OK(tutti__param_set("SHARE_BYTES", "100"));
    CHECK_INT(chosen(six, 2), TUTTI_SHARD_FILE);
    CHECK_INT(chosen(six, 3), TUTTI_SHARD_FILE);
    CHECK_INT(chosen(six, 4), TUTTI_SHARD_BYTES); /* 6 files do not come out even */
    CHECK_INT(chosen(one, 2), TUTTI_SHARD_BYTES);
    CHECK_INT(chosen(one, 9), TUTTI_SHARD_ELEMENT); /* 8 rows for 9 workers */
    CHECK_INT(chosen(tutti_batch(tutti_range_dataset(job, 0, 9, 1), 4), 2), TUTTI_SHARD_ELEMENT);
    CHECK_INT(chosen(tutti_batch(tutti_text_lines(job, paths[5]), 4), 2), TUTTI_SHARD_ELEMENT);
    tutti_dataset *taken = tutti_batch(tutti_take(tutti_text_files(job, paths[5]), 9), 4);
    CHECK_INT(chosen(taken, 2), TUTTI_SHARD_ELEMENT); /* each would take 9 */
    refused(taken, TUTTI_SHARD_FILE, "'take' stands between");
    refused(tutti_batch(tutti_map(tutti_take(tutti_text_files(job, paths[5]), 9), nothing), 4),
            TUTTI_SHARD_BYTES, "'take' stands between its files and its batches");
    refused(tutti_batch(tutti_range_dataset(job, 0, 9, 1), 4), TUTTI_SHARD_FILE, "'range'");
    refused(tutti_range_dataset(job, 0, 9, 1), TUTTI_SHARD_OFF, "tutti_batch");
    refused(tutti_batch(tutti_range_dataset(job, 0, 9, 1), 1), TUTTI_SHARD_OFF, "fewer rows");
    tutti_text text = {0};
    tutti__share_describe(six, TUTTI_SHARD_FILE, 2, &text);
    CHECK_STR(text.data, "by file: each of 2 workers reads some of 6 files");
    tutti__text_free(&text);
    CHECK_INT(tutti_close(job), 0);
    test_folder_remove(&folder);
}
