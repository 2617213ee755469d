/* decay.h: what the decays over time share: a rate, the steps that are one unit of time, a number
 * of the decay, and whether only whole units count. */
#ifndef TUTTI_NN_OPTIMIZERS_SCHEDULES_DECAY_H
#define TUTTI_NN_OPTIMIZERS_SCHEDULES_DECAY_H

#include <math.h>

#include "nn/optimizers/schedule.h"

enum { RATE, STEPS, DECAY, STAIRCASE };

static inline double tutti__decay_time(const tutti_schedule *s, double step)
{
    double time = step / s->numbers[STEPS];
    return s->numbers[STAIRCASE] != 0 ? floor(time) : time;
}

static inline const char *tutti__decay_check(const tutti_schedule *s)
{
    return s->numbers[STEPS] > 0 ? NULL : "decay_steps must be above 0";
}

#define TUTTI_DECAY_FIELDS                                                                         \
    (const tutti_schedule_field[])                                                                 \
    {                                                                                              \
        {"learning_rate", RATE}, {"decay_steps", STEPS}, {"decay_rate", DECAY},                    \
            {"staircase", STAIRCASE},                                                              \
        {                                                                                          \
            NULL                                                                                   \
        }                                                                                          \
    }

#endif
