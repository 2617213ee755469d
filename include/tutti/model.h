/* model.h: models: layers joined into a network, and training them.
 *
 *     tutti_model *m = tutti_sequential(job,
 *         tutti_conv2d(32, 3, .activation = TUTTI_RELU),
 *         tutti_max_pool2d(2),
 *         tutti_flatten(),
 *         tutti_dense(10));
 *     tutti_compile(m, .optimizer = tutti_adam(),
 *                      .loss = tutti_sparse_cross_entropy(.from_logits = true),
 *                      .metrics = "accuracy");
 *     tutti_fit(m, train, .epochs = 12, .validation = test);
 *
 * A model belongs to its job. Calls need no checking: the job carries the first error, later calls
 * do nothing. Dimension 0 of every input and output is the batch and is not written down. */
#ifndef TUTTI_MODEL_H
#define TUTTI_MODEL_H

#include "tutti/callback.h"
#include "tutti/dataset.h"
#include "tutti/layers.h"
#include "tutti/loss.h"
#include "tutti/metric.h"
#include "tutti/optimizer.h"
#include "tutti/tape.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- making models ---- */

typedef struct tutti_model_options {
    size_t struct_size;
    const char *name;      /* "model" */
    const char *precision; /* "f32", "bf16", "f16"; default --precision, else "f32" */
} tutti_model_options;

/* One layer after the other. Weights are made when the first data shows its shape, or at once when
 * the first layer is tutti_input_shape(28, 28, 1). */
TUTTI_API tutti_model *tutti_sequential(tutti_job *job, int count, tutti_layer *const *layers);
#define tutti_sequential(job, ...)                                                                 \
    TUTTI_AT(tutti_sequential(                                                                     \
        (job), (int)(sizeof((tutti_layer *[]){__VA_ARGS__}) / sizeof(tutti_layer *)),              \
        (tutti_layer *[]){__VA_ARGS__}))
/* Adds a layer to a sequential model that has not been used yet. */
TUTTI_API void tutti_model_add(tutti_model *model, tutti_layer *layer);

/* What --precision asks for, TUTTI_F32, TUTTI_BF16 or TUTTI_F16, for programs that build their
 * products by hand: models read it themselves. A word that is none of these fails the job. */
TUTTI_API tutti_dtype tutti_job_precision(tutti_job *job);

/* Any topology: inputs, calls of layers and operators, outputs.
 *     tutti_model *m = tutti_functional(job);
 *     tutti_sym a = tutti_input(m, "a", TUTTI_F32, 4), b = tutti_input(m, "b", TUTTI_F32, 4);
 *     tutti_sym x = tutti_call(tutti_dense(8), tutti_concatenate(a, b));
 *     tutti_output(m, "y", tutti_relu(x)); */
TUTTI_API tutti_model *tutti_functional_with(tutti_job *job, const tutti_model_options *options);
#define tutti_functional(...)                                                                      \
    TUTTI_AT(tutti_functional_with(TUTTI_ONE_(tutti_model_options, __VA_ARGS__, )))
TUTTI_API tutti_sym tutti_input(tutti_model *model, const char *name, tutti_type type);
#define tutti_input(model, name, ...)                                                              \
    TUTTI_AT(tutti_input((model), (name), TUTTI_TYPE(__VA_ARGS__)))
TUTTI_API void tutti_output(tutti_model *model, const char *name, tutti_sym sym);
#define tutti_output(...) TUTTI_AT(tutti_output(__VA_ARGS__))

/* A model of your own: `call` joins layers, which it keeps in `self`, as it likes. */
typedef struct tutti_model_call {
    tutti_model *model;
    void *self;
    tutti_graph *graph;
    int input_count;
    const tutti_sym *inputs;
    bool training;
    int output_count; /* 1 unless set */
    tutti_sym outputs[16];
} tutti_model_call;
typedef struct tutti_model_kind {
    uint32_t struct_size;
    const char *name;
    void (*call)(tutti_model_call *call);
    void (*destroy)(void *self); /* (optional) */
} tutti_model_kind;
TUTTI_API tutti_model *tutti_subclass(tutti_job *job, const tutti_model_kind *kind, void *self);

/* A model as a layer of another. Its weights stand there under its name; where it has been built
 * they begin with the values that it has. */
TUTTI_API tutti_layer *tutti_model_layer(tutti_model *model);

/* Makes the weights for an input of this shape: tutti_build(m, TUTTI_F32, 28, 28, 1). With count 0,
 * for the inputs that the model knows itself. */
