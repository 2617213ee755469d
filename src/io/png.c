/* png.c: PNG through libpng's simplified interface. Alpha that was not asked for is dropped, not
 * blended with a background. */
#include <png.h>
#include <stdlib.h>

#include "io/image.h"

/* One bit a pixel, packed by deflate at most 1032 to 1. */
#define PIXELS_OF_A_BYTE (8 * 1032)

static uint32_t format_for(int channels)
{
    return channels == 1   ? PNG_FORMAT_GRAY
           : channels == 2 ? PNG_FORMAT_GA
           : channels == 3 ? PNG_FORMAT_RGB
                           : PNG_FORMAT_RGBA;
}

/* Drops the last of every `channels` + 1 bytes, from the front, in place. */
static void drop_alpha(uint8_t *to, const uint8_t *from, int64_t pixels, int channels)
{
    for (int64_t i = 0; i < pixels; i++)
        for (int c = 0; c < channels; c++)
            to[i * channels + c] = from[i * (channels + 1) + c];
}

static tutti_status fail_png(const char *name, png_image *png)
{
    tutti_status status = tutti_fail(TUTTI_CORRUPT, "%s: PNG: %s", name, png->message);
    png_image_free(png);
    return status;
}

static tutti_status decode_png(const char *name, const uint8_t *data, size_t size, int channels,
                               int64_t most_pixels, tutti_tensor **ret_image)
{
    png_image png = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(&png, data, size))
        return fail_png(name, &png);
    bool alpha = (png.format & PNG_FORMAT_FLAG_ALPHA) != 0;
    if (channels == 0)
        channels = alpha ? 4 : (png.format & PNG_FORMAT_FLAG_COLOR) != 0 ? 3 : 1;
    int decoded = alpha && channels < 4 ? channels + 1 : channels;
    tutti_tensor *image;
    tutti_status status = tutti__image_create(name, size, PIXELS_OF_A_BYTE, png.height, png.width,
                                              channels, most_pixels, &image);
    if (status != TUTTI_OK) {
        png_image_free(&png);
        return status;
    }
    int64_t pixels = (int64_t)png.height * png.width;
    uint8_t *to = tutti_tensor_data(image);
    uint8_t *room = decoded != channels ? malloc((size_t)(pixels * decoded)) : to;
    png.format = format_for(decoded);
    if (room == NULL || !png_image_finish_read(&png, NULL, room, 0, NULL)) {
        tutti_tensor_release(image);
        status = room == NULL ? tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for its pixels", name)
                              : fail_png(name, &png);
        png_image_free(&png);
        if (decoded != channels)
            free(room);
        return status;
    }
    if (decoded != channels) {
        drop_alpha(to, room, pixels, channels);
        free(room);
    }
    *ret_image = image;
    return TUTTI_OK;
}

static tutti_status encode_into(tutti_tensor *image, tutti_text *text)
{
    const int64_t *dims = tutti_tensor_dims(image);
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = (png_uint_32)dims[1],
                     .height = (png_uint_32)dims[0],
                     .format = format_for((int)dims[2])};
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
    void *data = malloc(size);
    if (data == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a PNG of %zu bytes", (size_t)size);
    bool written =
        png_image_write_to_memory(&png, data, &size, 0, tutti_tensor_data(image), 0, NULL);
    if (written)
        tutti__text_bytes(text, data, size);
    free(data);
    tutti_status status = !written
                              ? tutti_fail(TUTTI_INTERNAL, "cannot encode PNG: %s", png.message)
                          : text->failed ? tutti_fail(TUTTI_NO_MEMORY, "no memory for a PNG")
                                         : TUTTI_OK;
    png_image_free(&png);
    return status;
}

tutti_status tutti__png_encode(tutti_tensor *image, tutti_text *text)
{
    tutti_tensor *ready;
    TUTTI_TRY(tutti__image_check(image, "PNG", 4, &ready));
    tutti_status status = encode_into(ready, text);
    tutti_tensor_release(ready);
    return status;
}

static const tutti_image_format format = {
    .name = "PNG", .magic = "\x89PNG\r\n\x1a\n", .magic_size = 8, .decode = decode_png};

const tutti_image_format *tutti__png(void)
{
    return &format;
}
