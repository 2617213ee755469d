/* schedule.h: what a schedule's file gives. One file each, ending in one descriptor.
 * tables: tutti_schedule_def */
#ifndef TUTTI_NN_OPTIMIZERS_SCHEDULE_H
#define TUTTI_NN_OPTIMIZERS_SCHEDULE_H

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

#endif
