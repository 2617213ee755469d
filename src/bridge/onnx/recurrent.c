/* recurrent.c: LSTM, GRU and RNN.
 *
 *            ours                        ONNX's (one direction)
 *   x        [batch, time, features]     [time, batch, features]
 *   kernel   [features, gates units]     W [1, gates units, features]
 *   recurrent[units, gates units]        R [1, gates units, units]
 *   bias     [gates units], of gru [2, gates units]   B [1, 2 gates units]: of W, then of R
 *   gates    lstm i f c o, gru z r h     LSTM i o f c, GRU z r h
 *   sequence [batch, time, units]        Y [time, 1, batch, units]
 *   states   [batch, units]              Y_h, Y_c [1, batch, units]
 * Past a row's length ONNX's sequence is 0; ours repeats the state. */
#include "bridge/onnx.h"

#include <string.h>

typedef struct cell {
    const char *type;
    int gates, states, biases;
    int order[4]; /* ONNX's gate i is ours order[i] */
} cell;

static const cell cells[] = {
    {"LSTM", 4, 2, 1, {0, 3, 1, 2}},
    {"GRU", 3, 1, 2, {0, 1, 2}},
    {"RNN", 1, 1, 1, {0}},
};

static const cell *cell_of(const char *type)
{
    size_t i = 0;
    while (i + 1 < TUTTI_COUNT(cells) && strcmp(cells[i].type, type) != 0)
        i++;
    return &cells[i];
}

/* ---- weights ---- */

/* [rows, gates units] to [1, gates units, rows], gates in ONNX's order. */
static tutti_tensor *matrix_to_onnx(const cell *c, const tutti_tensor *from)
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

static tutti_tensor *matrix_from_onnx(const tutti_tensor *from, const void *context)
{
    const cell *c = context;
    const int64_t *dims = tutti_tensor_dims(from);
    int64_t wide = dims[1], rows = dims[2], units = wide / c->gates;
    tutti_tensor *to;
    if (tutti_tensor_create(tutti_tensor_dtype(from), 2, (int64_t[]){rows, wide}, &to) != TUTTI_OK)
        return NULL;
    for (int64_t j = 0; j < wide; j++)
        for (int64_t i = 0; i < rows; i++)
            tutti_tensor_set(to, i * wide + c->order[j / units] * units + j % units,
                             tutti_tensor_get(from, j * rows + i));
    return to;
}

/* One bias goes to W's half and leaves R's 0. */
static tutti_tensor *bias_to_onnx(const cell *c, const tutti_tensor *from)
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

/* Two halves become one by addition. */
static tutti_tensor *bias_from_onnx(const tutti_tensor *from, const void *context)
{
    const cell *c = context;
    int64_t wide = tutti_tensor_count(from) / 2, units = wide / c->gates;
    int64_t dims[2] = {c->biases, wide};
    tutti_tensor *to;
    if (tutti_tensor_create(tutti_tensor_dtype(from), c->biases, c->biases == 2 ? dims : dims + 1,
                            &to) != TUTTI_OK)
        return NULL;
    for (int64_t j = 0; j < 2 * wide; j++) {
        int64_t half = c->biases == 2 ? j / wide : 0, k = j % wide;
        int64_t at = half * wide + c->order[k / units] * units + k % units;
        tutti_tensor_set(to, at, tutti_tensor_get(to, at) + tutti_tensor_get(from, j));
    }
    return to;
}

/* ---- writing ---- */

typedef tutti_tensor *form_fn(const cell *c, const tutti_tensor *from);

static const char *write_weight(tutti_onnx_export *x, const cell *c, int i, form_fn *form)
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
    const cell *c = cell_of(x->rule->type);
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

/* ---- reading ---- */

static bool check_cell(tutti_onnx_import *m, const cell *c)
{
    const char *direction = tutti__onnx_attr_string(m, "direction", "forward");
    const char *wrong = strcmp(direction, "forward") != 0 && strcmp(direction, "reverse") != 0
                            ? "direction is not supported"
                        : tutti__onnx_attr(m->node, "activations", ONNX_STRINGS)
                            ? "activations are set"
                        : tutti__onnx_attr(m->node, "clip", ONNX_FLOAT) ? "clip is set"
                        : tutti__onnx_attr_int(m, "layout", 0)          ? "layout is set"
                        : tutti__onnx_attr_int(m, "input_forget", 0)    ? "input_forget is set"
                        : tutti__onnx_has(m, 7)                         ? "peepholes are used"
                        : c->gates == 3 && !tutti__onnx_attr_int(m, "linear_before_reset", 0)
                            ? "linear_before_reset is not set"
                            : NULL;
    if (wrong)
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "%s", wrong);
    return wrong == NULL;
}

