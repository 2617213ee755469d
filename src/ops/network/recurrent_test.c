/* recurrent_test.c: recurrent networks against Keras's numbers, with lengths and backwards. */
#include <string.h>

#include "ops/network/network_test.h"

/* Batch 2, time 3, 2 features, 2 units. */
typedef tutti_sym build_fn(tutti_graph *g, tutti_sym lengths, bool reverse);

static tutti_sym simple_rnn(tutti_graph *g, tutti_sym lengths, bool reverse)
{
    return tutti_nn_simple_rnn(WAVE(g, 0, 2, 3, 2), WAVE(g, 1, 2, 2), WAVE(g, 3, 2, 2),
                               WAVE(g, 4, 2, 2), WAVE(g, 5, 2), .lengths = lengths,
                               .reverse = reverse);
}

static tutti_sym gru(tutti_graph *g, tutti_sym lengths, bool reverse)
{
    return tutti_nn_gru(WAVE(g, 0, 2, 3, 2), WAVE(g, 1, 2, 2), WAVE(g, 3, 2, 6), WAVE(g, 4, 2, 6),
                        WAVE(g, 5, 2, 6), .lengths = lengths, .reverse = reverse);
}

static tutti_sym lstm(tutti_graph *g, tutti_sym lengths, bool reverse)
{
    return tutti_nn_lstm(WAVE(g, 0, 2, 3, 2), WAVE(g, 1, 2, 2), WAVE(g, 2, 2, 2), WAVE(g, 3, 2, 8),
                         WAVE(g, 4, 2, 8), WAVE(g, 5, 8), .lengths = lengths, .reverse = reverse);
}

static tutti_sym lengths_of(tutti_graph *g)
{
    return tutti_cast(tutti_ints(g, 3, 1), TUTTI_I32);
}

TUTTI_TEST(simple_rnn_agrees_with_keras)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym y = simple_rnn(g, TUTTI_NO_SYM, false);
    CHECK_SYM(y, -0.7352003, 0.2229795, -0.0173435, 0.1950895, -0.5544486, 0.4396975, -0.5275650,
              -0.4410428, -0.2794909, 0.1229225, -0.5569286, 0.2823509);
    CHECK_SYM(tutti_sym_output(y, 1), -0.5544486, 0.4396975, -0.5569286, 0.2823509);
    y = simple_rnn(g, lengths_of(g), false);
    CHECK_SYM(y, -0.7352003, 0.2229795, -0.0173435, 0.1950895, -0.5544486, 0.4396975, -0.5275650,
              -0.4410428, -0.5275650, -0.4410428, -0.5275650, -0.4410428);
    CHECK_SYM(tutti_sym_output(y, 1), -0.5544486, 0.4396975, -0.5275650, -0.4410428);
    tutti_graph_destroy(g);
}

TUTTI_TEST(gru_agrees_with_keras)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym y = gru(g, TUTTI_NO_SYM, false);
    CHECK_SYM(y, -0.4765293, -0.0484606, -0.4536300, -0.0656669, -0.6501971, -0.1442835, -0.2272463,
              -0.4873942, -0.4190833, -0.3690561, -0.4781092, -0.4369247);
    CHECK_SYM(tutti_sym_output(y, 1), -0.6501971, -0.1442835, -0.4781092, -0.4369247);
    y = gru(g, lengths_of(g), false);
    CHECK_SYM(y, -0.4765293, -0.0484606, -0.4536300, -0.0656669, -0.6501971, -0.1442835, -0.2272463,
              -0.4873942, -0.2272463, -0.4873942, -0.2272463, -0.4873942);
    CHECK_SYM(tutti_sym_output(y, 1), -0.6501971, -0.1442835, -0.2272463, -0.4873942);
    tutti_graph_destroy(g);
}

