/* model_test.c: models of the three kinds, trained, evaluated and asked, through the public API. */
#include "tutti/tutti.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"

static tutti_job *open_job(void)
{
    return tutti_open(NULL, NULL);
}

static void close_job(tutti_job *job)
{
    CHECK_OK(tutti_job_check(job));
    CHECK_INT(tutti_close(job), 0);
}

/* y = class of the larger of two sums; learnable at once. */
static void make_data(int64_t rows, int64_t features, tutti_tensor **ret_x, tutti_tensor **ret_y)
{
    int64_t dims[] = {rows, features};
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, dims, ret_x));
    CHECK_OK(tutti_tensor_create(TUTTI_I64, 1, dims, ret_y));
    uint32_t state = 12345;
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int64_t k = 0; k < features; k++) {
            state = state * 1664525u + 1013904223u;
            double value = (double)(state >> 8) / (1 << 24) - 0.5;
            sum += k % 2 ? value : -value;
            tutti_tensor_set(*ret_x, i * features + k, value);
        }
        tutti_tensor_set_int(*ret_y, i, sum > 0);
    }
}

static tutti_model *small_model(tutti_job *job)
{
    return tutti_sequential(job, tutti_dense(16, .activation = TUTTI_RELU), tutti_dense(2));
}

static void compile_small(tutti_model *m)
{
    tutti_compile(m, .optimizer = tutti_adam(.learning_rate = 0.01),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true), .metrics = "accuracy");
}

TUTTI_TEST(a_sequential_model_learns_and_remembers)
{
    tutti_job *job = open_job();
    tutti_tensor *x, *y;
    make_data(512, 8, &x, &y);
    tutti_dataset *data = tutti_batch(tutti_shuffle(tutti_from_tensor_slices(job, x, y), 0), 32);
    tutti_model *m = small_model(job);
    compile_small(m);
    const tutti_history *h = tutti_fit(m, data, .epochs = 8, .validation = data, .quiet = true);
    CHECK_OK(tutti_job_check(job));
    CHECK_INT(tutti_history_epochs(h), 8);
    CHECK(tutti_history_get(h, "loss", -1) < 0.5 * tutti_history_get(h, "loss", 0));
    CHECK(tutti_history_get(h, "val_accuracy", -1) > 0.9);
    CHECK_NEAR(tutti_history_get(h, "lr", 0), 0.01, 1e-9);
    CHECK(isnan(tutti_history_get(h, "nothing", 0)));
    CHECK_INT(tutti_model_steps(m), 8 * 16);

    tutti_logs logs;
    CHECK_OK(tutti_evaluate(m, data, &logs));
    CHECK_NEAR(tutti_logs_get(&logs, "accuracy"), tutti_history_get(h, "val_accuracy", -1), 1e-9);

    tutti_tensor *answers;
    CHECK_OK(tutti_predict_on_batch(m, 1, &x, 1, &answers));
    int right = 0;
    for (int64_t i = 0; i < 512; i++)
        right += (tutti_tensor_get(answers, 2 * i + 1) > tutti_tensor_get(answers, 2 * i)) ==
                 tutti_tensor_get_int(y, i);
    CHECK_NEAR(right / 512.0, tutti_logs_get(&logs, "accuracy"), 1e-6);
    tutti_tensor_release(answers);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    close_job(job);
}

