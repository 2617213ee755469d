/* convolution.c: the geometry of convolutions, the walk over their taps, and the nodes that their
 * gradient rules make; see window.h. */
#include <stdio.h>

#include "ops/network/window.h"

tutti_convolution tutti__convolution(const tutti_attr *attrs, int attr_count, const int64_t *x,
                                     const int64_t *kernel, const int64_t *y)
{
    int64_t groups = tutti_attr_int(attrs, attr_count, "groups");
    tutti_windows windows = tutti__windows(attrs, attr_count, x + 1, kernel);
    return (tutti_convolution){
        .windows = windows,
        .batch = x[0],
        .groups = groups,
        .cin = x[windows.axes + 1] / groups,
        .cout = y[windows.axes + 1] / groups,
    };
}

double tutti__convolution_flops(const tutti_type *kernel, const tutti_type *y)
{
    tutti_type taps = tutti_type_make(kernel->dtype, kernel->rank - 1, kernel->dims);
    return 2 * tutti__elements(&taps) * tutti__elements(y);
}

tutti_windows tutti__windows_volume(const tutti_windows *flat)
{
    if (flat->axes == 3)
        return *flat;
    tutti_windows w = {.axes = 3, .in = {1}, .out = {1}, .size = {1}, .stride = {1}};
    w.dilation[0] = 1;
    for (int axis = 0; axis < 2; axis++) {
        w.in[axis + 1] = flat->in[axis];
        w.out[axis + 1] = flat->out[axis];
        w.size[axis + 1] = flat->size[axis];
        w.stride[axis + 1] = flat->stride[axis];
        w.dilation[axis + 1] = flat->dilation[axis];
        w.before[axis + 1] = flat->before[axis];
    }
    return w;
}

typedef struct tap_walk {
    const tutti_convolution *c;
    tutti_windows w;
    tutti_tap_fn *visit;
    void *context;
} tap_walk;

/* All taps of the window at one output position of image n, whose offset is y, that lie in one
 * plane of the kernel and of the input, both given as the number of planes before them. */
static void walk_plane(const tap_walk *walk, const int64_t position[3], int64_t plane,
                       int64_t kernel_plane, int64_t y)
{
    const tutti_windows *w = &walk->w;
    const tutti_convolution *c = walk->c;
    int64_t x_channels = c->groups * c->cin, y_channels = c->groups * c->cout;
    int64_t ky, ky_end, kx_first, kx_end;
    tutti__window_taps(w, 1, position[1], &ky, &ky_end);
    tutti__window_taps(w, 2, position[2], &kx_first, &kx_end);
    for (; ky < ky_end; ky++) {
        int64_t iy = tutti__window_start(w, 1, position[1]) + ky * w->dilation[1];
        int64_t ix = tutti__window_start(w, 2, position[2]) + kx_first * w->dilation[2];
        for (int64_t kx = kx_first; kx < kx_end; kx++, ix += w->dilation[2])
            walk->visit(c, walk->context, ((plane * w->in[1] + iy) * w->in[2] + ix) * x_channels,
                        ((kernel_plane * w->size[1] + ky) * w->size[2] + kx) * c->cin * y_channels,
                        y);
    }
}

static void walk_image(const tap_walk *walk, int64_t n, int64_t y)
{
    const tutti_windows *w = &walk->w;
    int64_t at[3];
    for (at[0] = 0; at[0] < w->out[0]; at[0]++)
        for (at[1] = 0; at[1] < w->out[1]; at[1]++)
            for (at[2] = 0; at[2] < w->out[2]; at[2]++, y += walk->c->groups * walk->c->cout) {
                int64_t kz, kz_end;
                tutti__window_taps(w, 0, at[0], &kz, &kz_end);
                for (; kz < kz_end; kz++)
                    walk_plane(walk, at,
                               n * w->in[0] + tutti__window_start(w, 0, at[0]) +
                                   kz * w->dilation[0],
                               kz, y);
            }
}

void tutti__convolution_each(const tutti_convolution *c, tutti_tap_fn *visit, void *context)
{
    tap_walk walk = {c, tutti__windows_volume(&c->windows), visit, context};
    int64_t image = walk.w.out[0] * walk.w.out[1] * walk.w.out[2] * c->groups * c->cout;
    for (int64_t n = 0; n < c->batch; n++)
        walk_image(&walk, n, n * image);
}

/* How many axes the windows of a node have. */
static int axes_of(const tutti_gradient_call *node)
{
    const int64_t *strides;
    return tutti_attr_ints(node->attrs, node->attr_count, "strides", &strides);
}

tutti_sym tutti__conv_same(const tutti_gradient_call *node, tutti_sym x, tutti_sym kernel)
{
    tutti_sym inputs[] = {x, kernel};
    tutti_attr attrs[] = {SAME_CONVOLUTION(node)};
    return tutti_apply_op(node->graph, axes_of(node) == 2 ? "conv2d" : "conv3d", 2, inputs,
                          (int)TUTTI_COUNT(attrs), attrs);
}

/* conv<axes>d_backward_<what> on two inputs, with attribute size = dims of `like` from `first_axis`
 * where they are known and not 0, else with `like` as third input. */
static tutti_sym backward_same(const tutti_gradient_call *node, const char *what, tutti_sym a,
                               tutti_sym b, tutti_sym like, int first_axis)
{
    if (!tutti_sym_ok(a) || !tutti_sym_ok(b) || !tutti_sym_ok(like))
        return TUTTI_POISON;
    char op[40];
    int axes = axes_of(node);
    tutti_type type = tutti_sym_type(like);
    const int64_t *size = type.dims + first_axis;
    bool known = true;
    for (int axis = 0; axis < axes; axis++)
        known = known && size[axis] > 0;
    snprintf(op, sizeof op, "conv%dd_backward_%s", axes, what);
    tutti_sym inputs[] = {a, b, like};
    tutti_attr attrs[] = {SAME_CONVOLUTION(node), TUTTI_INTS("size", axes, size)};
    return tutti_apply_op(node->graph, op, known ? 2 : 3, inputs,
                          (int)TUTTI_COUNT(attrs) - (known ? 0 : 1), attrs);
}

tutti_sym tutti__conv_input_same(const tutti_gradient_call *node, tutti_sym kernel, tutti_sym grad,
                                 tutti_sym like)
{
    return backward_same(node, "input", kernel, grad, like, 1);
}

tutti_sym tutti__conv_kernel_same(const tutti_gradient_call *node, tutti_sym x, tutti_sym grad,
                                  tutti_sym like)
{
    return backward_same(node, "kernel", x, grad, like, 0);
}
