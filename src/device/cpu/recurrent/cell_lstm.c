/* cell_lstm.c: steps of lstm. */
#include "device/cpu/recurrent/each.h"

/* A loop for each function, over gates that lie side by side: there the CPU computes several
 * vectors at once, where in one loop over units everything waits for c and its tangent. */
static void cell_lstm_step(const tutti_row_step *s)
{
    const int64_t units = s->units;
    float *i = s->reserve, *f = i + units, *g = f + units, *o = g + units;
#define GATES(to, gate, count, function)                                                           \
    ROW_MAP(to, count,                                                                             \
            function(ROW_AT(s->a + (gate)*units) + ROW_AT(s->b + (gate)*units) +                   \
                     ROW_AT(s->bias + (gate)*units)))
    GATES(i, 0, 2 * units, vec_sigmoid);
    GATES(g, 2, units, vec_tanh);
    GATES(o, 3, units, vec_sigmoid);
#undef GATES
    ROW_MAP(s->c, units, ROW_AT(f) * ROW_AT(s->c) + ROW_AT(i) * ROW_AT(g));
    ROW_MAP(s->h, units, ROW_AT(o) * vec_tanh(ROW_AT(s->c)));
}

static void back(const tutti_row_step *s)
{
    int64_t units = s->units;
    ROW_MAP(s->da + 3 * units, units, vec_tanh(ROW_AT(s->kept + 4 * units)));
    EACH_VECTOR({
        vec i = GATE(s->kept, 0), f = GATE(s->kept, 1), g = GATE(s->kept, 2), o = GATE(s->kept, 3);
        vec t = GATE(s->da, 3), dh = ROW_AT(s->dh);
        vec by_c = ROW_AT(s->dc) + dh * o * (1.0f - t * t);
        PUT(s->da, (by_c * g + EXTRA(0)) * i * (1.0f - i));
        PUT(s->da + units, (by_c * ROW_AT(s->c_before) + EXTRA(1)) * f * (1.0f - f));
        PUT(s->da + 2 * units, (by_c * i + EXTRA(2)) * (1.0f - g * g));
        PUT(s->da + 3 * units, (dh * t + EXTRA(3)) * o * (1.0f - o));
        PUT(s->dc, by_c * f);
        PUT(s->dh, S(0.0f));
    });
}

const tutti_rows_cell TUTTI_ISA_NAME(tutti_rows_cell_lstm) = {
    .isa = TUTTI_ISA_TEXT,
    .cell = &tutti__lstm_cell,
    .step = cell_lstm_step,
    .back = back,
    .add = add,
    .round = round_row,
};
