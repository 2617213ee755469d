/* cell_simple_rnn.c: steps of simple_rnn. */
#include "device/cpu/recurrent/each.h"

static void cell_simple_rnn_step(const tutti_row_step *s)
{
    int64_t units = s->units;
    EACH_VECTOR({ PUT(s->h, vec_tanh(SUM(0))); });
}

static void back(const tutti_row_step *s)
{
    int64_t units = s->units;
    EACH_VECTOR({
        vec h = ROW_AT(s->h_now);
        PUT(s->da, ROW_AT(s->dh) * (1.0f - h * h));
        PUT(s->dh, S(0.0f));
    });
}

const tutti_rows_cell TUTTI_ISA_NAME(tutti_rows_cell_simple_rnn) = {
    .isa = TUTTI_ISA_TEXT,
    .cell = &tutti__simple_rnn_cell,
    .step = cell_simple_rnn_step,
    .back = back,
    .add = add,
    .round = round_row,
};
