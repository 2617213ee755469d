/* trace.h: what one rank would do in a collective: messages that it posts and waits for, and time
 * that it computes. The algorithms themselves write it: with a trace in their group, sending,
 * receiving, folding and copying only note.
 *
 * What an algorithm does with its messages must not depend on their bytes; none does. Groups of
 * operations that repeat are kept once, with a count: a ring of 10,000 ranks is some dozen of them.
 */
#ifndef TUTTI_COMM_SIM_TRACE_H
#define TUTTI_COMM_SIM_TRACE_H

#include "base/status.h"
#include "tutti/comm.h"

typedef enum tutti_sim_kind {
    TUTTI_SIM_SEND,
    TUTTI_SIM_RECV,
    TUTTI_SIM_WAIT,    /* for the message that was posted as the `peer`-th last */
    TUTTI_SIM_COMPUTE, /* bytes folded or copied, each once */
} tutti_sim_kind;

typedef struct tutti_sim_step {
    uint32_t kind;
    uint32_t peer;
    uint64_t bytes;
} tutti_sim_step;

/* Steps [first, first + count), done `times` times. */
typedef struct tutti_sim_group {
    uint32_t first, count, times;
} tutti_sim_group;

typedef struct tutti_sim_trace {
    tutti_sim_step *steps;
    tutti_sim_group *groups;
    uint32_t step_count, step_room, group_count, group_room, open; /* open: where a group began */
    uint64_t posted;                                               /* messages */
    uint64_t messages;                                             /* sent, with repetitions */
    size_t element;                                                /* bytes of what is folded */
    bool failed;                                                   /* no memory */
} tutti_sim_trace;

/* A message's number, for the wait. */
size_t tutti__sim_trace_post(tutti_sim_trace *trace, int peer, bool outgoing, size_t bytes);
void tutti__sim_trace_wait(tutti_sim_trace *trace, size_t number);
void tutti__sim_trace_copy(tutti_sim_trace *trace, size_t bytes);
/* For tutti_collective.fold, of the trace that tutti__sim_trace_begin named on this thread. */
void tutti__sim_trace_fold(void *out, const void *const *in, int sources, int64_t count);
void tutti__sim_trace_begin(tutti_sim_trace *trace);
void tutti__sim_trace_end(tutti_sim_trace *trace);
void tutti__sim_trace_free(tutti_sim_trace *trace);
/* An address that stands for memory and is never touched. */
void *tutti__sim_trace_memory(void);

#endif
