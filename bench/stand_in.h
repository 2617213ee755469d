/* stand_in.h: the functions of stand_in_calls.h hand on to the library, unless steps are measured:
 * then the sources of data give one batch, every step is fed with it, and each step is told of.
 * Model, optimizer and step are the example's own. */
#ifndef TUTTI_BENCH_STAND_IN_H
#define TUTTI_BENCH_STAND_IN_H

#include "bench/stand_in_calls.h"
#include "exec/engine.h"

typedef struct tutti_stand_in {
    int64_t batch; /* examples that a source of data gives */
    void (*step_done)(void *context, tutti_engine *engine); /* the engine that ran it */
    void *context;
    /* (optional) told of plans before they run for the first time */
    void (*plan_made)(void *context, const tutti_made *made);
} tutti_stand_in;
/* Until the process ends; NULL: the library's own functions again. */
void tutti__stand_in_set(const tutti_stand_in *stand_in);

#endif
