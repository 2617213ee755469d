/* backward.h: what both kernels of attention's gradient begin and end with, for files that are
 * compiled once for each instruction set. */
#ifndef TUTTI_DEVICE_CPU_ATTENTION_BACKWARD_H
#define TUTTI_DEVICE_CPU_ATTENTION_BACKWARD_H

#include "device/cpu/attention/again.h"
#include "device/cpu/attention/tiles.h"

typedef struct attention_work {
    tutti_attention a;
    const attention_plan *plan;
    const float *q, *k, *v, *y, *l, *mask, *dy, *dl; /* the last three may be NULL */
    float *dq, *dk, *dv;
    tutti_slots slots;
} attention_work;

/* p = exp(min(s - l, 0)) with l = most + rest, where rest is not 0 only if l is coarse, see
 * ops/network/attention.h. No score is above the logarithm of their sum, but rounding may put one
 * there. */
VEC_INLINE vec probability(vec s, vec most, vec rest)
{
    return vec_exp(vec_select(vec_gt(s, most), S(0.0f), s - most) - rest);
}

/* dl - sum(dy y) of a row */
static inline float shared_of(const attention_work *w, int64_t row)
{
    float sum = 0;
    if (w->dy != NULL) {
        const float *dy = w->dy + row * w->a.values, *y = w->y + row * w->a.values;
        ROW_SUM(sum, w->a.values, ROW_AT(dy) * ROW_AT(y));
    }
    return (w->dl == NULL ? 0 : w->dl[row]) - sum;
}

/* ---- rows that came out infinite or NaN, again (see again.h) ---- */

/* scale ds of a pair, and its p. */
static inline float pair_gradient(const attention_work *w, const attention_operands *o,
                                  attention_base base, int64_t row, int64_t key, float *ret_p)
{
    const tutti_attention *a = &w->a;
    const float p = pair_weight(a, o, base, row, key);
    float dp = 0;
    if (w->dy != NULL)
        dp = row_dot(w->dy + row * a->values, w->v + (row / a->queries * a->keys + key) * a->values,
                     a->values);
    *ret_p = p;
    return p == 0 ? 0 : p * (dp + shared_of(w, row)) * (float)a->scale;
}

static inline void query_again(const attention_work *w, const attention_operands *o,
                               attention_base base, int64_t row)
{
    const tutti_attention *a = &w->a;
    const int64_t column = row / a->queries * a->keys;
    const int64_t seen = w->l[row] == -INFINITY ? 0 : tutti__keys_seen(a, row % a->queries);
    float *dq = w->dq + row * a->features, p;
    memset(dq, 0, (size_t)a->features * sizeof(float));
    for (int64_t key = 0; key < seen; key++)
        row_add(dq, pair_gradient(w, o, base, row, key, &p), w->k + (column + key) * a->features,
                a->features);
}

static inline void key_again(const attention_work *w, const attention_operands *o,
                             const attention_base *bases, int64_t head, int64_t key)
{
    const tutti_attention *a = &w->a;
    float *dk = w->dk + (head * a->keys + key) * a->features, p;
    float *dv = w->dv + (head * a->keys + key) * a->values;
    memset(dk, 0, (size_t)a->features * sizeof(float));
    memset(dv, 0, (size_t)a->values * sizeof(float));
    for (int64_t query = 0; query < a->queries; query++) {
        const int64_t row = head * a->queries + query;
        if (tutti__keys_seen(a, query) <= key || w->l[row] == -INFINITY)
            continue;
        row_add(dk, pair_gradient(w, o, bases[query], row, key, &p), w->q + row * a->features,
                a->features);
        if (w->dy != NULL)
            row_add(dv, p, w->dy + row * a->values, a->values);
    }
}

/* Room for a base of each query is given. */
static inline void head_again(const attention_work *w, int64_t head, attention_base *bases)
{
    const tutti_attention *a = &w->a;
    const attention_operands o = {w->q, w->k, w->v, w->mask, w->l};
    const int64_t queries = head * a->queries, keys = head * a->keys;
    if (all_finite(w->dq + queries * a->features, a->queries * a->features) &&
        all_finite(w->dk + keys * a->features, a->keys * a->features) &&
        all_finite(w->dv + keys * a->values, a->keys * a->values))
        return;
    for (int64_t query = 0; query < a->queries; query++)
        bases[query] = base_again(a, &o, queries + query);
    for (int64_t query = 0; query < a->queries; query++)
        if (!all_finite(w->dq + (queries + query) * a->features, a->features))
            query_again(w, &o, bases[query], queries + query);
    for (int64_t key = 0; key < a->keys; key++)
        if (!all_finite(w->dk + (keys + key) * a->features, a->features) ||
            !all_finite(w->dv + (keys + key) * a->values, a->values))
            key_again(w, &o, bases, head, key);
}

static inline const float *slot_data(const tutti_kernel_call *call, int slot)
{
    return slot < 0 ? NULL : call->inputs[slot].data;
}

/* Heads side by side; run_head's context is the work. */
static inline tutti_status backward_run(const tutti_kernel_call *call,
                                        void (*run_head)(void *context, int64_t head))
{
    tutti_attention_slots slots =
        tutti__attention_slots(tutti__call_int(call, "grads"), call->input_count);
    attention_work w = {.a = tutti__attention(call, slots.mask),
                        .plan = call->plan,
                        .q = call->inputs[ATTENTION_Q].data,
                        .k = call->inputs[ATTENTION_K].data,
                        .v = call->inputs[ATTENTION_V].data,
                        .y = call->inputs[ATTENTION_Y].data,
                        .l = call->inputs[ATTENTION_L].data,
                        .mask = slot_data(call, slots.mask),
                        .dy = slot_data(call, slots.y_grad),
                        .dl = slot_data(call, slots.l_grad),
                        .dq = call->outputs[0].data,
                        .dk = call->outputs[1].data,
                        .dv = call->outputs[2].data};
    tutti__slots_start(&w.slots, call->workspace, w.plan->slot_floats * sizeof(float),
                       w.plan->threads);
    tutti_parallel(call, w.a.batch * w.a.heads, run_head, &w);
    return TUTTI_OK;
}

#endif
