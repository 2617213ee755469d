/* tape_minimize_test.c: loops written by hand train what they should: schedules are driven, rates
 * can be set, and a step that would train nothing says why. */
#include <math.h>
#include <string.h>

#include "base/test.h"
#include "tutti/tutti.h"

static tutti_model *make_model(tutti_job *job)
{
    return tutti_sequential(job, tutti_dense(4, .activation = TUTTI_TANH, .name = "body"),
                            tutti_dense(1, .name = "head"));
}

static tutti_tensor *filled(int64_t columns, double phase)
{
    tutti_tensor *t;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){8, columns}, &t));
    for (int64_t i = 0; i < 8 * columns; i++)
        tutti_tensor_set(t, i, sin(phase + (double)i));
    return t;
}

/* One step on the model's tape; by gradients, or by tutti_tape_minimize. */
static tutti_status step(tutti_model *m, tutti_optimizer optimizer, bool in_parts)
{
    tutti_eager *e = tutti_model_eager(m);
    tutti_loss mse = tutti_mse();
    tutti_tensor *tx = filled(3, 0.1), *ty = filled(1, 2);
    TUTTI_STEP(e) {
        tutti_sym x = tutti_eager_feed(e, tx), y = tutti_eager_feed(e, ty), loss;
        TUTTI_TAPE(tape, e)
            loss = tutti_compute_loss(&mse, y, tutti_apply(m, x, .training = true));
        if (in_parts) {
            tutti_sym all[8];
            tutti_grad grads[8];
            int count = tutti_trainable_variables(tutti_eager_graph(e), 8, all);
            tutti_tape_gradients(&tape, loss, count, all, grads);
            tutti_apply_gradients(optimizer, count, all, grads);
        } else {
            tutti_tape_minimize(&tape, optimizer, loss, m);
        }
    }
    tutti_tensor_release(tx);
    tutti_tensor_release(ty);
    return tutti_eager_check(e);
}

static void read_kernel(tutti_model *m, float ret[12])
{
    tutti_tensor *value;
    CHECK_OK(tutti_get_weight(m, "body/kernel", &value));
    memcpy(ret, tutti_tensor_data(value), 12 * sizeof(float));
    tutti_tensor_release(value);
}

static double by_hand(int64_t at, void *context)
{
    (void)context;
    return at < 3 ? 0 : 0.01 * (double)at;
}

/* fit, tutti_tape_minimize and tutti_apply_gradients drive it alike, to the same bits; the first
 * step of the warm-up moves nothing. */
static void check_schedule(tutti_optimizer optimizer, bool starts_at_0)
{
    float begin[12], one[12], ends[3][12];
    tutti_tensor *both[] = {filled(3, 0.1), filled(1, 2)};
    for (int way = 0; way < 3; way++) {
        tutti_job *job = tutti_open(NULL, NULL);
        tutti_model *m = make_model(job);
        tutti_logs logs;
        tutti_build(m, TUTTI_F32, 3);
        read_kernel(m, begin);
        if (way == 0)
            tutti_compile(m, .optimizer = optimizer, .loss = tutti_mse());
        for (int i = 0; i < 6; i++) {
            CHECK_OK(way == 0 ? tutti_train_on_batch(m, 2, both, &logs)
                              : step(m, optimizer, way == 2));
            CHECK_NEAR(tutti_get_learning_rate(m), tutti_schedule_at(&optimizer.schedule, i), 1e-8);
            if (i == 0)
                read_kernel(m, one);
        }
        CHECK((memcmp(begin, one, sizeof one) == 0) == starts_at_0);
        read_kernel(m, ends[way]);
        CHECK(memcmp(begin, ends[way], sizeof one) != 0);
        CHECK_INT(tutti_close(job), 0);
    }
    for (int k = 0; k < 12; k++) {
        CHECK_NEAR(ends[1][k], ends[0][k], 1e-6);
        CHECK_NEAR(ends[2][k], ends[1][k], 0);
    }
    tutti_tensor_release(both[0]);
    tutti_tensor_release(both[1]);
}

TUTTI_TEST(schedules_are_driven_wherever_an_optimizer_is_applied)
{
    check_schedule(tutti_adam(.schedule = tutti_cosine_decay(.learning_rate = 0.1, .decay_steps = 9,
                                                             .warmup_steps = 3)),
                   true);
    check_schedule(
        tutti_sgd(0, .schedule = tutti_piecewise(.boundaries = {1, 3}, .values = {0.1, 0.2, 0.05})),
        false);
    check_schedule(tutti_sgd(0.5, .schedule = tutti_custom_schedule(by_hand, NULL)), true);
}

