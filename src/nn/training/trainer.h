/* trainer.h: what compile makes of a model: the training step and the test step as targets of the
 * work graph, with loss and metrics as sums in variables.
 *
 * A form is built when the first data shows the types of the targets. Variables of the training
 * (sums, loss scale) are named "training/…"; the optimizer's slots are slots of the weights.
 */
#ifndef TUTTI_NN_TRAINING_TRAINER_H
#define TUTTI_NN_TRAINING_TRAINER_H

#include "nn/losses/loss.h"
#include "nn/metrics/metric.h"
#include "nn/model/model.h"

/* The loss of one output. */
typedef struct tutti_goal {
    int output;
    tutti_loss loss;
    double weight;
    char *name; /* in the logs: "loss" when it is the only one, else "department_loss" */
} tutti_goal;

/* A mean that is shown: the loss, the loss of an output, a metric. */
typedef struct tutti_tracked {
    char *name;          /* "accuracy" */
    char *val_name;      /* "val_accuracy" */
    tutti_metric metric; /* def NULL: a loss, kept as sum and weight */
    int output;
    bool of_every;     /* output: named without one */
    bool loss;         /* of what layers add: not a metric */
    const char *added; /* the name that a layer gave it, or NULL; and how many of that name came */
    int before;        /* before it */
    int sum_count;
    tutti_sym sums[2][TUTTI_METRIC_SUMS]; /* of the training form, of the test form */
} tutti_tracked;

/* One way to run a batch. */
typedef struct tutti_step_function {
    bool built, weighted; /* weights of examples are fed too */
    bool training;
    TUTTI_VEC(tutti_sym) feeds; /* inputs, targets, weights */
    tutti_sym target;           /* the whole step */
    tutti_sym gather;           /* only adds the gradients up; when batches are accumulated */
    tutti_building building;
} tutti_step_function;

enum { TUTTI_STEP_FUNCTIONS = 4 }; /* training, test; each without and with weights */

struct tutti_trainer {
    const char *file; /* where tutti_compile stands in the user's program, or NULL */
    int line;
    tutti_optimizer optimizer;
    TUTTI_VEC(tutti_goal) goals;
    bool same_for_all; /* one loss is every output's, of which the model has not told how many */
    TUTTI_VEC(tutti_tracked) tracked;
    bool reset_later[2]; /* the training's sums, the test's: a checkpoint may hold values of sums
                            that no form has yet */
    tutti_step_function functions[TUTTI_STEP_FUNCTIONS];
    int accumulate, gathered;    /* batches of a step; of the step at hand */
    double rate;                 /* the learning rate, as last set */
    int64_t steps;               /* batches trained on */
    int64_t samples;             /* examples trained on by tutti_fit */
    tutti_logs last;             /* of the last epoch; names live with the model */
    int64_t updates;             /* of the weights: fewer when batches are accumulated */
    bool stop;                   /* after this step, on all processes in the same way */
    bool asks_stop;              /* this process does; the others hear of it some steps later */
    bool interrupted;            /* by a signal to any process of the job */
    int64_t asked;               /* the step from which on processes ask each other again */
    tutti_tensor *class_weights; /* f32 [classes], or NULL */
    int epoch;                   /* after the last step: its epoch, */
    int64_t batch;               /* the batches of it that are done, */
    bool ended;                  /* callbacks were told of that epoch's end */
    bool data_ended;             /* which ended with the data, not after so many steps, */
    tutti_position position;     /* and where the data stands */
    bool resumed;                /* `position` was restored: fit goes on from there */
    bool restored;               /* from a checkpoint, some time ago, */
    uint64_t identity;           /* by which that one is known; 0: from none */
    struct tutti_fit *fit;       /* that is under way, or NULL */
    char *memory;                /* of its callbacks: from a checkpoint, or of the last fit */
    bool recalls;                /* the next fit gives `memory` to its callbacks */
    tutti_history *history;
    tutti_sym rate_variable; /* found on first use */
    tutti_sym swap;          /* of weights and running means; made on first use */
};

/* ---- compile.c ---- */
/* Once the outputs of a subclassed model are known: losses and metrics of all are those that
 * tutti_compile was given for the first. */
tutti_status tutti__goals_of_outputs(tutti_model *model);

/* ---- learning_rate.c ---- */
/* After compiling anew: rate and schedule begin as the optimizer says, also where the state has
 * those of an earlier training. */
tutti_status tutti__rate_begin(const tutti_model *model);

/* ---- widen.c ---- */
/* The types that a form is fed: those it has, widened where these tensors are of other shapes.
 * *ret_new: it has to be built for them. */
