/* cell_lstm.c: steps of lstm. */
#include "device/cpu/recurrent/each.h"

static void step(const tutti_row_step *s)
{
    int64_t units = s->units;
    EACH_VECTOR({
        vec i = vec_sigmoid(SUM(0)), f = vec_sigmoid(SUM(1)), g = vec_tanh(SUM(2));
        vec o = vec_sigmoid(SUM(3)), c = f * ROW_AT(s->c) + i * g;
        PUT(s->c, c);
        PUT(s->h, o * vec_tanh(c));
        PUT(s->reserve, i);
        PUT(s->reserve + units, f);
        PUT(s->reserve + 2 * units, g);
        PUT(s->reserve + 3 * units, o);
    });
}

static void back(const tutti_row_step *s)
{
    int64_t units = s->units;
    EACH_VECTOR({
        vec i = GATE(s->kept, 0), f = GATE(s->kept, 1), g = GATE(s->kept, 2), o = GATE(s->kept, 3);
        vec t = vec_tanh(GATE(s->kept, 4)), dh = ROW_AT(s->dh);
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
    .step = step,
    .back = back,
};
