/* frame.h: one run of a program on a far device: its memory, its tokens, its error.
 *
 * Lock order: a frame's lock is taken last and nothing is called under it. */
#ifndef TUTTI_DEVICE_FAR_FRAME_H
#define TUTTI_DEVICE_FAR_FRAME_H

#include "device/far/layout.h"
#include "device/far/memory.h"

/* What stands behind tutti_device.self. */
typedef struct tutti_far_device {
    tutti_far_memory *memory;
    tutti_far_stream_list streams;
} tutti_far_device;

typedef struct tutti_far_executable {
    tutti_executable executable;
    tutti_far_device *device;
    tutti_program *program;
    tutti_far_layout layout;
    tutti_tensor **constants;          /* in the device's memory; NULL for strings */
    uint32_t lanes[TUTTI_FAR_STREAMS]; /* of the trace */
    pthread_mutex_t lock;              /* of the list of free frames */
    struct tutti_far_frame *frames;
} tutti_far_executable;

/* A variable's memory as this run sees it. */
typedef struct tutti_far_variable {
    void *device;
    const char *read;
    char *write; /* NULL before the commit */
} tutti_far_variable;

typedef struct tutti_far_frame {
    struct tutti_far_frame *next;
    const tutti_far_executable *executable;
    tutti_far_region *memory;
    tutti_context context;
    tutti_kernel_call *calls;
    tutti_view *views;
    tutti_tensor **snapshots; /* by variable, during a run */
    tutti_far_variable *variables;
    const char **constants; /* by slot: where a stream reads it */

    tutti_run *run;
    tutti_far_streams *streams; /* leased for the run */
    uint64_t seed;
    int64_t delay_ns; /* the longest before an instruction */
    bool committing;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Under the lock. */
    bool *done;     /* by instruction: its token is signalled */
    size_t running; /* launched and not done */
    bool failed;    /* with `error`; what has not begun is passed over */
    bool told;      /* the run's commit point knows of the failure */
    tutti_error error;
    /* By instruction, what its stream knew when it was done; one more than the last that has
     * finished, by stream. Written before `done` is set, read after. */
    int32_t (*known)[TUTTI_FAR_STREAMS];
    int32_t now[TUTTI_FAR_STREAMS]
               [TUTTI_FAR_STREAMS]; /* what each stream knows; its own to touch */
} tutti_far_frame;

tutti_status tutti__far_frame_create(const tutti_far_executable *executable, tutti_far_frame **ret);
void tutti__far_frame_destroy(tutti_far_frame *frame); /* NULL is fine */

/* Runs the instruction at a position of a stream's queue, on the thread of the stream: waits for
 * its tokens, opens its operands, calls its kernel, closes them, signals. A failure cancels the
 * run. */
tutti_far_work tutti__far_execute;
/* The first failure of a frame stands, and the run's commit point learns of it at once, so that
 * whoever waits for this device elsewhere stops waiting. The calling thread's last message goes
 * with it. */
void tutti__far_fail(tutti_far_frame *frame, tutti_status status);
/* Under the lock: waits for a change; false when the run's deadline has passed, and a second more.
 */
bool tutti__far_wait(tutti_far_frame *frame);

/* Behind tutti_executable_table.run. */
tutti_status tutti__far_run(tutti_executable *executable, tutti_run *run,
                            tutti_tensor *const *inputs, tutti_tensor **ret_results);

/* For tests: the program of an executable of this target. */
tutti_program *tutti__far_program(tutti_executable *executable);

#endif
