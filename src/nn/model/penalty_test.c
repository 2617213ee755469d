/* penalty_test.c: regularizers and constraints of shared layers, and in loops written by hand. */
#include "tutti/tutti.h"

#include <math.h>

#include "base/params.h"
#include "base/test.h"

/* kernel [2,2] of ones, applied twice: sum of squares 4. */
static tutti_model *shared(tutti_job *job, const char *constraint)
{
    tutti_model *m = tutti_functional(job);
    tutti_sym x = tutti_input(m, "x", TUTTI_F32, 2);
    tutti_layer *layer =
        tutti_dense(2, .name = "twice", .kernel_initializer = "ones", .no_bias = true,
                    .kernel_regularizer = "l2(0.5)", .kernel_constraint = constraint);
    tutti_output(m, "y", tutti_call(layer, tutti_call(layer, x)));
    return m;
}

static tutti_tensor *filled(int64_t rows, double value)
{
    tutti_tensor *made;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){rows, 2}, &made));
    for (int64_t i = 0; i < 2 * rows; i++)
        tutti_tensor_set(made, i, value + 0.1 * (double)i);
    return made;
}

TUTTI_TEST(a_shared_layer_is_penalized_once)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = shared(job, NULL);
    tutti_tensor *both[] = {filled(1, 0), filled(1, 0)};
    tutti_logs logs;
    tutti_tensor_set(both[0], 1, 0);
    tutti_tensor_set(both[1], 1, 0);
    tutti_compile(m, .optimizer = tutti_sgd(0.1), .loss = tutti_mse());
    CHECK_OK(tutti_test_on_batch(m, 2, both, &logs)); /* 0 to 0: nothing but the penalty */
    CHECK_NEAR(tutti_logs_get(&logs, "loss"), 0.5 * 4, 1e-6);
    tutti_tensor_release(both[0]);
    tutti_tensor_release(both[1]);
    CHECK_INT(tutti_close(job), 0);
}

static double kernel_at(tutti_model *m, int64_t index)
{
    tutti_tensor *value;
    CHECK_OK(tutti_get_weight(m, "twice/kernel", &value));
    double number = tutti_tensor_get(value, index);
    tutti_tensor_release(value);
    return number;
}

static void step_by_hand(tutti_model *m, tutti_tensor *x_, tutti_tensor *y_, bool in_parts)
{
    tutti_eager *e = tutti_model_eager(m);
    tutti_loss mse = tutti_mse();
    TUTTI_STEP(e) {
        tutti_sym x = tutti_eager_feed(e, x_), y = tutti_eager_feed(e, y_), loss;
        TUTTI_TAPE(tape, e) {
            loss = tutti_compute_loss(&mse, y, tutti_apply(m, x, .training = true));
            loss = tutti_add(loss, tutti_model_losses(m, loss));
        }
        if (in_parts) {
            tutti_sym kernel;
            tutti_grad grad;
            CHECK_INT(tutti_trainable_variables(tutti_eager_graph(e), 1, &kernel), 1);
            tutti_tape_gradients(&tape, loss, 1, &kernel, &grad);
            tutti_apply_constraints(m, tutti_apply_gradients(tutti_sgd(0.1), 1, &kernel, &grad));
        } else {
            tutti_tape_minimize(&tape, tutti_sgd(0.1), loss, m);
        }
    }
    CHECK_OK(tutti_eager_check(e));
}

/* Three steps of fit's, of tutti_tape_minimize and of tutti_apply_gradients end at the same
 * weights. */
