/* gathered_groups.c: what an infinity or a NaN of one group does to others that are joined with it.
 *
 * The joined kernel is zero between groups, and zero times infinity is NaN. So what came out as NaN
 * is computed again from its own group alone; all else is as it should be. */
#include "device/cpu/conv/gathered.h"

/* y of one image, row, column and filter. */
static float sum_of_window(const tutti_gathering *g, const float *from, const float *kernels,
                           int64_t line, int64_t column, int64_t f)
{
    const tutti_convolution *part = &g->part;
    const tutti_windows *w = &part->windows;
    int64_t image = line / w->out[0], row = line % w->out[0], set = g->whole.cin,
            channels = set / g->joined, first = f / (part->cout / g->joined) * channels;
    double sum = 0;
    for (int64_t cell = 0; cell < w->size[0] * w->size[1]; cell++) {
        int64_t h = row * w->stride[0] + cell / w->size[1] * w->dilation[0],
                v = column * w->stride[1] + cell % w->size[1] * w->dilation[1];
        const float *x = from + ((image * w->in[0] + h) * w->in[1] + v) * part->cin;
        const float *kernel = kernels + cell * part->cin * part->cout + f;
        for (int64_t tap = first; tap < part->cin; tap += set)
            for (int64_t c = tap; c < tap + channels; c++)
                sum += (double)x[c] * kernel[c * part->cout];
    }
    return (float)sum;
}

void tutti__gathered_mend_y(const tutti_gathering *g, const float *x, const float *kernel,
                            int64_t line, float *y)
{
    int64_t cout = g->part.cout, count = g->part.windows.out[1] * cout;
    if (!g->has_nan(y, count))
        return;
    for (int64_t i = 0; i < count; i++)
        if (y[i] != y[i])
            y[i] = sum_of_window(g, x, kernel, line, i / cout, i % cout);
}

/* Which output reads input `at` by tap `tap` along an axis; -1: none. */
static int64_t reader(const tutti_windows *w, int axis, int64_t at, int64_t tap)
{
    int64_t start = at + w->before[axis] - tap * w->dilation[axis];
    bool reads = start >= 0 && start % w->stride[axis] == 0;
    return reads && start / w->stride[axis] < w->out[axis] ? start / w->stride[axis] : -1;
}

/* The gradient of x of one image, row, column and channel. */
static float sum_of_readers(const tutti_gathering *g, const float *from, const float *kernels,
                            int64_t line, int64_t column, int64_t c)
{
    const tutti_convolution *part = &g->part;
    const tutti_windows *w = &part->windows;
    int64_t image = line / w->in[0], row = line % w->in[0], filters = part->cout / g->joined,
            first = c % g->whole.cin / (g->whole.cin / g->joined) * filters;
    double sum = 0;
    for (int64_t cell = 0; cell < w->size[0] * w->size[1]; cell++) {
        int64_t h = reader(w, 0, row, cell / w->size[1]),
                v = reader(w, 1, column, cell % w->size[1]);
        if (h < 0 || v < 0)
            continue;
        const float *grad = from + ((image * w->out[0] + h) * w->out[1] + v) * part->cout;
        const float *kernel = kernels + (cell * part->cin + c) * part->cout;
        for (int64_t f = first; f < first + filters; f++)
            sum += (double)grad[f] * kernel[f];
    }
    return (float)sum;
}

void tutti__gathered_mend_x(const tutti_gathering *g, const float *grad, const float *kernel,
                            int64_t line, int64_t tap, float *x)
{
    int64_t cin = g->part.cin, set = g->whole.cin, width = g->part.windows.in[1];
    if (set == cin && !g->has_nan(x, width * cin))
        return;
    for (int64_t column = 0; column < width; column++, x += cin)
        for (int64_t c = tap * set; c < (tap + 1) * set && g->has_nan(x + tap * set, set); c++)
            if (x[c] != x[c])
                x[c] = sum_of_readers(g, grad, kernel, line, column, c);
}
