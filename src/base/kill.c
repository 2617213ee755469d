/* kill.c: see kill.h. */
#include "base/kill.h"

#include <signal.h>
#include <stdatomic.h>

#include "base/params.h"

static const tutti_param kill_param =
    TUTTI_PARAM("KILL_AT", "0",
                "for tests: the boundary between instructions, counted from the first update on, "
                "at which this process kills itself; 0: none, -1: boundaries are counted only");

static _Atomic int64_t count;
static _Atomic bool begun;

static int64_t kill_at(void)
{
    int64_t at;
    return tutti__param_in(&kill_param, -1, INT64_MAX, &at) == TUTTI_OK ? at : 0;
}

bool tutti__kill_counts(void)
{
    return kill_at() != 0;
}

void tutti__kill_begin(void)
{
    atomic_store(&begun, true);
}

void tutti__kill_point(void)
{
    if (atomic_load_explicit(&begun, memory_order_relaxed) &&
        atomic_fetch_add(&count, 1) + 1 == kill_at())
        raise(SIGKILL);
}

int64_t tutti__kill_count(void)
{
    return atomic_load(&count);
}
