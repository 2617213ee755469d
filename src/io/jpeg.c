/* jpeg.c: JPEG through libjpeg-turbo. */
#include <string.h>
#include <turbojpeg.h>

#include "io/image.h"

#ifndef TJFLAG_LIMITSCANS /* came with 2.1 */
#define TJFLAG_LIMITSCANS 0
#endif

/* A flat block of 8 x 8 takes at least a bit for each component. */
#define PIXELS_OF_A_BYTE 2048

static tutti_status fail_jpeg(const char *name, tjhandle jpeg)
{
    return tutti_fail(TUTTI_CORRUPT, "%s: JPEG: %s", name, tjGetErrorStr2(jpeg));
}

/* Odd bytes between markers are only warned of and harm nothing; a missing end does. */
static bool is_fatal(tjhandle jpeg)
{
    return tjGetErrorCode(jpeg) != TJERR_WARNING ||
           strstr(tjGetErrorStr2(jpeg), "remature end") != NULL;
}

static tutti_status decode_with(tjhandle jpeg, const char *name, const uint8_t *data, size_t size,
                                int channels, int64_t most_pixels, tutti_tensor **ret_image)
{
    int width, height, subsampling, space;
    if (tjDecompressHeader3(jpeg, data, size, &width, &height, &subsampling, &space) != 0)
        return fail_jpeg(name, jpeg);
    if (space == TJCS_CMYK || space == TJCS_YCCK || channels == 4)
        return tutti_fail(TUTTI_UNSUPPORTED, "%s: JPEG gives grey or red, green, blue; not %s",
                          name, channels == 4 ? "4 channels" : "CMYK; convert it first");
    channels = channels != 0 ? channels : space == TJCS_GRAY ? 1 : 3;
    tutti_tensor *image;
    TUTTI_TRY(tutti__image_create(name, size, PIXELS_OF_A_BYTE, height, width, channels,
                                  most_pixels, &image));
    if (tjDecompress2(jpeg, data, size, tutti_tensor_data(image), width, 0, height,
                      channels == 1 ? TJPF_GRAY : TJPF_RGB, TJFLAG_LIMITSCANS) != 0 &&
        is_fatal(jpeg)) {
        tutti_tensor_release(image);
        return fail_jpeg(name, jpeg);
    }
    *ret_image = image;
    return TUTTI_OK;
}

static tutti_status decode_jpeg(const char *name, const uint8_t *data, size_t size, int channels,
                                int64_t most_pixels, tutti_tensor **ret_image)
{
    tjhandle jpeg = tjInitDecompress();
    if (jpeg == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory to decode JPEG", name);
    tutti_status status = decode_with(jpeg, name, data, size, channels, most_pixels, ret_image);
    tjDestroy(jpeg);
    return status;
}

static tutti_status encode_with(tjhandle jpeg, tutti_tensor *image, int quality, tutti_text *text)
{
    const int64_t *dims = tutti_tensor_dims(image);
    unsigned char *data = NULL;
    unsigned long size = 0;
    bool grey = dims[2] == 1;
    if (tjCompress2(jpeg, tutti_tensor_data(image), (int)dims[1], 0, (int)dims[0],
                    grey ? TJPF_GRAY : TJPF_RGB, &data, &size, grey ? TJSAMP_GRAY : TJSAMP_444,
                    quality, 0) != 0)
        return tutti_fail(TUTTI_INTERNAL, "cannot encode JPEG: %s", tjGetErrorStr2(jpeg));
    tutti__text_bytes(text, data, size);
    tjFree(data);
    return text->failed ? tutti_fail(TUTTI_NO_MEMORY, "no memory for a JPEG of %lu bytes", size)
                        : TUTTI_OK;
}

tutti_status tutti__jpeg_encode(tutti_tensor *image, int quality, tutti_text *text)
{
    tutti_tensor *ready;
    TUTTI_TRY(tutti__image_check(image, "JPEG", 3, &ready));
    tjhandle jpeg = tjInitCompress();
    tutti_status status =
        jpeg == NULL ? tutti_fail(TUTTI_NO_MEMORY, "no memory to encode JPEG")
        : quality < 1 || quality > 100
            ? tutti_fail(TUTTI_INVALID, "JPEG's quality is 1 to 100, not %d", quality)
            : encode_with(jpeg, ready, quality, text);
    if (jpeg != NULL)
        tjDestroy(jpeg);
    tutti_tensor_release(ready);
    return status;
}

static const tutti_image_format format = {
    .name = "JPEG", .magic = "\xff\xd8\xff", .magic_size = 3, .decode = decode_jpeg};

const tutti_image_format *tutti__jpeg(void)
{
    return &format;
}
