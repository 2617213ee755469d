/* replicas.c: variables in code of each replica's own. */
#include <string.h>

#include "base/require.h"
#include "exec/plan/share.h"
#include "exec/run/engine_inside.h"
#include "exec/run/server_run.h"
#include "tutti/ops_state.h"
#include "tutti/strategy.h"

/* Copies of one device: the replica's, or of central storage the only one. */
static tutti_piece *piece_of(const tutti_replica *replica, const tutti_state_variable *variable)
{
    for (size_t i = 0; i < variable->pieces.count; i++)
        if (strcmp(variable->pieces.data[i]->device, replica->device) == 0)
            return variable->pieces.data[i];
    return variable->pieces.count == 1 ? variable->pieces.data[0] : NULL;
}

tutti_status tutti_replica_read(const tutti_replica *replica, tutti_session *session,
                                tutti_sym variable, tutti_tensor **ret_value)
{
    TUTTI_REQUIRE(replica);
    tutti_state_variable *found;
    tutti_tensor *host;
    TUTTI_TRY(tutti__session_variable(session, variable, &found));
    tutti_state *state = tutti__engine_state(tutti__session_engine(session));
    TUTTI_TRY(tutti__variable_intact(found));
    tutti_piece *piece = piece_of(replica, found);
    tutti_tensor *value = piece ? tutti__piece_acquire(state, piece) : NULL;
    if (!value)
        return tutti_fail(TUTTI_UNINITIALIZED, "variable '%s' has no value on %s",
                          variable.node->name, replica->device);
    tutti_status status = tutti__tensor_to_host(value, &host);
    tutti_tensor_release(value);
    TUTTI_TRY(status);
    status = tutti_tensor_cast(host, tutti_tensor_dtype(host), ret_value);
    tutti_tensor_release(host);
    return status;
}

/* One value of all replicas' values. */
static tutti_status together(const tutti_replica *replica, const tutti_node *variable,
                             tutti_tensor *value, tutti_tensor **ret)
{
    switch ((tutti_aggregation)tutti__int(variable, "aggregation")) {
    case TUTTI_AGGREGATE_SUM:
        return tutti_replica_reduce(replica, value, TUTTI_SUM, ret);
    case TUTTI_AGGREGATE_MEAN:
        return tutti_replica_reduce(replica, value, TUTTI_MEAN, ret);
    case TUTTI_AGGREGATE_FIRST:
        return tutti_replica_broadcast(replica, value, ret);
    default:
        if (tutti__int(variable, "on_read"))
            return tutti_fail(TUTTI_INVALID,
                              "variable '%s' has one value for all replicas under central storage "
                              "and in deterministic mode, also with .on_read, and nothing says "
                              "what of their values it gets; make it with .aggregation = "
                              "TUTTI_AGGREGATE_SUM, _MEAN or _FIRST",
                              variable->name);
        return tutti_fail(TUTTI_INVALID,
                          "variable '%s' is assigned to by every replica, and nothing says what of "
                          "their values it gets; make it with .aggregation = TUTTI_AGGREGATE_SUM, "
                          "_MEAN or _FIRST, or with .on_read",
                          variable->name);
    }
}

/* Until all replicas are here. */
static tutti_status wait_for_all(const tutti_replica *replica)
{
    tutti_tensor *one, *sum;
    TUTTI_TRY(tutti_tensor_create(TUTTI_I64, 0, NULL, &one));
    tutti_tensor_set(one, 0, 1);
    tutti_status status = tutti_replica_reduce(replica, one, TUTTI_SUM, &sum);
    tutti_tensor_release(one);
    TUTTI_TRY(status);
    tutti_tensor_release(sum);
    return TUTTI_OK;
}

tutti_status tutti_replica_assign(const tutti_replica *replica, tutti_session *session,
                                  tutti_sym variable, tutti_tensor *value)
{
    TUTTI_REQUIRE(replica);
    tutti_state_variable *found;
    TUTTI_TRY(tutti__session_variable(session, variable, &found));
    tutti_state *state = tutti__engine_state(tutti__session_engine(session));
    if (!value || !tutti_type_equal(tutti_tensor_type(value), &found->type))
        return tutti_fail(TUTTI_INVALID, "variable '%s': the value has another type than it",
                          variable.node->name);
    bool central = found->pieces.count < (size_t)tutti_strategy_local(replica->strategy);
    bool whole = central || replica->strategy->options.deterministic;
    bool own = tutti__int(variable.node, "on_read") && !whole, set = true;
    tutti_tensor *all = NULL;
    if (own)
        return tutti__variable_set_on(state, found, replica->device, value, &set);
    TUTTI_TRY(together(replica, variable.node, value, &all));
    tutti_status status = TUTTI_OK;
    if (!central)
        status = tutti__variable_set_on(state, found, replica->device, all, &set);
    else if (replica->local == 0)
        status = tutti__variable_set(state, found, all);
    tutti_tensor_release(all);
    TUTTI_TRY(status);
    return central ? wait_for_all(replica) : TUTTI_OK;
}

