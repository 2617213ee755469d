/* images.c: bytes in memory as images and labels. */
#include "data/source/images.h"

#include <string.h>

tutti_status tutti__images_create(int64_t count, int64_t height, int64_t width, int64_t channels,
                                  tutti_tensor **ret_images, tutti_tensor **ret_labels)
{
    tutti_tensor *images, *labels;
    int64_t dims[] = {count, height, width, channels};
    TUTTI_TRY(tutti_tensor_create(TUTTI_U8, 4, dims, &images));
    tutti_status status = tutti_tensor_create(TUTTI_U8, 1, dims, &labels);
    if (status != TUTTI_OK) {
        tutti_tensor_release(images);
        return status;
    }
    *ret_images = images;
    *ret_labels = labels;
    return TUTTI_OK;
}

tutti_dataset *tutti__images_dataset(tutti_job *job, const tutti_dataset_def *def,
                                     tutti_tensor *images, tutti_tensor *labels, int64_t classes)
{
    bool bytes = labels && tutti_tensor_dtype(labels) == TUTTI_U8;
    const tutti_reading readings[] = {TUTTI_READ_UNIT, bytes ? TUTTI_READ_CLASS : TUTTI_READ_AS_IS};
    tutti_type types[2] = {*tutti_tensor_type(images), tutti_type_make(TUTTI_I64, 0, NULL)};
    types[0].dtype = TUTTI_F32;
    memmove(types[0].dims, types[0].dims + 1, 3 * sizeof types[0].dims[0]);
    if (types[0].rank == 3)
        types[0].dims[2] = 1;
    types[0].rank = 3;
    tutti_tensor *both[] = {images, labels};
    tutti_dataset *dataset = tutti__rows_dataset(job, def, labels ? 2 : 1, both, readings, types);
    if (dataset)
        dataset->info.classes = classes;
    tutti_tensor_release(images);
    tutti_tensor_release(labels);
    return dataset;
}

bool tutti__split_is_train(tutti_job *job, const tutti_dataset_def *def, const char *split,
                           bool *ret_train)
{
    *ret_train = split && strcmp(split, "train") == 0;
    if (*ret_train || (split && strcmp(split, "test") == 0))
        return true;
    tutti__dataset_wrong(job, def, "the splits are \"train\" and \"test\", not \"%s\"",
                         split ? split : "(null)");
    return false;
}