TUTTI_TEST(schedules_are_driven_in_sessions)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *value;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&s, g));
    tutti_sym w = tutti_variable(g, tutti_zeros(), .name = "w");
    tutti_optimizer sgd =
        tutti_sgd(0, .schedule = tutti_step_decay(.learning_rate = 1, .every = 2, .factor = 0.5));
    tutti_sym target = tutti_minimize(sgd, tutti_mul(w, 1)), rate = tutti_learning_rate(g, sgd);
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    double expected = 0, rates[] = {1, 1, 0.5, 0.5, 0.25};
    for (int i = 0; i < 5; i++) {
        CHECK_OK(tutti_run(s, .target = target));
        expected -= rates[i];
        CHECK_OK(tutti_session_get(s, w, &value));
        CHECK_NEAR(tutti_tensor_get(value, 0), expected, 1e-6);
        tutti_tensor_release(value);
        CHECK_OK(tutti_session_get(s, rate, &value));
        CHECK_NEAR(tutti_tensor_get(value, 0), rates[i], 0);
        tutti_tensor_release(value);
    }
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

/* Compiling anew begins the schedule anew, and a new rate counts. */
TUTTI_TEST(compiling_anew_begins_rate_and_schedule_anew)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = make_model(job);
    tutti_tensor *both[] = {filled(3, 0.1), filled(1, 2)};
    tutti_logs logs;
    float before[12], after[12];
    tutti_schedule falls = tutti_step_decay(.learning_rate = 0.1, .every = 1, .factor = 1e-9);
    for (int i = 0; i < 2; i++) {
        tutti_compile(m, .optimizer = tutti_sgd(0, .schedule = falls), .loss = tutti_mse());
        CHECK_OK(tutti_train_on_batch(m, 2, both, &logs));
        read_kernel(m, before);
        CHECK_OK(tutti_train_on_batch(m, 2, both, &logs));
        CHECK_OK(tutti_train_on_batch(m, 2, both, &logs));
        read_kernel(m, after);
        for (int k = 0; k < 12; k++)
            CHECK_NEAR(after[k], before[k], 1e-6);
        CHECK(tutti_get_learning_rate(m) < 1e-12);
    }
    tutti_compile(m, .optimizer = tutti_sgd(TUTTI_ZERO), .loss = tutti_mse());
    CHECK_OK(tutti_train_on_batch(m, 2, both, &logs));
    read_kernel(m, before);
    tutti_compile(m, .optimizer = tutti_sgd(0.5), .loss = tutti_mse());
    CHECK_OK(tutti_train_on_batch(m, 2, both, &logs));
    read_kernel(m, after);
    CHECK(memcmp(before, after, sizeof after) != 0);
    tutti_tensor_release(both[0]);
    tutti_tensor_release(both[1]);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(loops_have_a_rate_that_can_be_set)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = make_model(job);
    float before[12], after[12];
    tutti_build(m, TUTTI_F32, 3);
    CHECK(isnan(tutti_get_learning_rate(m)));
    CHECK_OK(step(m, tutti_sgd(0.25), false));
    CHECK_NEAR(tutti_get_learning_rate(m), 0.25, 0);
    tutti_set_learning_rate(m, 0);
    CHECK_NEAR(tutti_get_learning_rate(m), 0, 0);
    read_kernel(m, before);
    CHECK_OK(step(m, tutti_sgd(0.25), true));
    read_kernel(m, after);
    CHECK(memcmp(before, after, sizeof after) == 0);
    tutti_set_learning_rate(m, 0.5);
    CHECK_OK(step(m, tutti_sgd(0.25), false));
    read_kernel(m, after);
    CHECK(memcmp(before, after, sizeof after) != 0);
    CHECK_OK(tutti_job_check(job));
    CHECK_INT(tutti_close(job), 0);
}

static void check_refused(tutti_job *job, const char *text)
{
    CHECK_STATUS(tutti_job_check(job), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), text);
    CHECK_INT(tutti_close(job), 1);
}

