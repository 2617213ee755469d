/* window.h: windows that slide over the height and width of [batch, height, width, channels], or
 * over the depth, height and width of [batch, depth, height, width, channels].
 *
 * Tap k of the window at output o reads input  i = o * stride - before + k * dilation  where
 * 0 <= i < in, and padding elsewhere. With e = (size - 1) * dilation + 1:
 *   valid     before = after = 0    out = floor((in - e) / stride) + 1
 *   explicit  before, after given   out = floor((in + before + after - e) / stride) + 1
 *   same      out = ceil(in / stride), before = floor(max((out - 1) * stride + e - in, 0) / 2)
 * Explicit pads are [top, bottom, left, right], of volumes [front, back, top, bottom, left, right].
 */
#ifndef TUTTI_OPS_NETWORK_WINDOW_H
#define TUTTI_OPS_NETWORK_WINDOW_H

#include "ops/network/network.h"

enum { TUTTI_WINDOW_AXES = 3 };

/* Of two axes index 0 is height, 1 is width; of three 0 is depth. `in` and `out` are TUTTI_ANY
 * where not known. */
typedef struct tutti_windows {
    int axes;
    int64_t in[TUTTI_WINDOW_AXES], out[TUTTI_WINDOW_AXES], size[TUTTI_WINDOW_AXES];
    int64_t stride[TUTTI_WINDOW_AXES], dilation[TUTTI_WINDOW_AXES], before[TUTTI_WINDOW_AXES];
} tutti_windows;

/* The input index that tap 0 of an output would read; tap k reads k * dilation further on. */
static inline int64_t tutti__window_start(const tutti_windows *w, int axis, int64_t out)
{
    return out * w->stride[axis] - w->before[axis];
}

/* The taps [first, end) of an output that read input; the others read padding. */
void tutti__window_taps(const tutti_windows *w, int axis, int64_t out, int64_t *ret_first,
                        int64_t *ret_end);

/* From attributes strides, which says how many axes there are, padding, pads and, where the
 * operator has it, dilations. `in` and `size` give each axis; TUTTI_ANY where not known. The
 * attributes were checked. */
tutti_windows tutti__windows(const tutti_attr *attrs, int attr_count, const int64_t *in,
                             const int64_t *size);

/* Windows over two axes as windows over three: a depth of one. Those over three as they are. */
tutti_windows tutti__windows_volume(const tutti_windows *flat);

/* Checks the attributes, and that each window holds at least one tap inside padded input. */
tutti_status tutti__windows_infer(const tutti_infer *node, int axes, const int64_t *in,
                                  const int64_t *size, tutti_windows *ret);

/* The largest input that padding "same" makes `out` outputs of; else the smallest that makes so
 * many; and `more` elements, but at least 0. TUTTI_ANY where not known. Checks the attributes. */
tutti_status tutti__windows_natural(const tutti_infer *node, int axes, const int64_t *out,
                                    const int64_t *size, const int64_t *more, int64_t *ret_in);

/* Attribute `name`, a list of `count` integers, each in [lowest, 2^31). */
tutti_status tutti__need_ints(const tutti_infer *node, const char *name, int count, int64_t lowest,
                              const int64_t **ret);

/* Convolution: x [batch, in…, cin], kernel [size…, cin / groups, cout], y [batch, out…, cout];
 * groups cut channels into consecutive parts. */
typedef struct tutti_convolution {
    tutti_windows windows;
    int64_t batch, groups, cin, cout; /* channels of one group */
} tutti_convolution;

/* The geometry from known shapes. */
tutti_convolution tutti__convolution(const tutti_attr *attrs, int attr_count, const int64_t *x,
                                     const int64_t *kernel, const int64_t *y);

/* The attributes that convolution operators share, as a table's rows. */
#define CONVOLUTION_ATTRS_(ones, pads)                                                             \
    {"strides", TUTTI_ATTR_INTS, ones}, {"dilations", TUTTI_ATTR_INTS, ones},                      \
        {"padding", TUTTI_ATTR_STRING, "valid"}, {"pads", TUTTI_ATTR_INTS, pads},                  \
    {                                                                                              \
        "groups", TUTTI_ATTR_INT, "1"                                                              \
    }
