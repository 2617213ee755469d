/* recurrent_loop.c: cells that ours are not, step by step: a GRU whose reset comes before the
 * product, peepholes, other activations, clipped gates, coupled gates. Few steps are built one
 * after the other, others become a while. a = x kernel + bias, for all steps at once GRU   z = f(az
 * + h Rz), r = f(ar + h Rr), n = g(an + (r h) Rn), h' = z h + (1 - z) n LSTM  i = f(ai + h Ri + Pi
 * c), f = f(af + h Rf + Pf c), c' = f c + i g(ac + h Rc), o = f(ao + h Ro + Po c'), h' = o h(c')
 *   RNN   h' = f(a + h R) */
#include "bridge/onnx/recurrent.h"

#include <math.h>
#include <string.h>
#include <strings.h>

enum { A, RECURRENT, STATE_BIAS, PEEPHOLES, LENGTHS, COUNT, GIVEN };

typedef struct bend {
    const char *name;
    double alpha, beta;
} bend;

typedef struct steps {
    const tutti_onnx_cell *cell;
    bend bends[3];
    double clip; /* 0: none */
    bool reverse, couples, before, peeps, bounded;
    int64_t units;
} steps;

/* Functions that take parameters, and what these are when a node does not say. */
static const bend parametric[] = {
    {"Affine", 1, 0},     {"LeakyRelu", 0.01, NAN},  {"ThresholdedRelu", 1, NAN},
    {"ScaledTanh", 1, 1}, {"HardSigmoid", 0.2, 0.5}, {"Elu", 1, NAN},
};
static const char *const others[] = {"Tanh", "Sigmoid", "Relu", "Softsign", "Softplus"};

static tutti_sym bent(const bend *b, tutti_sym x)
{
    const char *n = b->name;
    if (strcasecmp(n, "Tanh") == 0)
        return tutti_tanh(x);
    if (strcasecmp(n, "Sigmoid") == 0)
        return tutti_sigmoid(x);
    if (strcasecmp(n, "Relu") == 0)
        return tutti_relu(x);
    if (strcasecmp(n, "Softsign") == 0)
        return tutti_softsign(x);
    if (strcasecmp(n, "Softplus") == 0)
        return tutti_softplus(x);
    if (strcasecmp(n, "Elu") == 0)
        return tutti_elu(x, b->alpha);
    if (strcasecmp(n, "LeakyRelu") == 0)
        return tutti_leaky_relu(x, b->alpha);
    if (strcasecmp(n, "Affine") == 0)
        return tutti_add(tutti_mul(x, b->alpha), b->beta);
    if (strcasecmp(n, "ScaledTanh") == 0)
        return tutti_mul(tutti_tanh(tutti_mul(x, b->beta)), b->alpha);
    if (strcasecmp(n, "HardSigmoid") == 0)
        return tutti_clip(tutti_add(tutti_mul(x, b->alpha), b->beta), 0, 1);
    return tutti_where(tutti_greater(x, b->alpha), x, 0);
}

/* Function `which` of the cell, of a value that is clipped before. */
static tutti_sym bent_gate(const steps *s, int which, tutti_sym x)
{
    return bent(&s->bends[which], s->clip > 0 ? tutti_clip(x, -s->clip, s->clip) : x);
}

/* Gate k of [batch, gates units]. */
static tutti_sym gate(const steps *s, tutti_sym x, int k)
{
    return tutti_slice_axis(x, -1, k * s->units, (k + 1) * s->units);
}

static void step_gru(const steps *s, tutti_sym a, const tutti_sym *w, tutti_sym h, tutti_sym *ret)
{
    tutti_sym b = tutti_matmul(h, w[RECURRENT]), c;
    if (!s->before)
        b = tutti_add(b, w[STATE_BIAS]);
    tutti_sym z = bent_gate(s, 0, tutti_add(gate(s, a, 0), gate(s, b, 0)));
    tutti_sym r = bent_gate(s, 0, tutti_add(gate(s, a, 1), gate(s, b, 1)));
    if (s->before)
        c = tutti_matmul(tutti_mul(r, h), gate(s, w[RECURRENT], 2));
    else
        c = tutti_mul(r, gate(s, b, 2));
    tutti_sym n = bent_gate(s, 1, tutti_add(gate(s, a, 2), c));
    ret[0] = tutti_add(n, tutti_mul(z, tutti_sub(h, n)));
}

