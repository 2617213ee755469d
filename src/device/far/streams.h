/* streams.h: instruction streams as threads. A run leases a set of them: a blocked instruction
 * holds up its own run only, and an instruction that runs a sub-graph on the same device finds
 * other streams. */
#ifndef TUTTI_DEVICE_FAR_STREAMS_H
#define TUTTI_DEVICE_FAR_STREAMS_H

#include <pthread.h>

#include "base/status.h"

#define TUTTI_FAR_STREAMS 3

/* Runs what stands at `position` in the queue of a stream. */
typedef void tutti_far_work(void *context, int stream, size_t position);

typedef struct tutti_far_stream {
    struct tutti_far_streams *set;
    int index;
    pthread_t thread;
    bool started;
    size_t limit, next; /* launched, begun; under the set's lock */
} tutti_far_stream;

typedef struct tutti_far_streams {
    struct tutti_far_streams *next; /* in the list of free sets */
    pthread_mutex_t lock;
    pthread_cond_t launched;
    bool stop;
    tutti_far_work *work;
    void *context;
    tutti_far_stream streams[TUTTI_FAR_STREAMS];
} tutti_far_streams;

/* Sets that wait for a run. A zeroed struct with an initialised lock is an empty list. */
typedef struct tutti_far_stream_list {
    pthread_mutex_t lock;
    tutti_far_streams *free;
} tutti_far_stream_list;

/* A set of idle streams, started when none is free. */
tutti_status tutti__far_streams_lease(tutti_far_stream_list *list, tutti_far_work *work,
                                      void *context, tutti_far_streams **ret);
/* Puts one more piece of work at the end of a stream's queue; does not wait for it. */
void tutti__far_streams_launch(tutti_far_streams *set, int stream);
/* Takes a set back whose work is done. */
void tutti__far_streams_return(tutti_far_stream_list *list, tutti_far_streams *set);
/* Ends the threads of all sets; every one was returned. */
void tutti__far_streams_end(tutti_far_stream_list *list);

#endif
