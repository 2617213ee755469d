/* metric.c: metrics by name, and the mean that most of them are. */
#include "nn/metrics/metric.h"

#include <math.h>
#include <string.h>

#include "base/nearest.h"
#include "tables/metric_def.h"

tutti_status tutti__metric_missing(const char *name)
{
    tutti_nearest nearest = {.word = name};
    for (const tutti_metric_def *const *def = tutti__metric_def_table; *def; def++)
        tutti__nearest_try(&nearest, (*def)->name);
    if (nearest.found)
        return tutti_fail(TUTTI_NOT_FOUND, "there is no metric '%s'; is '%s' meant?", name,
                          nearest.found);
    return tutti_fail(TUTTI_NOT_FOUND, "there is no metric '%s'", name);
}

tutti_metric tutti_metric_by_name(const char *name, const tutti_metric *like)
{
    tutti_metric metric = like ? *like : (tutti_metric){0};
    metric.def = NULL;
    for (const tutti_metric_def *const *def = tutti__metric_def_table; *def; def++)
        if (name && strcmp((*def)->name, name) == 0)
            metric.def = *def;
    if (metric.def && !metric.name)
        metric.name = metric.def->name;
    return metric;
}

tutti_sym tutti__metric_targets(const tutti_metric_build *build, bool classes)
{
    tutti_sym truth = tutti__targets_for(build->truth, build->guess, classes);
    bool agree = tutti__targets_agree("metric", build->metric->name, truth, build->guess, classes);
    return agree ? truth : TUTTI_POISON;
}

void tutti__metric_mean(tutti_metric_build *build, tutti_sym each)
{
    if (!each.node)
        return;
    if (tutti_sym_type(each).dtype != TUTTI_F32)
        each = tutti_cast(each, TUTTI_F32);
    if (!build->weights.node) {
        build->adds[0] = tutti_sum(each);
        build->adds[1] = tutti_cast(tutti_size(each), TUTTI_F32);
        return;
    }
    tutti_sym weights = tutti_broadcast_like(tutti__weights_like(build->weights, each), each);
    build->adds[0] = tutti_sum(tutti_mul(each, weights));
    build->adds[1] = tutti_sum(weights);
}

static void build_custom(tutti_metric_build *build)
{
    tutti__metric_mean(build, build->metric->fn(build->metric, build->truth, build->guess));
}

tutti_metric tutti_custom_metric(tutti_metric_fn *fn, void *context, const char *name)
{
    static const tutti_metric_def custom = {.name = "custom", .doc = "", .build = build_custom};
    return (tutti_metric){
        .def = fn ? &custom : NULL, .fn = fn, .context = context, .name = name ? name : "custom"};
}

double tutti__metric_value(const tutti_metric *metric, tutti_tensor *const *sums)
{
    if (metric->def->value)
        return metric->def->value(metric, sums);
    double weight = tutti_tensor_get(sums[1], 0);
    return weight != 0 ? tutti_tensor_get(sums[0], 0) / weight : NAN;
}
