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

/* The rows in the making: y = sum / total, with exponentials taken off `most`. */
typedef struct running {
    float most[ATTENTION_TILE], total[ATTENTION_TILE];
} running;

/* Row i of a tile: scores become exponentials, 0 for keys not seen; what was summed so far is
 * scaled to the new maximum. */
static void add_row(const attention_work *w, running *r, const attention_tile *t, int64_t i,
                    float *scores)
{
    int64_t seen = attention_scores(&w->a, t, i, w->mask, scores), values = w->a.values;
    float *y = w->y + (t->head * w->a.queries + t->query + i) * values;
    float most = row_max(scores, seen);
    most = most <= r->most[i] ? r->most[i] : most;
    if (most == -INFINITY)
        seen = 0;
    for (int64_t j = seen; j < t->keys; j++)
        scores[j] = 0;
    if (seen == 0)
        return;
    float sum;
    ROW_MAP(scores, seen, vec_exp(ROW_AT(scores) - most));
    ROW_SUM(sum, seen, ROW_AT(scores));
    if (t->key > 0 && most != r->most[i]) {
        const float correction = expf(r->most[i] - most);
        ROW_MAP(y, values, ROW_AT(y) * correction);
        r->total[i] *= correction;
    }
    r->total[i] += sum;
    r->most[i] = most;
}

static void finish_row(const attention_work *w, const running *r, int64_t row, int64_t i)
{
    float *y = w->y + row * w->a.values;
    const float inverse = r->total[i] == 0 ? 0 : 1 / r->total[i];
    ROW_MAP(y, w->a.values, ROW_AT(y) * inverse);
    w->l[row] = r->most[i] + logf(r->total[i]);
}

static void run_block(void *context, int64_t index)
{
    attention_work *w = context;
    const tutti_attention *a = &w->a;
    attention_tile t = {.head = index / w->blocks, .query = index % w->blocks * ATTENTION_TILE};
    t.rows = a->queries - t.query < ATTENTION_TILE ? a->queries - t.query : ATTENTION_TILE;
    int64_t seen = tutti__keys_seen(a, t.query + t.rows - 1), first = t.head * a->queries + t.query;
    float *memory = tutti__slot_take(&w->slots);
    attention_slot s = attention_slot_at(w->plan, memory);
    running r;
    for (int64_t i = 0; i < t.rows; i++) {
        r.most[i] = -INFINITY;
        r.total[i] = 0;
    }
    memset(w->y + first * a->values, 0, (size_t)(t.rows * a->values) * sizeof(float));
    for (t.key = 0; t.key < seen; t.key += ATTENTION_TILE) {
        t.keys = a->keys - t.key < ATTENTION_TILE ? a->keys - t.key : ATTENTION_TILE;
        attention_products(a, &s, &t, w->q, w->k);
        for (int64_t i = 0; i < t.rows; i++)
            add_row(w, &r, &t, i, s.scores + i * ATTENTION_TILE);
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

static tutti_status run(const tutti_call *call)
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
    tutti_parallel(call, w.a.batch * w.a.heads * w.blocks, run_block, &w);
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
    .run = run,
};
