/* layer.h: convolutions with what follows them, as patterns hand them over. */
#ifndef TUTTI_DEVICE_CPU_CONV_LAYER_H
#define TUTTI_DEVICE_CPU_CONV_LAYER_H

#include "device/cpu/tile/tile.h"
#include "graph/graph.h"
#include "ops/network/window.h"
#include "program/kernel.h"

/* y = f(conv2d(x, kernel) + bias), f the identity or relu; with a pool p = max_pool2d(y), whose
 * windows stand side by side and begin at the first pixel. */
typedef struct tutti_conv_layer {
    tutti_convolution shape;
    const tutti_attr *attrs; /* of the convolution */
    int attr_count;
    int x, kernel, bias; /* which inputs they are */
    bool relu, pooled;
    int map, pool; /* which outputs y and p are; -1: not wanted */
    tutti_windows windows;
} tutti_conv_layer;

/* A fused body of the pattern taken apart; false where it is something else. */
bool tutti__conv_layer(const tutti_infer *fused, const char *pattern, tutti_conv_layer *ret);

/* What inference makes of a layer: y = g(f(conv2d(x, kernel) + bias) + residual), f bounds, g
 * bounds or any function of one element. Without a residual, f is the identity when g is no bounds.
 */
typedef struct tutti_conv_chain {
    tutti_convolution shape;
    int x, kernel, bias, residual; /* which inputs they are; -1: none */
    float low[2], high[2];         /* bounds before and after the residual is added */
    tutti_tile_loop *loop;         /* g when it is no bounds, else NULL */
    double params[TUTTI_TILE_PARAMS];
} tutti_conv_chain;

/* A fused body of the pattern conv2d_chain taken apart; false where it is something else. */
bool tutti__conv_chain(const tutti_infer *fused, tutti_conv_chain *ret);

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
