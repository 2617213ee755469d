/* tokens_test.c: windows of tokens in memory and in files. */
#include "data/test_folder.h"
#include "tutti/dataset.h"

static void expect_windows(tutti_dataset *data, int64_t windows, int64_t length)
{
    int64_t seen = 0;
    CHECK_INT(tutti_cardinality(data), windows);
    TUTTI_EACH_BATCH(data, x, y) {
        CHECK_INT(tutti_tensor_dtype(x), TUTTI_I32);
        CHECK_INT(tutti_tensor_count(x), length);
        for (int64_t i = 0; i < length; i++) {
            CHECK_INT(tutti_tensor_get_int(x, i), 3 * (seen * length + i));
            CHECK_INT(tutti_tensor_get_int(y, i), 3 * (seen * length + i + 1));
        }
        seen++;
    }
    CHECK_INT(seen, windows);
}

TUTTI_TEST(token_windows_of_a_row)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *row;
    CHECK_OK(tutti_tensor_create(TUTTI_I32, 1, (int64_t[]){11}, &row));
    for (int i = 0; i < 11; i++)
        tutti_tensor_set_int(row, i, 3 * i);
    expect_windows(tutti_token_windows(job, row, 4), 2, 4);
    expect_windows(tutti_token_windows(job, row, 5), 2, 5);
    expect_windows(tutti_token_windows(job, row, 10, .vocabulary = 31), 1, 10);
    CHECK(tutti_token_windows(job, row, 11) == NULL);
    CHECK_CONTAINS(tutti_error_message(), "has 11 tokens; a window of 11 and the token behind it");
    tutti_tensor_release(row);
    CHECK_INT(tutti_close(job), 1);
}

/* Windows at random places follow from the seed and the epoch, and end before the row does. */
TUTTI_TEST(token_windows_at_random_places)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *row;
    CHECK_OK(tutti_tensor_create(TUTTI_I32, 1, (int64_t[]){50}, &row));
    for (int i = 0; i < 50; i++)
        tutti_tensor_set_int(row, i, i);
    tutti_dataset *all[] = {tutti_token_windows(job, row, 4, .random = true),
                            tutti_token_windows(job, row, 4, .random = true),
                            tutti_token_windows(job, row, 4, .random = true, .seed = 9)};
    int64_t first[3][2][12];
    for (int d = 0; d < 3; d++)
        for (int epoch = 0; epoch < 2; epoch++) {
            int64_t i = 0;
            CHECK_INT(tutti_cardinality(all[d]), 12);
            TUTTI_EACH_BATCH(all[d], x, y) {
                int64_t begin = first[d][epoch][i++] = tutti_tensor_get_int(x, 0);
                for (int k = 0; k < 4; k++) {
                    CHECK_INT(tutti_tensor_get_int(x, k), begin + k);
                    CHECK_INT(tutti_tensor_get_int(y, k), begin + k + 1);
                }
            }
        }
    CHECK(memcmp(first[0], first[1], sizeof first[0]) == 0);
    CHECK(memcmp(first[0], first[2], sizeof first[0]) != 0);
    CHECK(memcmp(first[0][0], first[0][1], sizeof first[0][0]) != 0);
    tutti_tensor_release(row);
    CHECK_INT(tutti_close(job), 0);
}

enum { COUNT = 21 };

/* Tokens 0, 3, 6, … in a file, with llm.c's header where `magic` is given. */
static const char *write_tokens(test_folder *folder, int bytes, uint32_t magic, uint32_t count)
{
    uint8_t data[1024 + 4 * COUNT] = {0};
    uint32_t words[3] = {magic, 1, count};
    size_t at = magic ? 1024 : 0;
    memcpy(data, words, sizeof words);
    for (uint32_t i = 0; i < COUNT; i++, at += (size_t)bytes)
        for (int b = 0; b < bytes; b++)
            data[at + (size_t)b] = (uint8_t)((3 * i) >> 8 * b);
    return test_folder_write(folder, "train.bin", data, at);
}

TUTTI_TEST(token_files_of_nanogpt_and_llm_c)
{
    tutti_job *job = tutti_open(NULL, NULL);
    test_folder folder;
    test_folder_make(&folder);
    expect_windows(tutti_token_file(job, write_tokens(&folder, 2, 0, 0), 5), 4, 5);
    expect_windows(tutti_token_file(job, write_tokens(&folder, 4, 0, 0), 5, .token_bytes = 4), 4,
                   5);
    expect_windows(tutti_token_file(job, write_tokens(&folder, 2, 20240520, COUNT), 10), 2, 10);
    expect_windows(tutti_token_file(job, write_tokens(&folder, 4, 20240801, COUNT), 10), 2, 10);
    test_folder_remove(&folder);
    CHECK_INT(tutti_close(job), 0);
}

static void expect_refused(const char *path, int64_t vocabulary, const char *says)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *data = tutti_token_file(job, path, 5, .vocabulary = vocabulary);
    TUTTI_EACH_BATCH(data, x, y)
        (void)(x && y);
    CHECK(tutti_job_check(job) != TUTTI_OK);
    CHECK_CONTAINS(tutti_error_message(), says);
    CHECK_INT(tutti_close(job), 1);
}

TUTTI_TEST(token_files_that_are_none)
{
    test_folder folder;
    test_folder_make(&folder);
    expect_refused(write_tokens(&folder, 2, 0, 0), 40,
                   "token 42, at place 14, is none of the vocabulary's 0 to 39");
    expect_refused(write_tokens(&folder, 2, 20240520, COUNT + 1), 0,
                   "holds 21 tokens, its header says 22");
    expect_refused(test_folder_write(&folder, "odd", "abcdefghijklmno", 15), 0,
                   "has 15 bytes, which is no number of tokens of 2 bytes");
    expect_refused(test_folder_write(&folder, "short", "ab", 2), 0, "has 1 tokens");
    expect_refused(test_folder_write(&folder, "empty", "", 0), 0, "empty");
    expect_refused("/nowhere/train.bin", 0, "/nowhere/train.bin");
    test_folder_remove(&folder);
}