TUTTI_TEST(weights_have_names_shapes_and_values)
{
    tutti_job *job = open_job();
    tutti_model *m = small_model(job);
    CHECK_OK(tutti_build(m, TUTTI_F32, 8));
    compile_small(m);
    CHECK_INT(tutti_weight_count(m), 4);
    tutti_weight_info info;
    CHECK_OK(tutti_weight_at(m, 0, &info));
    CHECK_STR(info.name, "dense/kernel");
    CHECK(info.trainable && info.type.rank == 2 && info.type.dims[0] == 8);
    CHECK_OK(tutti_weight_at(m, 3, &info));
    CHECK_STR(info.name, "dense_1/bias");
    CHECK_STATUS(tutti_weight_at(m, 4, &info), TUTTI_OUT_OF_RANGE);
    tutti_tensor *value, *again;
    CHECK_OK(tutti_get_weight(m, "dense/kernel", &value));
    for (int64_t i = 0; i < 8 * 16; i++)
        CHECK(fabs(tutti_tensor_get(value, i)) <= 0.5);
    tutti_tensor_set(value, 0, 42);
    CHECK_OK(tutti_set_weight(m, "dense/kernel", value));
    CHECK_OK(tutti_get_weight(m, "dense/kernel", &again));
    CHECK(tutti_tensor_same(value, again));
    CHECK_STATUS(tutti_get_weight(m, "dense/core", &value), TUTTI_NOT_FOUND);
    tutti_tensor_release(value);
    tutti_tensor_release(again);
    close_job(job);
}

/* Two inputs, a shared layer, two outputs with losses of their own. */
static tutti_model *forked(tutti_job *job)
{
    tutti_model *m = tutti_functional(job, .name = "forked");
    tutti_sym a = tutti_input(m, "a", TUTTI_F32, 4), b = tutti_input(m, "b", TUTTI_F32, 4);
    tutti_layer *shared = tutti_dense(6, .activation = TUTTI_TANH, .name = "shared");
    tutti_sym sum = tutti_add(tutti_call(shared, a), tutti_call(shared, b));
    tutti_output(m, "class", tutti_call(tutti_dense(3), sum));
    tutti_output(m, "double", tutti_mul(tutti_call(tutti_dense(1, .no_bias = true), sum), 2));
    return m;
}

static tutti_loss_fn absolute;
static tutti_sym absolute(const tutti_loss *loss, tutti_sym truth, tutti_sym guess)
{
    (void)loss;
    return tutti_abs(tutti_sub(tutti_squeeze(guess, -1), truth));
}

TUTTI_TEST(a_functional_model_has_named_inputs_and_outputs)
{
    tutti_job *job = open_job();
    tutti_model *m = forked(job);
    tutti_compile(m, .optimizer = tutti_sgd(0.1),
                  .losses = TUTTI_LOSSES(
                      {"class", tutti_sparse_cross_entropy(.from_logits = true), .weight = 0.5},
                      {"double", tutti_custom_loss(absolute, NULL, "absolute")}),
                  .metrics = "class:accuracy");
    tutti_tensor *t[4];
    make_data(40, 4, &t[0], &t[2]);
    int64_t dims[] = {40, 4};
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 2, dims, tutti_tensor_data(t[0]), &t[1]));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, dims, &t[3]));
    tutti_logs first, last;
    CHECK_OK(tutti_train_on_batch(m, 4, t, &first));
    for (int i = 0; i < 30; i++)
        CHECK_OK(tutti_train_on_batch(m, 4, t, &last));
    CHECK_INT(tutti_weight_count(m), 5);
    double total = tutti_logs_get(&first, "loss"), classes = tutti_logs_get(&first, "class_loss"),
           twice = tutti_logs_get(&first, "double_loss");
    CHECK_NEAR(total, 0.5 * classes + twice, 1e-5);
    CHECK(tutti_logs_get(&last, "loss") < total);
    CHECK(tutti_logs_get(&last, "class_accuracy") >= 0);

    /* The same by names of components, in any order. */
    tutti_dataset *data = tutti_name_components(
        tutti_batch(tutti_from_tensor_slices(job, t[3], t[1], t[2], t[0]), 20), "double", "b",
        "class", "a");
    tutti_logs logs, direct;
    CHECK_OK(tutti_evaluate(m, data, &logs));
    CHECK_OK(tutti_test_on_batch(m, 4, t, &direct));
    CHECK_NEAR(tutti_logs_get(&logs, "loss"), tutti_logs_get(&direct, "loss"), 1e-5);
    for (int i = 0; i < 4; i++)
        tutti_tensor_release(t[i]);
    close_job(job);
}

typedef struct twins {
    tutti_layer *one, *two;
    int calls;
} twins;

