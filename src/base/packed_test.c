/* packed_test.c: a struct to bytes and back; every cut of the bytes is refused. */
#include "base/packed.h"

#include <math.h>
#include <string.h>

#include "base/test.h"

typedef struct sample {
    uint32_t small;
    int64_t large;
    double number;
    char text[6];
    tutti_packed_data data, longs;
} sample;

static const tutti_packed_field fields[] = {
    {TUTTI_PACKED_U32, offsetof(sample, small), 4, 10},
    {TUTTI_PACKED_U64, offsetof(sample, large), 8, 0},
    {TUTTI_PACKED_F64, offsetof(sample, number), 8, 0},
    {TUTTI_PACKED_TEXT, offsetof(sample, text), 6, 0},
    {TUTTI_PACKED_DATA, offsetof(sample, data), sizeof(tutti_packed_data), 0},
    {TUTTI_PACKED_LONGS, offsetof(sample, longs), sizeof(tutti_packed_data), 0},
    {TUTTI_PACKED_END},
};

static const uint8_t two_longs[16] = {5, [8] = 255, 255, 255, 255, 255, 255, 255, 255};

static size_t sample_write(const sample *s, uint8_t bytes[128])
{
    size_t size = tutti__packed_size(fields, s);
    CHECK(size <= 128);
    CHECK(tutti__packed_write(fields, s, bytes) == bytes + size);
    return size;
}

TUTTI_TEST(packed_round_trip)
{
    sample first = {9, -7, 0.5, "words", {(const uint8_t *)"abc", 3}, {two_longs, 16}}, second;
    uint8_t bytes[128];
    size_t size = sample_write(&first, bytes);
    for (size_t cut = 0; cut <= size; cut++) {
        const uint8_t *at = bytes;
        memset(&second, 0, sizeof second);
        CHECK_INT(tutti__packed_read(fields, &at, bytes + cut, &second), cut == size);
    }
    CHECK_INT(second.small, 9);
    CHECK_INT(second.large, -7);
    CHECK(second.number == 0.5);
    CHECK_STR(second.text, "words");
    CHECK_INT(second.data.size, 3);
    CHECK(memcmp(second.data.bytes, "abc", 3) == 0);
    CHECK_INT(tutti__packed_long(second.longs, 0), 5);
    CHECK_INT(tutti__packed_long(second.longs, 1), -1);
}

TUTTI_TEST(packed_refuses_what_cannot_be)
{
    sample s = {10, 0, 0, "words", {0}, {0}}, read = {0};
    uint8_t bytes[128];
    const uint8_t *at = bytes;
    size_t size = sample_write(&s, bytes);
    CHECK(!tutti__packed_read(fields, &at, bytes + size, &read)); /* 10 is not below 10 */
    s.small = 1;
    s.number = NAN;
    size = sample_write(&s, bytes);
    at = bytes;
    CHECK(!tutti__packed_read(fields, &at, bytes + size, &read));
    s.number = 1;
    size = sample_write(&s, bytes);
    bytes[4 + 8 + 8 + 2] = 0; /* a NUL in the text */
    at = bytes;
    CHECK(!tutti__packed_read(fields, &at, bytes + size, &read));
}
