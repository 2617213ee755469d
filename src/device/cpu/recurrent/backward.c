/* backward.c: recurrent networks, backward. */
#include <string.h>

#include "device/cpu/recurrent/plan.h"

/* Arrays that may be absent are NULL. */
typedef struct backward_work {
    const tutti_sequence_plan *plan;
    const tutti_kernel_call *call;
    const float *first_h, *first_c, *y, *reserve, *y_grad, *reserve_grad;
    const void *packed; /* recurrent */
    const int32_t *groups;
    float *dh, *dc, *sums;
    void *da, *db, *before, *x; /* of all steps, f32 or bf16 */
    tutti_slots slots;
} backward_work;

/* `count` numbers of `from` to what is kept of all steps, from element `at` on. */
static void backward_keep(const tutti_sequence_plan *p, const float *from, int64_t count,
                          void *kept, int64_t at)
{
    if (p->rounded)
        p->rows->round(count, from, (uint16_t *)kept + at);
    else
        memcpy((float *)kept + at, from, (size_t)count * sizeof(float));
}

/* What the gates of a step took, beside its da, for the gradients of the weights. */
static void keep_taken(const backward_work *w, int64_t at, const float *h_before)
{
    const tutti_sequence_plan *p = w->plan;
    const float *x = (const float *)w->call->inputs[0].data + at * p->features;
    int64_t features = p->taken - p->units, to = at * p->taken;
    backward_keep(p, x, features, w->before, to);
    backward_keep(p, h_before, p->units, w->before, to + features);
    if (p->apart)
        backward_keep(p, x, p->features, w->x, at * p->features);
}

/* A step past its row's length took nothing: what stands there may be anything, and NaN times a da
 * of 0 is not 0. */
static void keep_nothing(const backward_work *w, int64_t at)
{
    const tutti_sequence_plan *p = w->plan;
    size_t size = p->rounded ? sizeof(uint16_t) : sizeof(float);
    size_t taken = (size_t)p->taken * size, x = (size_t)p->features * size;
    memset((char *)w->before + (size_t)at * taken, 0, taken);
    if (p->apart)
        memset((char *)w->x + (size_t)at * x, 0, x);
}

/* The gradients of one row at one step, da and db among them; false when the row is past its length
 * there. */
static bool step_row(const backward_work *w, int64_t row, int64_t step, float *da, float *db)
{
    const tutti_sequence_plan *p = w->plan;
    int64_t units = p->units, time = tutti__sequence_time(p, step), at = row * p->time + time;
    int64_t before = step > 0 ? row * p->time + tutti__sequence_time(p, step - 1) : -1;
    float *dh = w->dh + row * units, *dc = w->dc == NULL ? NULL : w->dc + row * units;
    if (w->y_grad != NULL)
        p->rows->add(dh, w->y_grad + at * units, units);
    if (dc != NULL && w->reserve_grad != NULL)
        p->rows->add(dc, w->reserve_grad + at * p->kept + p->kept - units, units);
    const float *h_before = before < 0 ? w->first_h + row * units : w->y + before * units;
    if (time >= tutti__sequence_length(p, w->call, row)) {
        keep_nothing(w, at);
        memset(da, 0, (size_t)p->wide * sizeof(float));
        memset(db, 0, (size_t)p->wide * sizeof(float));
        return false;
    }
    keep_taken(w, at, h_before);
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
    float *sums = w->sums + row / TUTTI_SEQUENCE_SUM_ROWS * p->cell->biases * p->wide;
    p->rows->add(sums, da, p->wide);
    if (!p->joint)
        p->rows->add(sums + p->wide, db, p->wide);
    return true;
}

/* A group of rows on its way through the steps. */
typedef struct group_walk {
    int64_t first, rows;
    float *slot, *da, *db; /* da, db: of a step, rounded when it is done */
} group_walk;

