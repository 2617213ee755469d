/* layer.h: convolutions with what follows them, as patterns hand them over. */
#ifndef TUTTI_DEVICE_CPU_CONV_LAYER_H
#define TUTTI_DEVICE_CPU_CONV_LAYER_H

#include "graph/graph.h"
#include "ops/network/window.h"
#include "program/kernel.h"

/* y = f(conv2d(x, kernel) + bias), f the identity or relu; with a pool p = max_pool2d(y), whose
 * windows stand side by side and begin at the first pixel. */
typedef struct tutti_conv_layer {
    tutti_convolution shape;
    int x, kernel, bias; /* which inputs they are */
    bool relu, pooled;
    int map, pool; /* which outputs y and p are; -1: not wanted */
    tutti_windows windows;
} tutti_conv_layer;

/* A fused body of the pattern taken apart; false where it is something else. */
bool tutti__conv_layer(const tutti_infer *fused, const char *pattern, tutti_conv_layer *ret);

/* The gradients of kernel and bias of such a layer, from y, x and the gradient of p, which goes to
 * the first maximum of its window where that is above 0. */
typedef struct tutti_conv_layer_gradient {
    tutti_convolution shape;
    int x, y, grad;             /* which inputs they are */
    int kernel_grad, bias_grad; /* which outputs they are; bias -1: not wanted */
    tutti_windows windows;
} tutti_conv_layer_gradient;

bool tutti__conv_layer_gradient(const tutti_infer *fused, const char *pattern,
                                tutti_conv_layer_gradient *ret);

#endif
