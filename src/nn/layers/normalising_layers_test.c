/* normalising_layers_test.c: layers of normalisation and noise, in training and out of it. */
#include "nn/layers/layers_test.h"

TUTTI_TEST(layers_normalise_as_keras_does)
{
    expect(LAYERS(tutti_batch_norm()), floats(DIMS(2, 2, 3)), DIMS(2, 2, 3),
           (double[]){-1.13836, 0.2044247, -1.317336, -1.313705, 0.3569094, -1.76427, -0.4808198,
                      0.5093941, -2.211205, -0.6561639, 0.6618788, -0.08826637});
    expect(LAYERS(tutti_batch_norm(.no_center = true, .no_scale = true, .epsilon = 0.1)),
           floats(DIMS(2, 3)), DIMS(2, 3),
           (double[]){-0.9647638, 1.05247, -1.229837, -1.315587, 0.7016464, -1.677051});
    expect(LAYERS(tutti_layer_norm()), floats(DIMS(2, 2, 3)), DIMS(2, 2, 3),
           (double[]){-1.245851, 0.1713865, -0.4298319, -1.245851, 0.1713865, -0.4298319,
                      -0.08819377, 0.7, -1.423612, -0.585084, 1.228613, 0.8917017});
    expect(LAYERS(tutti_layer_norm(.no_center = true, .epsilon = 0.1)), floats(DIMS(2, 3)),
           DIMS(2, 3),
           (double[]){-0.4798225, -0.4646702, -0.2020305, -0.4798224, -0.4646702, -0.2020305});
    expect(LAYERS(tutti_group_norm(2)), floats(DIMS(2, 2, 1, 4)), DIMS(2, 2, 1, 4),
           (double[]){-1.226065, 0.1781433, -0.2742474, -1.24107, -0.3843608, 1.053516, 1.210701,
                      -1.092575, -1.226065, 0.1781433, -1.25213, -0.9695359, -0.3843609, 1.053516,
                      0.4312782, -1.188379});
    expect(LAYERS(tutti_group_norm(-1)), floats(DIMS(1, 2, 2, 2)), DIMS(1, 2, 2, 2),
           (double[]){-1.36975, 0.1139643, -0.9232499, 1.195876, -0.4767501, 0.8953452, -0.03025037,
                      0.5948141});
    expect(LAYERS(tutti_rms_norm()), floats(DIMS(2, 3)), DIMS(2, 3),
           (double[]){-0.5170357, -0.5515048, -0.1723452, -0.7293242, -0.2333837, -0.7293242});
}

TUTTI_TEST(normalising_layers_learn)
{
    learns(LAYERS(tutti_batch_norm(), tutti_dense(3), tutti_layer_norm(), tutti_dense(2)),
           floats(DIMS(6, 4)), 0.3);
    learns(LAYERS(tutti_group_norm(2), tutti_rms_norm(), tutti_global_average_pool2d(),
                  tutti_dense(2)),
           floats(DIMS(3, 2, 2, 4)), 0.3);
}

TUTTI_TEST(normalising_layers_say_what_is_wrong)
{
    refuses(tutti_group_norm(3), floats(DIMS(2, 4)), "4 channels cannot be cut into 3 groups");
    refuses(tutti_batch_norm(.momentum = 2), floats(DIMS(2, 4)), "momentum");
    refuses(tutti_layer_norm(), ids(DIMS(1, 2), (int64_t[]){1, 2}), "floats");
    refuses(tutti_dropout(1), floats(DIMS(2, 4)), "below 1");
    refuses(tutti_gaussian_noise(-1), floats(DIMS(2, 4)), "standard deviation");
}

