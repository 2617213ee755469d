/* attention_backward.c: with p = exp(min(s - l, 0)), ds = p (dy v^T - sum(dy y) + dl):
 * dq = scale ds k, dk = scale ds^T q, dv = p^T dy. A head is one piece: its tiles add to the same
 * rows of dk and dv in order. */
#include "device/cpu/attention/backward.h"
#include "device/cpu/attention/tiles.h"

/* What the rows of a block need with every tile of keys: dl - sum(dy y), and l as most + rest. */
typedef struct block_rows {
    float shared[ATTENTION_TILE], most[ATTENTION_TILE], rest[ATTENTION_TILE];
} block_rows;

/* Row i of a tile: scores become p, grads (dy v^T) become scale ds. */
static void finish_row(const attention_work *w, const attention_tile *t, int64_t i,
                       const block_rows *r, const attention_slot *s)
{
    float *p = s->scores + i * ATTENTION_TILE, *ds = s->grads + i * ATTENTION_TILE;
    int64_t seen = attention_scores(&w->a, t, i, w->mask, p);
    const float most = r->most[i], rest = r->rest[i], shared = r->shared[i];
    const float scale = (float)w->a.scale;
    seen = most == -INFINITY ? 0 : seen;
    ROW_MAP(p, seen, probability(ROW_AT(p), S(most), S(rest)));
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

/* Sums the exponentials of rows whose l is coarse. */
static void sum_again(const attention_work *w, const attention_slot *s, attention_tile t,
                      int64_t seen, block_rows *r)
{
    const tutti_attention *a = &w->a;
    const float *l = w->l + t.head * a->queries + t.query;
    attention_running sums;
    for (int64_t i = 0; i < t.rows; i++) {
        sums.most[i] = -INFINITY;
        sums.total[i] = 0;
    }
    for (t.key = 0; t.key < seen; t.key += ATTENTION_TILE) {
        t.keys = a->keys - t.key < ATTENTION_TILE ? a->keys - t.key : ATTENTION_TILE;
        attention_products(a, s, &t, w->q, w->k);
        for (int64_t i = 0; i < t.rows; i++)
            if (tutti__attention_coarse(l[i]))
                attention_add_row(a, &sums, &t, i, w->mask, s->scores + i * ATTENTION_TILE, 0,
                                  NULL);
    }
    for (int64_t i = 0; i < t.rows; i++)
        if (tutti__attention_coarse(l[i])) {
            r->most[i] = sums.most[i];
            r->rest[i] = logf(sums.total[i]);
        }
}

static void attention_backward_run_block(const attention_work *w, const attention_slot *s,
                                         attention_tile t)
{
    const tutti_attention *a = &w->a;
    block_rows r;
    bool coarse = false;
    t.rows = a->queries - t.query < ATTENTION_TILE ? a->queries - t.query : ATTENTION_TILE;
    int64_t seen = tutti__keys_seen(a, t.query + t.rows - 1);
    for (int64_t i = 0; i < t.rows; i++) {
        const int64_t row = t.head * a->queries + t.query + i;
        r.shared[i] = shared_of(w, row);
        r.most[i] = w->l[row];
        r.rest[i] = 0;
        coarse = coarse || tutti__attention_coarse(w->l[row]);
    }
    if (coarse)
        sum_again(w, s, t, seen, &r);
    for (t.key = 0; t.key < seen; t.key += ATTENTION_TILE) {
        t.keys = a->keys - t.key < ATTENTION_TILE ? a->keys - t.key : ATTENTION_TILE;
        attention_products(a, s, &t, w->q, w->k);
        value_products(w, s, &t);
        for (int64_t i = 0; i < t.rows; i++)
            finish_row(w, &t, i, &r, s);
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
        attention_backward_run_block(w, &s, (attention_tile){.head = head, .query = query});
    head_again(w, head, (attention_base *)(s.scratch + w->plan->scratch));
    tutti__slot_give(&w->slots, memory);
}

/* A slot has a base of each query at its end. */
static attention_plan attention_backward_plan_of(const tutti_kernel_query *query)
{
    attention_plan plan = attention_plan_of(query);
    size_t floats = plan.slot_floats + 2 * (size_t)query->node.inputs[0].dims[2];
    plan.slot_floats = tutti__slot_bytes(floats * sizeof(float)) / sizeof(float);
    return plan;
}

static size_t attention_backward_workspace(const tutti_kernel_query *query)
{
    return attention_backward_plan_of(query).slot_floats * sizeof(float) *
           (size_t)tutti__slot_count(query->threads);
}

static tutti_status attention_backward_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    attention_plan plan = attention_backward_plan_of(query);
    return tutti__kernel_keep(query, &plan, sizeof plan, ret_plan);
}

static tutti_status attention_backward_run(const tutti_kernel_call *call)
{
    return backward_run(call, run_head);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_attention_backward) = {
    .name = "attention_backward.tiles",
    .version = 2,
    .op = "attention_backward",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT | TUTTI_KERNEL_TUNED,
    .score = attention_score,
    .workspace = attention_backward_workspace,
    .prepare = attention_backward_prepare,
    .discard = free,
    .run = attention_backward_run,
};
