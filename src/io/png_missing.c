/* png_missing.c: stands in for png.c where libpng was missing when Tutti was built. */
#include "io/image.h"

static tutti_status fail_missing(const char *name)
{
    return tutti_fail(TUTTI_UNSUPPORTED,
                      "%s: Tutti was built without PNG; install libpng-dev and build it again",
                      name);
}

static tutti_status decode_png(const char *name, const uint8_t *data, size_t size, int channels,
                               int64_t most_pixels, tutti_tensor **ret_image)
{
    TUTTI_UNUSED(data), TUTTI_UNUSED(size), TUTTI_UNUSED(channels), TUTTI_UNUSED(most_pixels);
    TUTTI_UNUSED(ret_image);
    return fail_missing(name);
}

tutti_status tutti__png_encode(tutti_tensor *image, tutti_text *text)
{
    TUTTI_UNUSED(image), TUTTI_UNUSED(text);
    return fail_missing("an image");
}

static const tutti_image_format format = {
    .name = "PNG", .magic = "\x89PNG\r\n\x1a\n", .magic_size = 8, .decode = decode_png};

const tutti_image_format *tutti__png(void)
{
    return &format;
}
