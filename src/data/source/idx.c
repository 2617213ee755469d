/* idx.c: images and labels from IDX files. */
#include <string.h>

#include "data/source/images.h"
#include "tutti/data.h"

extern const tutti_dataset_def tutti_dataset_def_idx;

/* Rows of numbers, and as many whole numbers as labels. */
static tutti_status idx_check(const char *path, const tutti_tensor *images,
                              const tutti_tensor *labels)
{
    char text[TUTTI_TYPE_TEXT];
    if (tutti_tensor_rank(images) < 1)
        return tutti_fail(TUTTI_UNSUPPORTED, "%s holds %s, needs rows [n,…]", path,
                          tutti_type_text(tutti_tensor_type(images), text));
    if (labels &&
        (!tutti_dtype_is_int(tutti_tensor_dtype(labels)) || tutti_tensor_rank(labels) != 1))
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "the labels of %s are %s, needs one whole number for each row", path,
                          tutti_type_text(tutti_tensor_type(labels), text));
    return TUTTI_OK;
}

static int64_t count_classes(const tutti_tensor *labels)
{
    int64_t most = -1;
    for (int64_t i = 0; labels && i < tutti_tensor_count(labels); i++) {
        int64_t label = tutti_tensor_get_int(labels, i);
        most = label > most ? label : most;
    }
    return most + 1;
}

/* Takes the reference of *tensor and puts another type in its place. */
static tutti_status idx_convert(tutti_tensor **tensor, tutti_dtype dtype)
{
    tutti_tensor *made;
    if (!*tensor || tutti_tensor_dtype(*tensor) == dtype)
        return TUTTI_OK;
    TUTTI_TRY(tutti_tensor_cast(*tensor, dtype, &made));
    tutti_tensor_release(*tensor);
    *tensor = made;
    return TUTTI_OK;
}

static tutti_status read_numbers(tutti_tensor **tensor, bool bytes)
{
    TUTTI_TRY(idx_convert(tensor, TUTTI_F32));
    float *data = tutti_tensor_data(*tensor);
    for (int64_t i = 0; bytes && i < tutti_tensor_count(*tensor); i++)
        data[i] /= 255;
    return TUTTI_OK;
}

/* Rows that are no byte images: f32 as they are, with a channel axis behind [height,width]. */
static tutti_dataset *plain_rows(tutti_job *job, tutti_tensor *rows, tutti_tensor *labels)
{
    static const tutti_reading readings[] = {TUTTI_READ_AS_IS, TUTTI_READ_AS_IS};
    tutti_type types[2] = {*tutti_tensor_type(rows), tutti_type_make(TUTTI_I64, 0, NULL)};
    types[0].rank--;
    memmove(types[0].dims, types[0].dims + 1, (size_t)types[0].rank * sizeof types[0].dims[0]);
    if (types[0].rank == 2)
        types[0].dims[types[0].rank++] = 1;
    tutti_tensor *both[] = {rows, labels};
    return tutti__rows_dataset(job, &tutti_dataset_def_idx, labels ? 2 : 1, both, readings, types);
}

tutti_dataset *(tutti_idx)(tutti_job *job, const char *images_path, const char *labels_path)
{
    const tutti_dataset_def *def = &tutti_dataset_def_idx;
    tutti_tensor *images = NULL, *labels = NULL;
    if (!tutti__job_able(job))
        return NULL;
    tutti_status status = tutti_idx_load(images_path, &images);
    if (status == TUTTI_OK && labels_path)
        status = tutti_idx_load(labels_path, &labels);
    if (status == TUTTI_OK)
        status = idx_check(images_path, images, labels);
    int rank = status == TUTTI_OK ? tutti_tensor_rank(images) : 0;
    bool bytes = status == TUTTI_OK && tutti_tensor_dtype(images) == TUTTI_U8;
    bool pictures = bytes && (rank == 3 || rank == 4);
    if (status == TUTTI_OK && !pictures)
        status = read_numbers(&images, bytes);
    if (status == TUTTI_OK && !(labels && tutti_tensor_dtype(labels) == TUTTI_U8 && pictures))
        status = idx_convert(&labels, TUTTI_I64);
    if (status == TUTTI_OK && pictures)
        return tutti__images_dataset(job, def, images, labels, count_classes(labels));
    tutti_dataset *dataset = status == TUTTI_OK ? plain_rows(job, images, labels)
                                                : tutti__dataset_fail(job, def, status);
    if (dataset)
        dataset->info.classes = count_classes(labels);
    tutti_tensor_release(images);
    tutti_tensor_release(labels);
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_idx = {
    .name = "idx",
    .doc = "images and labels from IDX files",
    .settings_size = TUTTI_ROWS_SETTINGS,
    .destroy = tutti__rows_destroy,
    .at = tutti__rows_at,
    .gather = tutti__rows_gather,
};
