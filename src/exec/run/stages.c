/* stages.c: variables of stages in other processes, brought to the first one, which saves them. */
#include <stdio.h>
#include <string.h>

#include "exec/run/engine_inside.h"
#include "parallel/collectives/axis_groups.h"

/* A variable that this process computes with. */
static bool is_own(tutti_state *state, const tutti_state_variable *variable)
{
    return variable->pieces.count > 0 && tutti__state_has_value(state, variable->name);
}

static tutti_status name_tensor(const char *name, tutti_tensor **ret)
{
    int64_t length = (int64_t)strlen(name);
    return tutti_tensor_from(TUTTI_U8, 1, &length, name, ret);
}

/* The name, then the value; an empty name ends the list. */
static tutti_status send_one(tutti_axis_groups *groups, const char *name, tutti_tensor *value,
                             double timeout)
{
    tutti_tensor *text;
    TUTTI_TRY(name_tensor(name, &text));
    tutti_status status = tutti__axis_groups_send(groups, 0, "stage.name", text, timeout);
    tutti_tensor_release(text);
    return status == TUTTI_OK && value
               ? tutti__axis_groups_send(groups, 0, "stage.value", value, timeout)
               : status;
}

static tutti_status send_all(tutti_engine *engine, tutti_axis_groups *groups, double timeout)
{
    tutti_state_variable *variable;
    for (size_t i = 0; (variable = tutti__state_at(engine->state, i)); i++) {
        tutti_tensor *value;
        if (!is_own(engine->state, variable))
            continue;
        TUTTI_TRY(tutti__variable_get(engine->state, variable, &value));
        tutti_status status = send_one(groups, variable->name, value, timeout);
        tutti_tensor_release(value);
        TUTTI_TRY(status);
    }
    return send_one(groups, "", NULL, timeout);
}

static tutti_status take_one(tutti_engine *engine, tutti_axis_groups *groups, int from,
                             double timeout, bool *ret_more)
{
    char name[1100];
    tutti_tensor *text, *value;
    TUTTI_TRY(tutti__axis_groups_recv(groups, from, "stage.name", timeout, &text));
    int64_t length = tutti_tensor_count(text);
    bool fits = length < (int64_t)sizeof name;
    if (fits)
        snprintf(name, sizeof name, "%.*s", (int)length, (const char *)tutti_tensor_data(text));
    tutti_tensor_release(text);
    if (!fits)
        return tutti_fail(TUTTI_INVALID, "a variable of rank %d has a name of %lld characters",
                          from, (long long)length);
    *ret_more = length > 0;
    if (length == 0)
        return TUTTI_OK;
    TUTTI_TRY(tutti__axis_groups_recv(groups, from, "stage.value", timeout, &value));
    const tutti_state_variable *own = tutti__state_find(engine->state, name);
    tutti_status status =
        own && own->pieces.count > 0 ? TUTTI_OK : tutti__state_expect(engine->state, name, value);
    tutti_tensor_release(value);
    return status;
}

tutti_status tutti__engine_gather_stages(tutti_engine *engine)
{
    const tutti_strategy *strategy = engine->options.strategy;
    tutti_axis_groups *groups = strategy->groups;
    double timeout = 1e-9 * (double)engine->options.deadline_ns;
    if (tutti_strategy_rank(strategy) > 0)
        return send_all(engine, groups, timeout);
    for (int from = 1; from < tutti_strategy_workers(strategy); from++)
        for (bool more = true; more;)
            TUTTI_TRY(take_one(engine, groups, from, timeout, &more));
    return TUTTI_OK;
}
