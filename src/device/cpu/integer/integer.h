/* integer.h: element-wise loops over integers and bools, one for each element type, in sets of one
 * for each instruction set. They give the bits that the operators' references give: sums and
 * products wrap round. Elements are contiguous; a loop may write its result over an operand.
 *
 * tables: tutti_integer_family */
#ifndef TUTTI_DEVICE_CPU_INTEGER_INTEGER_H
#define TUTTI_DEVICE_CPU_INTEGER_INTEGER_H

#include "device/cpu/tile/tile.h"
#include "program/kernel.h"

/* Loops by the element type of the last operand. */
typedef tutti_tile_loop *tutti_integer_loops[TUTTI_DTYPE_END];

typedef struct tutti_integer_op {
    const char *name; /* of the operator */
    int inputs;
    tutti_integer_loops loops;
    tutti_dtype result; /* (optional) only where the output is of this type */
    /* (optional) sets the bool `y` where an element of `x[0]`, the last operand, is one that the
     * operator refuses. */
    tutti_integer_loops refuses;
    const char *attrs[TUTTI_TILE_PARAMS]; /* floats */
} tutti_integer_op;

typedef struct tutti_integer_family {
    const char *isa;
    const tutti_integer_op *ops; /* ends with a NULL name */
} tutti_integer_family;

/* The row with a loop for the node's types, from the best instruction set this CPU has; NULL when
 * there is none. */
const tutti_integer_op *tutti__integer_find(const tutti_infer *node);

/* Whether an operator has loops for some types. */
bool tutti__integer_covers(const tutti_op *op);

#endif
