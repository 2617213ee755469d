/* windows.c: see windows.h.
 *
 * With stride s, dilation d and b elements of padding before, tap i of output o reads input
 * h = o s - b + i d. So output o of a convolution finds tap i at o s + i d in input that is padded
 * by b; and input h = r + s u of the gradient finds tap i, where s divides r + b - i d, at
 * u + (r + b - i d) / s of the gradient of the output. */
#include "device/cpu/conv/windows.h"

#include <stdlib.h>
#include <string.h>

/* One axis of one phase: tap `tap - back * t`, t < count, reads input `at + apart * t`. */
typedef struct axis_taps {
    int64_t count, tap, back, at, apart;
} axis_taps;

static int64_t greatest_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static axis_taps taps_of(const tutti_windows *w, int a, bool backward, int64_t remainder)
{
    if (!backward)
        return (axis_taps){w->size[a], 0, -1, 0, w->dilation[a]};
    int64_t divisor = greatest_divisor(w->stride[a], w->dilation[a]);
    axis_taps taps = {.back = w->stride[a] / divisor, .apart = w->dilation[a] / divisor};
    int64_t first = 0; /* the lowest tap of this phase, that is, of its remainder */
    while (first < taps.back && first < w->size[a] &&
           (remainder + w->before[a] - first * w->dilation[a]) % w->stride[a] != 0)
        first++;
    if (first >= taps.back || first >= w->size[a])
        return taps;
    taps.count = (w->size[a] - 1 - first) / taps.back + 1;
    taps.tap = first + (taps.count - 1) * taps.back;
    taps.at = (remainder + w->before[a] - taps.tap * w->dilation[a]) / w->stride[a];
    return taps;
}

/* How many phases an axis has. */
static int64_t remainders(const tutti_windows *w, int a, bool backward)
{
    return !backward ? 1 : w->stride[a] < w->in[a] ? w->stride[a] : w->in[a];
}

/* Input elements that the phases of an axis reach: [lowest, end). */
static void reach_of(const tutti_windows *w, int a, bool backward, int64_t *ret_lowest,
                     int64_t *ret_end)
{
    if (!backward) {
        *ret_lowest = 0;
        *ret_end = (w->out[a] - 1) * w->stride[a] + (w->size[a] - 1) * w->dilation[a] + 1;
        return;
    }
    *ret_lowest = 0;
    *ret_end = w->out[a];
    for (int64_t r = 0; r < remainders(w, a, true); r++) {
        axis_taps taps = taps_of(w, a, true, r);
        int64_t last = (w->in[a] - 1 - r) / w->stride[a] + taps.at + (taps.count - 1) * taps.apart;
        if (taps.count == 0)
            continue;
        *ret_lowest = taps.at < *ret_lowest ? taps.at : *ret_lowest;
        *ret_end = last + 1 > *ret_end ? last + 1 : *ret_end;
    }
}

tutti_conv_windows tutti__conv_windows_sizes(const tutti_convolution *c, bool backward)
{
    const tutti_windows *w = &c->windows;
    tutti_conv_windows walk = {.batch = c->batch,
                               .channels = backward ? c->cout : c->cin,
                               .filters = backward ? c->cin : c->cout,
                               .cells = w->size[0] * w->size[1],
                               .phases = 1};
    bool needed = false;
    for (int a = 0; a < 2; a++) {
        int64_t lowest, end;
        reach_of(w, a, backward, &lowest, &end);
        walk.from[a] = backward ? w->out[a] : w->in[a];
        walk.out[a] = backward ? w->in[a] : w->out[a];
        walk.before[a] = backward ? -lowest : w->before[a];
        int64_t most = walk.before[a] + walk.from[a];
        walk.in[a] = backward ? end - lowest : end > most ? end : most;
        walk.phases *= remainders(w, a, backward);
        needed = needed || walk.before[a] != 0 || walk.in[a] != walk.from[a];
    }
    walk.image = walk.in[0] * walk.in[1] * walk.channels;
    walk.padded = needed ? (walk.batch * walk.image + 15) / 16 * 16 : 0;
    return walk;
}

/* Fills in the runs and cells of one phase; both tables have room for all its cells. */
static void fill_runs(const tutti_convolution *c, const tutti_conv_windows *walk,
                      const axis_taps taps[2], tutti_conv_phase *phase, int64_t *offset,
                      int64_t *cell)
{
    int64_t row = walk->in[1] * walk->channels, count = 0;
    bool joined = taps[1].apart == 1;
    for (int64_t i = 0; i < taps[0].count; i++)
        for (int64_t j = 0; j < taps[1].count; j++) {
            cell[count++] = (taps[0].tap - taps[0].back * i) * c->windows.size[1] + taps[1].tap -
                            taps[1].back * j;
            if (!joined || j == 0)
                offset[phase->runs++] =
                    (i * taps[0].apart) * row + (j * taps[1].apart) * walk->channels;
        }
    phase->cells = count;
    phase->length = count == 0 ? 0 : count / phase->runs * walk->channels;
    phase->offset = offset;
    phase->cell = cell;
}

