/* idx.c: images and labels from IDX files. */
#include "data/source/images.h"
#include "tutti/data.h"

extern const tutti_dataset_def tutti_dataset_def_idx;

/* u8 images of rank 3 or 4, u8 labels of rank 1, as many. */
static tutti_status check(const char *path, const tutti_tensor *images, const tutti_tensor *labels)
{
    char text[TUTTI_TYPE_TEXT];
    int rank = tutti_tensor_rank(images);
    if (tutti_tensor_dtype(images) != TUTTI_U8 || rank < 3 || rank > 4)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "%s holds %s, needs u8[images,height,width] or "
                          "u8[images,height,width,channels]; tutti_idx_read reads any",
                          path, tutti_type_text(tutti_tensor_type(images), text));
    if (labels && (tutti_tensor_dtype(labels) != TUTTI_U8 || tutti_tensor_rank(labels) != 1))
        return tutti_fail(TUTTI_UNSUPPORTED, "the labels of %s are %s, needs u8[images]", path,
                          tutti_type_text(tutti_tensor_type(labels), text));
    return TUTTI_OK;
}

static int64_t count_classes(const tutti_tensor *labels)
{
    const uint8_t *data = labels ? tutti_tensor_data(labels) : NULL;
    int64_t most = -1;
    for (int64_t i = 0; labels && i < tutti_tensor_count(labels); i++)
        most = data[i] > most ? data[i] : most;
    return most + 1;
}

tutti_dataset *tutti_dataset_idx(tutti_job *job, const char *images_path, const char *labels_path)
{
    const tutti_dataset_def *def = &tutti_dataset_def_idx;
    tutti_tensor *images = NULL, *labels = NULL;
    if (!tutti__job_able(job))
        return NULL;
    tutti_status status = tutti_idx_read(images_path, &images);
    if (status == TUTTI_OK && labels_path)
        status = tutti_idx_read(labels_path, &labels);
    if (status == TUTTI_OK)
        status = check(images_path, images, labels);
    if (status != TUTTI_OK) {
        tutti_tensor_release(images);
        tutti_tensor_release(labels);
        return tutti__dataset_fail(job, def, status);
    }
    return tutti__images_dataset(job, def, images, labels, count_classes(labels));
}

const tutti_dataset_def tutti_dataset_def_idx = {
    .name = "idx",
    .doc = "images and labels from IDX files",
    .settings_size = TUTTI_ROWS_SETTINGS,
    .destroy = tutti__rows_destroy,
    .at = tutti__rows_at,
    .gather = tutti__rows_gather,
};
