/* assign.h: what assign, assign_add and assign_sub share, and the scatter_ operators. */
#ifndef TUTTI_OPS_STATE_ASSIGN_H
#define TUTTI_OPS_STATE_ASSIGN_H

#include "ops/state/state.h"

/* What is written where `old` stood. */
typedef enum tutti_combine {
    TUTTI_COMBINE_SET,
    TUTTI_COMBINE_ADD,
    TUTTI_COMBINE_SUB
} tutti_combine;

/* Inputs (variable, value) of one type; output the variable's. */
tutti_status tutti__infer_assign(tutti_infer *node);
/* The same, but the elements must be numbers. */
tutti_status tutti__infer_assign_numbers(tutti_infer *node);
/* Element i of the variable and the value, for all i; then output 0 = the variable. */
tutti_status tutti__assign(const tutti_kernel_call *call, tutti_combine combine);
/* Variable, value and output cut along one axis. */
int tutti__split_assign(const tutti_infer *node, int capacity, tutti_split *ret);

/* Inputs (variable, indices, rows). */
tutti_status tutti__infer_scatter(tutti_infer *node);
tutti_status tutti__infer_scatter_numbers(tutti_infer *node);
/* Checks every index before it writes; then output 0 = the variable. */
tutti_status tutti__scatter(const tutti_kernel_call *call, tutti_combine combine);
/* Variable, rows and output cut along any axis but the variable's first. */
int tutti__split_scatter(const tutti_infer *node, int capacity, tutti_split *ret);

#endif
