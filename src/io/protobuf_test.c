/* protobuf_test.c: what is written is read; known bytes; truncation, groups, depth. */
#include "io/protobuf.h"

#include <string.h>

#include "base/test.h"

static void write_sample(tutti_text *text)
{
    tutti__proto_put_int(text, 1, 150);
    tutti__proto_put_int(text, 2, -1);
    tutti__proto_put_float(text, 3, 1.5F);
    tutti__proto_put_double(text, 536870911, -2.25);
    tutti__proto_put_string(text, 4, "hello");
    size_t outer = tutti__proto_open(text, 5), inner = tutti__proto_open(text, 6);
    for (uint64_t i = 0; i < 100; i++)
        tutti__proto_put_varint(text, i * i * i);
    tutti__proto_close(text, inner);
    tutti__proto_close(text, outer);
}

TUTTI_TEST(protobuf_round_trip)
{
    tutti_text text = {0};
    tutti_proto_field f, packed;
    write_sample(&text);
    CHECK(memcmp(text.data, "\x08\x96\x01", 3) == 0); /* the example of the format's own manual */
    tutti_proto p = tutti__proto("p", text.data, text.size);
    CHECK(tutti__proto_next(&p, &f) && f.number == 1);
    CHECK_INT(tutti__proto_int(&f), 150);
    CHECK(tutti__proto_next(&p, &f));
    CHECK_INT(tutti__proto_int(&f), -1);
    CHECK(tutti__proto_next(&p, &f));
    CHECK_NEAR(tutti__proto_float(&f), 1.5, 0);
    CHECK(tutti__proto_next(&p, &f));
    CHECK_INT(f.number, 536870911);
    CHECK_NEAR(tutti__proto_double(&f), -2.25, 0);
    CHECK(tutti__proto_next(&p, &f));
    CHECK(tutti__proto_is(&f, "hello") && !tutti__proto_is(&f, "hell"));
    CHECK(tutti__proto_next(&p, &f));
    tutti_proto inside = tutti__proto_inside(&p, &f);
    CHECK(tutti__proto_next(&inside, &packed) && packed.number == 6);
    size_t at = 0;
    int64_t value, count = 0;
    for (; tutti__proto_each_int(&inside, &packed, &at, &value); count++)
        CHECK_INT(value, count * count * count);
    CHECK_INT(count, 100);
    CHECK(!tutti__proto_next(&inside, &packed));
    CHECK_OK(tutti__proto_end(&inside));
    CHECK(!tutti__proto_next(&p, &f));
    CHECK_OK(tutti__proto_end(&p));
    tutti__text_free(&text);
}

static void refused(const char *bytes, size_t size)
{
    tutti_proto p = tutti__proto("p", bytes, size);
    tutti_proto_field f;
    while (tutti__proto_next(&p, &f))
        ;
    CHECK_STATUS(tutti__proto_end(&p), TUTTI_CORRUPT);
}

TUTTI_TEST(protobuf_refuses_damage)
{
    refused("\x08", 1);
    refused("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11); /* more than 64 bits */
    refused("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12);
    refused("\x00\x01", 2);     /* number 0 */
    refused("\x0b\x0c", 2);     /* a group */
    refused("\x0a\x05hell", 6); /* five bytes promised */
    refused("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
    refused("\x0d\x01\x02\x03", 4);
    refused("\x09\x01\x02\x03\x04\x05\x06\x07", 8);
    tutti_text text = {0};
    write_sample(&text);
    for (size_t size = 0; size < text.size; size++) {
        tutti_proto p = tutti__proto("p", text.data, size);
        tutti_proto_field f;
        while (tutti__proto_next(&p, &f))
            CHECK(f.data == NULL || f.data + f.size <= p.end);
    }
    tutti__text_free(&text);
}

TUTTI_TEST(protobuf_limits_depth)
{
    static const uint8_t nothing[1];
    tutti_proto_field f = {.number = 1, .kind = TUTTI_PROTO_BYTES, .data = nothing};
    tutti_proto p = tutti__proto("p", nothing, 0);
    for (int i = 0; i < 100; i++)
        p = tutti__proto_inside(&p, &f);
    CHECK_OK(tutti__proto_end(&p));
    p = tutti__proto_inside(&p, &f);
    CHECK_STATUS(tutti__proto_end(&p), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "100 deep");
}