/* One step of training by hand: the batch's moments and the moving averages. */
TUTTI_TEST(batch_norm_layer_trains_on_the_batch_and_moves_its_averages)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *model = tutti_sequential(job, tutti_batch_norm(.momentum = 0.9));
    tutti_tensor *x = floats(DIMS(4, 3)), *y, *value;
    CHECK_OK(tutti_predict_on_batch(model, 1, &x, 1, &y));
    tutti_tensor_release(y);
    number_weights(model);
    CHECK_OK(tutti_compile(model, .optimizer = tutti_sgd(1e-30),
                           .loss = tutti_custom_loss(squares, NULL, "squares")));
    tutti_logs logs;
    tutti_tensor *target;
    const double trained[] = {-1.053993,   0.1646803, -0.1647459, -1.311442,  0.5215601, -0.728812,
                              -0.08855838, 0.8784399, -1.292878,  -0.3460075, 1.23532,   1.386436};
    CHECK_OK(tutti_tensor_create(TUTTI_F32, DIMS(4, 3), &target));
    for (int i = 0; i < 12; i++)
        tutti_tensor_set(target, i, trained[i]);
    CHECK_OK(tutti_train_on_batch(model, 2, (tutti_tensor *[]){x, target}, &logs));
    CHECK_NEAR(tutti_logs_get(&logs, "loss"), 0, 1e-9);
    CHECK_OK(tutti_get_weight(model, "batch_norm/moving_mean", &value));
    check_tensor(value, DIMS(3), (double[]){0.355, -0.43, 0.7975});
    tutti_tensor_release(value);
    CHECK_OK(tutti_get_weight(model, "batch_norm/moving_variance", &value));
    check_tensor(value, DIMS(3), (double[]){1.23025, 1.01, 0.7701875});
    tutti_tensor_release(value);
    tutti_tensor_release(target);
    tutti_tensor_release(x);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(frozen_batch_norm_layer_keeps_its_averages)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *model =
        tutti_sequential(job, tutti_batch_norm(.frozen = true, .name = "ice"), tutti_dense(2));
    tutti_tensor *x = floats(DIMS(4, 3)), *y, *before, *after;
    CHECK_OK(tutti_predict_on_batch(model, 1, &x, 1, &y));
    CHECK_OK(tutti_compile(model, .loss = tutti_custom_loss(squares, NULL, "squares")));
    CHECK_OK(tutti_get_weight(model, "ice/moving_mean", &before));
    tutti_logs logs;
    CHECK_OK(tutti_train_on_batch(model, 2, (tutti_tensor *[]){x, y}, &logs));
    CHECK_OK(tutti_get_weight(model, "ice/moving_mean", &after));
    CHECK(tutti_tensor_same(before, after));
    CHECK_NEAR(tutti_logs_get(&logs, "loss"), 0, 1e-9); /* the same form as in prediction */
    tutti_weight_info info;
    CHECK_OK(tutti_weight_at(model, 0, &info));
    CHECK_STR(info.name, "ice/gamma");
    CHECK(!info.trainable);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    tutti_tensor_release(before);
    tutti_tensor_release(after);
    CHECK_INT(tutti_close(job), 0);
}

/* Noise layers change nothing but in training. */
static void check_noise(tutti_layer *layer, int rank, const int64_t *dims)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *model = tutti_sequential(job, layer);
    tutti_tensor *x = floats(rank, dims), *y;
    CHECK_OK(tutti_predict_on_batch(model, 1, &x, 1, &y));
    CHECK(tutti_tensor_same(x, y));
    tutti_tensor_release(y);
    tutti_eager *eager = tutti_model_eager(model);
    TUTTI_STEP(eager) {
        tutti_sym given = tutti_eager_feed(eager, x);
        CHECK_OK(tutti_value(tutti_apply(model, given, .training = true), &y));
    }
    CHECK(!tutti_tensor_same(x, y));
    tutti_tensor_release(y);
    tutti_tensor_release(x);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(noise_layers_act_in_training_only)
{
    check_noise(tutti_dropout(0.5), DIMS(4, 8));
    check_noise(tutti_spatial_dropout1d(0.5), DIMS(4, 3, 8));
    check_noise(tutti_spatial_dropout2d(0.5), DIMS(4, 3, 3, 8));
    check_noise(tutti_gaussian_noise(0.1), DIMS(4, 8));
}
