/* shape.h: the geometry of a direct convolution, and padding of its input. */
#ifndef TUTTI_DEVICE_CPU_CONV_SHAPE_H
#define TUTTI_DEVICE_CPU_CONV_SHAPE_H

#include "ops/network/window.h"
#include "program/kernel.h"

/* Steps are in floats. Height is index 0, width 1. */
typedef struct tutti_direct_conv {
    int64_t batch, channels, filters;
    int64_t in[2]; /* padded */
    int64_t out[2], size[2], stride[2], dilation[2];
    int64_t taps;              /* size[0] size[1] channels */
    int64_t image, row, pixel; /* from one image, input row, output column to the next, in x */
    int64_t runs, run_length,
        run_step; /* a row of the window is `runs` stretches of x without gaps */
} tutti_direct_conv;

/* How input is laid out for it: element (h, w) goes to (before + h * spread), elsewhere zeros. */
typedef struct tutti_conv_padding {
    int64_t from[2], before[2], spread[2];
    bool needed;
} tutti_conv_padding;

/* y = conv2d(x, kernel). */
void tutti__direct_forward(const tutti_convolution *c, tutti_direct_conv *ret,
                           tutti_conv_padding *ret_padding);
/* dx = conv2d_backward_input(kernel, grad): a convolution over grad, spread by the stride. */
void tutti__direct_backward(const tutti_convolution *c, tutti_direct_conv *ret,
                            tutti_conv_padding *ret_padding);

/* Floats that padded input takes; 0 when it is used as it is. */
int64_t tutti__conv_padded_size(const tutti_direct_conv *c, const tutti_conv_padding *padding);
/* Pads into `to`, or returns x itself when there is nothing to pad. */
const float *tutti__conv_pad(const tutti_call *call, const tutti_direct_conv *c,
                             const tutti_conv_padding *padding, const float *x, float *to);

/* Shapes of the three operators from a query; false where these kernels do not apply. */
bool tutti__conv_query(const tutti_kernel_query *query, int x, int kernel, int y,
                       tutti_convolution *ret);

#endif
