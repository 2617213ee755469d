/* optimizer.h: optimizers lower to update operators with their slots as variables beside the
 * weights.
 *
 *     tutti_sym step = tutti_minimize(tutti_adam(.learning_rate = 1e-3), loss);
 *
 * An optimizer is a plain value. Its learning rate and step count are variables named after it
 * ("adam/learning_rate"), so that both can change without compiling anew. */
#ifndef TUTTI_OPTIMIZER_H
#define TUTTI_OPTIMIZER_H

#include "tutti/gradients.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_optimizer_def tutti_optimizer_def;

typedef struct tutti_optimizer {
    const tutti_optimizer_def *def;
    const char *name; /* of its variables' scope; must outlive the calls it is given to */
    double learning_rate;
    double beta1, beta2, epsilon;
    bool torch_form;
} tutti_optimizer;

typedef struct tutti_sgd_settings {
    size_t struct_size;
    double learning_rate; /* 0.01 */
    const char *name;     /* "sgd" */
} tutti_sgd_settings;
TUTTI_API tutti_optimizer tutti_sgd_make(const tutti_sgd_settings *settings);
/* Gradient descent: tutti_sgd(0.5). w = w - lr g. */
#define tutti_sgd(...)                                                                             \
    tutti_sgd_make(TUTTI_OPTIONS(tutti_sgd_settings, .learning_rate = __VA_ARGS__))

typedef struct tutti_adam_settings {
    size_t struct_size;
    double learning_rate;         /* 0.001 */
    double beta1, beta2, epsilon; /* 0.9, 0.999, 1e-7 (1e-8 in torch's form) */
    bool torch_form;  /* epsilon after the correction of the second moment, as PyTorch has it */
    const char *name; /* "adam" */
} tutti_adam_settings;
TUTTI_API tutti_optimizer tutti_adam_make(const tutti_adam_settings *settings);
/* Adam: tutti_adam(), tutti_adam(.learning_rate = 3e-4). */
#define tutti_adam(...) tutti_adam_make(TUTTI_OPTIONS(tutti_adam_settings, __VA_ARGS__))

/* A target that moves every trainable variable which `loss` depends on. Variables it does not
 * depend on are left alone. */
TUTTI_API tutti_sym tutti_minimize(tutti_optimizer optimizer, tutti_sym loss);
#define tutti_minimize(...) TUTTI_AT(tutti_minimize(__VA_ARGS__))

/* The same from gradients at hand (clipped, scaled, …); entries without a gradient are passed over.
 */
TUTTI_API tutti_sym tutti_apply_gradients(tutti_optimizer optimizer, int count,
                                          const tutti_sym *variables, const tutti_grad *grads);
#define tutti_apply_gradients(...) TUTTI_AT(tutti_apply_gradients(__VA_ARGS__))

/* The optimizer's learning rate in a graph: a variable; assign to it to change the rate. */
TUTTI_API tutti_sym tutti_learning_rate(tutti_graph *graph, tutti_optimizer optimizer);

#ifdef __cplusplus
}
#endif
#endif
