/* attention_backward.c: with p = exp(min(s - l, 0)), ds = p (dy v^T - sum(dy y) + dl):
 * dq = scale ds k, dk = scale ds^T q, dv = p^T dy. A head is one piece: its tiles add to the same
 * rows of dk and dv in order. */
#include "device/cpu/attention/backward.h"
#include "device/cpu/attention/tiles.h"

/* Row i of a tile: scores become p, grads (dy v^T) become scale ds. */
static void finish_row(const attention_work *w, const attention_tile *t, int64_t i, float shared,
                       const attention_slot *s)
{
    float *p = s->scores + i * ATTENTION_TILE, *ds = s->grads + i * ATTENTION_TILE;
    int64_t seen = attention_scores(&w->a, t, i, w->mask, p);
    const float l = w->l[t->head * w->a.queries + t->query + i], scale = (float)w->a.scale;
    seen = l == -INFINITY ? 0 : seen;
    ROW_MAP(p, seen, probability(ROW_AT(p), S(l)));
    ROW_MAP(ds, seen, ROW_AT(p) * (ROW_AT(ds) + shared) * scale);
    for (int64_t j = seen; j < t->keys; j++)
        p[j] = ds[j] = 0;
}

/* grads = dy v^T of a tile */
static void value_products(const attention_work *w, const attention_slot *s,
                           const attention_tile *t)
{
    const tutti_attention *a = &w->a;
    if (w->dy == NULL) {
        memset(s->grads, 0, ATTENTION_TILE * ATTENTION_TILE * sizeof(float));
        return;
    }
    attention_multiply(s, (tutti_gemm){.trans_b = true,
                                       .m = t->rows,
                                       .n = t->keys,
                                       .k = a->values,
                                       .a = w->dy + (t->head * a->queries + t->query) * a->values,
                                       .b = w->v + (t->head * a->keys + t->key) * a->values,
                                       .c = s->grads,
                                       .lda = a->values,
                                       .ldb = a->values,
                                       .ldc = ATTENTION_TILE});
}

/* Adds a tile's part of dq, dk and dv. */
static void add_products(const attention_work *w, const attention_slot *s, const attention_tile *t)
{
    const tutti_attention *a = &w->a;
    int64_t row = t->head * a->queries + t->query, column = t->head * a->keys + t->key;
    attention_multiply(s, (tutti_gemm){.add = true,
                                       .m = t->rows,
                                       .n = a->features,
                                       .k = t->keys,
                                       .a = s->grads,
                                       .b = w->k + column * a->features,
                                       .c = w->dq + row * a->features,
                                       .lda = ATTENTION_TILE,
                                       .ldb = a->features,
                                       .ldc = a->features});
    attention_multiply(s, (tutti_gemm){.trans_a = true,
                                       .add = true,
                                       .m = t->keys,
                                       .n = a->features,
                                       .k = t->rows,
                                       .a = s->grads,
                                       .b = w->q + row * a->features,
                                       .c = w->dk + column * a->features,
                                       .lda = ATTENTION_TILE,
                                       .ldb = a->features,
                                       .ldc = a->features});
    if (w->dy != NULL)
        attention_multiply(s, (tutti_gemm){.trans_a = true,
                                           .add = true,
                                           .m = t->keys,
                                           .n = a->values,
                                           .k = t->rows,
                                           .a = s->scores,
                                           .b = w->dy + row * a->values,
                                           .c = w->dv + column * a->values,
                                           .lda = ATTENTION_TILE,
                                           .ldb = a->values,
                                           .ldc = a->values});
}

static void run_block(const attention_work *w, const attention_slot *s, attention_tile t)
{
    const tutti_attention *a = &w->a;
    float shared[ATTENTION_TILE];
    t.rows = a->queries - t.query < ATTENTION_TILE ? a->queries - t.query : ATTENTION_TILE;
    int64_t seen = tutti__keys_seen(a, t.query + t.rows - 1);
    for (int64_t i = 0; i < t.rows; i++)
        shared[i] = shared_of(w, t.head * a->queries + t.query + i);
    for (t.key = 0; t.key < seen; t.key += ATTENTION_TILE) {
        t.keys = a->keys - t.key < ATTENTION_TILE ? a->keys - t.key : ATTENTION_TILE;
        attention_products(a, s, &t, w->q, w->k);
        value_products(w, s, &t);
        for (int64_t i = 0; i < t.rows; i++)
            finish_row(w, &t, i, shared[i], s);
        add_products(w, s, &t);
    }
}

static void run_head(void *context, int64_t head)
{
    attention_work *w = context;
    const tutti_attention *a = &w->a;
    float *memory = tutti__slot_take(&w->slots);
    attention_slot s = attention_slot_at(w->plan, memory);
    int64_t q = a->queries * a->features, k = a->keys * a->features, v = a->keys * a->values;
    memset(w->dq + head * q, 0, (size_t)q * sizeof(float));
    memset(w->dk + head * k, 0, (size_t)k * sizeof(float));
    memset(w->dv + head * v, 0, (size_t)v * sizeof(float));
    for (int64_t query = 0; query < a->queries; query += ATTENTION_TILE)
        run_block(w, &s, (attention_tile){.head = head, .query = query});
    head_again(w, head);
    tutti__slot_give(&w->slots, memory);
}

static tutti_status run(const tutti_call *call)
{
    return backward_run(call, run_head);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_attention_backward) = {
    .name = "attention_backward.tiles",
    .version = 1,
    .op = "attention_backward",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT | TUTTI_KERNEL_TUNED,
    .score = attention_score,
    .workspace = attention_workspace,
    .prepare = attention_prepare,
    .discard = free,
    .run = run,
};
