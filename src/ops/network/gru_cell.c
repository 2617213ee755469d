/* gru_cell.c: one step of gru and its gradient: one state, gates z r n. See recurrent.h. */
#include "ops/network/recurrent.h"

static void gru_cell_step(int64_t units, const double *a, const double *b, double *h, double *c,
                          double *reserve)
{
    for (int64_t j = 0; j < units; j++) {
        double z = tutti__sigmoid(a[j] + b[j]);
        double r = tutti__sigmoid(a[units + j] + b[units + j]);
        double n = tanh(a[2 * units + j] + r * b[2 * units + j]);
        h[j] = z * h[j] + (1 - z) * n;
        reserve[j] = z;
        reserve[units + j] = r;
        reserve[2 * units + j] = n;
        reserve[3 * units + j] = b[2 * units + j];
    }
}

/* dz = dh (h_before - n), dn = dh (1 - z) (1 - n^2) before its tanh, dr = dn b2; a2 gets dn and
 * b2 gets dn r; the state before gets dh z. */
static void back(int64_t units, const tutti_cell_step *s, double *dh, double *dc, double *da,
                 double *db)
{
    for (int64_t j = 0; j < units; j++) {
        const double *kept = s->reserve + j;
        double z = kept[0], r = kept[units], n = kept[2 * units], b2 = kept[3 * units], extra[4];
        for (int i = 0; i < 4; i++)
            extra[i] = s->reserve_grad == NULL ? 0 : s->reserve_grad[i * units + j];
        double dz = dh[j] * (s->h_before[j] - n) + extra[0];
        double dn = (dh[j] * (1 - z) + extra[2]) * (1 - n * n);
        double dr = dn * b2 + extra[1];
        da[j] = db[j] = dz * z * (1 - z);
        da[units + j] = db[units + j] = dr * r * (1 - r);
        da[2 * units + j] = dn;
        db[2 * units + j] = dn * r + extra[3];
        dh[j] *= z;
    }
}

static void back_nodes(const tutti_cell_nodes *s, tutti_sym *states, tutti_sym *ret_da,
                       tutti_sym *ret_db)
{
    const tutti_sym *extra = s->reserve_grad;
    tutti_sym z = s->reserve[0], r = s->reserve[1], n = s->reserve[2], b2 = s->reserve[3];
    tutti_sym dh = states[0];
    tutti_sym dz = tutti_add(tutti_mul(dh, tutti_sub(s->h_before, n)), extra[0]);
    tutti_sym dn =
        tutti_mul(tutti_add(tutti_mul(dh, tutti__one_minus(z)), extra[2]), tutti__tanh_slope(n));
    tutti_sym dr = tutti_add(tutti_mul(dn, b2), extra[1]);
    dz = tutti_mul(dz, tutti__sigmoid_slope(z));
    dr = tutti_mul(dr, tutti__sigmoid_slope(r));
    *ret_da = tutti_concatenate(TUTTI_SYMS(dz, dr, dn), .axis = -1);
    *ret_db =
        tutti_concatenate(TUTTI_SYMS(dz, dr, tutti_add(tutti_mul(dn, r), extra[3])), .axis = -1);
    states[0] = tutti_mul(dh, z);
}

const struct tutti_cell tutti__gru_cell = {
    .gates = 3,
    .states = 1,
    .kept = 4,
    .biases = 2,
    .backward = "gru_backward",
    .step = gru_cell_step,
    .back = back,
    .back_nodes = back_nodes,
};
