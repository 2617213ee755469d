/* data.c: files that datasets are read from: CIFAR's binary form, CSV, TFRecord, images, texts. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/viewer.h"
#include "io/cifar.h"
#include "io/csv.h"
#include "io/example.h"
#include "io/json.h"
#include "io/tfrecord.h"

static bool is_gzip(const tutti_glance *glance)
{
    return glance->head_size > 2 && glance->head[0] == 0x1f && glance->head[1] == 0x8b;
}

/* Does the name end so, also before ".gz"? */
static bool is_named(const tutti_glance *glance, const char *ending)
{
    char packed[32];
    snprintf(packed, sizeof packed, "%s.gz", ending);
    return tutti__ends_with(glance->path, ending) || tutti__ends_with(glance->path, packed);
}

static void show_count(const char *name, int64_t count, bool json)
{
    if (json)
        printf("{\"%s\":%" PRId64 "}\n", name, count);
    else
        printf("  %s: %" PRId64 "\n", name, count);
}

/* ---- CIFAR ---- */

enum { CIFAR100_RECORD = TUTTI_CIFAR_RECORD + 1 };

static int recognise_cifar(const tutti_glance *glance)
{
    return is_named(glance, ".bin") && glance->size > 0 &&
                   (glance->size % TUTTI_CIFAR_RECORD == 0 || glance->size % CIFAR100_RECORD == 0)
               ? 1
               : 0;
}

/* Labels at `at` of each record; false where one is not below `classes`. */
static tutti_status count_labels(const tutti_glance *glance, int64_t record, int64_t at,
                                 int classes, int64_t *counts, bool *ret_fits)
{
    tutti_source *source;
    TUTTI_TRY(tutti__source_file(glance->path, &source));
    tutti_status status = TUTTI_OK;
    *ret_fits = glance->size % record == 0;
    memset(counts, 0, (size_t)classes * sizeof *counts);
    for (; status == TUTTI_OK && *ret_fits && at < glance->size; at += record) {
        uint8_t label;
        status = tutti__source_read(source, at, &label, 1, "a label");
        *ret_fits = status == TUTTI_OK && label < classes;
        if (*ret_fits)
            counts[label]++;
    }
    tutti__source_close(source);
    return status;
}

static tutti_status show_cifar(const tutti_glance *glance, bool json)
{
    int64_t counts[100], record = TUTTI_CIFAR_RECORD;
    int classes = 10;
    bool fits;
    TUTTI_TRY(count_labels(glance, record, 0, classes, counts, &fits));
    if (!fits) {
        classes = 100;
        record = CIFAR100_RECORD;
        TUTTI_TRY(count_labels(glance, record, 1, classes, counts, &fits));
    }
    if (!fits)
        return tutti_fail(TUTTI_CORRUPT,
                          "%s is named and sized like CIFAR's binary form, but its labels are not "
                          "below 10, nor below 100 as CIFAR-100's",
                          glance->path);
    if (json) {
        printf("{\"images\":%" PRId64 ",\"classes\":%d}\n", glance->size / record, classes);
        return TUTTI_OK;
    }
    printf("  %" PRId64 " images of 32 x 32 x 3 in %d classes%s\n  of each class:",
           glance->size / record, classes,
           classes == 100 ? " (CIFAR-100's form, which no dataset here reads)" : "");
    for (int i = 0; i < classes; i++)
        printf(" %" PRId64, counts[i]);
    printf("\n");
    return TUTTI_OK;
}

/* ---- CSV ---- */

static int recognise_csv(const tutti_glance *glance)
{
    return is_named(glance, ".csv") || is_named(glance, ".tsv") ? 2 : 0;
}

static tutti_status show_csv(const tutti_glance *glance, bool json)
{
    tutti_source *source;
    tutti_csv csv;
    tutti_dtype *types = NULL;
    int64_t rows = 0;
    const tutti_csv_options options = {.delimiter = is_named(glance, ".tsv") ? '\t' : ','};
    TUTTI_TRY(tutti__source_file_unpacked(glance->path, &source));
    TUTTI_TRY(tutti__csv_open(source, &options, &csv));
    tutti_status status = tutti__csv_types(&csv, &types, &rows);
    if (status == TUTTI_OK)
        show_count("rows", rows, json);
    for (size_t i = 0; status == TUTTI_OK && i < csv.count; i++) {
        const tutti_type type = {.dtype = types[i], .rank = 1, .dims = {rows}};
        tutti__show_tensor(csv.names[i], &type, rows * (int64_t)tutti_dtype_size(types[i]), json);
    }
    free(types);
    tutti__csv_close(&csv);
    return status;
}

/* ---- TFRecord ---- */

