/* average_pool2d_backward.c: each gradient is shared by the elements of its window. A piece is one
 * image, whose windows add in order. */
#include "device/cpu/pool/lines.h"

typedef struct pool_work {
    tutti_windows w;
    int64_t channels;
    pool_lines lines;
    const float *grad;
    float *dx;
} pool_work;

static void share(const pool_work *p, float *image, int64_t row, int64_t column, const float *grad)
{
    int64_t top, bottom, left, right, channels = p->channels;
    tutti__window_taps(&p->w, 0, row, &top, &bottom);
    tutti__window_taps(&p->w, 1, column, &left, &right);
    int64_t h = tutti__window_start(&p->w, 0, row), v = tutti__window_start(&p->w, 1, column);
    const float inverse = 1 / (float)((bottom - top) * (right - left));
    for (int64_t i = top; i < bottom; i++)
        for (int64_t j = left; j < right; j++) {
            float *to =
                image +
                ((h + i * p->w.dilation[0]) * p->w.in[1] + v + j * p->w.dilation[1]) * channels;
            ROW_MAP(to, channels, ROW_AT(to) + ROW_AT(grad) * inverse);
        }
}

/* The gradients of columns [first, end) of a row. `line` holds them where their windows begin, and
 * zeros between. */
static void share_line(const pool_work *p, float *image, int64_t row, int64_t first, int64_t end,
                       const float *grad, float *line)
{
    const int64_t columns = end - first, channels = p->channels, width = p->w.in[1] * channels;
    const int64_t spread = pool_spread(&p->lines, columns, channels);
    int64_t top, bottom;
    tutti__window_taps(&p->w, 0, row, &top, &bottom);
    image += tutti__window_start(&p->w, 1, first) * channels;
    const float inverse = 1 / (float)((bottom - top) * p->w.size[1]);
    pool_put(&p->lines, grad + first * channels, columns, channels, line);
    ROW_MAP(line, spread, ROW_AT(line) * inverse);
    for (int64_t i = top; i < bottom; i++)
        for (int64_t j = 0; j < p->w.size[1]; j++) {
            float *to = image + j * p->lines.tap +
                        (tutti__window_start(&p->w, 0, row) + i * p->w.dilation[0]) * width;
            ROW_MAP(to, spread, ROW_AT(to) + ROW_AT(line));
        }
}

static void run_image(void *context, int64_t index)
{
    const pool_work *p = context;
    const pool_lines *l = &p->lines;
    int64_t size = p->w.in[0] * p->w.in[1] * p->channels;
    float *image = p->dx + index * size, line[POOL_LINE];
    if (l->first < l->end)
        memset(line, 0, sizeof line);
    memset(image, 0, (size_t)size * sizeof(float));
    for (int64_t row = 0; row < p->w.out[0]; row++) {
        const float *grad = p->grad + (index * p->w.out[0] + row) * p->w.out[1] * p->channels;
        for (int64_t column = 0; column < l->first; column++)
            share(p, image, row, column, grad + column * p->channels);
        for (int64_t column = l->first; column < l->end; column = pool_block_end(l, column))
            share_line(p, image, row, column, pool_block_end(l, column), grad, line);
        for (int64_t column = l->end; column < p->w.out[1]; column++)
            share(p, image, row, column, grad + column * p->channels);
    }
}

static int average_pool2d_backward_score(const tutti_kernel_query *query)
{
    return row_floats(query, 1) && tutti_type_count(&query->node.outputs[0]) > 0 ? 100 : 0;
}

static tutti_status average_pool2d_backward_run(const tutti_kernel_call *call)
{
    const int64_t *x = call->outputs[0].dims;
    pool_work p = {.w = tutti__pool_windows(call->attrs, call->attr_count, x),
                   .channels = x[3],
                   .grad = call->inputs[0].data,
                   .dx = call->outputs[0].data};
    p.lines = pool_lines_of(&p.w, p.channels);
    tutti_parallel(call, x[0], run_image, &p);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_average_pool2d_backward) = {
    .name = "average_pool2d_backward.images",
    .version = 2,
    .op = "average_pool2d_backward",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = average_pool2d_backward_score,
    .run = average_pool2d_backward_run,
};
