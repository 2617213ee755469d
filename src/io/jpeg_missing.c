/* jpeg_missing.c: stands in for jpeg.c where libjpeg-turbo was missing when Tutti was built. */
#include "io/image.h"

static tutti_status fail_missing(const char *name)
{
    return tutti_fail(
        TUTTI_UNSUPPORTED,
        "%s: Tutti was built without JPEG; install libturbojpeg0-dev and build it again", name);
}

static tutti_status decode_jpeg(const char *name, const uint8_t *data, size_t size, int channels,
                                int64_t most_pixels, tutti_tensor **ret_image)
{
    TUTTI_UNUSED(data), TUTTI_UNUSED(size), TUTTI_UNUSED(channels), TUTTI_UNUSED(most_pixels);
    TUTTI_UNUSED(ret_image);
    return fail_missing(name);
}

tutti_status tutti__jpeg_encode(tutti_tensor *image, int quality, tutti_text *text)
{
    TUTTI_UNUSED(image), TUTTI_UNUSED(quality), TUTTI_UNUSED(text);
    return fail_missing("an image");
}

static const tutti_image_format format = {
    .name = "JPEG", .magic = "\xff\xd8\xff", .magic_size = 3, .decode = decode_jpeg};

const tutti_image_format *tutti__jpeg(void)
{
    return &format;
}