/* kernel, recurrent and bias as variables in our form. */
static bool read_weights(tutti_onnx_import *m, const cell *c, tutti_sym ret[3])
{
    const tutti_tensor *w = tutti__onnx_read_constant(m, 1, "W");
    const tutti_tensor *r = tutti__onnx_read_constant(m, 2, "R");
    const tutti_tensor *b = tutti__onnx_has(m, 3) ? tutti__onnx_read_constant(m, 3, "B") : NULL;
    if (m->status != TUTTI_OK || !w || !r)
        return false;
    const int64_t *wide = tutti_tensor_dims(w), *square = tutti_tensor_dims(r);
    if (tutti_tensor_rank(w) != 3 || tutti_tensor_rank(r) != 3 || wide[0] != 1 || square[0] != 1 ||
        wide[1] != square[1] || wide[1] % c->gates != 0 || square[2] != wide[1] / c->gates ||
        wide[1] == 0 || (b && tutti_tensor_count(b) != 2 * wide[1])) {
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "the shapes of its weights do not fit");
        return false;
    }
    ret[0] = tutti__onnx_formed(m, 1, c->type, matrix_from_onnx, c);
    ret[1] = tutti__onnx_formed(m, 2, c->type, matrix_from_onnx, c);
    ret[2] = b ? tutti__onnx_formed(m, 3, c->type, bias_from_onnx, c)
               : (tutti_fill)(m->graph, tutti_tensor_dtype(w), 0, c->biases,
                              c->biases == 2 ? (int64_t[]){2, wide[1]} : (int64_t[]){wide[1]});
    return m->status == TUTTI_OK && ret[0].node && ret[1].node && ret[2].node;
}

/* An initial state [1, batch, units] as [batch, units]; zeros with the batch of x when not given.
 */
static tutti_sym read_state(tutti_onnx_import *m, int i, tutti_sym x, int64_t units)
{
    if (tutti__onnx_has(m, i))
        return tutti_squeeze(tutti__onnx_sym(m, i), 0);
    tutti_sym batch = tutti_sum(x, .axes = TUTTI_AXES(1, 2));
    return tutti_zeros_like(tutti_broadcast_to(tutti_expand_dims(batch, 1), -1, units));
}

/* 0 past the lengths; y [batch, time, units]. */
static tutti_sym cut_off(tutti_sym y, tutti_sym lengths)
{
    tutti_sym line = tutti_sum(y, .axes = TUTTI_AXES(0, 2));
    tutti_sym ones = tutti_cast(tutti_ones_like(line), TUTTI_I64);
    tutti_sym steps = tutti_cumsum(ones, 0, .exclusive = true);
    tutti_sym inside = tutti_less(steps, tutti_expand_dims(tutti_cast(lengths, TUTTI_I64), 1));
    return tutti_where(tutti_expand_dims(inside, 2), y, tutti_scalar_like(y, 0));
}

static tutti_sym run_cell(const cell *c, tutti_sym x, const tutti_sym *states, const tutti_sym *w,
                          const tutti_rnn_options *options)
{
    if (c->gates == 4)
        return (tutti_lstm_of)(x, states[0], states[1], w[0], w[1], w[2], options);
    if (c->gates == 3)
        return (tutti_gru_of)(x, states[0], w[0], w[1], w[2], options);
    return (tutti_simple_rnn_of)(x, states[0], w[0], w[1], w[2], options);
}

static void read_recurrent(tutti_onnx_import *m)
{
    const cell *c = cell_of(m->rule->type);
    tutti_sym sequence = tutti__onnx_sym(m, 0), states[2] = {{0}}, w[3] = {{0}};
    tutti_rnn_options options = {.struct_size = sizeof options};
    if (!sequence.node || !check_cell(m, c) || !read_weights(m, c, w))
        return;
    options.reverse = strcmp(tutti__onnx_attr_string(m, "direction", "forward"), "reverse") == 0;
    options.lengths = tutti__onnx_has(m, 4) ? tutti__onnx_sym(m, 4) : TUTTI_NO_SYM;
    tutti_sym x = tutti_transpose(sequence, 1, 0, 2);
    int64_t units = tutti_sym_type(w[1]).dims[0];
    for (int i = 0; i < c->states; i++)
        states[i] = read_state(m, 5 + i, x, units);
    tutti_sym y = run_cell(c, x, states, w, &options);
    if (!y.node)
        return;
    tutti_sym all = options.lengths.node ? cut_off(y, options.lengths) : y;
    tutti__onnx_made(m, 0, tutti_expand_dims(tutti_transpose(all, 1, 0, 2), 1));
    for (int i = 0; i < c->states; i++)
        tutti__onnx_made(m, 1 + i, tutti_expand_dims(tutti_output_of(y, 1 + i), 0));
}

const tutti_onnx_op tutti_onnx_lstm = {
    .op = "lstm",
    .type = "LSTM",
    .write = write_recurrent,
    .read = read_recurrent,
};

const tutti_onnx_op tutti_onnx_gru = {
    .op = "gru",
    .type = "GRU",
    .write = write_recurrent,
    .read = read_recurrent,
};

const tutti_onnx_op tutti_onnx_simple_rnn = {
    .op = "simple_rnn",
    .type = "RNN",
    .write = write_recurrent,
    .read = read_recurrent,
};
