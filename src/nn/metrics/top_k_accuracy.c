/* top_k_accuracy.c: how often the right class is among the k largest outputs. Equal outputs share
 * their place: the right class is in when fewer than k outputs are larger. What cannot be compared
 * counts as larger: outputs that are all NaN are wrong ones. */
#include "nn/metrics/common.h"

static void top_k_accuracy_build(tutti_metric_build *build)
{
    int64_t k = build->metric->k > 0 ? build->metric->k : 5;
    tutti_sym classes = tutti__classes(build->truth, build->guess);
    tutti_sym right = tutti_take_along(build->guess, tutti_expand_dims(classes, -1), -1);
    tutti_sym larger =
        tutti_cast(tutti_logical_not(tutti_less_equal(build->guess, right)), TUTTI_F32);
    tutti_sym place = tutti_sum(larger, .axes = TUTTI_AXES(-1));
    tutti__metric_mean(build, tutti_less(place, (double)k));
}

const tutti_metric_def tutti_metric_top_k_accuracy = {
    .name = "top_k_accuracy",
    .doc = "mean(fewer than k outputs are larger than that of the right class)",
    .build = top_k_accuracy_build,
};