#define CONVOLUTION_ATTRS CONVOLUTION_ATTRS_("[1,1]", "[0,0,0,0]")
#define CONVOLUTION3D_ATTRS CONVOLUTION_ATTRS_("[1,1,1]", "[0,0,0,0,0,0]")
#define SAME_CONVOLUTION(node)                                                                     \
    SAME_ATTR(node, "strides"), SAME_ATTR(node, "dilations"), SAME_ATTR(node, "padding"),          \
        SAME_ATTR(node, "pads"), SAME_ATTR(node, "groups")

/* The rules of conv2d and conv3d, which differ in their number of axes: y = conv(x, kernel). */
tutti_status tutti__conv_infer(tutti_infer *node, int axes);
tutti_status tutti__conv_gradient(tutti_gradient_call *node);
void tutti__conv_cost(const tutti_infer *node, tutti_cost *ret);
int tutti__conv_split(const tutti_infer *node, int capacity, tutti_split *ret);
tutti_status tutti__conv_reference(const tutti_kernel_call *call);

/* Of dx = conv_backward_input(kernel, grad[, x]). x's sizes are those of x, or attribute "size": a
 * size s > 0 is meant as it is; s <= 0 is the natural size (see above) and -s more. */
tutti_status tutti__conv_input_infer(tutti_infer *node, int axes);
tutti_status tutti__conv_input_gradient(tutti_gradient_call *node);
void tutti__conv_input_cost(const tutti_infer *node, tutti_cost *ret);
int tutti__conv_input_split(const tutti_infer *node, int capacity, tutti_split *ret);
tutti_status tutti__conv_input_reference(const tutti_kernel_call *call);

/* Of dkernel = conv_backward_kernel(x, grad[, kernel]). */
tutti_status tutti__conv_kernel_infer(tutti_infer *node, int axes);
tutti_status tutti__conv_kernel_gradient(tutti_gradient_call *node);
void tutti__conv_kernel_cost(const tutti_infer *node, tutti_cost *ret);
int tutti__conv_kernel_split(const tutti_infer *node, int capacity, tutti_split *ret);
tutti_status tutti__conv_kernel_reference(const tutti_kernel_call *call);

/* What these share. 2 FLOPs for every output, tap and input channel of its group. */
double tutti__convolution_flops(const tutti_type *kernel, const tutti_type *y);

/* Calls `visit` for every output position and tap that reads input, with the offsets of the first
 * channel in x, kernel and y. */
typedef void tutti_tap_fn(const tutti_convolution *c, void *context, int64_t x, int64_t kernel,
                          int64_t y);
void tutti__convolution_each(const tutti_convolution *c, tutti_tap_fn *visit, void *context);

/* Nodes of the three convolution operators of as many axes as `node` has, with its attributes.
 * `like`, whose sizes (of x or of the kernel) are wanted, joins the inputs only where they are not
 * known yet. */
tutti_sym tutti__conv_same(const tutti_gradient_call *node, tutti_sym x, tutti_sym kernel);
tutti_sym tutti__conv_input_same(const tutti_gradient_call *node, tutti_sym kernel, tutti_sym grad,
                                 tutti_sym like);
tutti_sym tutti__conv_kernel_same(const tutti_gradient_call *node, tutti_sym x, tutti_sym grad,
                                  tutti_sym like);

/* Sizes along the windows' axes for a backward operator: from attribute "size", whose numbers are
 * at least `lowest`, or from the last input, which then has index `like_index` and these axes from
 * first_axis on. */
tutti_status tutti__size_infer(const tutti_infer *node, int axes, int64_t lowest, int like_index,
                               int first_axis, int64_t *ret_size);

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
tutti_status tutti__pool_each(const tutti_windows *w, const int64_t *x, tutti_arena *scratch,
                              tutti_pool_fn *visit, void *context);
/* FLOPs: one for every tap of every output. */
void tutti__pool_cost(const tutti_infer *node, const tutti_type *pooled, tutti_cost *ret);
/* Ways to cut: every input and output along batch, or along channels. */
int tutti__pool_split(const tutti_infer *node, int capacity, tutti_split *ret);

#endif
