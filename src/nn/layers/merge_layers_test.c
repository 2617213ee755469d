/* merge_layers_test.c: several inputs to one, and functions as layers. */
#include "nn/layers/layers_test.h"

TUTTI_TEST(layers_merge_as_keras_does)
{
    expect_of(tutti_add_layer(),
              TENSORS(floats(DIMS(2, 3)), floats(DIMS(2, 3)), floats(DIMS(2, 3))), DIMS(2, 3),
              (double[]){-1.8, 2.4, -0.3, -3, 1.2, -1.5});
    expect_of(tutti_subtract_layer(), TENSORS(floats(DIMS(2, 3)), floats(DIMS(2, 3))), DIMS(2, 3),
              (double[]){0, 0, 0, 0, 0, 0});
    expect_of(tutti_multiply_layer(),
              TENSORS(floats(DIMS(2, 3)), floats(DIMS(2, 3)), floats(DIMS(2, 3))), DIMS(2, 3),
              (double[]){-0.216, 0.512, -0.001, -1, 0.064, -0.125});
    expect_of(tutti_average_layer(),
              TENSORS(floats(DIMS(2, 3)), floats(DIMS(2, 3)), floats(DIMS(2, 3))), DIMS(2, 3),
              (double[]){-0.6, 0.8, -0.1, -1, 0.4, -0.5});
    expect_of(tutti_maximum_layer(), TENSORS(floats(DIMS(2, 3)), floats(DIMS(2, 1))), DIMS(2, 3),
              (double[]){-0.6, 0.8, -0.1, 0.8, 0.8, 0.8});
    expect_of(tutti_minimum_layer(), TENSORS(floats(DIMS(2, 3)), floats(DIMS(2, 1))), DIMS(2, 3),
              (double[]){-0.6, -0.6, -0.6, -1, 0.4, -0.5});
    expect_of(tutti_concatenate_layer(), TENSORS(floats(DIMS(2, 1)), floats(DIMS(2, 2))),
              DIMS(2, 3), (double[]){-0.6, -0.6, 0.8, 0.8, -0.1, -1});
    expect_of(tutti_concatenate_layer(.axis = 1),
              TENSORS(floats(DIMS(1, 1, 2)), floats(DIMS(1, 2, 2))), DIMS(1, 3, 2),
              (double[]){-0.6, 0.8, -0.6, 0.8, -0.1, -1});
    expect_of(tutti_dot_layer(), TENSORS(floats(DIMS(2, 3)), floats(DIMS(2, 3))), DIMS(2, 1),
              (double[]){1.01, 1.41});
    expect_of(tutti_dot_layer(.axes = {1, 2}),
              TENSORS(floats(DIMS(2, 3, 2)), floats(DIMS(2, 4, 3))), DIMS(2, 2, 4),
              (double[]){0.24, 0.36, -0.9, 0.14, -1.23, -0.95, 1.17, 0.3, 0.57, -1.34, -1.18, -1.02,
                         0.2, 0.75, 0.15, -0.45});
    expect_of(tutti_dot_layer(.normalize = true), TENSORS(floats(DIMS(2, 3)), floats(DIMS(2, 3))),
              DIMS(2, 1), (double[]){0.9999999, 1});
}

