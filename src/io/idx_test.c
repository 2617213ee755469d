/* idx_test.c: good and bad IDX bytes, plain and packed. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/test.h"
#include "io/gzip.h"
#include "io/idx.h"

static const uint8_t good[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};

TUTTI_TEST(idx_reads_bytes)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti__idx_parse("x", good, sizeof good, &tensor));
    CHECK_INT(tutti_tensor_dims(tensor)[1], 3);
    CHECK_INT(tutti_tensor_get_int(tensor, 5), 6);
    tutti_tensor_release(tensor);
}

TUTTI_TEST(idx_reads_big_endian_integers)
{
    const uint8_t ints[] = {0, 0, 0x0C, 1, 0, 0, 0, 2, 0, 0, 1, 0, 0xff, 0xff, 0xff, 0xfe};
    tutti_tensor *tensor;
    CHECK_OK(tutti__idx_parse("x", ints, sizeof ints, &tensor));
    CHECK_INT(tutti_tensor_get_int(tensor, 0), 256);
    CHECK_INT(tutti_tensor_get_int(tensor, 1), -2);
    tutti_tensor_release(tensor);
}

TUTTI_TEST(idx_widens_16_bits)
{
    const uint8_t ints[] = {0, 0, 0x0B, 1, 0, 0, 0, 2, 1, 2, 0xff, 0xfe};
    tutti_tensor *tensor;
    CHECK_OK(tutti__idx_parse("x", ints, sizeof ints, &tensor));
    CHECK(tutti_tensor_dtype(tensor) == TUTTI_I32);
    CHECK_INT(tutti_tensor_get_int(tensor, 0), 258);
    CHECK_INT(tutti_tensor_get_int(tensor, 1), -2);
    tutti_tensor_release(tensor);
    CHECK_STATUS(tutti__idx_parse("x", ints, sizeof ints - 1, &tensor), TUTTI_CORRUPT);
}

TUTTI_TEST(idx_refuses_what_is_not_whole)
{
    tutti_tensor *tensor;
    uint8_t bytes[sizeof good];
    for (size_t size = 0; size < sizeof good; size++)
        CHECK_STATUS(tutti__idx_parse("x", good, size, &tensor), TUTTI_CORRUPT);
    CHECK_STATUS(tutti__idx_parse("x", good, 3, &tensor), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "x ends too early: 3 bytes");
    memcpy(bytes, good, sizeof good);
    bytes[1] = 1;
    CHECK_STATUS(tutti__idx_parse("x", bytes, 2, &tensor), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "must begin with two zero bytes");
    bytes[1] = 0;
    bytes[4] = 0xff; /* four thousand million rows */
    CHECK(tutti__idx_parse("x", bytes, sizeof bytes, &tensor) != TUTTI_OK);
    bytes[4] = 0;
    bytes[2] = 7;
    CHECK_STATUS(tutti__idx_parse("x", bytes, sizeof bytes, &tensor), TUTTI_CORRUPT);
}

TUTTI_TEST(gzip_unpacks_and_notices_damage)
{
    uint8_t packed[256];
    z_stream z = {.next_in = (Bytef *)(uintptr_t)good,
                  .avail_in = sizeof good,
                  .next_out = packed,
                  .avail_out = sizeof packed};
    CHECK_INT(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    CHECK_INT(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t size = z.total_out, unpacked;
    deflateEnd(&z);
    void *data;
    CHECK(tutti__gzip_is(packed, size));
    CHECK_OK(tutti__gzip_unpack("x", packed, size, 1000, &data, &unpacked));
    CHECK_INT(unpacked, sizeof good);
    CHECK(memcmp(data, good, sizeof good) == 0);
    free(data);
    CHECK_STATUS(tutti__gzip_unpack("x", packed, size, 5, &data, &unpacked), TUTTI_TOO_LARGE);
    CHECK_STATUS(tutti__gzip_unpack("x", packed, size - 3, 1000, &data, &unpacked), TUTTI_CORRUPT);
    packed[size / 2] ^= 0x40;
    CHECK(tutti__gzip_unpack("x", packed, size, 1000, &data, &unpacked) != TUTTI_OK);
}
