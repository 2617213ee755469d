/* frame.h: one run of a program on a far device: its memory, its tokens, its error.
 *
 * Lock order: a frame's lock is taken last and nothing is called under it. */
#ifndef TUTTI_DEVICE_FAR_FRAME_H
#define TUTTI_DEVICE_FAR_FRAME_H

#include "device/far/layout.h"
#include "device/far/memory.h"
#include "program/drive.h"
#include "tensor/device_event.h"

/* What stands behind tutti_device.self. */
typedef struct tutti_far_device {
    tutti_far_memory *memory;
    tutti_far_streams streams;
    pthread_mutex_t lock;
    tutti_error failed; /* under the lock: the first commit that failed since somebody asked */
} tutti_far_device;

typedef struct tutti_far_executable {
    tutti_executable executable;
    tutti_far_device *device;
    tutti_program *program;
    tutti_far_layout layout;
    tutti_tensor **constants;          /* in the device's memory; NULL for strings */
    uint32_t lanes[TUTTI_FAR_STREAMS]; /* of the trace */
    pthread_mutex_t lock;
    pthread_cond_t freed;
    /* Under the lock. */
    struct tutti_far_frame *frames; /* that nothing uses */
    int ahead;                      /* frames that the host has left, with work on the streams */
} tutti_far_executable;

/* Memory as streams see it. */
typedef struct tutti_far_place {
    void *device;
    const char *read;
    char *write; /* NULL before the commit */
} tutti_far_place;

/* What an instruction of TUTTI_KERNEL_TENSORS passes on, for its stream to copy (transfer.c). */
typedef struct tutti_far_pass {
    struct tutti_far_delivery *out; /* of input 0 */
    tutti_tensor *in;               /* becomes output 0 */
    const char *from;               /* where a stream reads that */
    tutti_device_event *event;      /* when that is there */
} tutti_far_pass;

typedef struct tutti_far_frame {
    tutti_drive drive;
    struct tutti_far_frame *next;
    tutti_far_executable *executable;
    tutti_far_region *memory;
    tutti_view *views;
    tutti_far_place *variables;      /* by slot, before the commit */
    tutti_far_place *written;        /* and from there on */
    const char **constants;          /* by slot: where a stream reads it */
    const char **fed;                /* by slot: an input that lies on the device; or NULL */
    tutti_tensor **sources;          /* and what holds it, while the host is at the run */
    int32_t last[TUTTI_FAR_STREAMS]; /* by stream: what the host put there last, or -1 */
    tutti_far_pass *passes;          /* by instruction */
    bool passing;                    /* the host is in the kernel of one of them */
    bool put;               /* that stands on its stream already, which has what it passes on */
    tutti_far_moment fence; /* what the run, or its commit, comes after */
    uint64_t id, seed;
    int64_t delay_ns;  /* the longest before an instruction */
    _Atomic bool stop; /* the run has failed elsewhere */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Under the lock. */
    tutti_run *run; /* while the host is at it: who can be told of a failure */
    bool *done;     /* by instruction: its token is signalled */
    size_t running; /* put on streams and not done */
    int telling;    /* threads that tell the run of a failure */
    bool failed;    /* with `error`; what has not begun is passed over */
    bool committing;
    tutti_error error;
    /* By instruction, what its stream knew when it was done; one more than the last that has
     * finished, by stream. Written before `done` is set, read after. */
    int32_t (*known)[TUTTI_FAR_STREAMS];
    int32_t now[TUTTI_FAR_STREAMS]
               [TUTTI_FAR_STREAMS]; /* what each stream knows; its own to touch */
} tutti_far_frame;

/* A frame that nothing uses; waits when the host is too far ahead of the device. */
tutti_status tutti__far_lease(tutti_far_executable *executable, tutti_far_frame **ret);
/* The host has left it: it is free when what stands on the streams is done. */
void tutti__far_leave(tutti_far_frame *frame);
tutti_status tutti__far_frame_create(tutti_far_executable *executable, tutti_far_frame **ret);
void tutti__far_frame_destroy(tutti_far_frame *frame); /* NULL is fine */

/* Puts a piece of work of the frame on a stream. */
tutti_status tutti__far_put(tutti_far_frame *frame, int stream, bool alone,
                            void (*run)(void *context, int stream, int64_t index), void *context,
                            int64_t index);
/* It is done. */
void tutti__far_done(tutti_far_frame *frame);

/* Runs an instruction on the thread of its stream: waits for its tokens, opens its operands, calls
 * its kernel, closes them, signals. */
void tutti__far_execute(void *frame, int stream, int64_t instruction);
/* The same on the caller's thread, with operands on the host, when its stream has come so far. */
tutti_status tutti__far_call_on_host(tutti_drive *drive, size_t instruction);
/* The first failure of a frame stands, and the run's commit point learns of it at once, so that
 * whoever waits for this device elsewhere stops waiting. The calling thread's last message goes
 * with it. */
void tutti__far_fail(tutti_far_frame *frame, tutti_status status);
/* The host waits, under the lock, for a change; false when the run's deadline has passed, and a
 * second more. */
bool tutti__far_wait(tutti_far_frame *frame);

/* ---- transfer.c ---- */
/* Behind the table of tutti_drive. */
tutti_status tutti__far_take_result(tutti_drive *drive, int result, tutti_tensor **ret);
tutti_status tutti__far_pass(tutti_drive *drive, size_t instruction);
/* Behind tutti_call_host. */
tutti_status tutti__far_take(const tutti_kernel_call *call, int index, tutti_tensor **ret);
tutti_status tutti__far_give(const tutti_kernel_call *call, int index, tutti_tensor *tensor);
/* On the stream: copies what is passed on. It ends whether or not it was. */
tutti_status tutti__far_pass_on(tutti_far_pass *pass, const char *input, char *output, size_t size);
void tutti__far_pass_end(tutti_far_pass *pass);

/* Behind tutti_executable_table.enqueue. */
tutti_status tutti__far_enqueue(tutti_executable *executable, tutti_run *run,
                                tutti_tensor *const *inputs, tutti_tensor **ret_results);

/* For tests: the program of an executable of this target. */
tutti_program *tutti__far_program(tutti_executable *executable);

#endif
