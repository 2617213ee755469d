/* lines.h: pooling of few channels, for files compiled once for each instruction set. Vectors lie
 * along the rows of the map instead of across channels: what a window has is computed for windows
 * at every element of a row, of which the strides leave out some.
 *
 * Columns whose windows reach beyond the map's sides are left to others. */
#ifndef TUTTI_DEVICE_CPU_POOL_LINES_H
#define TUTTI_DEVICE_CPU_POOL_LINES_H

#include "device/cpu/row/row.h"
#include "ops/network/window.h"

enum { POOL_LINE = 1024, POOL_FEW = 32, POOL_STRIDE = 4 };

typedef struct pool_lines {
    int64_t first, end; /* columns of outputs */
    int64_t block;      /* so many at a time */
    int64_t step;       /* elements from one window to the next */
    int64_t tap;        /* from one tap to the next along a row */
    int64_t reach;      /* from the first tap to the last */
} pool_lines;

/* No columns where there are many channels, or strides or windows are too wide. */
static inline pool_lines pool_lines_of(const tutti_windows *w, int64_t channels)
{
    pool_lines l = {0};
    if (channels == 0 || channels >= POOL_FEW || w->stride[1] > POOL_STRIDE ||
        w->size[1] > POOL_LINE || w->dilation[1] > POOL_LINE)
        return l;
    l.step = w->stride[1] * channels;
    l.tap = w->dilation[1] * channels;
    l.reach = (w->size[1] - 1) * l.tap;
    if (l.reach + channels > POOL_LINE)
        return l;
    int64_t last = w->in[1] - 1 - (w->size[1] - 1) * w->dilation[1] + w->before[1];
    l.first = (w->before[1] + w->stride[1] - 1) / w->stride[1];
    l.end = last < 0 ? 0 : last / w->stride[1] + 1;
    l.end = l.end < w->out[1] ? l.end : w->out[1];
    l.first = l.first < l.end ? l.first : l.end;
    l.block = (POOL_LINE - l.reach - channels) / l.step + 1;
    return l;
}

/* The end of the block of columns that begins at `first`. */
static inline int64_t pool_block_end(const pool_lines *l, int64_t first)
{
    return l->end - first < l->block ? l->end : first + l->block;
}

/* Elements from the first window's of `columns` to the last one's, for one tap. */
static inline int64_t pool_spread(const pool_lines *l, int64_t columns, int64_t channels)
{
    return (columns - 1) * l->step + channels;
}

/* to[column] = line[column * step], every channel. The analyzer does not see that vectors have
 * written the line. */
/* NOLINTBEGIN(clang-analyzer-core.uninitialized.Assign) */
static inline void pool_pick(const pool_lines *l, const float *line, int64_t columns,
                             int64_t channels, float *to)
{
    if (channels == 1)
        for (int64_t i = 0; i < columns; i++)
            to[i] = line[i * l->step];
    else
        for (int64_t i = 0; i < columns; i++)
            for (int64_t c = 0; c < channels; c++)
                to[i * channels + c] = line[i * l->step + c];
}
/* NOLINTEND(clang-analyzer-core.uninitialized.Assign) */

/* The opposite; what lies between stays. */
static inline void pool_put(const pool_lines *l, const float *from, int64_t columns,
                            int64_t channels, float *line)
{
    if (channels == 1)
        for (int64_t i = 0; i < columns; i++)
            line[i * l->step] = from[i];
    else
        for (int64_t i = 0; i < columns; i++)
            for (int64_t c = 0; c < channels; c++)
                line[i * l->step + c] = from[i * channels + c];
}

#endif