TUTTI_TEST(rates_that_cannot_be_set_are_refused)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = make_model(job);
    tutti_set_learning_rate(m, 0.1);
    check_refused(job, "no optimizer trains model 'model' yet");
    job = tutti_open(NULL, NULL);
    m = make_model(job);
    tutti_build(m, TUTTI_F32, 3);
    CHECK_OK(step(m,
                  tutti_adam(.schedule = tutti_cosine_decay(.learning_rate = 1, .decay_steps = 9)),
                  false));
    tutti_set_learning_rate(m, 0.1);
    check_refused(job, "the rate of optimizer 'adam' follows its schedule");
    job = tutti_open(NULL, NULL);
    m = make_model(job);
    tutti_build(m, TUTTI_F32, 3);
    CHECK_OK(step(m, tutti_adam(), false));
    CHECK_OK(step(m, tutti_sgd(0.1), false));
    tutti_set_learning_rate(m, 0.1);
    check_refused(job, "several optimizers train model 'model': sgd, adam");
}

TUTTI_TEST(a_built_model_has_its_weights_on_the_tape)
{
    for (int first = 0; first < 2; first++) {
        tutti_job *job = tutti_open(NULL, NULL);
        tutti_model *m = make_model(job);
        tutti_eager *e = first ? tutti_model_eager(m) : NULL;
        tutti_build(m, TUTTI_F32, 3);
        e = tutti_model_eager(m);
        tutti_sym all[4];
        CHECK_INT(tutti_trainable_variables(tutti_eager_graph(e), 4, all), 4);
        tutti_set_trainable(tutti_find_layer(m, "body"), false);
        CHECK_INT(tutti_trainable_variables(tutti_eager_graph(e), 4, all), 2);
        tutti_set_trainable(tutti_find_layer(m, "body"), true);
        CHECK_INT(tutti_trainable_variables(tutti_eager_graph(e), 4, all), 4);
        CHECK_OK(step(m, tutti_sgd(0.1), true));
        CHECK_OK(tutti_job_check(job));
        CHECK_INT(tutti_close(job), 0);
    }
}

TUTTI_TEST(steps_that_train_nothing_say_why)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = make_model(job), *never = make_model(job);
    tutti_build(m, TUTTI_F32, 3);
    tutti_set_trainable(tutti_find_layer(m, "body"), false);
    tutti_set_trainable(tutti_find_layer(m, "head"), false);
    CHECK_STATUS(step(m, tutti_sgd(0.1), false), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(),
                   "model 'model' trains nothing: all of its weights are frozen");
    CHECK_STATUS(step(m, tutti_sgd(0.1), true), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "asked of 0 variables");
    tutti_eager *other;
    TUTTI_STEP(tutti_model_eager(m)) {
        TUTTI_TAPE(unused, tutti_model_eager(m)) {
        }
        tutti_grad none;
        CHECK(!tutti_sym_ok(tutti_apply_gradients(tutti_sgd(0.1), 0, &(tutti_sym){0}, &none)));
        (void)unused;
    }
    CHECK_STATUS(tutti_eager_check(tutti_model_eager(m)), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(),
                   "apply_gradients: a list of 0 variables has none to move");
    CHECK_OK(tutti_eager_open(&other));
    tutti_sym w = tutti_variable(tutti_eager_graph(other), tutti_ones(2), .name = "w");
    TUTTI_STEP(other) {
        tutti_sym loss;
        TUTTI_TAPE(tape, other)
            loss = tutti_sum(w);
        tutti_tape_minimize(&tape, tutti_sgd(0.1), loss, never);
    }
    CHECK_STATUS(tutti_eager_check(other), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "the loss is not of the model's own tape");
    tutti_eager_close(other);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(a_layer_that_was_not_found_is_named_where_it_is_used)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = make_model(job);
    CHECK(tutti_find_layer(m, "bdoy") == NULL);
    CHECK_CONTAINS(tutti_error_message(), "has no layer 'bdoy' (is 'body' meant?)");
    CHECK_OK(tutti_job_check(job)); /* asking is no mistake */
    tutti_set_trainable(tutti_find_layer(m, "bdoy"), false);
    CHECK_STATUS(tutti_job_check(job), TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(),
                   "tutti_set_trainable: the layer is NULL: model 'model' has no layer 'bdoy' "
                   "(is 'body' meant?); it has body, head");
    CHECK_INT(tutti_close(job), 1);
    tutti_set_trainable(NULL, false); /* the job is gone */
}
