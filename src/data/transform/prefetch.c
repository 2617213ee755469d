/* prefetch.c: elements made ahead, on a thread of its own.
 *
 * The thread starts with the first element asked for, so that a position is found before. From then
 * on the input belongs to it. Closing sets `stop`, which the input's waits look at, and joins. */
#include <stdlib.h>

#include "data/wait.h"

typedef struct settings {
    int64_t count;
} settings;
typedef struct state {
    pthread_mutex_t mutex;
    pthread_cond_t filled, emptied;
    atomic_bool stop;
    bool made, started, over;
    tutti_error error;
    int64_t first, count; /* elements in the ring */
    tutti_element *ring;
    pthread_t thread;
} state;

static tutti_status prefetch_open(tutti_iterator *iterator)
{
    const settings *given = iterator->dataset->settings;
    state *s = iterator->state;
    s->ring = calloc((size_t)given->count, sizeof *s->ring);
    if (!s->ring)
        return tutti_fail(TUTTI_NO_MEMORY, "prefetch: no memory for %lld elements",
                          (long long)given->count);
    pthread_mutex_init(&s->mutex, NULL);
    tutti__wait_init(&s->filled);
    tutti__wait_init(&s->emptied);
    s->made = true;
    return tutti__iterator_open_input(iterator, 0, iterator->epoch, &s->stop, &iterator->inputs[0]);
}

static void *prefetch_run(void *context)
{
    tutti_iterator *iterator = context;
    int64_t capacity = ((const settings *)iterator->dataset->settings)->count;
    state *s = iterator->state;
    pthread_mutex_lock(&s->mutex);
    while (!s->over && !atomic_load(&s->stop)) {
        if (s->count == capacity) {
            pthread_cond_wait(&s->emptied, &s->mutex);
            continue;
        }
        tutti_element element = {0};
        pthread_mutex_unlock(&s->mutex);
        tutti_status status = tutti__iterator_next(iterator->inputs[0], &element);
        pthread_mutex_lock(&s->mutex);
        if (status != TUTTI_OK)
            tutti__error_capture(status, &s->error);
        s->over = status != TUTTI_OK || element.count == 0;
        if (!s->over)
            s->ring[(s->first + s->count++) % capacity] = element;
        pthread_cond_signal(&s->filled);
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

static tutti_status prefetch_next(tutti_iterator *iterator, tutti_element *ret)
{
    int64_t capacity = ((const settings *)iterator->dataset->settings)->count;
    state *s = iterator->state;
    if (!s->started && pthread_create(&s->thread, NULL, prefetch_run, iterator) != 0)
        return tutti_fail(TUTTI_NO_MEMORY, "prefetch: the system has no more threads");
    s->started = true;
    int64_t deadline = tutti__wait_deadline();
    tutti_status status = TUTTI_OK;
    pthread_mutex_lock(&s->mutex);
    while (s->count == 0 && !s->over && status == TUTTI_OK)
        status = tutti__wait(&s->filled, &s->mutex, deadline, iterator);
    if (status == TUTTI_OK && s->count > 0) {
        *ret = s->ring[s->first];
        s->first = (s->first + 1) % capacity;
        s->count--;
        pthread_cond_signal(&s->emptied);
    } else if (status == TUTTI_OK && s->error.status != TUTTI_OK) {
        status = tutti__error_restore(&s->error);
    }
    pthread_mutex_unlock(&s->mutex);
    return status;
}

static tutti_status prefetch_skip(tutti_iterator *iterator, int64_t count, int64_t *ret_skipped)
{
    state *s = iterator->state;
    if (!s->started)
        return tutti__iterator_skip(iterator->inputs[0], count, ret_skipped);
    int64_t done = 0;
    for (; done < count; done++) {
        tutti_element element = {0};
        TUTTI_TRY(prefetch_next(iterator, &element));
        if (element.count == 0)
            break;
        tutti_element_release(&element);
    }
    *ret_skipped = done;
    return TUTTI_OK;
}

static void prefetch_close(tutti_iterator *iterator)
{
    int64_t capacity = ((const settings *)iterator->dataset->settings)->count;
    state *s = iterator->state;
    if (s->started) {
        pthread_mutex_lock(&s->mutex);
        atomic_store(&s->stop, true);
        pthread_cond_broadcast(&s->emptied);
        pthread_mutex_unlock(&s->mutex);
        pthread_join(s->thread, NULL);
    }
    for (int64_t i = 0; i < s->count; i++)
        tutti_element_release(&s->ring[(s->first + i) % capacity]);
    free(s->ring);
    if (!s->made)
        return;
    pthread_mutex_destroy(&s->mutex);
    pthread_cond_destroy(&s->filled);
    pthread_cond_destroy(&s->emptied);
}

extern const tutti_dataset_def tutti_dataset_def_prefetch;

tutti_dataset *(tutti_prefetch)(tutti_dataset *input, int64_t count)
{
    if (input && (count < 1 || count > 65536))
        return tutti__dataset_wrong(input->job, &tutti_dataset_def_prefetch,
                                    "%lld elements ahead: needs 1 to 65536", (long long)count);
    tutti_dataset *dataset = tutti__dataset_create(&tutti_dataset_def_prefetch, NULL, 1, &input);
    if (!dataset)
        return NULL;
    ((settings *)dataset->settings)->count = count;
    dataset->info.cardinality = input->info.cardinality;
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_prefetch = {
    .name = "prefetch",
    .hands_on = true,
    .keeps_parts = true,
    .doc = "elements made ahead on a thread",
    .settings_size = sizeof(settings),
    .state_size = sizeof(state),
    .open = prefetch_open,
    .next = prefetch_next,
    .skip = prefetch_skip,
    .close = prefetch_close,
    .opens_inputs = true,
};
