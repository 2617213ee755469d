/* roi_align.c: regions of images sampled to one size by means, and the gradients of images and
 * regions, in floats.
 *
 * A place's weights are products of one along each axis, and so are the sums of them over a bin's
 * places: a bin is rows by columns of pixels, each with its sum of weights along each axis. */
#include "ops/network/roi_align.h"
#include "device/cpu/row/row.h"

/* Each place has two; of columns there is room for several bins. */
enum { ROW_TAPS = 2 * TUTTI_ROI_MOST_PLACES, COLUMN_TAPS = 2 * ROW_TAPS };

/* A row or column of pixels in a bin: offset in floats, the sum of its weights, and the sums of
 * their slopes along the region's start and end. */
typedef struct roi_tap {
    int64_t offset;
    float weight, start, end;
} roi_tap;

typedef struct roi_taps {
    const roi_tap *list;
    int64_t count;
} roi_taps;

typedef struct roi_work {
    const tutti_roi *regions;
    const float *x, *grad;
    float *to, *to_regions;
    int64_t count, size[2], channels, bins[2];
} roi_work;

/* Adds to the tap of a pixel, which is one of the last few or new; returns their number. */
static int64_t add_tap(roi_tap *taps, int64_t count, int64_t offset, double weight, double start,
                       double end)
{
    int64_t k = count - 1;
    while (k >= 0 && k >= count - 3 && taps[k].offset != offset)
        k--;
    if (k < 0 || k < count - 3) {
        k = count++;
        taps[k] = (roi_tap){.offset = offset};
    }
    taps[k].weight += (float)weight;
    taps[k].start += (float)start;
    taps[k].end += (float)end;
    return count;
}

/* Of one bin along an axis, weights divided by its places. */
static int64_t find_taps(const roi_work *w, const tutti_roi *roi, int axis, int64_t bin,
                         roi_tap *ret)
{
    const int64_t step = axis == 0 ? w->size[1] * w->channels : w->channels;
    const int64_t grid = roi->axes[axis].grid;
    int64_t count = 0;
    for (int64_t i = 0; i < grid; i++) {
        tutti_roi_side side;
        if (!tutti__roi_side(roi, axis, bin, i, &side))
            continue;
        for (int k = 0; k < 2; k++) {
            double slope = side.slope[k] / (double)grid;
            count = add_tap(ret, count, side.index[k] * step, side.weight[k] / (double)grid,
                            slope * side.start, slope * side.end);
        }
    }
    return count;
}

static void sample_bin(const roi_work *w, roi_taps rows, roi_taps columns, const float *x, float *y)
{
    for (int64_t k = 0; k < w->channels; k += VEC_LANES) {
        const int64_t rest = w->channels - k < VEC_LANES ? w->channels - k : 0;
        vec total = {0};
        for (int64_t i = 0; i < rows.count; i++) {
            const float *row = x + rows.list[i].offset + k;
            vec sum = {0};
            for (int64_t j = 0; j < columns.count; j++)
                sum = sum +
                      columns.list[j].weight * tile_load_some(row + columns.list[j].offset, rest);
            total = total + rows.list[i].weight * sum;
        }
        tile_store_some(y + k, total, rest);
    }
}

/* The gradients of a bin's pixels, and its part of the region's, of (x1, y1, x2, y2). */
static void give_bin(const roi_work *w, roi_taps rows, roi_taps columns, const float *x,
                     const float *grad, float *to, double *region)
{
    for (int64_t k = 0; k < w->channels; k += VEC_LANES) {
        const int64_t rest = w->channels - k < VEC_LANES ? w->channels - k : 0;
        const vec share = tile_load_some(grad + k, rest);
        vec sums[4] = {{0}};
        for (int64_t i = 0; i < rows.count; i++) {
            const roi_tap *r = &rows.list[i];
            const vec mine = r->weight * share;
            vec sum = {0}, start = {0}, end = {0};
            for (int64_t j = 0; j < columns.count; j++) {
                const roi_tap *c = &columns.list[j];
                const int64_t at = r->offset + c->offset + k;
                const vec pixel = tile_load_some(x + at, rest);
                tile_store_some(to + at, tile_load_some(to + at, rest) + c->weight * mine, rest);
                sum = sum + c->weight * pixel;
                start = start + c->start * pixel;
                end = end + c->end * pixel;
            }
            sums[0] = sums[0] + r->weight * start;
            sums[1] = sums[1] + r->start * sum;
            sums[2] = sums[2] + r->weight * end;
            sums[3] = sums[3] + r->end * sum;
        }
        for (int corner = 0; corner < 4; corner++)
            region[corner] += (double)row_total(sums[corner] * share);
    }
}

/* A region's bins: y of them, or with `region` the gradients. The columns of as many bins as there
 * is room for are found once for all rows. */
