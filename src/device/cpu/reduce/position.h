/* position.h: argmax and argmin of floats: the first best element; the first NaN is better than any
 * number. */
#ifndef TUTTI_DEVICE_CPU_REDUCE_POSITION_H
#define TUTTI_DEVICE_CPU_REDUCE_POSITION_H

#include "device/cpu/row/row.h"
#include "device/cpu/vector.h"

enum { POSITION_PIECE = 8192 };

typedef struct position_work {
    const float *x;
    int64_t *y;
    int64_t count, inner, results, per_piece;
    float sign; /* -1 finds the smallest */
} position_work;

static inline int64_t position_of(const position_work *w, const float *x)
{
    int64_t best = 0;
    float value = x[0] * w->sign;
    for (int64_t i = 1; i < w->count && value == value; i++) {
        float next = x[i * w->inner] * w->sign;
        bool better = !(next <= value);
        best = better ? i : best;
        value = better ? next : value;
    }
    return best;
}

/* In a row whose elements lie side by side: first the best value, then where it stands. Numbers
 * that are not finite, whose differences are no numbers, are left to the walk above. */
static inline int64_t position_in_row(const position_work *w, const float *x)
{
    float values[VEC_LANES], odd[VEC_LANES];
    vec best = vec_load(x) * vec_splat(w->sign), differences = best - best;
    int64_t i = VEC_LANES;
    for (; i + VEC_LANES <= w->count; i += VEC_LANES) {
        vec next = vec_load(x + i) * vec_splat(w->sign);
        best = vec_select(vec_gt(next, best), next, best);
        differences += next - next;
    }
    vec_store(values, best);
    vec_store(odd, differences);
    float value = values[0];
    bool finite = true;
    for (int lane = 0; lane < VEC_LANES; lane++) {
        value = values[lane] > value ? values[lane] : value;
        finite = finite && odd[lane] == 0;
    }
    for (; i < w->count; i++) {
        float next = x[i] * w->sign;
        value = next > value ? next : value;
        finite = finite && next - next == 0;
    }
    if (!finite)
        return position_of(w, x);
    for (i = 0; x[i] * w->sign != value;)
        i++;
    return i;
}

static inline void position_piece(void *context, int64_t piece)
{
    const position_work *w = context;
    int64_t end = (piece + 1) * w->per_piece;
    for (int64_t i = piece * w->per_piece; i < end && i < w->results; i++)
        w->y[i] = w->inner == 1 && w->count >= VEC_LANES
                      ? position_in_row(w, w->x + i * w->count)
                      : position_of(w, w->x + i / w->inner * w->count * w->inner + i % w->inner);
}

static inline int position_score(const tutti_kernel_query *query)
{
    const tutti_type *x = &query->node.inputs[0];
    return x->dtype == TUTTI_F32 && tutti_type_count(x) > 0 ? 100 : 0;
}

static inline tutti_status position_run(const tutti_call *call, float sign)
{
    const tutti_view *x = &call->inputs[0];
    int64_t axis = tutti__call_int(call, "axis");
    axis = axis < 0 ? axis + x->rank : axis;
    position_work w = {.x = x->data,
                       .y = call->outputs[0].data,
                       .count = x->dims[axis],
                       .inner = 1,
                       .results = tutti_view_count(&call->outputs[0]),
                       .sign = sign};
    for (int i = (int)axis + 1; i < x->rank; i++)
        w.inner *= x->dims[i];
    w.per_piece = POSITION_PIECE / w.count + 1;
    tutti_parallel(call, (w.results + w.per_piece - 1) / w.per_piece, position_piece, &w);
    return TUTTI_OK;
}

#endif
