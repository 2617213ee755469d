/* function.c: any C function of the step. Nodes know it by a number, which means something in this
 * process only: pointers do not travel. */
#include <pthread.h>

#include "base/container.h"
#include "nn/optimizers/schedule.h"

typedef struct function {
    tutti_schedule_fn *fn;
    void *context;
} function;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static TUTTI_VEC(function) functions; /* under the lock; number 1 is the first */

tutti_status tutti__schedule_function_note(const tutti_schedule *schedule, int64_t *ret_number)
{
    size_t i = 0;
    pthread_mutex_lock(&lock);
    while (i < functions.count &&
           (functions.data[i].fn != schedule->fn || functions.data[i].context != schedule->context))
        i++;
    bool kept = i < functions.count ||
                TUTTI_VEC_PUSH(&functions, ((function){schedule->fn, schedule->context}));
    pthread_mutex_unlock(&lock);
    if (!kept)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a schedule");
    *ret_number = (int64_t)i + 1;
    return TUTTI_OK;
}

tutti_status tutti__schedule_function_find(int64_t number, tutti_schedule *schedule)
{
    pthread_mutex_lock(&lock);
    bool known = number > 0 && (uint64_t)number <= functions.count;
    if (known) {
        schedule->fn = functions.data[number - 1].fn;
        schedule->context = functions.data[number - 1].context;
    }
    pthread_mutex_unlock(&lock);
    return known ? TUTTI_OK
                 : tutti_fail(TUTTI_NOT_FOUND,
                              "the schedule is C function %lld of the program that made the graph, "
                              "which is not this one",
                              (long long)number);
}

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
