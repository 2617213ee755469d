/* pool_test.c: pooling against numbers worked out by hand and TensorFlow's. */
#include "ops/network/network_test.h"

TUTTI_TEST(max_pool2d_takes_the_maximum_of_each_window)
{
    CHECK_OP("max_pool2d", "f32[1,2,4,1]{=1,5,-3,-4,2,3,-1,-2}", 0, 5, -1);
    /* windows beyond the edge hold what is inside only, also when that is negative */
    CHECK_OP("max_pool2d", "f32[1,1,3,1]{=-5,-7,-9} | window=[1,2] padding=same", 0, -5, -9);
    CHECK_OP("max_pool2d", "f32[1,2,2,2]{=1,8,2,7,3,6,4,5}", 0, 4, 8);
}

TUTTI_TEST(max_pool2d_gives_the_gradient_to_the_first_maximum)
{
    CHECK_OP("max_pool2d_backward", "f32[1,2,2,1]{=3,7,7,7} f32[1,1,1,1]{=10}", 0, 0, 10, 0, 0);
    /* windows that overlap add up */
    CHECK_OP("max_pool2d_backward",
             "f32[1,1,3,1]{=1,9,2} f32[1,1,2,1]{=10,100} | window=[1,2] strides=[1,1]", 0, 0, 110,
             0);
    CHECK_OP("max_pool2d_gather",
             "f32[1,1,3,1]{=1,9,2} f32[1,1,3,1]{=4,5,6} | window=[1,2] strides=[1,1]", 0, 5, 5);
}

TUTTI_TEST(max_pool2d_passes_nan_on)
{
    CHECK_OP("max_pool2d_backward", "f32[1,1,2,1]{=1,nan} f32[1,1,1,1]{=2} | window=[1,2]", 0, 0,
             2);
}

TUTTI_TEST(average_pool2d_leaves_padding_out)
{
    CHECK_OP("average_pool2d", "f32[1,2,2,1]{=1,2,3,6}", 0, 3);
    CHECK_OP("average_pool2d", "f32[1,1,3,1]{=2,4,9} | window=[1,2] padding=same", 0, 3, 9);
    CHECK_OP("average_pool2d_backward",
             "f32[1,1,2,1]{=10,100} | window=[1,2] padding=same size=[1,3]", 0, 5, 5, 100);
    tutti_graph *g = tutti__test_graph();
    CHECK_SYM(tutti_nn_average_pool2d(WAVE(g, 0, 1, 3, 4, 1), .pool_size = {3, 3},
                                      .strides = {2, 2}, .padding = "same"),
              0.1809268, 0.1718065, -0.0839434, 0.4086871);
    CHECK_SYM(tutti_nn_max_pool2d(WAVE(g, 0, 1, 3, 4, 1), .pool_size = {3, 3}, .strides = {2, 2},
                                  .padding = "same"),
              0.5991260, 0.5991260, 0.5991260, 0.5991260);
    tutti_graph_destroy(g);
}

TUTTI_TEST(pooling_along_time_and_over_everything)
{
    tutti_graph *g = tutti__test_graph();
    tutti_tensor *tensor = NULL;
    CHECK_OK(
        tutti_tensor_from(TUTTI_F32, 3, (int64_t[]){1, 5, 1}, (float[]){1, 4, 2, 8, 5}, &tensor));
    tutti_sym x = tutti_constant(g, tensor);
    CHECK_SYM(tutti_nn_max_pool1d(x), 4, 8);
    CHECK_SYM(tutti_nn_max_pool1d(x, .pool_size = 3, .strides = 1, .padding = "same"), 4, 4, 8, 8,
              8);
    CHECK_SYM(tutti_nn_average_pool1d(x, .pool_size = 2, .strides = 3), 2.5, 6.5);
    CHECK_SYM(tutti_nn_global_max_pool1d(x), 8);
    CHECK_SYM(tutti_nn_global_average_pool1d(x), 4);
    tutti_sym image = tutti_reshape(tutti_range(g, 1, 9, 1, TUTTI_F32), 1, 2, 2, 2);
    CHECK_SYM(tutti_nn_global_max_pool2d(image), 7, 8);
    CHECK_SYM(tutti_nn_global_average_pool2d(image), 4, 5);
    tutti_tensor_release(tensor);
    tutti_graph_destroy(g);
}

TUTTI_TEST(pooling_says_what_is_wrong)
{
    CHECK_REFUSES("max_pool2d", "f32[4,4,3]", TUTTI_INVALID, "[batch,height,width,channels]");
    CHECK_REFUSES("max_pool2d", "f32[1,4,4,3] | window=[0,2]", TUTTI_INVALID, "window has 0");
    CHECK_REFUSES("average_pool2d", "f32[1,4,4,3] | padding=explicit pads=[2,0,0,0]", TUTTI_INVALID,
                  "nothing to pool");
    CHECK_REFUSES("max_pool2d_backward", "f32[1,4,4,3] f32[1,3,2,3]", TUTTI_INVALID,
                  "grad is f32[1,3,2,3], needs the shape of f32[1,2,2,3]");
    tutti_graph *g = tutti__test_graph();
    CHECK(!tutti_sym_ok(tutti_nn_max_pool1d(WAVE(g, 0, 4, 4))));
    CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "max_pool1d: x is f64[4,4]");
    tutti_graph_destroy(g);
}
