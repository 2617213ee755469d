/* added_test.c: losses and metrics from inside layers and models: shown, trained on, the same under
 * strategies, with gathered batches, in loops by hand, nested and from JSON. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "base/test.h"
#include "nn/training/examples_test.h"
#include "tutti/tutti.h"

/* Adds a tenth of its input's mean square of each example to the loss, and tells its sum. */
static tutti_sym pull(tutti_layer_call *call)
{
    tutti_sym x = call->inputs[0];
    tutti_sym squares = tutti_mean(tutti_square(x), .axes = TUTTI_AXES(1));
    tutti_add_loss(tutti_mul(squares, 0.1), "pull");
    tutti_add_metric(tutti_sum(x, .axes = TUTTI_AXES(1)), "total");
    return x;
}
static const tutti_layer_kind pull_kind = {.struct_size = sizeof(tutti_layer_kind),
                                           .name = "test.pull",
                                           .settings_size = sizeof(tutti_layer_settings),
                                           .call = pull};

enum { EXAMPLES = 23, WIDTH = 4, CLASSES = 3 };

static tutti_dataset *examples(tutti_job *job, int64_t batch)
{
    return tutti__test_examples(job, (tutti_test_examples){EXAMPLES, WIDTH, CLASSES, 5, batch});
}

typedef struct result {
    double loss, own, pull, total, val_pull, kernel[WIDTH * 5];
} result;

static tutti_model *pulled(tutti_job *job)
{
    return tutti_sequential(job, tutti_dense(5, .name = "first", .activation = TUTTI_TANH),
                            tutti_layer_custom(&pull_kind, NULL),
                            tutti_dense(CLASSES, .name = "last"));
}

static result train(tutti_strategy *strategy, int64_t batch, int accumulate,
                    tutti_loss_reduction reduction, bool deterministic)
{
    result r = {0};
    tutti_job *job = tutti_open(NULL, NULL);
    TUTTI_WITH_STRATEGY(strategy)
    {
        tutti_model *m = pulled(job);
        tutti_tensor *kernel;
        tutti_compile(
            m, .optimizer = tutti_sgd(0.1 / (reduction == TUTTI_LOSS_SUM ? EXAMPLES : 1)),
            .loss = tutti_sparse_cross_entropy(.from_logits = true, .reduction = reduction),
            .accumulate = accumulate, .deterministic = deterministic, .metrics = "accuracy");
        const tutti_history *h = tutti_fit(m, examples(job, batch), .epochs = 3,
                                           .validation = examples(job, 7), .quiet = true);
        CHECK_OK(tutti_job_check(job));
        r.loss = tutti_history_get(h, "loss", 2);
        r.own = tutti_history_get(h, "last_loss", 2);
        r.pull = tutti_history_get(h, "pull", 2);
        r.total = tutti_history_get(h, "total", 2);
        r.val_pull = tutti_history_get(h, "val_pull", 2);
        CHECK_OK(tutti_get_weight(m, "first/kernel", &kernel));
        for (int i = 0; i < WIDTH * 5; i++)
            r.kernel[i] = tutti_tensor_get(kernel, i);
        tutti_tensor_release(kernel);
    }
    CHECK_INT(tutti_close(job), 0);
    if (strategy)
        CHECK_OK(tutti_strategy_close(strategy));
    return r;
}

static void check_same(const result *a, const result *b, double near)
{
    CHECK_NEAR(a->loss, b->loss, near);
    CHECK_NEAR(a->own, b->own, near);
    CHECK_NEAR(a->pull, b->pull, near);
    CHECK_NEAR(a->total, b->total, near);
    CHECK_NEAR(a->val_pull, b->val_pull, near);
    for (int i = 0; i < WIDTH * 5; i++)
        CHECK_NEAR(a->kernel[i], b->kernel[i], near);
}

TUTTI_TEST(what_layers_add_is_shown_beside_the_loss)
{
    result r = train(NULL, 8, 1, TUTTI_LOSS_MEAN, false);
    CHECK(r.pull > 0 && isfinite(r.total) && r.val_pull > 0);
    CHECK_NEAR(r.loss, r.own + r.pull, 1e-5);
}

