/* attention_lanes_backward.c: the gradients of attention (see attention_backward.c) with one query
 * in each lane. A head is one piece: its tiles add to the same rows of dk and dv in order. */
#include "device/cpu/attention/backward.h"
#include "device/cpu/attention/lanes.h"

/* A slot: p and ds [key][BLOCK] of one block; q^T, dy^T and dq^T of the blocks of a tile; two
 * floats for each query of a head. Of the queries of a tile dl - sum(dy y), and l as most + rest.
 */
typedef struct parts {
    float *p, *ds, *q, *dy, *dq, *bases;
    float shared[ATTENTION_TILE], most[ATTENTION_TILE], rest[ATTENTION_TILE];
} parts;

/* Sums the exponentials of a block's rows whose l is coarse. */
static void sum_again(const attention_work *w, lanes_block b, int64_t index, parts *s)
{
    const tutti_attention *a = &w->a;
    const float *l = w->l + b.head * a->queries + b.query;
    const int64_t seen = tutti__keys_seen(a, b.query + b.rows - 1);
    float most[BLOCK], total[BLOCK];
    lanes_running r;
    lanes_start(&r);
    for (b.key = 0; b.key < seen; b.key += ATTENTION_TILE) {
        lanes_look(a, &b);
        lanes_dot(b.keys, a->features, w->k + (b.head * a->keys + b.key) * a->features,
                  s->q + index * BLOCK * a->features, s->p);
        lanes_mask(a, &b, w->mask, s->p);
        lanes_add(&r, b.keys, 0, s->p, NULL);
    }
    VEC_UNROLL for (int v = 0; v < BLOCK_VECS; v++)
    {
        vec_store(most + v * VEC_LANES, r.most[v]);
        vec_store(total + v * VEC_LANES, r.total[v]);
    }
    for (int64_t i = 0; i < b.rows; i++)
        if (tutti__attention_coarse(l[i])) {
            s->most[index * BLOCK + i] = most[i] == -INFINITY ? INFINITY : most[i];
            s->rest[index * BLOCK + i] = most[i] == -INFINITY ? 0 : logf(total[i]);
        }
}

/* What a block's rows need with every tile of keys. Where l is infinite p becomes 0: rows that see
 * nothing, and lanes without a row. */
static void take_block(const attention_work *w, const lanes_block *b, int64_t index, parts *s)
{
    const tutti_attention *a = &w->a;
    bool coarse = false;
    int64_t first = b->head * a->queries + b->query;
    lanes_take(b->rows, a->features, w->q + first * a->features,
               s->q + index * BLOCK * a->features);
    if (w->dy != NULL)
        lanes_take(b->rows, a->values, w->dy + first * a->values,
                   s->dy + index * BLOCK * a->values);
    for (int64_t i = 0; i < BLOCK; i++) {
        float l = i < b->rows ? w->l[first + i] : INFINITY;
        s->most[index * BLOCK + i] = l == -INFINITY ? INFINITY : l;
        s->rest[index * BLOCK + i] = 0;
        s->shared[index * BLOCK + i] = i < b->rows ? shared_of(w, first + i) : 0;
        coarse = coarse || tutti__attention_coarse(l);
    }
    if (coarse)
        sum_again(w, *b, index, s);
}

/* p = exp(min(s - l, 0)), ds = scale p (dp + shared), over scores and dp. */
static void finish_scores(const attention_work *w, int64_t keys, int64_t index, const parts *s)
{
    const float scale = (float)w->a.scale;
    float *p = s->p, *ds = s->ds;
    VEC_UNROLL for (int v = 0; v < BLOCK_VECS; v++)
    {
        const vec most = vec_load(s->most + index * BLOCK + v * VEC_LANES);
        const vec rest = vec_load(s->rest + index * BLOCK + v * VEC_LANES);
        const vec shared = vec_load(s->shared + index * BLOCK + v * VEC_LANES);
        for (int64_t at = v * VEC_LANES; at < keys * BLOCK; at += BLOCK) {
            vec x = probability(vec_load(p + at), most, rest);
            vec_store(p + at, x);
            vec_store(ds + at, x * (vec_load(ds + at) + shared) * scale);
        }
    }
}

/* p, ds and the part of dq^T of one block by a tile of keys. */
static void attention_lanes_backward_run_block(const attention_work *w, lanes_block *b,
                                               int64_t index, const parts *s)
{
    const tutti_attention *a = &w->a;
    const int64_t at = b->head * a->keys + b->key;
    lanes_look(a, b);
    lanes_dot(b->keys, a->features, w->k + at * a->features, s->q + index * BLOCK * a->features,
              s->p);
    if (w->dy != NULL)
        lanes_dot(b->keys, a->values, w->v + at * a->values, s->dy + index * BLOCK * a->values,
                  s->ds);
    else
        memset(s->ds, 0, SCORES * sizeof(float));
    lanes_mask(a, b, w->mask, s->p);
    finish_scores(w, b->keys, index, s);
    lanes_combine(b->keys, a->features, w->k + at * a->features, s->ds,
                  s->dq + index * BLOCK * a->features, true);
}

