/* inverse_decay.c: the inverse of time. */
#include <math.h>

#include "nn/schedule.h"

enum { RATE, STEPS, DECAY, STAIRCASE };

static double at(const tutti_schedule *s, double step)
{
    double time = step / s->numbers[STEPS];
    time = s->numbers[STAIRCASE] != 0 ? floor(time) : time;
    return s->numbers[RATE] / (1 + s->numbers[DECAY] * time);
}

static const char *check(const tutti_schedule *s)
{
    return s->numbers[STEPS] > 0 ? NULL : "decay_steps must be above 0";
}

extern const tutti_schedule_def tutti_schedule_def_inverse_decay;

tutti_schedule tutti_inverse_decay_make(const tutti_inverse_decay_settings *settings)
{
    return (tutti_schedule){.def = &tutti_schedule_def_inverse_decay,
                            .numbers = {[RATE] = settings->learning_rate,
                                        [STEPS] = settings->decay_steps,
                                        [DECAY] = tutti__setting_or(settings->decay_rate, 0.5),
                                        [STAIRCASE] = settings->staircase}};
}

const tutti_schedule_def tutti_schedule_def_inverse_decay = {
    .name = "inverse_decay",
    .doc = "rate / (1 + decay_rate step / decay_steps), the quotient rounded down with staircase",
    .fields = (const tutti_schedule_field[]){{"learning_rate", RATE},
                                             {"decay_steps", STEPS},
                                             {"decay_rate", DECAY},
                                             {"staircase", STAIRCASE},
                                             {NULL}},
    .at = at,
    .check = check,
};
