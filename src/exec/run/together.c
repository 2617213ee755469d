/* together.c: what replicas hold of a variable each, put together over all processes of a job. */
#include "exec/run/engine_inside.h"

/* Between processes; NULL where there is one, or they are only imagined. */
static tutti_comm *world_of(const tutti_engine *engine)
{
    const tutti_strategy *strategy = engine->options.strategy;
    return tutti_strategy_workers(strategy) > 1 && strategy->axis_group
               ? strategy->axis_group->world
               : NULL;
}

static tutti_status sum(void *context, void *data, int64_t count, tutti_dtype dtype)
{
    return tutti_comm_all_reduce(context, data, data, count, dtype, TUTTI_SUM, NULL);
}

bool tutti__engine_apart(const tutti_engine *engine, bool slots)
{
    return world_of(engine) && tutti__state_apart(engine->state, slots);
}

tutti_status tutti__engine_join(tutti_engine *engine, bool slots)
{
    tutti_comm *world = world_of(engine);
    return tutti__state_join(
        engine->state, slots,
        &(tutti_state_sum){.sum = world ? sum : NULL,
                           .context = world,
                           .replicas = tutti_strategy_replicas(engine->options.strategy)});
}

static tutti_status together_gather(void *context, const float *mine, int64_t count, float *all)
{
    return tutti_comm_gather(context, mine, all, count, TUTTI_F32, 0, NULL);
}

bool tutti__engine_has_error_feedback(const tutti_engine *engine)
{
    return tutti__state_has_error_feedback(engine->state);
}

tutti_status tutti__engine_gather_error_feedback(tutti_engine *engine)
{
    tutti_comm *world = world_of(engine);
    return tutti__state_gather_error_feedback(
        engine->state,
        &(tutti_state_gather){.gather = world ? together_gather : NULL,
                              .context = world,
                              .processes = tutti_strategy_workers(engine->options.strategy)});
}
