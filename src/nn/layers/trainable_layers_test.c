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

/* Whether a step of training changes "base/kernel" and "head/kernel". */
static void check_moves(tutti_model *model, bool base, bool head)
{
    const char *names[] = {"base/kernel", "head/kernel"};
    const bool moves[] = {base, head};
    tutti_tensor *before[2], *after;
    for (int i = 0; i < 2; i++)
        CHECK_OK(tutti_get_weight(model, names[i], &before[i]));
    train_once(model);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(tutti_get_weight(model, names[i], &after));
        CHECK_INT(!tutti_tensor_same(before[i], after), moves[i]);
        tutti_tensor_release(before[i]);
        tutti_tensor_release(after);
    }
}

TUTTI_TEST(layers_are_frozen_and_thawed_after_they_were_built)
{
    for (int frozen = 0; frozen < 2; frozen++) {
        tutti_job *job = tutti_open(NULL, NULL);
        tutti_model *model = tutti_sequential(
            job, tutti_dense(3, .name = "base", .frozen = !frozen), tutti_dense(2, .name = "head"));
        CHECK_OK(tutti_build(model, TUTTI_F32, 3));
        tutti_set_trainable(tutti_find_layer(model, "base"), !frozen);
        check_moves(model, !frozen, true);
        CHECK_INT(tutti_close(job), 0);
    }
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
