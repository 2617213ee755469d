/* forward.c: recurrent networks, forward. */
#include <string.h>

#include "device/cpu/recurrent/plan.h"

typedef struct forward_work {
    const tutti_sequence_plan *plan;
    const tutti_kernel_call *call;
    const float *a, *bias, *state_bias;
    const void *packed; /* recurrent */
    const int32_t *groups;
    float *y, *h, *c, *reserve;
    tutti_slots slots;
} forward_work;

/* One row at one time; past its length a row's states stay. In the last `units` of each step's
 * reserve a cell with two states keeps c. */
static void step_row(const forward_work *w, int64_t row, int64_t time, const float *b)
{
    const tutti_sequence_plan *p = w->plan;
    int64_t units = p->units, at = row * p->time + time;
    size_t bytes = (size_t)units * sizeof(float);
    float *reserve = w->reserve == NULL ? NULL : w->reserve + at * p->kept;
    float *h = w->h + row * units, *c = w->c == NULL ? NULL : w->c + row * units;
    if (time < tutti__sequence_length(p, w->call, row))
        p->rows->step(&(tutti_row_step){.units = units,
                                        .a = w->a + at * p->wide,
                                        .b = b,
                                        .bias = w->bias,
                                        .state_bias = w->state_bias,
                                        .h = h,
                                        .c = c,
                                        .reserve = reserve});
    else if (reserve != NULL)
        memset(reserve, 0, (size_t)p->kept * sizeof(float));
    if (c != NULL)
        memcpy(reserve + p->kept - units, c, bytes);
    memcpy(w->y + at * units, h, bytes);
}

/* b = h recurrent for `rows` rows; `scratch` follows b in the slot. */
static void multiply_states(const forward_work *w, int64_t first, int64_t rows, float *b)
{
    const tutti_sequence_plan *p = w->plan;
    const float *h = w->h + first * p->units;
    if (p->rounded) {
        uint16_t *panel = (uint16_t *)(b + tutti__rounded_step_sum_floats(&p->by_step));
        tutti__rounded_step_lay(&p->by_step, rows, h, p->units, panel);
        tutti__rounded_step_multiply(&p->by_step, rows, panel, w->groups, w->packed, b);
        return;
    }
    tutti_gemm product = {
        .m = rows, .n = p->wide, .k = p->units, .a = h, .c = b, .lda = p->units, .ldc = p->wide};
    tutti__gemm_with(p->project.tile, &product, w->packed, b + p->group * p->wide);
}

static void walk_group(void *context, int64_t index)
{
    forward_work *w = context;
    const tutti_sequence_plan *p = w->plan;
    int64_t first = index * p->group, rest = p->batch - first;
    int64_t rows = rest < p->group ? rest : p->group;
    int64_t apart = p->rounded ? p->by_step.columns : p->wide;
    float *b = tutti__slot_take(&w->slots);
    for (int64_t step = 0; step < p->time; step++) {
        multiply_states(w, first, rows, b);
        for (int64_t i = 0; i < rows; i++)
            step_row(w, first + i, tutti__sequence_time(p, step), b + i * apart);
    }
    tutti__slot_give(&w->slots, b);
}

/* The recurrent weights, for all steps. */
static void pack_recurrent(const tutti_kernel_call *call, const tutti_sequence_plan *p,
                           float *memory)
{
    const float *weights = call->inputs[2 + p->cell->states].data;
    if (p->rounded) {
        tutti__rounded_step_pack(&p->by_step, weights, p->wide, 1, (void *)(memory + p->packed));
        tutti__rounded_step_groups(&p->by_step, (void *)(memory + p->groups));
        return;
    }
    tutti_gemm recurrent = {.n = p->wide, .k = p->units, .b = weights, .ldb = p->wide};
    tutti__gemm_pack(p->project.tile, &recurrent, memory + p->packed);
}

tutti_status tutti__sequence_run(const tutti_kernel_call *call)
{
    const tutti_sequence_plan *p = call->plan;
    int states = p->cell->states, kernel = 1 + states;
    float *memory = call->workspace, *a = memory + p->a;
    const float *bias = call->inputs[kernel + 2].data;
    forward_work w = {.plan = p,
                      .call = call,
                      .a = a,
                      .packed = memory + p->packed,
                      .groups = (const void *)(memory + p->groups),
                      .bias = bias,
                      .state_bias = p->cell->biases == 2 ? bias + p->wide : NULL,
                      .y = call->outputs[0].data,
                      .h = call->outputs[1].data,
                      .c = states == 2 ? call->outputs[2].data : NULL,
                      .reserve = p->kept > 0 ? call->outputs[1 + states].data : NULL};
    for (int i = 1; i <= states; i++)
        memcpy(call->outputs[i].data, call->inputs[i].data,
               (size_t)(p->batch * p->units) * sizeof(float));
    tutti_gemm project = {.m = p->steps,
                          .n = p->wide,
                          .k = p->features,
                          .a = call->inputs[0].data,
                          .b = call->inputs[kernel].data,
                          .c = a,
                          .lda = p->features,
                          .ldb = p->wide,
                          .ldc = p->wide};
    tutti__gemm_run(&p->project, call->pool, &project, memory + p->gemm);
    pack_recurrent(call, p, memory);
    tutti__slots_start(&w.slots, memory + p->slot, p->slot_floats * sizeof(float), p->threads);
    tutti_parallel(call, tutti__sequence_groups(p), walk_group, &w);
    return TUTTI_OK;
}
