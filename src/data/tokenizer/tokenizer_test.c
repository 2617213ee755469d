/* tokenizer_test.c: tokens as the package tokenizers gives them, round trips, damaged files. */
#include <stdlib.h>
#include <string.h>

#include "data/test_folder.h"
#include "data/tokenizer/tokenizer_cases.h"
#include "test_files.h"
#include "tutti/tokenizer.h"

static tutti_tokenizer *open_sample(void)
{
    tutti_tokenizer *t;
    CHECK_OK(tutti_tokenizer_load(TUTTI_TEST_FILES "/gpt2/vocab.json",
                                  TUTTI_TEST_FILES "/gpt2/merges.txt", &t));
    return t;
}

static void expect_ids(tutti_tensor *ids, int count, const int32_t *expected)
{
    CHECK_INT(tutti_tensor_count(ids), count);
    for (int i = 0; i < count; i++)
        CHECK_INT(tutti_tensor_get_int(ids, i), expected[i]);
}

static void expect_round_trip(const tutti_tokenizer *t, const char *text, int64_t size)
{
    tutti_tensor *ids;
    char *back;
    int64_t bytes;
    CHECK_OK(tutti_encode(t, text, size, &ids));
    CHECK_OK(tutti_decode(t, ids, &back, &bytes));
    CHECK_INT(bytes, size);
    CHECK(memcmp(back, text, (size_t)size) == 0);
    free(back);
    tutti_tensor_release(ids);
}

TUTTI_TEST(tokenizer_gives_the_ids_of_the_package_tokenizers)
{
    tutti_tokenizer *t = open_sample();
    tutti_tensor *ids;
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++) {
        const tokenizer_case *c = &cases[i];
        CHECK_OK(tutti_encode(t, c->text, c->size, &ids));
        expect_ids(ids, c->count, c->ids);
        tutti_tensor_release(ids);
        CHECK_OK(tutti_encode_with(t, c->text, c->size,
                                   TUTTI_OPTIONS(tutti_encode_options, .special = true), &ids));
        expect_ids(ids, c->special ? c->special_count : c->count, c->special ? c->special : c->ids);
        tutti_tensor_release(ids);
        expect_round_trip(t, c->text, c->size);
    }
    CHECK_INT(tutti_tokenizer_size(t), 800);
    CHECK(tutti_tokenizer_find(t, "<|endoftext|>") >= 0);
    CHECK_INT(tutti_tokenizer_find(t, "no such token"), -1);
    tutti_tokenizer_destroy(t);
}

TUTTI_TEST(tokenizer_keeps_bytes_that_are_no_text)
{
    tutti_tokenizer *t = open_sample();
    static const char wrong[] = "a\xff\xfe b\xc3 \xe2\x82 caf\xc3\xa9\xf0\x9f\x98\xed\xa0\x80\x80";
    expect_round_trip(t, wrong, sizeof wrong - 1);
    char all[4096];
    uint32_t state = 1;
    for (int round = 0; round < 50; round++) {
        for (size_t i = 0; i < sizeof all; i++)
            all[i] = (char)((state = state * 1664525 + 1013904223) >> 24);
        expect_round_trip(t, all, (int64_t)sizeof all);
    }
    tutti_tokenizer_destroy(t);
}

TUTTI_TEST(tokenizer_takes_long_words)
{
    enum { LONG = 1 << 20 };
    tutti_tokenizer *t = open_sample();
    char *text = malloc(LONG);
    memset(text, 't', LONG);
    expect_round_trip(t, text, LONG);
    for (int i = 0; i < LONG; i++)
        text[i] = "the"[i % 3];
    expect_round_trip(t, text, LONG);
    free(text);
    tutti_tokenizer_destroy(t);
}

TUTTI_TEST(tokenizer_of_bytes)
{
    tutti_tokenizer *t;
    tutti_tensor *ids;
    CHECK_OK(tutti_tokenizer_bytes(&t));
    CHECK_INT(tutti_tokenizer_size(t), 256);
    CHECK_OK(tutti_encode(t, "a\xff", -1, &ids));
    expect_ids(ids, 2, (const int32_t[]){'a', 255});
    tutti_tensor_release(ids);
    expect_round_trip(t, "a b\0c", 5);
    tutti_tokenizer_destroy(t);
}

