/* engine_inside.h: the engine's struct, for those who hold it and those who run through it. */
#ifndef TUTTI_EXEC_RUN_ENGINE_INSIDE_H
#define TUTTI_EXEC_RUN_ENGINE_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "exec/engine.h"
#include "exec/plan/cache.h"

struct tutti_engine {
    tutti_engine_options options;
    char *device;
    tutti_state *state;
    pthread_mutex_t lock;
    tutti_plan_cache cache;
    tutti_plan *last;           /* compiled last, for print */
    uint64_t compiles, lookups; /* lookups: the cache's clock */
    double compile_seconds;
    _Atomic uint64_t runs; /* as users ask for them: bodies and rests of graphs are none */
    _Atomic uint64_t next_run;
    int server_number; /* of the strategy's engines with variables on servers; 0: it has none */
    tutti_engine_watch watch; /* of plans that are new */
};

/* ---- stages.c ---- */
/* All processes of a pipeline: the first one gets the values of the variables of the others'
 * stages, to save them. */
tutti_status tutti__engine_gather_stages(tutti_engine *engine);

/* The plan for a request with feeds of these types: from the cache, or compiled, then *ret_new. */
tutti_status tutti__engine_plan_for(tutti_engine *engine, tutti_graph *graph,
                                    const tutti_run_request *request, const tutti_type *types,
                                    bool *ret_new, tutti_plan **ret);

#endif