static void call_twins(tutti_model_call *call)
{
    twins *self = call->self;
    self->calls++;
    tutti_sym x = tutti_call(self->one, call->inputs[0]);
    call->outputs[0] = tutti_call(self->two, call->training ? tutti_relu(x) : x);
}

TUTTI_TEST(a_subclassed_model_is_a_function_over_layers)
{
    static const tutti_model_kind kind = {
        .struct_size = sizeof(tutti_model_kind), .name = "twins", .call = call_twins};
    tutti_job *job = open_job();
    twins self = {tutti_dense(8), tutti_dense(2), 0};
    tutti_model *m = tutti_subclass(job, &kind, &self);
    compile_small(m);
    tutti_tensor *t[2];
    make_data(64, 8, &t[0], &t[1]);
    tutti_logs first, last;
    CHECK_OK(tutti_train_on_batch(m, 2, t, &first));
    for (int i = 0; i < 60; i++)
        CHECK_OK(tutti_train_on_batch(m, 2, t, &last));
    CHECK(tutti_logs_get(&last, "loss") < 0.6 * tutti_logs_get(&first, "loss"));
    CHECK_INT(self.calls, 2); /* once for each form */
    CHECK_INT(tutti_weight_count(m), 4);
    tutti_tensor_release(t[0]);
    tutti_tensor_release(t[1]);
    close_job(job);
}

static void call_two_outputs(tutti_model_call *call)
{
    twins *self = call->self;
    call->outputs[0] = tutti_call(self->one, call->inputs[0]);
    call->outputs[1] = tutti_call(self->two, call->inputs[0]);
    call->output_count = 2;
}

enum { PAIR_NUMBERS = 8 };

/* Compiled before anybody knows how many outputs it has, or after: what is shown, how many numbers
 * that is, and a weight of the second output. */
static void train_two_outputs(bool built_first, double ret_numbers[PAIR_NUMBERS])
{
    static const char *const names[PAIR_NUMBERS - 2] = {
        "loss", "output_loss", "output_1_loss", "output_mae", "output_1_mae", "output_mse"};
    static const tutti_model_kind kind = {
        .struct_size = sizeof(tutti_model_kind), .name = "pair", .call = call_two_outputs};
    tutti_job *job = open_job();
    twins self = {tutti_dense(8), tutti_dense(1), 0};
    tutti_model *m = tutti_subclass(job, &kind, &self);
    if (built_first)
        CHECK_OK(tutti_build(m, TUTTI_F32, 8));
    tutti_compile(m, .optimizer = tutti_sgd(0.1), .loss = tutti_mse(), .metrics = "mae",
                  .metric_list = TUTTI_METRICS({NULL, tutti_metric_by_name("mse", NULL)}));
    tutti_tensor *x, *y, *t[3], *value;
    tutti_logs logs;
    make_data(64, 8, &x, &y);
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){64}, &t[2]));
    for (int i = 0; i < 64; i++)
        tutti_tensor_set(t[2], i, 0.1 * (i % 7));
    t[0] = t[1] = x;
    for (int i = 0; i < 3; i++)
        CHECK_OK(tutti_train_on_batch(m, 3, t, &logs));
    CHECK_INT(tutti_weight_count(m), 4);
    tutti_weight_info info;
    CHECK_OK(tutti_weight_at(m, 2, &info));
    CHECK_OK(tutti_get_weight(m, info.name, &value));
    for (int i = 0; i < PAIR_NUMBERS - 2; i++)
        ret_numbers[i] = tutti_logs_get(&logs, names[i]);
    ret_numbers[PAIR_NUMBERS - 2] = logs.count;
    ret_numbers[PAIR_NUMBERS - 1] = tutti_tensor_get(value, 0);
    tutti_tensor_release(value);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    tutti_tensor_release(t[2]);
    close_job(job);
}

TUTTI_TEST(outputs_that_a_build_shows_have_losses_and_metrics_as_if_known_before)
{
    double early[PAIR_NUMBERS], late[PAIR_NUMBERS];
    train_two_outputs(true, early);
    train_two_outputs(false, late);
    CHECK(early[0] > 0);
    for (int i = 0; i < PAIR_NUMBERS; i++)
        CHECK_NEAR(late[i], early[i], 1e-6);
}

