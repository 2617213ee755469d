/* rmse.c: the root of the mean of squared errors, over all that was seen. */
#include "nn/metrics/common.h"

static void rmse_build(tutti_metric_build *build)
{
    tutti_sym truth = tutti__metric_targets(build, false);
    tutti__metric_mean(build, tutti_square(tutti_sub(build->guess, truth)));
}

static double rmse_value(const tutti_metric *metric, tutti_tensor *const *sums)
{
    (void)metric;
    double weight = tutti_tensor_get(sums[1], 0);
    return weight != 0 ? sqrt(tutti_tensor_get(sums[0], 0) / weight) : NAN;
}

const tutti_metric_def tutti_metric_rmse = {
    .name = "rmse",
    .doc = "sqrt(mean((y - p)^2))",
    .build = rmse_build,
    .value = rmse_value,
};
