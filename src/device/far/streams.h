/* streams.h: the instruction streams of a device, as threads. What is put on one is done in that
 * order, and after all that stood on any stream when it was told to come after it. Nothing that
 * stands on a stream waits for the host, so whoever waits for a stream waits for a bounded time. */
#ifndef TUTTI_DEVICE_FAR_STREAMS_H
#define TUTTI_DEVICE_FAR_STREAMS_H

#include <pthread.h>

#include "base/status.h"

#define TUTTI_FAR_STREAMS 3

/* A moment of the device: how much had been put on each stream. */
typedef struct tutti_far_moment {
    uint64_t put[TUTTI_FAR_STREAMS];
} tutti_far_moment;

typedef struct tutti_far_work {
    void (*run)(void *context, int stream, int64_t index);
    void *context;
    int64_t index;
    tutti_far_moment after; /* what must be done before */
} tutti_far_work;

typedef struct tutti_far_stream {
    struct tutti_far_streams *set;
    int index;
    pthread_t thread;
    uint64_t put, begun, done; /* under the set's lock */
    tutti_far_work *works;     /* a ring: number n stands at n % capacity */
    size_t capacity;
} tutti_far_stream;

typedef struct tutti_far_streams {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool started, stop;
    tutti_far_moment fence; /* what everything put from now on comes after */
    tutti_far_stream streams[TUTTI_FAR_STREAMS];
} tutti_far_streams;

void tutti__far_streams_init(tutti_far_streams *set);
/* Does what stands there, then ends the threads. */
void tutti__far_streams_end(tutti_far_streams *set);

/* What is put on any stream from now on comes after all that was put on one so far. */
void tutti__far_streams_fence(tutti_far_streams *set);
/* At the end of a stream; `alone`: after all that was put on any stream so far. Starts the threads
 * when they are first needed. */
tutti_status tutti__far_streams_put(tutti_far_streams *set, int stream, bool alone,
                                    const tutti_far_work *work);
tutti_far_moment tutti__far_streams_now(tutti_far_streams *set);
bool tutti__far_streams_passed(tutti_far_streams *set, const tutti_far_moment *moment);
/* Until all that had been put then is done. Not from a stream. */
void tutti__far_streams_wait(tutti_far_streams *set, const tutti_far_moment *moment);

#endif
