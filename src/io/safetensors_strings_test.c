/* safetensors_strings_test.c: strings in safetensors files, and hostile ones. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "io/safetensors.h"

enum { TENSORS = 6 };

static char folder[64], path[100];
static tutti_named_tensor list[TENSORS];

/* Any bytes, also none and zeros, in any shape; and numbers between them. */
static void make_list(void)
{
    static const char all[] = "\0a\xff\xfe\0zwei\n";
    snprintf(folder, sizeof folder, "/tmp/tutti-strings-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/x.safetensors", folder);
    static const char *const names[TENSORS] = {"grid", "number", "scalar", "none", "flat", "empty"};
    const int ranks[TENSORS] = {2, 1, 0, 2, 3, 1};
    const int64_t dims[TENSORS][3] = {{2, 3}, {4}, {0}, {0, 3}, {1, 2, 1}, {3}};
    for (int i = 0; i < TENSORS; i++) {
        tutti_dtype dtype = i == 1 ? TUTTI_I64 : TUTTI_STRING;
        list[i].name = names[i];
        CHECK_OK(tutti_tensor_create(dtype, ranks[i], dims[i], &list[i].tensor));
        for (int64_t k = 0; i < 5 && i != 1 && k < tutti_tensor_count(list[i].tensor); k++)
            CHECK_OK(tutti_tensor_set_string(list[i].tensor, k, all + k, (k * 3 + i) % 7));
    }
}

static void free_list(void)
{
    char command[128];
    for (int i = 0; i < TENSORS; i++)
        tutti_tensor_release(list[i].tensor);
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK_INT(system(command), 0);
}

static void check_loads(void)
{
    tutti_named_tensors read;
    CHECK_OK(tutti_safetensors_load(path, &read));
    CHECK_INT(read.count, TENSORS);
    for (int i = 0; i < TENSORS; i++)
        CHECK(tutti_tensor_same(tutti_named_tensors_find(&read, list[i].name), list[i].tensor));
    tutti_named_tensors_clear(&read);
}

TUTTI_TEST(strings_in_one_file_and_in_several)
{
    tutti_safetensors *file;
    make_list();
    CHECK_OK(tutti_safetensors_save(path, TENSORS, list));
    check_loads();
    CHECK_OK(tutti_safetensors_save(path, TENSORS, list, .shard_bytes = 1));
    CHECK_OK(tutti__safetensors_open(path, true, &file));
    CHECK(file->file_count > TENSORS); /* bytes and lengths lie apart */
    const tutti_safetensor *item = tutti__safetensors_find(file, "grid");
    CHECK_INT(item->type.dtype, TUTTI_STRING);
    CHECK_INT(item->type.dims[1], 3);
    CHECK(item->lengths->file != item->file);
    CHECK(tutti__safetensors_find(file, "tutti/lengths/grid") == NULL);
    tutti__safetensors_close(file);
    check_loads();
    free_list();
}

TUTTI_TEST(strings_of_a_view_are_saved_in_its_order)
{
    tutti_tensor *turned, *before;
    make_list();
    before = list[0].tensor;
    CHECK_OK(tutti_tensor_permute(before, (int[]){1, 0}, &turned));
    list[0].tensor = turned;
    CHECK_OK(tutti_safetensors_save(path, TENSORS, list));
    check_loads();
    tutti_tensor_release(before);
    free_list();
}

/* ---- hostile files ---- */

/* What reading all of a file of this header and data gives. */
static tutti_status read_bytes(const char *header, size_t size, const void *data)
{
    char file[1024] = {0};
    tutti_source *source;
    tutti_safetensors *read;
    size_t n = strlen(header);
    CHECK(8 + n + size <= sizeof file);
    tutti__put_u64(file, n);
    memcpy(file + 8, header, n);
    memcpy(file + 8 + n, data, size);
    CHECK_OK(tutti__source_bytes("s", file, 8 + n + size, &source));
    tutti_status status = tutti__safetensors_read(source, &read);
    for (size_t i = 0; status == TUTTI_OK && i < read->count; i++) {
        tutti_tensor *tensor;
        status = tutti__safetensors_tensor(read, &read->items[i], &tensor);
        if (status == TUTTI_OK)
            tutti_tensor_release(tensor);
        if (status != TUTTI_OK || i + 1 == read->count) {
            tutti__safetensors_close(read);
            break;
        }
    }
    tutti__source_close(source);
    return status;
}

#define LENGTHS(dtype, shape, offsets)                                                             \
    "{\"tutti/lengths/t\":{\"dtype\":\"" dtype "\",\"shape\":[" shape                              \
    "],\"data_offsets\":[" offsets "]}"
#define BYTES(dtype, shape, offsets)                                                               \
    ",\"t\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" offsets "]}}"

static void refused(const char *header, int64_t first, int64_t second, size_t size,
                    const char *part)
{
    char data[64] = {0};
    memcpy(data, &first, sizeof first);
    memcpy(data + 8, &second, sizeof second);
    CHECK_STATUS(read_bytes(header, size, data), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), part);
    CHECK_CONTAINS(tutti_error_message(), "s: tensor '");
}

TUTTI_TEST(strings_that_are_none_are_refused)
{
    const char *good = LENGTHS("I64", "2", "0,16") BYTES("U8", "4", "16,20");
    CHECK_OK(read_bytes(good, 20, (int64_t[]){1, 3, 0}));
    refused(good, 1, 4, 20, "length 4");
    refused(good, 5, 0, 20, "length 5");
    refused(good, -1, 5, 20, "length -1");
    refused(good, INT64_MAX, 2, 20, "length 9223372036854775807");
    refused(good, 1, 1, 20, "2 bytes belong to none");
    refused(LENGTHS("I64", "0,4611686018427387904", "0,0") BYTES("U8", "4", "0,4"), 0, 0, 4,
            "4 bytes belong to none");
    refused(LENGTHS("I64", "2", "0,16") "}", 1, 3, 16, "stand beside 't'");
    refused(LENGTHS("I32", "2", "0,8") BYTES("U8", "4", "8,12"), 1, 3, 12, "must be of I64");
    refused(LENGTHS("I64", "2", "0,16") BYTES("U8", "2,2", "16,20"), 1, 3, 20, "one dimension");
    refused(LENGTHS("I64", "2", "0,16") BYTES("F32", "1", "16,20"), 1, 3, 20, "of U8");
    refused("{\"tutti/lengths/\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 0, 0,
            8, "stand beside ''");
}

/* Two of the same: neither is the lengths of the other's strings. */
TUTTI_TEST(lengths_of_lengths_are_refused)
{
    refused(
        "{\"tutti/lengths/tutti/lengths/t\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,"
        "8]},\"tutti/lengths/t\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
        0, 0, 8, "must be of I64");
}
