/* recurrent.c: LSTM, GRU and RNN; writing them. See recurrent.h. */
#include "bridge/onnx/recurrent.h"

#include <string.h>

static const tutti_onnx_cell cells[] = {
    {"LSTM", 4, 2, 1, {0, 3, 1, 2}},
    {"GRU", 3, 1, 2, {0, 1, 2}},
    {"RNN", 1, 1, 1, {0}},
};

const tutti_onnx_cell *tutti__onnx_cell_of(const char *type)
{
    size_t i = 0;
    while (i + 1 < TUTTI_COUNT(cells) && strcmp(cells[i].type, type) != 0)
        i++;
    return &cells[i];
}

/* ---- weights ---- */

/* [rows, gates units] to [1, gates units, rows], gates in ONNX's order. */
static tutti_tensor *matrix_to_onnx(const tutti_onnx_cell *c, const tutti_tensor *from)
{
    const int64_t *dims = tutti_tensor_dims(from);
    int64_t rows = dims[0], wide = dims[1], units = wide / c->gates;
    tutti_tensor *to;
    if (tutti_tensor_create(tutti_tensor_dtype(from), 3, (int64_t[]){1, wide, rows}, &to) !=
        TUTTI_OK)
        return NULL;
    for (int64_t j = 0; j < wide; j++)
        for (int64_t i = 0; i < rows; i++)
            tutti_tensor_set(
                to, j * rows + i,
                tutti_tensor_get(from, i * wide + c->order[j / units] * units + j % units));
    return to;
}

/* One bias goes to W's half and leaves R's 0. */
static tutti_tensor *bias_to_onnx(const tutti_onnx_cell *c, const tutti_tensor *from)
{
    int64_t wide = tutti_tensor_count(from) / c->biases, units = wide / c->gates;
    tutti_tensor *to;
    if (tutti_tensor_create(tutti_tensor_dtype(from), 2, (int64_t[]){1, 2 * wide}, &to) != TUTTI_OK)
        return NULL;
    for (int64_t j = 0; j < wide * c->biases; j++) {
        int64_t half = j / wide, k = j % wide;
        tutti_tensor_set(
            to, j, tutti_tensor_get(from, half * wide + c->order[k / units] * units + k % units));
    }
    return to;
}

/* ---- writing ---- */

typedef tutti_tensor *form_fn(const tutti_onnx_cell *c, const tutti_tensor *from);

static const char *write_weight(tutti_onnx_export *x, const tutti_onnx_cell *c, int i,
                                form_fn *form)
{
    tutti_tensor *value;
    const tutti_node *node;
    char key[40] = "recurrent ";
    if (!tutti__onnx_value_of(x, x->node->inputs[i], &value, &node)) {
        tutti__onnx_write_fail(x, TUTTI_UNSUPPORTED,
                               "input %d is computed; only weights and constants can be written",
                               i);
        return "";
    }
    tutti_tensor *formed = form(c, value);
    tutti_tensor_release(value);
    if (!formed) {
        tutti__onnx_write_fail(x, TUTTI_NO_MEMORY, "no memory for the file");
        return "";
    }
    strcat(key, c->type);
    return tutti__onnx_weight(x, node, key, formed);
}

/* An initial state of zeros is left out. */
static const char *write_state(tutti_onnx_export *x, int i)
{
    if (tutti__is(x->node->inputs[i].node, "zeros_like"))
        return "";
    return tutti__onnx_unsqueezed(x, tutti__onnx_in(x, i), 0);
}

/* Lengths, at most the time, as i32. */
static const char *write_lengths(tutti_onnx_export *x, int i)
{
    const char *lengths = tutti__onnx_in(x, i);
    if (tutti__onnx_type_in(x, i)->dtype != TUTTI_I64)
        lengths = tutti__onnx_cast(x, lengths, TUTTI_I64);
    const char *shape = ONNX(x, "Shape", tutti__onnx_in(x, 0));
    const char *time = ONNX(x, "Gather", shape, tutti__onnx_ints(x, 1, (int64_t[]){1}));
    return tutti__onnx_cast(x, ONNX(x, "Min", lengths, time), TUTTI_I32);
}

