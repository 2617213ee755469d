/* image.c: see image.h. */
#include "io/image.h"

#include <string.h>

static const tutti_image_format *format_of(const void *data, size_t size)
{
    const tutti_image_format *formats[] = {tutti__jpeg(), tutti__png()};
    for (size_t i = 0; i < TUTTI_COUNT(formats); i++)
        if (size >= formats[i]->magic_size &&
            memcmp(data, formats[i]->magic, formats[i]->magic_size) == 0)
            return formats[i];
    return NULL;
}

tutti_status tutti__image_decode(const char *name, const void *data, size_t size, int channels,
                                 int64_t most_pixels, tutti_tensor **ret_image)
{
    const tutti_image_format *format = format_of(data, size);
    if (format == NULL)
        return tutti_fail(TUTTI_UNSUPPORTED, "%s: it begins neither as JPEG nor as PNG", name);
    if (channels != 0 && channels != 1 && channels != 3 && channels != 4)
        return tutti_fail(
            TUTTI_INVALID,
            "%s: %d channels asked for, expected 1 (grey), 3 (colour), 4 (with alpha) "
            "or 0 (as in the file)",
            name, channels);
    return format->decode(name, data, size, channels,
                          most_pixels > 0 ? most_pixels : (int64_t)1 << 28, ret_image);
}

tutti_status tutti__image_create(const char *name, size_t size, int64_t packing, int64_t height,
                                 int64_t width, int channels, int64_t most_pixels,
                                 tutti_tensor **ret_image)
{
    int64_t pixels;
    if (height <= 0 || width <= 0 || !tutti__mul_size(height, width, &pixels) ||
        pixels > most_pixels)
        return tutti_fail(TUTTI_TOO_LARGE,
                          "%s: an image of %lld x %lld, at most %lld pixels are read", name,
                          (long long)width, (long long)height, (long long)most_pixels);
    if (pixels / packing > (int64_t)size)
        return tutti_fail(
            TUTTI_CORRUPT,
            "%s: %zu bytes cannot hold an image of %lld x %lld; the file is truncated "
            "or its header damaged",
            name, size, (long long)width, (long long)height);
    return tutti_tensor_create(TUTTI_U8, 3, (int64_t[]){height, width, channels}, ret_image);
}

uint8_t tutti__image_grey(const uint8_t *rgb)
{
    return (uint8_t)((19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768) >> 16);
}

tutti_status tutti__image_check(tutti_tensor *image, const char *format, int most_channels,
                                tutti_tensor **ret_ready)
{
    char text[TUTTI_TYPE_TEXT];
    const int64_t *dims = tutti_tensor_dims(image);
    bool good = tutti_tensor_dtype(image) == TUTTI_U8 && tutti_tensor_rank(image) == 3 &&
                dims[0] > 0 && dims[1] > 0 && dims[0] < 65536 && dims[1] < 65536 &&
                (dims[2] == 1 || dims[2] == 3 || (dims[2] == 4 && most_channels == 4));
    if (!good)
        return tutti_fail(TUTTI_INVALID,
                          "an image for %s must be u8[height, width, %s] with sides up "
                          "to 65535, not %s",
                          format, most_channels == 4 ? "1, 3 or 4" : "1 or 3",
                          tutti_type_text(tutti_tensor_type(image), text));
    tutti_tensor *host;
    TUTTI_TRY(tutti__tensor_to_host(image, &host));
    tutti_status status = tutti_tensor_contiguous(host, ret_ready);
    tutti_tensor_release(host);
    return status;
}
