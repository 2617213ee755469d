/* callback.h: callbacks from inside, and what a fit holds while it runs. */
#ifndef TUTTI_NN_CALLBACK_H
#define TUTTI_NN_CALLBACK_H

#include "nn/trainer.h"

struct tutti_callback {
    const tutti_callback_kind *kind;
    void *self;
};

typedef struct tutti_fit {
    tutti_event event; /* first, so that an event's address is the fit's */
    tutti_model *model;
    TUTTI_VEC(tutti_callback *) callbacks; /* owned */
    tutti_logs logs;
    int64_t batch;  /* rows of the data's batches, over all replicas; 0: not known */
    bool logs_read; /* for the batch at hand */
    bool validates; /* there is validation data */
    int64_t epoch_started, waited_before;
} tutti_fit;

/* Which of a callback's functions: an offset into its kind. */
#define TUTTI_AT_EVENT(name) offsetof(tutti_callback_kind, name)
tutti_status tutti__fit_tell(tutti_fit *fit, size_t which);
/* Takes the callback, also on failure. */
tutti_status tutti__fit_add(tutti_fit *fit, tutti_callback *callback);
void tutti__fit_end(tutti_fit *fit);

/* ---- memory.c ---- */
bool tutti__callback_saves(const tutti_callback *callback);
/* What the callbacks remember, as text from malloc; and back. */
tutti_status tutti__fit_remember(const tutti_fit *fit, char **ret_text);
tutti_status tutti__fit_recall(tutti_fit *fit, const char *text);

/* What flags ask for, and the progress bar: progress, --json, --logs, --save, --resume. */
tutti_status tutti__fit_add_standard(tutti_fit *fit, bool quiet);

/* Prints a forecast in place of the training. */
tutti_callback *tutti__plan_printer(void);

#endif