TUTTI_API tutti_status tutti_build(tutti_model *model, int count, const tutti_type *types);
#define tutti_build(model, ...) tutti_build((model), 1, &TUTTI_TYPE_VALUE_(__VA_ARGS__))
#define TUTTI_TYPE_VALUE_(...) ((tutti_type[]){TUTTI_TYPE(__VA_ARGS__)})[0]

/* ---- using models ---- */

typedef struct tutti_apply_options {
    size_t struct_size;
    bool training;
} tutti_apply_options;
/* The model's (first) output for x, as nodes of x's graph: of a tape's step, or of a graph of your
 * own. Several inputs and outputs: tutti_apply_many. */
TUTTI_API tutti_sym tutti_apply_with(tutti_model *model, tutti_sym x,
                                     const tutti_apply_options *options);
#define tutti_apply(model, ...)                                                                    \
    TUTTI_AT(tutti_apply_with((model), TUTTI_ONE_(tutti_apply_options, __VA_ARGS__, )))
TUTTI_API tutti_status tutti_apply_many(tutti_model *model, int input_count,
                                        const tutti_sym *inputs, bool training, int output_count,
                                        tutti_sym *ret_outputs);

/* The eager context whose variables are this model's weights: for custom loops. Of a model that is
 * built all weights are variables there, also before it is applied. */
TUTTI_API tutti_eager *tutti_model_eager(tutti_model *model);
/* What the model's layers add to a loss: regularizers of weights, each once, and what was given to
 * tutti_add_loss; a scalar, 0 where there is nothing. fit adds it by itself; a loop of your own
 * does it on its tape, after tutti_apply in the same step (or graph, of which `loss` is a symbol):
 *     loss = tutti_add(loss, tutti_model_losses(m, loss)); */
TUTTI_API tutti_sym tutti_model_losses(tutti_model *model, tutti_sym loss);
#define tutti_model_losses(...) TUTTI_AT(tutti_model_losses(__VA_ARGS__))
/* What was given under this name to tutti_add_loss or tutti_add_metric, a scalar: as
 * tutti_model_losses in the step, or graph, in which the model was applied; `like` is a symbol of
 * it.
 */
TUTTI_API tutti_sym tutti_added_value(tutti_model *model, const char *name, tutti_sym like);
#define tutti_added_value(...) TUTTI_AT(tutti_added_value(__VA_ARGS__))
/* tutti_inspected of a model: of its steps in fit, evaluate and predict, else of its tape. */
TUTTI_API tutti_status tutti_model_inspected(tutti_model *model, const char *name,
                                             tutti_tensor **ret_value);
/* After `update` (tutti_apply_gradients, tutti_minimize) brings the weights of the model that was
 * applied back under their constraints: a target for both. tutti_tape_minimize does it by itself.
 */
TUTTI_API tutti_sym tutti_apply_constraints(tutti_model *model, tutti_sym update);
#define tutti_apply_constraints(...) TUTTI_AT(tutti_apply_constraints(__VA_ARGS__))
/* Moves the model's trainable weights down the gradient of `loss`, on the model's tape, and brings
 * those with a constraint back under it. The optimizer's schedule and parameter groups count as in
 * fit. A step that would move nothing is an error, which says why. */
TUTTI_API void tutti_tape_minimize(tutti_tape *tape, tutti_optimizer optimizer, tutti_sym loss,
                                   tutti_model *model);

/* Weights in the order they were made: trainable ones and others (moving averages). */
typedef struct tutti_weight_info {
    const char *name; /* "dense/kernel" */
    tutti_type type;
    bool trainable;
} tutti_weight_info;
TUTTI_API int tutti_weight_count(tutti_model *model);
TUTTI_API tutti_status tutti_weight_at(tutti_model *model, int index, tutti_weight_info *ret_info);
/* A copy of a weight, and setting it. */
TUTTI_API tutti_status tutti_get_weight(tutti_model *model, const char *name,
                                        tutti_tensor **ret_value);
TUTTI_API tutti_status tutti_set_weight(tutti_model *model, const char *name, tutti_tensor *value);
/* The model's layer of that name, or NULL; of an imported model the file's node of that name (one
 * without a name has that of its first output). tutti_error_message then tells which layers there
 * are, and so does the job's error when that NULL is given to a function that takes a layer. */
TUTTI_API tutti_layer *tutti_find_layer(tutti_model *model, const char *name);
/* Whether a layer's weights are trained, with all that it holds where it is a model. It may be
 * changed at any time: the next step goes by it. Of weights by name: tutti_freeze; with rates and
 * decay of their own: parameter groups (tutti/optimizer.h). */