/* to[rows][count] += sum over the rows of a block of its scores [row][BLOCK] times x[count]. */
VEC_INLINE void add_rows(int rows, int64_t queries, int64_t count, const float *scores,
                         const float *x, float *to)
{
    lanes_scalars s = {scores, BLOCK, 1};
    int64_t c = 0;
    for (; c + BLOCK <= count; c += BLOCK)
        lanes_rows(rows, BLOCK_VECS, queries, s, x + c, count, to + c, count, true);
    for (; c < count; c += VEC_LANES)
        lanes_rows(rows, 1, queries, s, x + c, count, to + c, count, true);
}

/* Adds a block's part to rows of dk (from ds and q) or of dv (from p and dy). */
static void add_block(const lanes_block *b, int64_t count, const float *scores, const float *x,
                      float *to)
{
    int64_t key = 0;
    for (; key + MANY <= b->keys; key += MANY)
        add_rows(MANY, b->rows, count, scores + key * BLOCK, x, to + key * count);
    for (; key < b->keys; key++)
        add_rows(1, b->rows, count, scores + key * BLOCK, x, to + key * count);
}

static void run_tile(const attention_work *w, lanes_block *blocks, int64_t count, const parts *s)
{
    const tutti_attention *a = &w->a;
    const int64_t last = blocks[count - 1].query + blocks[count - 1].rows - 1;
    const int64_t head = blocks[0].head, seen = tutti__keys_seen(a, last);
    for (int64_t key = 0; key < seen; key += ATTENTION_TILE) {
        const int64_t column = head * a->keys + key;
        for (int64_t i = 0; i < count; i++) {
            lanes_block *b = &blocks[i];
            const int64_t row = head * a->queries + b->query;
            b->key = key;
            attention_lanes_backward_run_block(w, b, i, s);
            add_block(b, a->features, s->ds, w->q + row * a->features,
                      w->dk + column * a->features);
            if (w->dy != NULL)
                add_block(b, a->values, s->p, w->dy + row * a->values, w->dv + column * a->values);
        }
    }
}

static void run_queries(const attention_work *w, int64_t head, int64_t first, parts *s)
{
    const tutti_attention *a = &w->a;
    const int64_t end = first + ATTENTION_TILE < a->queries ? first + ATTENTION_TILE : a->queries;
    lanes_block blocks[BLOCKS];
    float ones[BLOCK];
    int64_t count = 0;
    for (int64_t i = 0; i < BLOCK; i++)
        ones[i] = 1;
    for (int64_t query = first; query < end; query += BLOCK, count++) {
        blocks[count] = (lanes_block){
            .head = head, .query = query, .rows = end - query < BLOCK ? end - query : BLOCK};
        take_block(w, &blocks[count], count, s);
    }
    memset(s->dq, 0, (size_t)(ATTENTION_TILE * a->features) * sizeof(float));
    run_tile(w, blocks, count, s);
    for (int64_t i = 0; i < count; i++)
        lanes_give(blocks[i].rows, a->features, s->dq + i * BLOCK * a->features, ones,
                   w->dq + (head * a->queries + blocks[i].query) * a->features);
}

static void run_head(void *context, int64_t head)
{
    attention_work *w = context;
    const tutti_attention *a = &w->a;
    float *memory = tutti__slot_take(&w->slots);
    parts s = {.p = memory, .ds = memory + SCORES};
    s.q = s.ds + SCORES;
    s.dq = s.q + ATTENTION_TILE * a->features;
    s.dy = s.dq + ATTENTION_TILE * a->features;
    s.bases = s.dy + ATTENTION_TILE * a->values;
    int64_t k = a->keys * a->features, v = a->keys * a->values;
    memset(w->dk + head * k, 0, (size_t)k * sizeof(float));
    memset(w->dv + head * v, 0, (size_t)v * sizeof(float));
    for (int64_t first = 0; first < a->queries; first += ATTENTION_TILE)
        run_queries(w, head, first, &s);
    head_again(w, head, (attention_base *)s.bases);
    tutti__slot_give(&w->slots, memory);
}

static tutti_status attention_lanes_backward_run(const tutti_kernel_call *call)
{
    return backward_run(call, run_head);
}

static size_t slot_floats(const tutti_kernel_query *query)
{
    const tutti_type *in = query->node.inputs;
    return 2 * SCORES + ATTENTION_TILE * (size_t)(2 * in[0].dims[3] + in[2].dims[3]) +
           2 * (size_t)in[0].dims[2];
}

static size_t attention_lanes_backward_workspace(const tutti_kernel_query *query)
{
    return lanes_bytes(query, slot_floats(query));
}

static tutti_status attention_lanes_backward_prepare(const tutti_kernel_query *query,
                                                     void **ret_plan)
{
    return lanes_plan(query, slot_floats(query), ret_plan);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_attention_lanes_backward) = {
    .name = "attention_backward.lanes",
    .version = 2,
    .op = "attention_backward",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT | TUTTI_KERNEL_TUNED,
    .score = lanes_score,
    .workspace = attention_lanes_backward_workspace,
    .prepare = attention_lanes_backward_prepare,
    .discard = free,
    .run = attention_lanes_backward_run,
};
