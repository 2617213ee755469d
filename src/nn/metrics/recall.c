/* recall.c: of what is yes, the share that was said to be. */
#include "nn/metrics/common.h"

static void recall_build(tutti_metric_build *build)
{
    tutti_yes_no of = tutti__yes_no(build);
    build->adds[0] = tutti__count_both(of.said, of.is, of.weight);
    build->adds[1] = tutti_sum(tutti_mul(of.is, of.weight));
}

static double recall_value(const tutti_metric *metric, tutti_tensor *const *sums)
{
    (void)metric;
    return tutti__share(tutti_tensor_get(sums[0], 0), tutti_tensor_get(sums[1], 0));
}

const tutti_metric_def tutti_metric_recall = {
    .name = "recall",
    .doc = "true positives / (true positives + false negatives)",
    .build = recall_build,
    .value = recall_value,
};
