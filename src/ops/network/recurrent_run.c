/* recurrent_run.c: the reference kernels of simple_rnn, gru and lstm; see recurrent.h. Rows of the
 * batch are independent; a row is walked step by step. */
#include "ops/network/recurrent.h"

static tutti_sequence sequence_of(const tutti_kernel_call *call, const tutti_cell *cell,
                                  int lengths)
{
    const tutti_view *x = &call->inputs[0], *recurrent = &call->inputs[2 + cell->states];
    return (tutti_sequence){
        .cell = cell,
        .batch = x->dims[0],
        .time = x->dims[1],
        .features = x->dims[2],
        .units = recurrent->dims[0],
        .reverse = CALL_INT(call, "reverse") != 0,
        .lengths = lengths >= 0 ? &call->inputs[lengths] : NULL,
    };
}

/* The time that is the step-th to be visited. */
static int64_t time_at(const tutti_sequence *s, int64_t step)
{
    return s->reverse ? s->time - 1 - step : step;
}

static int64_t length_of(const tutti_sequence *s, int64_t row)
{
    return s->lengths == NULL ? s->time : tutti_view_get_int(s->lengths, row);
}

static void recurrent_run_copy(double *to, const double *from, int64_t count)
{
    memcpy(to, from, (size_t)count * sizeof *to);
}

/* A row's arrays, at time 0. */
typedef struct forward_row {
    const double *a, *recurrent, *state_bias; /* state_bias may be NULL */
    double *y, *h, *c, *reserve, *b;
} forward_row;

/* In the last `units` of each step's reserve a cell with two states keeps c. */
static void walk_forward(const tutti_sequence *s, const forward_row *r, int64_t length)
{
    int64_t units = s->units, wide = s->cell->gates * units, kept = s->cell->kept * units;
    for (int64_t step = 0; step < s->time; step++) {
        int64_t t = time_at(s, step);
        double *reserve = r->reserve == NULL ? NULL : r->reserve + t * kept;
        if (t < length) {
            memset(r->b, 0, (size_t)wide * sizeof *r->b);
            if (r->state_bias != NULL)
                recurrent_run_copy(r->b, r->state_bias, wide);
            tutti__add_product(1, units, wide, r->h, r->recurrent, r->b);
            s->cell->step(units, r->a + t * wide, r->b, r->h, r->c, reserve);
        }
        if (r->c != NULL)
            recurrent_run_copy(reserve + kept - units, r->c, units);
        recurrent_run_copy(r->y + t * units, r->h, units);
    }
}

tutti_status tutti__rnn_run(const tutti_kernel_call *call, const tutti_cell *cell,
                            const double *const *inputs, double *const *outputs,
                            tutti_arena *scratch)
{
    int kernel = 1 + cell->states;
    tutti_sequence s = sequence_of(call, cell, call->input_count > kernel + 3 ? kernel + 3 : -1);
    int64_t units = s.units, wide = cell->gates * units, steps = s.batch * s.time;
    const double *bias = inputs[kernel + 2];
    double *a = NULL, *b = NULL;
    TUTTI_TRY(tutti__scratch_doubles(scratch, steps * wide, &a));
    TUTTI_TRY(tutti__scratch_doubles(scratch, wide, &b));
    for (int64_t i = 0; i < steps; i++)
        recurrent_run_copy(a + i * wide, bias, wide);
    tutti__add_product(steps, s.features, wide, inputs[0], inputs[kernel], a);
    for (int i = 1; i <= cell->states; i++)
        recurrent_run_copy(outputs[i], inputs[i], s.batch * units);
    for (int64_t row = 0; row < s.batch; row++) {
        double *reserve = cell->kept > 0 ? outputs[1 + cell->states] : NULL;
        forward_row r = {
            .a = a + row * s.time * wide,
            .recurrent = inputs[kernel + 1],
            .state_bias = cell->biases == 2 ? bias + wide : NULL,
            .y = outputs[0] + row * s.time * units,
            .h = outputs[1] + row * units,
            .c = cell->states == 2 ? outputs[2] + row * units : NULL,
            .reserve = reserve == NULL ? NULL : reserve + row * s.time * cell->kept * units,
            .b = b,
        };
        walk_forward(&s, &r, length_of(&s, row));
    }
    return TUTTI_OK;
}

/* A row's arrays, at time 0; those that may be absent are NULL. */
typedef struct backward_row {
    const double *first_h, *first_c, *recurrent, *y, *reserve;
    const double *y_grad, *reserve_grad;
    double *dh, *dc, *da, *db, *by_recurrent, *by_state_bias;
} backward_row;

static void recurrent_run_add(double *to, const double *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] += from[i];
}

