/* schedule.h: learning rates that change with the step.
 *
 *     tutti_adam(.schedule = tutti_cosine_decay(.learning_rate = 1e-3, .decay_steps = 10000))
 *
 * A schedule is a plain value, evaluated on the host: steps count from 0, the first update is step
 * 0. Formulas are Keras'. */
#ifndef TUTTI_SCHEDULE_H
#define TUTTI_SCHEDULE_H

#include "tutti/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In settings 0 means the default. Where the number 0 itself is meant, write TUTTI_ZERO. */
#define TUTTI_ZERO (-0.0)

typedef struct tutti_schedule_def tutti_schedule_def;
/* Any C function of the step. It must outlive what it is given to; files do not keep it. */
typedef double tutti_schedule_fn(int64_t step, void *context);

#define TUTTI_SCHEDULE_PIECES 16
#define TUTTI_SCHEDULE_NUMBERS (2 * TUTTI_SCHEDULE_PIECES + 1)
typedef struct tutti_schedule {
    const tutti_schedule_def *def; /* NULL: no schedule */
    double numbers[TUTTI_SCHEDULE_NUMBERS];
    int count; /* of boundaries */
    tutti_schedule_fn *fn;
    void *context;
} tutti_schedule;

/* The rate at a step; 0 for no schedule. A negative step counts as 0. Threads may share. */
TUTTI_API double tutti_schedule_at(const tutti_schedule *schedule, int64_t step);
/* TUTTI_INVALID with a message when the settings make no sense (no steps to decay over,
 * boundaries that do not rise, …). Optimizers check theirs. */
TUTTI_API tutti_status tutti_schedule_check(const tutti_schedule *schedule);

typedef struct tutti_piecewise_settings {
    size_t struct_size;
    double boundaries[TUTTI_SCHEDULE_PIECES]; /* steps, rising, above 0 */
    double values[TUTTI_SCHEDULE_PIECES + 1]; /* one more than boundaries */
} tutti_piecewise_settings;
TUTTI_API tutti_schedule tutti_piecewise_with(const tutti_piecewise_settings *settings);
/* values[0] up to and with step boundaries[0], values[1] up to and with boundaries[1], …:
 * tutti_piecewise(.boundaries = {1000, 2000}, .values = {1e-3, 1e-4, 1e-5}). */
#define tutti_piecewise(...)                                                                       \
    tutti_piecewise_with(TUTTI_OPTIONS(tutti_piecewise_settings, __VA_ARGS__))

typedef struct tutti_step_decay_settings {
    size_t struct_size;
    double learning_rate; /* at first */
    double every;         /* steps */
    double factor;        /* 0.1 */
} tutti_step_decay_settings;
TUTTI_API tutti_schedule tutti_step_decay_with(const tutti_step_decay_settings *settings);
/* rate factor^floor(step / every) */
#define tutti_step_decay(...)                                                                      \
    tutti_step_decay_with(TUTTI_OPTIONS(tutti_step_decay_settings, __VA_ARGS__))

typedef struct tutti_exponential_decay_settings {
    size_t struct_size;
    double learning_rate; /* at first */
    double decay_steps;
    double decay_rate; /* 0.96 */
    bool staircase;    /* whole numbers of decay_steps only */
} tutti_exponential_decay_settings;
TUTTI_API tutti_schedule
tutti_exponential_decay_with(const tutti_exponential_decay_settings *settings);
/* rate decay_rate^(step / decay_steps) */
#define tutti_exponential_decay(...)                                                               \
    tutti_exponential_decay_with(TUTTI_OPTIONS(tutti_exponential_decay_settings, __VA_ARGS__))

typedef struct tutti_inverse_decay_settings {
    size_t struct_size;
    double learning_rate; /* at first */
    double decay_steps;
    double decay_rate; /* 0.5 */
    bool staircase;
} tutti_inverse_decay_settings;
TUTTI_API tutti_schedule tutti_inverse_decay_with(const tutti_inverse_decay_settings *settings);
/* rate / (1 + decay_rate step / decay_steps) */
#define tutti_inverse_decay(...)                                                                   \
    tutti_inverse_decay_with(TUTTI_OPTIONS(tutti_inverse_decay_settings, __VA_ARGS__))

typedef struct tutti_polynomial_decay_settings {
    size_t struct_size;
    double learning_rate; /* at first */
    double decay_steps;
    double end_rate; /* 1e-4 */
    double power;    /* 1 */
    bool cycle;      /* begins again, over longer and longer spans, instead of staying at the end */
} tutti_polynomial_decay_settings;
TUTTI_API tutti_schedule
tutti_polynomial_decay_with(const tutti_polynomial_decay_settings *settings);
/* (rate - end) (1 - step / decay_steps)^power + end */
#define tutti_polynomial_decay(...)                                                                \
    tutti_polynomial_decay_with(TUTTI_OPTIONS(tutti_polynomial_decay_settings, __VA_ARGS__))

typedef struct tutti_cosine_decay_settings {
    size_t struct_size;
    double learning_rate; /* at first */
    double decay_steps;   /* with restarts: of the first fall */
    double alpha;         /* 0: the part of the rate that is left at the end */
    /* A straight line over the first warmup_steps, from learning_rate to warmup_target, where the
     * fall then begins. Without a target: from 0 to learning_rate. */
    double warmup_steps, warmup_target;
    bool restarts; /* the rate jumps up again at the end of each fall */
    double t_mul;  /* 2: how much longer each fall is than the one before */
    double m_mul;  /* 1: how much each start is of the one before */
} tutti_cosine_decay_settings;
TUTTI_API tutti_schedule tutti_cosine_decay_with(const tutti_cosine_decay_settings *settings);
/* rate ((1 - alpha) (1 + cos(pi step / decay_steps)) / 2 + alpha) */
#define tutti_cosine_decay(...)                                                                    \
    tutti_cosine_decay_with(TUTTI_OPTIONS(tutti_cosine_decay_settings, __VA_ARGS__))

/* fn(step, context) */
TUTTI_API tutti_schedule tutti_custom_schedule(tutti_schedule_fn *fn, void *context);

#ifdef __cplusplus
}
#endif
#endif
