/* device_event.h: a point in work that goes on beside the host, on a device's streams. Whoever puts
 * work there makes one; whoever wants what the work gives waits for it. NULL is a point that is
 * past. */
#ifndef TUTTI_TENSOR_DEVICE_EVENT_H
#define TUTTI_TENSOR_DEVICE_EVENT_H

#include <stdatomic.h>

#include "base/status.h"

typedef struct tutti_device_event tutti_device_event;

typedef struct tutti_device_event_table {
    /* Until all up to the point is done; how it went. From any thread that is no stream's. */
    tutti_status (*wait)(tutti_device_event *event);
    void (*destroy)(tutti_device_event *event);
} tutti_device_event_table;

struct tutti_device_event {
    const tutti_device_event_table *table;
    atomic_int references;
};

static inline tutti_device_event *tutti__device_event_retain(tutti_device_event *event)
{
    if (event)
        atomic_fetch_add(&event->references, 1);
    return event;
}

static inline void tutti__device_event_release(tutti_device_event *event)
{
    if (event && atomic_fetch_sub(&event->references, 1) == 1)
        event->table->destroy(event);
}

static inline tutti_status tutti__device_event_wait(tutti_device_event *event)
{
    return event ? event->table->wait(event) : TUTTI_OK;
}

#endif