/* The gradients of one active step: fills da of this time, moves dh and dc to the step before. */
static void step_backward(const tutti_sequence *s, const backward_row *r, int64_t step)
{
    int64_t units = s->units, wide = s->cell->gates * units, kept = s->cell->kept * units;
    int64_t t = time_at(s, step), before = step > 0 ? time_at(s, step - 1) : -1;
    tutti_cell_step values = {
        .h = r->y + t * units,
        .h_before = before < 0 ? r->first_h : r->y + before * units,
        .reserve = r->reserve == NULL ? NULL : r->reserve + t * kept,
        .reserve_grad = r->reserve_grad == NULL ? NULL : r->reserve_grad + t * kept,
    };
    if (r->first_c != NULL)
        values.c_before = before < 0 ? r->first_c : r->reserve + before * kept + kept - units;
    double *da = r->da + t * wide;
    s->cell->back(units, &values, r->dh, r->dc, da, r->db);
    tutti__add_product_transposed(1, units, wide, r->db, r->recurrent, r->dh);
    tutti__add_outer(units, wide, values.h_before, r->db, r->by_recurrent);
    if (r->by_state_bias != NULL)
        recurrent_run_add(r->by_state_bias, r->db, wide);
}

static void walk_backward(const tutti_sequence *s, const backward_row *r, int64_t length)
{
    int64_t units = s->units, kept = s->cell->kept * units;
    for (int64_t step = s->time - 1; step >= 0; step--) {
        int64_t t = time_at(s, step);
        if (r->y_grad != NULL)
            recurrent_run_add(r->dh, r->y_grad + t * units, units);
        if (r->dc != NULL && r->reserve_grad != NULL)
            recurrent_run_add(r->dc, r->reserve_grad + t * kept + kept - units, units);
        if (t < length)
            step_backward(s, r, step);
    }
}

/* dx = da kernel^T over all steps; dkernel = x^T da and dbias = sum(da) over those within the rows'
 * lengths: behind them da is 0, but x may be anything, NaN too. */
static void input_gradients(const tutti_sequence *s, const double *x, const double *kernel,
                            const double *da, double *by_x, double *by_kernel, double *by_bias)
{
    int64_t wide = s->cell->gates * s->units, steps = s->batch * s->time;
    tutti__add_product_transposed(steps, s->features, wide, da, kernel, by_x);
    for (int64_t i = 0; i < steps; i++) {
        if (i % s->time >= length_of(s, i / s->time))
            continue;
        tutti__add_outer(s->features, wide, x + i * s->features, da + i * wide, by_kernel);
        recurrent_run_add(by_bias, da + i * wide, wide);
    }
}

static const double *row_of(const double *const *inputs, int slot, int64_t offset)
{
    return slot < 0 ? NULL : inputs[slot] + offset;
}

/* Final states' gradients into outputs 1 and 2, which then carry dh and dc back to the first. */
static void start_states(const tutti_sequence *s, const tutti_rnn_slots *slots,
                         const double *const *inputs, double *const *outputs)
{
    for (int i = 1; i <= s->cell->states; i++)
        if (slots->grads[i] >= 0)
            recurrent_run_copy(outputs[i], inputs[slots->grads[i]], s->batch * s->units);
}

tutti_status tutti__rnn_backward_run(const tutti_kernel_call *call, const tutti_cell *cell,
                                     const double *const *inputs, double *const *outputs,
                                     tutti_arena *scratch)
{
    tutti_rnn_slots slots = tutti__rnn_slots(cell, CALL_INT(call, "grads"), call->input_count);
    tutti_sequence s = sequence_of(call, cell, slots.lengths);
    int64_t units = s.units, wide = cell->gates * units, kept = cell->kept * units;
    int reserve_grad = cell->kept > 0 ? slots.grads[1 + cell->states] : -1;
    double *da = NULL, *db = NULL, *by_bias = outputs[slots.recurrent + 1];
    TUTTI_TRY(tutti__scratch_doubles(scratch, s.batch * s.time * wide, &da));
    TUTTI_TRY(tutti__scratch_doubles(scratch, wide, &db));
    start_states(&s, &slots, inputs, outputs);
    for (int64_t row = 0; row < s.batch; row++) {
        int64_t first = row * s.time;
        backward_row r = {
            .first_h = inputs[1] + row * units,
            .first_c = cell->states == 2 ? inputs[2] + row * units : NULL,
            .recurrent = inputs[slots.recurrent],
            .y = inputs[slots.y] + first * units,
            .reserve = row_of(inputs, slots.reserve, first * kept),
            .y_grad = row_of(inputs, slots.grads[0], first * units),
            .reserve_grad = row_of(inputs, reserve_grad, first * kept),
            .dh = outputs[1] + row * units,
            .dc = cell->states == 2 ? outputs[2] + row * units : NULL,
            .da = da + first * wide,
            .db = db,
            .by_recurrent = outputs[slots.recurrent],
            .by_state_bias = cell->biases == 2 ? by_bias + wide : NULL,
        };
        walk_backward(&s, &r, length_of(&s, row));
    }
    input_gradients(&s, inputs[0], inputs[slots.kernel], da, outputs[0], outputs[slots.kernel],
                    by_bias);
    return TUTTI_OK;
}
