/* norm_test.c: normalisations against Keras's numbers. */
#include "ops/network/network_test.h"

TUTTI_TEST(batch_norm_agrees_with_keras)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym y = tutti_nn_batch_norm(WAVE(g, 0, 3, 2), WAVE(g, 1, 2), WAVE(g, 2, 2));
    CHECK_SYM(y, 0.6523321, 0.4338673, 1.1010167, -0.6571772, -0.1166135, -0.0606324);
    CHECK_SYM(tutti_sym_output(y, 1), -0.0735907, 0.0981824);
    CHECK_SYM(tutti_sym_output(y, 2), 0.1201325, 0.1640894);
    /* the inference form with these statistics is the same function */
    CHECK_SYM(tutti_nn_batch_norm_inference(WAVE(g, 0, 3, 2), WAVE(g, 1, 2), WAVE(g, 2, 2),
                                            tutti_sym_output(y, 1), tutti_sym_output(y, 2)),
              0.6523321, 0.4338673, 1.1010167, -0.6571772, -0.1166135, -0.0606324);
    tutti_graph_destroy(g);
}

TUTTI_TEST(layer_norm_agrees_with_keras)
{
    tutti_graph *g = tutti__test_graph();
    CHECK_SYM(tutti_nn_layer_norm(WAVE(g, 0, 2, 4), WAVE(g, 1, 4), WAVE(g, 2, 4)), 0.3836506,
              0.4608096, -0.7329640, 0.6220219, -0.2347377, -0.0597385, -0.9243421, -0.3609005);
    tutti_graph_destroy(g);
}

TUTTI_TEST(rms_norm_agrees_with_keras)
{
    tutti_graph *g = tutti__test_graph();
    CHECK_SYM(tutti_nn_rms_norm(WAVE(g, 0, 2, 3), WAVE(g, 1, 3)), 0, 0.6833127, -0.2169389,
              -0.5275379, -0.6005168, -0.0867736);
    tutti_graph_destroy(g);
}

TUTTI_TEST(group_norm_agrees_with_keras)
{
    tutti_graph *g = tutti__test_graph();
    CHECK_SYM(tutti_nn_group_norm(WAVE(g, 0, 2, 2, 2, 4), WAVE(g, 1, 4), WAVE(g, 2, 4), 2),
              0.7516769, 0.7533665, -0.6823999, 0.7567714, 0.0632748, 0.2365435, -0.8943994,
              -0.2242972, 0.1066212, -0.4381812, -0.6405591, -0.8748651, 0.8356403, -0.5535976,
              -0.1907027, -0.5034001, 1.0631758, -0.3524614, -0.2784597, 0.0114712, 0.9336195,
              0.2939648, -0.5270633, 0.4907131, 0.1723436, 0.3330160, -0.9024277, 0.0916584,
              -0.4114409, -0.2768178, -1.0055532, -0.7615110);
    tutti_graph_destroy(g);
}

/* y and d sum(y w) / dx, or its derivative, in f64 and in f16, of f16 numbers of this size. */
static void check_f16(tutti_sym (*norm)(tutti_sym x), double size, int order)
{
    tutti_graph *g = tutti__test_graph();
    tutti_tensor *values[4];
    tutti_sym small = tutti_cast(tutti_mul(WAVE(g, 0, 2, 3, 4), size), TUTTI_F16);
    tutti_sym w = tutti_cast(WAVE(g, 1, 2, 3, 4), TUTTI_F16);
    for (int i = 0; i < 2; i++) {
        tutti_dtype dtype = i == 0 ? TUTTI_F16 : TUTTI_F64;
        tutti_sym x = tutti_cast(small, dtype), y = norm(x), grad = y;
        for (int n = 0; n < order; n++)
            grad = tutti_gradient(tutti_sum(tutti_mul(grad, tutti_cast(w, dtype))), x);
        CHECK_INT(tutti_sym_type(y).dtype, dtype);
        values[2 * i] = tutti__test_value(y);
        values[2 * i + 1] = tutti__test_value(grad);
    }
    for (int v = 0; v < 2; v++) {
        double most = 0;
        for (int64_t i = 0; i < 24; i++)
            most = fmax(most, fabs(tutti_tensor_get(values[2 + v], i)));
        for (int64_t i = 0; i < 24; i++)
            CHECK_NEAR(tutti_tensor_get(values[v], i), tutti_tensor_get(values[2 + v], i),
                       2e-3 * most);
    }
    for (int v = 0; v < 4; v++)
        tutti_tensor_release(values[v]);
    tutti_graph_destroy(g);
}

