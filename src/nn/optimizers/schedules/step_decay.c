/* step_decay.c: a factor every so many steps. */
#include <math.h>

#include "nn/optimizers/schedule.h"

enum { RATE, EVERY, FACTOR };

static double at(const tutti_schedule *s, double step)
{
    return s->numbers[RATE] * pow(s->numbers[FACTOR], floor(step / s->numbers[EVERY]));
}

static const char *step_decay_check(const tutti_schedule *s)
{
    return s->numbers[EVERY] > 0 ? NULL : "every must be above 0";
}

extern const tutti_schedule_def tutti_schedule_def_step_decay;

tutti_schedule tutti_step_decay_with(const tutti_step_decay_settings *settings)
{
    return (tutti_schedule){.def = &tutti_schedule_def_step_decay,
                            .numbers = {[RATE] = settings->learning_rate,
                                        [EVERY] = settings->every,
                                        [FACTOR] = tutti__setting_or(settings->factor, 0.1)}};
}

const tutti_schedule_def tutti_schedule_def_step_decay = {
    .name = "step_decay",
    .doc = "rate factor^floor(step / every)",
    .fields =
        (const tutti_schedule_field[]){
            {"learning_rate", RATE}, {"every", EVERY}, {"factor", FACTOR}, {NULL}},
    .at = at,
    .check = step_decay_check,
};
