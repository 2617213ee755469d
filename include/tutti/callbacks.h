/* callbacks.h: the ready-made callbacks.
 *
 *     tutti_fit(m, train, .epochs = 12, .validation = test,
 *               .callbacks = TUTTI_LIST(tutti_tensorboard("logs"),
 *                                       tutti_checkpoint("ckpt/{epoch}", .keep = 3),
 *                                       tutti_early_stopping(.patience = 2),
 *                                       tutti_learning_rate_scheduler(decay)));
 *
 * Each call makes a callback that the fit it is given to releases; NULL when memory is short, which
 * fit reports. Texts are copied. Functions and contexts must outlive the fit. */
#ifndef TUTTI_CALLBACKS_H
#define TUTTI_CALLBACKS_H

#include "tutti/callback.h"
#include "tutti/schedule.h"
#include "tutti/tape.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `monitor` names what is watched ("val_loss"): one of the logs. `mode` is "min" or "max"; by
 * default larger is better for accuracy, AUC, precision, recall and F1, and smaller for the rest.
 * Epochs whose logs lack the name, as those without validation do, are passed over; a name that the
 * model will never have fails the training when it begins. */

/* Saves a checkpoint (weights, optimizer, step, data position: checkpoint.h) at the end of every
 * epoch, or every so many steps, while training goes on. {epoch} (from 1) and {step} in the path
 * are replaced. After Ctrl-C the present state is saved too. */
typedef struct tutti_checkpoint_options {
    size_t struct_size;
    int64_t every_steps; /* 0: every epoch */
    bool best_only;      /* at ends of epochs that are the best so far */
    const char *monitor; /* "val_loss" */
    const char *mode;
    int keep;          /* newest files kept; 0: all */
    bool weights_only; /* tutti_save_weights */
} tutti_checkpoint_options;
TUTTI_API tutti_callback *tutti_checkpoint_with(const char *path,
                                                const tutti_checkpoint_options *options);
#define tutti_checkpoint(path, ...)                                                                \
    tutti_checkpoint_with((path), TUTTI_OPTIONS(tutti_checkpoint_options, __VA_ARGS__))

/* Backs the training up in a folder of its own and, when the folder holds a backup as training
 * begins, goes on from there. The folder is emptied when training has come to its end, unless it
 * was interrupted. */
typedef struct tutti_backup_options {
    size_t struct_size;
    int64_t every_steps; /* 0: every epoch */
    bool keep;           /* leaves the last backup there at the end */
} tutti_backup_options;
TUTTI_API tutti_callback *tutti_backup_with(const char *folder,
                                            const tutti_backup_options *options);
#define tutti_backup(folder, ...)                                                                  \
    tutti_backup_with((folder), TUTTI_OPTIONS(tutti_backup_options, __VA_ARGS__))

/* Files for TensorBoard in <folder>/train and <folder>/validation: epoch_loss and the other logs by
 * epoch, the model's summary as text. */
typedef struct tutti_tensorboard_options {
    size_t struct_size;
    int histograms;      /* of every weight, each so many epochs; 0: none */
    int64_t every_steps; /* batch_loss, … each so many steps; 0: none */
    bool profile;        /* the first steps (200 at most) and their operators, for the profile page
                            (trace viewer, overview, operator statistics) and for Perfetto:
                            plugins/profile/<time>/<host>.xplane.pb and .trace.json.gz */
} tutti_tensorboard_options;
TUTTI_API tutti_callback *tutti_tensorboard_with(const char *folder,
                                                 const tutti_tensorboard_options *options);
#define tutti_tensorboard(folder, ...)                                                             \
    tutti_tensorboard_with((folder), TUTTI_OPTIONS(tutti_tensorboard_options, __VA_ARGS__))

/* One line an epoch: epoch (from 0) and the logs, sorted by name, under a line of names. A resumed
 * training goes on in its file: lines of epochs that are trained again are replaced. */
