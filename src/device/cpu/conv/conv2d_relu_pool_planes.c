/* conv2d_relu_pool_planes.c: p = max_pool2d(relu(conv2d(x, kernel) + bias)) for few channels and
 * filters, from planes of the input: the rows of one window's height are convolved and pooled while
 * they are in the first cache. */
#include <stdlib.h>

#include "base/isa.h"
#include "device/cpu/conv/layer.h"
#include "device/cpu/conv/planes.h"
#include "device/cpu/conv/pool_row.h"
#include "device/cpu/slots.h"

#define PIECE_FLOPS (1 << 17)

typedef struct plan {
    tutti_conv_layer layer;
    plane_walk walk;
    int64_t rows, blocks; /* pooled rows in a block; blocks of an image */
    int64_t scratch;      /* floats of a block's map */
    int threads;
} plan;

static bool conv2d_relu_pool_planes_make(const tutti_kernel_query *query, plan *ret)
{
    if (!tutti__conv_layer(&query->node, "conv2d_relu_pool", &ret->layer) || ret->layer.pool < 0 ||
        !ret->layer.relu || !plane_walk_make(&ret->layer.shape, &ret->walk))
        return false;
    const tutti_windows *w = &ret->layer.windows;
    int64_t band = w->size[0] * w->in[1] * ret->layer.shape.cout;
    ret->rows = PIECE_FLOPS / (2 * band * ret->walk.taps) + 1;
    ret->blocks = (w->out[0] + ret->rows - 1) / ret->rows;
    ret->scratch = ret->layer.map < 0 ? band : 0;
    ret->threads = query->threads;
    return true;
}

static int conv2d_relu_pool_planes_score(const tutti_kernel_query *query)
{
    plan p;
    return conv2d_relu_pool_planes_make(query, &p) ? 120 : 0;
}

static size_t slot_bytes(const plan *p)
{
    return tutti__slot_bytes((size_t)p->scratch * sizeof(float));
}

/* Planes, weights, slots. */
static size_t conv2d_relu_pool_planes_workspace(const tutti_kernel_query *query)
{
    plan p;
    if (!conv2d_relu_pool_planes_make(query, &p))
        return 0;
    return (size_t)(p.walk.planes + p.walk.weights) * sizeof(float) +
           slot_bytes(&p) * (size_t)tutti__slot_count(p.threads);
}

static tutti_status conv2d_relu_pool_planes_prepare(const tutti_kernel_query *query,
                                                    void **ret_plan)
{
    plan *p = malloc(sizeof *p);
    if (p == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of '%s'", query->node.name);
    conv2d_relu_pool_planes_make(query, p);
    *ret_plan = p;
    return TUTTI_OK;
}

typedef struct work {
    plane_work planes;
    const plan *plan;
    float *map, *pooled; /* map NULL: not wanted */
    tutti_slots slots;
} work;

/* Rows [row, row + count) of the map, or of scratch. */
static void convolve_rows(const work *w, int64_t image, int64_t row, int64_t count, float *to)
{
    const int64_t line = w->plan->layer.windows.in[1] * w->plan->layer.shape.cout;
    for (int64_t i = 0; i < count; i++)
        plane_row(&w->planes, image, row + i, to + i * line);
}

/* Piece: a block of pooled rows of one image; the last one also has the rows that no window sees.
 */
static void pool_piece(void *context, int64_t piece)
{
    work *w = context;
    const plan *p = w->plan;
    const tutti_windows *windows = &p->layer.windows;
    const int64_t filters = p->layer.shape.cout, line = windows->in[1] * filters;
    int64_t image = piece / p->blocks, first = piece % p->blocks * p->rows, end = first + p->rows;
    end = end < windows->out[0] ? end : windows->out[0];
    float *slot = w->map == NULL ? tutti__slot_take(&w->slots) : NULL;
    for (int64_t r = first; r < end; r++) {
        int64_t row = r * windows->size[0];
        float *map = slot != NULL ? slot : w->map + (image * windows->in[0] + row) * line;
        convolve_rows(w, image, row, windows->size[0], map);
        pool_row(windows, filters, map,
                 w->pooled + (image * windows->out[0] + r) * windows->out[1] * filters);
    }
    int64_t seen = windows->out[0] * windows->size[0];
    if (end == windows->out[0] && w->map != NULL)
        convolve_rows(w, image, seen, windows->in[0] - seen,
                      w->map + (image * windows->in[0] + seen) * line);
    if (slot != NULL)
        tutti__slot_give(&w->slots, slot);
}

static tutti_status conv2d_relu_pool_planes_run(const tutti_kernel_call *call)
{
    const plan *p = call->plan;
    float *memory = call->workspace;
    work w = {.planes = {.walk = &p->walk,
                         .x = call->inputs[p->layer.x].data,
                         .kernel = call->inputs[p->layer.kernel].data,
                         .bias = call->inputs[p->layer.bias].data,
                         .planes = memory,
                         .weights = memory + p->walk.planes},
              .plan = p,
              .map = p->layer.map < 0 ? NULL : call->outputs[p->layer.map].data,
              .pooled = call->outputs[p->layer.pool].data};
    tutti__slots_start(&w.slots, w.planes.weights + p->walk.weights, slot_bytes(p), p->threads);
    plane_pack(&w.planes);
    tutti_parallel(call, p->layer.shape.batch, plane_piece, &w.planes);
    tutti_parallel(call, p->layer.shape.batch * p->blocks, pool_piece, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv2d_relu_pool_planes) = {
    .name = "fused.conv2d_relu_pool_planes",
    .version = 1,
    .op = "fused",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = conv2d_relu_pool_planes_score,
    .workspace = conv2d_relu_pool_planes_workspace,
    .prepare = conv2d_relu_pool_planes_prepare,
    .discard = free,
    .run = conv2d_relu_pool_planes_run,
};