TUTTI_TEST(merging_functions_do_what_layers_do)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *inputs[2] = {floats(DIMS(2, 2)), floats(DIMS(2, 2))}, *y[5];
    tutti_sym s[2];
    tutti_model *model = model_like(job, 2, inputs, s);
    tutti_output(model, "concatenate", tutti_call(tutti_concatenate_layer(), s[0], s[1], s[0]));
    tutti_output(model, "average", tutti_call(tutti_average_layer(), s[0], s[1]));
    tutti_output(model, "multiply", tutti_call(tutti_multiply_layer(), s[0], s[1]));
    tutti_output(model, "subtract", tutti_call(tutti_subtract_layer(), s[0], s[1]));
    tutti_output(model, "dot", tutti_call(tutti_dot_layer(), s[0], s[1]));
    CHECK_OK(tutti_predict_on_batch(model, 2, inputs, 5, y));
    for (int i = 0; i < 4; i++) {
        double x = rule(0, i);
        for (int k = 0; k < 3; k++)
            CHECK_NEAR(tutti_tensor_get(y[0], i / 2 * 6 + 2 * k + i % 2), x, 1e-6);
        CHECK_NEAR(tutti_tensor_get(y[1], i), x, 1e-6);
        CHECK_NEAR(tutti_tensor_get(y[2], i), x * x, 1e-6);
        CHECK_NEAR(tutti_tensor_get(y[3], i), 0, 1e-6);
    }
    CHECK_NEAR(tutti_tensor_get(y[4], 0), rule(0, 0) * rule(0, 0) + rule(0, 1) * rule(0, 1), 1e-5);
    for (int i = 0; i < 5; i++)
        tutti_tensor_release(y[i]);
    tutti_tensor_release(inputs[0]);
    tutti_tensor_release(inputs[1]);
    CHECK_INT(tutti_close(job), 0);
}

/* In a graph without a model they are plain nodes. */
TUTTI_TEST(merging_functions_need_no_model)
{
    tutti_graph *graph;
    CHECK_OK(tutti_graph_create(&graph));
    tutti_sym a = tutti_placeholder(graph, TUTTI_F32, 2, 3);
    tutti_type type = tutti_sym_type(tutti_call(tutti_concatenate_layer(), a, a));
    CHECK_INT(type.dims[1], 6);
    CHECK_OK(tutti_graph_check(graph));
    tutti_graph_destroy(graph);
}

/* Masks of two sequences joined in time, and side by side. */
TUTTI_TEST(merging_layers_join_masks)
{
    for (int axis = 1; axis < 3; axis++) {
        tutti_job *job = tutti_open(NULL, NULL);
        tutti_tensor *x[2] = {ids(DIMS(1, 2), (int64_t[]){1, 0}),
                              ids(DIMS(1, 2), (int64_t[]){2, 2})};
        tutti_tensor *y;
        tutti_sym s[2];
        tutti_model *model = model_like(job, 2, x, s);
        tutti_layer *words = tutti_embedding(3, 2, .mask_zero = true);
        tutti_sym a = tutti_call(words, s[0]), b = tutti_call(words, s[1]);
        tutti_sym both = tutti_call(tutti_concatenate_layer(.axis = axis), a, b);
        tutti_output(model, "mean", tutti_call(tutti_global_average_pool1d(), both));
        build_with(model, 2, x); /* rows of the table: rule(1, 2 id), rule(1, 2 id + 1) */
        CHECK_OK(tutti_predict_on_batch(model, 2, x, 1, &y));
        if (axis == 1)
            check_tensor(
                y, DIMS(1, 2),
                (double[]){(rule(1, 2) + 2 * rule(1, 4)) / 3, (rule(1, 3) + 2 * rule(1, 5)) / 3});
        else
            check_tensor(y, DIMS(1, 4), (double[]){rule(1, 2), rule(1, 3), rule(1, 4), rule(1, 5)});
        tutti_tensor_release(y);
        tutti_tensor_release(x[0]);
        tutti_tensor_release(x[1]);
        CHECK_INT(tutti_close(job), 0);
    }
}

static tutti_sym scaled(tutti_sym x, void *context)
{
    return tutti_mul(x, *(double *)context);
}

TUTTI_TEST(lambda_layer_calls_the_function)
{
    double factor = 3, expected[4];
    for (int i = 0; i < 4; i++)
        expected[i] = 3 * rule(0, i);
    expect(LAYERS(tutti_lambda(scaled, &factor)), floats(DIMS(2, 2)), DIMS(2, 2), expected);
    refuses(tutti_lambda(NULL, NULL), floats(DIMS(2, 2)), "needs a function");
}
