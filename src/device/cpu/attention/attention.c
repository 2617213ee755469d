/* attention.c: y = softmax(scale q k^T + mask) v, tile by tile with a running maximum. */
#include "device/cpu/attention/again.h"
#include "device/cpu/attention/tiles.h"

enum { MASK = 3 };

typedef struct attention_work {
    tutti_attention a;
    const attention_plan *plan;
    const float *q, *k, *v, *mask;
    float *y, *l;
    int64_t blocks; /* of queries, per head */
    tutti_slots slots;
} attention_work;

static void finish_row(const attention_work *w, const attention_running *r, int64_t row, int64_t i)
{
    float *y = w->y + row * w->a.values;
    const float inverse = r->total[i] == 0 ? 0 : 1 / r->total[i];
    ROW_MAP(y, w->a.values, ROW_AT(y) * inverse);
    w->l[row] = r->most[i] + logf(r->total[i]);
}

static void attention_run_block(void *context, int64_t index)
{
    attention_work *w = context;
    const tutti_attention *a = &w->a;
    attention_tile t = {.head = index / w->blocks, .query = index % w->blocks * ATTENTION_TILE};
    t.rows = a->queries - t.query < ATTENTION_TILE ? a->queries - t.query : ATTENTION_TILE;
    int64_t seen = tutti__keys_seen(a, t.query + t.rows - 1), first = t.head * a->queries + t.query;
    float *memory = tutti__slot_take(&w->slots);
    attention_slot s = attention_slot_at(w->plan, memory);
    attention_running r;
    for (int64_t i = 0; i < t.rows; i++) {
        r.most[i] = -INFINITY;
        r.total[i] = 0;
    }
    memset(w->y + first * a->values, 0, (size_t)(t.rows * a->values) * sizeof(float));
    for (t.key = 0; t.key < seen; t.key += ATTENTION_TILE) {
        t.keys = a->keys - t.key < ATTENTION_TILE ? a->keys - t.key : ATTENTION_TILE;
        attention_products(a, &s, &t, w->q, w->k);
        for (int64_t i = 0; i < t.rows; i++)
            attention_add_row(a, &r, &t, i, w->mask, s.scores + i * ATTENTION_TILE, a->values,
                              w->y + (first + i) * a->values);
        attention_multiply(&s, (tutti_gemm){.add = true,
                                            .m = t.rows,
                                            .n = a->values,
                                            .k = t.keys,
                                            .a = s.scores,
                                            .b = w->v + (t.head * a->keys + t.key) * a->values,
                                            .c = w->y + first * a->values,
                                            .lda = ATTENTION_TILE,
                                            .ldb = a->values,
                                            .ldc = a->values});
    }
    for (int64_t i = 0; i < t.rows; i++)
        finish_row(w, &r, first + i, i);
    attention_again(a, &(attention_operands){w->q, w->k, w->v, w->mask, w->l}, first, t.rows, w->y);
    tutti__slot_give(&w->slots, memory);
}

static tutti_status attention_run(const tutti_kernel_call *call)
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
    w.blocks = (w.a.queries + ATTENTION_TILE - 1) / ATTENTION_TILE;
    tutti__slots_start(&w.slots, call->workspace, w.plan->slot_floats * sizeof(float),
                       w.plan->threads);
    tutti_parallel(call, w.a.batch * w.a.heads * w.blocks, attention_run_block, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_attention) = {
    .name = "attention.tiles",
    .version = 1,
    .op = "attention",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT | TUTTI_KERNEL_TUNED,
    .score = attention_score,
    .workspace = attention_workspace,
    .prepare = attention_prepare,
    .discard = free,
    .run = attention_run,
};
