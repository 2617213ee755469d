/* consistency_test.c: processes that were not prepared alike. */
#include <string.h>

#include "base/test.h"
#include "nn/training/examples_test.h"
#include "parallel/strategies/workers.h"

enum { WIDTH = 4, CLASSES = 3 };

typedef struct difference {
    int rank;              /* the process that differs, */
    double weight;         /* by its first bias, or 0, */
    double smoothing;      /* by the settings of its loss, */
    double slope;          /* or of a layer */
    bool mae;              /* or by another loss */
    const char *complaint; /* what all are told; NULL: they train */
} difference;

static tutti_model *build(tutti_job *job, const difference *d, bool odd)
{
    tutti_model *m = tutti_sequential(
        job, tutti_input_shape(WIDTH), tutti_dense(CLASSES),
        tutti_leaky_relu_layer(.negative_slope = odd && d->slope > 0 ? d->slope : 0.1));
    tutti_loss loss =
        tutti_sparse_cross_entropy(.from_logits = true, .label_smoothing = odd ? d->smoothing : 0);
    tutti_compile(m, .optimizer = tutti_sgd(0.1), .loss = odd && d->mae ? tutti_mae() : loss);
    return m;
}

static tutti_status set_bias(tutti_model *m, double to)
{
    tutti_tensor *bias;
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){CLASSES}, &bias));
    for (int i = 0; i < CLASSES; i++)
        tutti_tensor_set(bias, i, to);
    tutti_status status = tutti_set_weight(m, "dense/bias", bias);
    tutti_tensor_release(bias);
    return status;
}

/* A step too small to move anything: the weights are those that it began with. */
static tutti_status train(tutti_strategy *strategy, void *context)
{
    const difference *d = context;
    tutti_job *job = tutti_open(NULL, NULL);
    bool odd = tutti_strategy_rank(strategy) == d->rank;
    double bias = -1;
    TUTTI_WITH_STRATEGY(strategy)
    {
        tutti_model *m = build(job, d, odd);
        tutti_tensor *value;
        if (odd && d->weight != 0)
            TUTTI_TRY(set_bias(m, d->weight));
        tutti_set_learning_rate(m, 1e-30);
        tutti_fit(m, tutti__test_examples(job, (tutti_test_examples){8, WIDTH, CLASSES, 1, 8}),
                  .quiet = true);
        if (tutti_job_check(job) == TUTTI_OK) {
            TUTTI_TRY(tutti_get_weight(m, "dense/bias", &value));
            bias = tutti_tensor_get(value, 0);
            tutti_tensor_release(value);
        }
    }
    tutti_status status = tutti_job_check(job);
    bool told = d->complaint && status != TUTTI_OK && strstr(tutti_error_message(), d->complaint);
    if (!d->complaint)
        TUTTI_TRY(status);
    tutti_close(job);
    WORKER_EXPECT(!d->complaint || told);
    if (!d->complaint)
        WORKER_NEAR(bias, d->rank == 0 ? d->weight : 0);
    return TUTTI_OK;
}

TUTTI_TEST(all_processes_begin_with_the_weights_of_the_first)
{
    tutti__test_workers(2, NULL, train, &(difference){.rank = 0, .weight = 2.5});
    tutti__test_workers(3, NULL, train, &(difference){.rank = 2, .weight = 2.5});
}

TUTTI_TEST(processes_with_other_losses_or_layers_are_found_out)
{
    tutti__test_workers(2, NULL, train,
                        &(difference){.rank = 1, .mae = true, .complaint = "'loss mae"});
    tutti__test_workers(2, NULL, train,
                        &(difference){.rank = 1,
                                      .smoothing = 0.1,
                                      .complaint = "'loss sparse_cross_entropy, settings"});
    tutti__test_workers(2, NULL, train,
                        &(difference){.rank = 1, .slope = 0.3, .complaint = "'model "});
}
