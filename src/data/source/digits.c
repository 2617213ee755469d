/* digits.c: drawn digits by name, drawn once in a process. */
#include "data/digits.h"

#include <pthread.h>

#include "base/pool.h"
#include "data/source/images.h"

#define PIXELS (TUTTI_DIGIT_SIDE * TUTTI_DIGIT_SIDE)
#define PIECE 250
#define TRAIN_COUNT 60000
#define TEST_COUNT 10000

typedef struct drawing {
    uint64_t first;
    int64_t count;
    uint8_t *pixels, *labels;
} drawing;

static void draw_piece(void *context, int64_t piece)
{
    drawing *d = context;
    float image[PIXELS];
    for (int64_t i = piece * PIECE; i < (piece + 1) * PIECE && i < d->count; i++) {
        d->labels[i] = (uint8_t)tutti__digit_draw(TUTTI_DIGIT_SEED, d->first + (uint64_t)i, image);
        for (int p = 0; p < PIXELS; p++)
            d->pixels[i * PIXELS + p] = (uint8_t)(image[p] * 255 + 0.5f);
    }
}

static tutti_status digits_draw(bool train, tutti_tensor **ret_images, tutti_tensor **ret_labels)
{
    int64_t count = train ? TRAIN_COUNT : TEST_COUNT;
    tutti_tensor *images, *labels;
    tutti_pool *pool;
    TUTTI_TRY(tutti__images_create(count, TUTTI_DIGIT_SIDE, TUTTI_DIGIT_SIDE, 1, &images, &labels));
    tutti_status status = tutti__pool_create(tutti__cpu_count(), -1, &pool);
    if (status != TUTTI_OK) {
        tutti_tensor_release(images);
        tutti_tensor_release(labels);
        return status;
    }
    drawing d = {train ? 0 : TRAIN_COUNT, count, tutti_tensor_data(images),
                 tutti_tensor_data(labels)};
    tutti__pool_run(pool, (count + PIECE - 1) / PIECE, draw_piece, &d);
    tutti__pool_destroy(pool);
    *ret_images = images;
    *ret_labels = labels;
    return TUTTI_OK;
}

tutti_status tutti__digits_split(bool train, tutti_tensor **ret_images, tutti_tensor **ret_labels)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static tutti_tensor *kept_images[2], *kept_labels[2];
    tutti_status status = TUTTI_OK;
    pthread_mutex_lock(&mutex);
    if (!kept_images[train])
        status = digits_draw(train, &kept_images[train], &kept_labels[train]);
    if (status == TUTTI_OK) {
        *ret_images = tutti_tensor_retain(kept_images[train]);
        *ret_labels = tutti_tensor_retain(kept_labels[train]);
    }
    pthread_mutex_unlock(&mutex);
    return status;
}

extern const tutti_dataset_def tutti_dataset_def_digits;

static tutti_dataset *digits_open(tutti_job *job, const char *split)
{
    bool train;
    tutti_tensor *images, *labels;
    if (!tutti__job_able(job) ||
        !tutti__split_is_train(job, &tutti_dataset_def_digits, split, &train))
        return NULL;
    tutti_status status = tutti__digits_split(train, &images, &labels);
    if (status != TUTTI_OK)
        return tutti__dataset_fail(job, &tutti_dataset_def_digits, status);
    return tutti__images_dataset(job, &tutti_dataset_def_digits, images, labels, 10);
}

const tutti_dataset_def tutti_dataset_def_digits = {
    .name = "digits",
    .doc = "digits drawn from strokes",
    .settings_size = TUTTI_ROWS_SETTINGS,
    .destroy = tutti__rows_destroy,
    .at = tutti__rows_at,
    .gather = tutti__rows_gather,
};

const tutti_dataset_kind tutti_dataset_kind_digits = {
    .name = "digits",
    .doc = "28x28 digits drawn from strokes, bent and noisy; needs no file",
    .splits = {{"train", TRAIN_COUNT}, {"test", TEST_COUNT}},
    .classes = 10,
    .open = digits_open,
};
