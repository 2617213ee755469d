/* wait.c: waiting between the threads of a pipeline. */
#include "data/wait.h"

#include <time.h>

#include "base/params.h"
#include "base/world.h"

static tutti_param seconds =
    TUTTI_PARAM("DATA_DEADLINE", "600", "seconds that a pipeline's element may take");

void tutti__wait_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

int64_t tutti__wait_deadline(void)
{
    int64_t limit = tutti__param_int(&seconds);
    return tutti__now_ns() + (limit > 0 && limit < 1000000 ? limit : 600) * 1000000000;
}

tutti_status tutti__wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t deadline,
                         const tutti_iterator *iterator)
{
    int64_t end = tutti__now_ns() + TUTTI_DATA_POLL_NS;
    struct timespec until = {.tv_sec = (time_t)(end / 1000000000),
                             .tv_nsec = (long)(end % 1000000000)};
    const tutti_dataset *dataset = iterator->dataset;
    pthread_cond_timedwait(condition, mutex, &until);
    TUTTI_TRY(tutti__iterator_check(iterator));
    if (tutti__now_ns() < deadline)
        return TUTTI_OK;
    return tutti_fail(TUTTI_DEADLINE,
                      "%s%s%s%s: element %lld of epoch %llu has not come from %s in time; "
                      "TUTTI_DATA_DEADLINE gives it more seconds",
                      dataset->def->name, dataset->place[0] ? " (" : "", dataset->place,
                      dataset->place[0] ? ")" : "", (long long)iterator->delivered,
                      (unsigned long long)iterator->epoch,
                      dataset->input_count > 0 ? dataset->inputs[0]->def->name : "its source");
}