typedef struct tutti_csv_logger_options {
    size_t struct_size;
    bool append;    /* to what is in the file; otherwise it is written anew */
    char separator; /* ',' */
} tutti_csv_logger_options;
TUTTI_API tutti_callback *tutti_csv_logger_with(const char *path,
                                                const tutti_csv_logger_options *options);
#define tutti_csv_logger(path, ...)                                                                \
    tutti_csv_logger_with((path), TUTTI_OPTIONS(tutti_csv_logger_options, __VA_ARGS__))

/* Ends training after `patience` epochs without betterment. */
typedef struct tutti_early_stopping_options {
    size_t struct_size;
    const char *monitor; /* "val_loss" */
    const char *mode;
    int patience;      /* 0: at the first epoch that is not better */
    double min_delta;  /* what counts as better: by more than this */
    bool restore_best; /* the weights of the best epoch, in the end */
    int start_from;    /* epochs before this one (from 0) do not count */
} tutti_early_stopping_options;
TUTTI_API tutti_callback *tutti_early_stopping_with(const tutti_early_stopping_options *options);
#define tutti_early_stopping(...)                                                                  \
    tutti_early_stopping_with(TUTTI_OPTIONS(tutti_early_stopping_options, __VA_ARGS__))

/* Multiplies the learning rate by `factor` after `patience` epochs without betterment. */
typedef struct tutti_reduce_lr_on_plateau_options {
    size_t struct_size;
    const char *monitor; /* "val_loss" */
    const char *mode;
    double factor;    /* 0.1 */
    int patience;     /* 10 */
    double min_delta; /* 1e-4 */
    int cooldown;     /* epochs after a change that do not count */
    double min_lr;
} tutti_reduce_lr_on_plateau_options;
TUTTI_API tutti_callback *
tutti_reduce_lr_on_plateau_with(const tutti_reduce_lr_on_plateau_options *options);
#define tutti_reduce_lr_on_plateau(...)                                                            \
    tutti_reduce_lr_on_plateau_with(TUTTI_OPTIONS(tutti_reduce_lr_on_plateau_options, __VA_ARGS__))

/* The learning rate of each epoch (from 0): fn(epoch); of each step (from 0): a schedule's. */
typedef double tutti_learning_rate_fn(int epoch);
TUTTI_API tutti_callback *tutti_learning_rate_by_epoch(tutti_learning_rate_fn *fn);
TUTTI_API tutti_callback *tutti_learning_rate_by_step(tutti_schedule schedule);
/* Either: tutti_learning_rate_scheduler(decay),
 * tutti_learning_rate_scheduler(tutti_cosine_decay(…)). */
#ifdef __cplusplus
#define tutti_learning_rate_scheduler(rate) tutti_learning_rate_by_epoch(rate)
#else
#define tutti_learning_rate_scheduler(...)                                                         \
    _Generic((__VA_ARGS__), tutti_schedule                                                         \
             : tutti_learning_rate_by_step, default                                                \
             : tutti_learning_rate_by_epoch)(__VA_ARGS__)
#endif

/* Your functions, each optional: tutti_lambda_callback(.epoch_end = print_rate). */
typedef void tutti_event_fn(void *context, tutti_event *event);
typedef struct tutti_lambda_callback_options {
    size_t struct_size;
    tutti_event_fn *train_begin, *train_end, *epoch_begin, *epoch_end, *batch_begin, *batch_end;
    void *context; /* given to each */
} tutti_lambda_callback_options;
TUTTI_API tutti_callback *tutti_lambda_callback_with(const tutti_lambda_callback_options *options);
#define tutti_lambda_callback(...)                                                                 \
    tutti_lambda_callback_with(TUTTI_OPTIONS(tutti_lambda_callback_options, __VA_ARGS__))

/* Ends training after the first batch whose loss is NaN or infinite, with a line in the log; that
 * is no error: tutti_history_diverged tells it. The loss is read after every step. */
TUTTI_API tutti_callback *tutti_terminate_on_nan(void);

/* What fit shows by itself unless it is quiet: a live bar on a terminal, one line an epoch
 * elsewhere. */
