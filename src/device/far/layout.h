/* layout.h: where a program's values lie in the memory of a run, and what an instruction must know
 * to have finished before it may touch them.
 *
 * The memory of a run is [arena | inputs | results], every value on pages of its own.
 *
 * A stream knows that an instruction has finished when it ran it itself, awaited it, or awaited one
 * whose stream knew. What must be known is worked out here from where the values lie, not from the
 * program's awaits: a wrong await, or memory that was given away too early, leaves an operand
 * closed, and the kernel that touches it ends the process. */
#ifndef TUTTI_DEVICE_FAR_LAYOUT_H
#define TUTTI_DEVICE_FAR_LAYOUT_H

#include "device/far/streams.h"
#include "program/program.h"

/* An input, output or workspace of an instruction. */
typedef struct tutti_far_operand {
    int32_t value;
    bool inside; /* lies in the memory of the run */
    bool writes; /* the kernel writes it: an output, a workspace, a variable that it updates */
    bool fresh;  /* nothing of what was there is read */
    size_t offset, size; /* in the memory of the run */
    /* By stream: one more than the last instruction that must have finished. */
    int32_t need[TUTTI_FAR_STREAMS];
} tutti_far_operand;

typedef struct tutti_far_layout {
    tutti_arena arena; /* of the arrays here */
    size_t size;       /* of the memory of a run, bytes */
    size_t *inputs;    /* by slot: offset */
    size_t *results;   /* by slot: offset */
    size_t *first;     /* by instruction: its first operand: inputs, outputs, workspace */
    tutti_far_operand *operands;
} tutti_far_layout;

/* INTERNAL when the program's memory plan lets a value be written over before it is read. Zero the
 * struct before; free it also after failure. */
tutti_status tutti__far_layout_make(const tutti_program *program, tutti_far_layout *ret);
void tutti__far_layout_free(tutti_far_layout *layout);

/* Where a value begins in the memory of a run; false when it lies elsewhere. */
bool tutti__far_layout_offset(const tutti_far_layout *layout, const tutti_program_value *value,
                              size_t *ret_offset);

#endif