TUTTI_TEST(lstm_agrees_with_keras)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym y = lstm(g, TUTTI_NO_SYM, false);
    CHECK_SYM(y, 0.1090511, -0.1013832, 0.0317628, -0.2546388, -0.1067360, -0.3371516, -0.2418664,
              -0.2501141, -0.3007992, -0.3745398, -0.3068590, -0.2547093);
    CHECK_SYM(tutti_sym_output(y, 1), -0.1067360, -0.3371516, -0.3068590, -0.2547093);
    CHECK_SYM(tutti_sym_output(y, 2), -0.1715769, -0.5214511, -0.5620628, -0.4363268);
    y = lstm(g, lengths_of(g), false);
    CHECK_SYM(tutti_sym_output(y, 1), -0.1067360, -0.3371516, -0.2418664, -0.2501141);
    CHECK_SYM(tutti_sym_output(y, 2), -0.1715769, -0.5214511, -0.5120291, -0.4002581);
    tutti_graph_destroy(g);
}

/* Keras gives a backward layer's outputs in the order of processing, ours stand at their times: row
 * 0 is Keras's reversed. Row 1 has length 1: its steps 2 and 1 repeat the first state, 0.6 sin(1.3
 * i + 1) for i = 2, 3. */
TUTTI_TEST(recurrent_networks_run_backwards_as_in_keras)
{
    tutti_graph *g = tutti__test_graph();
    CHECK_SYM(simple_rnn(g, lengths_of(g), true), -0.6290717, 0.3483789, -0.0227184, 0.2361080,
              -0.6722009, 0.3472529, -0.5275650, -0.4410428, 0.6 * sin(3.6), 0.6 * sin(4.9),
              0.6 * sin(3.6), 0.6 * sin(4.9));
    CHECK_SYM(tutti_sym_output(gru(g, TUTTI_NO_SYM, true), 1), -0.6353563, -0.1564432, -0.3668823,
              -0.3964806);
    CHECK_SYM(tutti_sym_output(gru(g, lengths_of(g), true), 1), -0.6353563, -0.1564432, -0.2272463,
              -0.4873942);
    tutti_sym y = lstm(g, lengths_of(g), true);
    CHECK_SYM(tutti_sym_output(y, 1), -0.1043810, -0.2805080, -0.2418664, -0.2501141);
    CHECK_SYM(tutti_sym_output(y, 2), -0.1751562, -0.4617850, -0.5120291, -0.4002581);
    tutti_graph_destroy(g);
}

/* Lengths beyond the sequence, and sequences of no steps at all. */
TUTTI_TEST(recurrent_networks_bear_odd_lengths)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = WAVE(g, 0, 2, 3, 2), h = WAVE(g, 1, 2, 2);
    tutti_sym kernel = WAVE(g, 3, 2, 2), recurrent = WAVE(g, 4, 2, 2), bias = WAVE(g, 5, 2);
    tutti_sym y =
        tutti_nn_simple_rnn(x, h, kernel, recurrent, bias, .lengths = tutti_ints(g, 99, -1));
    CHECK_SYM(tutti_sym_output(y, 1), -0.5544486, 0.4396975, 0.6 * sin(3.6), 0.6 * sin(4.9));
    tutti_sym none = tutti_slice_axis(x, 1, 0, 0);
    y = tutti_nn_simple_rnn(none, h, kernel, recurrent, bias);
    CHECK_INT(tutti_sym_type(y).dims[1], 0);
    CHECK_SYM(tutti_sub(tutti_sym_output(y, 1), h), 0, 0, 0, 0);
    tutti_graph_destroy(g);
}

/* ---- what stands behind a row's length ---- */

enum { MOST_OPERANDS = 6, MOST_GRADIENTS = 3 * MOST_OPERANDS };

/* Batch 2, time 3, 2 features; row 1 has length 1, and its other steps are `padding`. */
static tutti_sym padded_x(tutti_graph *g, double padding)
{
    tutti_tensor *tensor = tutti__test_wave(0, 3, (int64_t[]){2, 3, 2});
    for (int64_t i = 8; i < 12; i++)
        tutti_tensor_set(tensor, i, padding);
    tutti_sym x = tutti_constant(g, tensor);
    tutti_tensor_release(tensor);
    return x;
}

static tutti_sym total(tutti_sym y)
{
    return tutti_sum(tutti_square(y));
}

