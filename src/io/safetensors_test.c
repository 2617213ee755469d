/* safetensors_test.c: round trips, files in several parts, and every kind of damage. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "io/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test.h"

static char folder[64];

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/tutti-safe-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
}

static void remove_folder(void)
{
    const tutti_world *w = tutti__world();
    char **names, path[400];
    size_t count;
    CHECK_OK(w->list_folder(w->self, folder, &names, &count));
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        CHECK_OK(w->remove_file(w->self, path));
    }
    free(names);
    CHECK_OK(w->remove_file(w->self, folder));
}

#define KINDS 9
static tutti_named_tensor samples[KINDS + 1];

static void make_samples(void)
{
    static const tutti_dtype dtypes[KINDS] = {TUTTI_BOOL, TUTTI_F32,  TUTTI_F64,
                                              TUTTI_F16,  TUTTI_BF16, TUTTI_I8,
                                              TUTTI_U8,   TUTTI_I32,  TUTTI_I64};
    for (int i = 0; i < KINDS; i++) {
        int64_t dims[] = {i == 5 ? 0 : 2, 3};
        CHECK_OK(tutti_tensor_create(dtypes[i], i == 1 ? 0 : 2, dims, &samples[i].tensor));
        for (int64_t k = 0; k < tutti_tensor_count(samples[i].tensor); k++)
            tutti_tensor_set(samples[i].tensor, k, (double)(k + i) / 2);
        samples[i].name = tutti_dtype_name(dtypes[i]);
    }
}

static void free_samples(void)
{
    for (int i = 0; i < KINDS; i++)
        tutti_tensor_release(samples[i].tensor);
}

/* The samples as bytes of one file. */
static void write_samples(tutti_text *text)
{
    tutti_sink *sink;
    tutti_safetensors_plan plan[KINDS];
    tutti_safetensors_writer writer;
    tutti_text_pair metadata[] = {{"format", "pt"}, {"note", "\"quoted\"\n"}};
    make_samples();
    for (int i = 0; i < KINDS; i++)
        plan[i] = (tutti_safetensors_plan){samples[i].name, *tutti_tensor_type(samples[i].tensor)};
    CHECK_OK(tutti__sink_text("s", text, &sink));
    CHECK_OK(tutti__safetensors_begin(sink, KINDS, plan, 2, metadata, &writer));
    for (int i = 0; i < KINDS; i++)
        CHECK_OK(tutti__safetensors_write_tensor(&writer, samples[i].tensor));
    CHECK_OK(tutti__safetensors_finish(&writer));
    tutti__safetensors_free(&writer);
    CHECK_OK(tutti__sink_commit(sink));
}

/* Reads everything in the bytes; the first failure. */
static tutti_status read_all(const char *data, size_t size)
{
    tutti_source *source;
    tutti_safetensors *file;
    CHECK_OK(tutti__source_bytes("s", data, size, &source));
    tutti_status status = tutti__safetensors_read(source, &file);
    if (status == TUTTI_OK) {
        for (size_t i = 0; i < file->count && status == TUTTI_OK; i++) {
            tutti_tensor *tensor;
            status = tutti__safetensors_tensor(file, &file->items[i], &tensor);
            if (status == TUTTI_OK)
                tutti_tensor_release(tensor);
        }
        tutti__safetensors_close(file);
    }
    tutti__source_close(source);
    return status;
}

TUTTI_TEST(safetensors_round_trip_keeps_every_type)
{
    tutti_text text = {0};
    tutti_source *source;
    tutti_safetensors *file;
    write_samples(&text);
    CHECK_INT((8 + tutti__get_u64(text.data)) % 8, 0);
    CHECK_OK(tutti__source_bytes("s", text.data, text.size, &source));
    CHECK_OK(tutti__safetensors_read(source, &file));
    CHECK_INT(file->count, KINDS);
    CHECK_STR(tutti__safetensors_metadata(file, "note"), "\"quoted\"\n");
    CHECK(file->files[0].checked);
    for (int i = 0; i < KINDS; i++) {
        const tutti_safetensor *item = tutti__safetensors_find(file, samples[i].name);
        tutti_tensor *tensor;
        CHECK(item != NULL);
        CHECK_OK(tutti__safetensors_tensor(file, item, &tensor));
        CHECK(tutti_tensor_same(tensor, samples[i].tensor));
        tutti_tensor_release(tensor);
    }
    CHECK(tutti__safetensors_find(file, "none") == NULL);
    tutti__safetensors_close(file);
    tutti__source_close(source);
    tutti__text_free(&text);
    free_samples();
}

