/* streams.c: see streams.h. */
#include "device/far/streams.h"

#include <stdlib.h>
#include <string.h>

#include "base/denormals.h"

/* Under the lock. */
static bool has_come(const tutti_far_streams *set, const tutti_far_moment *moment)
{
    for (int s = 0; s < TUTTI_FAR_STREAMS; s++)
        if (set->streams[s].done < moment->put[s])
            return false;
    return true;
}

static const tutti_far_work *next_work(const tutti_far_stream *stream)
{
    return &stream->works[stream->begun % stream->capacity];
}

static void *serve(void *argument)
{
    tutti_far_stream *stream = argument;
    tutti_far_streams *set = stream->set;
    tutti__denormals_to_zero();
    pthread_mutex_lock(&set->lock);
    for (;;) {
        while (stream->begun == stream->put ? !set->stop
                                            : !has_come(set, &next_work(stream)->after))
            pthread_cond_wait(&set->changed, &set->lock);
        if (stream->begun == stream->put)
            break;
        tutti_far_work work = *next_work(stream);
        stream->begun++;
        pthread_mutex_unlock(&set->lock);
        work.run(work.context, stream->index, work.index);
        pthread_mutex_lock(&set->lock);
        stream->done++;
        pthread_cond_broadcast(&set->changed);
    }
    pthread_mutex_unlock(&set->lock);
    return NULL;
}

void tutti__far_streams_init(tutti_far_streams *set)
{
    memset(set, 0, sizeof *set);
    pthread_mutex_init(&set->lock, NULL);
    pthread_cond_init(&set->changed, NULL);
}

static void stop(tutti_far_streams *set, int count)
{
    pthread_mutex_lock(&set->lock);
    set->stop = true;
    pthread_cond_broadcast(&set->changed);
    pthread_mutex_unlock(&set->lock);
    for (int i = 0; i < count; i++)
        pthread_join(set->streams[i].thread, NULL);
    set->stop = false;
}

void tutti__far_streams_end(tutti_far_streams *set)
{
    stop(set, set->started ? TUTTI_FAR_STREAMS : 0);
    for (int i = 0; i < TUTTI_FAR_STREAMS; i++)
        free(set->streams[i].works);
    pthread_cond_destroy(&set->changed);
    pthread_mutex_destroy(&set->lock);
}

/* Under the lock. */
static tutti_status start(tutti_far_streams *set)
{
    for (int i = 0; i < TUTTI_FAR_STREAMS; i++) {
        tutti_far_stream *stream = &set->streams[i];
        stream->set = set;
        stream->index = i;
        if (pthread_create(&stream->thread, NULL, serve, stream) == 0)
            continue;
        pthread_mutex_unlock(&set->lock);
        stop(set, i);
        pthread_mutex_lock(&set->lock);
        return tutti_fail(TUTTI_NO_MEMORY, "no thread for stream %d of a device", i);
    }
    set->started = true;
    return TUTTI_OK;
}

/* Under the lock: room for one more in the ring. */
static bool make_room(tutti_far_stream *stream)
{
    size_t old = stream->capacity, count = (size_t)(stream->put - stream->begun);
    if (count < old)
        return true;
    size_t capacity = old ? 2 * old : 64;
    tutti_far_work *works = malloc(capacity * sizeof *works);
    if (!works)
        return false;
    for (uint64_t n = stream->begun; n < stream->put; n++)
        works[n % capacity] = stream->works[n % old];
    free(stream->works);
    stream->works = works;
    stream->capacity = capacity;
    return true;
}

/* Under the lock. */
static tutti_far_moment now(const tutti_far_streams *set)
{
    tutti_far_moment moment;
    for (int s = 0; s < TUTTI_FAR_STREAMS; s++)
        moment.put[s] = set->streams[s].put;
    return moment;
}

void tutti__far_streams_fence(tutti_far_streams *set)
{
    pthread_mutex_lock(&set->lock);
    set->fence = now(set);
    pthread_mutex_unlock(&set->lock);
}

tutti_status tutti__far_streams_put(tutti_far_streams *set, int index, bool alone,
                                    const tutti_far_work *work)
{
    tutti_far_stream *stream = &set->streams[index];
    pthread_mutex_lock(&set->lock);
    tutti_status status = set->started ? TUTTI_OK : start(set);
    if (status == TUTTI_OK && !make_room(stream))
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for the streams of a device");
    if (status == TUTTI_OK) {
        tutti_far_work *to = &stream->works[stream->put % stream->capacity];
        *to = *work;
        to->after = alone ? now(set) : set->fence;
        stream->put++;
        pthread_cond_broadcast(&set->changed);
    }
    pthread_mutex_unlock(&set->lock);
    return status;
}

tutti_far_moment tutti__far_streams_now(tutti_far_streams *set)
{
    pthread_mutex_lock(&set->lock);
    tutti_far_moment moment = now(set);
    pthread_mutex_unlock(&set->lock);
    return moment;
}

bool tutti__far_streams_passed(tutti_far_streams *set, const tutti_far_moment *moment)
{
    pthread_mutex_lock(&set->lock);
    bool passed = has_come(set, moment);
    pthread_mutex_unlock(&set->lock);
    return passed;
}

void tutti__far_streams_wait(tutti_far_streams *set, const tutti_far_moment *moment)
{
    pthread_mutex_lock(&set->lock);
    while (!has_come(set, moment))
        pthread_cond_wait(&set->changed, &set->lock);
    pthread_mutex_unlock(&set->lock);
}
