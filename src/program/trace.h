/* trace.h: what ran when. Every thread has a ring of its last events, always on; TUTTI_TRACE=file
 * makes the runner write them all for Perfetto or chrome://tracing. */
#ifndef TUTTI_PROGRAM_TRACE_H
#define TUTTI_PROGRAM_TRACE_H

#include "base/container.h"
#include "base/status.h"
#include "base/world.h"

#define TUTTI_TRACE_RING 8192 /* events a thread remembers; a power of two */

typedef struct tutti_trace_event {
    uint64_t start, end; /* ticks */
    uint32_t name, lane; /* interned text; device or stream */
} tutti_trace_event;

typedef struct tutti_trace {
    tutti_trace_event events[TUTTI_TRACE_RING];
    uint64_t count; /* written so far */
    int thread;
    bool idle; /* its thread has ended */
    struct tutti_trace *next;
} tutti_trace;

/* The calling thread's ring; NULL when tracing is off (TUTTI_TRACE_RING=0). */
tutti_trace *tutti__trace_mine(void);
/* Whether TUTTI_TRACE_RING says anything. */
tutti_status tutti__trace_check_setting(void);

static inline void tutti__trace_add(tutti_trace *trace, uint32_t name, uint32_t lane,
                                    uint64_t start, uint64_t end)
{
    tutti_trace_event *event = &trace->events[trace->count++ & (TUTTI_TRACE_RING - 1)];
    *event = (tutti_trace_event){start, end, name, lane};
}

/* A number for a text, the same for equal texts; 0 once 100,000 texts are known. Thread-safe. */
uint32_t tutti__trace_name(const char *text);

/* The number of a node's name, whose operator and FLOPs are noted for who reads the trace. */
uint32_t tutti__trace_operator(const char *node, const char *op, double flops);

/* One event; texts live as long as the process. */
typedef struct tutti_trace_item {
    int thread;
    const char *name, *op, *lane; /* op: NULL when it is none's */
    uint64_t start, end;          /* ticks */
} tutti_trace_item;
/* Gives all events that began at `since` (ticks) or later and are still remembered to `visit`,
 * thread by thread, newest first. Nothing may run meanwhile. */
void tutti__trace_visit(uint64_t since, void (*visit)(void *context, const tutti_trace_item *item),
                        void *context);

/* Writes all rings in Chrome's trace format. Threads may go on running; their newest events may be
 * missing. */
tutti_status tutti__trace_write(const char *path);
/* Writes to TUTTI_TRACE when that is set; a file that cannot be written is a warning. Nothing in a
 * process of several, whose traces are joined. */
void tutti__trace_flush(void);
const char *tutti__trace_path(void); /* TUTTI_TRACE; "": it is not set */

/* ---- the traces of several processes as one ---- */
/* This process is `rank` of a job, and its monotonic clock is `ahead_ns` before that of rank 0. Its
 * events are written as that process's, on rank 0's clock. -1: it is alone. */
void tutti__trace_place(int rank, int64_t ahead_ns);
/* The events of this process, separated by commas, without what stands around them. */
void tutti__trace_events(tutti_text *text);
/* Writes such lists from several processes, joined by commas, as one trace. */
tutti_status tutti__trace_write_events(const char *path, const tutti_text *events);

#endif
