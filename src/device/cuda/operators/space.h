/* space.h: the elements of an element-wise node, collapsed to few dimensions, and how each input
 * reaches them. */
#ifndef TUTTI_CUDA_SPACE_H
#define TUTTI_CUDA_SPACE_H

#include "device/cuda/operators/body.h"

typedef enum tutti_cuda_step {
    TUTTI_CUDA_LINEAR, /* element i of the space is element i */
    TUTTI_CUDA_ALWAYS, /* one for all */
    TUTTI_CUDA_ALONG,  /* strided, and dense along the last dimension */
    TUTTI_CUDA_ACROSS  /* strided, and the same along the last dimension */
} tutti_cuda_step;

typedef struct tutti_cuda_space {
    int64_t count;
    int vector; /* elements that a thread takes at once */
    bool wide;  /* indices need 64 bits */
    tutti_cuda_shape shape;
    tutti_cuda_step step[TUTTI_CUDA_SOURCES];
    tutti_cuda_places places[TUTTI_CUDA_SOURCES];
} tutti_cuda_space;

/* False when an input does not broadcast to what the body goes over. With `last` the last dimension
 * is the body's columns and is not joined with others. */
bool tutti__cuda_space_make(const tutti_cuda_body *body, const tutti_infer *node, bool last,
                            tutti_cuda_space *ret);
bool tutti__cuda_space_strides(const tutti_cuda_space *space, int source);

/* Text shared by generated kernels: the struct of strides, the statement that gives the offset `oK`
 * of each strided input of index `i`, and the kernel's parameters. */
void tutti__cuda_space_write(const tutti_cuda_space *space, const tutti_cuda_body *body,
                             tutti_text *text);
void tutti__cuda_space_parameters(const tutti_infer *node, tutti_text *text);
/* Fills the struct; ret is at least 8 * (RANK + sources * RANK) bytes. */
void tutti__cuda_space_fill(const tutti_cuda_space *space, const tutti_cuda_body *body, void *ret);

enum { TUTTI_CUDA_SPACE_BYTES = 8 * TUTTI_MAX_RANK * (TUTTI_CUDA_SOURCES + 1) };

#endif