TUTTI_API tutti_callback *tutti_progress_bar(void);
/* What --json gives: on standard output one JSON object an epoch, with epoch (from 1), loss, …, lr,
 * seconds and samples_per_second, and a last one with "done": true. */
TUTTI_API tutti_callback *tutti_json_lines(void);

/* ---- the same display for hand-written loops ----
 *
 *     tutti_progress *p = tutti_progress_open(job, 3, steps);
 *     while (tutti_progress_epoch(p)) {
 *         TUTTI_EACH_BATCH(train, x, y) {
 *             …
 *             tutti_progress_mean(p, "loss", tutti_scalar_value(loss));
 *             if (!tutti_progress_step(p, rows))
 *                 break;
 *         }
 *         tutti_progress_set(p, "val_accuracy", accuracy);
 *     }
 *
 * Shows what fit shows: the bar, plain lines, JSON or nothing, and with --logs writes files for
 * TensorBoard. Ctrl-C ends the loop after the step, of several processes that train what is named
 * in the options after the same one: all have to call tutti_progress_epoch and tutti_progress_step
 * alike. These two look for it, and tutti_interrupted and tutti_job_ok tell of it when they have
 * (all processes'). The job owns it; NULL is fine everywhere. */
typedef struct tutti_progress tutti_progress;
/* Whose state --save and --resume keep: one of them, or none. With --save FILE the loop's state is
 * saved as FILE.checkpoint after the first step, every epoch, every N steps with --set
 * save_every=N, every TUTTI_SAVE_SECONDS and at Ctrl-C: variables with their optimizers, random
 * numbers, queues, how far the job's datasets are read by TUTTI_EACH_BATCH and tutti_next_batch,
 * and the numbers that are shown. At the end FILE.safetensors gets the variables that are trained,
 * or tutti_save_model the model. With --resume the loop goes on from there, in the middle of an
 * epoch, to the same bits: tutti_progress_epoch begins with the epoch that was under way, and
 * datasets give what comes next. What the program keeps elsewhere follows from
 * tutti_progress_steps. To be called when the datasets are made, and after variables were
 * initialised by a run. */
typedef struct tutti_progress_options {
    size_t struct_size;
    tutti_session *session;
    tutti_eager *eager;
    tutti_model *model;
} tutti_progress_options;
/* --epochs and --steps-per-epoch win over what is given; `steps` 0: not known. */
TUTTI_API tutti_progress *tutti_progress_open_with(tutti_job *job, int epochs, int64_t steps,
                                                   const tutti_progress_options *options);
/* tutti_progress_open(job, 3, steps, .session = session) */
#define tutti_progress_open(job, epochs, steps, ...)                                               \
    tutti_progress_open_with((job), (epochs), (steps),                                             \
                             TUTTI_OPTIONS(tutti_progress_options, __VA_ARGS__))
/* Ends the epoch that was under way and begins the next. False when there is none, or when the job
 * should not go on. */
TUTTI_API bool tutti_progress_epoch(tutti_progress *progress);
/* A step with so many examples is over. False when the epoch should end: after its steps, and when
 * the job should not go on. A step of the model's or the given tape that failed is not counted and
 * not saved: it is the job's error, and the loop ends. */
TUTTI_API bool tutti_progress_step(tutti_progress *progress, int64_t examples);
/* Adds to an epoch's mean, and sets a number of the epoch. */
TUTTI_API void tutti_progress_mean(tutti_progress *progress, const char *name, double value);
TUTTI_API void tutti_progress_set(tutti_progress *progress, const char *name, double value);
/* A number of the last epoch, also of one before --resume; NaN when there is none. */
TUTTI_API double tutti_progress_get(const tutti_progress *progress, const char *name);
/* Steps done in all, also before --resume. */
TUTTI_API int64_t tutti_progress_steps(const tutti_progress *progress);
/* The epoch under way, from 0. */
TUTTI_API int tutti_progress_current_epoch(const tutti_progress *progress);

#ifdef __cplusplus
}
#endif
#endif
