/* mean.c: the mean of the outputs. */
#include "nn/metrics/common.h"

static void mean_build(tutti_metric_build *build)
{
    tutti__metric_mean(build, build->guess);
}

const tutti_metric_def tutti_metric_mean = {
    .name = "mean",
    .doc = "mean(p)",
    .build = mean_build,
};
