/* callback.h: what happens round a training: a table of functions, called at the begin and end of
 * training, epochs and batches. The library's own (progress bar, checkpoints, …) are the same kind
 * of thing as yours.
 *
 *     static void print_rate(void *self, tutti_event *event)
 *     {
 *         printf("learning rate %g\n", tutti_get_learning_rate(event->model));
 *     }
 *     tutti_fit(m, train, .callbacks = TUTTI_LIST(tutti_lambda_callback(.epoch_end = print_rate)));
 */
#ifndef TUTTI_CALLBACK_H
#define TUTTI_CALLBACK_H

#include "tutti/layer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Named numbers: "loss", "accuracy", "val_loss", "lr". */
#define TUTTI_LOGS 64
typedef struct tutti_logs {
    int count;
    struct {
        const char *name; /* lives as long as the model */
        double value;
    } items[TUTTI_LOGS];
} tutti_logs;
/* NaN when there is none of that name. */
TUTTI_API double tutti_logs_get(const tutti_logs *logs, const char *name);
/* Adds or replaces; what does not fit is dropped. */
TUTTI_API void tutti_logs_set(tutti_logs *logs, const char *name, double value);

/* Where the training stands. */
typedef struct tutti_event {
    tutti_model *model;
    int epoch, epochs;          /* from 0; the number in all */
    int64_t batch, batch_count; /* in this epoch, from 0; -1 when not known yet */
    int64_t step;               /* since the model was made, or restored */
    bool validating;            /* batches of an evaluation inside fit, or of tutti_evaluate */
    double seconds;             /* since the epoch began */
    double step_seconds;        /* of this batch, waiting for data included */
    double waited_seconds;      /* for data, in this epoch */
    int64_t examples;           /* seen in this epoch */
    const tutti_logs *logs; /* at the ends: of an epoch, all; of a batch, the running means; NULL
                               at the begins */
    bool interrupted;       /* at train end: by Ctrl-C */
} tutti_event;

/* Running means cost a read of the device: a batch's logs are filled when this is called. */
TUTTI_API const tutti_logs *tutti_event_logs(tutti_event *event);

typedef struct tutti_callback_kind {
    uint32_t struct_size;
    const char *name;
    /* All optional. A failure ends the training with the job's error. */
    tutti_status (*train_begin)(void *self, tutti_event *event);
    tutti_status (*train_end)(void *self, tutti_event *event);
    tutti_status (*epoch_begin)(void *self, tutti_event *event);
    tutti_status (*epoch_end)(void *self, tutti_event *event);
    tutti_status (*batch_begin)(void *self, tutti_event *event);
    tutti_status (*batch_end)(void *self, tutti_event *event);
    void (*destroy)(void *self);
    /* It saves the training, or goes on from what was saved: told before the others when training
     * begins and ends, after them when a batch or an epoch ends, so that what they changed is
     * saved.
     */
    bool saves;
    /* What it remembers from epoch to epoch: numbers, by names that are texts of the program. They
     * go into every checkpoint, and are given back, after all train_begin, when training goes on
     * from one. */
    void (*remember)(void *self, tutti_logs *memory);
    tutti_status (*recall)(void *self, tutti_event *event, const tutti_logs *memory);
    /* It prints or writes files of its own: told on the first process of a job only. Those that
     * save are told there too, and on the others when training begins, to go on from the same. */
    bool writes;
    /* Of one that saves: whether it will when it is told of the end of this batch. What replicas
     * hold each for themselves is put together before that. NULL: it may, every time. */
    bool (*due)(void *self, const tutti_event *event);
} tutti_callback_kind;

typedef struct tutti_callback tutti_callback;
/* `self` is given to every function and destroyed with the callback. NULL when memory is short. */
TUTTI_API tutti_callback *tutti_callback_make(const tutti_callback_kind *kind, void *self);
TUTTI_API void tutti_callback_release(tutti_callback *callback); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
