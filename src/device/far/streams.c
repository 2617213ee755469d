/* streams.c: see streams.h. A queue is a pair of counters: positions below `limit` are launched,
 * those below `next` have begun. What they mean is known to `work`. */
#include "device/far/streams.h"

#include <stdlib.h>

#include "base/denormals.h"

static void *serve(void *argument)
{
    tutti_far_stream *stream = argument;
    tutti_far_streams *set = stream->set;
    tutti__denormals_to_zero();
    pthread_mutex_lock(&set->lock);
    for (;;) {
        while (stream->next == stream->limit && !set->stop)
            pthread_cond_wait(&set->launched, &set->lock);
        if (set->stop)
            break;
        size_t position = stream->next++;
        tutti_far_work *work = set->work;
        void *context = set->context;
        pthread_mutex_unlock(&set->lock);
        work(context, stream->index, position);
        pthread_mutex_lock(&set->lock);
    }
    pthread_mutex_unlock(&set->lock);
    return NULL;
}

static void end_set(tutti_far_streams *set)
{
    pthread_mutex_lock(&set->lock);
    set->stop = true;
    pthread_cond_broadcast(&set->launched);
    pthread_mutex_unlock(&set->lock);
    for (int i = 0; i < TUTTI_FAR_STREAMS; i++)
        if (set->streams[i].started)
            pthread_join(set->streams[i].thread, NULL);
    pthread_cond_destroy(&set->launched);
    pthread_mutex_destroy(&set->lock);
    free(set);
}

static tutti_status start_set(tutti_far_streams **ret)
{
    tutti_far_streams *set = calloc(1, sizeof *set);
    if (!set)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the streams of a run");
    pthread_mutex_init(&set->lock, NULL);
    pthread_cond_init(&set->launched, NULL);
    for (int i = 0; i < TUTTI_FAR_STREAMS; i++) {
        tutti_far_stream *stream = &set->streams[i];
        stream->set = set;
        stream->index = i;
        stream->started = pthread_create(&stream->thread, NULL, serve, stream) == 0;
        if (!stream->started) {
            end_set(set);
            return tutti_fail(TUTTI_NO_MEMORY, "no thread for stream %d of a run", i);
        }
    }
    *ret = set;
    return TUTTI_OK;
}

tutti_status tutti__far_streams_lease(tutti_far_stream_list *list, tutti_far_work *work,
                                      void *context, tutti_far_streams **ret)
{
    pthread_mutex_lock(&list->lock);
    tutti_far_streams *set = list->free;
    if (set)
        list->free = set->next;
    pthread_mutex_unlock(&list->lock);
    if (!set)
        TUTTI_TRY(start_set(&set));
    pthread_mutex_lock(&set->lock);
    set->work = work;
    set->context = context;
    for (int i = 0; i < TUTTI_FAR_STREAMS; i++)
        set->streams[i].limit = set->streams[i].next = 0;
    pthread_mutex_unlock(&set->lock);
    *ret = set;
    return TUTTI_OK;
}

void tutti__far_streams_launch(tutti_far_streams *set, int stream)
{
    pthread_mutex_lock(&set->lock);
    set->streams[stream].limit++;
    pthread_cond_broadcast(&set->launched);
    pthread_mutex_unlock(&set->lock);
}

void tutti__far_streams_return(tutti_far_stream_list *list, tutti_far_streams *set)
{
    pthread_mutex_lock(&list->lock);
    set->next = list->free;
    list->free = set;
    pthread_mutex_unlock(&list->lock);
}

void tutti__far_streams_end(tutti_far_stream_list *list)
{
    while (list->free) {
        tutti_far_streams *next = list->free->next;
        end_set(list->free);
        list->free = next;
    }
}
