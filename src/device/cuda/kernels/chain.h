/* chain.h: element-wise operators in one kernel, its text written for them: every input is read
 * once, every output written once, 16 bytes at a time, and what is between them stays in registers,
 * in f32. */
#ifndef TUTTI_CUDA_CHAIN_H
#define TUTTI_CUDA_CHAIN_H

#include "base/container.h"
#include "device/cuda/kernels/kernels.h"

enum { TUTTI_CUDA_CHAIN_INPUTS = 16, TUTTI_CUDA_CHAIN_OUTPUTS = 8, TUTTI_CUDA_CHAIN_STEPS = 256 };

/* How an input's elements belong to the chain's. */
typedef enum tutti_cuda_spread {
    TUTTI_CUDA_EACH,   /* one for each */
    TUTTI_CUDA_ROW,    /* element i % width */
    TUTTI_CUDA_COLUMN, /* element i / width */
    TUTTI_CUDA_ONE,    /* one for all */
} tutti_cuda_spread;

/* Values are numbered: the inputs, then the steps. */
typedef struct tutti_cuda_chain_step {
    const char *op; /* "add", "gelu"; "constant" takes `constant` */
    int a, b, c;
    double constant;
} tutti_cuda_chain_step;

typedef struct tutti_cuda_chain {
    int64_t width; /* of rows; 0 where no input is spread by rows or columns */
    int input_count, step_count, output_count;
    struct {
        tutti_cuda_type type;
        tutti_cuda_spread spread;
    } inputs[TUTTI_CUDA_CHAIN_INPUTS];
    struct {
        tutti_cuda_type type;
        int value;
    } outputs[TUTTI_CUDA_CHAIN_OUTPUTS];
    const tutti_cuda_chain_step *steps;
} tutti_cuda_chain;

/* The text of the kernel. TUTTI_UNSUPPORTED for an operator it does not know; TUTTI_INVALID for a
 * step that reads a value which is not there yet. */
tutti_status tutti__cuda_chain_text(const tutti_cuda_chain *chain, tutti_text *text);

/* Runs it over `count` elements (a multiple of width); pointers as in the chain. An output may be
 * the memory of an input of its type that is spread TUTTI_CUDA_EACH. */
tutti_status tutti__cuda_chain_run(tutti_cuda_stream on, const char *text, int64_t count,
                                   int argument_count, const tutti_cu_pointer *arguments);

#endif
