/* average_pool2d.c: means of windows of floats; padding does not count. A piece is one row of
 * outputs. */
#include "device/cpu/row/row.h"
#include "ops/network/window.h"

typedef struct pool_work {
    tutti_windows w;
    int64_t channels;
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

static void run_row(void *context, int64_t index)
{
    const pool_work *p = context;
    const float *image = p->x + index / p->w.out[0] * p->w.in[0] * p->w.in[1] * p->channels;
    for (int64_t column = 0; column < p->w.out[1]; column++)
        mean_at(p, image, index % p->w.out[0], column,
                p->y + (index * p->w.out[1] + column) * p->channels);
}

static int score(const tutti_kernel_query *query)
{
    return row_floats(query, 1) && tutti_type_count(&query->node.outputs[0]) > 0 ? 100 : 0;
}

static tutti_status run(const tutti_call *call)
{
    const int64_t *x = call->inputs[0].dims;
    pool_work p = {.w = tutti__pool_windows(call->attrs, call->attr_count, x),
                   .channels = x[3],
                   .x = call->inputs[0].data,
                   .y = call->outputs[0].data};
    tutti_parallel(call, x[0] * p.w.out[0], run_row, &p);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_average_pool2d) = {
    .name = "average_pool2d.rows",
    .version = 1,
    .op = "average_pool2d",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = score,
    .run = run,
};
