/* server_run.h: runs whose variables lie on parameter servers. */
#ifndef TUTTI_EXEC_RUN_SERVER_RUN_H
#define TUTTI_EXEC_RUN_SERVER_RUN_H

#include "exec/plan/plan.h"

/* Whether the engine's variables lie on servers. */
static inline bool tutti__engine_has_servers(const tutti_engine_options *options)
{
    return !options->mesh && options->strategy && options->strategy->servers;
}
/* Makes variables there that have none yet, and pulls what the plan reads. */
tutti_status tutti__server_run_begin(tutti_engine *engine, const tutti_plan *plan,
                                     tutti_server_run *ret);
/* Pushes what the run left. `weight`: what its gradients count, 1 for an even share of the batch;
 * 0: this worker had no rows. */
tutti_status tutti__server_run_commit(tutti_engine *engine, const tutti_plan *plan,
                                      tutti_server_run *run, double weight);
/* What is read by others than runs: the variable, or all that lies on servers (name NULL), with
 * slots and counters, becomes what the servers have of it. */
tutti_status tutti__server_refresh(tutti_engine *engine, const char *name);
/* The variable was given this value here. */
tutti_status tutti__server_written(tutti_engine *engine, const char *name, tutti_tensor *value);
void tutti__server_run_end(tutti_server_run *run); /* zeroed is fine */

#endif
