/* trainable_layers_test.c: layers that are frozen and thawed, and weights before there is data. */
#include "nn/layers/layers_test.h"

static void train_once(tutti_model *model)
{
    tutti_tensor *x = floats(DIMS(4, 3)), *y;
    tutti_logs logs;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, DIMS(4, 2), &y));
    CHECK_OK(tutti_compile(model, .loss = tutti_custom_loss(squares, NULL, "squares")));
    CHECK_OK(tutti_train_on_batch(model, 2, (tutti_tensor *[]){x, y}, &logs));
    tutti_tensor_release(x);
    tutti_tensor_release(y);
}

static bool moves(tutti_model *model, const char *weight)
{
    tutti_tensor *before, *after;
    CHECK_OK(tutti_get_weight(model, weight, &before));
    train_once(model);
    CHECK_OK(tutti_get_weight(model, weight, &after));
    bool same = tutti_tensor_same(before, after);
    tutti_tensor_release(before);
    tutti_tensor_release(after);
    return !same;
}

TUTTI_TEST(layers_are_frozen_and_thawed_after_they_were_built)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *model =
        tutti_sequential(job, tutti_dense(3, .name = "base"), tutti_dense(2, .name = "head"));
    CHECK_OK(tutti_build(model, TUTTI_F32, 3));
    tutti_set_trainable(tutti_find_layer(model, "base"), false);
    CHECK(!moves(model, "base/kernel"));
    CHECK(moves(model, "head/kernel"));
    tutti_set_trainable(tutti_find_layer(model, "base"), true);
    CHECK(moves(model, "base/kernel"));
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(sequential_model_with_an_input_shape_has_weights_at_once)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *model = tutti_sequential(job, tutti_input_shape(3), tutti_dense(2));
    CHECK_INT(tutti_weight_count(model), 2);
    train_once(model);
    CHECK_INT(tutti_weight_count(model), 2);
    CHECK_INT(tutti_close(job), 0);
}
