/* metric.h: metrics as plain values. A metric keeps sums in variables beside the weights; its value
 * is computed from them when it is read. */
#ifndef TUTTI_METRIC_H
#define TUTTI_METRIC_H

#include "tutti/layer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_metric_def tutti_metric_def;
struct tutti_metric;

/* What a metric of your own is: one number an example, whose (weighted) mean is the metric. */
typedef tutti_sym tutti_metric_fn(const struct tutti_metric *metric, tutti_sym truth,
                                  tutti_sym guess);

typedef struct tutti_metric {
    const tutti_metric_def *def; /* NULL: none */
    const char *name;            /* as it is shown; the kind's by default */
    bool from_logits;            /* outputs have not been through sigmoid; the loss's by default */
    double threshold;            /* of binary ones: 0.5 */
    int64_t k;                   /* of top_k_accuracy: 5 */
    int64_t thresholds;          /* of auc: 200 */
    int64_t classes;             /* of confusion_matrix; 0: the outputs' */
    tutti_metric_fn *fn;         /* of tutti_custom_metric */
    void *context;
} tutti_metric;

/* Unless a line says otherwise, metrics are means over examples, weighted by the weights of
 * examples and by the outputs' mask. precision, recall, f1 and auc take targets 0 or 1 of the
 * outputs' shape and count every output. */

/* A metric by name, with the settings of `like` (or none): def NULL when there is no such metric.
 */
TUTTI_API tutti_metric tutti_metric_by_name(const char *name, const tutti_metric *like);
#define TUTTI_METRIC_(name_, ...)                                                                  \
    tutti_metric_by_name((name_), &(tutti_metric){.def = NULL, __VA_ARGS__})

/* Right answers: picks sparse, categorical or binary accuracy by the shapes. */
#define tutti_accuracy(...) TUTTI_METRIC_("accuracy", __VA_ARGS__)
#define tutti_sparse_accuracy(...) TUTTI_METRIC_("sparse_accuracy", __VA_ARGS__)
#define tutti_categorical_accuracy(...) TUTTI_METRIC_("categorical_accuracy", __VA_ARGS__)
#define tutti_binary_accuracy(...) TUTTI_METRIC_("binary_accuracy", __VA_ARGS__)
#define tutti_top_k_accuracy(...) TUTTI_METRIC_("top_k_accuracy", __VA_ARGS__)
#define tutti_precision(...) TUTTI_METRIC_("precision", __VA_ARGS__)
#define tutti_recall(...) TUTTI_METRIC_("recall", __VA_ARGS__)
#define tutti_f1(...) TUTTI_METRIC_("f1", __VA_ARGS__)
#define tutti_auc(...) TUTTI_METRIC_("auc", __VA_ARGS__)
#define tutti_mean_metric(...) TUTTI_METRIC_("mean", __VA_ARGS__)
#define tutti_mse_metric(...) TUTTI_METRIC_("mse", __VA_ARGS__)
#define tutti_rmse_metric(...) TUTTI_METRIC_("rmse", __VA_ARGS__)
/* e to the mean cross entropy, of class numbers. */
#define tutti_perplexity(...) TUTTI_METRIC_("perplexity", __VA_ARGS__)
#define tutti_mae_metric(...) TUTTI_METRIC_("mae", __VA_ARGS__)
/* Shown as its accuracy; tutti_metric_counts gives the counts [truth, guess]. */
#define tutti_confusion_matrix(...) TUTTI_METRIC_("confusion_matrix", __VA_ARGS__)
/* What a compiled model's metric has added up since the epoch began, a copy for the caller to
 * release: of "confusion_matrix" the training's counts, of "val_confusion_matrix" the validation's
 * (and tutti_evaluate's). Of other metrics: their first sum. */
TUTTI_API tutti_status tutti_metric_counts(tutti_model *model, const char *name,
                                           tutti_tensor **ret_counts);
TUTTI_API tutti_metric tutti_custom_metric(tutti_metric_fn *fn, void *context, const char *name);

#ifdef __cplusplus
}
#endif
#endif
