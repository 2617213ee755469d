/* frame.h: what a run of a program on the CPU leases: an arena and the kernel calls resolved to
 * pointers into it. Pointers to inputs, results and variables are patched where they changed since
 * the frame's last run; a steady step allocates nothing but its results. */
#ifndef TUTTI_DEVICE_CPU_FRAME_H
#define TUTTI_DEVICE_CPU_FRAME_H

#include <pthread.h>

#include "program/program.h"

/* All views that hold one slot's pointer. */
typedef struct tutti_cpu_patch {
    int count;
    tutti_view **views;
    void *pointer; /* as patched last */
} tutti_cpu_patch;

typedef struct tutti_cpu_frame {
    struct tutti_cpu_frame *next;
    const tutti_program *program;
    void *memory, *shared;
    const tutti_shared_memory *shared_from; /* NULL: `shared` is this process's own */
    tutti_context context;
    tutti_kernel_call *calls;
    tutti_view *views;
    tutti_cpu_patch *inputs, *results, *variables;
    tutti_tensor **snapshots; /* by variable, during a run */
} tutti_cpu_frame;

typedef struct tutti_cpu_executable {
    tutti_executable executable;
    tutti_program *program;
    uint32_t lane;        /* of the trace */
    bool looks;           /* for NaN, after each instruction */
    bool kills;           /* the process may be killed between two (base/kill.h) */
    pthread_mutex_t lock; /* of the list of free frames */
    tutti_cpu_frame *frames;
} tutti_cpu_executable;

/* A free frame, or a new one. */
tutti_status tutti__cpu_frame_lease(tutti_cpu_executable *executable, tutti_cpu_frame **ret);
void tutti__cpu_frame_return(tutti_cpu_executable *executable, tutti_cpu_frame *frame);
void tutti__cpu_frame_destroy(tutti_cpu_frame *frame); /* NULL is fine */
void tutti__cpu_patch_set(tutti_cpu_patch *patch, void *pointer);

/* The executable's table slots. */
tutti_status tutti__cpu_enqueue(tutti_executable *executable, tutti_run *run,
                                tutti_tensor *const *inputs, tutti_tensor **ret_results);
tutti_status tutti__cpu_rehearse(tutti_executable *executable, tutti_run *run,
                                 tutti_tensor *const *inputs, tutti_timed_list *ret);
/* Of an instruction that a rehearsal leaves out: its outputs are zeros afterwards, where their size
 * is known. Seconds of what it does beside waiting; infinite: not known. */
double tutti__cpu_rehearse_aside(const tutti_node *node, const tutti_kernel_call *call);
void tutti__cpu_usage(const tutti_executable *executable, tutti_usage *usage);

#endif
