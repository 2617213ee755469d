/* program.h: a partition as instructions: kernel calls on values at arena offsets.
 *
 * Invariants:
 *  1. Instructions before commit_at change no state; those from commit_at on do not fail.
 *  2. Two values share arena bytes only if every use of the one happens before the making of the
 *     other: by the order of one stream, or by tokens between streams.
 *  3. No per-step host value is compiled in.
 */
#ifndef TUTTI_PROGRAM_PROGRAM_H
#define TUTTI_PROGRAM_PROGRAM_H

#include "program/kernel.h"
#include "program/target.h"

typedef enum tutti_memory_space {
    TUTTI_IN_ARENA,    /* offset into the run's arena */
    TUTTI_IN_CONSTANT, /* slot: constants[slot] */
    TUTTI_IN_INPUT,    /* slot: parameter index */
    TUTTI_IN_RESULT,   /* slot: result index; memory that outlives the run */
    TUTTI_IN_VARIABLE, /* slot: variables[slot] */
    TUTTI_IN_QUEUE,    /* slot: queues[slot] */
    TUTTI_IN_SHARED,   /* offset into memory that others reach; nothing else ever lies there */
    TUTTI_IN_DYNAMIC   /* slot: allocated by its kernel */
} tutti_memory_space;

typedef struct tutti_program_value {
    tutti_memory_space space;
    uint32_t slot;
    size_t offset, size; /* bytes; offset is 0 outside the arena */
    const tutti_type *type;
    int32_t root;  /* the value whose memory this one shares; itself when it has its own */
    int32_t maker; /* instruction that writes it, or -1 */
} tutti_program_value;

typedef struct tutti_instruction {
    const tutti_node *node;     /* for attributes, names and messages */
    const tutti_kernel *kernel; /* NULL: the operator's reference, or a copy */
    tutti_kernel_fn *run;
    void *plan;
    int input_count, output_count;
    int32_t *inputs, *outputs; /* indices of values */
    int32_t workspace;         /* value, or -1 */
    uint32_t traced;           /* what the trace knows it by */
    int stream;
    int await_count;
    int32_t *awaits; /* instructions of other streams that must have finished */
    bool signals;    /* some other stream awaits it */
    bool host;       /* its kernel wants host memory: another device's operands are copied for it */
} tutti_instruction;

typedef struct tutti_program_variable {
    tutti_piece *piece;
    bool read;    /* its value before the commit is used */
    bool updated; /* written in the commit */
    bool keep;    /* the update needs the old value */
} tutti_program_variable;

typedef struct tutti_program_result {
    int32_t value;
    bool after_commit; /* to be copied when the commit is done */
    bool copy;         /* its value lies in memory that is not the result's own */
} tutti_program_result;

/* A target that has more runs on so many of them. */
#define TUTTI_MAX_STREAMS 8

typedef struct tutti_program {
    tutti_arena arena; /* of all the arrays here */
    tutti_graph *graph;
    const tutti_device *device;
    size_t value_count, instruction_count, commit_at;
    size_t checked_at; /* from here to the commit nothing that streams run can fail */
    tutti_program_value *values;
    tutti_instruction *instructions;
    int constant_count, variable_count, queue_count, input_count, result_count, dynamic_count;
    tutti_tensor **constants;
    tutti_program_variable *variables;
    tutti_queue **queues;
    tutti_program_result *results;
    size_t arena_size, shared_size;
    size_t arena_bound; /* most bytes that are wanted at once: no plan of this order takes less */
    const tutti_shared_memory *shared;
    bool shares;   /* values that are exchanged lie side by side in memory of their own */
    bool updates;  /* some variable is written */
    bool shadows;  /* new values are made before the commit, from those of the snapshot */
    bool fallible; /* something before the commit that streams run can fail */
    int32_t (*clock)[TUTTI_MAX_STREAMS]; /* of streams.c; NULL with one stream */
} tutti_program;

/* Lowers a partition for a device that runs kernels: order, aliases, kernels, streams, memory. */
tutti_status tutti__program_create(const tutti_device *device, const tutti_partition *partition,
                                   tutti_program **ret);
void tutti__program_destroy(tutti_program *program); /* NULL is fine */
/* Of the graph with its constants' bytes, and of the kernels' names, versions and instruction sets:
 * as much work as reading all constants, so nothing on the way to a first answer asks for it. */
uint64_t tutti__program_hash(const tutti_program *program);
void tutti__program_print(const tutti_program *program, tutti_text *text);
/* Behind tutti_executable_table.usage: what one run has in use; added to *usage. */
void tutti__program_usage(const tutti_program *program, tutti_usage *usage);

