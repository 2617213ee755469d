/* map_threads.c: a map's function on several threads.
 *
 * A ring of places, numbered from 0 without end: [taken, claimed) are at work or done, [claimed,
 * put) wait for a thread. Only the consumer moves `taken` and `put`; all of it is under `mutex`,
 * and a place's element belongs to its thread between claim and done. */
#include <stdlib.h>

#include "data/transform/map.h"
#include "data/wait.h"

typedef struct place {
    tutti_element element;
    int64_t index;
    bool done;
    tutti_error *error; /* NULL: went well */
} place;

struct tutti_map_threads {
    const tutti_dataset *dataset;
    const tutti_share *share;
    uint64_t epoch;
    pthread_mutex_t mutex;
    pthread_cond_t work, done;
    bool stop;
    int64_t taken, claimed, put, capacity;
    place *ring;
    int thread_count;
    pthread_t *threads;
};

static place *place_of(const tutti_map_threads *t, int64_t number)
{
    return &t->ring[number % t->capacity];
}

static void run_one(tutti_map_threads *t, place *p)
{
    tutti_status status = tutti__map_apply(t->dataset, t->share, t->epoch, p->index, &p->element);
    if (status == TUTTI_OK)
        return;
    p->error = malloc(sizeof *p->error);
    if (p->error)
        tutti__error_capture(status, p->error);
}

static void *map_threads_run(void *context)
{
    tutti_map_threads *t = context;
    pthread_mutex_lock(&t->mutex);
    while (!t->stop) {
        if (t->claimed == t->put) {
            pthread_cond_wait(&t->work, &t->mutex);
            continue;
        }
        place *p = place_of(t, t->claimed++);
        pthread_mutex_unlock(&t->mutex);
        run_one(t, p);
        pthread_mutex_lock(&t->mutex);
        p->done = true;
        pthread_cond_signal(&t->done);
    }
    pthread_mutex_unlock(&t->mutex);
    return NULL;
}

tutti_status tutti__map_threads_start(const tutti_iterator *iterator, int threads,
                                      tutti_map_threads **ret)
{
    tutti_map_threads *t = calloc(1, sizeof *t);
    if (!t)
        return tutti_fail(TUTTI_NO_MEMORY, "map: no memory for %d threads", threads);
    t->dataset = iterator->dataset;
    t->share = iterator->share;
    t->epoch = iterator->epoch;
    t->capacity = 2 * (int64_t)threads;
    pthread_mutex_init(&t->mutex, NULL);
    tutti__wait_init(&t->work);
    tutti__wait_init(&t->done);
    t->ring = calloc((size_t)t->capacity, sizeof *t->ring);
    t->threads = calloc((size_t)threads, sizeof *t->threads);
    while (t->ring && t->threads && t->thread_count < threads &&
           pthread_create(&t->threads[t->thread_count], NULL, map_threads_run, t) == 0)
        t->thread_count++;
    if (t->thread_count < threads) {
        tutti__map_threads_stop(t);
        return tutti_fail(TUTTI_NO_MEMORY, "map: the system has no %d threads; ask for fewer",
                          threads);
    }
    *ret = t;
    return TUTTI_OK;
}

void tutti__map_threads_stop(tutti_map_threads *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->mutex);
    t->stop = true;
    pthread_cond_broadcast(&t->work);
    pthread_mutex_unlock(&t->mutex);
    for (int i = 0; i < t->thread_count; i++)
        pthread_join(t->threads[i], NULL);
    for (; t->taken < t->put; t->taken++) {
        tutti_element_release(&place_of(t, t->taken)->element);
        free(place_of(t, t->taken)->error);
    }
    pthread_mutex_destroy(&t->mutex);
    pthread_cond_destroy(&t->work);
    pthread_cond_destroy(&t->done);
    free(t->ring);
    free(t->threads);
    free(t);
}

bool tutti__map_threads_full(const tutti_map_threads *t)
{
    return t->put - t->taken == t->capacity;
}

int64_t tutti__map_threads_pending(const tutti_map_threads *t)
{
    return t->put - t->taken;
}

void tutti__map_threads_put(tutti_map_threads *t, int64_t index, tutti_element element)
{
    pthread_mutex_lock(&t->mutex);
    *place_of(t, t->put++) = (place){.element = element, .index = index};
    pthread_cond_signal(&t->work);
    pthread_mutex_unlock(&t->mutex);
}

tutti_status tutti__map_threads_take(tutti_map_threads *t, const tutti_iterator *iterator,
                                     tutti_element *ret)
{
    int64_t deadline = tutti__wait_deadline();
    tutti_status status = TUTTI_OK;
    pthread_mutex_lock(&t->mutex);
    place *p = place_of(t, t->taken);
    while (!p->done && status == TUTTI_OK)
        status = tutti__wait(&t->done, &t->mutex, deadline, iterator);
    if (status == TUTTI_OK)
        t->taken++;
    pthread_mutex_unlock(&t->mutex);
    if (status != TUTTI_OK)
        return status;
    if (p->error) {
        status = tutti__error_restore(p->error);
        free(p->error);
        p->error = NULL;
        return status;
    }
    if (p->element.count == 0)
        return tutti_fail(TUTTI_NO_MEMORY,
                          "map: element %lld failed, and there was no memory to "
                          "say why",
                          (long long)p->index);
    *ret = p->element;
    return TUTTI_OK;
}
