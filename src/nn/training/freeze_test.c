/* freeze_test.c: what is frozen does not move: in fit, in steps by hand, inside other models. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "tutti/tutti.h"

static tutti_tensor *numbers(int64_t rows, int64_t columns)
{
    tutti_tensor *t;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){rows, columns}, &t));
    for (int64_t i = 0; i < rows * columns; i++)
        tutti_tensor_set(t, i, sin(1.3 * (double)(i * i % 37)));
    return t;
}

static tutti_model *two_layers(tutti_job *job)
{
    tutti_model *m = tutti_sequential(job, tutti_dense(4, .name = "a"), tutti_batch_norm(),
                                      tutti_dense(2, .name = "b"));
    tutti_build(m, TUTTI_F32, 3);
    return m;
}

static void train(tutti_model *m)
{
    tutti_tensor *x = numbers(8, 3), *y = numbers(8, 2);
    CHECK_OK(tutti_train_on_batch(m, 2, (tutti_tensor *[]){x, y}, NULL));
    tutti_tensor_release(x);
    tutti_tensor_release(y);
}

/* The weights that a step moves, as "a/kernel a/bias". */
static const char *moved(tutti_model *m, void (*step)(tutti_model *), char text[512])
{
    tutti_weight_info info;
    tutti_tensor *before[16], *after;
    int count = tutti_weight_count(m);
    for (int i = 0; i < count; i++) {
        CHECK_OK(tutti_weight_at(m, i, &info));
        CHECK_OK(tutti_get_weight(m, info.name, &before[i]));
    }
    step(m);
    text[0] = 0;
    for (int i = 0; i < count; i++) {
        CHECK_OK(tutti_weight_at(m, i, &info));
        CHECK_OK(tutti_get_weight(m, info.name, &after));
        if (!tutti_tensor_same(before[i], after)) {
            strcat(text, text[0] ? " " : "");
            strcat(text, info.name);
        }
        tutti_tensor_release(before[i]);
        tutti_tensor_release(after);
    }
    return text;
}

static void compile(tutti_model *m)
{
    tutti_compile(m, .optimizer = tutti_sgd(0.1), .loss = tutti_mse());
}

TUTTI_TEST(weights_are_frozen_by_pattern)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = two_layers(job);
    char text[512];
    compile(m);
    CHECK_OK(tutti_freeze(m, "*/kernel, batch_norm"));
    CHECK_STR(moved(m, train, text), "a/bias b/bias");
    /* Also once the step is there. */
    CHECK_OK(tutti_freeze(m, "*"));
    CHECK_OK(tutti_unfreeze(m, "b"));
    CHECK_STR(moved(m, train, text), "b/kernel b/bias");
    CHECK_OK(tutti_unfreeze(m, "*"));
    /* Batch norm takes any bias before it away: a/bias has no gradient but what rounding leaves. */
    CHECK_CONTAINS(moved(m, train, text), "a/kernel ");
    CHECK_CONTAINS(text, "batch_norm/gamma batch_norm/beta batch_norm/moving_mean "
                         "batch_norm/moving_variance b/kernel b/bias");
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(averages_alone_are_frozen_too)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = two_layers(job);
    char text[512];
    compile(m);
    train(m);
    CHECK_OK(tutti_freeze(m, "*moving*, a, b"));
    CHECK_STR(moved(m, train, text), "batch_norm/gamma batch_norm/beta");
    CHECK_OK(tutti_freeze(m, "*gamma"));
    CHECK_OK(tutti_unfreeze(m, "*moving_mean"));
    CHECK_STR(moved(m, train, text),
              "batch_norm/beta batch_norm/moving_mean batch_norm/moving_variance");
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(weight_info_says_what_is_trained)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = two_layers(job);
    tutti_weight_info info;
    CHECK_OK(tutti_freeze(m, "a/*"));
    CHECK_OK(tutti_weight_at(m, 0, &info));
    CHECK_STR(info.name, "a/kernel");
    CHECK(!info.trainable);
    tutti_set_trainable(tutti_find_layer(m, "a"), true); /* the last call holds */
    CHECK_OK(tutti_weight_at(m, 0, &info));
    CHECK(info.trainable);
    tutti_set_trainable(tutti_find_layer(m, "a"), false);
    CHECK_OK(tutti_unfreeze(m, "a/kernel"));
    CHECK_OK(tutti_weight_at(m, 0, &info));
    CHECK(info.trainable);
    CHECK_OK(tutti_weight_at(m, 1, &info));
    CHECK(!info.trainable);
    /* Moving averages are never trained. */
    CHECK_OK(tutti_unfreeze(m, "*"));
    for (int i = 0; i < tutti_weight_count(m); i++) {
        CHECK_OK(tutti_weight_at(m, i, &info));
        CHECK_INT(info.trainable, !strstr(info.name, "moving"));
    }
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(unknown_patterns_say_what_there_is)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = two_layers(job);
    CHECK_STATUS(tutti_freeze(m, "a, b/kernal"), TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "'b/kernal'");
    CHECK_CONTAINS(tutti_error_message(), "did you mean 'b/kernel'");
    CHECK_CONTAINS(tutti_error_message(), "its layers are a, batch_norm, b");
    CHECK_CONTAINS(tutti_error_message(), "batch_norm/gamma");
    CHECK(tutti_close(job) != 0);
}

TUTTI_TEST(a_freeze_without_a_pattern_is_refused)
{
    tutti_job *job = tutti_open(NULL, NULL);
    CHECK_STATUS(tutti_freeze(two_layers(job), " ,"), TUTTI_INVALID);
    CHECK(tutti_close(job) != 0);
}

