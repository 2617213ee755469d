/* optimizer.h: optimizers lower to update operators with their slots as variables beside the
 * weights.
 *
 *     tutti_sym step = tutti_minimize(tutti_adam(.learning_rate = 1e-3), loss);
 *
 * An optimizer is a plain value. Its learning rate and step count are variables named after it
 * ("adam/learning_rate"), so that both can change without compiling anew. One may be applied as
 * often as wanted; two with other settings on one graph or tape need names of their own (.name).
 *
 * Formulas and defaults are Keras'; .torch_form takes PyTorch's where they differ. In settings 0
 * means the default; where the number 0 itself is meant, write TUTTI_ZERO.
 *
 * A gradient that is rows (of an embedding) moves only those rows and their slots in SGD, Adam,
 * Adagrad, RMSprop, Adamax and Nadam, and in AdamW with .weight_decay = TUTTI_ZERO; the others, and
 * all with weight decay, as AdamW by default, take it as dense. */
#ifndef TUTTI_OPTIMIZER_H
#define TUTTI_OPTIMIZER_H

#include "tutti/gradients.h"
#include "tutti/schedule.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_optimizer_def tutti_optimizer_def;

#define TUTTI_OPTIMIZER_NUMBERS 8
typedef struct tutti_optimizer {
    const tutti_optimizer_def *def;
    const char *name; /* of its variables' scope; must outlive the calls it is given to */
    double learning_rate;
    double weight_decay;
    double clip_value, clip_norm, global_clip_norm;
    double ema_decay;
    tutti_schedule schedule;
    double numbers[TUTTI_OPTIMIZER_NUMBERS]; /* the def's own */
} tutti_optimizer;

/* What the settings of every optimizer begin with.
 *
 * weight_decay: w = w - lr weight_decay w before each update (decoupled; LARS: see there).
 * Of the three kinds of clipping one may be given:
 *   clip_value: every element of a gradient into [-c, c];
 *   clip_norm: each variable's gradient to a norm of at most c;
 *   global_clip_norm: all gradients together to a norm of at most c.
 * ema_decay: keeps the running mean of every variable in its slot "ema": mean = d mean + (1 - d) w
 *   after each update, at first w.
 * schedule: who trains (fit) writes its rate into the learning rate before each step;
 *   tutti_minimize alone only starts with it.
 * learning_rate: kept as f32, also for f64 weights.
 * name: of the scope of its variables; by default the optimizer's kind. Applying another optimizer
 *   of that name, with other settings, to the same graph or tape is an error. */
#define TUTTI_OPTIMIZER_SETTINGS                                                                   \
    size_t struct_size;                                                                            \
    double learning_rate;                                                                          \
    double weight_decay;                                                                           \
    double clip_value, clip_norm, global_clip_norm;                                                \
    double ema_decay;                                                                              \
    tutti_schedule schedule;                                                                       \
    const char *name

typedef struct tutti_sgd_settings {
    TUTTI_OPTIMIZER_SETTINGS; /* learning_rate 0.01 */
    double momentum;          /* 0 */
    bool nesterov;
    bool torch_form; /* m = u m + g, w = w - lr m: differs when the rate changes */
} tutti_sgd_settings;
TUTTI_API tutti_optimizer tutti_sgd_with(const tutti_sgd_settings *settings);
/* Gradient descent: tutti_sgd(0.5), tutti_sgd(0.01, .momentum = 0.9). w = w - lr g; with momentum
 * m = u m - lr g, w = w + m, Nesterov's w = w + u m - lr g. */
#define tutti_sgd(...)                                                                             \
    tutti_sgd_with(TUTTI_OPTIONS(tutti_sgd_settings, .learning_rate = __VA_ARGS__))

