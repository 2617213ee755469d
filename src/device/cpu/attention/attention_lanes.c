/* attention_lanes.c: y = softmax(scale q k^T + mask) v with one query in each lane, and a running
 * maximum over tiles of keys. */
#include "device/cpu/attention/again.h"
#include "device/cpu/attention/lanes.h"

enum { MASK = 3 };

typedef struct attention_work {
    tutti_attention a;
    const attention_plan *plan;
    const float *q, *k, *v, *mask;
    float *y, *l;
    int64_t tiles; /* of queries, per head */
    tutti_slots slots;
} attention_work;

static void attention_lanes_finish(const attention_work *w, const lanes_block *b,
                                   const lanes_running *r, const float *y)
{
    int64_t first = b->head * w->a.queries + b->query;
    float total[BLOCK], most[BLOCK], inverse[BLOCK];
    VEC_UNROLL for (int v = 0; v < BLOCK_VECS; v++)
    {
        vec_store(total + v * VEC_LANES, r->total[v]);
        vec_store(most + v * VEC_LANES, r->most[v]);
    }
    for (int64_t i = 0; i < BLOCK; i++)
        inverse[i] = total[i] == 0 ? 0 : 1 / total[i];
    lanes_give(b->rows, w->a.values, y, inverse, w->y + first * w->a.values);
    for (int64_t i = 0; i < b->rows; i++)
        w->l[first + i] = most[i] + logf(total[i]);
    attention_again(&w->a, &(attention_operands){w->q, w->k, w->v, w->mask, w->l}, first, b->rows,
                    w->y);
}

static void attention_lanes_run_block(const attention_work *w, lanes_block b, float *memory)
{
    const tutti_attention *a = &w->a;
    float *scores = memory, *q = scores + SCORES, *y = q + BLOCK * a->features;
    int64_t seen = tutti__keys_seen(a, b.query + b.rows - 1);
    lanes_running r;
    lanes_start(&r);
    lanes_take(b.rows, a->features, w->q + (b.head * a->queries + b.query) * a->features, q);
    memset(y, 0, (size_t)(BLOCK * a->values) * sizeof(float));
    for (b.key = 0; b.key < seen; b.key += ATTENTION_TILE) {
        int64_t at = b.head * a->keys + b.key;
        lanes_look(a, &b);
        lanes_dot(b.keys, a->features, w->k + at * a->features, q, scores);
        lanes_mask(a, &b, w->mask, scores);
        lanes_add(&r, b.keys, b.key > 0 ? a->values : 0, scores, y);
        lanes_combine(b.keys, a->values, w->v + at * a->values, scores, y, true);
    }
    attention_lanes_finish(w, &b, &r, y);
}

static void run_tile(void *context, int64_t index)
{
    attention_work *w = context;
    int64_t first = index % w->tiles * ATTENTION_TILE, end = first + ATTENTION_TILE;
    end = end < w->a.queries ? end : w->a.queries;
    float *memory = tutti__slot_take(&w->slots);
    for (int64_t query = first; query < end; query += BLOCK)
        attention_lanes_run_block(w,
                                  (lanes_block){.head = index / w->tiles,
                                                .query = query,
                                                .rows = end - query < BLOCK ? end - query : BLOCK},
                                  memory);
    tutti__slot_give(&w->slots, memory);
}

static tutti_status attention_lanes_run(const tutti_kernel_call *call)
{
    bool masked = call->input_count > MASK;
    attention_work w = {.a = tutti__attention(call, masked ? MASK : -1),
                        .plan = call->plan,
                        .q = call->inputs[0].data,
                        .k = call->inputs[1].data,
                        .v = call->inputs[2].data,
                        .mask = masked ? call->inputs[MASK].data : NULL,
                        .y = call->outputs[0].data,
                        .l = call->outputs[1].data};
    w.tiles = (w.a.queries + ATTENTION_TILE - 1) / ATTENTION_TILE;
    tutti__slots_start(&w.slots, call->workspace, w.plan->slot_floats * sizeof(float),
                       w.plan->threads);
    tutti_parallel(call, w.a.batch * w.a.heads * w.tiles, run_tile, &w);
    return TUTTI_OK;
}

/* Scores, q^T, y^T. */
static size_t slot_floats(const tutti_kernel_query *query)
{
    const tutti_type *in = query->node.inputs;
    return SCORES + BLOCK * (size_t)(in[0].dims[3] + in[2].dims[3]);
}

static size_t attention_lanes_workspace(const tutti_kernel_query *query)
{
    return lanes_bytes(query, slot_floats(query));
}

static tutti_status attention_lanes_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    return lanes_plan(query, slot_floats(query), ret_plan);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_attention_lanes) = {
    .name = "attention.lanes",
    .version = 1,
    .op = "attention",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT | TUTTI_KERNEL_TUNED,
    .score = lanes_score,
    .workspace = attention_lanes_workspace,
    .prepare = attention_lanes_prepare,
    .discard = free,
    .run = attention_lanes_run,
};