/* ---- copies on the devices of a strategy ---- */

int tutti_mirrored_count(tutti_session *session, tutti_sym variable)
{
    if (!session)
        return 0;
    tutti_state_variable *found =
        variable.node ? tutti__state_find(tutti__engine_state(tutti__session_engine(session)),
                                          tutti__state_name(variable.node))
                      : NULL;
    return found ? (int)found->pieces.count : 0;
}

tutti_status tutti_mirrored_get(tutti_session *session, tutti_sym variable, int local,
                                tutti_tensor **ret_value)
{
    TUTTI_REQUIRE(session);
    tutti_state *state = tutti__engine_state(tutti__session_engine(session));
    if (local < 0 || local >= tutti_mirrored_count(session, variable))
        return tutti_fail(TUTTI_INVALID, "there is no copy %d of this variable", local);
    tutti_state_variable *found = tutti__state_find(state, tutti__state_name(variable.node));
    TUTTI_TRY(tutti__variable_intact(found));
    tutti_tensor *value = tutti__piece_acquire(state, found->pieces.data[local]), *host;
    if (!value)
        return tutti_fail(TUTTI_UNINITIALIZED, "variable '%s' has no value on %s",
                          variable.node->name, found->pieces.data[local]->device);
    tutti_status status = tutti__tensor_to_host(value, &host);
    if (status == TUTTI_OK) {
        status = tutti_tensor_cast(host, tutti_tensor_dtype(host), ret_value);
        tutti_tensor_release(host);
    }
    tutti_tensor_release(value);
    return status;
}

/* ---- put together over processes ---- */

/* Between processes; NULL where there is one, or they are only imagined. */
static tutti_comm *world_of(const tutti_engine *engine)
{
    const tutti_strategy *strategy = engine->options.strategy;
    return tutti__strategy_processes(strategy) > 1 && strategy->axis_group
               ? strategy->axis_group->world
               : NULL;
}

static tutti_status sum(void *context, void *data, int64_t count, tutti_dtype dtype)
{
    return tutti_comm_all_reduce(context, data, data, count, dtype, TUTTI_SUM, NULL);
}

bool tutti__engine_apart(const tutti_engine *engine, bool slots)
{
    return tutti__strategy_spans(engine->options.strategy) ||
           (world_of(engine) && tutti__state_apart(engine->state, slots));
}

tutti_status tutti__engine_join(tutti_engine *engine, bool slots)
{
    tutti_comm *world = world_of(engine);
    if (tutti__strategy_spans(engine->options.strategy))
        return tutti__engine_gather_stages(engine);
    return tutti__state_join(
        engine->state, slots,
        &(tutti_state_sum){.sum = world ? sum : NULL,
                           .context = world,
                           .replicas = tutti__strategy_meeting_replicas(engine->options.strategy)});
}

static tutti_status together_gather(void *context, const float *mine, int64_t count, float *all)
{
    return tutti_comm_gather(context, mine, all, count, TUTTI_F32, 0, NULL);
}

static tutti_state_sum sum_over(const tutti_engine *engine)
{
    tutti_comm *world = world_of(engine);
    return (tutti_state_sum){.sum = world ? sum : NULL,
                             .context = world,
                             .replicas =
                                 tutti__strategy_meeting_replicas(engine->options.strategy)};
}

bool tutti__engine_gathers(const tutti_engine *engine)
{
    return tutti__state_has_error_feedback(engine->state) ||
           (world_of(engine) && tutti__state_has_cut(engine->state));
}

tutti_status tutti__engine_gather_all(tutti_engine *engine)
{
    tutti_comm *world = world_of(engine);
    tutti_state_sum over = sum_over(engine);
    TUTTI_TRY(tutti__state_gather(engine->state, &over));
    return tutti__state_gather_error_feedback(
        engine->state,
        &(tutti_state_gather){.gather = world ? together_gather : NULL,
                              .context = world,
                              .processes = tutti__strategy_processes(engine->options.strategy)});
}

tutti_status tutti__engine_get(tutti_engine *engine, tutti_state_variable *variable,
                               tutti_tensor **ret)
{
    TUTTI_TRY(tutti__server_refresh(engine, variable->name));
    tutti_state_sum over = sum_over(engine);
    if (!over.sum || !variable->cut || variable->gathered ||
        tutti__variable_local(engine->state, variable))
        return tutti__variable_get(engine->state, variable, ret);
    return tutti__variable_gather(engine->state, variable, &over, ret);
}

tutti_status tutti__engine_snapshot(tutti_engine *engine, tutti_snapshot *ret)
{
    TUTTI_TRY(tutti__server_refresh(engine, NULL));
    return tutti__snapshot_take(engine->state, ret);
}
