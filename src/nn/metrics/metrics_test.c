/* metrics_test.c: every metric over three batches, without and with weights, against numbers that
 * Keras 3.15 gives; masks in losses and metrics. */
#include <math.h>
#include <string.h>

#include "base/test.h"
#include "tutti/tutti.h"

enum { ROWS = 5, COLUMNS = 3 };

static const float P[ROWS * COLUMNS] = {.7f, .2f,  .1f, .1f,  .6f, .3f,  .25f, .25f,
                                        .5f, .05f, .9f, .05f, .4f, .35f, .25f};
static const float BITS[ROWS * COLUMNS] = {1, 0, 1, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 0, 0};
static const float ONE[ROWS * COLUMNS] = {1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0};
static const float R[ROWS * COLUMNS] = {1, 2.5f, -3, .5f, -.25f, 4, .125f, 7,
                                        2, -1,   -2, 3,   1,     1, 1};
static const float WEIGHTS[ROWS] = {.5f, 2, 0, 1, 3};

static tutti_tensor *tensor(tutti_dtype dtype, int rank, int64_t a, int64_t b, const void *data)
{
    tutti_tensor *result;
    CHECK_OK(tutti_tensor_from(dtype, rank, (int64_t[]){a, b}, data, &result));
    return result;
}

static tutti_tensor *classes(void)
{
    return tensor(TUTTI_I64, 1, ROWS, 0, (int64_t[]){0, 2, 2, 1, 1});
}

/* A model that gives its input, whose logit is taken where asked. */
static tutti_model *identity(tutti_job *job)
{
    tutti_model *m = tutti_functional(job);
    tutti_output(m, "out", tutti_identity(tutti_input(m, "x", TUTTI_F32, COLUMNS)));
    return m;
}

/* The metric over batches of 2, 2 and 1. `truth` NULL: class numbers. */
static double measure_outputs(tutti_metric metric, const float *outputs, const float *truth,
                              bool weighted, bool logits)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = identity(job);
    tutti_tensor *x = tensor(TUTTI_F32, 2, ROWS, COLUMNS, outputs);
    tutti_tensor *y = truth ? tensor(TUTTI_F32, 2, ROWS, COLUMNS, truth) : classes();
    tutti_tensor *w = tensor(TUTTI_F32, 1, ROWS, 0, WEIGHTS);
    tutti_dataset *data = tutti_batch(
        weighted ? tutti_from_tensor_slices(job, x, y, w) : tutti_from_tensor_slices(job, x, y), 2);
    tutti_logs logs = {0};
    CHECK_OK(tutti_compile(m,
                           .loss = truth ? tutti_binary_cross_entropy(.from_logits = logits)
                                         : tutti_sparse_cross_entropy(),
                           .metric_list = TUTTI_METRICS({NULL, metric})));
    CHECK_OK(tutti_evaluate(m, data, &logs, .quiet = true));
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    tutti_tensor_release(w);
    double value = tutti_logs_get(&logs, metric.name);
    CHECK_INT(tutti_close(job), 0);
    return value;
}

