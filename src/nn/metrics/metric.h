/* metric.h: what a metric's file gives. One file each, ending in one descriptor.
 * tables: tutti_metric_def */
#ifndef TUTTI_NN_METRICS_METRIC_H
#define TUTTI_NN_METRICS_METRIC_H

#include "nn/losses/loss.h"
#include "tutti/metric.h"

#define TUTTI_METRIC_SUMS 4

/* While a metric is built into a step. */
typedef struct tutti_metric_build {
    const tutti_metric *metric;
    tutti_sym truth, guess;
    tutti_sym weights; /* of examples: [batch], or TUTTI_NO_SYM */
    /* To be set: what this batch adds to each sum; f32 of any known shape. */
    tutti_sym adds[TUTTI_METRIC_SUMS];
} tutti_metric_build;

struct tutti_metric_def {
    const char *name;
    const char *doc; /* the formula */
    int sums;        /* variables it keeps; 0: two, a weighted sum and its weight */
    void (*build)(tutti_metric_build *build);
    /* From the sums to the value. NULL: sums[0] / sums[1]. */
    double (*value)(const tutti_metric *metric, tutti_tensor *const *sums);
};

static inline int tutti__metric_sums(const tutti_metric_def *def)
{
    return def->sums > 0 ? def->sums : 2;
}
double tutti__metric_value(const tutti_metric *metric, tutti_tensor *const *sums);

/* The targets as the outputs are (tutti__targets_for); poison where they have another shape. */
tutti_sym tutti__metric_targets(const tutti_metric_build *build, bool classes);
/* Sets adds 0 and 1 to the weighted sum of `each` (one number an example, or more) and its weight.
 */
void tutti__metric_mean(tutti_metric_build *build, tutti_sym each);

/* TUTTI_NOT_FOUND, with the name that was meant where one is near. */
tutti_status tutti__metric_missing(const char *name);

#endif
