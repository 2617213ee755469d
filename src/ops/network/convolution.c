/* convolution.c: what conv2d and its two backward operators share; see window.h. */
#include "ops/network/window.h"

tutti_convolution tutti__convolution(const tutti_attr *attrs, int attr_count, const int64_t *x,
                                     const int64_t *kernel, const int64_t *y)
{
    int64_t groups = tutti_attr_int(attrs, attr_count, "groups");
    return (tutti_convolution){
        .windows = tutti__windows(attrs, attr_count, x + 1, kernel),
        .batch = x[0],
        .groups = groups,
        .cin = x[3] / groups,
        .cout = y[3] / groups,
    };
}

double tutti__convolution_flops(const tutti_type *kernel, const tutti_type *y)
{
    tutti_type taps = tutti_type_make(kernel->dtype, 3, kernel->dims);
    return 2 * tutti__elements(&taps) * tutti__elements(y);
}

/* All taps of the window at one output position. */
static void walk_window(const tutti_convolution *c, const int64_t position[3], tutti_tap_fn *visit,
                        void *context)
{
    const tutti_windows *w = &c->windows;
    int64_t x_channels = c->groups * c->cin, y_channels = c->groups * c->cout;
    int64_t n = position[0], row = position[1], column = position[2];
    int64_t y = ((n * w->out[0] + row) * w->out[1] + column) * y_channels;
    int64_t ky, ky_end, kx_first, kx_end;
    tutti__window_taps(w, 0, row, &ky, &ky_end);
    tutti__window_taps(w, 1, column, &kx_first, &kx_end);
    for (; ky < ky_end; ky++) {
        int64_t iy = tutti__window_start(w, 0, row) + ky * w->dilation[0];
        int64_t ix = tutti__window_start(w, 1, column) + kx_first * w->dilation[1];
        for (int64_t kx = kx_first; kx < kx_end; kx++, ix += w->dilation[1])
            visit(c, context, ((n * w->in[0] + iy) * w->in[1] + ix) * x_channels,
                  (ky * w->size[1] + kx) * c->cin * y_channels, y);
    }
}

void tutti__convolution_walk(const tutti_convolution *c, tutti_tap_fn *visit, void *context)
{
    for (int64_t n = 0; n < c->batch; n++)
        for (int64_t row = 0; row < c->windows.out[0]; row++)
            for (int64_t column = 0; column < c->windows.out[1]; column++)
                walk_window(c, (int64_t[]){n, row, column}, visit, context);
}

tutti_sym tutti__conv2d_same(const tutti_gradient *node, tutti_sym x, tutti_sym kernel)
{
    tutti_sym inputs[] = {x, kernel};
    tutti_attr attrs[] = {SAME_CONVOLUTION(node)};
    return tutti_apply_op(node->graph, "conv2d", 2, inputs, (int)TUTTI_COUNT(attrs), attrs);
}

/* Operator `op` on two inputs, with attribute size = dims[0], dims[1] of `like` from `first_axis`
 * where they are known, else with `like` as third input. */
static tutti_sym backward_same(const tutti_gradient *node, const char *op, tutti_sym a, tutti_sym b,
                               tutti_sym like, int first_axis)
{
    if (!tutti_sym_ok(a) || !tutti_sym_ok(b) || !tutti_sym_ok(like))
        return TUTTI_NO_SYM;
    tutti_type type = tutti_sym_type(like);
    const int64_t *size = type.dims + first_axis;
    bool known = size[0] != TUTTI_ANY && size[1] != TUTTI_ANY;
    tutti_sym inputs[] = {a, b, like};
    tutti_attr attrs[] = {SAME_CONVOLUTION(node), TUTTI_INTS("size", 2, size)};
    return tutti_apply_op(node->graph, op, known ? 2 : 3, inputs,
                          (int)TUTTI_COUNT(attrs) - (known ? 0 : 1), attrs);
}

tutti_sym tutti__conv2d_input_same(const tutti_gradient *node, tutti_sym kernel, tutti_sym grad,
                                   tutti_sym like)
{
    return backward_same(node, "conv2d_backward_input", kernel, grad, like, 1);
}

tutti_sym tutti__conv2d_kernel_same(const tutti_gradient *node, tutti_sym x, tutti_sym grad,
                                    tutti_sym like)
{
    return backward_same(node, "conv2d_backward_kernel", x, grad, like, 0);
}
