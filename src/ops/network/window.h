/* window.h: windows that slide over the height and width of [batch, height, width, channels].
 *
 * Tap k of the window at output o reads input  i = o * stride - before + k * dilation  where
 * 0 <= i < in, and padding elsewhere. With e = (size - 1) * dilation + 1:
 *   valid     before = after = 0    out = floor((in - e) / stride) + 1
 *   explicit  before, after given   out = floor((in + before + after - e) / stride) + 1
 *   same      out = ceil(in / stride), before = floor(max((out - 1) * stride + e - in, 0) / 2)
 * Explicit pads are [top, bottom, left, right]. */
#ifndef TUTTI_OPS_NETWORK_WINDOW_H
#define TUTTI_OPS_NETWORK_WINDOW_H

#include "ops/network/network.h"

/* Index 0 is height, 1 is width. `in` and `out` are TUTTI_ANY where not known. */
typedef struct tutti_windows {
    int64_t in[2], out[2], size[2], stride[2], dilation[2], before[2];
} tutti_windows;

/* The input index that tap 0 of an output would read; tap k reads k * dilation further on. */
static inline int64_t tutti__window_start(const tutti_windows *w, int axis, int64_t out)
{
    return out * w->stride[axis] - w->before[axis];
}

/* The taps [first, end) of an output that read input; the others read padding. */
void tutti__window_taps(const tutti_windows *w, int axis, int64_t out, int64_t *ret_first,
                        int64_t *ret_end);

/* From attributes strides, padding, pads and, where the operator has it, dilations. `in` and `size`
 * give height and width; TUTTI_ANY where not known. The attributes were checked. */
tutti_windows tutti__windows(const tutti_attr *attrs, int attr_count, const int64_t in[2],
                             const int64_t size[2]);

/* Checks the attributes, and that each window holds at least one tap inside padded input. */
tutti_status tutti__windows_infer(const tutti_infer *node, const int64_t in[2],
                                  const int64_t size[2], tutti_windows *ret);

/* Attribute `name`, a list of `count` integers, each in [lowest, 2^31). */
tutti_status tutti__need_ints(const tutti_infer *node, const char *name, int count, int64_t lowest,
                              const int64_t **ret);

/* Convolution: x [batch, in, in, cin], kernel [size, size, cin / groups, cout],
 * y [batch, out, out, cout]; groups cut channels into consecutive parts. */
typedef struct tutti_convolution {
    tutti_windows windows;
    int64_t batch, groups, cin, cout; /* channels of one group */
} tutti_convolution;

/* The geometry from known shapes. */
tutti_convolution tutti__convolution(const tutti_attr *attrs, int attr_count, const int64_t *x,
                                     const int64_t *kernel, const int64_t *y);
/* 2 FLOPs for every output, tap and input channel of its group. */
double tutti__convolution_flops(const tutti_type *kernel, const tutti_type *y);

/* Calls `visit` for every output position and tap that reads input, with the offsets of the first
 * channel in x, kernel and y. */
typedef void tutti_tap_fn(const tutti_convolution *c, void *context, int64_t x, int64_t kernel,
                          int64_t y);
void tutti__convolution_walk(const tutti_convolution *c, tutti_tap_fn *visit, void *context);

/* The attributes that convolution operators share, as a table's rows. */
#define CONVOLUTION_ATTRS                                                                          \
    {"strides", TUTTI_ATTR_INTS, "[1,1]"}, {"dilations", TUTTI_ATTR_INTS, "[1,1]"},                \
        {"padding", TUTTI_ATTR_STRING, "valid"}, {"pads", TUTTI_ATTR_INTS, "[0,0,0,0]"},           \
    {                                                                                              \
        "groups", TUTTI_ATTR_INT, "1"                                                              \
    }
#define SAME_CONVOLUTION(node)                                                                     \
    SAME_ATTR(node, "strides"), SAME_ATTR(node, "dilations"), SAME_ATTR(node, "padding"),          \
        SAME_ATTR(node, "pads"), SAME_ATTR(node, "groups")

/* Nodes of the three convolution operators with the attributes of `node`. `like`, whose height and
 * width (of x or of the kernel) are wanted, joins the inputs only where they are not known yet. */
tutti_sym tutti__conv2d_same(const tutti_gradient *node, tutti_sym x, tutti_sym kernel);
tutti_sym tutti__conv2d_input_same(const tutti_gradient *node, tutti_sym kernel, tutti_sym grad,
                                   tutti_sym like);
tutti_sym tutti__conv2d_kernel_same(const tutti_gradient *node, tutti_sym x, tutti_sym grad,
                                    tutti_sym like);

/* Height and width for a backward operator: from attribute "size", or from the last input, which
 * then has index `like_index` and axes first_axis, first_axis + 1. */
tutti_status tutti__size_infer(const tutti_infer *node, int like_index, int first_axis,
                               int64_t ret_size[2]);

/* Pooling: the attributes window, strides ([0,0]: the window's), padding, pads. */
#define POOL_ATTRS                                                                                 \
    {"window", TUTTI_ATTR_INTS, "[2,2]"}, {"strides", TUTTI_ATTR_INTS, "[0,0]"},                   \
        {"padding", TUTTI_ATTR_STRING, "valid"},                                                   \
    {                                                                                              \
        "pads", TUTTI_ATTR_INTS, "[0,0,0,0]"                                                       \
    }
#define SAME_POOL(node)                                                                            \
    SAME_ATTR(node, "window"), SAME_ATTR(node, "strides"), SAME_ATTR(node, "padding"),             \
        SAME_ATTR(node, "pads")

/* Builder of a pooling operator. */
tutti_sym tutti__pool2d_build(const tutti_op *op, tutti_sym x, const tutti_pool2d_options *given);

/* Checks rank and attributes of a pooling node over input `x`; gives its windows. */
tutti_status tutti__pool_infer(const tutti_infer *node, const tutti_type *x, tutti_windows *ret);
/* The windows from known shapes. */
tutti_windows tutti__pool_windows(const tutti_attr *attrs, int attr_count, const int64_t *x);
/* The type of the pooled output. */
tutti_type tutti__pool_type(const tutti_type *x, const tutti_windows *windows);
/* Calls visit(context, out, first, count, taps) for every output position: `out` and taps[] are
 * offsets of channel 0 in the pooled tensor and in x. */
typedef void tutti_pool_fn(void *context, int64_t channels, int64_t out, int64_t count,
                           const int64_t *taps);
tutti_status tutti__pool_walk(const tutti_windows *w, const int64_t *x, tutti_arena *scratch,
                              tutti_pool_fn *visit, void *context);
/* FLOPs: one for every tap of every output. */
void tutti__pool_cost(const tutti_infer *node, const tutti_type *pooled, tutti_cost *ret);
/* Ways to cut: every input and output along batch, or along channels. */
int tutti__pool_split(const tutti_infer *node, int capacity, tutti_split *ret);

#endif