/* Parts of lowering, in the order they run. */
tutti_status tutti__program_order(tutti_program *program, const tutti_partition *partition);
tutti_status tutti__program_kernels(tutti_program *program, bool deterministic);
tutti_status tutti__program_streams(tutti_program *program);
tutti_status tutti__program_memory(tutti_program *program);

/* What follows an update, by node id: here, or on another device that it receives from. */
void tutti__find_after_update(const tutti_graph *graph, bool *ret_late);
/* Whether a node and all that follows it are late: it updates, or comes late from another device.
 */
bool tutti__makes_after_update(const tutti_node *node);
/* Whether a control edge, from `before` to `node`, only keeps the order in which devices send,
 * receive and meet (passes/transfer.c): the node does not follow what `before` follows. */
bool tutti__keeps_order(const tutti_node *node, const tutti_node *before);
/* Whether something that follows an update can fail (late: by node id), so that updates must go to
 * copies until it has not. Transfers are left out: they fail with the device they wait for. */
bool tutti__fails_after_update(const tutti_graph *graph, const bool *late);

/* Whether a kernel of the node's operator may fail on bad values: of one that is fused, some
 * operator of its body. */
bool tutti__node_may_fail(const tutti_node *node);
/* Whether an instruction before the commit may fail on a stream. One of a gradient cannot whose
 * operator has passed before, with the same places in as many rows. */
bool tutti__may_fail_on_stream(const tutti_program *program, size_t instruction);

/* Whether instruction `a` has finished before `b` starts in every run. */
bool tutti__happens_before(const tutti_program *program, int32_t a, int32_t b);

/* The call of an instruction, whose inputs and then outputs are `views`: where these stand, and its
 * workspace, is for whoever runs it to fill in. */
tutti_kernel_call tutti__instruction_call(const tutti_program *program,
                                          const tutti_instruction *instruction, tutti_view *views,
                                          void *context);

/* Kernel that copies input 0's bytes to output 0. */
tutti_status tutti__copy_bytes(const tutti_kernel_call *call);

/* For whoever runs a program, or a whole partition. */

/* The variable that a node of operator "variable" names, found in the state or made there. */
tutti_status tutti__node_variable(tutti_state *state, const tutti_node *node,
                                  tutti_state_variable **ret);
/* The piece on this device of the variable that a node of operator "variable" names, found or made.
 */
tutti_status tutti__bind_variable(tutti_state *state, const tutti_device *device,
                                  const tutti_node *node, tutti_piece **ret);

/* A partition of the run has taken the values of its variables, all of one moment: said once by
 * each that got so far. */
void tutti__run_taken(tutti_run *run);
/* The run no longer keeps commits from beginning, whoever has yet to take values. */
void tutti__run_let_go(tutti_run *run);

/* UNINITIALIZED: that variable of the graph has no value; where it was built stands there too. */
tutti_status tutti__variable_missing(const tutti_graph *graph, const char *name);
/* A reference to the present value of every variable, NULL where there is none yet; UNINITIALIZED
 * names one that the program needs. What was taken is the caller's to drop, also on failure. Says
 * tutti__run_taken. */
tutti_status tutti__program_snapshot(const tutti_program *program, tutti_run *run,
                                     tutti_tensor **ret_snapshots);
/* A commit went so: variables that the program updates are torn, neither old nor new, when it
 * failed. */
void tutti__program_committed(const tutti_program *program, tutti_status status);
/* Releases tensors and forgets them; entries may be NULL. */
void tutti__tensors_drop(int count, tutti_tensor **tensors);
/* Behind tutti_kernel_call_allocate in an instruction's kernel: a host tensor of the pool in
 * dynamic.h, kept in the context's `dynamic`. */
tutti_status tutti__program_allocate(const tutti_program *program, size_t instruction,
                                     const tutti_kernel_call *call, int index, int rank,
                                     const int64_t *dims);
/* A result whose size depends on data (retained); INVALID names the operator whose kernel did not
 * allocate it. */
tutti_status tutti__program_dynamic(const tutti_program *program, const tutti_context *context,
                                    int result, tutti_tensor **ret);
/* Behind a kernel's `give`: the output takes a host tensor's elements; strings stay with the
 * tensor, which the context then keeps. Not for instructions of several threads. */
tutti_status tutti__program_give(const tutti_program *program, size_t instruction,
                                 const tutti_kernel_call *call, int index, tutti_tensor *tensor);
/* After a run: drops the context's `dynamic` and `kept`; views of dynamic outputs are as planned
 * again. */
void tutti__program_forget(const tutti_program *program, const tutti_kernel_call *calls,
                           tutti_context *context);

#endif
