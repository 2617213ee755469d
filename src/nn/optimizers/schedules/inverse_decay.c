/* inverse_decay.c: the inverse of time. */
#include "nn/optimizers/schedules/decay.h"

static double at(const tutti_schedule *s, double step)
{
    double time = tutti__decay_time(s, step);
    return s->numbers[RATE] / (1 + s->numbers[DECAY] * time);
}

extern const tutti_schedule_def tutti_schedule_def_inverse_decay;

tutti_schedule tutti_inverse_decay_with(const tutti_inverse_decay_settings *settings)
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
    .fields = TUTTI_DECAY_FIELDS,
    .at = at,
    .check = tutti__decay_check,
};
