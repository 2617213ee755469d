/* body.h: an element-wise node as a list of values: a single operator, or the body of a fused node,
 * which may also hold reductions. */
#ifndef TUTTI_CUDA_BODY_H
#define TUTTI_CUDA_BODY_H

#include "device/cuda/operators/operator.h"

enum { TUTTI_CUDA_OPERANDS = 3, TUTTI_CUDA_SOURCES = 32, TUTTI_CUDA_RESULTS = 16 };

typedef enum tutti_cuda_reach {
    TUTTI_CUDA_FULL, /* one for each element */
    TUTTI_CUDA_ROW,  /* one for each row: behind a reduction of rows */
    TUTTI_CUDA_TOTAL /* a reduction over rows, or over everything */
} tutti_cuda_reach;

typedef struct tutti_cuda_value {
    const tutti_op *op; /* NULL: an input or a constant */
    const tutti_attr *attrs;
    int attr_count;
    int input_count, inputs[TUTTI_CUDA_OPERANDS]; /* values before this one */
    int source;                                   /* number of the input; -1: none */
    double constant;                              /* of one that is neither */
    int64_t whole;                                /* the same of integers */
    bool reduces;
    bool whole_total; /* of a total: one number; else one for each column */
    int phase;        /* how many reductions of rows stand one behind the other before it */
    int total;        /* its number among the totals, or -1 */
    tutti_cuda_reach reach;
    tutti_type type;
} tutti_cuda_value;

typedef struct tutti_cuda_body {
    int count, source_count, output_count;
    int reduction_count, total_count, phase_count;
    bool rounds;     /* values of 16 bits round after each operator: in deterministic mode */
    tutti_type full; /* what the work goes over */
    int64_t rows, columns;
    tutti_cuda_value *values; /* sources first */
    int results[TUTTI_CUDA_RESULTS];
} tutti_cuda_body;

/* From one malloc. NULL when the node is no such work, or holds what has no text. */
tutti_cuda_body *tutti__cuda_body_read(const tutti_infer *node);

/* Whether elementwise.cuh has the operator. */
bool tutti__cuda_has_text(const tutti_op *op);
/* The compiler's options for a body's text. Values that round to bf16 are computed by the chip's
 * own functions (exp, tanh, quotients), whose errors are below that rounding. */
const char *tutti__cuda_body_options(const tutti_cuda_body *body);
/* The statement that makes value i: "const float v3 = settle<bf16>(op_add(v1, v2));" */
void tutti__cuda_body_write(const tutti_cuda_body *body, int i, tutti_text *text);
/* The type a value is computed in: "float". */
const char *tutti__cuda_computed(tutti_dtype dtype);
void tutti__cuda_write_number(tutti_text *text, double value);
/* The text of the kernel of an element-wise node, appended. */
tutti_status tutti__cuda_elementwise_text(const tutti_kernel_query *query, tutti_text *text);

#endif
