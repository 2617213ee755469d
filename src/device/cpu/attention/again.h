/* again.h: rows of attention and of its gradients once more, pair by pair, for files that are
 * compiled once for each instruction set.
 *
 * Tiles and lanes multiply what a query does not see, or gives no weight, by 0. That is nothing,
 * but of infinities and NaN it is NaN, where the reference never looks. So a row that came out
 * infinite or NaN is computed again from what it sees alone. Rows that came out finite have met
 * nothing of the kind: they pay one look at what they have written. */
#ifndef TUTTI_DEVICE_CPU_ATTENTION_AGAIN_H
#define TUTTI_DEVICE_CPU_ATTENTION_AGAIN_H

#include "device/cpu/attention/tiles.h"

/* l: log(sum(exp(scores))) of each query, which no value has touched; mask may be NULL. Rows of q
 * and l count queries over batch and heads, rows of k and v keys. */
typedef struct attention_operands {
    const float *q, *k, *v, *mask, *l;
} attention_operands;

/* 0 times each of them is 0. */
static inline bool all_finite(const float *x, int64_t count)
{
    vec sums[ROW_SUMS] = {{0}};
    int64_t i = 0;
    for (; i + ROW_SUMS * VEC_LANES <= count; i += ROW_SUMS * VEC_LANES) {
        VEC_UNROLL for (int k = 0; k < ROW_SUMS; k++) sums[k] =
            vec_fma(vec_load(x + i + k * VEC_LANES), S(0.0f), sums[k]);
    }
    for (; i + VEC_LANES <= count; i += VEC_LANES)
        sums[0] = vec_fma(vec_load(x + i), S(0.0f), sums[0]);
    if (i < count)
        sums[1] = vec_fma(tile_load_rest(x + i, count - i), S(0.0f), sums[1]);
    return row_total((sums[0] + sums[2]) + (sums[1] + sums[3])) == 0;
}

static inline float row_dot(const float *x, const float *y, int64_t count)
{
    float sum;
    ROW_SUM(sum, count, ROW_AT(x) * ROW_AT(y));
    return sum;
}

/* to += factor * x */
static inline void row_add(float *to, float factor, const float *x, int64_t count)
{
    ROW_MAP(to, count, vec_fma(ROW_AT(x), S(factor), ROW_AT(to)));
}

static inline float pair_score(const tutti_attention *a, const attention_operands *o, int64_t row,
                               int64_t key)
{
    const int64_t head = row / a->queries, query = row % a->queries;
    float s = row_dot(o->q + row * a->features, o->k + (head * a->keys + key) * a->features,
                      a->features) *
              (float)a->scale;
    if (o->mask != NULL)
        s += o->mask[head / a->heads * a->mask_step[0] + head % a->heads * a->mask_step[1] +
                     query * a->mask_step[2] + key * a->mask_step[3]];
    return s;
}

/* l of a query as most + rest: summed again where it is coarse, see attention.h. */
typedef struct attention_base {
    float most, rest;
} attention_base;

static inline attention_base base_again(const tutti_attention *a, const attention_operands *o,
                                        int64_t row)
{
    const int64_t seen = tutti__keys_seen(a, row % a->queries);
    attention_base base = {o->l[row], 0};
    if (!tutti__attention_coarse(base.most) || seen == 0)
        return base;
    base.most = -INFINITY;
    for (int64_t key = 0; key < seen; key++) {
        const float s = pair_score(a, o, row, key);
        base.most = s <= base.most ? base.most : s; /* NaN ends in the total */
    }
    for (int64_t key = 0; key < seen; key++)
        base.rest += expf(pair_score(a, o, row, key) - base.most);
    base.rest = logf(base.rest);
    return base;
}

/* exp(min(s - l, 0)) of a pair; 0 for a query that sees nothing, whose l is -inf. */
static inline float pair_weight(const tutti_attention *a, const attention_operands *o,
                                attention_base base, int64_t row, int64_t key)
{
    if (base.most == -INFINITY)
        return 0;
    const float s = pair_score(a, o, row, key);
    return s > base.most ? 1 : expf(s - base.most - base.rest);
}

/* Rows [first, first + count) of y, those that need it. */
static inline void attention_again(const tutti_attention *a, const attention_operands *o,
                                   int64_t first, int64_t count, float *y)
{
    if (all_finite(y + first * a->values, count * a->values))
        return;
    for (int64_t row = first; row < first + count; row++) {
        float *to = y + row * a->values;
        if (all_finite(to, a->values))
            continue;
        const int64_t column = row / a->queries * a->keys;
        const attention_base base = base_again(a, o, row);
        memset(to, 0, (size_t)a->values * sizeof(float));
        for (int64_t key = 0; key < tutti__keys_seen(a, row % a->queries); key++) {
            const float p = pair_weight(a, o, base, row, key);
            if (p != 0)
                row_add(to, p, o->v + (column + key) * a->values, a->values);
        }
    }
}

#endif