/* The promise: a file of ours with any one bit flipped, or cut anywhere, is never accepted. */
TUTTI_TEST(safetensors_notice_every_flipped_bit_and_every_cut)
{
    tutti_text text = {0};
    write_samples(&text);
    CHECK_OK(read_all(text.data, text.size));
    for (size_t size = 0; size < text.size; size++)
        CHECK(read_all(text.data, size) != TUTTI_OK);
    for (size_t bit = 0; bit < 8 * text.size; bit++) {
        text.data[bit / 8] = (char)(text.data[bit / 8] ^ 1 << bit % 8);
        tutti_status status = read_all(text.data, text.size);
        if (status != TUTTI_CORRUPT) /* of which readers know that an older file may serve */
            tutti__test_fail(__FILE__, __LINE__, "bit %zu of byte %zu may flip: %s", bit % 8,
                             bit / 8, tutti_status_text(status));
        text.data[bit / 8] = (char)(text.data[bit / 8] ^ 1 << bit % 8);
    }
    tutti__text_bytes(&text, "x", 1);
    CHECK_STATUS(read_all(text.data, text.size), TUTTI_CORRUPT);
    tutti__text_free(&text);
    free_samples();
}

/* A file of `header` and `bytes` zeros of data. */
static tutti_status read_header(const char *header, size_t bytes)
{
    char file[1024] = {0};
    size_t n = strlen(header);
    CHECK(8 + n + bytes <= sizeof file);
    tutti__put_u64(file, n);
    memcpy(file + 8, header, n);
    return read_all(file, 8 + n + bytes);
}

static void refused(const char *header, size_t bytes, const char *part)
{
    CHECK(read_header(header, bytes) != TUTTI_OK);
    CHECK_CONTAINS(tutti_error_message(), part);
}

#define F32(offsets) "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[" offsets "]}"

TUTTI_TEST(safetensors_refuse_hostile_headers)
{
    CHECK_OK(read_header("{}", 0));
    CHECK_OK(read_header("{\"b\":" F32("8,16") ",\"a\":" F32("0,8") "}  ", 16));
    refused("{\"a\":" F32("0,8") ",\"b\":" F32("4,12") "}", 12, "overlap");
    refused("{\"a\":" F32("0,8") ",\"b\":" F32("0,8") "}", 8, "overlap");
    refused("{\"a\":" F32("0,8") ",\"b\":" F32("12,20") "}", 20, "hole");
    refused("{\"a\":" F32("0,8") "}", 9, "end at offset");
    refused("{\"a\":" F32("0,8") "}", 7, "truncated");
    refused("{\"a\":" F32("8,0") "}", 8, "claims bytes");
    refused("{\"a\":" F32("-8,0") "}", 8, "claims bytes");
    refused("{\"a\":" F32("0,9223372036854775807") "}", 8, "claims bytes");
    refused("{\"a\":" F32("0,4") "}", 4, "shape and dtype need 8 bytes");
    refused("{\"a\":" F32("0") "}", 8, "[begin, end]");
    refused("{\"a\":" F32("0,8") ",\"a\":" F32("8,16") "}", 16, "twice");
    refused("{\"a\":{\"dtype\":\"F33\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, "F33");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "integers");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}",
            0, "overflow");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4,
            "9 dimensions");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "expected {");
    refused("{\"__metadata__\":{\"a\":1}}", 0, "expected a string");
    refused("{\"__metadata__\":[]}", 0, "expected an object");
    refused("[]", 0, "expected an object");
    refused("{\"__metadata__\":{\"tutti.crc32c\":\"\"}}", 0, "without the others");
    refused("{\"a\":{\"dtype\":\"U16\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, "U16");
    char absurd[16] = {0};
    memset(absurd, 0xff, 8);
    CHECK_STATUS(read_all(absurd, 16), TUTTI_CORRUPT);
    char boolean[] =
        "\0\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[0,1]}}\x02";
    tutti__put_u64(boolean, sizeof boolean - 10);
    CHECK_STATUS(read_all(boolean, sizeof boolean - 1), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "boolean");
}

