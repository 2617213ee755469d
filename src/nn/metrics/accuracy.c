/* accuracy.c: the share of right answers, of the kind that the shapes call for. */
#include "nn/metrics/metric.h"

static void accuracy_build(tutti_metric_build *build)
{
    tutti_type truth = tutti_sym_type(build->truth), guess = tutti_sym_type(build->guess);
    bool one = guess.rank > 0 && guess.dims[guess.rank - 1] == 1;
    bool classes = !one && (truth.rank + 1 == guess.rank ||
                            (truth.rank == guess.rank && truth.dims[truth.rank - 1] == 1));
    const char *kind = one       ? "binary_accuracy"
                       : classes ? "sparse_accuracy"
                                 : "categorical_accuracy";
    tutti_metric metric = tutti_metric_by_name(kind, build->metric);
    metric.def->build(build);
}

const tutti_metric_def tutti_metric_accuracy = {
    .name = "accuracy",
    .doc = "sparse, categorical or binary accuracy, by the shapes of targets and outputs",
    .build = accuracy_build,
};
