/* common.h: what callbacks share: copies of texts, and a log that is watched. */
#ifndef TUTTI_NN_CALLBACKS_COMMON_H
#define TUTTI_NN_CALLBACKS_COMMON_H

#include <stdlib.h>
#include <string.h>

#include "nn/training/callback.h"
#include "tutti/callbacks.h"

/* A log whose best value is known. */
typedef struct tutti_monitor {
    char name[200];
    bool up; /* larger is better */
    double min_delta, best;
    bool any; /* `best` is one */
} tutti_monitor;

/* `name` NULL: "val_loss"; `mode` NULL: by the name. */
void tutti__monitor_begin(tutti_monitor *monitor, const char *name, const char *mode,
                          double min_delta);
/* Fails when the model has no such log. To be called as training begins. */
tutti_status tutti__monitor_check(const tutti_monitor *monitor, const tutti_model *model);
/* True when the epoch's logs have it; *ret_better: it is better than the best, which it becomes. */
bool tutti__monitor_see(tutti_monitor *monitor, const tutti_event *event, bool *ret_better);

/* For tutti_callback_kind: the best value, under "best". */
void tutti__monitor_remember(const tutti_monitor *monitor, tutti_logs *memory);
void tutti__monitor_recall(tutti_monitor *monitor, const tutti_logs *memory);

/* Values of all weights, to come back to. Zeroed is empty. */
typedef TUTTI_VEC(tutti_tensor *) tutti_kept_weights;
tutti_status tutti__weights_keep(tutti_model *model, tutti_kept_weights *kept);
tutti_status tutti__weights_bring_back(tutti_model *model, const tutti_kept_weights *kept);
void tutti__weights_drop(tutti_kept_weights *kept);

/* Is it a tutti_tensorboard that writes into this folder? */
bool tutti__is_board_in(const tutti_callback *callback, const char *folder);

/* The same as the public ones, into a text instead of standard output. */
tutti_callback *tutti__json_lines_into(tutti_text *into);
tutti_callback *tutti__progress_into(tutti_text *into, bool terminal, int columns);

#endif