static double measure(tutti_metric metric, const float *truth, bool weighted, bool logits)
{
    float outputs[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        outputs[i] = logits ? logf(P[i] / (1 - P[i])) : P[i];
    return measure_outputs(metric, outputs, truth, weighted, logits);
}

static void check(tutti_metric metric, const float *truth, double plain, double weighted)
{
    CHECK(metric.def);
    CHECK_NEAR(measure(metric, truth, false, false), plain, 2e-6);
    CHECK_NEAR(measure(metric, truth, true, false), weighted, 2e-6);
}

TUTTI_TEST(metrics_of_classes_equal_those_of_keras)
{
    check(tutti_top_k_accuracy(.k = 1), NULL, 0.6, 0.230769232);
    check(tutti_top_k_accuracy(.k = 2), NULL, 1, 1);
    check(tutti_top_k_accuracy(.k = 1), ONE, 0.6, 0.230769232);
    check(tutti_sparse_accuracy(), NULL, 0.6, 0.230769232);
    check(tutti_categorical_accuracy(), ONE, 0.6, 0.230769232);
    check(tutti_accuracy(), NULL, 0.6, 0.230769232);
    check(tutti_binary_accuracy(), BITS, 0.666666687, 0.666666687);
}

/* A model that has diverged is not always right. */
TUTTI_TEST(top_k_accuracy_of_nan_is_0)
{
    float outputs[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        outputs[i] = NAN;
    CHECK_NEAR(measure_outputs(tutti_top_k_accuracy(.k = 2), outputs, NULL, false, false), 0, 0);
    memcpy(outputs, P, sizeof outputs);
    outputs[0] = NAN; /* of the right class */
    CHECK_NEAR(measure_outputs(tutti_top_k_accuracy(.k = 2), outputs, NULL, false, false), 0.8,
               2e-6);
}

TUTTI_TEST(metrics_of_yes_and_no_equal_those_of_keras)
{
    check(tutti_precision(), BITS, 1, 1);
    check(tutti_precision(.threshold = 0.3), BITS, 0.833333313, 0.684210539);
    check(tutti_recall(.threshold = 0.3), BITS, 0.625, 0.649999976);
    check(tutti_f1(.threshold = 0.3), BITS, 0.7142857, 0.6666667);
    check(tutti_auc(), BITS, 0.767857194, 0.802631617);
    check(tutti_auc(.thresholds = 10), BITS, 0.732142806, 0.731578946);
    /* From logits they are the same; 0.3 itself is left to rounding. */
    CHECK_NEAR(measure(tutti_precision(.threshold = 0.27), BITS, false, true),
               measure(tutti_precision(.threshold = 0.27), BITS, false, false), 1e-9);
    CHECK_NEAR(measure(tutti_auc(), BITS, true, true), 0.802631617, 2e-6);
    /* Nothing said to be yes: 0, as Keras has it. */
    CHECK_NEAR(measure(tutti_precision(.threshold = 0.99), BITS, false, false), 0, 0);
}

TUTTI_TEST(metrics_of_numbers_equal_those_of_keras)
{
    check(tutti_mse_metric(), R, 6.46337414, 3.02000022);
    check(tutti_rmse_metric(), R, 2.54231668, 1.73781478);
    check(tutti_mae_metric(), R, 1.86166668, 1.31538463);
    check(tutti_mean_metric(), R, 1.0 / 3, 1.0 / 3);
}

static tutti_sym largest(const tutti_metric *metric, tutti_sym truth, tutti_sym guess)
{
    (void)metric;
    (void)truth;
    return tutti_max(guess, .axes = TUTTI_AXES(-1));
}

TUTTI_TEST(metrics_of_the_user)
{
    check(tutti_custom_metric(largest, NULL, "largest"), R, (.7 + .6 + .5 + .9 + .4) / 5,
          (.35 + 1.2 + 0 + .9 + 1.2) / 6.5);
    CHECK(!tutti_metric_by_name("no_such_metric", NULL).def);
}

TUTTI_TEST(metrics_confusion_matrix_counts_classes)
{
    static const double counts[2][9] = {{1, 0, 0, 1, 1, 0, 0, 1, 1}, {.5, 0, 0, 3, 1, 0, 0, 2, 0}};
    for (int weighted = 0; weighted < 2; weighted++) {
        tutti_job *job = tutti_open(NULL, NULL);
        tutti_model *m = identity(job);
        tutti_tensor *x = tensor(TUTTI_F32, 2, ROWS, COLUMNS, P), *y = classes(), *matrix;
        tutti_tensor *w = tensor(TUTTI_F32, 1, ROWS, 0, WEIGHTS);
        tutti_dataset *data = tutti_batch(weighted ? tutti_from_tensor_slices(job, x, y, w)
                                                   : tutti_from_tensor_slices(job, x, y),
                                          2);
        tutti_logs logs = {0};
        CHECK_OK(
            tutti_compile(m, .loss = tutti_sparse_cross_entropy(), .metrics = "confusion_matrix"));
        CHECK_OK(tutti_evaluate(m, data, &logs, .quiet = true));
        CHECK_NEAR(tutti_logs_get(&logs, "confusion_matrix"), weighted ? 1.5 / 6.5 : 0.6, 1e-6);
        CHECK_OK(tutti_metric_counts(m, "val_confusion_matrix", &matrix));
        CHECK_INT(tutti_tensor_count(matrix), 9);
        for (int i = 0; i < 9; i++)
            CHECK_NEAR(tutti_tensor_get(matrix, i), counts[weighted][i], 0);
        tutti_tensor_release(matrix);
        CHECK_STATUS(tutti_metric_counts(m, "confusion_matrix", &matrix), TUTTI_INVALID);
        CHECK_STATUS(tutti_metric_counts(m, "nothing", &matrix), TUTTI_NOT_FOUND);
        tutti_tensor_release(x);
        tutti_tensor_release(y);
        tutti_tensor_release(w);
        CHECK_INT(tutti_close(job), 0);
    }
}

/* ---- masks ---- */

static const float TABLE[8] = {.5f, -.5f, 1, 0, -.25f, .75f, .3f, .6f};
static const float KERNEL[4] = {1, -.5f, .25f, 2}, BIAS[2] = {.1f, -.2f};

static void set(tutti_model *m, const char *name, int rank, int64_t a, int64_t b, const float *data)
{
    tutti_tensor *value = tensor(TUTTI_F32, rank, a, b, data);
    CHECK_OK(tutti_set_weight(m, name, value));
    tutti_tensor_release(value);
}

/* Three sequences of ids, 0 being padding, through an embedding and a dense layer. */
static tutti_model *masked(tutti_job *job)
{
    tutti_model *m = tutti_sequential(job, tutti_embedding(4, 2, .mask_zero = true, .name = "e"),
                                      tutti_dense(2, .name = "d"));
    CHECK_OK(tutti_build(m, TUTTI_I64, 4));
    set(m, "e/embeddings", 2, 4, 2, TABLE);
    set(m, "d/kernel", 2, 2, 2, KERNEL);
    set(m, "d/bias", 1, 2, 0, BIAS);
    return m;
}

typedef struct sequences {
    tutti_tensor *ids, *labels, *numbers, *weights;
} sequences;

static sequences make_sequences(void)
{
    sequences s;
    float numbers[24];
    int64_t dims[] = {3, 4, 2};
    for (int i = 0; i < 24; i++)
        numbers[i] = (float)i / 10 - 1;
    s.ids = tensor(TUTTI_I64, 2, 3, 4, (int64_t[]){1, 2, 0, 0, 3, 1, 2, 0, 2, 2, 1, 3});
    s.labels = tensor(TUTTI_I64, 2, 3, 4, (int64_t[]){0, 1, 1, 0, 1, 0, 1, 1, 0, 0, 1, 1});
    s.weights = tensor(TUTTI_F32, 1, 3, 0, (float[]){.5f, 2, 1});
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 3, dims, numbers, &s.numbers));
    return s;
}