TUTTI_TEST(what_layers_add_is_the_same_under_strategies)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    for (int deterministic = 0; deterministic < 2; deterministic++) {
        result one =
            train(tutti_strategy_one_device(.devices = "cpu:0", .deterministic = deterministic), 8,
                  1, TUTTI_LOSS_MEAN, deterministic);
        result two =
            train(tutti_strategy_mirrored(.devices = "cpu:0,cpu:1", .deterministic = deterministic),
                  8, 1, TUTTI_LOSS_MEAN, deterministic);
        check_same(&two, &one, deterministic ? 0 : 1e-5);
    }
}

TUTTI_TEST(what_layers_add_is_the_same_over_gathered_batches)
{
    static const tutti_loss_reduction reductions[] = {TUTTI_LOSS_MEAN, TUTTI_LOSS_SUM};
    for (int i = 0; i < 2; i++) {
        result whole = train(NULL, EXAMPLES, 1, reductions[i], false);
        result parts = train(NULL, 8, 3, reductions[i], false);
        for (int k = 0; k < WIDTH * 5; k++)
            CHECK_NEAR(parts.kernel[k], whole.kernel[k], 1e-5);
    }
}

/* A functional model adds as layers do; what it adds twice has a number; all of it is in JSON, and
 * in a model round it. */
TUTTI_TEST(what_models_add_is_saved_and_nested)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = tutti_functional(job);
    tutti_sym x = tutti_input(m, "x", TUTTI_F32, WIDTH);
    tutti_sym y = tutti_call(tutti_dense(CLASSES), x);
    tutti_add_loss(tutti_mean(tutti_square(x)), "size");
    tutti_add_metric(tutti_mean(x), "size");
    tutti_add_metric(tutti_mean(x), "accuracy");
    tutti_output(m, "y", y);
    char *text;
    CHECK_OK(tutti_model_to_json(m, &text));
    tutti_model *again = tutti_model_from_json(job, text);
    CHECK_OK(tutti_job_check(job));
    free(text);
    tutti_model *around = tutti_sequential(job, tutti_model_layer(again));
    tutti_model *models[] = {m, around};
    for (int i = 0; i < 2; i++) {
        tutti_logs logs;
        tutti_compile(models[i], .loss = tutti_sparse_cross_entropy(.from_logits = true),
                      .metrics = "accuracy");
        CHECK_OK(tutti_evaluate(models[i], examples(job, 8), &logs));
        CHECK(tutti_logs_get(&logs, "size") > 0);
        CHECK(isfinite(tutti_logs_get(&logs, "size_1")));
        CHECK_NEAR(tutti_logs_get(&logs, "accuracy_1"), tutti_logs_get(&logs, "size_1"), 1e-6);
        CHECK(tutti_logs_get(&logs, "accuracy") >= 0);
        CHECK_STR(logs.items[0].name, "loss");
    }
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(loops_by_hand_read_what_layers_add)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = pulled(job);
    tutti_eager *e = tutti_model_eager(m);
    tutti_tensor *x_, *y_;
    tutti_dataset *data = examples(job, 8);
    CHECK_OK(tutti_next_batch(data, &x_, &y_));
    TUTTI_STEP(e) {
        tutti_sym x = tutti_eager_feed(e, x_), out = tutti_apply(m, x);
        tutti_sym all = tutti_model_losses(m, out), pull = tutti_added_value(m, "pull", out);
        CHECK_NEAR(tutti_scalar_value(all), tutti_scalar_value(pull), 1e-7);
        CHECK(tutti_scalar_value(pull) > 0);
        CHECK(isfinite(tutti_scalar_value(tutti_added_value(m, "total", out))));
    }
    CHECK_OK(tutti_eager_check(e));
    TUTTI_STEP(e)
        tutti_added_value(m, "pul", tutti_apply(m, tutti_eager_feed(e, x_)));
    CHECK_STATUS(tutti_eager_check(e), TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "there are: pull, total");
    tutti_close(job);
}

TUTTI_TEST(adding_outside_of_a_model_is_said)
{
    tutti_graph *g;
    CHECK_OK(tutti_graph_create(&g));
    tutti_add_loss(tutti_scalar(g, TUTTI_F32, 1), "lost");
    CHECK_CONTAINS((tutti_graph_check(g), tutti_error_message()),
                   "called in no layer and no model");
    tutti_graph_destroy(g);
}
