/* tiles.h: attention in tiles of ATTENTION_TILE queries by ATTENTION_TILE keys, for files that are
 * compiled once for each instruction set. A tile of scores stays in the cache; no row of scores is
 * ever whole in memory. */
#ifndef TUTTI_DEVICE_CPU_ATTENTION_TILES_H
#define TUTTI_DEVICE_CPU_ATTENTION_TILES_H

#include <stdlib.h>

#include "device/cpu/gemm/gemm.h"
#include "device/cpu/isa.h"
#include "device/cpu/row/row.h"
#include "device/cpu/slots.h"
#include "ops/network/attention.h"

enum { ATTENTION_TILE = 64 };

typedef struct attention_plan {
    const tutti_gemm_tile *tile;
    int threads;
    size_t packed, scratch, slot_floats; /* of one slot: two tiles of scores, then these */
} attention_plan;

static inline attention_plan attention_plan_of(const tutti_kernel_query *query)
{
    attention_plan plan = {.tile = tutti__gemm_tile(), .threads = query->threads};
    int64_t features = query->node.inputs[0].dims[3], values = query->node.inputs[2].dims[3];
    int64_t widest = features > values ? features : values;
    widest = widest > ATTENTION_TILE ? widest : ATTENTION_TILE;
    plan.packed = (size_t)tutti__gemm_packed_floats(widest, widest);
    plan.scratch = (size_t)tutti__gemm_scratch_floats(ATTENTION_TILE);
    plan.slot_floats = 2 * ATTENTION_TILE * ATTENTION_TILE + plan.packed + plan.scratch;
    plan.slot_floats = tutti__slot_bytes(plan.slot_floats * sizeof(float)) / sizeof(float);
    return plan;
}

/* Floats everywhere, and something to do. */
static inline int attention_score(const tutti_kernel_query *query)
{
    for (int i = 0; i < query->node.input_count; i++)
        if (query->node.inputs[i].dtype != TUTTI_F32)
            return 0;
    for (int i = 0; i < 3; i++)
        if (tutti_type_count(&query->node.inputs[i]) == 0)
            return 0;
    return strcmp(TUTTI_ISA_TEXT, tutti__best_isa()) == 0 ? 100 : 0;
}

static inline size_t attention_workspace(const tutti_kernel_query *query)
{
    attention_plan plan = attention_plan_of(query);
    return plan.slot_floats * sizeof(float) * (size_t)tutti__slot_count(plan.threads);
}

static inline tutti_status attention_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    attention_plan plan = attention_plan_of(query);
    return tutti__kernel_keep(query, &plan, sizeof plan, ret_plan);
}

/* A slot's parts. */
typedef struct attention_slot {
    const tutti_gemm_tile *tile;
    float *scores, *grads, *packed, *scratch;
} attention_slot;

static inline attention_slot attention_slot_at(const attention_plan *plan, float *memory)
{
    attention_slot s = {
        .tile = plan->tile, .scores = memory, .grads = memory + ATTENTION_TILE * ATTENTION_TILE};
    s.packed = s.grads + ATTENTION_TILE * ATTENTION_TILE;
    s.scratch = s.packed + plan->packed;
    return s;
}

static inline void attention_multiply(const attention_slot *s, tutti_gemm gemm)
{
    tutti__gemm_pack(s->tile, &gemm, s->packed);
    tutti__gemm_with(s->tile, &gemm, s->packed, s->scratch);
}

/* A tile: queries [row, row + rows) of one head, by keys [key, key + keys). */
typedef struct attention_tile {
    int64_t head, query, rows, key, keys;
} attention_tile;

/* Raw products q k^T of a tile into the slot's scores, [rows][ATTENTION_TILE]. */
static inline void attention_products(const tutti_attention *a, const attention_slot *s,
                                      const attention_tile *t, const float *q, const float *k)
{
    attention_multiply(s, (tutti_gemm){.trans_b = true,
                                       .m = t->rows,
                                       .n = t->keys,
                                       .k = a->features,
                                       .a = q + (t->head * a->queries + t->query) * a->features,
                                       .b = k + (t->head * a->keys + t->key) * a->features,
                                       .c = s->scores,
                                       .lda = a->features,
                                       .ldb = a->features,
                                       .ldc = ATTENTION_TILE});
}

/* Scores of row i of a tile: scaled, with the mask; returns how many keys of the tile it sees. */
static inline int64_t attention_scores(const tutti_attention *a, const attention_tile *t, int64_t i,
                                       const float *mask, float *scores)
{
    int64_t seen = tutti__keys_seen(a, t->query + i) - t->key;
    seen = seen < 0 ? 0 : seen < t->keys ? seen : t->keys;
    const float scale = (float)a->scale;
    ROW_MAP(scores, seen, ROW_AT(scores) * scale);
    if (mask == NULL)
        return seen;
    mask += t->head / a->heads * a->mask_step[0] + t->head % a->heads * a->mask_step[1] +
            (t->query + i) * a->mask_step[2] + t->key * a->mask_step[3];
    for (int64_t j = 0; j < seen; j++)
        scores[j] += mask[j * a->mask_step[3]];
    return seen;
}

/* The rows in the making: y = sum / total, with exponentials taken off `most`. */
typedef struct attention_running {
    float most[ATTENTION_TILE], total[ATTENTION_TILE];
} attention_running;

/* Row i of a tile: scores become exponentials, 0 for keys not seen; what was summed so far, in
 * total and y[values], is scaled to the new maximum. */
static inline void attention_add_row(const tutti_attention *a, attention_running *r,
                                     const attention_tile *t, int64_t i, const float *mask,
                                     float *scores, int64_t values, float *y)
{
    int64_t seen = attention_scores(a, t, i, mask, scores);
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

#endif
