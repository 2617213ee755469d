/* recurrent_read.c: LSTM, GRU and RNN; reading them. A bidirectional one is two of ours, one of
 * them in reverse. See recurrent.h. */
#include "bridge/onnx/recurrent.h"

#include <string.h>
#include <strings.h>

/* One direction of a cell. */
typedef struct side {
    const tutti_onnx_cell *c;
    int direction;
} side;

static tutti_tensor *matrix_from_onnx(const tutti_tensor *from, const void *context)
{
    const side *s = context;
    const tutti_onnx_cell *c = s->c;
    const int64_t *dims = tutti_tensor_dims(from);
    int64_t wide = dims[1], rows = dims[2], units = wide / c->gates;
    int64_t first = s->direction * wide * rows;
    tutti_tensor *to;
    if (tutti_tensor_create(tutti_tensor_dtype(from), 2, (int64_t[]){rows, wide}, &to) != TUTTI_OK)
        return NULL;
    for (int64_t j = 0; j < wide; j++)
        for (int64_t i = 0; i < rows; i++)
            tutti_tensor_set(to, i * wide + c->order[j / units] * units + j % units,
                             tutti_tensor_get(from, first + j * rows + i));
    return to;
}

/* Two halves become one by addition. */
static tutti_tensor *bias_from_onnx(const tutti_tensor *from, const void *context)
{
    const side *s = context;
    const tutti_onnx_cell *c = s->c;
    int64_t wide = tutti_tensor_dims(from)[1] / 2, units = wide / c->gates;
    int64_t dims[2] = {c->biases, wide}, first = s->direction * 2 * wide;
    tutti_tensor *to;
    if (tutti_tensor_create(tutti_tensor_dtype(from), c->biases, c->biases == 2 ? dims : dims + 1,
                            &to) != TUTTI_OK)
        return NULL;
    for (int64_t j = 0; j < 2 * wide; j++) {
        int64_t half = c->biases == 2 ? j / wide : 0, k = j % wide;
        int64_t at = half * wide + c->order[k / units] * units + k % units;
        tutti_tensor_set(to, at, tutti_tensor_get(to, at) + tutti_tensor_get(from, first + j));
    }
    return to;
}