TUTTI_TEST(a_model_can_be_a_layer_of_another)
{
    tutti_job *job = open_job();
    tutti_model *inner = tutti_functional(job, .name = "encoder");
    tutti_sym x = tutti_input(inner, "x", TUTTI_F32, 8);
    tutti_output(inner, "code", tutti_call(tutti_dense(4, .name = "d"), x));
    tutti_model *m = tutti_sequential(job, tutti_model_layer(inner), tutti_dense(2));
    CHECK_OK(tutti_build(m, TUTTI_F32, 8));
    tutti_weight_info info;
    CHECK_INT(tutti_weight_count(m), 4);
    CHECK_OK(tutti_weight_at(m, 0, &info));
    CHECK_STR(info.name, "encoder/d/kernel");
    compile_small(m);
    tutti_tensor *t[2];
    make_data(64, 8, &t[0], &t[1]);
    tutti_logs first, last;
    CHECK_OK(tutti_train_on_batch(m, 2, t, &first));
    for (int i = 0; i < 40; i++)
        CHECK_OK(tutti_train_on_batch(m, 2, t, &last));
    CHECK(tutti_logs_get(&last, "loss") < tutti_logs_get(&first, "loss"));
    tutti_tensor_release(t[0]);
    tutti_tensor_release(t[1]);
    close_job(job);
}

/* Before its type is looked at, which is none: a model would be built for it. */
TUTTI_TEST(models_and_losses_refuse_values_of_an_earlier_step)
{
    tutti_tensor *t[2];
    tutti_loss loss = tutti_mse();
    make_data(4, 8, &t[0], &t[1]);
    tutti_job *job = open_job();
    tutti_model *m = small_model(job);
    tutti_eager *e = tutti_model_eager(m);
    for (int way = 0; way < 3; way++) {
        tutti_sym old = tutti_eager_feed(e, t[0]);
        CHECK_OK(tutti_eager_step(e));
        tutti_sym now = tutti_eager_feed(e, t[0]);
        tutti_sym made = way == 0   ? tutti_apply(m, old)
                         : way == 1 ? tutti_compute_loss(&loss, old, now)
                                    : tutti_compute_loss(&loss, now, old);
        CHECK(!tutti_sym_ok(made));
        CHECK_STATUS(tutti_eager_step(e), TUTTI_INVALID);
        CHECK_CONTAINS(tutti_error_message(), way == 0   ? "tutti_apply: input 0 is a value of an"
                                              : way == 1 ? "loss mse: the target is a value of an"
                                                         : "loss mse: the output is a value of an");
    }
    tutti_tensor_release(t[0]);
    tutti_tensor_release(t[1]);
    close_job(job);
}

TUTTI_TEST(a_tape_trains_the_same_weights_as_fit)
{
    tutti_tensor *t[2];
    make_data(64, 8, &t[0], &t[1]);
    tutti_tensor *by_fit, *by_tape;
    for (int way = 0; way < 2; way++) {
        tutti_job *job = open_job();
        tutti_model *m = small_model(job);
        compile_small(m);
        CHECK_OK(tutti_build(m, TUTTI_F32, 8));
        tutti_eager *e = tutti_model_eager(m);
        for (int i = 0; i < 5; i++) {
            if (way == 0) {
                CHECK_OK(tutti_train_on_batch(m, 2, t, NULL));
                continue;
            }
            TUTTI_STEP(e) {
                tutti_sym x = tutti_eager_feed(e, t[0]), y = tutti_eager_feed(e, t[1]),
                          loss = TUTTI_NO_SYM;
                TUTTI_TAPE(tape, e)
                    loss = tutti_mean(
                        tutti_nn_sparse_cross_entropy(y, tutti_apply(m, x, .training = true)));
                tutti_tape_minimize(&tape, tutti_adam(.learning_rate = 0.01), loss, m);
            }
            CHECK_OK(tutti_eager_check(e));
        }
        CHECK_OK(tutti_get_weight(m, "dense/kernel", way == 0 ? &by_fit : &by_tape));
        close_job(job);
    }
    for (int64_t i = 0; i < tutti_tensor_count(by_fit); i++)
        CHECK_NEAR(tutti_tensor_get(by_fit, i), tutti_tensor_get(by_tape, i), 1e-6);
    tutti_tensor_release(by_fit);
    tutti_tensor_release(by_tape);
    tutti_tensor_release(t[0]);
    tutti_tensor_release(t[1]);
}