static void free_sequences(sequences s)
{
    tutti_tensor_release(s.ids);
    tutti_tensor_release(s.labels);
    tutti_tensor_release(s.numbers);
    tutti_tensor_release(s.weights);
}

static tutti_logs evaluate_masked(tutti_loss loss, const char *metrics, bool numbers, bool weighted,
                                  int64_t batch)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = masked(job);
    sequences s = make_sequences();
    tutti_tensor *truth = numbers ? s.numbers : s.labels;
    tutti_dataset *data =
        tutti_batch(weighted ? tutti_from_tensor_slices(job, s.ids, truth, s.weights)
                             : tutti_from_tensor_slices(job, s.ids, truth),
                    batch);
    tutti_logs logs = {0};
    CHECK_OK(tutti_compile(m, .loss = loss, .metrics = metrics));
    CHECK_OK(tutti_evaluate(m, data, &logs, .quiet = true));
    for (int i = 0; i < logs.count; i++) /* the names end with the model */
        logs.items[i].name = i == 0 ? "loss" : "metric";
    free_sequences(s);
    CHECK_INT(tutti_close(job), 0);
    return logs;
}

static void check_masked(tutti_loss loss, const char *metrics, bool numbers, bool weighted,
                         int64_t batch, double expected, double metric)
{
    tutti_logs logs = evaluate_masked(loss, metrics, numbers, weighted, batch);
    CHECK_NEAR(tutti_logs_get(&logs, "loss"), expected, 3e-6);
    CHECK_NEAR(tutti_logs_get(&logs, "metric"), metric, 3e-6);
}

TUTTI_TEST(metrics_and_losses_leave_out_what_is_masked)
{
    tutti_loss cross = tutti_sparse_cross_entropy(.from_logits = true);
    check_masked(cross, "accuracy", false, false, 3, 0.7815837264060974, 0.6666666865348816);
    check_masked(cross, "accuracy", false, false, 2, 0.6514936089515686, 0.6666666865348816);
    check_masked(cross, "accuracy", false, true, 3, 0.8640609383583069, 0.7272727489471436);
    check_masked(tutti_mse(), "mae", true, false, 3, 1.1026736497879028, 0.8736110925674438);
    check_masked(tutti_mse(), "mae", true, true, 3, 1.0900912284851074, 0.8173295855522156);
    check_masked(tutti_mse(.reduction = TUTTI_LOSS_SUM), "mae", true, false, 3, 9.924062728881836,
                 0.8736110925674438);
}

TUTTI_TEST(metrics_training_with_a_mask_moves_weights_as_keras_does)
{
    static const double moved[8] = {0.5,          -0.5,       0.949999988, 0.0441666692,
                                    -0.217777789, 0.65180558, 0.301666707, 0.588611126};
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = masked(job);
    sequences s = make_sequences();
    tutti_tensor *table;
    CHECK_OK(tutti_compile(m, .optimizer = tutti_sgd(0.1), .loss = tutti_mse()));
    CHECK_OK(tutti_train_on_batch(m, 2, (tutti_tensor *[]){s.ids, s.numbers}, NULL));
    CHECK_OK(tutti_get_weight(m, "e/embeddings", &table));
    for (int i = 0; i < 8; i++)
        CHECK_NEAR(tutti_tensor_get(table, i), moved[i], 2e-6);
    tutti_tensor_release(table);
    free_sequences(s);
    CHECK_INT(tutti_close(job), 0);
}
