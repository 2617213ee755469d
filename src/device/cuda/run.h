/* run.h: GPUs as devices: their memory, programs on them, and what a run of one holds. */
#ifndef TUTTI_CUDA_RUN_H
#define TUTTI_CUDA_RUN_H

#include <pthread.h>

#include "device/cuda/gpu.h"
#include "program/drive.h"

/* What stands behind tutti_device.self. */
typedef struct tutti_gpu_device {
    const tutti_cuda_gpu_table *table;
    tutti_cuda_gpu *gpu;
    tutti_memory memory; /* its self points here */
    pthread_mutex_t lock;
    struct tutti_gpu_executable *executables; /* under the lock: all of them */
} tutti_gpu_device;

/* What can fail, what follows before the commit, and the commit; of each the last few. */
enum { TUTTI_GPU_STRETCHES = 3, TUTTI_GPU_RECORDINGS = 4 };

typedef struct tutti_gpu_executable {
    tutti_executable executable;
    tutti_gpu_device *device;
    struct tutti_gpu_executable *next, *previous; /* of the device's */
    tutti_program *program;
    bool deterministic;
    tutti_tensor **constants; /* in the device's memory; NULL for strings */
    /* The memory of a run: [arena | inputs | results | faults]. */
    size_t *inputs, *results; /* by slot: offset */
    size_t faults, size;
    size_t fault_count, *failing; /* the instructions that can fail on the device, in order */
    uint32_t lane;                /* of the trace */
    /* Timed runs are launched one by one: the least seconds of each instruction. */
    bool timed;
    double *seconds;
    size_t launches[TUTTI_GPU_STRETCHES]; /* of the recordings; 0: none yet */
    pthread_mutex_t lock;                 /* of the list of frames that nothing uses */
    struct tutti_gpu_frame *frames;
} tutti_gpu_executable;

/* A stretch of the program as one CUDA graph, for one set of addresses. */
typedef struct tutti_gpu_recording {
    uint64_t key;  /* of the addresses */
    bool launched; /* one by one with that key: all is compiled */
    uint64_t used; /* when it was, by the frame's count */
    void *own;     /* or NULL */
} tutti_gpu_recording;

/* Free again when all of its run is enqueued: what comes next on the stream comes after that. */
typedef struct tutti_gpu_frame {
    tutti_drive drive;
    struct tutti_gpu_frame *next;
    tutti_gpu_executable *executable;
    char *memory; /* on the device */
    tutti_view *views;
    void **variables;       /* by slot: on the device */
    const char **fed;       /* by slot: an input that lies on the device; or NULL */
    tutti_tensor **sources; /* and what holds it */
    tutti_gpu_recording recordings[TUTTI_GPU_STRETCHES][TUTTI_GPU_RECORDINGS];
    bool refused[TUTTI_GPU_STRETCHES]; /* it cannot be recorded */
    uint64_t launches;
    uint64_t *faults; /* on the host: what kernels that can fail have noted */
    void *noted;      /* the event: it is there */
    void **marks;     /* of a timed run: before and after each instruction; or NULL */
    bool passing;     /* the host is in a kernel of TUTTI_KERNEL_TENSORS */
} tutti_gpu_frame;

tutti_status tutti__gpu_enqueue(tutti_executable *executable, tutti_run *run,
                                tutti_tensor *const *inputs, tutti_tensor **ret_results);

/* ---- timing.c ---- */
/* From now on runs are timed, and slower. */
tutti_status tutti__gpu_time(tutti_gpu_executable *executable);
/* A run's own part of that; `start` before its first instruction. */
tutti_status tutti__gpu_timing_start(tutti_gpu_frame *frame);
void tutti__gpu_timing_hold(tutti_gpu_frame *frame, size_t instructions);
void tutti__gpu_timing_mark(tutti_gpu_frame *frame, size_t instruction, bool after);
void tutti__gpu_timing_end(tutti_gpu_frame *frame);
void tutti__gpu_frame_destroy(tutti_gpu_frame *frame); /* NULL is fine */
tutti_status tutti__gpu_frame_lease(tutti_gpu_executable *executable, tutti_gpu_frame **ret);
void tutti__gpu_frame_return(tutti_gpu_executable *executable, tutti_gpu_frame *frame);
/* Memory of the device. Where there is too little, runs that wait to be used again give theirs. */
tutti_status tutti__gpu_allocate(tutti_gpu_device *device, size_t size, void **ret);
/* On which an instruction of a run is enqueued. */
const tutti_gpu_device *tutti__gpu_device_of(const tutti_kernel_call *call);

/* ---- rehearse.c ---- */
/* tutti_executable_table.rehearse */
tutti_status tutti__gpu_rehearse(tutti_executable *executable, tutti_run *run,
                                 tutti_tensor *const *inputs, tutti_timed_list *ret);

extern const tutti_target tutti_target_gpu;
extern const tutti_kernel tutti_kernel_segmented_gpu; /* it enqueues by itself */

#endif