/* All rows of a group at one step; false when all of them are past their lengths. */
static bool step_group(const backward_work *w, const group_walk *g, int64_t step)
{
    const tutti_sequence_plan *p = w->plan;
    bool any = false;
    for (int64_t i = 0; i < g->rows; i++) {
        int64_t row = g->first + i;
        int64_t at = (row * p->time + tutti__sequence_time(p, step)) * p->wide;
        float *da = p->rounded ? g->da + i * p->wide : (float *)w->da + at;
        float *db = p->joint ? da : p->rounded ? g->db + i * p->wide : (float *)w->db + at;
        any |= step_row(w, row, step, da, db);
        if (p->rounded)
            backward_keep(p, da, p->wide, w->da, at);
        if (p->rounded && !p->joint)
            backward_keep(p, db, p->wide, w->db, at);
    }
    return any;
}

/* dh += db recurrent^T for the rows of a group. */
static void add_to_states(const backward_work *w, const group_walk *g, int64_t step)
{
    const tutti_sequence_plan *p = w->plan;
    float *dh = w->dh + g->first * p->units;
    if (p->rounded) {
        const tutti_rounded_step *s = &p->by_step;
        uint16_t *panel = (uint16_t *)(g->slot + tutti__rounded_step_sum_floats(s));
        tutti__rounded_step_lay(s, g->rows, p->joint ? g->da : g->db, p->wide, panel);
        tutti__rounded_step_multiply(s, g->rows, panel, w->groups, w->packed, g->slot);
        for (int64_t i = 0; i < g->rows; i++)
            p->rows->add(dh + i * p->units, g->slot + i * s->columns, p->units);
        return;
    }
    int64_t at = g->first * p->time + tutti__sequence_time(p, step);
    tutti_gemm product = {.add = true, /* rows of db lie `time` steps apart */
                          .m = g->rows,
                          .n = p->units,
                          .k = p->wide,
                          .a = (const float *)w->db + at * p->wide,
                          .c = dh,
                          .lda = p->time * p->wide,
                          .ldc = p->units};
    tutti__gemm_with(p->back_x.tile, &product, w->packed, g->slot);
}

static void walk_group(void *context, int64_t index)
{
    backward_work *w = context;
    const tutti_sequence_plan *p = w->plan;
    int64_t first = index * p->group, rest = p->batch - first;
    group_walk g = {.first = first,
                    .rows = rest < p->group ? rest : p->group,
                    .slot = tutti__slot_take(&w->slots)};
    if (p->rounded) {
        g.da = g.slot + tutti__rounded_step_sum_floats(&p->by_step) +
               tutti__rounded_step_panel_floats(&p->by_step);
        g.db = g.da + p->group * p->wide;
    }
    for (int64_t step = p->time - 1; step >= 0; step--)
        if (step_group(w, &g, step))
            add_to_states(w, &g, step);
    tutti__slot_give(&w->slots, g.slot);
}

/* dx = da kernel^T */
static void input_gradients(const tutti_kernel_call *call, const backward_work *w, float *gemm)
{
    const tutti_sequence_plan *p = w->plan;
    tutti_gemm by_x = {.trans_b = true,
                       .a_bf16 = p->rounded,
                       .m = p->steps,
                       .n = p->features,
                       .k = p->wide,
                       .a = w->da,
                       .b = call->inputs[p->slots.kernel].data,
                       .c = call->outputs[0].data,
                       .lda = p->wide,
                       .ldb = p->wide,
                       .ldc = p->features};
    tutti__gemm_run(&p->back_x, call->pool, &by_x, gemm);
}

/* to[m, wide] = taken^T by, `by` and, if so said, `taken` as they were kept. */
static void multiply_taken(const backward_work *w, const tutti_gemm_plan *plan, const void *taken,
                           bool kept, const void *by, float *to, float *gemm)
{
    tutti_gemm product = {.trans_a = true,
                          .a_bf16 = kept && w->plan->rounded,
                          .b_bf16 = w->plan->rounded,
                          .m = plan->m,
                          .n = plan->n,
                          .k = plan->k,
                          .a = taken,
                          .b = by,
                          .c = to,
                          .lda = plan->m,
                          .ldb = plan->n,
                          .ldc = plan->n};
    tutti__gemm_run(plan, w->call->pool, &product, gemm);
}

