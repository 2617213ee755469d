/* function.c: any C function of the step. */
#include "nn/optimizers/schedule.h"

static const char *function_check(const tutti_schedule *s)
{
    return s->fn ? NULL : "there is no function";
}

static double at(const tutti_schedule *s, double step)
{
    return s->fn((int64_t)step, s->context);
}

extern const tutti_schedule_def tutti_schedule_def_function;

tutti_schedule tutti_custom_schedule(tutti_schedule_fn *fn, void *context)
{
    return (tutti_schedule){.def = &tutti_schedule_def_function, .fn = fn, .context = context};
}

const tutti_schedule_def tutti_schedule_def_function = {
    .name = "function",
    .doc = "fn(step, context)",
    .at = at,
    .check = function_check,
};