/* Activations that are named are those that a cell has anyhow. */
static bool usual_activations(tutti_onnx_import *m, const tutti_onnx_cell *c)
{
    static const char *const usual[][3] = {
        {"Tanh"}, {0}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
    const tutti_onnx_attr *attr = tutti__onnx_attr(m->node, "activations", ONNX_STRINGS);
    size_t each = c->gates == 1 ? 1 : c->gates == 3 ? 2 : 3;
    for (size_t i = 0; attr && i < attr->strings.count; i++)
        if (strcasecmp(attr->strings.items[i], usual[c->gates - 1][i % each]) != 0)
            return false;
    return true;
}

/* Whether our operators are the cell; the others are built step by step. */
static bool is_ours(tutti_onnx_import *m, const tutti_onnx_cell *c)
{
    bool after = c->gates != 3 || tutti__onnx_attr_int(m, "linear_before_reset", 0);
    return after && usual_activations(m, c) && !tutti__onnx_attr(m->node, "clip", ONNX_FLOAT) &&
           !tutti__onnx_attr_int(m, "input_forget", 0) && !tutti__onnx_has(m, 7);
}

/* The number of directions; 0 after a failure. */
static int check_weights(tutti_onnx_import *m, const tutti_onnx_cell *c)
{
    const tutti_tensor *w = tutti__onnx_read_constant(m, 1, "W");
    const tutti_tensor *r = tutti__onnx_read_constant(m, 2, "R");
    const tutti_tensor *b = tutti__onnx_has(m, 3) ? tutti__onnx_read_constant(m, 3, "B") : NULL;
    const char *way = tutti__onnx_attr_string(m, "direction", "forward");
    int ways = strcmp(way, "bidirectional") == 0 ? 2 : 1;
    if (m->status != TUTTI_OK || !w || !r)
        return 0;
    const int64_t *wide = tutti_tensor_dims(w), *square = tutti_tensor_dims(r);
    if (tutti_tensor_rank(w) == 3 && tutti_tensor_rank(r) == 3 && wide[0] == ways &&
        square[0] == ways && wide[1] == square[1] && wide[1] % c->gates == 0 &&
        square[2] == wide[1] / c->gates && wide[1] > 0 &&
        (!b || (tutti_tensor_rank(b) == 2 && tutti_tensor_dims(b)[0] == ways &&
                tutti_tensor_dims(b)[1] == 2 * wide[1])))
        return ways;
    tutti__onnx_read_fail(m, TUTTI_CORRUPT, "the shapes of its weights do not fit");
    return 0;
}

/* kernel, recurrent and bias as variables in our form. */
static bool read_weights(tutti_onnx_import *m, const side *s, tutti_sym ret[3])
{
    static const char *const forms[3][2] = {
        {"RNN", "RNN back"}, {"GRU", "GRU back"}, {"LSTM", "LSTM back"}};
    const tutti_onnx_cell *c = s->c;
    const char *form = forms[c->gates == 1 ? 0 : c->gates - 2][s->direction];
    int64_t wide = tutti_tensor_dims(tutti__onnx_input(m, 1)->value)[1];
    ret[0] = tutti__onnx_formed(m, 1, form, matrix_from_onnx, s);
    ret[1] = tutti__onnx_formed(m, 2, form, matrix_from_onnx, s);
    ret[2] =
        tutti__onnx_has(m, 3)
            ? tutti__onnx_formed(m, 3, form, bias_from_onnx, s)
            : (tutti_fill)(m->graph, tutti_tensor_dtype(tutti__onnx_input(m, 1)->value), 0,
                           c->biases, c->biases == 2 ? (int64_t[]){2, wide} : (int64_t[]){wide});
    return m->status == TUTTI_OK && ret[0].node && ret[1].node && ret[2].node;
}

/* An initial state [directions, batch, units] as [batch, units]; zeros with the batch of x when not
 * given. */
static tutti_sym read_state(tutti_onnx_import *m, int i, const side *s, tutti_sym x, int64_t units)
{
    int axis = tutti__onnx_attr_int(m, "layout", 0) ? 1 : 0;
    if (tutti__onnx_has(m, i))
        return tutti_squeeze(
            tutti_slice_axis(tutti__onnx_sym(m, i), axis, s->direction, s->direction + 1), axis);
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
    return tutti_where(tutti_expand_dims(inside, 2), y, 0);
}

static tutti_sym run_cell(const tutti_onnx_cell *c, tutti_sym x, const tutti_sym *states,
                          const tutti_sym *w, const tutti_rnn_options *options)
{
    if (c->gates == 4)
        return tutti_nn_lstm_with(x, states[0], states[1], w[0], w[1], w[2], options);
    if (c->gates == 3)
        return tutti_nn_gru_with(x, states[0], w[0], w[1], w[2], options);
    return tutti_nn_simple_rnn_with(x, states[0], w[0], w[1], w[2], options);
}

/* One direction over x [batch, time, features]: the sequence, then the states. */
static bool run_side(tutti_onnx_import *m, const side *s, tutti_sym x, bool reverse,
                     tutti_sym ret[3])
{
    tutti_sym states[2] = {{0}}, w[3];
    tutti_rnn_options options = {.struct_size = sizeof options, .reverse = reverse};
    if (!read_weights(m, s, w))
        return false;
    options.lengths = tutti__onnx_has(m, 4) ? tutti__onnx_sym(m, 4) : TUTTI_NO_SYM;
    int64_t units = tutti_sym_type(w[1]).dims[0];
    for (int i = 0; i < s->c->states; i++)
        states[i] = read_state(m, 5 + i, s, x, units);
    if (!is_ours(m, s->c)) {
        if (!tutti__onnx_run_steps(m, s->c, s->direction, x, states, w, &options, ret))
            return false;
    } else {
        ret[0] = run_cell(s->c, x, states, w, &options);
        if (!ret[0].node)
            return false;
        for (int i = 0; i < s->c->states; i++)
            ret[1 + i] = tutti_sym_output(ret[0], 1 + i);
    }
    if (options.lengths.node)
        ret[0] = cut_off(ret[0], options.lengths);
    return true;
}

/* layout 0: Y [time, directions, batch, units], states [directions, batch, units]; layout 1: Y
 * [batch, time, directions, units], states [batch, directions, units]. */
void tutti__onnx_read_recurrent(tutti_onnx_import *m)
{
    const tutti_onnx_cell *c = tutti__onnx_cell_of(m->rule->type);
    tutti_sym sequence = tutti__onnx_sym(m, 0), parts[2][3];
    bool rows = tutti__onnx_attr_int(m, "layout", 0) != 0;
    if (!sequence.node)
        return;
    int ways = check_weights(m, c);
    bool reverse = strcmp(tutti__onnx_attr_string(m, "direction", "forward"), "reverse") == 0;
    tutti_sym x = rows ? sequence : tutti_transpose(sequence, 1, 0, 2);
    for (int d = 0; d < ways; d++)
        if (!run_side(m, &(side){c, d}, x, reverse || d == 1, parts[d]))
            return;
    for (int i = 0; ways > 0 && i <= c->states; i++) {
        tutti_sym list[2] = {parts[0][i], parts[ways - 1][i]}; /* [batch, (time,) units] */
        tutti_sym y = tutti_stack(ways, list, .axis = i == 0 ? 2 : 1);
        if (!rows)
            y = i == 0 ? tutti_transpose(y, 1, 2, 0, 3) : tutti_transpose(y, 1, 0, 2);
        tutti__onnx_made(m, i, y);
    }
}
