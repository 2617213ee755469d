/* npz_test.c: archives round trip; damage, overlaps, escapes and bombs are refused. */
#include "io/npz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "io/zip.h"

static tutti_named_tensor samples[3];

static void write_samples(tutti_text *text, bool compress)
{
    static const char *const names[] = {"images", "layer/kernel", "labels"};
    static const tutti_dtype dtypes[] = {TUTTI_F32, TUTTI_U8, TUTTI_I64};
    tutti_sink *sink;
    for (int i = 0; i < 3; i++) {
        CHECK_OK(tutti_tensor_create(dtypes[i], 2, (int64_t[]){i + 1, 40}, &samples[i].tensor));
        samples[i].name = names[i];
        for (int64_t k = 0; k < tutti_tensor_count(samples[i].tensor); k++)
            tutti_tensor_set(samples[i].tensor, k, (double)(k % 7));
    }
    CHECK_OK(tutti__sink_text("z", text, &sink));
    CHECK_OK(tutti__npz_write(sink, 3, samples, compress));
    CHECK_OK(tutti__sink_commit(sink));
}

static void free_samples(void)
{
    for (int i = 0; i < 3; i++)
        tutti_tensor_release(samples[i].tensor);
}

static tutti_status read_bytes(const void *data, size_t size, tutti_named_tensors *ret)
{
    tutti_source *source;
    CHECK_OK(tutti__source_bytes("z", data, size, &source));
    tutti_status status = tutti__npz_read(source, ret);
    tutti__source_close(source);
    return status;
}

TUTTI_TEST(npz_round_trip_stored_and_deflated)
{
    size_t sizes[2];
    for (int compress = 0; compress < 2; compress++) {
        tutti_text text = {0};
        tutti_named_tensors list = {0};
        write_samples(&text, compress);
        sizes[compress] = text.size;
        CHECK_OK(read_bytes(text.data, text.size, &list));
        CHECK_INT(list.count, 3);
        for (int i = 0; i < 3; i++) {
            CHECK_STR(list.items[i].name, samples[i].name);
            CHECK(tutti_tensor_same(list.items[i].tensor, samples[i].tensor));
        }
        tutti_named_tensors_clear(&list);
        tutti__text_free(&text);
        free_samples();
    }
    CHECK(sizes[1] < sizes[0]);
}

/* Bits of times and versions mean nothing; elsewhere a flip is noticed, or changes no value. */
TUTTI_TEST(npz_survives_damage)
{
    for (int compress = 0; compress < 2; compress++) {
        tutti_text text = {0};
        tutti_named_tensors list = {0};
        write_samples(&text, compress);
        for (size_t size = 0; size < text.size; size++)
            CHECK(read_bytes(text.data, size, &list) != TUTTI_OK);
        for (size_t bit = 0; bit < 8 * text.size; bit += TUTTI_TEST_SANITIZED ? 13 : 1) {
            text.data[bit / 8] = (char)(text.data[bit / 8] ^ 1 << bit % 8);
            if (read_bytes(text.data, text.size, &list) == TUTTI_OK) {
                for (size_t i = 0; i < list.count; i++)
                    CHECK(tutti_tensor_same(list.items[i].tensor, samples[i].tensor));
                tutti_named_tensors_clear(&list);
            }
            text.data[bit / 8] = (char)(text.data[bit / 8] ^ 1 << bit % 8);
        }
        tutti__text_free(&text);
        free_samples();
    }
}

/* One stored member with `name`, whose archive's bytes a test may change. */
static void write_member(tutti_text *text, const char *name)
{
    tutti_sink *sink, *member;
    tutti_zip_writer writer;
    CHECK_OK(tutti__sink_text("z", text, &sink));
    CHECK_OK(tutti__zip_begin(sink, &writer));
    CHECK_OK(tutti__zip_begin_member(&writer, name, false, &member));
    CHECK_OK(tutti__zip_end_member(&writer, member, tutti__sink_write(member, "data", 4)));
    CHECK_OK(tutti__zip_finish(&writer));
    tutti__zip_free(&writer);
    CHECK_OK(tutti__sink_commit(sink));
}

TUTTI_TEST(zip_refuses_names_that_escape)
{
    static const char *const names[] = {"../x.npy", "/x.npy",  "a/../x.npy",
                                        "a/..",     "c:x.npy", "a\\x.npy"};
    tutti_named_tensors list = {0};
    for (size_t i = 0; i < TUTTI_COUNT(names); i++) {
        tutti_text text = {0};
        write_member(&text, names[i]);
        CHECK_STATUS(read_bytes(text.data, text.size, &list), TUTTI_CORRUPT);
        CHECK_CONTAINS(tutti_error_message(), "a name without");
        tutti__text_free(&text);
    }
    tutti_text text = {0};
    write_member(&text, "dense/kernel:0.npy"); /* as TensorFlow names weights */
    CHECK_STATUS(read_bytes(text.data, text.size, &list), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "dense/kernel:0.npy: ends at byte 4");
    tutti__text_free(&text);
    write_member(&text, "readme.txt");
    CHECK_STATUS(read_bytes(text.data, text.size, &list), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "no array");
    tutti__text_free(&text);
}

