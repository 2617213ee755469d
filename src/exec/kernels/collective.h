/* collective.h: how the devices of one process meet along a mesh axis. Everybody gives its input
 * and gets everybody's; each then makes its own output. Sums run over one fixed binary tree of
 * ranks, so that every device gets the same bits. (Engines between processes stand behind the same
 * operators.) */
#ifndef TUTTI_EXEC_KERNELS_COLLECTIVE_H
#define TUTTI_EXEC_KERNELS_COLLECTIVE_H

#include "exec/kernels/host.h"

typedef struct tutti_meeting {
    int rank, size;
    tutti_tensor **all; /* by rank */
} tutti_meeting;

/* Meets the others; the caller ends the meeting. */
tutti_status tutti__meet(const tutti_kernel_call *call, tutti_meeting *ret);
void tutti__meeting_end(tutti_meeting *meeting);

/* The reduction named by attribute "op" over all inputs: a new tensor. */
tutti_status tutti__meeting_reduce(const tutti_kernel_call *call, const tutti_meeting *meeting,
                                   tutti_tensor **ret);

/* Copies piece `from` of `from_count` along `axis` of a tensor to piece `to` of output 0 along
 * `to_axis`: shapes agree but along that axis. */
tutti_status tutti__copy_piece(tutti_tensor *value, int axis, int64_t start, int64_t size,
                               tutti_tensor *into, int into_axis, int64_t into_start);

/* Attribute "dim" and the like as an axis of a tensor of that rank. */
int tutti__dim_attr(const tutti_kernel_call *call, const char *name, int rank);

/* A tensor over output 0. */
tutti_status tutti__borrow_output(const tutti_kernel_call *call, tutti_tensor **ret);

#endif
