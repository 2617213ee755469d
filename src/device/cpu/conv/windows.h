/* windows.h: how a direct convolution walks its windows, and padding of its input.
 *
 * Outputs are cut into phases. Those of a phase, first + step * u for u < count along each axis,
 * use the same taps of the kernel. Forward there is one phase. Of the gradient of x there is one
 * for each remainder of the position by the stride, so that no zeros are multiplied. */
#ifndef TUTTI_DEVICE_CPU_CONV_WINDOWS_H
#define TUTTI_DEVICE_CPU_CONV_WINDOWS_H

#include "ops/network/window.h"
#include "program/kernel.h"

/* Height is index 0, width 1. A window is walked in runs: stretches of input without gaps. Steps
 * and offsets are in floats of padded input. */
typedef struct tutti_conv_phase {
    int64_t first[2], step[2], count[2];
    int64_t base, row, column; /* input of u = (0, 0), and from one u to the next */
    int64_t runs, length;      /* runs 0: the outputs are zeros */
    int64_t cells;             /* of the kernel that are used: runs * length / channels */
    int64_t first_cell;        /* of all phases together */
    const int64_t *offset;     /* of each run, from the input of its output */
    const int64_t *cell;       /* i * size[1] + j of each cell used, in the order of the walk */
} tutti_conv_phase;

typedef struct tutti_conv_windows {
    int64_t batch, channels, filters;
    int64_t from[2], before[2], in[2]; /* input as it comes, zeros before it, padded input */
    int64_t out[2];
    int64_t image;  /* floats of one padded image */
    int64_t padded; /* floats of padded input, a multiple of 16; 0 when it is used as it is */
    int64_t cells;  /* of the kernel */
    int64_t phases;
    tutti_conv_phase *phase;
} tutti_conv_windows;

/* Of y = conv2d(x, kernel), or of dx = conv2d_backward_input(kernel, grad), where grad is the
 * input. One block of memory, for free(). */
tutti_status tutti__conv_windows(const tutti_convolution *c, bool backward,
                                 tutti_conv_windows **ret);
/* The same without its phases, for sizes: only `phase` is not filled in. */
tutti_conv_windows tutti__conv_windows_sizes(const tutti_convolution *c, bool backward);

/* Pads into `to`, or returns x itself when there is nothing to pad. */
const float *tutti__conv_pad(const tutti_kernel_call *call, const tutti_conv_windows *w,
                             const float *x, float *to);

/* Whether padded inputs and kernels have less than 2^48 floats, so that nothing which is counted of
 * them overflows. Padding makes them larger than tensors whose sizes were checked. */
bool tutti__conv_countable(const tutti_convolution *c);

/* Shapes of the three operators from a query; false where these kernels do not apply. x, kernel, y:
 * which input each is, -1 for the output. */
bool tutti__conv_query(const tutti_kernel_query *query, int x, int kernel, int y,
                       tutti_convolution *ret);
/* The same with groups, and of two axes or three. */
bool tutti__conv_shapes(const tutti_kernel_query *query, int x, int kernel, int y,
                        tutti_convolution *ret);

#endif
