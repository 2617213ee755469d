/* exponential_decay.c: a constant factor over time. */
#include <math.h>

#include "nn/schedule.h"

enum { RATE, STEPS, DECAY, STAIRCASE };

static double at(const tutti_schedule *s, double step)
{
    double time = step / s->numbers[STEPS];
    time = s->numbers[STAIRCASE] != 0 ? floor(time) : time;
    return s->numbers[RATE] * pow(s->numbers[DECAY], time);
}

static const char *check(const tutti_schedule *s)
{
    return s->numbers[STEPS] > 0 ? NULL : "decay_steps must be above 0";
}

extern const tutti_schedule_def tutti_schedule_def_exponential_decay;

tutti_schedule tutti_exponential_decay_make(const tutti_exponential_decay_settings *settings)
{
    return (tutti_schedule){.def = &tutti_schedule_def_exponential_decay,
                            .numbers = {[RATE] = settings->learning_rate,
                                        [STEPS] = settings->decay_steps,
                                        [DECAY] = tutti__setting_or(settings->decay_rate, 0.96),
                                        [STAIRCASE] = settings->staircase}};
}

const tutti_schedule_def tutti_schedule_def_exponential_decay = {
    .name = "exponential_decay",
    .doc = "rate decay_rate^(step / decay_steps), the exponent rounded down with staircase",
    .fields = (const tutti_schedule_field[]){{"learning_rate", RATE},
                                             {"decay_steps", STEPS},
                                             {"decay_rate", DECAY},
                                             {"staircase", STAIRCASE},
                                             {NULL}},
    .at = at,
    .check = check,
};
