/* image_test.c: round trips (PNG exact, JPEG near), channels, limits, every cut and many flips. */
#include "io/image.h"

#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "tutti/files.h"

static tutti_tensor *make_image(int channels)
{
    tutti_tensor *image;
    CHECK_OK(tutti_tensor_create(TUTTI_U8, 3, (int64_t[]){17, 23, channels}, &image));
    uint8_t *to = tutti_tensor_data(image);
    for (int y = 0; y < 17; y++)
        for (int x = 0; x < 23; x++)
            for (int c = 0; c < channels; c++)
                *to++ = (uint8_t)(c == 3 ? 255 - x : 8 * y + 3 * x + 20 * c);
    return image;
}

static void encode(bool png, tutti_tensor *image, tutti_text *text)
{
    tutti_status status =
        png ? tutti__png_encode(image, text) : tutti__jpeg_encode(image, 95, text);
    if (status == TUTTI_UNSUPPORTED)
        tutti_tensor_release(image);
    if (status == TUTTI_UNSUPPORTED)
        SKIP("%s", tutti_error_message());
    CHECK_OK(status);
}

TUTTI_TEST(png_round_trip_is_exact)
{
    for (int channels = 1; channels <= 4; channels += channels == 1 ? 2 : 1) {
        tutti_tensor *image = make_image(channels), *back, *colour;
        tutti_text text = {0};
        encode(true, image, &text);
        CHECK_OK(tutti__image_decode("p", text.data, text.size, 0, 0, &back));
        CHECK(tutti_tensor_same(image, back));
        CHECK_OK(tutti__image_decode("p", text.data, text.size, 3, 0, &colour));
        CHECK_INT(tutti_tensor_dims(colour)[2], 3);
        for (int64_t i = 0; i < 17 * 23; i++) /* alpha is dropped, not blended */
            CHECK_INT(tutti_tensor_get_int(colour, 3 * i),
                      tutti_tensor_get_int(image, channels * i));
        tutti_tensor_release(image);
        tutti_tensor_release(back);
        tutti_tensor_release(colour);
        tutti__text_free(&text);
    }
}

TUTTI_TEST(jpeg_round_trip_is_near)
{
    for (int channels = 1; channels <= 3; channels += 2) {
        tutti_tensor *image = make_image(channels), *back;
        tutti_text text = {0};
        encode(false, image, &text);
        CHECK_OK(tutti__image_decode("j", text.data, text.size, 0, 0, &back));
        CHECK_INT(tutti_tensor_dims(back)[0], 17);
        CHECK_INT(tutti_tensor_dims(back)[1], 23);
        CHECK_INT(tutti_tensor_dims(back)[2], channels);
        for (int64_t i = 0; i < tutti_tensor_count(back); i++)
            CHECK_NEAR(tutti_tensor_get_int(back, i), tutti_tensor_get_int(image, i), 12);
        tutti_tensor_release(back);
        CHECK_STATUS(tutti__image_decode("j", text.data, text.size, 4, 0, &back),
                     TUTTI_UNSUPPORTED);
        tutti_tensor_release(image);
        tutti__text_free(&text);
    }
}

TUTTI_TEST(images_have_limits)
{
    tutti_tensor *image = make_image(3), *back;
    tutti_text text = {0};
    encode(true, image, &text);
    CHECK_STATUS(tutti__image_decode("p", text.data, text.size, 0, 17 * 23 - 1, &back),
                 TUTTI_TOO_LARGE);
    CHECK_STATUS(tutti__image_decode("p", text.data, text.size, 2, 0, &back), TUTTI_INVALID);
    CHECK_STATUS(tutti__image_decode("p", "GIF89a", 6, 0, 0, &back), TUTTI_UNSUPPORTED);
    CHECK_STATUS(tutti_image_load("/nowhere.png", 0, &back), TUTTI_NOT_FOUND);
    tutti_tensor_release(image);
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 3, (int64_t[]){2, 2, 3}, &image));
    CHECK_STATUS(tutti__png_encode(image, &text), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "not f32[2,2,3]");
    tutti_tensor_release(image);
    tutti__text_free(&text);
}

