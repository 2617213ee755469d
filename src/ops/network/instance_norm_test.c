/* instance_norm_test.c: normalisation of instances and of neighbouring channels against PyTorch's
 * numbers. */
#include "ops/network/network_test.h"

TUTTI_TEST(instance_norm_agrees_with_pytorch)
{
    tutti_graph *g = tutti__test_graph();
    tutti_tensor *scale = NULL, *offset = NULL;
    CHECK_OK(tutti_tensor_from(TUTTI_F64, 1, (int64_t[]){2}, (double[]){1.5, -0.5}, &scale));
    CHECK_OK(tutti_tensor_from(TUTTI_F64, 1, (int64_t[]){2}, (double[]){0.1, 0.2}, &offset));
    CHECK_SYM(tutti_nn_instance_norm(WAVE(g, 0, 2, 2, 3, 2), tutti_constant(g, scale),
                                     tutti_constant(g, offset), .epsilon = 1e-2),
              0.0220038, -0.3509922, 1.1041469, 0.7991486, -1.8325487, 0.1702920, 2.1181511,
              0.0978715, -1.7157737, 0.8508407, 0.9040206, -0.3671605, 0.3656304, 0.7284670,
              -1.1304877, -0.3405401, 2.0894564, 0.1569367, -1.9326933, 0.3733792, 1.7404323,
              -0.4950319, -0.5323380, 0.7767891);
    CHECK(!tutti_sym_ok(tutti_nn_instance_norm(WAVE(g, 0, 2, 2), tutti_constant(g, scale),
                                               tutti_constant(g, offset))));
    CHECK_CONTAINS(tutti_error_message(), "instance_norm: x is f64[2,2]");
    tutti_tensor_release(scale);
    tutti_tensor_release(offset);
    tutti_graph_destroy(g);
}

TUTTI_TEST(lrn_agrees_with_pytorch)
{
    tutti_graph *g = tutti__test_graph();
    tutti_sym x = tutti_mul(WAVE(g, 0, 1, 1, 2, 5), 5);
    CHECK_SYM(tutti_lrn(x, 3, .alpha = 0.5, .beta = 0.6, .bias = 1.5), 0.0000000, 1.4144265,
              0.6730730, -0.9292743, -1.2762465, 0.3295639, 1.4857785, 0.4060411, -1.1609285,
              -1.0971497);
    /* an even window reaches one further to the right: 3 / (1 + (9 + 16) / 2), 4 / (1 + 16 / 2) */
    CHECK_SYM(tutti_lrn(tutti_reshape(tutti_range(g, 3, 5, 1, TUTTI_F64), 1, 2), 2, .alpha = 1,
                        .beta = 1),
              3 / 13.5, 4 / 9.0);
    CHECK(!tutti_sym_ok(tutti_lrn(x, -1)));
    tutti_graph_destroy(g);
}