static tutti_sym row_of(tutti_sym x, double value)
{
    return tutti_fill(tutti_sym_graph(x), tutti_sym_type(x).dtype, value, 4);
}

static tutti_sym by_groups(tutti_sym x)
{
    return tutti_nn_group_norm(x, row_of(x, 1), row_of(x, 0.5), 2, .epsilon = 1e-5);
}

static tutti_sym by_instances(tutti_sym x)
{
    return tutti_nn_instance_norm(x, row_of(x, 1), row_of(x, 0.5));
}

static tutti_sym by_neighbours(tutti_sym x)
{
    return tutti_lrn(x, 3, .alpha = 0.1);
}

static tutti_sym by_rows(tutti_sym x)
{
    return tutti_nn_layer_norm(x, row_of(x, 1), row_of(x, 0.5), .epsilon = 1e-4);
}

static tutti_sym by_rows_uncentred(tutti_sym x)
{
    return tutti_nn_rms_norm(x, row_of(x, 1), .epsilon = 1e-4);
}

TUTTI_TEST(norms_made_of_other_operators_have_room_in_f16)
{
    check_f16(by_groups, 1e-3, 1); /* r^3 is 3e7, */
    check_f16(by_groups, 1000, 1); /* and (x - mean)^2 1e5 */
    check_f16(by_instances, 1e-3, 1);
    check_f16(by_instances, 1000, 1);
    check_f16(by_neighbours, 1000, 1);
}

TUTTI_TEST(second_gradients_of_norms_of_rows_have_room_in_f16)
{
    check_f16(by_rows, 1e-2, 2); /* r^3 is 1e6 */
    check_f16(by_rows_uncentred, 1e-2, 2);
}

TUTTI_TEST(normalisations_say_what_is_wrong)
{
    CHECK_REFUSES("layer_norm", "f32[2,3] f32[4] f32[3]", TUTTI_INVALID, "channels of x");
    CHECK_REFUSES("batch_norm", "f32[] f32[4] f32[3]", TUTTI_INVALID, "scalar");
    CHECK_REFUSES("rms_norm", "f32[2,3] f64[3]", TUTTI_INVALID, "element types must agree");
    CHECK_REFUSES("batch_norm", "f32[2,3] f32[3] f32[3] | epsilon=-5", TUTTI_INVALID,
                  "epsilon is -5, needs 0 or more");
    CHECK_REFUSES("layer_norm", "f32[2,3] f32[3] f32[3] | epsilon=-1e-9", TUTTI_INVALID,
                  "epsilon is -1e-09");
    CHECK_REFUSES("rms_norm", "f32[2,3] f32[3] | epsilon=nan", TUTTI_INVALID, "epsilon is nan");
    tutti_graph *g = tutti__test_graph();
    tutti_nn_group_norm(WAVE(g, 0, 2, 2, 6), WAVE(g, 1, 6), WAVE(g, 2, 6), 4);
    CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "6 channels do not divide into 4 groups");
    tutti_graph_destroy(g);
}

TUTTI_TEST(norms_made_of_other_operators_refuse_a_negative_epsilon)
{
    static const char *const names[] = {"group_norm", "instance_norm", "batch_norm_inference"};
    for (int i = 0; i < 3; i++) {
        tutti_graph *g = tutti__test_graph();
        tutti_sym x = WAVE(g, 0, 2, 2, 6), scale = WAVE(g, 1, 6), y;
        if (i == 0)
            y = tutti_nn_group_norm(x, scale, scale, 3, .epsilon = -1);
        else if (i == 1)
            y = tutti_nn_instance_norm(x, scale, scale, .epsilon = -1);
        else
            y = tutti_nn_batch_norm_inference(x, scale, scale, scale, scale, .epsilon = -1);
        CHECK(!tutti_sym_ok(y));
        CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
        CHECK_CONTAINS(tutti_error_message(), names[i]);
        CHECK_CONTAINS(tutti_error_message(), "epsilon is -1, needs 0 or more");
        tutti_graph_destroy(g);
    }
}