static void step_by_hand(tutti_model *m)
{
    tutti_tensor *x = numbers(8, 3), *y = numbers(8, 2);
    tutti_eager *e = tutti_model_eager(m);
    TUTTI_STEP(e) {
        tutti_sym in = tutti_eager_feed(e, x), truth = tutti_eager_feed(e, y), loss = TUTTI_NO_SYM;
        TUTTI_TAPE(tape, e)
            loss = tutti_mean(tutti_square(tutti_sub(truth, tutti_apply(m, in, .training = true))));
        tutti_tape_minimize(&tape, tutti_sgd(0.1), loss, m);
    }
    CHECK_OK(tutti_eager_check(e));
    tutti_tensor_release(x);
    tutti_tensor_release(y);
}

TUTTI_TEST(loops_by_hand_go_by_what_is_frozen)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = two_layers(job);
    char text[512];
    CHECK_OK(tutti_freeze(m, "*"));
    CHECK_OK(tutti_unfreeze(m, "b/bias"));
    CHECK_STR(moved(m, step_by_hand, text), "b/bias");
    CHECK_OK(tutti_unfreeze(m, "b"));
    CHECK_STR(moved(m, step_by_hand, text), "b/kernel b/bias");
    CHECK_INT(tutti_close(job), 0);
}

/* A functional model with a weight of its own that is no layer's. */
static tutti_model *by_hand(tutti_job *job)
{
    tutti_model *m = tutti_functional(job, .name = "body");
    tutti_sym x = tutti_input(m, "x", TUTTI_F32, 3);
    tutti_sym w = tutti_variable(tutti_sym_graph(x), tutti_ones(3), .name = "scale");
    tutti_output(m, "y", tutti_call(tutti_dense(3, .name = "d"), tutti_mul(x, w)));
    return m;
}

TUTTI_TEST(a_frozen_model_inside_another_stays)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_layer *body = tutti_model_layer(by_hand(job));
    tutti_model *m = tutti_sequential(job, body, tutti_dense(2, .name = "head"));
    char text[512];
    tutti_build(m, TUTTI_F32, 3);
    compile(m);
    tutti_set_trainable(body, false);
    CHECK_STR(moved(m, train, text), "head/kernel head/bias");
    CHECK_OK(tutti_unfreeze(m, "body/d"));
    CHECK_STR(moved(m, train, text), "body/d/kernel body/d/bias head/kernel head/bias");
    tutti_set_trainable(body, false);
    CHECK_STR(moved(m, train, text), "head/kernel head/bias");
    CHECK_STR(moved(m, step_by_hand, text), "head/kernel head/bias");
    tutti_set_trainable(body, true);
    CHECK_STR(moved(m, train, text), "body/scale body/d/kernel body/d/bias head/kernel head/bias");
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(what_is_frozen_inside_holds_unless_asked_outside)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *inner = by_hand(job);
    char text[512];
    CHECK_OK(tutti_freeze(inner, "*"));
    tutti_model *m =
        tutti_sequential(job, tutti_model_layer(inner), tutti_dense(2, .name = "head"));
    tutti_build(m, TUTTI_F32, 3);
    compile(m);
    CHECK_STR(moved(m, train, text), "head/kernel head/bias");
    CHECK_OK(tutti_unfreeze(inner, "scale"));
    CHECK_STR(moved(m, train, text), "body/scale head/kernel head/bias");
    CHECK_OK(tutti_freeze(m, "*"));
    CHECK_OK(tutti_unfreeze(m, "body/*/bias"));
    CHECK_STR(moved(m, train, text), "body/d/bias");
    CHECK_INT(tutti_close(job), 0);
}

/* A model that was trained brings its weights into the model that it is a layer of. */
TUTTI_TEST(a_model_inside_begins_with_its_values)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *inner = two_layers(job);
    compile(inner);
    train(inner);
    tutti_model *m = tutti_sequential(job, tutti_model_layer(inner), tutti_dense(2));
    tutti_build(m, TUTTI_F32, 3);
    tutti_tensor *own, *there;
    CHECK_OK(tutti_get_weight(inner, "a/kernel", &own));
    CHECK_OK(tutti_get_weight(m, "model/a/kernel", &there));
    CHECK(tutti_tensor_same(own, there));
    tutti_tensor_release(own);
    tutti_tensor_release(there);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(json_keeps_what_is_frozen)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = two_layers(job);
    tutti_weight_info info;
    char *text;
    tutti_set_trainable(tutti_find_layer(m, "b"), false);
    CHECK_OK(tutti_freeze(m, "a/bias"));
    CHECK_OK(tutti_unfreeze(m, "b/bias"));
    CHECK_OK(tutti_model_to_json(m, &text));
    tutti_model *again = tutti_model_from_json(job, text);
    free(text);
    for (int i = 0; i < tutti_weight_count(again); i++) {
        CHECK_OK(tutti_weight_at(again, i, &info));
        bool frozen = strcmp(info.name, "a/bias") == 0 || strcmp(info.name, "b/kernel") == 0;
        CHECK_INT(info.trainable, !frozen && !strstr(info.name, "moving"));
    }
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(a_model_that_is_frozen_whole_has_nothing_to_train)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = two_layers(job);
    tutti_tensor *x = numbers(8, 3), *y = numbers(8, 2);
    compile(m);
    CHECK_OK(tutti_freeze(m, "*"));
    CHECK_STATUS(tutti_train_on_batch(m, 2, (tutti_tensor *[]){x, y}, NULL), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "no weights to train");
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    CHECK(tutti_close(job) != 0);
}
