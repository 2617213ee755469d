/* polynomial_decay.c: a power of what is left of the time. */
#include <math.h>

#include "nn/optimizers/schedule.h"

enum { RATE, STEPS, END, POWER, CYCLE };

static double at(const tutti_schedule *s, double step)
{
    double steps = s->numbers[STEPS];
    if (s->numbers[CYCLE] != 0)
        steps *= step > 0 ? ceil(step / steps) : 1;
    double left = 1 - (step < steps ? step : steps) / steps;
    return (s->numbers[RATE] - s->numbers[END]) * pow(left, s->numbers[POWER]) + s->numbers[END];
}

static const char *polynomial_decay_check(const tutti_schedule *s)
{
    return s->numbers[STEPS] > 0 ? NULL : "decay_steps must be above 0";
}

extern const tutti_schedule_def tutti_schedule_def_polynomial_decay;

tutti_schedule tutti_polynomial_decay_with(const tutti_polynomial_decay_settings *settings)
{
    return (tutti_schedule){.def = &tutti_schedule_def_polynomial_decay,
                            .numbers = {[RATE] = settings->learning_rate,
                                        [STEPS] = settings->decay_steps,
                                        [END] = tutti__setting_or(settings->end_rate, 1e-4),
                                        [POWER] = tutti__setting_or(settings->power, 1),
                                        [CYCLE] = settings->cycle}};
}

const tutti_schedule_def tutti_schedule_def_polynomial_decay = {
    .name = "polynomial_decay",
    .doc = "(rate - end) (1 - step / decay_steps)^power + end",
    .fields = (const tutti_schedule_field[]){{"learning_rate", RATE},
                                             {"decay_steps", STEPS},
                                             {"end_rate", END},
                                             {"power", POWER},
                                             {"cycle", CYCLE},
                                             {NULL}},
    .at = at,
    .check = polynomial_decay_check,
};
