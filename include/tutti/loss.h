/* loss.h: losses as plain values: tutti_sparse_cross_entropy(.from_logits = true). */
#ifndef TUTTI_LOSS_H
#define TUTTI_LOSS_H

#include "tutti/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_loss_def tutti_loss_def;
struct tutti_loss;

/* How the losses of a batch become one number. */
typedef enum tutti_loss_reduction {
    TUTTI_LOSS_MEAN, /* sum(weight * loss) / number of losses: Keras' sum_over_batch_size */
    TUTTI_LOSS_SUM,  /* of a batch; over a dataset the mean of its batches' sums, by examples */
    TUTTI_LOSS_WEIGHTED_MEAN /* sum(weight * loss) / sum(weight), over a dataset too */
} tutti_loss_reduction;

/* One loss an example (or more: [batch, …]) from targets and outputs. */
typedef tutti_sym tutti_loss_fn(const struct tutti_loss *loss, tutti_sym truth, tutti_sym guess);

typedef struct tutti_loss {
    const tutti_loss_def *def; /* NULL: none */
    tutti_loss_reduction reduction;
    bool from_logits;       /* outputs have not been through softmax or sigmoid */
    double label_smoothing; /* 0 to 1: targets are drawn to the uniform ones */
    double delta;           /* of huber: 1 */
    double quantile;        /* of quantile, between 0 and 1: 0.5 */
    double gamma;           /* of binary_focal: 2 */
    double alpha;           /* of binary_focal: weight of 1, and 1 - alpha of 0; 0: both weigh 1 */
    tutti_loss_fn *fn;      /* of tutti_custom_loss */
    void *context;
    const char *name; /* of a custom loss */
} tutti_loss;

/* A loss by name, with the settings of `like` (or none): def NULL when there is no such loss. */
TUTTI_API tutti_loss tutti_loss_by_name(const char *name, const tutti_loss *like);
#define TUTTI_LOSS_(name_, ...) tutti_loss_by_name((name_), &(tutti_loss){.def = NULL, __VA_ARGS__})

/* Targets are class numbers [batch, …]; outputs [batch, …, classes]. */
#define tutti_sparse_cross_entropy(...) TUTTI_LOSS_("sparse_cross_entropy", __VA_ARGS__)
/* Targets are probabilities, or one-hot, of the outputs' shape. */
#define tutti_cross_entropy(...) TUTTI_LOSS_("cross_entropy", __VA_ARGS__)
/* Targets 0 or 1, one for each output. */
#define tutti_binary_cross_entropy(...) TUTTI_LOSS_("binary_cross_entropy", __VA_ARGS__)
#define tutti_binary_focal(...) TUTTI_LOSS_("binary_focal", __VA_ARGS__)
#define tutti_mse(...) TUTTI_LOSS_("mse", __VA_ARGS__)
#define tutti_mae(...) TUTTI_LOSS_("mae", __VA_ARGS__)
#define tutti_mape(...) TUTTI_LOSS_("mape", __VA_ARGS__)
#define tutti_msle(...) TUTTI_LOSS_("msle", __VA_ARGS__)
#define tutti_huber(...) TUTTI_LOSS_("huber", __VA_ARGS__)
#define tutti_log_cosh(...) TUTTI_LOSS_("log_cosh", __VA_ARGS__)
#define tutti_quantile(...) TUTTI_LOSS_("quantile", __VA_ARGS__)
#define tutti_hinge(...) TUTTI_LOSS_("hinge", __VA_ARGS__)
#define tutti_squared_hinge(...) TUTTI_LOSS_("squared_hinge", __VA_ARGS__)
#define tutti_categorical_hinge(...) TUTTI_LOSS_("categorical_hinge", __VA_ARGS__)
#define tutti_kl_divergence(...) TUTTI_LOSS_("kl_divergence", __VA_ARGS__)
#define tutti_poisson(...) TUTTI_LOSS_("poisson", __VA_ARGS__)
#define tutti_cosine_similarity(...) TUTTI_LOSS_("cosine_similarity", __VA_ARGS__)
/* A loss of your own. */
TUTTI_API tutti_loss tutti_custom_loss(tutti_loss_fn *fn, void *context, const char *name);

/* The losses of a batch, one an example, for custom loops. */
TUTTI_API tutti_sym tutti_loss_per_example(const tutti_loss *loss, tutti_sym truth,
                                           tutti_sym guess);
#define tutti_loss_per_example(...) TUTTI_AT(tutti_loss_per_example(__VA_ARGS__))
typedef struct tutti_compute_loss_options {
    size_t struct_size;
    tutti_sym weights; /* of the examples, [batch]; none: all count alike */
} tutti_compute_loss_options;
/* One number: reduced as the loss says. tutti_compute_loss(&loss, y_true, y_pred) */
TUTTI_API tutti_sym tutti_compute_loss_with(const tutti_loss *loss, tutti_sym y_true,
                                            tutti_sym y_pred,
                                            const tutti_compute_loss_options *options);
#define tutti_compute_loss(loss, y_true, ...)                                                      \
    TUTTI_AT(tutti_compute_loss_with((loss), (y_true),                                             \
                                     TUTTI_ONE_(tutti_compute_loss_options, __VA_ARGS__, )))

#ifdef __cplusplus
}
#endif
#endif