/* Loss after 20 steps, and the first kernel, under these settings of compile. */
static double train(int64_t batch, int accumulate, const char *precision, int steps,
                    tutti_tensor **ret_kernel)
{
    tutti_job *job = open_job();
    tutti_tensor *x, *y;
    make_data(96, 8, &x, &y);
    tutti_dataset *data = tutti_batch(tutti_from_tensor_slices(job, x, y), batch);
    tutti_model *m = tutti_functional(job, .precision = precision);
    tutti_sym h =
        tutti_call(tutti_dense(16, .activation = TUTTI_RELU), tutti_input(m, "x", TUTTI_F32, 8));
    tutti_output(m, "y", tutti_call(tutti_dense(2), h));
    tutti_compile(m, .optimizer = tutti_adam(.learning_rate = 0.01),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true),
                  .accumulate = accumulate);
    const tutti_history *history = tutti_fit(m, data, .epochs = steps, .quiet = true);
    double loss = tutti_history_get(history, "loss", -1);
    CHECK_OK(tutti_get_weight(m, "dense/kernel", ret_kernel));
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    close_job(job);
    return loss;
}

TUTTI_TEST(a_model_gathers_batches_into_one_step)
{
    tutti_tensor *whole, *parts;
    train(96, 1, "f32", 4, &whole);
    train(40, 3, "f32", 4, &parts); /* 40, 40, 16 */
    for (int64_t i = 0; i < tutti_tensor_count(whole); i++)
        CHECK_NEAR(tutti_tensor_get(parts, i), tutti_tensor_get(whole, i), 2e-5);
    tutti_tensor_release(whole);
    tutti_tensor_release(parts);
}

TUTTI_TEST(mixed_precision_trains_like_f32)
{
    tutti_tensor *kernel;
    double wide = train(32, 1, "f32", 20, &kernel);
    CHECK(tutti_tensor_dtype(kernel) == TUTTI_F32);
    tutti_tensor_release(kernel);
    double brain = train(32, 1, "bf16", 20, &kernel);
    CHECK(tutti_tensor_dtype(kernel) == TUTTI_F32);
    tutti_tensor_release(kernel);
    double half = train(32, 1, "f16", 20, &kernel);
    tutti_tensor_release(kernel);
    CHECK_NEAR(brain, wide, 0.05 * wide);
    CHECK_NEAR(half, wide, 0.05 * wide);
}

TUTTI_TEST(mistakes_are_told_with_layer_and_line)
{
    tutti_job *job = open_job();
    tutti_model *m = tutti_sequential(job, tutti_conv2d(4, 3));
    CHECK(tutti_build(m, TUTTI_F32, 8) != TUTTI_OK);
    CHECK_CONTAINS(tutti_error_message(), "conv2d");
    CHECK_CONTAINS(tutti_error_message(), "model_test.c");
    CHECK(tutti_fit(m, NULL, .epochs = 1) == NULL);
    CHECK(!tutti_job_ok(job));
    job = (tutti_close(job), open_job());
    m = small_model(job);
    CHECK_STATUS(tutti_get_weight(m, "dense/kernel", NULL), TUTTI_UNINITIALIZED);
    CHECK(tutti_compile(m, .loss = tutti_loss_by_name("nonsense", NULL)) != TUTTI_OK);
    job = (tutti_close(job), open_job());
    m = small_model(job);
    CHECK(tutti_compile(m, .loss = tutti_mse(), .metrics = "beauty") != TUTTI_OK);
    CHECK_CONTAINS(tutti_error_message(), "beauty");
    tutti_close(job);
}
