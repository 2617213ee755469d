/* callback.h: callbacks from inside, and what a fit holds while it runs. */
#ifndef TUTTI_NN_TRAINING_CALLBACK_H
#define TUTTI_NN_TRAINING_CALLBACK_H

#include "forecast/forecast.h"
#include "nn/training/trainer.h"

struct tutti_callback {
    const tutti_callback_kind *kind;
    void *self;
};

/* Where the time went: shares of the whole, means over the processes. */
typedef struct tutti_fit_account {
    bool known;
    int64_t began; /* ns */
    double waited; /* seconds for data, in this process */
    double input, compute, communication, waiting;
    double for_slowest; /* of `waiting` */
    int slowest;        /* replica; -1: none */
    int64_t meetings, came_last;
} tutti_fit_account;

/* Where a process's examples hold something that is not finite; component -1: nowhere. */
typedef struct tutti_odd_number {
    int64_t component, row, step;
} tutti_odd_number;

typedef struct tutti_fit {
    tutti_event event; /* first, so that an event's address is the fit's */
    tutti_model *model;
    TUTTI_VEC(tutti_callback *) callbacks; /* owned */
    tutti_logs logs;
    int done;             /* epochs of the whole training, also before it was resumed */
    int64_t samples;      /* examples of the same */
    int64_t resumed;      /* the step that it was resumed at; 0: it was not */
    bool goes_on;         /* it continues a training that was cut off, or was asked to */
    tutti_logs last;      /* of the last epoch */
    int64_t batch;        /* rows of the data's batches, over all replicas; 0: not known */
    tutti_dataset *data;  /* to train on; NULL: of an evaluation */
    bool logs_read;       /* for the batch at hand */
    bool validates;       /* there is validation data */
    bool infinite;        /* the loss is, since some step of this epoch, */
    tutti_odd_number odd; /* whose examples of this process were looked at */
    int64_t epoch_started, waited_before;
    bool accounts; /* somebody is shown what a distributed training will take, and what it took */
    tutti_forecast *forecast;  /* worked out before the first step */
    int forecasts;             /* so many were; a loop may have several programs that train */
    const char *program;       /* of a loop: what the forecast is of, */
    tutti_strategy *strategy;  /* and how that is spread */
    char chosen[256];          /* what --strategy auto came to, and why; "" */
    tutti_fit_account account; /* after the last one */
} tutti_fit;

/* Which of a callback's functions: an offset into its kind. */
#define TUTTI_AT_EVENT(name) offsetof(tutti_callback_kind, name)
tutti_status tutti__fit_tell(tutti_fit *fit, size_t which);
/* diverge.c: after a step with this element (NULL: after the last): fails once the loss is no
 * number. */
tutti_status tutti__fit_look_for_nan(tutti_fit *fit, const tutti_element *element);
/* Takes the callback, also on failure. */
tutti_status tutti__fit_add(tutti_fit *fit, tutti_callback *callback);
void tutti__fit_end(tutti_fit *fit);

/* ---- pass.c ---- */
/* Seconds since `start`. */
double tutti__fit_since(int64_t start);
/* Batches of one pass from fit->event.batch on, with their events. Ends with the data, before batch
 * `limit` (> 0), or, of a training, when it is asked to stop. */
tutti_status tutti__fit_batches(tutti_fit *fit, tutti_iterator *iterator,
                                const tutti_wiring *wiring, int64_t limit, bool training);
/* Before the first epoch and after each: whether any process asked to stop. All have to ask. */
tutti_status tutti__fit_look_for_stop(const tutti_fit *fit);
/* Of a pass of at most `limit` (> 0); -1: not known. */
int64_t tutti__count_batches(const tutti_model *model, tutti_dataset *data, bool evaluates,
                             int64_t limit);

/* ---- memory.c ---- */
bool tutti__callback_saves(const tutti_callback *callback);
/* Whether it will save when it is told of the end of this batch. */
bool tutti__callback_due(const tutti_callback *callback, const tutti_event *event);
/* What the callbacks remember, as text from malloc; and back. */
tutti_status tutti__fit_remember(const tutti_fit *fit, char **ret_text);
tutti_status tutti__fit_recall(tutti_fit *fit, const char *text);

/* ---- account.c ---- */
/* Before and after the steps of a fit, on all processes. */
void tutti__fit_account_begin(tutti_fit *fit);
tutti_status tutti__fit_account_end(tutti_fit *fit);
/* "time: input 2 %, …", appended; nothing when it is not known. */
void tutti__fit_account_text(const tutti_fit *fit, tutti_text *text);

/* ---- auto.c ---- */
/* With --strategy auto: of what the job has, the strategy whose step is predicted to be shortest.
 * `fit->forecast` is that of the strategy in force, then of the one that is chosen. */
tutti_status tutti__fit_choose(tutti_fit *fit, tutti_step_function *function, int64_t batch,
                               int count, tutti_tensor *const *tensors);

/* What flags ask for, and the progress bar: progress, --json, --logs, --save, --resume. */
tutti_status tutti__fit_add_standard(tutti_fit *fit, bool quiet);

/* Prints a forecast in place of the training. */
tutti_callback *tutti__plan_printer(void);

#endif
