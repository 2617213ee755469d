/* body.h: an element-wise node as a list of values: a single operator, or the body of a fused node,
 * which may also hold reductions and operators that work row by row. */
#ifndef TUTTI_DEVICE_CPU_TILE_BODY_H
#define TUTTI_DEVICE_CPU_TILE_BODY_H

#include "device/cpu/tile/tile.h"
#include "program/kernel.h"

typedef enum tutti_body_kind {
    TUTTI_BODY_ELEMENTS, /* every element by itself */
    TUTTI_BODY_ROWS,     /* whole rows along the last axis to whole rows: softmax, layer_norm */
    TUTTI_BODY_REDUCES   /* sum, mean, max, min over some axes */
} tutti_body_kind;

typedef struct tutti_body_value {
    const tutti_op *op; /* NULL for an input or a constant */
    tutti_body_kind kind;
    tutti_type kept; /* not of ELEMENTS: the operand's type with 1 along the axes worked along */
    const tutti_attr *attrs;
    int attr_count;
    int inputs[TUTTI_TILE_INPUTS]; /* indices of values before this one */
    int source;                    /* input or constant: index among the body's sources; else -1 */
    int output;                    /* of the node, or -1 */
    tutti_type type;
} tutti_body_value;

typedef struct tutti_tile_body {
    int value_count, source_count, output_count;
    int row_count;            /* of values that are not ELEMENTS */
    tutti_type full;          /* what tiles are cut from: the operands of these, else output 0 */
    tutti_body_value *values; /* sources first */
    const void **constants;   /* per source: the data of a constant, or NULL for input number i */
    int *result_values;       /* per output of the node, the value that it is */
} tutti_tile_body;

/* Reads the node of a query. *ret_body is from one malloc; free it with free(). UNSUPPORTED when
 * the node is no element-wise work. */
tutti_status tutti__body_read(const tutti_kernel_query *query, tutti_tile_body **ret_body);

#endif
