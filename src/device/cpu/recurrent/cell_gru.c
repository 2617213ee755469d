/* cell_gru.c: steps of gru. */
#include "device/cpu/recurrent/each.h"

static void step(const tutti_row_step *s)
{
    int64_t units = s->units;
#define STATE(g) (GATE(s->b, g) + GATE(s->state_bias, g))
#define INPUT(g) (GATE(s->a, g) + GATE(s->bias, g))
    EACH_VECTOR({
        vec z = vec_sigmoid(INPUT(0) + STATE(0)), r = vec_sigmoid(INPUT(1) + STATE(1));
        vec b2 = STATE(2), n = vec_tanh(INPUT(2) + r * b2);
        PUT(s->h, z * ROW_AT(s->h) + (1.0f - z) * n);
        PUT(s->reserve, z);
        PUT(s->reserve + units, r);
        PUT(s->reserve + 2 * units, n);
        PUT(s->reserve + 3 * units, b2);
    });
#undef STATE
#undef INPUT
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
    .step = step,
    .back = back,
};
