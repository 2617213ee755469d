/* cache_test.c: the input is read once; files are whole and checked. */
#include <string.h>

#include "base/test.h"
#include "data/test_folder.h"
#include "data/transform/cache.h"
#include "tutti/dataset.h"

static int calls;

static tutti_status count_calls(void *context, tutti_element *element)
{
    calls++;
    return TUTTI_OK;
}

static tutti_dataset *counted(tutti_job *job)
{
    return tutti_map(tutti_range_dataset(job, 0, 10, 1), count_calls);
}

static int64_t read_epoch(tutti_dataset *dataset, int most)
{
    int64_t sum = 0;
    tutti_element element = {0};
    tutti_iterator *iterator = tutti_iterate(dataset, 0);
    for (int i = 0; i < most; i++) {
        CHECK_OK(tutti_next_element(iterator, &element));
        if (element.count == 0)
            break;
        sum += tutti_tensor_get_int(element.tensors[0], 0);
        tutti_element_release(&element);
    }
    tutti_iterator_close(iterator);
    return sum;
}

TUTTI_TEST(cache_reads_its_input_once)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *cached = tutti_cache(counted(job)), *shuffled = tutti_shuffle(cached, 0);
    calls = 0;
    CHECK_INT(read_epoch(cached, 4), 6); /* ends early: the rest is read later */
    CHECK_INT(calls, 4);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(read_epoch(cached, 100), 45);
        CHECK_INT(read_epoch(shuffled, 100), 45);
    }
    CHECK_INT(calls, 10);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(a_cache_file_is_found_again)
{
    test_folder folder;
    test_folder_make(&folder);
    const tutti_world *world = tutti__world();
    const char *path = test_folder_name(&folder, "cache");
    void *data;
    size_t size;
    calls = 0;
    for (int run = 0; run < 3; run++) {
        tutti_job *job = tutti_open(NULL, NULL);
        tutti_dataset *cached = tutti_cache(counted(job), .file = path);
        if (run == 0) { /* not read to its end: no file */
            CHECK_INT(read_epoch(cached, 4), 6);
            CHECK_STATUS(world->read_file(world->self, path, 1000000, &data, &size),
                         TUTTI_NOT_FOUND);
            calls = 0;
        }
        CHECK_INT(read_epoch(cached, 100), 45);
        CHECK_INT(read_epoch(tutti_batch(cached, 2), 100), 0 + 2 + 4 + 6 + 8);
        CHECK_INT(calls, 10);
        CHECK_INT(tutti_close(job), 0);
    }
    tutti_job *job = tutti_open(NULL, NULL);
    CHECK(tutti_iterate(tutti_cache(tutti_take(counted(job), 5), .file = path), 0) == NULL);
    CHECK_STATUS(tutti_job_check(job), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "belongs to another pipeline");
    tutti_close(job);
    test_folder_remove(&folder);
}

/* Reads all of a cache; its status. */
static tutti_status try_cache(const char *path)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_status status = TUTTI_OK;
    tutti_iterator *iterator = tutti_iterate(tutti_cache(counted(job), .file = path), 0);
    tutti_element element = {.count = 1, .tensors = {NULL}};
    while (iterator && status == TUTTI_OK && element.count > 0) {
        tutti_element_release(&element);
        status = tutti_next_element(iterator, &element);
    }
    if (!iterator)
        status = tutti_job_check(job);
    tutti_close(job);
    return status;
}

TUTTI_TEST(a_damaged_cache_file_is_refused)
{
    test_folder folder;
    test_folder_make(&folder);
    const tutti_world *world = tutti__world();
    char path[160];
    void *data;
    size_t size;
    strcpy(path, test_folder_name(&folder, "cache"));
    CHECK_OK(try_cache(path));
    CHECK_OK(world->read_file(world->self, path, 1000000, &data, &size));
    for (size_t i = 0; i < size; i++) { /* every byte turned, every length cut */
        ((uint8_t *)data)[i] ^= 0x21;
        test_folder_write(&folder, "cache", data, size);
        CHECK_STATUS(try_cache(path), TUTTI_CORRUPT);
        ((uint8_t *)data)[i] ^= 0x21;
        test_folder_write(&folder, "cache", data, i);
        CHECK_STATUS(try_cache(path), TUTTI_CORRUPT);
    }
    test_folder_write(&folder, "cache", data, size);
    CHECK_OK(try_cache(path));
    free(data);
    test_folder_remove(&folder);
}

TUTTI_TEST(elements_survive_as_bytes)
{
    tutti_element element = {.count = 2}, back = {0};
    tutti_text bytes = {0};
    CHECK_OK(tutti_tensor_create(TUTTI_STRING, 1, (int64_t[]){3}, &element.tensors[0]));
    CHECK_OK(tutti_tensor_set_string(element.tensors[0], 1, "a\0b", 3));
    CHECK_OK(tutti_tensor_create(TUTTI_BF16, 2, (int64_t[]){0, 3}, &element.tensors[1]));
    CHECK_OK(tutti__element_encode(&element, &bytes));
    CHECK_OK(tutti__element_decode("test", bytes.data, bytes.size, &back));
    CHECK_INT(back.count, 2);
    CHECK(tutti_tensor_same(element.tensors[0], back.tensors[0]));
    CHECK(tutti_tensor_same(element.tensors[1], back.tensors[1]));
    tutti_element_release(&back);
    for (size_t cut = 0; cut < bytes.size; cut++)
        CHECK_STATUS(tutti__element_decode("test", bytes.data, cut, &back), TUTTI_CORRUPT);
    memset(bytes.data + 12, 0x7f, 8); /* an absurd dimension */
    CHECK_STATUS(tutti__element_decode("test", bytes.data, bytes.size, &back), TUTTI_CORRUPT);
    tutti__text_free(&bytes);
    tutti_element_release(&element);
}