/* Ours are i f c o; peepholes are those of i o f. */
static void step_lstm(const steps *s, tutti_sym a, const tutti_sym *w, const tutti_sym *old,
                      tutti_sym *ret)
{
    tutti_sym sum = tutti_add(a, tutti_matmul(old[0], w[RECURRENT]));
    tutti_sym i = gate(s, sum, 0), f = gate(s, sum, 1), o = gate(s, sum, 3);
    if (s->peeps) {
        i = tutti_add(i, tutti_mul(gate(s, w[PEEPHOLES], 0), old[1]));
        f = tutti_add(f, tutti_mul(gate(s, w[PEEPHOLES], 2), old[1]));
    }
    i = bent_gate(s, 0, i);
    f = s->couples ? tutti_sub(1, i) : bent_gate(s, 0, f);
    tutti_sym fresh = bent_gate(s, 1, gate(s, sum, 2));
    ret[1] = tutti_add(tutti_mul(f, old[1]), tutti_mul(i, fresh));
    if (s->peeps)
        o = tutti_add(o, tutti_mul(gate(s, w[PEEPHOLES], 1), ret[1]));
    ret[0] = tutti_mul(bent_gate(s, 0, o), bent(&s->bends[2], ret[1]));
}

/* The states after step `at` (a scalar of i64); rows that are shorter keep theirs. */
static void recurrent_loop_step(const steps *s, const tutti_sym *w, tutti_sym at,
                                const tutti_sym *old, tutti_sym *ret)
{
    tutti_sym a = tutti_gather(w[A], at, 1);
    if (s->cell->gates == 4)
        step_lstm(s, a, w, old, ret);
    else if (s->cell->gates == 3)
        step_gru(s, a, w, old[0], ret);
    else
        ret[0] = bent_gate(s, 0, tutti_add(a, tutti_matmul(old[0], w[RECURRENT])));
    tutti_sym inside = s->bounded ? tutti_expand_dims(tutti_less(at, w[LENGTHS]), 1) : TUTTI_NO_SYM;
    for (int i = 0; s->bounded && i < s->cell->states; i++)
        ret[i] = tutti_where(inside, ret[i], old[i]);
}

static void unroll(const steps *s, const tutti_sym *w, int64_t time, const tutti_sym *first,
                   tutti_sym *ret)
{
    tutti_sym states[2] = {first[0], first[1]}, all[ONNX_UNROLL];
    for (int64_t n = 0; n < time; n++) {
        int64_t at = s->reverse ? time - 1 - n : n;
        tutti_sym next[2] = {{0}};
        recurrent_loop_step(s, w, tutti_scalar(w[A].node->graph, TUTTI_I64, (double)at), states,
                            next);
        memcpy(states, next, sizeof states);
        all[at] = states[0];
    }
    ret[0] = tutti_stack((int)time, all, .axis = 1);
    memcpy(ret + 1, states, sizeof states);
}

/* Variables: the step, states, what was given so far [batch, steps, units]. */
static void build_condition(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                            void *context)
{
    const steps *s = context;
    (void)body;
    (void)count;
    ret[0] = tutti_less(args[0], args[2 + s->cell->states + COUNT]);
}

static void build_step(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                       void *context)
{
    const steps *s = context;
    int states = s->cell->states;
    const tutti_sym *w = args + 2 + states;
    (void)body;
    (void)count;
    tutti_sym at = s->reverse ? tutti_sub(tutti_add(w[COUNT], -1), args[0]) : args[0];
    recurrent_loop_step(s, w, at, args + 1, ret + 1);
    tutti_sym far = args[1 + states], y = tutti_expand_dims(ret[1], 1);
    ret[0] = tutti_add(args[0], 1);
    ret[1 + states] = s->reverse ? tutti_concatenate(TUTTI_SYMS(y, far), .axis = 1)
                                 : tutti_concatenate(TUTTI_SYMS(far, y), .axis = 1);
}

static void go_round(steps *s, const tutti_sym *w, const tutti_sym *first, tutti_sym *ret)
{
    int states = s->cell->states;
    tutti_sym variables[4] = {tutti_scalar(w[A].node->graph, TUTTI_I64, 0)}, results[4] = {{0}};
    for (int i = 0; i < states; i++)
        variables[1 + i] = first[i];
    variables[1 + states] = tutti_slice_axis(tutti_expand_dims(first[0], 1), 1, 0, 0);
    (tutti_while)(build_condition, build_step, s, 2 + states, variables, GIVEN, w, results);
    ret[0] = results[1 + states];
    for (int i = 0; i < states; i++)
        ret[1 + i] = results[1 + i];
}