/* A row of the joint gradients to where it belongs. */
static void part_joined(void *context, int64_t row)
{
    const backward_work *w = context;
    const tutti_sequence_plan *p = w->plan;
    const tutti_view *outputs = w->call->outputs;
    float *to = row < p->features
                    ? (float *)outputs[p->slots.kernel].data + row * p->wide
                    : (float *)outputs[p->slots.recurrent].data + (row - p->features) * p->wide;
    const float *joined = (const float *)w->call->workspace + p->joined;
    memcpy(to, joined + row * p->wide, (size_t)p->wide * sizeof(float));
}

/* dkernel = x^T da, drecurrent = h_before^T db, dbias = the rows' sums of da (and db). */
static void weight_gradients(const tutti_kernel_call *call, backward_work *w, float *gemm)
{
    const tutti_sequence_plan *p = w->plan;
    int kernel = p->slots.kernel, recurrent = p->slots.recurrent;
    float *by_bias = call->outputs[recurrent + 1].data;
    if (p->joint) {
        float *joined = (float *)call->workspace + p->joined;
        multiply_taken(w, &p->back_joint, w->before, true, w->da, joined, gemm);
        tutti_parallel(call, p->taken, part_joined, w);
    } else {
        multiply_taken(w, &p->back_kernel, p->apart ? w->x : call->inputs[0].data, p->apart, w->da,
                       call->outputs[kernel].data, gemm);
        multiply_taken(w, &p->back_recurrent, w->before, true, w->db, call->outputs[recurrent].data,
                       gemm);
    }
    int64_t biases = p->cell->biases * p->wide;
    memcpy(by_bias, w->sums, (size_t)biases * sizeof(float));
    for (int64_t i = 1; i < tutti__sequence_sums(p); i++)
        p->rows->add(by_bias, w->sums + i * biases, biases);
}

static const float *slot_data(const tutti_kernel_call *call, int slot)
{
    return slot < 0 ? NULL : call->inputs[slot].data;
}

/* Final states' gradients into outputs 1 and 2, which then carry dh and dc back to the first. */
static void start_states(const tutti_kernel_call *call, const tutti_sequence_plan *p)
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

/* recurrent^T, for all steps. */
static void pack_recurrent(const tutti_kernel_call *call, const tutti_sequence_plan *p,
                           float *memory)
{
    const float *weights = call->inputs[p->slots.recurrent].data;
    if (p->rounded) {
        tutti__rounded_step_pack(&p->by_step, weights, 1, p->wide, (void *)(memory + p->packed));
        tutti__rounded_step_groups(&p->by_step, (void *)(memory + p->groups));
        return;
    }
    tutti_gemm recurrent = {
        .trans_b = true, .n = p->units, .k = p->wide, .b = weights, .ldb = p->wide};
    tutti__gemm_pack(p->back_x.tile, &recurrent, memory + p->packed);
}

tutti_status tutti__sequence_run_backward(const tutti_kernel_call *call)
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
                       .groups = (const void *)(memory + p->groups),
                       .dh = call->outputs[1].data,
                       .dc = two ? call->outputs[2].data : NULL,
                       .da = memory + p->a,
                       .db = memory + p->b,
                       .before = memory + p->before,
                       .x = memory + p->x,
                       .sums = memory + p->sums};
    if (p->kept > 0)
        w.reserve_grad = slot_data(call, p->slots.grads[1 + p->cell->states]);
    start_states(call, p);
    memset(w.sums, 0,
           (size_t)(tutti__sequence_sums(p) * p->cell->biases * p->wide) * sizeof(float));
    pack_recurrent(call, p, memory);
    tutti__slots_start(&w.slots, memory + p->slot, p->slot_floats * sizeof(float), p->threads);
    tutti_parallel(call, tutti__sequence_groups(p), walk_group, &w);
    input_gradients(call, &w, memory + p->gemm);
    weight_gradients(call, &w, memory + p->gemm);
    return TUTTI_OK;
}
