/* max_pool2d.c: the maximum of each window. */
#include "base/extremes.h"
#include "base/isa.h"
#include "device/cpu/pool/lines.h"
#include "device/cpu/pool/pool.h"

typedef struct work {
    const pool_plan *plan;
    pool_lines lines;
    const float *x;
    float *y;
} work;

/* The maximum of one window, VEC_LANES channels. */
static inline vec maximum(const pool_window *p, int64_t width, int64_t channels, const float *x)
{
    vec most = vec_load(x + (p->top * width + p->left) * channels);
    for (int64_t i = p->top; i < p->bottom; i++)
        for (int64_t j = p->left; j < p->right; j++)
            most = vec_maximum(most, vec_load(x + (i * width + j) * channels));
    return most;
}

/* One output, channels side by side. */
static void pool_one(const tutti_windows *windows, int64_t channels, const float *x, int64_t row,
                     int64_t column, float *y)
{
    pool_window p = pool_window_at(windows, row, column);
    const float *first = x + (p.top * windows->in[1] + p.left) * channels;
    int64_t c = 0;
    for (; c + VEC_LANES <= channels; c += VEC_LANES)
        vec_store(y + c, maximum(&p, windows->in[1], channels, x + c));
    memcpy(y + c, first + c, (size_t)(channels - c) * sizeof *y);
    for (; c < channels; c++)
        for (int64_t i = p.top; i < p.bottom; i++)
            for (int64_t j = p.left; j < p.right; j++) {
                float tap = x[(i * windows->in[1] + j) * channels + c];
                y[c] = (float)tutti__maximum(y[c], tap);
            }
}

/* Columns [first, end) of a row: the largest of the rows of their windows, then of the columns. */
static void pool_line(const work *w, const float *x, int64_t row, int64_t first, int64_t end,
                      float *y)
{
    const tutti_windows *windows = &w->plan->w;
    const int64_t columns = end - first, channels = w->plan->channels;
    const int64_t spread = pool_spread(&w->lines, columns, channels);
    const pool_window p = pool_window_at(windows, row, first);
    float line[POOL_LINE], most[POOL_LINE];
    const float *from = x + (p.top * windows->in[1] + p.left) * channels;
    memcpy(line, from, (size_t)(spread + w->lines.reach) * sizeof *line);
    for (int64_t i = p.top + 1; i < p.bottom; i++) {
        from += windows->in[1] * channels;
        ROW_MAP(line, spread + w->lines.reach, vec_maximum(ROW_AT(line), ROW_AT(from)));
    }
    for (int64_t j = 1; j < windows->size[1]; j++) {
        const float *before = j == 1 ? line : most, *more = line + j * w->lines.tap;
        ROW_MAP(most, spread, vec_maximum(ROW_AT(before), ROW_AT(more)));
    }
    pool_pick(&w->lines, windows->size[1] > 1 ? most : line, columns, channels,
              y + first * channels);
}

/* Piece: one output row. */
static void pool_row(void *context, int64_t piece)
{
    const work *w = context;
    const tutti_windows *windows = &w->plan->w;
    const pool_lines *l = &w->lines;
    int64_t channels = w->plan->channels, image = piece / windows->out[0],
            row = piece % windows->out[0];
    const float *x = w->x + image * windows->in[0] * windows->in[1] * channels;
    float *y = w->y + piece * windows->out[1] * channels;
    for (int64_t column = 0; column < l->first; column++)
        pool_one(windows, channels, x, row, column, y + column * channels);
    for (int64_t column = l->first; column < l->end; column = pool_block_end(l, column))
        pool_line(w, x, row, column, pool_block_end(l, column), y);
    for (int64_t column = l->end; column < windows->out[1]; column++)
        pool_one(windows, channels, x, row, column, y + column * channels);
}

static tutti_status max_pool2d_run(const tutti_kernel_call *call)
{
    const pool_plan *plan = call->plan;
    work w = {plan, pool_lines_of(&plan->w, plan->channels), call->inputs[0].data,
              call->outputs[0].data};
    tutti_parallel(call, w.plan->batch * w.plan->w.out[0], pool_row, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_max_pool2d_rows) = {
    .name = "max_pool2d.rows",
    .version = 1,
    .op = "max_pool2d",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = pool_score,
    .prepare = pool_prepare,
    .discard = free,
    .run = max_pool2d_run,
};
