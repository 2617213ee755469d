/* saver.h: one thread that writes files while training goes on, one piece of work at a time. A
 * child that was forked has a thread of its own. */
#ifndef TUTTI_NN_MODEL_SAVER_H
#define TUTTI_NN_MODEL_SAVER_H

#include "base/status.h"

typedef struct tutti_saver tutti_saver;
tutti_status tutti__saver_create(tutti_saver **ret);
void tutti__saver_destroy(tutti_saver *saver); /* waits; NULL is fine */
/* Starts a piece of work; the one before must have been waited for. Where no thread can be begun it
 * is done at once, and a line in the log says so. */
void tutti__saver_start(tutti_saver *saver, tutti_status (*work)(void *context), void *context);
/* Until nothing is being written, for TUTTI_SAVE_DEADLINE seconds (600) at most; the error of the
 * last piece of work, once. */
tutti_status tutti__saver_wait(tutti_saver *saver);

#endif