TUTTI_TEST(loops_by_hand_have_penalties_and_constraints)
{
    static const char *const constraints[] = {NULL, "max_norm(0.9)"};
    for (int c = 0; c < 2; c++) {
        tutti_job *job = tutti_open(NULL, NULL);
        tutti_model *models[] = {shared(job, constraints[c]), shared(job, constraints[c]),
                                 shared(job, constraints[c])};
        tutti_tensor *both[] = {filled(3, 0.2), filled(3, -0.3)};
        tutti_logs logs;
        tutti_compile(models[0], .optimizer = tutti_sgd(0.1), .loss = tutti_mse());
        for (int i = 0; i < 3; i++) {
            CHECK_OK(tutti_train_on_batch(models[0], 2, both, &logs));
            step_by_hand(models[1], both[0], both[1], false);
            step_by_hand(models[2], both[0], both[1], true);
        }
        for (int k = 0; k < 4; k++) {
            CHECK_NEAR(kernel_at(models[1], k), kernel_at(models[0], k), 1e-6);
            CHECK_NEAR(kernel_at(models[2], k), kernel_at(models[0], k), 1e-6);
        }
        if (constraints[c])
            CHECK(hypot(kernel_at(models[1], 0), kernel_at(models[1], 2)) < 0.9 + 1e-4);
        tutti_tensor_release(both[0]);
        tutti_tensor_release(both[1]);
        CHECK_INT(tutti_close(job), 0);
    }
}

TUTTI_TEST(penalties_need_a_model_that_was_applied)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = shared(job, NULL);
    tutti_tensor *x = filled(1, 0);
    CHECK_OK((tutti_build)(m, 0, NULL));
    step_by_hand(m, x, x, false);
    tutti_eager *e = tutti_model_eager(m);
    TUTTI_STEP(e)
        tutti_model_losses(m, tutti_eager_feed(e, x));
    CHECK_STATUS(tutti_eager_check(e), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "call tutti_apply first");
    tutti_tensor_release(x);
    tutti_close(job);
}

/* Kernels of 15 numbers each, of which the second is penalized: what only the first replica adds
 * must not change the order in which replicas exchange their gradients. */
static void train_penalized(tutti_strategy *strategy, int64_t batch, double *ret_weights)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *x, *y;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){20, 3}, &x));
    CHECK_OK(tutti_tensor_create(TUTTI_I64, 1, (int64_t[]){20}, &y));
    for (int i = 0; i < 60; i++)
        tutti_tensor_set(x, i, sin(i * i % 17));
    for (int i = 0; i < 20; i++)
        tutti_tensor_set_int(y, i, i * 7 % 3);
    TUTTI_WITH_STRATEGY(strategy)
    {
        tutti_model *m = tutti_sequential(
            job, tutti_dense(5, .name = "first", .activation = TUTTI_TANH),
            tutti_dense(3, .name = "second", .kernel_regularizer = "l1_l2(0.05,0.1)",
                        .bias_regularizer = "l2(0.1)"));
        tutti_compile(m, .optimizer = tutti_sgd(0.5),
                      .loss = tutti_sparse_cross_entropy(.from_logits = true));
        tutti_fit(m, tutti_batch(tutti_from_tensor_slices(job, x, y), batch), .epochs = 3,
                  .quiet = true);
        static const char *const names[] = {"first/kernel", "second/kernel"};
        for (int k = 0; k < 2; k++) {
            tutti_tensor *value;
            CHECK_OK(tutti_get_weight(m, names[k], &value));
            for (int i = 0; i < 15; i++)
                ret_weights[15 * k + i] = tutti_tensor_get(value, i);
            tutti_tensor_release(value);
        }
    }
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    CHECK_INT(tutti_close(job), 0);
    CHECK_OK(tutti_strategy_close(strategy));
}

TUTTI_TEST(penalties_under_strategies_equal_one_device)
{
    static const char *const devices[] = {"cpu:0,cpu:1", "cpu:0,cpu:1,cpu:2,cpu:3", "far:0,far:1"};
    CHECK_OK(tutti__param_set("CPU_DEVICES", "4"));
    for (int64_t batch = 9; batch <= 20; batch += 11) { /* 9, 9, 2, where replicas are empty */
        double one[30], many[30];
        train_penalized(tutti_strategy_one_device(.devices = "cpu:0"), batch, one);
        for (int d = 0; d < 6; d++) {
            train_penalized(d < 3 ? tutti_strategy_mirrored(.devices = devices[d])
                                  : tutti_strategy_central_storage(.devices = devices[d - 3]),
                            batch, many);
            for (int i = 0; i < 30; i++)
                CHECK_NEAR(many[i], one[i], 1e-5);
        }
    }
}
