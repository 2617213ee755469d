/* image.h: JPEG and PNG to and from u8[height, width, channels], through libjpeg-turbo and libpng.
 * A library that was missing at build time gives TUTTI_UNSUPPORTED and names Debian's package. */
#ifndef TUTTI_IO_IMAGE_H
#define TUTTI_IO_IMAGE_H

#include "base/container.h"
#include "tensor/tensor.h"

/* A format of images. Sizes are checked against the limit before memory is taken. */
typedef struct tutti_image_format {
    const char *name;
    const char *magic; /* the bytes every file begins with */
    size_t magic_size;
    /* channels 0 (as in the file), 1, 3 or 4. */
    tutti_status (*decode)(const char *name, const uint8_t *data, size_t size, int channels,
                           int64_t most_pixels, tutti_tensor **ret_image);
} tutti_image_format;

const tutti_image_format *tutti__jpeg(void);
const tutti_image_format *tutti__png(void);

/* By the bytes at its beginning; most_pixels 0: 2^28. */
tutti_status tutti__image_decode(const char *name, const void *data, size_t size, int channels,
                                 int64_t most_pixels, tutti_tensor **ret_image);

/* Appends the encoded image; u8[h,w,1 or 3], for PNG 4 too. Quality is 1 to 100. */
tutti_status tutti__jpeg_encode(tutti_tensor *image, int quality, tutti_text *text);
tutti_status tutti__png_encode(tutti_tensor *image, tutti_text *text);

/* For the formats: a tensor for an image that is allowed to be that large. `packing` is how many
 * pixels one byte of the format can stand for. */
tutti_status tutti__image_create(const char *name, size_t size, int64_t packing, int64_t height,
                                 int64_t width, int channels, int64_t most_pixels,
                                 tutti_tensor **ret_image);
/* The brightness of red, green, blue, by ITU-R BT.601 as JPEG has it: 0.299 R + 0.587 G + 0.114 B.
 */
uint8_t tutti__image_grey(const uint8_t *rgb);
/* What can be encoded, contiguous and on the host. */
tutti_status tutti__image_check(tutti_tensor *image, const char *format, int most_channels,
                                tutti_tensor **ret_ready);

#endif
