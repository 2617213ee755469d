/* jpeg.c: JPEG through libjpeg-turbo. */
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

#include "io/image.h"

#ifndef TJFLAG_LIMITSCANS /* came with 2.1 */
#define TJFLAG_LIMITSCANS 0
#endif

/* A flat block of 8 x 8 takes at least a bit for each component. */
#define PIXELS_OF_A_BYTE 2048

/* libjpeg tells it by its words only. */
static bool lacks_memory(tjhandle jpeg)
{
    return strstr(tjGetErrorStr2(jpeg), "nsufficient memory") != NULL ||
           strstr(tjGetErrorStr2(jpeg), "emory allocation failure") != NULL;
}

static tutti_status fail_jpeg(const char *name, tjhandle jpeg)
{
    if (lacks_memory(jpeg))
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory to decode JPEG", name);
    return tutti_fail(TUTTI_CORRUPT, "%s: JPEG: %s", name, tjGetErrorStr2(jpeg));
}

/* Odd bytes between markers are only warned of and harm nothing; a missing end does. An error
 * behind a warning has the code of a warning, and pixels that were not written: what harms nothing
 * is known by its words, which are those of the first warning, or of the error. */
static bool is_fatal(tjhandle jpeg)
{
    static const char *const harmless[] = {
        "Corrupt JPEG data:", "Unknown Adobe color transform", "Warning: unknown JFIF revision",
        "Inconsistent progression sequence", "Invalid SOS parameters for sequential"};
    const char *text = tjGetErrorStr2(jpeg);
    if (tjGetErrorCode(jpeg) != TJERR_WARNING || strstr(text, "remature end") != NULL)
        return true;
    for (size_t i = 0; i < TUTTI_COUNT(harmless); i++)
        if (strncmp(text, harmless[i], strlen(harmless[i])) == 0)
            return false;
    return true;
}

/* Whether a segment APP14 "Adobe" stands before the picture: such files store 255 minus the ink. */
static bool is_adobe(const uint8_t *data, size_t size)
{
    for (size_t at = 2; at + 9 < size && data[at] == 0xff && data[at + 1] != 0xda;) {
        if (data[at + 1] == 0xee && memcmp(data + at + 4, "Adobe", 5) == 0)
            return true;
        at += 2 + ((size_t)data[at + 2] << 8) + data[at + 3];
    }
    return false;
}

/* Inks to light: red = (255 - cyan) (255 - black) / 255, and so on. */
static void from_inks(const uint8_t *inks, bool inverted, int64_t pixels, int channels, uint8_t *to)
{
    for (int64_t i = 0; i < pixels; i++, inks += 4, to += channels) {
        uint8_t rgb[3];
        int black = inverted ? inks[3] : 255 - inks[3];
        for (int c = 0; c < 3; c++)
            rgb[c] = (uint8_t)(((inverted ? inks[c] : 255 - inks[c]) * black + 127) / 255);
        if (channels == 1)
            to[0] = tutti__image_grey(rgb);
        else
            memcpy(to, rgb, 3);
    }
}

/* Decodes into `image`, by way of inks where the file has those. */
static tutti_status decode_into(tjhandle jpeg, const char *name, const uint8_t *data, size_t size,
                                bool inks, tutti_tensor *image)
{
    const int64_t *dims = tutti_tensor_dims(image);
    int width = (int)dims[1], height = (int)dims[0], channels = (int)dims[2];
    uint8_t *to = tutti_tensor_data(image);
    uint8_t *room = inks ? malloc((size_t)(dims[0] * dims[1] * 4)) : to;
    if (room == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for its pixels", name);
    bool good = tjDecompress2(jpeg, data, size, room, width, 0, height,
                              inks            ? TJPF_CMYK
                              : channels == 1 ? TJPF_GRAY
                                              : TJPF_RGB,
                              TJFLAG_LIMITSCANS) == 0 ||
                !is_fatal(jpeg);
    if (inks && good)
        from_inks(room, is_adobe(data, size), dims[0] * dims[1], channels, to);
    if (inks)
        free(room);
    return good ? TUTTI_OK : fail_jpeg(name, jpeg);
}

static tutti_status decode_with(tjhandle jpeg, const char *name, const uint8_t *data, size_t size,
                                int channels, int64_t most_pixels, tutti_tensor **ret_image)
{
    int width = 0, height = 0, subsampling, space = 0; /* untouched where there are only tables */
    if (tjDecompressHeader3(jpeg, data, size, &width, &height, &subsampling, &space) != 0)
        return fail_jpeg(name, jpeg);
    if (width < 1 || height < 1)
        return tutti_fail(TUTTI_CORRUPT, "%s: JPEG: no picture, only tables", name);
    if (channels == 4)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "%s: JPEG gives grey or red, green, blue; not 4 channels", name);
    channels = channels != 0 ? channels : space == TJCS_GRAY ? 1 : 3;
    tutti_tensor *image;
    TUTTI_TRY(tutti__image_create(name, size, PIXELS_OF_A_BYTE, height, width, channels,
                                  most_pixels, &image));
    bool inks = space == TJCS_CMYK || space == TJCS_YCCK;
    tutti_status status = decode_into(jpeg, name, data, size, inks, image);
    if (status != TUTTI_OK) {
        tutti_tensor_release(image);
        return status;
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
        return lacks_memory(jpeg)
                   ? tutti_fail(TUTTI_NO_MEMORY, "no memory for a JPEG")
                   : tutti_fail(TUTTI_INTERNAL, "cannot encode JPEG: %s", tjGetErrorStr2(jpeg));
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
