/* mse.c: the mean of squared errors. */
#include "nn/metrics/common.h"

static void mse_build(tutti_metric_build *build)
{
    tutti_sym truth = tutti__metric_targets(build, false);
    tutti__metric_mean(build, tutti_square(tutti_sub(build->guess, truth)));
}

const tutti_metric_def tutti_metric_mse = {
    .name = "mse",
    .doc = "mean((y - p)^2)",
    .build = mse_build,
};