/* The gradients of all operands, those of the sum of their squares, and so on. */
static int gradients_of_padded(const char *op, tutti_dtype dtype, bool reverse, int orders,
                               double padding, tutti_tensor **ret)
{
    tutti_graph *g = tutti__test_graph();
    bool gru = strcmp(op, "gru") == 0, lstm = strcmp(op, "lstm") == 0;
    int64_t wide = lstm ? 8 : gru ? 6 : 2;
    tutti_sym in[MOST_OPERANDS + 1];
    int count = 0;
    in[count++] = padded_x(g, padding);
    in[count++] = WAVE(g, 1, 2, 2);
    if (lstm)
        in[count++] = WAVE(g, 2, 2, 2);
    in[count++] = WAVE(g, 3, 2, wide);
    in[count++] = WAVE(g, 4, 2, wide);
    in[count++] = gru ? WAVE(g, 5, 2, wide) : WAVE(g, 5, wide);
    for (int i = 0; i < count; i++)
        in[i] = tutti_cast(in[i], dtype);
    in[count] = tutti_ints(g, 3, 1);
    tutti_sym y = tutti_apply_op(g, op, count + 1, in, 1, &TUTTI_INT("reverse", reverse));
    tutti_sym loss = tutti_add(total(y), total(tutti_sym_output(y, 1)));
    for (int order = 0; order < orders; order++) {
        tutti_sym next = tutti_scalar(g, dtype, 0);
        for (int i = 0; i < count; i++) {
            tutti_sym gradient = tutti_gradient(loss, in[i]);
            ret[order * count + i] = tutti__test_value(gradient);
            next = tutti_add(next, total(gradient));
        }
        loss = next;
    }
    CHECK_OK(tutti_graph_check(g));
    tutti_graph_destroy(g);
    return orders * count;
}

static void padding_must_not_matter(const char *op, tutti_dtype dtype, bool reverse, int orders,
                                    double padding)
{
    tutti_tensor *zero[MOST_GRADIENTS], *other[MOST_GRADIENTS];
    int count = gradients_of_padded(op, dtype, reverse, orders, 0, zero);
    gradients_of_padded(op, dtype, reverse, orders, padding, other);
    for (int i = 0; i < count; i++) {
        if (!tutti_tensor_same(zero[i], other[i]))
            tutti__test_fail(__FILE__, __LINE__, "%s of %s: gradient %d of %d depends on padding",
                             op, tutti_dtype_name(dtype), i, count);
        tutti_tensor_release(zero[i]);
        tutti_tensor_release(other[i]);
    }
}

/* 0 times NaN is not 0. */
TUTTI_TEST(gradients_do_not_see_what_is_behind_the_length)
{
    static const char *const ops[] = {"simple_rnn", "gru", "lstm"};
    for (size_t i = 0; i < TUTTI_COUNT(ops); i++) {
        padding_must_not_matter(ops[i], TUTTI_F32, false, 2, NAN);
        padding_must_not_matter(ops[i], TUTTI_F32, true, 2, NAN);
        padding_must_not_matter(ops[i], TUTTI_F16, false, 1, INFINITY);
        padding_must_not_matter(ops[i], TUTTI_BF16, true, 1, NAN);
    }
    padding_must_not_matter("simple_rnn", TUTTI_F64, false, 3, NAN);
}

TUTTI_TEST(recurrent_networks_say_what_is_wrong)
{
    CHECK_REFUSES("lstm", "f32[2,3] f32[2,2] f32[2,2] f32[3,8] f32[2,8] f32[8]", TUTTI_INVALID,
                  "[batch,time,features]");
    CHECK_REFUSES("lstm", "f32[2,3,4] f32[2,2] f32[2,2] f32[4,6] f32[2,8] f32[8]", TUTTI_INVALID,
                  "gates times units");
    CHECK_REFUSES("gru", "f32[2,3,4] f32[2,2] f32[4,6] f32[2,6] f32[6]", TUTTI_INVALID, "bias");
    CHECK_REFUSES("simple_rnn", "f32[2,3,4] f32[3,2] f32[4,2] f32[2,2] f32[2]", TUTTI_INVALID,
                  "initial state h");
    CHECK_REFUSES("simple_rnn", "f32[2,3,4] f32[2,2] f32[4,2] f32[2,2] f32[2] f32[2]",
                  TUTTI_INVALID, "lengths are f32[2]");
}
