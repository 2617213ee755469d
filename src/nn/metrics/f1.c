/* f1.c: the harmonic mean of precision and recall. */
#include "nn/metrics/common.h"

static void f1_build(tutti_metric_build *build)
{
    tutti_yes_no of = tutti__yes_no(build);
    build->adds[0] = tutti__count_both(of.said, of.is, of.weight);
    build->adds[1] = tutti_sum(tutti_mul(of.said, of.weight));
    build->adds[2] = tutti_sum(tutti_mul(of.is, of.weight));
}

static double f1_value(const tutti_metric *metric, tutti_tensor *const *sums)
{
    (void)metric;
    return tutti__share(2 * tutti_tensor_get(sums[0], 0),
                        tutti_tensor_get(sums[1], 0) + tutti_tensor_get(sums[2], 0));
}

const tutti_metric_def tutti_metric_f1 = {
    .name = "f1",
    .doc = "2 precision recall / (precision + recall), over all outputs together",
    .sums = 3,
    .build = f1_build,
    .value = f1_value,
};