TUTTI_API void tutti_set_trainable(tutti_layer *layer, bool trainable);
/* The same by names: weights that a pattern chooses are trained no more, or again.
 *     tutti_freeze(m, "*");                          everything that there is
 *     tutti_unfreeze(m, "head, body/conv5_?");
 * '*' stands for any letters, '?' for one; several patterns have commas between them. A pattern is
 * the name of weights ("dense/kernel"), of layers or models inside with all that they hold
 * ("body"), or of an imported model's nodes ("body//conv1/Conv"). One that chooses nothing is
 * TUTTI_NOT_FOUND, with what there is. Of several calls, tutti_set_trainable among them, the last
 * one holds; of models inside each other the outermost that was asked decides. What is never
 * trained (moving averages) stays so; where it is frozen, batch norm keeps its averages and goes by
 * them. The model must have been built. */
TUTTI_API tutti_status tutti_freeze(tutti_model *model, const char *patterns);
TUTTI_API tutti_status tutti_unfreeze(tutti_model *model, const char *patterns);
/* A model that ends where a value of this one is made, with copies of its layers and weights and of
 * what was frozen: a body without its head. The value is named by a layer, by an output, or, of an
 * imported model, by the file's tensor or node; as the file has it, images channels first.
 * "dense:1" is a layer's second output. Models inside are shared, as layers. NULL after an error,
 * which is the job's and says what there is. */
TUTTI_API tutti_model *tutti_cut(tutti_model *model, const char *value);
/* As the setting .remat, also of a model that is a layer: what it makes inside is computed again
 * for the gradients and not kept. To be called before the first step. */
TUTTI_API void tutti_set_remat(tutti_layer *layer, bool remat);

/* Layers, shapes, parameters, FLOPs and planned memory as text (from malloc). The model must have
 * been built. `batch` is what activations are counted for; 0: one example. */
TUTTI_API tutti_status tutti_summary(tutti_model *model, int64_t batch, char **ret_text);
/* The same on standard output. */
TUTTI_API void tutti_print_summary(tutti_model *model, int64_t batch);

/* The model's name, its job, and TUTTI_OK or the first mistake made while building it. */
TUTTI_API const char *tutti_model_name(const tutti_model *model);
TUTTI_API tutti_job *tutti_model_job(const tutti_model *model);
TUTTI_API tutti_status tutti_model_check(const tutti_model *model);

/* ---- training ---- */

