/* confusion_matrix.c: how often each class was taken for which: counts [truth, guess]. */
#include "nn/metrics/common.h"

static void confusion_matrix_build(tutti_metric_build *build)
{
    tutti_type type = tutti_sym_type(build->guess);
    bool binary = type.rank > 0 && type.dims[type.rank - 1] == 1;
    int64_t classes = build->metric->classes > 0 ? build->metric->classes
                      : binary                   ? 2
                      : type.rank > 0            ? type.dims[type.rank - 1]
                                                 : TUTTI_ANY;
    if (classes < 1 || classes > 1 << 14) {
        tutti__poison(build->guess.node->graph, TUTTI_INVALID,
                      "confusion_matrix: the outputs do not tell the number of classes; give it: "
                      "tutti_confusion_matrix(.classes = 10)");
        return;
    }
    tutti_sym is, said;
    if (binary) {
        tutti_yes_no of = tutti__yes_no(build);
        is = tutti_cast(of.is, TUTTI_I64);
        said = tutti_cast(of.said, TUTTI_I64);
    } else {
        is = tutti__classes(build->truth, build->guess);
        said = tutti_argmax(build->guess, -1);
    }
    tutti_sym place = tutti_add(tutti_mul(is, (double)classes), said);
    tutti_sym weight = tutti_cast(tutti_ones_like(place), TUTTI_F32);
    if (build->weights.node)
        weight = tutti_broadcast_like(tutti__weights_like(build->weights, weight), weight);
    build->adds[0] =
        tutti_reshape(tutti__tally(place, weight, classes * classes), classes, classes);
}

static double confusion_matrix_value(const tutti_metric *metric, tutti_tensor *const *sums)
{
    (void)metric;
    int64_t classes = tutti_tensor_dims(sums[0])[0];
    double right = 0, all = 0;
    for (int64_t i = 0; i < classes * classes; i++) {
        double count = tutti_tensor_get(sums[0], i);
        all += count;
        right += i % (classes + 1) == 0 ? count : 0;
    }
    return all != 0 ? right / all : NAN;
}

const tutti_metric_def tutti_metric_confusion_matrix = {
    .name = "confusion_matrix",
    .doc = "counts of (right class, answer); shown as the share on the diagonal",
    .sums = 1,
    .build = confusion_matrix_build,
    .value = confusion_matrix_value,
};
