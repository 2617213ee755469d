/* schedule.h: what a schedule's file gives. One file each, ending in one descriptor.
 * tables: tutti_schedule_def */
#ifndef TUTTI_NN_OPTIMIZERS_SCHEDULE_H
#define TUTTI_NN_OPTIMIZERS_SCHEDULE_H

#include "graph/graph.h"
#include "nn/optimizers/schedules/setting.h"
#include "tutti/schedule.h"

/* Where a number stands in tutti_schedule.numbers. A list has as many as there are boundaries, and
 * `more`. */
typedef struct tutti_schedule_field {
    const char *key;
    int at;
    bool list;
    int more;
} tutti_schedule_field;

struct tutti_schedule_def {
    const char *name;
    const char *doc;                    /* the formula */
    const tutti_schedule_field *fields; /* ends with a NULL key; NULL: files cannot keep it */
    double (*at)(const tutti_schedule *schedule, double step);
    /* (optional) What is wrong, or NULL. */
    const char *(*check)(const tutti_schedule *schedule);
};

/* All numbers by key; the values point into *schedule. Returns how many; writes at most `capacity`.
 * TUTTI_SCHEDULE_NUMBERS are enough. */
int tutti__schedule_settings(const tutti_schedule *schedule, int capacity, tutti_setting *ret);
/* A schedule from its kind ("cosine_decay") and numbers by key. Keys that are missing are 0; one
 * that the kind has not is an error. */
tutti_status tutti__schedule_make(const char *kind, int count, const tutti_setting *settings,
                                  tutti_schedule *ret_schedule);
/* A kind by name, or NULL. */
const tutti_schedule_def *tutti__schedule_find(const char *kind);

/* The rate of update number `updates` (i64 [], 1 in the first step), f32 []. */
tutti_sym tutti__schedule_rate(const tutti_schedule *schedule, tutti_sym updates);

/* ---- schedules/function.c: C functions by numbers of this process ---- */
/* The same number for the same function and context. */
tutti_status tutti__schedule_function_note(const tutti_schedule *schedule, int64_t *ret_number);
/* Fills in fn and context; NOT_FOUND for a number that was never given out. */
tutti_status tutti__schedule_function_find(int64_t number, tutti_schedule *schedule);

#endif
