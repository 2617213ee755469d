/* pool.c: what the pooling operators share; see window.h. */
#include "ops/network/window.h"

tutti_status tutti__pool_infer(const tutti_infer *node, const tutti_type *x, tutti_windows *ret)
{
    char text[TUTTI_TYPE_TEXT];
    const int64_t *window, *pads;
    TUTTI_TRY(tutti__need_ints(node, "window", 2, 1, &window));
    TUTTI_TRY(tutti__windows_infer(node, 2, x->dims + 1, window, ret));
    tutti_attr_ints(node->attrs, node->attr_count, "pads", &pads);
    for (int i = 0; i < 4; i++)
        if (pads[i] >= window[i / 2])
            return RULE_FAIL(node, TUTTI_INVALID,
                             "pads has %lld where the window has %lld; windows of padding alone "
                             "would have nothing to pool",
                             (long long)pads[i], (long long)window[i / 2]);
    for (int i = 0; i < 2; i++)
        if (x->dims[1 + i] == 0 && ret->out[i] > 0)
            return RULE_FAIL(
                node, TUTTI_INVALID,
                "input %s is empty and padding alone would have nothing to pool; leave "
                "the pads out, or the empty input",
                tutti_type_text(x, text));
    return TUTTI_OK;
}

tutti_windows tutti__pool_windows(const tutti_attr *attrs, int attr_count, const int64_t *x)
{
    const int64_t *window;
    tutti_attr_ints(attrs, attr_count, "window", &window);
    return tutti__windows(attrs, attr_count, x + 1, window);
}

tutti_type tutti__pool_type(const tutti_type *x, const tutti_windows *windows)
{
    int64_t dims[] = {x->dims[0], windows->out[0], windows->out[1], x->dims[3]};
    return tutti_type_make(x->dtype, 4, dims);
}

/* Offsets in x of the taps of one window; returns their number. */
static int64_t gather_taps(const tutti_windows *w, const int64_t *x, const int64_t position[3],
                           int64_t *ret_taps)
{
    int64_t count = 0, ky, ky_end, kx_first, kx_end;
    int64_t y = tutti__window_start(w, 0, position[1]), x0 = tutti__window_start(w, 1, position[2]);
    tutti__window_taps(w, 0, position[1], &ky, &ky_end);
    tutti__window_taps(w, 1, position[2], &kx_first, &kx_end);
    for (; ky < ky_end; ky++)
        for (int64_t kx = kx_first; kx < kx_end; kx++)
            ret_taps[count++] = ((position[0] * x[1] + y + ky) * x[2] + x0 + kx) * x[3];
    return count;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

tutti_status tutti__pool_each(const tutti_windows *w, const int64_t *x, tutti_arena *scratch,
                              tutti_pool_fn *visit, void *context)
{
    int64_t most = smaller(w->size[0], x[1]) * smaller(w->size[1], x[2]), out = 0;
    int64_t *taps = tutti__arena_array(scratch, (size_t)most + 1, sizeof *taps);
    if (taps == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a window of %lld taps", (long long)most);
    for (int64_t n = 0; n < x[0]; n++)
        for (int64_t row = 0; row < w->out[0]; row++)
            for (int64_t column = 0; column < w->out[1]; column++, out += x[3]) {
                int64_t count = gather_taps(w, x, (int64_t[]){n, row, column}, taps);
                visit(context, x[3], out, count, taps);
            }
    return TUTTI_OK;
}

void tutti__pool_cost(const tutti_infer *node, const tutti_type *pooled, tutti_cost *ret)
{
    const int64_t *window;
    tutti_attr_ints(node->attrs, node->attr_count, "window", &window);
    tutti__cost_flops(node, tutti__elements(pooled) * (double)window[0] * (double)window[1], ret);
}

int tutti__pool_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_ways ways = {0, capacity, ret};
    tutti__way_add(&ways, SLOTS(0, 0), SLOTS(0));
    tutti__way_add(&ways, SLOTS(3, 3), SLOTS(3));
    return ways.count;
}

tutti_sym tutti__pool2d_build(const tutti_op *op, tutti_sym x, const tutti_pool2d_options *given)
{
    TAKE_OPTIONS(tutti_pool2d_options, options, given);
    int64_t any_pad = 0;
    for (int axis = 0; axis < 2; axis++) {
        if (options.pool_size[axis] == 0)
            options.pool_size[axis] = 2;
        any_pad |= options.pads[2 * axis] | options.pads[2 * axis + 1];
    }
    if (options.padding == NULL)
        options.padding = any_pad ? "explicit" : "valid";
    tutti_sym inputs[] = {x};
    return TUTTI_NARY(op, inputs, TUTTI_INTS("window", 2, options.pool_size),
                      TUTTI_INTS("strides", 2, options.strides),
                      TUTTI_STR("padding", options.padding), TUTTI_INTS("pads", 4, options.pads));
}
