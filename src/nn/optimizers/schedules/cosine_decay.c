/* cosine_decay.c: half a cosine, after a warm-up, once or again and again. */
#include <math.h>

#include "nn/optimizers/schedule.h"

enum { RATE, STEPS, ALPHA, WARMUP_STEPS, WARMUP_TARGET, RESTARTS, T_MUL, M_MUL };

/* Falls have lengths 1, t, t^2, … in units of decay_steps, so the first n of them take
 * (1 - t^n) / (1 - t): n is the largest whose sum is not above the time gone. */
static double falls_before(double time, double t)
{
    if (t == 1)
        return floor(time);
    double count = floor(log(1 - time * (1 - t)) / log(t));
    while (count > 0 && (1 - pow(t, count)) / (1 - t) > time) /* the logarithm's rounding */
        count--;
    while ((1 - pow(t, count + 1)) / (1 - t) <= time)
        count++;
    return count;
}

static double fall(const tutti_schedule *s, double step)
{
    double time = step / s->numbers[STEPS], height = 1, t = s->numbers[T_MUL];
    if (s->numbers[RESTARTS] != 0) {
        double before = falls_before(time, t);
        height = pow(s->numbers[M_MUL], before);
        time = t == 1 ? time - before : (time - (1 - pow(t, before)) / (1 - t)) / pow(t, before);
    }
    time = time < 1 ? time : 1;
    const double pi = 3.14159265358979323846, alpha = s->numbers[ALPHA];
    return (1 - alpha) * 0.5 * height * (1 + cos(pi * time)) + alpha;
}

static double at(const tutti_schedule *s, double step)
{
    double steps = s->numbers[WARMUP_STEPS], low = s->numbers[RATE], high = low;
    if (steps > 0 && s->numbers[WARMUP_TARGET] != 0)
        high = s->numbers[WARMUP_TARGET];
    else
        low = 0;
    if (step < steps)
        return (high - low) * (step / steps) + low;
    return high * fall(s, step - steps);
}

static const char *cosine_decay_check(const tutti_schedule *s)
{
    if (!(s->numbers[STEPS] > 0))
        return "decay_steps must be above 0";
    if (s->numbers[RESTARTS] != 0 && !(s->numbers[T_MUL] >= 1))
        return "t_mul must be at least 1";
    return s->numbers[WARMUP_STEPS] >= 0 ? NULL : "warmup_steps must not be negative";
}

extern const tutti_schedule_def tutti_schedule_def_cosine_decay;

tutti_schedule tutti_cosine_decay_with(const tutti_cosine_decay_settings *settings)
{
    return (tutti_schedule){.def = &tutti_schedule_def_cosine_decay,
                            .numbers = {[RATE] = settings->learning_rate,
                                        [STEPS] = settings->decay_steps,
                                        [ALPHA] = settings->alpha,
                                        [WARMUP_STEPS] = settings->warmup_steps,
                                        [WARMUP_TARGET] = settings->warmup_target,
                                        [RESTARTS] = settings->restarts,
                                        [T_MUL] = tutti__setting_or(settings->t_mul, 2),
                                        [M_MUL] = tutti__setting_or(settings->m_mul, 1)}};
}

const tutti_schedule_def tutti_schedule_def_cosine_decay = {
    .name = "cosine_decay",
    .doc = "rate ((1 - alpha) (1 + cos(pi step / decay_steps)) / 2 + alpha)",
    .fields = (const tutti_schedule_field[]){{"learning_rate", RATE},
                                             {"decay_steps", STEPS},
                                             {"alpha", ALPHA},
                                             {"warmup_steps", WARMUP_STEPS},
                                             {"warmup_target", WARMUP_TARGET},
                                             {"restarts", RESTARTS},
                                             {"t_mul", T_MUL},
                                             {"m_mul", M_MUL},
                                             {NULL}},
    .at = at,
    .check = cosine_decay_check,
};
