/* tfrecord_test.c: records and examples round trip, plain and packed; damage is noticed. */
#include "io/tfrecord.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/test.h"
#include "io/example.h"

static void write_records(tutti_text *text)
{
    tutti_sink *sink;
    CHECK_OK(tutti__sink_text("r", text, &sink));
    CHECK_OK(tutti__tfrecord_put(sink, "first", 5));
    CHECK_OK(tutti__tfrecord_put(sink, "", 0));
    CHECK_OK(tutti__tfrecord_put(sink, "the third", 9));
    CHECK_OK(tutti__sink_commit(sink));
}

/* Records read until the end or the first failure. */
static tutti_status count_records(const void *data, size_t size, int64_t *ret_count)
{
    tutti_source *source;
    tutti_tfrecord reader;
    CHECK_OK(tutti__source_bytes("r", data, size, &source));
    TUTTI_TRY(tutti__tfrecord_open(source, 1000, &reader));
    const uint8_t *record;
    size_t record_size;
    tutti_status status;
    int64_t count = 0;
    while ((status = tutti__tfrecord_next(&reader, &record, &record_size)) == TUTTI_OK && record)
        count++;
    tutti__tfrecord_close(&reader);
    *ret_count = count;
    return status;
}

/* Packed by zlib; window bits choose the frame. */
static size_t pack(const tutti_text *text, int bits, uint8_t *to, size_t room)
{
    z_stream z = {.next_in = (Bytef *)text->data,
                  .avail_in = (uInt)text->size,
                  .next_out = to,
                  .avail_out = (uInt)room};
    CHECK_INT(deflateInit2(&z, 6, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
    CHECK_INT(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t size = z.total_out;
    deflateEnd(&z);
    return size;
}

TUTTI_TEST(tfrecord_reads_what_it_wrote)
{
    tutti_text text = {0};
    uint8_t packed[1000];
    int64_t count;
    write_records(&text);
    CHECK_INT(text.size, 3 * 16 + 14);
    CHECK_OK(count_records(text.data, text.size, &count));
    CHECK_INT(count, 3);
    CHECK_OK(count_records("", 0, &count));
    CHECK_INT(count, 0);
    for (int gzip = 0; gzip < 2; gzip++) {
        size_t size = pack(&text, gzip ? 31 : 15, packed, sizeof packed);
        CHECK_OK(count_records(packed, size, &count));
        CHECK_INT(count, 3);
        CHECK(count_records(packed, size - 6, &count) != TUTTI_OK);
    }
    tutti__text_free(&text);
}

TUTTI_TEST(tfrecord_notices_every_flipped_bit)
{
    tutti_text text = {0};
    int64_t count;
    write_records(&text);
    for (size_t bit = 0; bit < 8 * text.size; bit++) {
        text.data[bit / 8] = (char)(text.data[bit / 8] ^ 1 << bit % 8);
        CHECK(count_records(text.data, text.size, &count) != TUTTI_OK);
        text.data[bit / 8] = (char)(text.data[bit / 8] ^ 1 << bit % 8);
    }
    for (size_t size = 1; size < text.size; size++) {
        bool between = size == 21 || size == 37;
        CHECK_INT(count_records(text.data, size, &count) == TUTTI_OK, between);
    }
    tutti__text_free(&text);
}

TUTTI_TEST(tfrecord_refuses_what_is_beyond_its_limit)
{
    tutti_text text = {0};
    tutti_source *source;
    tutti_tfrecord reader;
    const uint8_t *record;
    size_t size;
    write_records(&text);
    CHECK_OK(tutti__source_bytes("r", text.data, text.size, &source));
    CHECK_OK(tutti__tfrecord_open(source, 8, &reader));
    CHECK_OK(tutti__tfrecord_next(&reader, &record, &size));
    CHECK_OK(tutti__tfrecord_next(&reader, &record, &size));
    CHECK_INT(reader.at, 37);
    CHECK_STATUS(tutti__tfrecord_next(&reader, &record, &size), TUTTI_TOO_LARGE);
    tutti__tfrecord_close(&reader);
    tutti__text_free(&text);
}

static void make_features(tutti_named_tensor features[4])
{
    static const uint32_t reals[] = {0x3fc00000, 0x7fbfffff}; /* 1.5 and a signalling NaN */
    static const int64_t integers[] = {-1, 1, INT64_MAX};
    static const tutti_string strings[] = {{"a\0b", 3}, {"", 0}};
    static const bool truth[] = {true, false};
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, (int64_t[]){2}, reals, &features[0].tensor));
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 1, (int64_t[]){3}, integers, &features[1].tensor));
    CHECK_OK(tutti_tensor_from(TUTTI_STRING, 1, (int64_t[]){2}, strings, &features[2].tensor));
    CHECK_OK(tutti_tensor_from(TUTTI_BOOL, 1, (int64_t[]){2}, truth, &features[3].tensor));
    features[0].name = "reals";
    features[1].name = "integers";
    features[2].name = "strings";
    features[3].name = "truth";
}

TUTTI_TEST(example_round_trip_and_damage)
{
    tutti_named_tensor features[4];
    tutti_named_tensors list = {0};
    tutti_text text;
    make_features(features);
    CHECK_OK(tutti__example_build(4, features, &text));
    CHECK_OK(tutti__example_parse("e", text.data, text.size, &list));
    CHECK_INT(list.count, 4);
    for (int i = 0; i < 3; i++)
        CHECK(tutti_tensor_same(tutti_named_tensors_find(&list, features[i].name),
                                features[i].tensor));
    CHECK_INT(tutti_tensor_get_int(tutti_named_tensors_find(&list, "truth"), 0), 1);
    tutti_named_tensors_clear(&list);
    for (size_t size = 1; size < text.size; size++)
        CHECK_STATUS(tutti__example_parse("e", text.data, size, &list), TUTTI_CORRUPT);
    for (size_t bit = 0; bit < 8 * text.size; bit++) {
        text.data[bit / 8] = (char)(text.data[bit / 8] ^ 1 << bit % 8);
        if (tutti__example_parse("e", text.data, text.size, &list) == TUTTI_OK)
            tutti_named_tensors_clear(&list);
        text.data[bit / 8] = (char)(text.data[bit / 8] ^ 1 << bit % 8);
    }
    tutti__text_free(&text);
    for (int i = 0; i < 4; i++)
        tutti_tensor_release(features[i].tensor);
}
