/* cache.c: reads its input once and keeps it in memory. (With a file: cache_file.c.)
 *
 * The store belongs to the dataset; what one iterator has read, the others find. Whoever needs the
 * element behind the last reads it from an iterator of its own over epoch 0 of the input, under the
 * store's lock. */
#include <pthread.h>
#include <stdlib.h>

#include "data/transform/cache.h"

typedef struct store {
    pthread_mutex_t mutex;
    tutti_element *elements;
    size_t count, capacity;
    bool complete;
} store;

static void cache_destroy(tutti_dataset *dataset)
{
    store *s = dataset->settings;
    for (size_t i = 0; i < s->count; i++)
        tutti_element_release(&s->elements[i]);
    free(s->elements);
    pthread_mutex_destroy(&s->mutex);
}

/* Reads one element more into the store. Under the lock. */
static tutti_status grow(tutti_dataset *dataset, tutti_iterator *filler)
{
    store *s = dataset->settings;
    tutti_element element = {0};
    int64_t skipped;
    if (filler->delivered < (int64_t)s->count)
        TUTTI_TRY(tutti__iterator_skip(filler, (int64_t)s->count - filler->delivered, &skipped));
    if (!tutti__vec_grow((void **)&s->elements, s->count, &s->capacity, sizeof *s->elements))
        return tutti_fail(TUTTI_NO_MEMORY, "cache: no memory for element %zu", s->count);
    TUTTI_TRY(tutti__iterator_next(filler, &element));
    if (element.count == 0)
        s->complete = true;
    else
        s->elements[s->count++] = element;
    return TUTTI_OK;
}

/* Element `index`, or none behind the last. *filler is opened when it is needed. */
static tutti_status serve(const tutti_dataset *dataset, tutti_iterator **filler,
                          const atomic_bool *cancel, int64_t index, tutti_element *ret)
{
    store *s = dataset->settings;
    tutti_status status = TUTTI_OK;
    pthread_mutex_lock(&s->mutex);
    while (status == TUTTI_OK && index >= (int64_t)s->count && !s->complete) {
        if (!*filler)
            status = tutti__iterator_open(dataset->inputs[0], 0, cancel, filler);
        if (status == TUTTI_OK)
            status = grow((tutti_dataset *)(uintptr_t)dataset, *filler);
    }
    if (status == TUTTI_OK && index < (int64_t)s->count)
        *ret = tutti__element_share(&s->elements[index]);
    pthread_mutex_unlock(&s->mutex);
    return status;
}

static tutti_status cache_next(tutti_iterator *iterator, tutti_element *ret)
{
    return serve(iterator->dataset, &iterator->inputs[0], iterator->cancel, iterator->delivered,
                 ret);
}

/* What is stored is passed over; the rest is read. */
static tutti_status cache_skip(tutti_iterator *iterator, int64_t count, int64_t *ret_skipped)
{
    int64_t done = 0;
    for (; done < count; done++) {
        tutti_element element = {0};
        TUTTI_TRY(serve(iterator->dataset, &iterator->inputs[0], iterator->cancel,
                        iterator->delivered + done, &element));
        if (element.count == 0)
            break;
        tutti_element_release(&element);
    }
    *ret_skipped = done;
    return TUTTI_OK;
}

static tutti_status at(tutti_access *access, uint64_t epoch, int64_t index, tutti_element *ret)
{
    tutti_element element = {0};
    TUTTI_TRY(serve(access->dataset, access->state, access->cancel, index, &element));
    if (element.count == 0)
        return tutti_fail(TUTTI_OUT_OF_RANGE, "cache: the input ended before its element %lld",
                          (long long)index);
    *ret = element;
    return TUTTI_OK;
}

static void leave(tutti_access *access)
{
    tutti__iterator_close(*(tutti_iterator **)access->state);
}

extern const tutti_dataset_def tutti_dataset_def_cache;

tutti_dataset *tutti_cache_with(tutti_dataset *input, const tutti_cache_options *options)
{
    if (input && input->info.cardinality == TUTTI_ENDLESS)
        return tutti__dataset_wrong(input->job, &tutti_dataset_def_cache,
                                    "endless data cannot be kept; cache before tutti_repeat");
    if (options && options->file)
        return tutti__cache_file(input, options->file);
    tutti_dataset *dataset = tutti__dataset_create(&tutti_dataset_def_cache, NULL, 1, &input);
    if (!dataset)
        return NULL;
    pthread_mutex_init(&((store *)dataset->settings)->mutex, NULL);
    dataset->info.cardinality = input->info.cardinality;
    dataset->info.reorders = false;
    tutti__dataset_set_access(dataset, TUTTI_ACCESS_ELEMENTS);
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_cache = {
    .name = "cache",
    .doc = "the input, read once and kept",
    .settings_size = sizeof(store),
    .access_size = sizeof(tutti_iterator *),
    .destroy = cache_destroy,
    .next = cache_next,
    .skip = cache_skip,
    .opens_inputs = true,
    .at = at,
    .leave = leave,
};