/* ---- what a node says ---- */

static bool takes(const bend *b, bool second, double *ret)
{
    for (size_t i = 0; i < TUTTI_COUNT(parametric); i++)
        if (strcasecmp(b->name, parametric[i].name) == 0) {
            *ret = second ? parametric[i].beta : parametric[i].alpha;
            return !isnan(*ret);
        }
    return false;
}

static bool exists(const char *name)
{
    double value;
    for (size_t i = 0; i < TUTTI_COUNT(others); i++)
        if (strcasecmp(name, others[i]) == 0)
            return true;
    return takes(&(bend){name, 0, 0}, false, &value);
}

/* Functions of one direction. Parameters stand in lists, one for each function that takes any. */
static bool read_bends(tutti_onnx_import *m, const tutti_onnx_cell *c, int direction, steps *s)
{
    static const char *const usual[][3] = {
        {"Tanh"}, {0}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
    const tutti_onnx_attr *names = tutti__onnx_attr(m->node, "activations", ONNX_STRINGS);
    const tutti_onnx_attr *alpha = tutti__onnx_attr(m->node, "activation_alpha", ONNX_FLOATS);
    const tutti_onnx_attr *beta = tutti__onnx_attr(m->node, "activation_beta", ONNX_FLOATS);
    size_t each = c->gates == 1 ? 1 : c->gates == 3 ? 2 : 3, alphas = 0, betas = 0;
    for (size_t i = 0; i < ((size_t)direction + 1) * each; i++) {
        bend b = {names && i < names->strings.count ? names->strings.items[i]
                                                    : usual[c->gates - 1][i % each],
                  0, 0};
        if (!exists(b.name)) {
            tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "activation %s", b.name);
            return false;
        }
        if (takes(&b, false, &b.alpha) && alpha && alphas < alpha->floats.count)
            b.alpha = (double)alpha->floats.items[alphas++];
        if (takes(&b, true, &b.beta) && beta && betas < beta->floats.count)
            b.beta = (double)beta->floats.items[betas++];
        s->bends[i % each] = b;
    }
    return true;
}

static tutti_sym value_of(tutti_sym x)
{
    return x.node && tutti_sym_type(x).handle ? tutti_read(x) : x;
}

bool tutti__onnx_run_steps(tutti_onnx_import *m, const tutti_onnx_cell *c, int direction,
                           tutti_sym x, const tutti_sym *states, const tutti_sym *weights,
                           const tutti_rnn_options *options, tutti_sym *ret)
{
    steps s = {.cell = c, .reverse = options->reverse, .bounded = options->lengths.node != NULL};
    tutti_sym kernel = value_of(weights[0]), bias = value_of(weights[2]), w[GIVEN];
    if (!read_bends(m, c, direction, &s))
        return false;
    s.clip = tutti__onnx_attr_float(m, "clip", 0);
    s.couples = tutti__onnx_attr_int(m, "input_forget", 0) != 0;
    s.before = c->gates == 3 && !tutti__onnx_attr_int(m, "linear_before_reset", 0);
    s.peeps = c->gates == 4 && tutti__onnx_has(m, 7);
    w[RECURRENT] = w[PEEPHOLES] = value_of(weights[1]);
    s.units = tutti_sym_type(w[RECURRENT]).dims[0];
    w[COUNT] = w[LENGTHS] = tutti_size(x, 1);
    w[STATE_BIAS] = bias;
    if (c->biases == 2) {
        w[STATE_BIAS] = tutti_squeeze(tutti_slice_axis(bias, 0, 1, 2), 0);
        bias = s.before ? tutti_sum(bias, .axes = TUTTI_AXES(0))
                        : tutti_squeeze(tutti_slice_axis(bias, 0, 0, 1), 0);
    }
    if (s.peeps)
        w[PEEPHOLES] = tutti_squeeze(
            tutti_slice_axis(value_of(tutti__onnx_sym(m, 7)), 0, direction, direction + 1), 0);
    if (s.bounded)
        w[LENGTHS] = tutti_cast(options->lengths, TUTTI_I64);
    w[A] = tutti_add(tutti_matmul(x, kernel), bias);
    if (m->status != TUTTI_OK || !tutti_sym_ok(w[A]))
        return false;
    int64_t time = tutti_sym_type(x).dims[1];
    if (time > 0 && time <= ONNX_UNROLL)
        unroll(&s, w, time, states, ret);
    else
        go_round(&s, w, states, ret);
    return tutti_sym_ok(ret[0]);
}