TUTTI_TEST(images_survive_damage)
{
    for (int png = 0; png < 2; png++) {
        tutti_tensor *image = make_image(3), *back;
        tutti_text text = {0};
        encode(png, image, &text);
        for (size_t size = 0; size + 20 < text.size; size += 3)
            CHECK(tutti__image_decode("d", text.data, size, 3, 0, &back) != TUTTI_OK);
        for (size_t bit = 0; bit < 8 * text.size; bit += 5) {
            text.data[bit / 8] = (char)(text.data[bit / 8] ^ 1 << bit % 8);
            if (tutti__image_decode("d", text.data, text.size, 3, 1 << 20, &back) == TUTTI_OK)
                tutti_tensor_release(back);
            text.data[bit / 8] = (char)(text.data[bit / 8] ^ 1 << bit % 8);
        }
        tutti_tensor_release(image);
        tutti__text_free(&text);
    }
}

/* The first scan of 8 x 8 grey pixels that come in several, and how a table between scans begins.
 */
static const char first_scan[] =
    "\xff\xd8\xff\xdb\x00\x43\x00"
    "QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ"
    "\xff\xc2\x00\x0b\x08\x00\x08\x00\x08\x01\x01\x11\x00"
    "\xff\xc4\x00\x14\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
    "\xff\xda\x00\x08\x01\x01\x00\x00\x00\x01\x7f\xff\xfe\x00\x02";
static const char next_table[] = "\xff\xc4\x00\x14\x10";

/* Decodes the first scan with so many odd bytes behind it and, perhaps, a table that is none. */
static tutti_status decode_scan(int odd, bool broken)
{
    tutti_text text = {0};
    tutti_tensor *image;
    tutti__text_bytes(&text, first_scan, sizeof first_scan - 1);
    tutti__text_bytes(&text, "????", (size_t)odd);
    if (broken)
        tutti__text_bytes(&text, next_table, sizeof next_table - 1);
    for (int i = 0; broken && i < 17; i++)
        tutti__text_bytes(&text, "\xfe", 1);
    tutti__text_bytes(&text, "\xff\xd9", 2);
    tutti_status status = tutti__image_decode("d", text.data, text.size, 1, 0, &image);
    if (status == TUTTI_OK)
        tutti_tensor_release(image);
    tutti__text_free(&text);
    return status;
}

TUTTI_TEST(jpeg_that_ends_in_an_error_is_refused)
{
    tutti_tensor *image = make_image(3), *back;
    tutti_text text = {0};
    encode(false, image, &text); /* skips where there is no JPEG */
    tutti_tensor_release(image);
    tutti__text_free(&text);
    CHECK_STATUS(tutti__image_decode("d", "\xff\xd8\xff\xd9", 4, 3, 0, &back), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "d: JPEG: no picture, only tables");
    CHECK_OK(decode_scan(0, false));
    CHECK_OK(decode_scan(2, false)); /* is warned of */
    CHECK_STATUS(decode_scan(0, true), TUTTI_CORRUPT);
    CHECK_STATUS(decode_scan(2, true), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "Huffman table");
}

/* Two pixels (10, 100, 200) and (0, 255, 0) in 16 bits a channel; the same in 8 with a gamma of 1;
 * and 8 x 8 pixels of the inks (255, 0, 51, 102). */
static const char sixteen_bits[] =
    "\x89\x50\x4e\x47\x0d\x0a\x1a\x0a\x00\x00\x00\x0d\x49\x48\x44\x52\x00\x00\x00\x02\x00\x00"
    "\x00\x01\x10\x02\x00\x00\x00\x2b\xd0\x34\x9e\x00\x00\x00\x15\x49\x44\x41\x54\x78\xda\x63"
    "\xe0\xe2\x4a\x49\x3f\x71\x82\x81\xe1\xff\x7f\x86\x06\x00\x1b\xab\x04\xee\x23\x4f\x8e\x9e"
    "\x00\x00\x00\x00\x49\x45\x4e\x44\xae\x42\x60\x82";