typedef struct tutti_adam_settings {
    TUTTI_OPTIMIZER_SETTINGS; /* learning_rate 0.001; weight_decay of AdamW 0.004 (torch 0.01) */
    double beta1, beta2, epsilon; /* 0.9, 0.999, 1e-7 (1e-8 in torch's form) */
    bool amsgrad;                 /* the largest second moment so far */
    bool torch_form; /* epsilon after the correction of the second moment, as PyTorch has it; with
                        amsgrad too the largest is of moments not yet corrected */
} tutti_adam_settings;
TUTTI_API tutti_optimizer tutti_adam_with(const tutti_adam_settings *settings);
/* Adam: tutti_adam(), tutti_adam(.learning_rate = 3e-4).
 * m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2;
 * w = w - lr sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + e). */
#define tutti_adam(...) tutti_adam_with(TUTTI_OPTIONS(tutti_adam_settings, __VA_ARGS__))
TUTTI_API tutti_optimizer tutti_adamw_with(const tutti_adam_settings *settings);
/* Adam with decoupled weight decay. */
#define tutti_adamw(...) tutti_adamw_with(TUTTI_OPTIONS(tutti_adam_settings, __VA_ARGS__))

typedef struct tutti_adagrad_settings {
    TUTTI_OPTIMIZER_SETTINGS;   /* learning_rate 0.001 */
    double initial_accumulator; /* 0.1 (0 in torch's form) */
    double epsilon;             /* 1e-7 (1e-10) */
    bool torch_form;            /* lr g / (sqrt(s) + e) */
} tutti_adagrad_settings;
TUTTI_API tutti_optimizer tutti_adagrad_with(const tutti_adagrad_settings *settings);
/* s = s + g^2; w = w - lr g / sqrt(s + e). */
#define tutti_adagrad(...) tutti_adagrad_with(TUTTI_OPTIONS(tutti_adagrad_settings, __VA_ARGS__))

typedef struct tutti_adadelta_settings {
    TUTTI_OPTIMIZER_SETTINGS; /* learning_rate 0.001; PyTorch has 1 */
    double rho, epsilon;      /* 0.95, 1e-7; PyTorch has 0.9, 1e-6 */
} tutti_adadelta_settings;
TUTTI_API tutti_optimizer tutti_adadelta_with(const tutti_adadelta_settings *settings);
/* s = r s + (1 - r) g^2; x = g sqrt(d + e) / sqrt(s + e); d = r d + (1 - r) x^2; w = w - lr x. */
#define tutti_adadelta(...) tutti_adadelta_with(TUTTI_OPTIONS(tutti_adadelta_settings, __VA_ARGS__))

typedef struct tutti_rmsprop_settings {
    TUTTI_OPTIMIZER_SETTINGS; /* learning_rate 0.001 */
    double rho, epsilon;      /* 0.9, 1e-7 (0.99, 1e-8 in torch's form) */
    double momentum;          /* 0 */
    bool centered;            /* v less the square of the mean gradient */
    bool torch_form;          /* b = u b + g / (sqrt(v) + e), w = w - lr b */
} tutti_rmsprop_settings;
TUTTI_API tutti_optimizer tutti_rmsprop_with(const tutti_rmsprop_settings *settings);
/* v = r v + (1 - r) g^2; x = lr g / sqrt(v + e); w = w - x, with momentum b = u b + x, w = w - b.
 */
#define tutti_rmsprop(...) tutti_rmsprop_with(TUTTI_OPTIONS(tutti_rmsprop_settings, __VA_ARGS__))

typedef struct tutti_adamax_settings {
    TUTTI_OPTIMIZER_SETTINGS;     /* learning_rate 0.001 */
    double beta1, beta2, epsilon; /* 0.9, 0.999, 1e-7 (1e-8 in torch's form) */
    bool torch_form;              /* u = max(b2 u, |g| + e) */
} tutti_adamax_settings;
TUTTI_API tutti_optimizer tutti_adamax_with(const tutti_adamax_settings *settings);
/* m = b1 m + (1 - b1) g; u = max(b2 u, |g|); w = w - lr / (1 - b1^t) m / (u + e). */
#define tutti_adamax(...) tutti_adamax_with(TUTTI_OPTIONS(tutti_adamax_settings, __VA_ARGS__))

