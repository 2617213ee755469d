/* exponential_decay.c: a constant factor over time. */
#include "nn/optimizers/schedules/decay.h"

static double at(const tutti_schedule *s, double step)
{
    double time = tutti__decay_time(s, step);
    return s->numbers[RATE] * pow(s->numbers[DECAY], time);
}

extern const tutti_schedule_def tutti_schedule_def_exponential_decay;

tutti_schedule tutti_exponential_decay_with(const tutti_exponential_decay_settings *settings)
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
    .fields = TUTTI_DECAY_FIELDS,
    .at = at,
    .check = tutti__decay_check,
};