static const char with_gamma[] =
    "\x89\x50\x4e\x47\x0d\x0a\x1a\x0a\x00\x00\x00\x0d\x49\x48\x44\x52\x00\x00\x00\x02\x00\x00"
    "\x00\x01\x08\x02\x00\x00\x00\x7b\x40\xe8\xdd\x00\x00\x00\x04\x67\x41\x4d\x41\x00\x01\x86"
    "\xa0\x31\xe8\x96\x5f\x00\x00\x00\x0f\x49\x44\x41\x54\x78\xda\x63\xe0\x4a\x39\xc1\xf0\x9f"
    "\x01\x00\x07\x55\x02\x36\x52\xfe\x75\x4e\x00\x00\x00\x00\x49\x45\x4e\x44\xae\x42\x60\x82";
static const char inks[] =
    "\xff\xd8\xff\xee\x00\x0e\x41\x64\x6f\x62\x65\x00\x64\x00\x00\x00\x00\x00\xff\xdb\x00\x43"
    "\x00\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01"
    "\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01"
    "\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\xff"
    "\xc0\x00\x14\x08\x00\x08\x00\x08\x04\x43\x11\x00\x4d\x11\x00\x59\x11\x00\x4b\x11\x00\xff"
    "\xc4\x00\x16\x00\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x0a\x08"
    "\x0b\xff\xc4\x00\x14\x10\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
    "\x00\xff\xda\x00\x0e\x04\x43\x00\x4d\x00\x59\x00\x4b\x00\x00\x3f\x00\xcf\xfc\xfe\x09\x81"
    "\x64\x3f\xff\xd9";

static tutti_tensor *decode(const char *data, size_t size, int channels)
{
    tutti_tensor *image;
    tutti_status status = tutti__image_decode("i", data, size, channels, 0, &image);
    if (status == TUTTI_UNSUPPORTED)
        SKIP("%s", tutti_error_message());
    CHECK_OK(status);
    return image;
}

static void check_pixels(const char *data, size_t size, int channels, const uint8_t *expected)
{
    tutti_tensor *image = decode(data, size, channels);
    CHECK_INT(tutti_tensor_dims(image)[2], channels);
    for (int64_t i = 0; i < (int64_t)2 * channels; i++)
        CHECK_INT(tutti_tensor_get_int(image, i), expected[i]);
    tutti_tensor_release(image);
}

/* As TensorFlow and Pillow read them. */
TUTTI_TEST(png_values_are_those_of_the_file)
{
    static const uint8_t colours[] = {10, 100, 200, 0, 255, 0}, greys[] = {84, 150},
                         opaque[] = {10, 100, 200, 255, 0, 255, 0, 255};
    check_pixels(sixteen_bits, sizeof sixteen_bits - 1, 3, colours);
    check_pixels(sixteen_bits, sizeof sixteen_bits - 1, 1, greys);
    check_pixels(sixteen_bits, sizeof sixteen_bits - 1, 4, opaque);
    check_pixels(with_gamma, sizeof with_gamma - 1, 3, colours);
    check_pixels(with_gamma, sizeof with_gamma - 1, 1, greys);
    tutti_tensor *image;
    CHECK_STATUS(tutti__image_decode("cut", sixteen_bits, sizeof sixteen_bits - 14, 0, 0, &image),
                 TUTTI_CORRUPT);
}

TUTTI_TEST(jpeg_inks_become_colours)
{
    static const uint8_t colours[] = {0, 153, 122, 0, 153, 122}, greys[] = {104, 104};
    check_pixels(inks, sizeof inks - 1, 3, colours);
    check_pixels(inks, sizeof inks - 1, 1, greys);
    tutti_tensor *image = decode(inks, sizeof inks - 1, 0);
    CHECK_INT(tutti_tensor_dims(image)[2], 3);
    tutti_tensor_release(image);
}
