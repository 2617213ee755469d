/* cifar10.c: CIFAR-10's binary files from --data, or drawn shapes in their place. */
#include <pthread.h>

#include "base/pool.h"
#include "data/shapes.h"
#include "data/source/images.h"
#include "io/cifar.h"

#define SIDE TUTTI_SHAPE_SIDE
#define IMAGE (SIDE * SIDE * 3)
#define TRAIN_COUNT 50000
#define TEST_COUNT 10000
#define SEED 20
#define PIECE 100

extern const tutti_dataset_def tutti_dataset_def_cifar10;

typedef struct drawing {
    uint64_t first;
    uint8_t *images, *labels;
} drawing;

static void draw_piece(void *context, int64_t piece)
{
    drawing *d = context;
    for (int64_t i = piece * PIECE; i < (piece + 1) * PIECE; i++)
        d->labels[i] =
            (uint8_t)tutti__shape_draw(SEED, d->first + (uint64_t)i, d->images + i * IMAGE);
}

static tutti_status draw_split(bool train, uint8_t *images, uint8_t *labels)
{
    tutti_pool *pool;
    TUTTI_TRY(tutti__pool_create(tutti__cpu_count(), -1, &pool));
    drawing d = {train ? 0 : TRAIN_COUNT, images, labels};
    tutti__pool_run(pool, (train ? TRAIN_COUNT : TEST_COUNT) / PIECE, draw_piece, &d);
    tutti__pool_destroy(pool);
    return TUTTI_OK;
}

static tutti_status make_split(bool train, tutti_tensor **ret_images, tutti_tensor **ret_labels)
{
    tutti_tensor *images, *labels;
    TUTTI_TRY(
        tutti__images_create(train ? TRAIN_COUNT : TEST_COUNT, SIDE, SIDE, 3, &images, &labels));
    tutti_status status = draw_split(train, tutti_tensor_data(images), tutti_tensor_data(labels));
    if (status != TUTTI_OK) {
        tutti_tensor_release(images);
        tutti_tensor_release(labels);
        return status;
    }
    *ret_images = images;
    *ret_labels = labels;
    return TUTTI_OK;
}

/* Drawn splits are kept for the next who asks. */
static tutti_status drawn_split(bool train, tutti_tensor **ret_images, tutti_tensor **ret_labels)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static tutti_tensor *images[2], *labels[2];
    tutti_status status = TUTTI_OK;
    pthread_mutex_lock(&mutex);
    if (!images[train])
        status = make_split(train, &images[train], &labels[train]);
    if (status == TUTTI_OK) {
        *ret_images = tutti_tensor_retain(images[train]);
        *ret_labels = tutti_tensor_retain(labels[train]);
    }
    pthread_mutex_unlock(&mutex);
    return status;
}

tutti_dataset *(tutti_cifar10)(tutti_job *job, const char *split)
{
    const tutti_dataset_def *def = &tutti_dataset_def_cifar10;
    bool train;
    tutti_tensor *images, *labels;
    if (!tutti__job_able(job) || !tutti__split_is_train(job, def, split, &train))
        return NULL;
    const char *folder = tutti_flag_text(job, "data", NULL);
    tutti_status status = folder && folder[0] ? tutti__cifar_load(folder, split, &images, &labels)
                                              : drawn_split(train, &images, &labels);
    if (status != TUTTI_OK)
        return tutti__dataset_fail(job, def, status);
    return tutti__images_dataset(job, def, images, labels, 10);
}

const tutti_dataset_def tutti_dataset_def_cifar10 = {
    .name = "cifar10",
    .doc = "CIFAR-10 from --data, or drawn shapes",
    .settings_size = TUTTI_ROWS_SETTINGS,
    .destroy = tutti__rows_destroy,
    .at = tutti__rows_at,
    .gather = tutti__rows_gather,
};

const tutti_dataset_kind tutti_dataset_kind_cifar10 = {
    .name = "cifar10",
    .doc = "colour images 32x32 of ten classes from the folder --data, or drawn shapes without it",
    .splits = {{"train", TRAIN_COUNT}, {"test", TEST_COUNT}},
    .classes = 10,
    .open = tutti_cifar10,
};
