/* conv2d_chain.c: y = g(f(conv2d(x, kernel) + bias) + residual) of inference: all of it while the
 * sums are in registers. A kernel that is a constant is packed once. */
#include <stdio.h>

#include "base/isa.h"
#include "base/pool.h"
#include "device/cpu/conv/direct.h"
#include "device/cpu/conv/winograd_run.h"
#include "device/cpu/kept.h"
#include "tensor/pending.h"

/* Transformed kernels take 4 times the memory; larger ones are made anew in each run, of which they
 * are a small part. */
enum { MOST_KEPT = 1 << 22 };
/* Fewer tiles than this do not pay for reading the 4 times larger panels from memory. */
enum { FEWEST_TILES = 8 };

typedef struct chain_plan {
    tutti_conv_chain chain;
    bool tiles; /* by transformed tiles, or direct */
    winograd_plan winograd;
    tutti_conv_windows *walk;
    tutti_kept *kept; /* NULL: packed in each run */
    size_t scratch;   /* bytes of the workspace before the room for panels of the first run */
    size_t room;      /* their bytes, or 0 */
} chain_plan;

/* Everything but the walk and what is kept. */
static bool conv2d_chain_make(const tutti_kernel_query *query, chain_plan *ret)
{
    if (!tutti__conv_chain(&query->node, &ret->chain) || ret->chain.shape.groups != 1)
        return false;
    ret->tiles = winograd_plan_make(query, &ret->chain.shape, false, &ret->winograd) &&
                 winograd_pays(&ret->winograd) &&
                 (ret->winograd.grid.count >= FEWEST_TILES ||
                  winograd_kernel_floats(&ret->winograd) <= WHOLE_PANELS);
    return true;
}

static bool keeps(const tutti_kernel_query *query, const chain_plan *p)
{
    return tutti__kept_source(query, p->chain.kernel) != NULL &&
           (!p->tiles || winograd_kernel_floats(&p->winograd) <= MOST_KEPT);
}

static int64_t panel_floats(const chain_plan *p, const tutti_conv_windows *walk)
{
    return p->tiles ? winograd_kernel_floats(&p->winograd) : direct_panel_floats(walk);
}

static void place_room(chain_plan *p, const tutti_conv_windows *walk)
{
    p->scratch = tutti__slot_bytes(p->tiles ? winograd_scratch(&p->winograd)
                                            : (size_t)walk->padded * sizeof(float));
    p->room = tutti__kept_room(panel_floats(p, walk));
}

static int conv2d_chain_score(const tutti_kernel_query *query)
{
    chain_plan p = {0};
    return conv2d_chain_make(query, &p) ? 100 : 0;
}

static size_t conv2d_chain_workspace(const tutti_kernel_query *query)
{
    chain_plan p = {0};
    if (!conv2d_chain_make(query, &p))
        return 0;
    tutti_conv_windows sizes = tutti__conv_windows_sizes(&p.chain.shape, false);
    if (keeps(query, &p)) {
        place_room(&p, &sizes);
        return p.scratch + p.room;
    }
    return p.tiles ? winograd_workspace(&p.winograd) : direct_workspace(&sizes);
}

static void conv2d_chain_discard(void *pointer)
{
    chain_plan *p = pointer;
    if (p == NULL)
        return;
    tutti__kept_give(p->kept);
    free(p->walk);
    free(p);
}

/* The kernel [height, width, channels, filters], wherever it stands, as panels. */
static void conv2d_chain_fill(const void *context, tutti_pool *pool, tutti_tensor *source,
                              float *to)
{
    const chain_plan *p = context;
    tutti_standing kernel = tutti__tensor_standing(source);
    winograd_work tiles = {.plan = &p->winograd, .kernel = kernel.bytes, .panels = to};
    direct_standing direct = {.walk = p->walk,
                              .size = p->chain.shape.windows.size,
                              .kernel = kernel.bytes,
                              .strides = kernel.strides,
                              .panels = to};
    memcpy(tiles.strides, kernel.strides, sizeof tiles.strides);
    if (p->tiles)
        tutti__pool_run(pool, p->winograd.width / WIDTH, winograd_kernel_piece, &tiles);
    else
        tutti__pool_run(pool, panel_count(p->walk->filters), direct_pack_standing, &direct);
    tutti__buffer_release(kernel.holder);
}

static tutti_status conv2d_chain_keep(const tutti_kernel_query *query, chain_plan *p)
{
    char form[80];
    place_room(p, p->walk);
    snprintf(form, sizeof form, "conv2d %s %s", p->tiles ? "tiles" : "direct", TUTTI_ISA_TEXT);
    return tutti__kept_take(tutti__kept_source(query, p->chain.kernel), form,
                            panel_floats(p, p->walk), &p->kept);
}

static tutti_status conv2d_chain_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    chain_plan *p = calloc(1, sizeof *p);
    if (p == NULL || !conv2d_chain_make(query, p)) {
        free(p);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of '%s'", query->node.name);
    }
    tutti_status status = tutti__conv_windows(&p->chain.shape, false, &p->walk);
    if (status == TUTTI_OK && keeps(query, p))
        status = conv2d_chain_keep(query, p);
    if (status != TUTTI_OK)
        conv2d_chain_discard(p);
    else
        *ret_plan = p;
    return status;
}

/* The kernel is not wanted where its panels are kept, unless it is another input as well. */
static bool reads(const void *plan, int input)
{
    const chain_plan *p = plan;
    return input != p->chain.kernel || p->kept == NULL || input == p->chain.x ||
           input == p->chain.bias || input == p->chain.residual;
}

static tutti_status conv2d_chain_run(const tutti_kernel_call *call)
{
    const chain_plan *p = call->plan;
    const float *x = call->inputs[p->chain.x].data, *kernel = call->inputs[p->chain.kernel].data;
    float *room = p->room == 0 ? NULL : (float *)(void *)((char *)call->workspace + p->scratch);
    const float *packed = tutti__kept_data(p->kept, conv2d_chain_fill, p, call->pool, room);
    conv_finish finish = conv_finish_chain(&p->chain, call);
    if (p->tiles) {
        winograd_run(call, &p->winograd, false, x, kernel, packed, &finish);
        return TUTTI_OK;
    }
    direct_work work = {
        .x = x, .kernel = kernel, .packed = packed, .y = call->outputs[0].data, .finish = finish};
    direct_run(call, p->walk, &work);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv2d_chain) = {
    .name = "fused.conv2d_chain",
    .version = 1,
    .op = "fused",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = conv2d_chain_score,
    .workspace = conv2d_chain_workspace,
    .prepare = conv2d_chain_prepare,
    .discard = conv2d_chain_discard,
    .reads = reads,
    .run = conv2d_chain_run,
};
