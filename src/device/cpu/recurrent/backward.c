/* backward.c: recurrent networks, backward. */
#include <string.h>

#include "device/cpu/recurrent/plan.h"

/* Arrays that may be absent are NULL. */
typedef struct backward_work {
    const tutti_sequence_plan *plan;
    const tutti_call *call;
    const float *first_h, *first_c, *y, *reserve, *y_grad, *reserve_grad, *packed;
    float *dh, *dc, *da, *db, *before;
    tutti_slots slots;
} backward_work;

static void add(float *restrict to, const float *restrict from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] += from[i];
}

/* The gradients of one row at one step; false when the row is past its length there. */
static bool step_row(const backward_work *w, int64_t row, int64_t step)
{
    const tutti_sequence_plan *p = w->plan;
    int64_t units = p->units, time = tutti__sequence_time(p, step), at = row * p->time + time;
    int64_t before = step > 0 ? row * p->time + tutti__sequence_time(p, step - 1) : -1;
    float *dh = w->dh + row * units, *dc = w->dc == NULL ? NULL : w->dc + row * units;
    if (w->y_grad != NULL)
        add(dh, w->y_grad + at * units, units);
    if (dc != NULL && w->reserve_grad != NULL)
        add(dc, w->reserve_grad + at * p->kept + p->kept - units, units);
    float *da = w->da + at * p->wide, *db = w->db + at * p->wide;
    const float *h_before = before < 0 ? w->first_h + row * units : w->y + before * units;
    memcpy(w->before + at * units, h_before, (size_t)units * sizeof(float));
    if (time >= tutti__sequence_length(p, w->call, row)) {
        memset(da, 0, (size_t)p->wide * sizeof(float));
        memset(db, 0, (size_t)p->wide * sizeof(float));
        return false;
    }
    tutti_row_step s = {.units = units,
                        .h_now = w->y + at * units,
                        .h_before = h_before,
                        .dh = dh,
                        .dc = dc,
                        .da = da,
                        .db = db};
    if (w->reserve != NULL)
        s.kept = w->reserve + at * p->kept;
    if (w->reserve_grad != NULL)
        s.kept_grad = w->reserve_grad + at * p->kept;
    if (w->first_c != NULL)
        s.c_before =
            before < 0 ? w->first_c + row * units : w->reserve + before * p->kept + p->kept - units;
    p->rows->back(&s);
    return true;
}

/* dh += db recurrent^T for the rows of a group at one time. Rows of db lie `time` steps apart. */
static void walk_group(void *context, int64_t index)
{
    backward_work *w = context;
    const tutti_sequence_plan *p = w->plan;
    int64_t first = index * p->group, rest = p->batch - first;
    float *scratch = tutti__slot_take(&w->slots);
    tutti_gemm product = {.add = true,
                          .m = rest < p->group ? rest : p->group,
                          .n = p->units,
                          .k = p->wide,
                          .c = w->dh + first * p->units,
                          .lda = p->time * p->wide,
                          .ldc = p->units};
    for (int64_t step = p->time - 1; step >= 0; step--) {
        bool any = false;
        for (int64_t i = 0; i < product.m; i++)
            any |= step_row(w, first + i, step);
        product.a = w->db + (first * p->time + tutti__sequence_time(p, step)) * p->wide;
        if (any)
            tutti__gemm_with(&product, w->packed, scratch);
    }
    tutti__slot_give(&w->slots, scratch);
}

/* to[wide] = sum of the rows of from[steps, wide], in order. */
typedef struct row_sum {
    const tutti_sequence_plan *plan;
    const float *from;
    float *to;
} row_sum;

enum { SUM_COLUMNS = 64 };

static void sum_columns(void *context, int64_t index)
{
    const row_sum *s = context;
    const int64_t wide = s->plan->wide, first = index * SUM_COLUMNS, left = wide - first,
                  count = left < SUM_COLUMNS ? left : SUM_COLUMNS;
    memset(s->to + first, 0, (size_t)count * sizeof(float));
    for (int64_t i = 0; i < s->plan->steps; i++)
        add(s->to + first, s->from + i * wide + first, count);
}

