/* conv2d_relu_pool.c: p = max_pool2d(relu(conv2d(x, kernel) + bias)), direct: the rows of a few
 * windows are convolved and pooled while they are in the first cache. The map itself is written
 * only where it is wanted, that is, by gradients. */
#include "base/isa.h"
#include "device/cpu/conv/direct.h"
#include "device/cpu/conv/layer.h"
#include "device/cpu/conv/pool_row.h"
#include "device/cpu/conv/winograd_run.h"

enum { MAP_FLOATS = 1 << 13 }; /* of the map, convolved before they are pooled */

typedef struct pool_plan {
    tutti_conv_layer layer;
    tutti_conv_windows *walk;
    int64_t rows, blocks; /* pooled rows in a block; blocks of an image */
    int64_t scratch;      /* floats of a block's map */
    int threads;
} pool_plan;

/* Everything but the walk. */
static bool conv2d_relu_pool_make(const tutti_kernel_query *query, pool_plan *ret)
{
    winograd_plan tiles;
    if (!tutti__conv_layer(&query->node, "conv2d_relu_pool", &ret->layer) || ret->layer.pool < 0)
        return false;
    const tutti_convolution *c = &ret->layer.shape;
    if (winograd_plan_make(query, c, false, &tiles) && winograd_pays(&tiles))
        return false; /* the map by transformed tiles, then the pool, is faster */
    const tutti_windows *w = &ret->layer.windows;
    int64_t band = w->size[0] * c->windows.out[1] * c->cout, rows = MAP_FLOATS / band;
    ret->rows = rows < 1 ? 1 : rows;
    ret->blocks = (w->out[0] + ret->rows - 1) / ret->rows;
    ret->scratch = ret->layer.map < 0 ? ret->rows * band : 0;
    ret->threads = query->threads;
    return true;
}

static int conv2d_relu_pool_score(const tutti_kernel_query *query)
{
    pool_plan p;
    return conv2d_relu_pool_make(query, &p) ? 100 : 0;
}

static size_t slot_bytes(const pool_plan *p)
{
    return tutti__slot_bytes((size_t)p->scratch * sizeof(float));
}

/* Padded input, panels, slots. */
static int64_t before_slots(const tutti_conv_windows *w)
{
    return (w->padded + direct_panel_floats(w) + 15) / 16 * 16;
}

static size_t conv2d_relu_pool_workspace(const tutti_kernel_query *query)
{
    pool_plan p;
    if (!conv2d_relu_pool_make(query, &p))
        return 0;
    tutti_conv_windows sizes = tutti__conv_windows_sizes(&p.layer.shape, false);
    return (size_t)before_slots(&sizes) * sizeof(float) +
           slot_bytes(&p) * (size_t)tutti__slot_count(p.threads);
}

static void conv2d_relu_pool_discard(void *pointer)
{
    pool_plan *p = pointer;
    if (p != NULL)
        free(p->walk);
    free(p);
}

static tutti_status conv2d_relu_pool_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    pool_plan *p = calloc(1, sizeof *p);
    if (p == NULL || !conv2d_relu_pool_make(query, p)) {
        free(p);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of '%s'", query->node.name);
    }
    tutti_status status = tutti__conv_windows(&p->layer.shape, false, &p->walk);
    if (status != TUTTI_OK)
        conv2d_relu_pool_discard(p);
    else
        *ret_plan = p;
    return status;
}

typedef struct pool_work {
    direct_work direct;
    const pool_plan *plan;
    float *map, *pooled; /* map NULL: not wanted */
    tutti_slots slots;
} pool_work;

/* Rows of the map of one image, one after the other to y. */
static void convolve_rows(const direct_work *w, int64_t image, int64_t first, int64_t rows,
                          float *y)
{
    const tutti_conv_phase *phase = w->phase;
    const float *x[BLOCK], *base = w->x + image * w->walk->image + first * phase->row;
    float *to[BLOCK];
    int64_t count = rows * phase->count[1], column = 0;
    for (int64_t at = 0; at < count; at += BLOCK) {
        int64_t n = count - at < BLOCK ? count - at : BLOCK;
        for (int64_t i = 0; i < n; i++, y += w->walk->filters) {
            x[i] = base + column * phase->column;
            to[i] = y;
            if (++column == phase->count[1]) {
                column = 0;
                base += phase->row;
            }
        }
        for (int64_t i = n; i % PIXELS != 0; i++) {
            x[i] = x[0];
            to[i] = to[0];
        }
        direct_convolve_block(w, x, to, n);
    }
}

/* Piece: a block of pooled rows of one image; the last one also has the rows that no window sees.
 */
static void pool_piece(void *context, int64_t piece)
{
    pool_work *w = context;
    const pool_plan *p = w->plan;
    const tutti_windows *windows = &p->layer.windows;
    int64_t filters = w->direct.walk->filters, image = piece / p->blocks,
            first = piece % p->blocks * p->rows, end = first + p->rows;
    bool last = end >= windows->out[0];
    end = last ? windows->out[0] : end;
    int64_t row = first * windows->size[0],
            rows = (last && w->map != NULL ? windows->in[0] : end * windows->size[0]) - row;
    float *slot = w->map == NULL ? tutti__slot_take(&w->slots) : NULL;
    float *map =
        w->map == NULL ? slot : w->map + (image * windows->in[0] + row) * windows->in[1] * filters;
    convolve_rows(&w->direct, image, row, rows, map);
    for (int64_t r = first; r < end; r++)
        pool_row(windows, filters, map + (r - first) * windows->size[0] * windows->in[1] * filters,
                 w->pooled + (image * windows->out[0] + r) * windows->out[1] * filters);
    if (slot != NULL)
        tutti__slot_give(&w->slots, slot);
}

static tutti_status conv2d_relu_pool_run(const tutti_kernel_call *call)
{
    const pool_plan *p = call->plan;
    const tutti_conv_windows *walk = p->walk;
    float *padded = call->workspace;
    pool_work w = {
        .direct = {.walk = walk,
                   .kernel = call->inputs[p->layer.kernel].data,
                   .panels = padded + walk->padded,
                   .finish = conv_finish_of(call->inputs[p->layer.bias].data, p->layer.relu),
                   .phase = walk->phase},
        .plan = p,
        .map = p->layer.map < 0 ? NULL : call->outputs[p->layer.map].data,
        .pooled = call->outputs[p->layer.pool].data};
    tutti__slots_start(&w.slots, padded + before_slots(walk), slot_bytes(p), p->threads);
    w.direct.x = tutti__conv_pad(call, walk, call->inputs[p->layer.x].data, padded);
    tutti_parallel(call, panel_count(walk->filters), direct_pack_piece, &w.direct);
    tutti_parallel(call, walk->batch * p->blocks, pool_piece, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv2d_relu_pool) = {
    .name = "fused.conv2d_relu_pool",
    .version = 1,
    .op = "fused",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = conv2d_relu_pool_score,
    .workspace = conv2d_relu_pool_workspace,
    .prepare = conv2d_relu_pool_prepare,
    .discard = conv2d_relu_pool_discard,
    .run = conv2d_relu_pool_run,
};