static void write_file(const char *name, const char *text)
{
    const tutti_world *w = tutti__world();
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK_OK(w->write_file(w->self, path, text, strlen(text)));
}

static void check_loads(const char *path)
{
    tutti_named_tensors list = {0};
    CHECK_OK(tutti_safetensors_load(path, &list));
    CHECK_INT(list.count, KINDS);
    for (int i = 0; i < KINDS; i++)
        CHECK(
            tutti_tensor_same(tutti_named_tensors_find(&list, samples[i].name), samples[i].tensor));
    tutti_named_tensors_clear(&list);
}

TUTTI_TEST(safetensors_in_several_files_with_an_index)
{
    char path[100], index[130], shard[130], other[130];
    tutti_safetensors *file;
    make_folder();
    make_samples();
    snprintf(path, sizeof path, "%s/x.safetensors", folder);
    snprintf(index, sizeof index, "%s.index.json", path);
    snprintf(shard, sizeof shard, "%s/x-00001-of-00003.safetensors", folder);
    snprintf(other, sizeof other, "%s/x-00002-of-00003.safetensors", folder);
    CHECK_OK(tutti__safetensors_save(path, KINDS, samples, 0, NULL, 0, false));
    check_loads(path);
    CHECK_OK(tutti__safetensors_save(path, KINDS, samples, 0, NULL, 60, false));
    CHECK_OK(tutti__safetensors_open(path, true, &file));
    CHECK_INT(file->file_count, 3);
    tutti__safetensors_close(file);
    check_loads(path);
    check_loads(index);
    /* A file of another saving with the same names is not taken for this one's. */
    tutti_tensor_set(samples[7].tensor, 0, 99);
    CHECK_OK(tutti__safetensors_save(other, 1, &samples[7], 0, NULL, 0, false));
    CHECK_STATUS(tutti__safetensors_open(path, true, &file), TUTTI_CORRUPT);
    CHECK_OK(tutti__safetensors_save(path, KINDS, samples, 0, NULL, 0, false));
    check_loads(path);
    CHECK_STATUS(tutti__safetensors_open(index, true, &file), TUTTI_NOT_FOUND);
    free_samples();
    remove_folder();
}

TUTTI_TEST(safetensors_index_cannot_leave_its_folder)
{
    static const char *const names[] = {"../x.safetensors", "/etc/passwd", "a/b", "..", "",
                                        "a\\\\b",           "x\\u0000y"};
    char path[100], text[300];
    tutti_safetensors *file;
    make_folder();
    snprintf(path, sizeof path, "%s/y.safetensors.index.json", folder);
    for (size_t i = 0; i < TUTTI_COUNT(names); i++) {
        snprintf(text, sizeof text, "{\"weight_map\": {\"w\": \"%s\"}}", names[i]);
        write_file("y.safetensors.index.json", text);
        CHECK_STATUS(tutti__safetensors_open(path, false, &file), TUTTI_CORRUPT);
        CHECK_CONTAINS(tutti_error_message(), "without folders");
    }
    write_file("y.safetensors.index.json", "{\"weight_map\": {\"w\": \"gone.safetensors\"}}");
    CHECK_STATUS(tutti__safetensors_open(path, false, &file), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "gone.safetensors");
    write_file("y.safetensors.index.json", "{\"weight_map\": []}");
    CHECK_STATUS(tutti__safetensors_open(path, false, &file), TUTTI_CORRUPT);
    char plain[] = "\x02\0\0\0\0\0\0\0{}";
    const tutti_world *w = tutti__world();
    char bare[100];
    snprintf(bare, sizeof bare, "%s/bare.safetensors", folder);
    CHECK_OK(w->write_file(w->self, bare, plain, 10));
    CHECK_OK(tutti__safetensors_open(bare, false, &file));
    tutti__safetensors_close(file);
    CHECK_STATUS(tutti__safetensors_open(bare, true, &file), TUTTI_CORRUPT);
    remove_folder();
}

