/* categorical_accuracy.c: how often the largest output stands where the largest target stands. */
#include "nn/metrics/metric.h"

static void categorical_accuracy_build(tutti_metric_build *build)
{
    tutti__metric_mean(build,
                       tutti_equal(tutti_argmax(build->guess, -1), tutti_argmax(build->truth, -1)));
}

const tutti_metric_def tutti_metric_categorical_accuracy = {
    .name = "categorical_accuracy",
    .doc = "mean(argmax(outputs) = argmax(targets))",
    .build = categorical_accuracy_build,
};
