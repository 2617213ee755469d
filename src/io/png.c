/* png.c: PNG through libpng. Values come as the file stores them, as other readers give them: 16
 * bits lose their lower half, alpha that was not asked for is dropped, not blended with a
 * background, and no gamma is applied. (libpng's simplified reader would take 16 bits for linear
 * light.) */
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* What is being decoded. libpng leaves by longjmp to `out`, with the reason in `message`; so
 * everything that must be given back stands here. */
typedef struct reader {
    jmp_buf out;
    char message[128];
    const uint8_t *at, *end;
    png_structp png;
    png_infop info;
    uint8_t *pixels; /* [height, width, found] */
    png_bytepp rows;
    int found; /* channels that libpng gives */
    bool no_memory;
    bool alpha, colour;
} reader;

static void on_error(png_structp png, png_const_charp message)
{
    reader *r = png_get_error_ptr(png);
    snprintf(r->message, sizeof r->message, "%s", message);
    longjmp(r->out, 1);
}

static png_voidp take_memory(png_structp png, png_alloc_size_t size)
{
    reader *r = png_get_mem_ptr(png);
    void *memory = malloc(size);
    r->no_memory = r->no_memory || !memory;
    return memory;
}

static void give_memory(png_structp png, png_voidp memory)
{
    (void)png;
    free(memory);
}

static tutti_status fail_decoding(const char *name, const reader *r)
{
    return r->no_memory ? tutti_fail(TUTTI_NO_MEMORY, "%s: no memory to decode PNG", name)
                        : tutti_fail(TUTTI_CORRUPT, "%s: PNG: %s", name, r->message);
}

static void on_warning(png_structp png, png_const_charp message)
{
    (void)png, (void)message;
}

static void read_bytes(png_structp png, png_bytep to, size_t size)
{
    reader *r = png_get_io_ptr(png);
    if (size > (size_t)(r->end - r->at))
        png_error(png, "it ends too early");
    memcpy(to, r->at, size);
    r->at += size;
}

/* Asks for 8 bits a channel, without palette. */
static bool read_header(reader *r)
{
    if (setjmp(r->out) != 0)
        return false;
    png_set_read_fn(r->png, r, read_bytes);
    png_read_info(r->png, r->info);
    int kind = png_get_color_type(r->png, r->info);
    r->alpha =
        (kind & PNG_COLOR_MASK_ALPHA) != 0 || png_get_valid(r->png, r->info, PNG_INFO_tRNS) != 0;
    r->colour = (kind & PNG_COLOR_MASK_COLOR) != 0;
    png_set_expand(r->png);
    png_set_strip_16(r->png);
    png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    r->found = png_get_channels(r->png, r->info);
    return true;
}

/* All rows; what follows them is read too, so that a cut file is noticed. */
static bool read_pixels(reader *r)
{
    if (setjmp(r->out) != 0)
        return false;
    png_read_image(r->png, r->rows);
    png_read_end(r->png, NULL);
    return true;
}

static tutti_status take_rows(const char *name, reader *r)
{
    size_t height = png_get_image_height(r->png, r->info);
    size_t width = (size_t)png_get_image_width(r->png, r->info) * (size_t)r->found;
    r->pixels = malloc(height * width);
    r->rows = calloc(height, sizeof *r->rows);
    if (!r->pixels || !r->rows)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for its pixels", name);
    for (size_t i = 0; i < height; i++)
        r->rows[i] = r->pixels + i * width;
    return read_pixels(r) ? TUTTI_OK : fail_decoding(name, r);
}

/* Pixels of `found` channels (grey; grey, alpha; colours; colours, alpha) as `channels`. */
static void png_convert(uint8_t *to, int channels, const uint8_t *from, int found, int64_t pixels)
{
    bool coloured = found > 2, alpha = found % 2 == 0;
    for (int64_t i = 0; i < pixels; i++, to += channels, from += found) {
        if (channels == 1)
            to[0] = coloured ? tutti__image_grey(from) : from[0];
        else
            for (int c = 0; c < 3; c++)
                to[c] = from[coloured ? c : 0];
        if (channels == 4)
            to[3] = alpha ? from[found - 1] : 255;
    }
}

static tutti_status decode_with(reader *r, const char *name, size_t size, int channels,
                                int64_t most_pixels, tutti_tensor **ret_image)
{
    if (!read_header(r))
        return fail_decoding(name, r);
    int64_t height = png_get_image_height(r->png, r->info);
    int64_t width = png_get_image_width(r->png, r->info);
    if (channels == 0)
        channels = r->alpha ? 4 : r->colour ? 3 : 1;
    tutti_tensor *image;
    TUTTI_TRY(tutti__image_create(name, size, PIXELS_OF_A_BYTE, height, width, channels,
                                  most_pixels, &image));
    tutti_status status = take_rows(name, r);
    if (status == TUTTI_OK) {
        png_convert(tutti_tensor_data(image), channels, r->pixels, r->found, height * width);
        *ret_image = image;
    } else {
        tutti_tensor_release(image);
    }
    return status;
}

static tutti_status decode_png(const char *name, const uint8_t *data, size_t size, int channels,
                               int64_t most_pixels, tutti_tensor **ret_image)
{
    reader *r = calloc(1, sizeof *r);
    if (r) {
        r->at = data;
        r->end = data + size;
        r->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, r, on_error, on_warning, r,
                                          take_memory, give_memory);
        r->info = r->png ? png_create_info_struct(r->png) : NULL;
    }
    tutti_status status = r && r->info
                              ? decode_with(r, name, size, channels, most_pixels, ret_image)
                              : tutti_fail(TUTTI_NO_MEMORY, "%s: no memory to decode PNG", name);
    if (r) {
        png_destroy_read_struct(&r->png, &r->info, NULL);
        free(r->pixels);
        free(r->rows);
    }
    free(r);
    return status;
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
    bool no_memory = text->failed || (!written && strstr(png.message, "memory"));
    tutti_status status = no_memory ? tutti_fail(TUTTI_NO_MEMORY, "no memory for a PNG")
                          : !written
                              ? tutti_fail(TUTTI_INTERNAL, "cannot encode PNG: %s", png.message)
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