TUTTI_TEST(tokenizer_refuses_numbers_that_are_no_token)
{
    tutti_tokenizer *t = open_sample();
    tutti_tensor *ids;
    char *text;
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 1, (int64_t[]){2}, (int64_t[]){5, 800}, &ids));
    CHECK_STATUS(tutti_decode(t, ids, &text, NULL), TUTTI_OUT_OF_RANGE);
    CHECK_CONTAINS(tutti_error_message(), "token 800 (number 1 of the text) is not in the voc");
    tutti_tensor_set_int(ids, 1, -1);
    CHECK_STATUS(tutti_decode(t, ids, &text, NULL), TUTTI_OUT_OF_RANGE);
    tutti_tensor_release(ids);
    tutti_tokenizer_destroy(t);
}

/* Loads these two texts as files. */
static tutti_status load_texts(const char *vocab, const char *merges)
{
    test_folder folder;
    char first[200], second[200];
    tutti_tokenizer *t = NULL;
    test_folder_make(&folder);
    snprintf(first, sizeof first, "%s", test_folder_write(&folder, "vocab", vocab, strlen(vocab)));
    snprintf(second, sizeof second, "%s",
             test_folder_write(&folder, "merges", merges, strlen(merges)));
    tutti_status status = tutti_tokenizer_load(first, second, &t);
    tutti_tokenizer_destroy(t);
    test_folder_remove(&folder);
    return status;
}

TUTTI_TEST(tokenizer_refuses_damaged_files)
{
    tutti_tokenizer *t;
    tutti_tensor *ids;
    CHECK_OK(load_texts("{\"a\": 0, \"b\": 3, \"ab\": 1, \"日\": 2}", "#version: 0.2\na b\r\n\n"));
    CHECK_STATUS(load_texts("{\"a\": 0", ""), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "vocab");
    CHECK_STATUS(load_texts("[1]", ""), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "expected an object with the number of each token");
    CHECK_STATUS(load_texts("{\"a\": \"b\"}", ""), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "token \"a\" has a string; expected a number");
    CHECK_STATUS(load_texts("{\"a\": -1}", ""), TUTTI_CORRUPT);
    CHECK_STATUS(load_texts("{\"a\": 99999999999}", ""), TUTTI_CORRUPT);
    CHECK_STATUS(load_texts("{\"a\": 0, \"b\": 0}", ""), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "token \"b\" has number 0, which another one has");
    CHECK_STATUS(load_texts("{\"a\": 0, \"a\": 1}", ""), TUTTI_CORRUPT);
    CHECK_STATUS(load_texts("{\"a\": 0, \"b\": 1}", "a b\n"), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "line 1: what 'a b' make is no token");
    CHECK_STATUS(load_texts("{\"a\": 0, \"b\": 1, \"ab\": 2}", "#version\na b c\n"), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "line 2: expected two tokens with a blank");
    CHECK_STATUS(load_texts("{\"a\": 0, \"b\": 1, \"ab\": 2}", "ab\n"), TUTTI_CORRUPT);
    CHECK_STATUS(load_texts("{\"a\": 0, \"b\": 1, \"ab\": 2}", "a x\n"), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "line 1: 'x' is no token of the vocabulary");
    CHECK_STATUS(load_texts("{\"a\": 0, \"b\": 1, \"ab\": 2}", "a \n"), TUTTI_CORRUPT);
    CHECK_STATUS(tutti_tokenizer_load("/no/vocab.json", "/no/merges.txt", &t), TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "/no/vocab.json");
    CHECK_STATUS(tutti_tokenizer_load(TUTTI_TEST_FILES "/gpt2/vocab.json", "/no/m", &t),
                 TUTTI_NOT_FOUND);
    CHECK_STATUS(tutti_tokenizer_load(NULL, "m", &t), TUTTI_INVALID);
    CHECK_STATUS(tutti_encode(NULL, "m", 1, &ids), TUTTI_INVALID);
}

TUTTI_TEST(tokenizer_says_which_byte_has_no_token)
{
    test_folder folder;
    char vocab[200];
    tutti_tokenizer *t;
    tutti_tensor *ids;
    test_folder_make(&folder);
    snprintf(vocab, sizeof vocab, "%s", test_folder_write(&folder, "vocab", "{\"a\": 0}", 8));
    CHECK_OK(tutti_tokenizer_load(vocab, test_folder_write(&folder, "merges", "", 0), &t));
    CHECK_STATUS(tutti_encode(t, "ab", -1, &ids), TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "no token for byte 0x62");
    tutti_tokenizer_destroy(t);
    test_folder_remove(&folder);
}