/* The phase of remainders r. Its input is where its first tap reads. */
static void fill_phase(const tutti_convolution *c, bool backward, const tutti_conv_windows *walk,
                       const int64_t r[2], int64_t *offset, int64_t *cell, tutti_conv_phase *ret)
{
    const tutti_windows *w = &c->windows;
    axis_taps taps[2];
    int64_t step[2];
    for (int a = 0; a < 2; a++) {
        taps[a] = taps_of(w, a, backward, r[a]);
        step[a] = backward ? 1 : w->stride[a];
        ret->first[a] = r[a];
        ret->step[a] = backward ? w->stride[a] : 1;
        ret->count[a] = (walk->out[a] - 1 - r[a]) / ret->step[a] + 1;
    }
    ret->row = step[0] * walk->in[1] * walk->channels;
    ret->column = step[1] * walk->channels;
    if (backward)
        ret->base = ((walk->before[0] + taps[0].at) * walk->in[1] + walk->before[1] + taps[1].at) *
                    walk->channels;
    fill_runs(c, walk, taps, ret, offset, cell);
}

tutti_status tutti__conv_windows(const tutti_convolution *c, bool backward,
                                 tutti_conv_windows **ret)
{
    tutti_conv_windows sizes = tutti__conv_windows_sizes(c, backward);
    tutti_conv_windows *walk = calloc(1, sizeof *walk + (size_t)sizes.phases * sizeof *walk->phase +
                                             2 * (size_t)sizes.cells * sizeof(int64_t));
    if (walk == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of a convolution");
    *walk = sizes;
    walk->phase = (tutti_conv_phase *)(walk + 1);
    int64_t *offset = (int64_t *)(walk->phase + sizes.phases), *cell = offset + sizes.cells;
    int64_t columns = remainders(&c->windows, 1, backward), used = 0;
    for (int64_t p = 0; p < walk->phases; p++) {
        walk->phase[p].first_cell = used;
        fill_phase(c, backward, walk, (int64_t[]){p / columns, p % columns}, offset + used,
                   cell + used, &walk->phase[p]);
        used += walk->phase[p].cells;
    }
    *ret = walk;
    return TUTTI_OK;
}

enum { PAD_FLOATS = 1 << 13 }; /* of padded rows in a piece */

typedef struct pad_work {
    const tutti_conv_windows *walk;
    const float *from;
    float *to;
    int64_t rows, pieces; /* rows of a piece; pieces of an image */
} pad_work;

/* One padded row; `from` is NULL above and below the image. */
static void pad_row(const tutti_conv_windows *w, const float *from, float *to)
{
    const size_t row = (size_t)(w->in[1] * w->channels),
                 source = (size_t)(w->from[1] * w->channels),
                 before = (size_t)(w->before[1] * w->channels);
    if (from == NULL) {
        memset(to, 0, row * sizeof *to);
        return;
    }
    memset(to, 0, before * sizeof *to);
    memcpy(to + before, from, source * sizeof *to);
    memset(to + before + source, 0, (row - before - source) * sizeof *to);
}

static void pad_piece(void *context, int64_t piece)
{
    const pad_work *work = context;
    const tutti_conv_windows *w = work->walk;
    int64_t image = piece / work->pieces, first = piece % work->pieces * work->rows,
            end = first + work->rows < w->in[0] ? first + work->rows : w->in[0];
    for (int64_t row = first; row < end; row++) {
        int64_t h = row - w->before[0];
        const float *from = work->from + (image * w->from[0] + h) * w->from[1] * w->channels;
        pad_row(w, h >= 0 && h < w->from[0] ? from : NULL,
                work->to + image * w->image + row * w->in[1] * w->channels);
    }
}

const float *tutti__conv_pad(const tutti_kernel_call *call, const tutti_conv_windows *w,
                             const float *x, float *to)
{
    if (w->padded == 0)
        return x;
    pad_work work = {.walk = w, .from = x, .to = to};
    work.rows = PAD_FLOATS / (w->in[1] * w->channels) + 1;
    work.pieces = (w->in[0] + work.rows - 1) / work.rows;
    tutti_parallel(call, w->batch * work.pieces, pad_piece, &work);
    return to;
}

bool tutti__conv_countable(const tutti_convolution *c)
{
    const tutti_windows *w = &c->windows;
    double channels = (double)c->groups * (double)(c->cin > c->cout ? c->cin : c->cout);
    double input = (double)c->batch * channels,
           kernel = channels * (double)c->cin * (double)c->cout;
    for (int a = 0; a < w->axes; a++) {
        input *= (double)w->in[a] + (double)w->out[a] * (double)w->stride[a] +
                 2 * (double)w->size[a] * (double)w->dilation[a];
        kernel *= (double)w->size[a];
    }
    return input < 0x1p48 && kernel < 0x1p48;
}

bool tutti__conv_shapes(const tutti_kernel_query *query, int x, int kernel, int y,
                        tutti_convolution *ret)
{
    const tutti_infer *node = &query->node;
    const tutti_type *types[3];
    int index[3] = {x, kernel, y};
    for (int i = 0; i < 3; i++) {
        types[i] = index[i] < 0 ? &node->outputs[0] : &node->inputs[index[i]];
        if (types[i]->dtype != TUTTI_F32 || !tutti_type_is_static(types[i]) ||
            tutti_type_count(types[i]) == 0)
            return false;
    }
    *ret = tutti__convolution(node->attrs, node->attr_count, types[0]->dims, types[1]->dims,
                              types[2]->dims);
    return tutti__conv_countable(ret);
}

bool tutti__conv_query(const tutti_kernel_query *query, int x, int kernel, int y,
                       tutti_convolution *ret)
{
    return tutti__conv_shapes(query, x, kernel, y, ret) && ret->groups == 1;
}