static void run_region(const roi_work *w, int64_t number, double *region)
{
    const tutti_roi *roi = &w->regions[number];
    const int64_t image = roi->image * w->size[0] * w->size[1] * w->channels;
    const int64_t most = roi->axes[1].grid * 2;
    roi_tap row_taps[ROW_TAPS], column_taps[COLUMN_TAPS];
    int64_t ends[COLUMN_TAPS];
    for (int64_t first = 0, end; first < w->bins[1]; first = end) {
        int64_t used = 0;
        for (end = first;
             end < w->bins[1] && end - first < COLUMN_TAPS && used + most <= COLUMN_TAPS; end++) {
            used += find_taps(w, roi, 1, end, column_taps + used);
            ends[end - first] = used;
        }
        for (int64_t row = 0; row < w->bins[0]; row++) {
            roi_taps rows = {row_taps, find_taps(w, roi, 0, row, row_taps)};
            for (int64_t bin = first; bin < end; bin++) {
                int64_t begin = bin == first ? 0 : ends[bin - first - 1];
                int64_t at = ((number * w->bins[0] + row) * w->bins[1] + bin) * w->channels;
                roi_taps columns = {column_taps + begin, ends[bin - first] - begin};
                if (region == NULL)
                    sample_bin(w, rows, columns, w->x + image, w->to + at);
                else
                    give_bin(w, rows, columns, w->x + image, w->grad + at, w->to + image, region);
            }
        }
    }
}

/* Piece: one region. */
static void sample_piece(void *context, int64_t piece)
{
    run_region(context, piece, NULL);
}

/* Piece: one image with its regions. */
static void give_piece(void *context, int64_t image)
{
    const roi_work *w = context;
    const int64_t size = w->size[0] * w->size[1] * w->channels;
    memset(w->to + image * size, 0, (size_t)size * sizeof *w->to);
    for (int64_t i = 0; i < w->count; i++) {
        double region[4] = {0};
        if (w->regions[i].image != image)
            continue;
        run_region(w, i, region);
        for (int corner = 0; corner < 4; corner++)
            w->to_regions[4 * i + corner] = (float)region[corner];
    }
}

static int roi_align_score(const tutti_kernel_query *query)
{
    const tutti_infer *node = &query->node;
    for (int i = 0; i < node->input_count; i++)
        if (!tutti_type_is_static(&node->inputs[i]) ||
            (i != TUTTI_ROI_IMAGES && node->inputs[i].dtype != TUTTI_F32))
            return 0;
    return strcmp(tutti_attr_string(node->attrs, node->attr_count, "mode"), "mean") == 0 ? 100 : 0;
}

/* Regions, and their corners in doubles. */
static size_t roi_align_workspace(const tutti_kernel_query *query)
{
    return (size_t)query->node.inputs[TUTTI_ROI_REGIONS].dims[0] *
           (sizeof(tutti_roi) + 4 * sizeof(double));
}

static tutti_status roi_align_start(const tutti_kernel_call *call, roi_work *ret)
{
    const tutti_view *x = &call->inputs[TUTTI_ROI_X];
    const float *corners = call->inputs[TUTTI_ROI_REGIONS].data;
    const int64_t count = call->inputs[TUTTI_ROI_REGIONS].dims[0], *size;
    double *wide = call->workspace;
    tutti_roi *regions = (tutti_roi *)(wide + 4 * count);
    for (int64_t i = 0; i < 4 * count; i++)
        wide[i] = (double)corners[i];
    for (int64_t i = 0; i < count; i++)
        TUTTI_TRY(tutti__roi(call, wide, i, &regions[i]));
    tutti_attr_ints(call->attrs, call->attr_count, "size", &size);
    *ret = (roi_work){.regions = regions,
                      .x = x->data,
                      .to = call->outputs[0].data,
                      .count = count,
                      .size = {x->dims[1], x->dims[2]},
                      .channels = x->dims[3],
                      .bins = {size[0], size[1]}};
    return TUTTI_OK;
}

static tutti_status run_forward(const tutti_kernel_call *call)
{
    roi_work w;
    TUTTI_TRY(roi_align_start(call, &w));
    tutti_parallel(call, w.count, sample_piece, &w);
    return TUTTI_OK;
}

static tutti_status run_backward(const tutti_kernel_call *call)
{
    roi_work w;
    TUTTI_TRY(roi_align_start(call, &w));
    w.grad = call->inputs[TUTTI_ROI_GRAD].data;
    w.to_regions = call->outputs[1].data;
    tutti_parallel(call, call->inputs[TUTTI_ROI_X].dims[0], give_piece, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_roi_align) = {
    .name = "roi_align.bins",
    .version = 1,
    .op = "roi_align",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = roi_align_score,
    .workspace = roi_align_workspace,
    .run = run_forward,
};

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_roi_align_backward) = {
    .name = "roi_align_backward.images",
    .version = 1,
    .op = "roi_align_backward",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = roi_align_score,
    .workspace = roi_align_workspace,
    .run = run_backward,
};
