/* cell_gru.c: steps of gru. */
#include "device/cpu/recurrent/each.h"

/* A loop for each function, over gates that lie side by side: there the CPU computes several
 * vectors at once. */
static void cell_gru_step(const tutti_row_step *s)
{
    const int64_t units = s->units;
    float *z = s->reserve, *r = z + units, *n = r + units, *b2 = n + units;
    const float *a_n = s->a + 2 * units, *bias_n = s->bias + 2 * units;
    const float *b_n = s->b + 2 * units, *state_bias_n = s->state_bias + 2 * units;
    ROW_MAP(z, 2 * units,
            vec_sigmoid((ROW_AT(s->a) + ROW_AT(s->bias)) + (ROW_AT(s->b) + ROW_AT(s->state_bias))));
    ROW_MAP(b2, units, ROW_AT(b_n) + ROW_AT(state_bias_n));
    ROW_MAP(n, units, vec_tanh(ROW_AT(a_n) + ROW_AT(bias_n) + ROW_AT(r) * ROW_AT(b2)));
    ROW_MAP(s->h, units, ROW_AT(z) * ROW_AT(s->h) + (1.0f - ROW_AT(z)) * ROW_AT(n));
}

static void back(const tutti_row_step *s)
{
    int64_t units = s->units;
    EACH_VECTOR({
        vec z = GATE(s->kept, 0), r = GATE(s->kept, 1), n = GATE(s->kept, 2), b2 = GATE(s->kept, 3);
        vec dh = ROW_AT(s->dh), dz = (dh * (ROW_AT(s->h_before) - n) + EXTRA(0)) * z * (1.0f - z);
        vec dn = (dh * (1.0f - z) + EXTRA(2)) * (1.0f - n * n);
        vec dr = (dn * b2 + EXTRA(1)) * r * (1.0f - r);
        PUT(s->da, dz);
        PUT(s->db, dz);
        PUT(s->da + units, dr);
        PUT(s->db + units, dr);
        PUT(s->da + 2 * units, dn);
        PUT(s->db + 2 * units, dn * r + EXTRA(3));
        PUT(s->dh, dh * z);
    });
}

const tutti_rows_cell TUTTI_ISA_NAME(tutti_rows_cell_gru) = {
    .isa = TUTTI_ISA_TEXT,
    .cell = &tutti__gru_cell,
    .step = cell_gru_step,
    .back = back,
    .add = add,
    .round = round_row,
};
