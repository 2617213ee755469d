/* auc.c: the area under the curve of the true positive rate over the false positive rate (ROC).
 *
 * Sums 0 and 1 hold how much weight of yes and of no falls between thresholds: an output p in [0,
 * 1] goes to bucket max(ceil(p (n - 1)) - 1, 0) of n. With thresholds t[0] < 0, t[i] = i / (n - 1)
 * and t[n-1] > 1, p > t[i] where its bucket is i or more, so that a sum from the end gives the
 * counts at every threshold. The area is that of the trapezoids between them. */
#include "nn/metrics/common.h"

static int64_t thresholds(const tutti_metric *metric)
{
    return metric->thresholds > 2 ? metric->thresholds : 200;
}

static void auc_build(tutti_metric_build *build)
{
    int64_t count = thresholds(build->metric);
    tutti_yes_no of = tutti__yes_no(build);
    tutti_sym p = build->metric->from_logits ? tutti_sigmoid(build->guess) : build->guess;
    tutti_sym place = tutti_add(tutti_ceil(tutti_mul(p, (double)(count - 1))), -1);
    place = tutti_cast(tutti_clip(place, 0, (double)(count - 1)), TUTTI_I64);
    build->adds[0] = tutti__tally(place, tutti_mul(of.is, of.weight), count);
    build->adds[1] = tutti__tally(place, tutti_mul(tutti__rest(of.is), of.weight), count);
}

static double auc_value(const tutti_metric *metric, tutti_tensor *const *sums)
{
    (void)metric;
    int64_t count = tutti_tensor_count(sums[0]);
    double yes = 0, area = 0, all_yes = 0, all_no = 0;
    for (int64_t i = 0; i < count; i++) {
        all_yes += tutti_tensor_get(sums[0], i);
        all_no += tutti_tensor_get(sums[1], i);
    }
    /* From the highest threshold, where nothing is said to be yes, down to the lowest. */
    for (int64_t i = count; i-- > 0;) {
        double more_yes = tutti_tensor_get(sums[0], i), more_no = tutti_tensor_get(sums[1], i);
        area += more_no * (yes + 0.5 * more_yes);
        yes += more_yes;
    }
    return tutti__share(area, all_yes * all_no);
}

const tutti_metric_def tutti_metric_auc = {
    .name = "auc",
    .doc = "area under the ROC curve, by trapezoids between thresholds",
    .build = auc_build,
    .value = auc_value,
};
