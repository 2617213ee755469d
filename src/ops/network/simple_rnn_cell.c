/* simple_rnn_cell.c: one step of simple_rnn and its gradient: one state, one gate. See recurrent.h.
 */
#include "ops/network/recurrent.h"

static void simple_rnn_cell_step(int64_t units, const double *a, const double *b, double *h,
                                 double *c, double *reserve)
{
    for (int64_t j = 0; j < units; j++)
        h[j] = tanh(a[j] + b[j]);
}

/* With n = a + b: dn = dh (1 - h^2). */
static void back(int64_t units, const tutti_cell_step *s, double *dh, double *dc, double *da,
                 double *db)
{
    for (int64_t j = 0; j < units; j++) {
        da[j] = db[j] = dh[j] * (1 - s->h[j] * s->h[j]);
        dh[j] = 0;
    }
}

static void back_nodes(const tutti_cell_nodes *s, tutti_sym *states, tutti_sym *ret_da,
                       tutti_sym *ret_db)
{
    *ret_da = *ret_db = tutti_mul(states[0], tutti__tanh_slope(s->h));
    states[0] = TUTTI_NO_SYM;
}

const struct tutti_cell tutti__simple_rnn_cell = {
    .gates = 1,
    .states = 1,
    .kept = 0,
    .biases = 1,
    .backward = "simple_rnn_backward",
    .step = simple_rnn_cell_step,
    .back = back,
    .back_nodes = back_nodes,
};
