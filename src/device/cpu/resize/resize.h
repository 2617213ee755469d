/* resize.h: resizing of floats, axis after axis, for files compiled once for each instruction set.
 * Along an axis x is [outer, in, inner]; each line of `inner` floats of the result is a weighted
 * sum of lines of x. */
#ifndef TUTTI_DEVICE_CPU_RESIZE_RESIZE_H
#define TUTTI_DEVICE_CPU_RESIZE_RESIZE_H

#include <stdlib.h>

#include "device/cpu/row/row.h"
#include "ops/network/resize.h"

enum { RESIZE_PIECE_FLOATS = 16384 };

typedef struct resize_pass {
    tutti_resize_taps *taps;
    int64_t outer, in, inner;
} resize_pass;

typedef struct resize_plan {
    int count;
    int64_t room; /* floats of one result between passes, a multiple of 16 */
    float fill;
    resize_pass passes[TUTTI_MAX_RANK];
} resize_plan;

static void resize_discard(void *pointer)
{
    resize_plan *plan = pointer;
    for (int i = 0; plan != NULL && i < plan->count; i++)
        free(plan->passes[i].taps);
    free(plan);
}

static inline bool resize_takes(const tutti_kernel_query *query)
{
    return row_floats(query, 1) && tutti_type_is_static(&query->node.inputs[0]) &&
           tutti_type_is_static(&query->node.outputs[0]) &&
           tutti_type_count(&query->node.outputs[0]) > 0 &&
           tutti_type_count(&query->node.inputs[0]) > 0;
}

/* The passes over input 0, without their taps. x is the larger or smaller side that the attributes
 * speak of: the input of resize, the output of its gradient. */
static inline tutti_resizing resize_passes(const tutti_kernel_query *query, bool backward,
                                           resize_plan *plan)
{
    const tutti_infer *node = &query->node;
    const tutti_type *x = backward ? &node->outputs[0] : &node->inputs[0];
    tutti_resizing r = tutti__resize_of(node->attrs, node->attr_count, x->rank, x->dims);
    tutti_type at = node->inputs[0];
    *plan = (resize_plan){.count = r.count};
    for (int i = 0; i < r.count; i++) {
        int axis = r.axes[i].axis;
        resize_pass *pass = &plan->passes[i];
        *pass = (resize_pass){.outer = 1, .in = at.dims[axis], .inner = 1};
        for (int k = 0; k < at.rank; k++) {
            pass->outer *= k < axis ? at.dims[k] : 1;
            pass->inner *= k > axis ? at.dims[k] : 1;
        }
        at.dims[axis] = backward ? r.axes[i].in : r.axes[i].out;
        int64_t room = (tutti_type_count(&at) + 15) / 16 * 16;
        if (i + 1 < r.count && room > plan->room)
            plan->room = room;
    }
    return r;
}

static inline size_t resize_workspace(const tutti_kernel_query *query, bool backward)
{
    resize_plan plan;
    if (!resize_takes(query))
        return 0;
    resize_passes(query, backward, &plan);
    return 2 * (size_t)plan.room * sizeof(float);
}

static inline tutti_status resize_prepare(const tutti_kernel_query *query, bool backward,
                                          void **ret_plan)
{
    const tutti_infer *node = &query->node;
    resize_plan *plan = malloc(sizeof *plan);
    if (plan == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of a resized image");
    tutti_resizing r = resize_passes(query, backward, plan);
    plan->fill =
        backward ? 0
                 : (float)tutti_attr_float(node->attrs, node->attr_count, "extrapolation_value");
    for (int i = 0; i < r.count; i++) {
        tutti_status status = tutti__resize_taps(node->attrs, node->attr_count, &r.axes[i],
                                                 backward, &plan->passes[i].taps);
        if (status != TUTTI_OK) {
            resize_discard(plan);
            return status;
        }
    }
    *ret_plan = plan;
    return TUTTI_OK;
}

typedef struct resize_work {
    const resize_pass *pass;
    const float *from;
    float *to, fill;
    int64_t lines; /* of one piece */
} resize_work;

/* Line i: the sum over its taps, two at a time. */
static inline void resize_line(const resize_work *w, int64_t i, const float *from, float *to)
{
    const tutti_resize_taps *t = w->pass->taps;
    int64_t tap = t->first[i], end = t->first[i + 1], inner = w->pass->inner;
    if (tap == end || (end == tap + 1 && t->weight[tap] == 1)) {
        for (int64_t k = 0; k < inner && tap == end; k++)
            to[k] = w->fill;
        if (tap != end)
            memcpy(to, from + t->index[tap] * inner, (size_t)inner * sizeof *to);
        return;
    }
    bool more = false;
    for (; tap < end; tap += 2, more = true) {
        int64_t other = tap + 1 < end ? tap + 1 : tap;
        const float *a = from + t->index[tap] * inner, *b = from + t->index[other] * inner;
        const float p = (float)t->weight[tap], q = other == tap ? 0 : (float)t->weight[other];
        if (other == tap)
            for (int64_t k = 0; k < inner; k++)
                to[k] = (more ? to[k] : 0) + p * a[k];
        else
            for (int64_t k = 0; k < inner; k++)
                to[k] = (more ? to[k] : 0) + (p * a[k] + q * b[k]);
    }
}

/* Lines [line, end) of so few floats that they stay in registers. */
VEC_INLINE void resize_few(int inner, const resize_work *w, int64_t line, int64_t end)
{
    const resize_pass *p = w->pass;
    const tutti_resize_taps *t = p->taps;
    for (; line < end; line++) {
        int64_t i = line % t->count;
        const float *from = w->from + line / t->count * p->in * inner;
        float sum[4], start = t->first[i] == t->first[i + 1] ? w->fill : 0;
        VEC_UNROLL for (int k = 0; k < inner; k++) sum[k] = start;
        for (int64_t tap = t->first[i]; tap < t->first[i + 1]; tap++) {
            const float weight = (float)t->weight[tap], *x = from + t->index[tap] * inner;
            VEC_UNROLL for (int k = 0; k < inner; k++) sum[k] += weight * x[k];
        }
        VEC_UNROLL for (int k = 0; k < inner; k++) w->to[line * inner + k] = sum[k];
    }
}

static void resize_piece(void *context, int64_t piece)
{
    const resize_work *w = context;
    const resize_pass *p = w->pass;
    int64_t line = piece * w->lines, end = line + w->lines, all = p->outer * p->taps->count;
    end = end < all ? end : all;
    if (p->inner == 1)
        resize_few(1, w, line, end);
    else if (p->inner == 3)
        resize_few(3, w, line, end);
    else if (p->inner == 4)
        resize_few(4, w, line, end);
    else
        for (; line < end; line++)
            resize_line(w, line % p->taps->count,
                        w->from + line / p->taps->count * p->in * p->inner,
                        w->to + line * p->inner);
}

static inline tutti_status resize_run(const tutti_kernel_call *call)
{
    const resize_plan *plan = call->plan;
    const float *from = call->inputs[0].data;
    for (int i = 0; i < plan->count; i++) {
        const resize_pass *pass = &plan->passes[i];
        float *to = call->workspace;
        if (i + 1 == plan->count)
            to = call->outputs[0].data;
        else if (i % 2)
            to += plan->room;
        resize_work w = {pass, from, to, plan->fill, RESIZE_PIECE_FLOATS / pass->inner + 1};
        tutti_parallel(call, (pass->outer * pass->taps->count + w.lines - 1) / w.lines,
                       resize_piece, &w);
        from = to;
    }
    return TUTTI_OK;
}

#endif
