/* mnist.c: MNIST from --data, or drawn digits in its place. */
#include "data/mnist.h"

#include "data/digits.h"
#include "data/source/images.h"

extern const tutti_dataset_def tutti_dataset_def_mnist;

tutti_dataset *(tutti_mnist)(tutti_job *job, const char *split)
{
    bool train;
    tutti_tensor *images, *labels;
    const tutti_dataset_def *def = &tutti_dataset_def_mnist;
    if (!tutti__job_able(job) || !tutti__split_is_train(job, def, split, &train))
        return NULL;
    const char *folder = tutti_flag_text(job, "data", NULL);
    tutti_status status = folder && folder[0] ? tutti__mnist_files(folder, train, &images, &labels)
                                              : tutti__digits_split(train, &images, &labels);
    if (status != TUTTI_OK)
        return tutti__dataset_fail(job, def, status);
    return tutti__images_dataset(job, def, images, labels, 10);
}

const tutti_dataset_def tutti_dataset_def_mnist = {
    .name = "mnist",
    .doc = "MNIST from --data, or drawn digits",
    .settings_size = TUTTI_ROWS_SETTINGS,
    .destroy = tutti__rows_destroy,
    .at = tutti__rows_at,
    .gather = tutti__rows_gather,
};

const tutti_dataset_kind tutti_dataset_kind_mnist = {
    .name = "mnist",
    .doc = "handwritten digits 28x28 from the folder --data, or drawn ones without it",
    .splits = {{"train", 60000}, {"test", 10000}},
    .classes = 10,
    .open = tutti_mnist,
};