/* A size that its checksum confirms; packed files by their name. */
static int recognise_tfrecord(const tutti_glance *glance)
{
    tutti_source *source;
    tutti_tfrecord reader;
    const uint8_t *data;
    size_t size;
    bool named = strstr(glance->path, "tfrecord") != NULL;
    if (!named && (is_gzip(glance) || glance->head_size < 16))
        return 0;
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    tutti_status status = tutti__source_file(glance->path, &source);
    if (status == TUTTI_OK)
        status = tutti__tfrecord_open(source, 0, &reader);
    if (status == TUTTI_OK) {
        status = tutti__tfrecord_next(&reader, &data, &size);
        tutti__tfrecord_close(&reader);
    }
    tutti__error_restore(&before);
    return status == TUTTI_OK ? 3 : named ? 1 : 0;
}

/* The features of the first record, when it is an Example. */
static void show_example(const uint8_t *data, size_t size, bool json)
{
    tutti_named_tensors features = {0};
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    if (tutti__example_parse("the first record", data, size, &features) != TUTTI_OK)
        tutti__error_restore(&before);
    if (!json && features.count > 0)
        printf("  tf.train.Examples; the first has:\n");
    for (size_t i = 0; i < features.count; i++) {
        const tutti_type *type = tutti_tensor_type(features.items[i].tensor);
        tutti__show_tensor(features.items[i].name, type,
                           tutti_tensor_count(features.items[i].tensor) *
                               (int64_t)tutti_dtype_size(type->dtype),
                           json);
    }
    tutti_named_tensors_clear(&features);
}

static tutti_status show_tfrecord(const tutti_glance *glance, bool json)
{
    tutti_source *source;
    tutti_tfrecord reader;
    const uint8_t *data;
    size_t size;
    int64_t count = 0, bytes = 0;
    TUTTI_TRY(tutti__source_file(glance->path, &source));
    TUTTI_TRY(tutti__tfrecord_open(source, 0, &reader));
    tutti_status status;
    while ((status = tutti__tfrecord_next(&reader, &data, &size)) == TUTTI_OK && data) {
        if (count++ == 0)
            show_example(data, size, json);
        bytes += (int64_t)size;
    }
    tutti__tfrecord_close(&reader);
    TUTTI_TRY(status);
    show_count("records", count, json);
    if (!json && count > 0)
        printf("  %" PRId64 " bytes each on average\n", bytes / count);
    return TUTTI_OK;
}

/* ---- images ---- */

static int recognise_image(const tutti_glance *glance)
{
    const uint8_t *h = glance->head;
    bool png = glance->head_size > 8 && memcmp(h, "\x89PNG\r\n\x1a\n", 8) == 0;
    bool jpeg = glance->head_size > 3 && h[0] == 0xff && h[1] == 0xd8 && h[2] == 0xff;
    return png || jpeg ? 3 : 0;
}

static tutti_status show_image(const tutti_glance *glance, bool json)
{
    tutti_tensor *image;
    TUTTI_TRY(tutti_image_load(glance->path, 0, &image));
    const int64_t *dims = tutti_tensor_dims(image);
    if (json)
        printf("{\"height\":%" PRId64 ",\"width\":%" PRId64 ",\"channels\":%" PRId64 "}\n", dims[0],
               dims[1], dims[2]);
    else
        printf("  %" PRId64 " rows of %" PRId64 " pixels, %" PRId64 " channels\n", dims[0], dims[1],
               dims[2]);
    tutti_tensor_release(image);
    return TUTTI_OK;
}

/* ---- texts ---- */

static int recognise_text(const tutti_glance *glance)
{
    return is_named(glance, ".txt") ? 1 : 0;
}

static tutti_status show_text(const tutti_glance *glance, bool json)
{
    tutti_source *source;
    tutti_lines lines;
    char *text, first[61] = "";
    size_t size, longest = 0;
    int64_t count = 0;
    TUTTI_TRY(tutti__source_file_unpacked(glance->path, &source));
    tutti__lines_open(source, 0, 0, &lines);
    tutti_status status;
    while ((status = tutti__lines_next(&lines, &text, &size)) == TUTTI_OK && text) {
        if (count++ == 0)
            snprintf(first, sizeof first, "%.*s", size < 60 ? (int)size : 60, text);
        longest = size > longest ? size : longest;
    }
    tutti__lines_close(&lines);
    TUTTI_TRY(status);
    show_count("lines", count, json);
    if (json || count == 0)
        return TUTTI_OK;
    printf("  the longest has %zu bytes; the first begins with ", longest);
    tutti__print_quoted(first);
    printf("\n");
    return TUTTI_OK;
}

const tutti_viewer tutti_viewer_cifar = {
    .kind = "images in CIFAR's binary form",
    .recognise = recognise_cifar,
    .show = show_cifar,
};
const tutti_viewer tutti_viewer_csv = {
    .kind = "CSV table",
    .recognise = recognise_csv,
    .show = show_csv,
};
const tutti_viewer tutti_viewer_tfrecord = {
    .kind = "TFRecord",
    .recognise = recognise_tfrecord,
    .show = show_tfrecord,
};
const tutti_viewer tutti_viewer_image = {
    .kind = "image",
    .recognise = recognise_image,
    .show = show_image,
};
const tutti_viewer tutti_viewer_text = {
    .kind = "text",
    .recognise = recognise_text,
    .show = show_text,
};