typedef struct tutti_nadam_settings {
    TUTTI_OPTIMIZER_SETTINGS;     /* learning_rate 0.001 */
    double beta1, beta2, epsilon; /* 0.9, 0.999, 1e-7; PyTorch's epsilon is 1e-8 */
    double momentum_decay;        /* d: 1; PyTorch has 0.004 */
} tutti_nadam_settings;
TUTTI_API tutti_optimizer tutti_nadam_with(const tutti_nadam_settings *settings);
/* Adam with Nesterov's momentum: u(t) = b1 (1 - 0.96^(t d) / 2), U(t) = u(1) ... u(t);
 * w = w - lr (u(t+1) m / (1 - U(t+1)) + (1 - u(t)) g / (1 - U(t))) / (sqrt(v / (1 - b2^t)) + e). */
#define tutti_nadam(...) tutti_nadam_with(TUTTI_OPTIONS(tutti_nadam_settings, __VA_ARGS__))

typedef struct tutti_lamb_settings {
    TUTTI_OPTIMIZER_SETTINGS;     /* learning_rate 0.001 */
    double beta1, beta2, epsilon; /* 0.9, 0.999, 1e-7 */
} tutti_lamb_settings;
TUTTI_API tutti_optimizer tutti_lamb_with(const tutti_lamb_settings *settings);
/* u = m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + e), with Adam's m and v; w = w - lr |w| / |u| u for
 * each variable (factor 1 where a norm is 0). */
#define tutti_lamb(...) tutti_lamb_with(TUTTI_OPTIONS(tutti_lamb_settings, __VA_ARGS__))

typedef struct tutti_lars_settings {
    TUTTI_OPTIMIZER_SETTINGS; /* learning_rate 0.01; weight_decay belongs to the gradient here */
    double momentum;          /* 0.9 */
    double trust;             /* 0.001 */
    double epsilon;           /* 0 */
    bool nesterov;
} tutti_lars_settings;
TUTTI_API tutti_optimizer tutti_lars_with(const tutti_lars_settings *settings);
/* For each variable r = trust |w| / (|g| + decay |w| + e) (1 where a norm is 0);
 * m = u m + lr r (g + decay w); w = w - m. */
#define tutti_lars(...) tutti_lars_with(TUTTI_OPTIONS(tutti_lars_settings, __VA_ARGS__))

typedef struct tutti_lion_settings {
    TUTTI_OPTIMIZER_SETTINGS; /* learning_rate 0.001 */
    double beta1, beta2;      /* 0.9, 0.99 */
} tutti_lion_settings;
TUTTI_API tutti_optimizer tutti_lion_with(const tutti_lion_settings *settings);
/* w = w - lr sign(b1 m + (1 - b1) g); m = b2 m + (1 - b2) g. */
#define tutti_lion(...) tutti_lion_with(TUTTI_OPTIONS(tutti_lion_settings, __VA_ARGS__))

/* An optimizer by its kind ("adamw"), with its defaults but for the rate (0: the default too).
 * TUTTI_NOT_FOUND names those there are. */
TUTTI_API tutti_status tutti_optimizer_by_name(const char *kind, double learning_rate,
                                               tutti_optimizer *ret_optimizer);

/* A target that moves every trainable variable which `loss` depends on. Variables it does not
 * depend on are left alone. */
TUTTI_API tutti_sym tutti_minimize(tutti_optimizer optimizer, tutti_sym loss);
#define tutti_minimize(...) TUTTI_AT(tutti_minimize(__VA_ARGS__))

/* The same from gradients at hand; entries without a gradient are passed over. Clips, decays,
 * moves, keeps means, counts the step. */
TUTTI_API tutti_sym tutti_apply_gradients(tutti_optimizer optimizer, int count,
                                          const tutti_sym *variables, const tutti_grad *grads);
#define tutti_apply_gradients(...) TUTTI_AT(tutti_apply_gradients(__VA_ARGS__))

/* The optimizer's learning rate in a graph: a variable; assign to it to change the rate. With a
 * schedule it starts with the rate of step 0. */
TUTTI_API tutti_sym tutti_learning_rate(tutti_graph *graph, tutti_optimizer optimizer);
#define tutti_learning_rate(...) TUTTI_AT(tutti_learning_rate(__VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
