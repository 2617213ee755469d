/* backward.h: what both kernels of attention's gradient begin and end with, for files that are
 * compiled once for each instruction set. */
#ifndef TUTTI_DEVICE_CPU_ATTENTION_BACKWARD_H
#define TUTTI_DEVICE_CPU_ATTENTION_BACKWARD_H

#include "device/cpu/attention/tiles.h"

typedef struct attention_work {
    tutti_attention a;
    const attention_plan *plan;
    const float *q, *k, *v, *y, *l, *mask, *dy, *dl; /* the last three may be NULL */
    float *dq, *dk, *dv;
    tutti_slots slots;
} attention_work;

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

static inline const float *slot_data(const tutti_call *call, int slot)
{
    return slot < 0 ? NULL : call->inputs[slot].data;
}

/* Heads side by side; run_head's context is the work. */
static inline tutti_status backward_run(const tutti_call *call,
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
