/* drive.h: runs programs on a device whose streams work beside the host.
 *
 * The host goes through the instructions in their order. One for the device is put on its stream;
 * one for the host waits for what it needs and runs on the caller's thread. So streams never wait
 * for the host, and for other devices only as far as work stands on their streams: whoever waits
 * for a stream waits for a bounded time. A run in which nothing can fail on a stream is left while
 * its work still goes on.
 *
 * Whatever touches the device's memory comes after all that was put on its streams before: a run's
 * first instructions, its commit, copies from and to the host, memory that is let go. So a run lets
 * go of what it borrows (values of variables, inputs) when its last instruction stands on a stream.
 */
#ifndef TUTTI_PROGRAM_DRIVE_H
#define TUTTI_PROGRAM_DRIVE_H

#include "program/program.h"

typedef struct tutti_drive tutti_drive;

/* What a target gives. Each returns when it is enqueued, if nothing else is said. */
typedef struct tutti_drive_table {
    /* What is put on any stream from now on comes after all that was put on one so far. */
    void (*fence)(tutti_drive *drive);
    /* The variable's memory (NULL: it has no value), from now on, or, written, from the commit on.
     */
    tutti_status (*bind)(tutti_drive *drive, int variable, tutti_tensor *value, bool written);
    /* The input's value, as tutti_executable_table.enqueue says. */
    tutti_status (*feed)(tutti_drive *drive, int input, tutti_tensor *value);
    tutti_status (*launch)(tutti_drive *drive, size_t instruction);
    /* (optional) Instructions from `from` up to `to`, none of which is for the host, in one go;
     * *ret false: they are to be launched one by one. */
    tutti_status (*launch_all)(tutti_drive *drive, size_t from, size_t to, bool *ret);
    /* Done when it returns: waits for what the instruction needs, copies its operands to and from
     * the host. */
    tutti_status (*call_on_host)(tutti_drive *drive, size_t instruction);
    /* Runs a kernel of TUTTI_KERNEL_TENSORS, with `take` and `give` of the target's. */
    tutti_status (*pass)(tutti_drive *drive, size_t instruction);
    /* (optional) What can fail before the commit stands on the streams: `settle` need not wait for
     * what comes behind. */
    tutti_status (*checked)(tutti_drive *drive);
    /* Waits for what was put on the streams for this run, as far as it can fail or gives values of
     * unknown size; how it went. */
    tutti_status (*settle)(tutti_drive *drive);
    /* A result that does not lie on the host, copied out of the memory of the run. */
    tutti_status (*take)(tutti_drive *drive, int result, tutti_tensor **ret);
} tutti_drive_table;

/* One run: what a target's frame begins with. */
struct tutti_drive {
    const tutti_drive_table *table;
    const tutti_program *program;
    tutti_context context;
    tutti_kernel_call *calls;
    tutti_tensor **snapshots; /* by variable, during a run */
    tutti_run *run;           /* while the host is at it */
    bool told;                /* the run's commit point knows of a failure of this one */
};

/* The program's constants in a device's memory, by slot, NULL for strings: from calloc, the
 * caller's to drop and free, also on failure. */
tutti_status tutti__drive_constants(const tutti_program *program, const tutti_memory *memory,
                                    tutti_tensor ***ret);

/* Behind tutti_executable_table.enqueue, with a frame that nothing uses. When it returns, work may
 * still be on the streams. */
tutti_status tutti__drive(tutti_drive *drive, tutti_run *run, tutti_tensor *const *inputs,
                          tutti_tensor **ret_results);

#endif
