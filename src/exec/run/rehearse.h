/* rehearse.h: what a run will take, before it is run: the program that it compiles to, its memory,
 * and the time of each of its instructions on scratch memory. Nothing is communicated and no
 * variable changes. */
#ifndef TUTTI_EXEC_RUN_REHEARSE_H
#define TUTTI_EXEC_RUN_REHEARSE_H

#include "exec/plan/plan.h"

typedef struct tutti_rehearsal {
    tutti_plan *plan; /* retained: the lists point to its nodes */
    int count;        /* devices of this process */
    tutti_timed_list *devices;
    tutti_usage usage; /* of all of them */
    bool whole;        /* false: some device cannot rehearse, or shapes depend on data */
    double starting; /* seconds from starting another device's thread to knowing that it is done */
    double handing;  /* seconds that a device takes to hand a value to another one, or to take it,
                        beside copying it */
} tutti_rehearsal;

/* The devices rehearse at the same time, as they run. `values`: as tutti__plan_run. */
tutti_status tutti__plan_rehearse(tutti_plan *plan, tutti_run *run, tutti_tensor *const *values,
                                  tutti_rehearsal *ret);
/* Memory alone: nothing is timed. */
tutti_usage tutti__plan_usage(const tutti_plan *plan);
void tutti__rehearsal_free(tutti_rehearsal *rehearsal); /* zeroed is fine */

/* Compiles what the run would be, or finds it, and rehearses it. */
tutti_status tutti__engine_rehearse(tutti_engine *engine, tutti_graph *graph,
                                    const tutti_run_request *request, tutti_rehearsal *ret);

#endif
