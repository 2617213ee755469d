/* perplexity.c: e to the mean of the cross entropy, over all that was seen. */
#include "nn/metrics/common.h"

static void perplexity_build(tutti_metric_build *build)
{
    tutti_sym truth = tutti__metric_targets(build, true), guess = build->guess;
    if (!build->metric->from_logits)
        guess = tutti_log(tutti_clip(guess, 1e-7, 1 - 1e-7));
    tutti__metric_mean(build, tutti_nn_sparse_cross_entropy(truth, guess));
}

static double perplexity_value(const tutti_metric *metric, tutti_tensor *const *sums)
{
    (void)metric;
    double weight = tutti_tensor_get(sums[1], 0);
    return weight != 0 ? exp(tutti_tensor_get(sums[0], 0) / weight) : NAN;
}

const tutti_metric_def tutti_metric_perplexity = {
    .name = "perplexity",
    .doc = "exp(mean(-log p[class]))",
    .build = perplexity_build,
    .value = perplexity_value,
};