typedef struct tutti_output_loss {
    const char *output; /* its name */
    tutti_loss loss;
    double weight; /* 1 */
} tutti_output_loss;
#define TUTTI_LOSSES(...)                                                                          \
    {                                                                                              \
        sizeof((tutti_output_loss[]){__VA_ARGS__}) / sizeof(tutti_output_loss),                    \
            (const tutti_output_loss[])                                                            \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
typedef struct tutti_output_metric {
    const char *output; /* NULL: the first */
    tutti_metric metric;
} tutti_output_metric;
#define TUTTI_METRICS(...)                                                                         \
    {                                                                                              \
        sizeof((tutti_output_metric[]){__VA_ARGS__}) / sizeof(tutti_output_metric),                \
            (const tutti_output_metric[])                                                          \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

/* How a model is trained: tutti_compile(m, .optimizer = tutti_adam(), .loss = tutti_mse()). Before
 * fit, evaluate and train_on_batch; again to change it. */
typedef struct tutti_compile_options {
    size_t struct_size;
    tutti_optimizer optimizer; /* tutti_adam() */
    tutti_loss loss;           /* of a model with one output, or the same for all */
    struct {
        int count;
        const tutti_output_loss *list;
    } losses;            /* per output: TUTTI_LOSSES({"y", tutti_mse(), .weight = 0.5}, …) */
    const char *metrics; /* by name: "accuracy", "accuracy,auc", "department:accuracy" */
    struct {
        int count;
        const tutti_output_metric *list;
    } metric_list;        /* with settings: TUTTI_METRICS({NULL, tutti_auc(.thresholds = 100)}) */
    int accumulate;       /* batches whose gradients make one step; 1 */
    bool deterministic;   /* only kernels whose results do not depend on how a batch is cut */
    int64_t memory_limit; /* bytes that a step's values (activations, gradients) may take on each
                             device beside weights and slots; --set memory=64MiB; 0: any number.
                             Above it forward values are computed again for the gradients, those
                             first that free the most bytes for a FLOP */
} tutti_compile_options;
TUTTI_API tutti_status tutti_compile_with(tutti_model *model, const tutti_compile_options *options);
#define tutti_compile(...)                                                                         \
    TUTTI_AT(tutti_compile_with(TUTTI_ONE_(tutti_compile_options, __VA_ARGS__, )))

/* Values by epoch: of "loss", "val_loss", the metrics and "lr". */
typedef struct tutti_history tutti_history;
TUTTI_API int tutti_history_epochs(const tutti_history *history);
/* Of epoch 0, 1, …; -1 is the last. NaN when there is none. */
TUTTI_API double tutti_history_get(const tutti_history *history, const char *name, int epoch);
/* Did tutti_terminate_on_nan end the training? */
TUTTI_API bool tutti_history_diverged(const tutti_history *history);

#define TUTTI_LIST(...)                                                                            \
    {                                                                                              \
        (int)(sizeof((tutti_callback *[]){__VA_ARGS__}) / sizeof(tutti_callback *)),               \
            (tutti_callback *[])                                                                   \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
typedef struct tutti_fit_options {
    size_t struct_size;
    int epochs; /* --epochs, else this, else 1 */
    int initial_epoch;
    int64_t steps_per_epoch; /* --steps-per-epoch, else this; 0: until the data ends */
    tutti_dataset *validation;
    double validation_split; /* of the data's last batches, when no validation is given; not of data
                                that is shuffled anew in each epoch */
    int64_t validation_steps;
    int validation_every; /* epochs; 1 */
    struct {
        int count;
        const double *weights; /* by class: multiply the loss of its examples */
    } class_weights;
    struct {
        int count;
        tutti_callback *const *list;
    } callbacks; /* TUTTI_LIST(…); fit releases them */
    bool quiet;  /* no progress bar */
} tutti_fit_options;
/* Trains. The result belongs to the model; NULL after an error. Ctrl-C ends it after the step. */
TUTTI_API const tutti_history *tutti_fit_with(tutti_model *model, tutti_dataset *data,
                                              const tutti_fit_options *options);
#define tutti_fit(model, ...)                                                                      \
    TUTTI_AT(tutti_fit_with((model), TUTTI_ONE_(tutti_fit_options, __VA_ARGS__, )))

typedef struct tutti_evaluate_options {
    size_t struct_size;
    int64_t steps;
    bool quiet;
} tutti_evaluate_options;
/* Loss and metrics over the data, in inference form; *ret_logs is empty after a failure. */
TUTTI_API tutti_status tutti_evaluate_with(tutti_model *model, tutti_dataset *data,
                                           const tutti_evaluate_options *options,
                                           tutti_logs *ret_logs);
#define tutti_evaluate(model, data, ...)                                                           \
    TUTTI_AT(tutti_evaluate_with((model), (data),                                                  \
                                 TUTTI_OPTIONS_FIRST_(tutti_evaluate_options, __VA_ARGS__, )))

/* Outputs for a whole dataset, batches joined along axis 0; targets among its components are left
 * out. One tensor for each output, the caller's to release; NULL after a failure. */
TUTTI_API tutti_status tutti_predict(tutti_model *model, tutti_dataset *data, int count,
                                     tutti_tensor **ret_outputs);
/* For tensors at hand. Look at its status: inputs that the model cannot take are not the job's
 * error, so that a server goes on, unless several processes predict together. */
TUTTI_API tutti_status tutti_predict_on_batch(tutti_model *model, int input_count,
                                              tutti_tensor *const *inputs, int output_count,
                                              tutti_tensor **ret_outputs);
/* One step: inputs, then targets, then sample weights of each output (optional). */
TUTTI_API tutti_status tutti_train_on_batch(tutti_model *model, int count,
                                            tutti_tensor *const *tensors, tutti_logs *ret_logs);
TUTTI_API tutti_status tutti_test_on_batch(tutti_model *model, int count,
                                           tutti_tensor *const *tensors, tutti_logs *ret_logs);

/* The learning rate now of the optimizer that trains the model: compile's, or the one that a loop
 * applied on the model's tape; NaN before there is one. Setting it compiles nothing. It is an error
 * before there is an optimizer, with a schedule (which writes the rate in every step), and where
 * several are applied: then tutti_learning_rate gives the variable of the one that is meant. */
TUTTI_API double tutti_get_learning_rate(tutti_model *model);
TUTTI_API void tutti_set_learning_rate(tutti_model *model, double rate);
/* Swaps the weights with their running means (.ema_decay of the optimizer): before evaluating or
 * saving, and again before training goes on. */
TUTTI_API tutti_status tutti_swap_ema_weights(tutti_model *model);
/* Steps trained so far. */
TUTTI_API int64_t tutti_model_steps(const tutti_model *model);
/* Asks fit to end after this step; of several processes one is enough, and all of them end after
 * the same step, at most 16 later, or with the epoch. */
TUTTI_API void tutti_stop_training(tutti_model *model);

#ifdef __cplusplus
}
#endif
#endif
