/* average_pool2d.c: means of windows of floats; padding does not count. A piece is one row of
 * outputs. */
#include "device/cpu/pool/lines.h"

typedef struct pool_work {
    tutti_windows w;
    int64_t channels;
    pool_lines lines;
    const float *x;
    float *y;
} pool_work;

static void mean_at(const pool_work *p, const float *image, int64_t row, int64_t column, float *y)
{
    int64_t top, bottom, left, right, channels = p->channels;
    tutti__window_taps(&p->w, 0, row, &top, &bottom);
    tutti__window_taps(&p->w, 1, column, &left, &right);
    int64_t h = tutti__window_start(&p->w, 0, row), v = tutti__window_start(&p->w, 1, column);
    const float inverse = 1 / (float)((bottom - top) * (right - left));
    memset(y, 0, (size_t)channels * sizeof(float));
    for (int64_t i = top; i < bottom; i++)
        for (int64_t j = left; j < right; j++) {
            const float *x =
                image +
                ((h + i * p->w.dilation[0]) * p->w.in[1] + v + j * p->w.dilation[1]) * channels;
            ROW_MAP(y, channels, ROW_AT(y) + ROW_AT(x));
        }
    ROW_MAP(y, channels, ROW_AT(y) * inverse);
}

/* Columns [first, end) of a row: the rows of their windows are added, then the columns. */
static void mean_of_line(const pool_work *p, const float *image, int64_t row, int64_t first,
                         int64_t end, float *y)
{
    const int64_t columns = end - first, channels = p->channels, width = p->w.in[1] * channels;
    const int64_t spread = pool_spread(&p->lines, columns, channels);
    float line[POOL_LINE], sums[POOL_LINE];
    int64_t top, bottom;
    tutti__window_taps(&p->w, 0, row, &top, &bottom);
    image += tutti__window_start(&p->w, 1, first) * channels;
    const float inverse = 1 / (float)((bottom - top) * p->w.size[1]);
    const float *x = image + (tutti__window_start(&p->w, 0, row) + top * p->w.dilation[0]) * width;
    memcpy(line, x, (size_t)(spread + p->lines.reach) * sizeof *line);
    for (int64_t i = top + 1; i < bottom; i++) {
        x += p->w.dilation[0] * width;
        ROW_MAP(line, spread + p->lines.reach, ROW_AT(line) + ROW_AT(x));
    }
    for (int64_t j = 1; j < p->w.size[1]; j++) {
        const float *before = j == 1 ? line : sums, *more = line + j * p->lines.tap;
        ROW_MAP(sums, spread, ROW_AT(before) + ROW_AT(more));
    }
    const float *all = p->w.size[1] > 1 ? sums : line;
    ROW_MAP(line, spread, ROW_AT(all) * inverse);
    pool_pick(&p->lines, line, columns, channels, y + first * channels);
}

static void run_row(void *context, int64_t index)
{
    const pool_work *p = context;
    const pool_lines *l = &p->lines;
    const float *image = p->x + index / p->w.out[0] * p->w.in[0] * p->w.in[1] * p->channels;
    float *y = p->y + index * p->w.out[1] * p->channels;
    const int64_t row = index % p->w.out[0];
    for (int64_t column = 0; column < l->first; column++)
        mean_at(p, image, row, column, y + column * p->channels);
    for (int64_t column = l->first; column < l->end; column = pool_block_end(l, column))
        mean_of_line(p, image, row, column, pool_block_end(l, column), y);
    for (int64_t column = l->end; column < p->w.out[1]; column++)
        mean_at(p, image, row, column, y + column * p->channels);
}

static int average_pool2d_score(const tutti_kernel_query *query)
{
    return row_floats(query, 1) && tutti_type_count(&query->node.outputs[0]) > 0 ? 100 : 0;
}

static tutti_status average_pool2d_run(const tutti_kernel_call *call)
{
    const int64_t *x = call->inputs[0].dims;
    pool_work p = {.w = tutti__pool_windows(call->attrs, call->attr_count, x),
                   .channels = x[3],
                   .x = call->inputs[0].data,
                   .y = call->outputs[0].data};
    p.lines = pool_lines_of(&p.w, p.channels);
    tutti_parallel(call, x[0] * p.w.out[0], run_row, &p);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_average_pool2d) = {
    .name = "average_pool2d.rows",
    .version = 2,
    .op = "average_pool2d",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = average_pool2d_score,
    .run = average_pool2d_run,
};
