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
