/* lstm_cell.c: one step of lstm and its gradient: two states, gates i f g o. See recurrent.h. */
#include "ops/network/recurrent.h"

static void lstm_cell_step(int64_t units, const double *a, const double *b, double *h, double *c,
                           double *reserve)
{
    for (int64_t j = 0; j < units; j++) {
        double i = tutti__sigmoid(a[j] + b[j]);
        double f = tutti__sigmoid(a[units + j] + b[units + j]);
        double g = tanh(a[2 * units + j] + b[2 * units + j]);
        double o = tutti__sigmoid(a[3 * units + j] + b[3 * units + j]);
        c[j] = f * c[j] + i * g;
        h[j] = o * tanh(c[j]);
        reserve[j] = i;
        reserve[units + j] = f;
        reserve[2 * units + j] = g;
        reserve[3 * units + j] = o;
    }
}

/* With t = tanh(c): do = dh t, dc += dh o (1 - t^2); di = dc g, df = dc c_before, dg = dc i; the c
 * before gets dc f. The gradient of reserve's c is in dc already. */
static void back(int64_t units, const tutti_cell_step *s, double *dh, double *dc, double *da,
                 double *db)
{
    for (int64_t j = 0; j < units; j++) {
        const double *kept = s->reserve + j;
        double i = kept[0], f = kept[units], g = kept[2 * units], o = kept[3 * units], extra[4];
        double t = tanh(kept[4 * units]), by_c = dc[j] + dh[j] * o * (1 - t * t);
        for (int k = 0; k < 4; k++)
            extra[k] = s->reserve_grad == NULL ? 0 : s->reserve_grad[k * units + j];
        da[j] = (by_c * g + extra[0]) * i * (1 - i);
        da[units + j] = (by_c * s->c_before[j] + extra[1]) * f * (1 - f);
        da[2 * units + j] = (by_c * i + extra[2]) * (1 - g * g);
        da[3 * units + j] = (dh[j] * t + extra[3]) * o * (1 - o);
        dc[j] = by_c * f;
        dh[j] = 0;
    }
    memcpy(db, da, (size_t)(4 * units) * sizeof *db);
}

static void back_nodes(const tutti_cell_nodes *s, tutti_sym *states, tutti_sym *ret_da,
                       tutti_sym *ret_db)
{
    const tutti_sym *extra = s->reserve_grad;
    tutti_sym i = s->reserve[0], f = s->reserve[1], g = s->reserve[2], o = s->reserve[3];
    tutti_sym t = tutti_tanh(s->reserve[4]), dh = states[0];
    tutti_sym by_c = tutti_add(states[1], tutti_mul(tutti_mul(dh, o), tutti__tanh_slope(t)));
    tutti_sym by[] = {tutti_mul(by_c, g), tutti_mul(by_c, s->c_before), tutti_mul(by_c, i),
                      tutti_mul(dh, t)};
    tutti_sym slopes[] = {tutti__sigmoid_slope(i), tutti__sigmoid_slope(f), tutti__tanh_slope(g),
                          tutti__sigmoid_slope(o)};
    for (int k = 0; k < 4; k++)
        by[k] = tutti_mul(tutti_add(by[k], extra[k]), slopes[k]);
    *ret_da = *ret_db = tutti_concatenate(4, by, .axis = -1);
    states[0] = TUTTI_NO_SYM;
    states[1] = tutti_mul(by_c, f);
}

const struct tutti_cell tutti__lstm_cell = {
    .gates = 4,
    .states = 2,
    .kept = 5,
    .biases = 1,
    .backward = "lstm_backward",
    .step = lstm_cell_step,
    .back = back,
    .back_nodes = back_nodes,
};