/* 0, 1, … along the time of input 0: [time] of i64. */
static const char *write_steps(tutti_onnx_export *x)
{
    const char *from = tutti__onnx_ints(x, 2, (int64_t[]){0, 0});
    const char *to = tutti__onnx_ints(x, 2, (int64_t[]){1, 1});
    const char *axes = tutti__onnx_ints(x, 2, (int64_t[]){0, 2});
    const char *part = ONNX(x, "Slice", tutti__onnx_in(x, 0), from, to, axes);
    const char *line = ONNX(x, "Squeeze", part, axes);
    const char *ones = ONNX(x, "ConstantOfShape", ONNX(x, "Shape", line));
    tutti_tensor *one;
    if (tutti_tensor_create(TUTTI_I64, 1, (int64_t[]){1}, &one) != TUTTI_OK) {
        tutti__onnx_write_fail(x, TUTTI_NO_MEMORY, "no memory for the file");
        return "";
    }
    tutti_tensor_set_int(one, 0, 1);
    tutti__onnx_set_tensor(x, "value", one);
    const char *steps = ONNX(x, "CumSum", ones, tutti__onnx_number(x, TUTTI_I64, 0));
    tutti__onnx_set_int(x, "exclusive", 1);
    return steps;
}

/* Past the lengths the sequence holds the last state; in reverse, where these steps come first, the
 * initial one. */
static const char *fill_up(tutti_onnx_export *x, const char *y, const char *state, int lengths)
{
    const char *ends = tutti__onnx_in(x, lengths);
    if (tutti__onnx_type_in(x, lengths)->dtype != TUTTI_I64)
        ends = tutti__onnx_cast(x, ends, TUTTI_I64);
    if (NODE_INT(x, "reverse"))
        state = tutti__onnx_in(x, 1);
    const char *inside = ONNX(x, "Less", write_steps(x), tutti__onnx_unsqueezed(x, ends, 1));
    return ONNX(x, "Where", tutti__onnx_unsqueezed(x, inside, 2), y,
                tutti__onnx_unsqueezed(x, state, 1));
}

static void write_recurrent(tutti_onnx_export *x)
{
    static const int64_t order[] = {1, 0, 2};
    const tutti_onnx_cell *c = tutti__onnx_cell_of(x->rule->type);
    int kernel = 1 + c->states, lengths = kernel + 3;
    bool bounded = x->node->input_count > lengths;
    int64_t units = tutti__onnx_type_in(x, kernel + 1)->dims[0];
    const char *sequence = tutti__onnx_turned(x, tutti__onnx_in(x, 0), 3, order);
    const char *inputs[7] = {sequence,
                             write_weight(x, c, kernel, matrix_to_onnx),
                             write_weight(x, c, kernel + 1, matrix_to_onnx),
                             write_weight(x, c, kernel + 2, bias_to_onnx),
                             bounded ? write_lengths(x, lengths) : "",
                             write_state(x, 1),
                             c->states == 2 ? write_state(x, 2) : ""};
    const char *y = tutti__onnx_node(x, c->type, 7, inputs);
    const char *states[2] = {tutti__onnx_more(x), c->states == 2 ? tutti__onnx_more(x) : ""};
    tutti__onnx_set_int(x, "hidden_size", units);
    if (NODE_INT(x, "reverse"))
        tutti__onnx_set_string(x, "direction", "reverse");
    if (c->gates == 3)
        tutti__onnx_set_int(x, "linear_before_reset", 1);
    for (int i = 0; i < c->states && i < 2; i++) {
        states[i] = tutti__onnx_squeezed(x, states[i], 0);
        tutti__onnx_out(x, 1 + i, states[i]);
    }
    if (!tutti__onnx_wants(x, 0))
        return;
    y = tutti__onnx_turned(x, tutti__onnx_squeezed(x, y, 1), 3, order);
    tutti__onnx_out(x, 0, bounded ? fill_up(x, y, states[0], lengths) : y);
}

const tutti_onnx_op tutti_onnx_lstm = {
    .op = "lstm",
    .type = "LSTM",
    .write = write_recurrent,
    .read = tutti__onnx_read_recurrent,
};

const tutti_onnx_op tutti_onnx_gru = {
    .op = "gru",
    .type = "GRU",
    .write = write_recurrent,
    .read = tutti__onnx_read_recurrent,
};

const tutti_onnx_op tutti_onnx_simple_rnn = {
    .op = "simple_rnn",
    .type = "RNN",
    .write = write_recurrent,
    .read = tutti__onnx_read_recurrent,
};