TUTTI_TEST(safetensors_index_cannot_leave_its_folder_through_a_link)
{
    char path[100], other[100], link[100], cached[140];
    tutti_safetensors *file;
    make_folder();
    snprintf(other, sizeof other, "%s-other", folder);
    CHECK(mkdir(other, 0777) == 0);
    snprintf(cached, sizeof cached, "%s/secret", other);
    FILE *secret = fopen(cached, "w");
    CHECK(secret != NULL);
    fputs("SECRETS!", secret);
    fclose(secret);
    snprintf(path, sizeof path, "%s/y.safetensors.index.json", folder);
    snprintf(link, sizeof link, "%s/a.safetensors", folder);
    write_file("y.safetensors.index.json", "{\"weight_map\": {\"w\": \"a.safetensors\"}}");
    CHECK(symlink(cached, link) == 0);
    CHECK_STATUS(tutti__safetensors_open(path, false, &file), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "a link that leads out of the index's folder");
    /* All files of a model in one folder, and links to them: as caches have it. */
    char index[140];
    snprintf(index, sizeof index, "%s/index", other);
    CHECK(rename(path, index) == 0);
    CHECK(symlink(index, path) == 0);
    CHECK_STATUS(tutti__safetensors_open(path, false, &file), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "no safetensors file");
    CHECK(remove(index) == 0 && remove(cached) == 0 && remove(other) == 0);
    remove_folder();
}

TUTTI_TEST(safetensors_refuse_to_write_what_they_cannot_hold)
{
    tutti_named_tensor twice[2] = {{"a", NULL}, {"a", NULL}}, bad = {"\xff", NULL},
                       reserved = {"tutti/lengths/a", NULL};
    char path[100];
    make_folder();
    snprintf(path, sizeof path, "%s/z.safetensors", folder);
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 0, NULL, &twice[0].tensor));
    twice[1].tensor = bad.tensor = reserved.tensor = twice[0].tensor;
    CHECK_STATUS(tutti__safetensors_save(path, 2, twice, 0, NULL, 0, false), TUTTI_INVALID);
    CHECK_STATUS(tutti__safetensors_save(path, 2, twice, 0, NULL, 1, false), TUTTI_INVALID);
    CHECK_STATUS(tutti__safetensors_save(path, 1, &bad, 0, NULL, 0, false), TUTTI_INVALID);
    CHECK_STATUS(tutti__safetensors_save(path, 1, &reserved, 0, NULL, 0, false), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "'tutti/lengths/a' cannot be a name");
    tutti_named_tensor nameless = {NULL, bad.tensor}, missing = {"m", NULL};
    tutti_text_pair half = {"key", NULL};
    CHECK_STATUS(tutti_safetensors_save(path, 1, &nameless), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "the name of tensor 0 of 1 is NULL");
    CHECK_STATUS(tutti_safetensors_save(path, 1, &missing), TUTTI_INVALID);
    CHECK_STATUS(tutti_safetensors_save(path, 0, NULL, .metadata_count = 1, .metadata = &half),
                 TUTTI_INVALID);
    CHECK_STATUS(tutti_npz_save(path, 1, &missing, false), TUTTI_INVALID);
    CHECK_STATUS(tutti_npy_save(path, NULL), TUTTI_INVALID);
    tutti_tensor_release(twice[0].tensor);
    remove_folder(); /* and nothing was left in it */
}