tutti_status tutti__step_function_types(const tutti_model *model,
                                        const tutti_step_function *function, int count,
                                        tutti_tensor *const *tensors, tutti_type *ret_types,
                                        bool *ret_new);
/* Forgets what was built; it is built again when it is needed. */
void tutti__step_function_drop(tutti_step_function *function);

/* ---- step.c ---- */
/* The form for these tensors: inputs, targets and, when there are more, weights. */
tutti_status tutti__step_function_for(tutti_model *model, bool training, int count,
                                      tutti_tensor *const *tensors, tutti_step_function **ret);
/* Runs one batch; nothing is read back. `batch` > 0: the tensors hold this process's rows, of so
 * many; `own`: as many as processes agreed on. */
tutti_status tutti__step_function_run(tutti_model *model, tutti_step_function *function,
                                      int64_t batch, bool own, int count,
                                      tutti_tensor *const *tensors);
/* Compiles what that would run, if it is not, and rehearses it. An engine that is not the model's
 * takes whole batches. */
struct tutti_rehearsal;
tutti_status tutti__step_function_rehearse(tutti_model *model, tutti_engine *engine,
                                           const tutti_step_function *function, int64_t batch,
                                           bool own, int count, tutti_tensor *const *tensors,
                                           struct tutti_rehearsal *ret);

/* ---- track.c ---- */
tutti_status tutti__track(tutti_model *model, const char *name, int output,
                          const tutti_metric *metric);
/* The item of what a layer adds under this name, after `before` others of it: made when it is not
 * there, a loss behind the losses. */
tutti_status tutti__track_added(tutti_model *model, const char *name, int before, bool loss,
                                int *ret_index);
/* Adds a batch's share to the sums of item `index`; the assignments are appended to `updates`. */
void tutti__track_build(tutti_model *model, tutti_step_function *function, int index,
                        tutti_sym const *adds);
tutti_status tutti__track_reset(tutti_model *model, bool training);
/* Reads every sum and adds the values to the logs; names of the test form begin with val_ if asked.
 */
tutti_status tutti__track_read(tutti_model *model, bool training, bool val, tutti_logs *logs);
/* The sum of the losses of this epoch of training; 0 before its first step. */
tutti_status tutti__track_loss(const tutti_model *model, double *ret);

/* ---- batch.c ---- */
/* The components of an element in the order that forms are fed: inputs, targets, weights. Borrowed.
 */
typedef struct tutti_wiring {
    int count; /* of tensors to feed */
    int order[TUTTI_MAX_COMPONENTS];
    int inputs; /* how many of them are inputs */
} tutti_wiring;
tutti_status tutti__wire(tutti_model *model, const tutti_dataset_info *info, bool targets,
                         tutti_wiring *ret);
/* ---- targets.c ---- */
/* Whether targets are of the types that the losses take; the message names their component. */
tutti_status tutti__check_targets(const tutti_model *model, const tutti_dataset_info *info,
                                  const tutti_wiring *wiring);
/* Of a batch: labels that are floats, for losses of classes, are whole. */
tutti_status tutti__check_class_numbers(const tutti_model *model, int inputs, int count,
                                        tutti_tensor *const *tensors);
/* Builds the model for the data, if it is not built; gives the wiring. */
tutti_status tutti__model_meet(tutti_model *model, tutti_dataset *data, bool targets,
                               tutti_wiring *ret);
/* Whether the losses take the data's targets: once processes know that they train alike. */
tutti_status tutti__model_meet_targets(tutti_model *model, tutti_dataset *data,
                                       const tutti_wiring *wiring);
tutti_status tutti__need_trainer(tutti_model *model);
/* Fails because `what`, "the data to train on", gives nothing; it names the part of the pipeline
 * that leaves nothing of what comes to it, as a batch that drops its remainder, where that is
 * known. */
tutti_status tutti__no_elements(const tutti_dataset *data, const char *what);

/* ---- history.c ---- */
tutti_status tutti__history_begin(tutti_trainer *trainer);
tutti_status tutti__history_add(tutti_history *history, const tutti_logs *logs);
void tutti__history_destroy(tutti_history *history);
void tutti__history_diverge(tutti_history *history);
/* Numbers as a JSON object, from malloc; and back, with names in the arena. */
tutti_status tutti__logs_write(const tutti_logs *logs, char **ret_text);
tutti_status tutti__logs_read(const char *text, tutti_arena *names, tutti_logs *ret);

/* ---- evaluate.c ---- */
struct tutti_fit;
/* Runs the test form over the data; `fit` gets its events, or NULL. */
tutti_status tutti__evaluate(tutti_model *model, tutti_dataset *data, int64_t steps,
                             struct tutti_fit *fit, tutti_logs *ret_logs);

#endif
