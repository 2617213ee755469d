/* mae.c: the mean of absolute errors. */
#include "nn/metrics/common.h"

static void mae_build(tutti_metric_build *build)
{
    tutti_sym truth = tutti__metric_targets(build, false);
    tutti__metric_mean(build, tutti_abs(tutti_sub(build->guess, truth)));
}

const tutti_metric_def tutti_metric_mae = {
    .name = "mae",
    .doc = "mean(|y - p|)",
    .build = mae_build,
};
