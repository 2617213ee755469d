/* binary_accuracy.c: how often an output is on the target's side of the threshold. */
#include <math.h>

#include "nn/metrics/metric.h"

static void binary_accuracy_build(tutti_metric_build *build)
{
    const tutti_metric *metric = build->metric;
    double threshold = metric->threshold != 0 ? metric->threshold : 0.5;
    if (metric->from_logits) /* sigmoid(x) > t where x > log(t / (1 - t)) */
        threshold = log(threshold / (1 - threshold));
    tutti_sym truth = tutti__metric_targets(build, false);
    tutti_sym yes = tutti_greater(build->guess, threshold);
    tutti_sym is = tutti_greater(truth, 0.5);
    tutti__metric_mean(build, tutti_equal(yes, is));
}

const tutti_metric_def tutti_metric_binary_accuracy = {
    .name = "binary_accuracy",
    .doc = "mean((outputs > threshold) = targets)",
    .build = binary_accuracy_build,
};
