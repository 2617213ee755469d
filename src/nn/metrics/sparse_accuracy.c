/* sparse_accuracy.c: how often the largest output is that of the right class. */
#include "nn/metrics/metric.h"

static void sparse_accuracy_build(tutti_metric_build *build)
{
    tutti_sym truth = tutti__metric_targets(build, true);
    tutti_sym answer = tutti_argmax(build->guess, -1);
    if (tutti_sym_type(truth).dtype != TUTTI_I64)
        truth = tutti_cast(truth, TUTTI_I64);
    tutti__metric_mean(build, tutti_equal(answer, truth));
}

const tutti_metric_def tutti_metric_sparse_accuracy = {
    .name = "sparse_accuracy",
    .doc = "mean(argmax(outputs) = class)",
    .build = sparse_accuracy_build,
};