static void sum_rows(const tutti_call *call, row_sum sum)
{
    tutti_parallel(call, (sum.plan->wide + SUM_COLUMNS - 1) / SUM_COLUMNS, sum_columns, &sum);
}

/* dx = da kernel^T, dkernel = x^T da, drecurrent = h_before^T db, dbias = sums of da (and db). */
static void weight_gradients(const tutti_call *call, const backward_work *w, float *gemm)
{
    const tutti_sequence_plan *p = w->plan;
    int kernel = p->slots.kernel, recurrent = p->slots.recurrent;
    float *by_bias = call->outputs[recurrent + 1].data;
    tutti_gemm by_x = {.trans_b = true,
                       .m = p->steps,
                       .n = p->features,
                       .k = p->wide,
                       .a = w->da,
                       .b = call->inputs[kernel].data,
                       .c = call->outputs[0].data,
                       .lda = p->wide,
                       .ldb = p->wide,
                       .ldc = p->features};
    tutti_gemm by_kernel = {.trans_a = true,
                            .m = p->features,
                            .n = p->wide,
                            .k = p->steps,
                            .a = call->inputs[0].data,
                            .b = w->da,
                            .c = call->outputs[kernel].data,
                            .lda = p->features,
                            .ldb = p->wide,
                            .ldc = p->wide};
    tutti_gemm by_recurrent = {.trans_a = true,
                               .m = p->units,
                               .n = p->wide,
                               .k = p->steps,
                               .a = w->before,
                               .b = w->db,
                               .c = call->outputs[recurrent].data,
                               .lda = p->units,
                               .ldb = p->wide,
                               .ldc = p->wide};
    tutti__gemm_run(&p->back_x, call->pool, &by_x, gemm);
    tutti__gemm_run(&p->back_kernel, call->pool, &by_kernel, gemm);
    tutti__gemm_run(&p->back_recurrent, call->pool, &by_recurrent, gemm);
    sum_rows(call, (row_sum){p, w->da, by_bias});
    if (p->cell->biases == 2)
        sum_rows(call, (row_sum){p, w->db, by_bias + p->wide});
}

static const float *slot_data(const tutti_call *call, int slot)
{
    return slot < 0 ? NULL : call->inputs[slot].data;
}

/* Final states' gradients into outputs 1 and 2, which then carry dh and dc back to the first. */
static void start_states(const tutti_call *call, const tutti_sequence_plan *p)
{
    size_t bytes = (size_t)(p->batch * p->units) * sizeof(float);
    for (int i = 1; i <= p->cell->states; i++) {
        const float *grad = slot_data(call, p->slots.grads[i]);
        if (grad == NULL)
            memset(call->outputs[i].data, 0, bytes);
        else
            memcpy(call->outputs[i].data, grad, bytes);
    }
}

tutti_status tutti__sequence_run_backward(const tutti_call *call)
{
    const tutti_sequence_plan *p = call->plan;
    bool two = p->cell->states == 2;
    float *memory = call->workspace;
    backward_work w = {.plan = p,
                       .call = call,
                       .first_h = call->inputs[1].data,
                       .first_c = two ? call->inputs[2].data : NULL,
                       .y = call->inputs[p->slots.y].data,
                       .reserve = slot_data(call, p->slots.reserve),
                       .y_grad = slot_data(call, p->slots.grads[0]),
                       .packed = memory + p->packed,
                       .dh = call->outputs[1].data,
                       .dc = two ? call->outputs[2].data : NULL,
                       .da = memory + p->a,
                       .db = memory + p->b,
                       .before = memory + p->before};
    if (p->kept > 0)
        w.reserve_grad = slot_data(call, p->slots.grads[1 + p->cell->states]);
    start_states(call, p);
    tutti_gemm recurrent = {.trans_b = true,
                            .n = p->units,
                            .k = p->wide,
                            .b = call->inputs[p->slots.recurrent].data,
                            .ldb = p->wide};
    tutti__gemm_pack(&recurrent, memory + p->packed);
    tutti__slots_start(&w.slots, memory + p->slot, p->slot_floats * sizeof(float), p->threads);
    tutti_parallel(call, (p->batch + p->group - 1) / p->group, walk_group, &w);
    weight_gradients(call, &w, memory + p->gemm);
    return TUTTI_OK;
}
