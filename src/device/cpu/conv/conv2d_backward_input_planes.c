/* conv2d_backward_input_planes.c: the gradient of an input of few channels (planes.h). */
#include "base/isa.h"
#include "device/cpu/conv/direct.h"
#include "device/cpu/conv/planes_convolve.h"
#include "device/cpu/slots.h"

enum { ROW_FLOATS = 1 << 12 }; /* of the result, of one piece */

typedef struct plan {
    tutti_convolution shape;
    tutti_conv_walk *walk;
    planes planes;
    int64_t blocks; /* of planes.rows rows, of an image */
    int threads;
} plan;

/* Everything but the walk. */
static bool make(const tutti_kernel_query *query, plan *ret)
{
    if (!tutti__conv_query(query, -1, 0, 1, &ret->shape))
        return false;
    tutti_conv_walk sizes = tutti__conv_walk_sizes(&ret->shape, true);
    int64_t rows = ROW_FLOATS / (sizes.out[1] * sizes.filters) + 1;
    rows = rows < sizes.out[0] ? rows : sizes.out[0];
    ret->blocks = (sizes.out[0] + rows - 1) / rows;
    ret->threads = query->threads;
    return planes_make(&ret->shape, true, rows, 110, &ret->planes);
}

static int score(const tutti_kernel_query *query)
{
    plan p;
    return make(query, &p) ? 110 : 0;
}

static size_t slot_bytes(const plan *p, const tutti_conv_walk *walk)
{
    return tutti__slot_bytes((size_t)planes_floats(&p->planes, walk->channels) * sizeof(float));
}

/* Padded input, panels, slots. */
static int64_t before_slots(const tutti_conv_walk *walk)
{
    return (walk->padded + direct_panel_floats(walk) + 15) / 16 * 16;
}

static size_t workspace(const tutti_kernel_query *query)
{
    plan p;
    if (!make(query, &p))
        return 0;
    tutti_conv_walk sizes = tutti__conv_walk_sizes(&p.shape, true);
    return (size_t)before_slots(&sizes) * sizeof(float) +
           slot_bytes(&p, &sizes) * (size_t)tutti__slot_count(p.threads);
}

static void discard(void *pointer)
{
    plan *p = pointer;
    if (p != NULL)
        free(p->walk);
    free(p);
}

static tutti_status prepare(const tutti_kernel_query *query, void **ret_plan)
{
    plan *p = calloc(1, sizeof *p);
    if (p == NULL || !make(query, p)) {
        free(p);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of '%s'", query->node.name);
    }
    tutti_status status = tutti__conv_walk(&p->shape, true, &p->walk);
    if (status != TUTTI_OK)
        discard(p);
    else
        *ret_plan = p;
    return status;
}

typedef struct work {
    direct_work direct;
    const plan *plan;
    tutti_slots slots;
} work;

/* Piece: some rows of one image. */
static void rows_piece(void *context, int64_t piece)
{
    work *w = context;
    const plan *p = w->plan;
    const tutti_conv_walk *walk = p->walk;
    int64_t image = piece / p->blocks, first = piece % p->blocks * p->planes.rows,
            left = walk->out[0] - first, rows = left < p->planes.rows ? left : p->planes.rows;
    int64_t before = first * p->planes.row + walk->phase->base / walk->channels;
    float *apart = tutti__slot_take(&w->slots);
    planes_take(&p->planes, walk->channels,
                w->direct.x + image * walk->image + before * walk->channels,
                walk->in[0] * walk->in[1] - before, apart);
    planes_work few = {.planes = &p->planes,
                       .walk = walk,
                       .from = apart,
                       .weights = w->direct.panels,
                       .line = PANEL,
                       .low = -INFINITY,
                       .first = first};
    planes_convolve(&few, rows,
                    w->direct.y + (image * walk->out[0] + first) * walk->out[1] * walk->filters);
    tutti__slot_give(&w->slots, apart);
}

static tutti_status run(const tutti_call *call)
{
    const plan *p = call->plan;
    const tutti_conv_walk *walk = p->walk;
    float *padded = call->workspace;
    work w = {.direct = {.walk = walk,
                         .kernel = call->inputs[0].data,
                         .panels = padded + walk->padded,
                         .y = call->outputs[0].data,
                         .backward = true},
              .plan = p};
    tutti__slots_start(&w.slots, padded + before_slots(walk), slot_bytes(p, walk), p->threads);
    w.direct.x = tutti__conv_pad(call, walk, call->inputs[1].data, padded);
    tutti_parallel(call, panel_count(walk->filters), pack_piece, &w.direct);
    tutti_parallel(call, walk->batch * p->blocks, rows_piece, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv2d_backward_input_planes) = {
    .name = "conv2d_backward_input.planes",
    .version = 1,
    .op = "conv2d_backward_input",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT | TUTTI_KERNEL_TUNED,
    .score = score,
    .workspace = workspace,
    .prepare = prepare,
    .discard = discard,
    .run = run,
};