/* Offsets in an archive of one member "x": header 30, name 1, extra 20, data 4, then its entry. */
#define ENTRY (30 + 1 + 20 + 4)

TUTTI_TEST(zip_refuses_bombs_overlaps_and_methods)
{
    tutti_text text = {0};
    tutti_source *source;
    tutti_zip_file *zip;
    write_member(&text, "x");
    CHECK_OK(tutti__source_bytes("z", text.data, text.size, &source));
    CHECK_OK(tutti__zip_open(source, &zip));
    tutti__zip_close(zip);
    tutti__put_u16(text.data + ENTRY + 10, 8);
    tutti__put_u32(text.data + ENTRY + 24, 1u << 30); /* a GiB out of four bytes */
    CHECK_STATUS(tutti__zip_open(source, &zip), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "cannot be");
    tutti__put_u16(text.data + ENTRY + 10, 12);
    CHECK_STATUS(tutti__zip_open(source, &zip), TUTTI_UNSUPPORTED);
    tutti__source_close(source);
    tutti__text_free(&text);
}

TUTTI_TEST(zip_refuses_two_members_in_one_place)
{
    tutti_text text = {0};
    tutti_sink *sink, *member;
    tutti_zip_writer writer;
    tutti_source *source;
    tutti_zip_file *zip;
    CHECK_OK(tutti__sink_text("z", &text, &sink));
    CHECK_OK(tutti__zip_begin(sink, &writer));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(tutti__zip_begin_member(&writer, "x", false, &member));
        CHECK_OK(tutti__zip_end_member(&writer, member, tutti__sink_write(member, "data", 4)));
    }
    CHECK_OK(tutti__zip_finish(&writer));
    tutti__zip_free(&writer);
    CHECK_OK(tutti__sink_commit(sink));
    CHECK_OK(tutti__source_bytes("z", text.data, text.size, &source));
    CHECK_STATUS(tutti__zip_open(source, &zip), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "twice");
    size_t second = 2 * ENTRY + 46 + 1;
    text.data[ENTRY + 30] = 'y';  /* the second member's own name */
    text.data[second + 46] = 'y'; /* and in the directory */
    CHECK_OK(tutti__zip_open(source, &zip));
    tutti__zip_close(zip);
    text.data[30] = 'y';
    tutti__put_u32(text.data + second + 42, 0); /* both at the first place */
    text.data[2 * ENTRY + 46] = 'x';
    CHECK_STATUS(tutti__zip_open(source, &zip), TUTTI_CORRUPT);
    tutti__source_close(source);
    tutti__text_free(&text);
}

/* More members than 16 bits count: the ending of zip64 is written and read. */
TUTTI_TEST(zip_holds_more_than_65535_members)
{
    enum { MEMBERS = 65600 };
    tutti_text text = {0};
    tutti_sink *sink, *member;
    tutti_zip_writer writer;
    tutti_source *source, *last;
    tutti_zip_file *zip;
    char name[16], byte;
    CHECK_OK(tutti__sink_text("z", &text, &sink));
    CHECK_OK(tutti__zip_begin(sink, &writer));
    for (int i = 0; i < MEMBERS; i++) {
        snprintf(name, sizeof name, "%d", i);
        CHECK_OK(tutti__zip_begin_member(&writer, name, false, &member));
        CHECK_OK(tutti__zip_end_member(&writer, member, tutti__sink_write(member, "x", 1)));
    }
    CHECK_OK(tutti__zip_finish(&writer));
    tutti__zip_free(&writer);
    CHECK_OK(tutti__sink_commit(sink));
    CHECK_OK(tutti__source_bytes("z", text.data, text.size, &source));
    CHECK_OK(tutti__zip_open(source, &zip));
    CHECK_INT(zip->count, MEMBERS);
    CHECK_STR(zip->members[MEMBERS - 1].name, "65599");
    CHECK_OK(tutti__zip_member_source(zip, MEMBERS - 1, &last));
    CHECK_OK(tutti__source_read(last, 0, &byte, 1, "a byte"));
    CHECK_INT(byte, 'x');
    tutti__source_close(last);
    tutti__zip_close(zip);
    tutti__source_close(source);
    tutti__text_free(&text);
}
