/* server_run.c: see server_run.h. */
#include "exec/run/server_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/run/engine_inside.h"

enum { NAME = 1200 };

/* Each engine has names of its own on the servers. */
static void name_there(const tutti_engine *engine, const char *name, char ret[NAME])
{
    if (engine->server_number > 1)
        snprintf(ret, NAME, "%d:%s", engine->server_number, name);
    else
        snprintf(ret, NAME, "%s", name);
}

static tutti_status make_variable(tutti_engine *engine, const tutti_server_variable *v,
                                  const char *name, int *ret)
{
    tutti_tensor *value = tutti__server_local_value(engine->state, v->name), *flat = NULL;
    if (!value && !v->rows[0])
        return tutti_fail(TUTTI_UNINITIALIZED,
                          "variable '%s' has no value yet; run tutti_initialize_variables",
                          v->name);
    tutti_status status = value ? tutti_tensor_contiguous(value, &flat) : TUTTI_OK;
    if (status == TUTTI_OK)
        status = tutti__strategy_make_server_variable(
            engine->options.strategy,
            &(tutti_servers_variable){.name = name,
                                      .type = v->type,
                                      .value = flat,
                                      .rule = v->rule,
                                      .rule_size = v->rule_size,
                                      .partitioner = v->partition,
                                      .rows = v->rows},
            ret);
    tutti_tensor_release(value);
    tutti_tensor_release(flat);
    return status;
}

/* *ret: its number on the servers; -1: it is read only, and was never moved. */
static tutti_status find_variable(tutti_engine *engine, const tutti_server_variable *v, int *ret)
{
    char name[NAME];
    name_there(engine, v->name, name);
    *ret = tutti__strategy_server_variable(engine->options.strategy, name);
    return *ret < 0 && v->rule ? make_variable(engine, v, name, ret) : TUTTI_OK;
}

static tutti_status pull_all(tutti_engine *engine, const tutti_plan *plan, tutti_server_run *run,
                             int *numbers, int *places, tutti_tensor **values)
{
    tutti_strategy *s = engine->options.strategy;
    int wanted = 0;
    for (int i = 0; i < run->count; i++) {
        const tutti_server_variable *v = &plan->servers.variables.data[i];
        int number;
        TUTTI_TRY(find_variable(engine, v, &number));
        run->numbers[i] = number;
        if (!v->pulled && !(v->by_rows && number < 0))
            continue;
        if (number < 0 && v->rows[0])
            return tutti_fail(TUTTI_UNINITIALIZED,
                              "table '%s' is not on the servers yet: its first training step makes "
                              "it",
                              v->name);
        if (number < 0) {
            run->values[i] = tutti__server_local_value(engine->state, v->name);
            if (!run->values[i])
                return tutti_fail(TUTTI_UNINITIALIZED,
                                  "variable '%s' has no value yet; run "
                                  "tutti_initialize_variables",
                                  v->name);
            continue;
        }
        numbers[wanted] = number;
        places[wanted++] = i;
    }
    if (wanted == 0)
        return TUTTI_OK;
    TUTTI_TRY(s->servers_kind->pull(s->servers, wanted, numbers, values));
    for (int i = 0; i < wanted; i++)
        run->values[places[i]] = values[i];
    return TUTTI_OK;
}

tutti_status tutti__server_run_begin(tutti_engine *engine, const tutti_plan *plan,
                                     tutti_server_run *ret)
{
    size_t count = plan->servers.variables.count;
    int *numbers = calloc(count + 1, sizeof *numbers), *places = calloc(count + 1, sizeof *places);
    tutti_tensor **values = calloc(count + 1, sizeof *values);
    *ret = (tutti_server_run){.count = (int)count,
                              .strategy = engine->options.strategy,
                              .numbers = calloc(count + 1, sizeof *ret->numbers),
                              .values = calloc(count + 1, sizeof *ret->values),
                              .gradients = calloc(count + 1, sizeof *ret->gradients)};
    tutti_status status =
        numbers && places && values && ret->numbers && ret->values && ret->gradients
            ? pull_all(engine, plan, ret, numbers, places, values)
            : tutti_fail(TUTTI_NO_MEMORY, "no memory for a run");
    free(numbers);
    free(places);
    free(values);
    return status;
}

/* In place: the gradient is the run's own. */
static void weigh(tutti_tensor *gradient, double weight)
{
    int64_t count = gradient ? tutti_tensor_count(gradient) : 0;
    for (int64_t i = 0; weight != 1 && i < count; i++)
        tutti_tensor_set(gradient, i, tutti_tensor_get(gradient, i) * weight);
}

tutti_status tutti__server_run_commit(tutti_engine *engine, const tutti_plan *plan,
                                      tutti_server_run *run, double weight)
{
    tutti_strategy *s = engine->options.strategy;
    tutti_servers_push *pushes = calloc((size_t)run->count + 1, sizeof *pushes);
    int count = 0;
    tutti_status status =
        pushes ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory to push gradients");
    for (int i = 0; status == TUTTI_OK && i < run->count; i++) {
        const tutti_server_variable *v = &plan->servers.variables.data[i];
        const tutti_server_gradient *g = &run->gradients[i];
        int number;
        if (!v->rule || !g->there)
            continue;
        status = find_variable(engine, v, &number);
        weigh(g->gradient, weight > 0 ? weight : 1);
        pushes[count++] = (tutti_servers_push){.variable = number,
                                               .gradient = weight > 0 ? g->gradient : NULL,
                                               .rows = weight > 0 ? g->rows : NULL,
                                               .rate = g->rate};
    }
    if (status == TUTTI_OK && count > 0)
        status = s->servers_kind->push(s->servers, count, pushes);
    free(pushes);
    return status;
}

/* ---- what others than runs read and write ---- */

typedef struct refreshing {
    tutti_engine *engine;
    const char *name; /* of the variable, here */
    tutti_map *counters;
} refreshing;

/* A count of steps that several variables have: the largest. */
static bool is_behind(refreshing *r, const char *name, tutti_tensor *tensor)
{
    if (tutti_tensor_rank(tensor) > 0 || tutti_tensor_dtype(tensor) != TUTTI_I64)
        return false;
    intptr_t count = (intptr_t)tutti_tensor_get_int(tensor, 0) + 1;
    if ((intptr_t)tutti__map_get(r->counters, name) >= count)
        return true;
    (void)tutti__map_set(r->counters, name, (void *)count);
    return false;
}

static tutti_status take_named(void *context, const char *name, tutti_tensor *tensor)
{
    refreshing *r = context;
    const char *own = strcmp(name, "value") == 0 ? r->name : name;
    tutti_state_variable *variable = tutti__state_find(r->engine->state, own);
    if (!variable || !tutti_type_equal(&variable->type, tutti_tensor_type(tensor)) ||
        strcmp(name, "learning_rate") == 0 || is_behind(r, own, tensor))
        return TUTTI_OK;
    return tutti__variable_set(r->engine->state, variable, tensor);
}

static tutti_status refresh_one(refreshing *r)
{
    tutti_strategy *s = r->engine->options.strategy;
    char name[NAME];
    name_there(r->engine, r->name, name);
    int number = tutti__strategy_server_variable(s, name);
    return number < 0 ? TUTTI_OK : s->servers_kind->get(s->servers, number, take_named, r);
}

tutti_status tutti__server_refresh(tutti_engine *engine, const char *name)
{
    tutti_map counters = {0};
    refreshing r = {.engine = engine, .name = name, .counters = &counters};
    tutti_status status = TUTTI_OK;
    tutti_state_variable *variable;
    if (!tutti__engine_has_servers(&engine->options))
        return TUTTI_OK;
    if (name)
        status = refresh_one(&r);
    for (size_t i = 0;
         !name && status == TUTTI_OK && (variable = tutti__state_at(engine->state, i)) != NULL;
         i++) {
        r.name = variable->name;
        status = refresh_one(&r);
    }
    tutti__map_free(&counters);
    return status;
}

tutti_status tutti__server_written(tutti_engine *engine, const char *name, tutti_tensor *value)
{
    tutti_strategy *s = engine->options.strategy;
    char there[NAME];
    if (!tutti__engine_has_servers(&engine->options))
        return TUTTI_OK;
    name_there(engine, name, there);
    int number = tutti__strategy_server_variable(s, there);
    if (number < 0)
        return TUTTI_OK;
    tutti_tensor *flat;
    TUTTI_TRY(tutti_tensor_contiguous(value, &flat));
    tutti_status status = s->servers_kind->put(s->servers, number, "value", flat);
    tutti_tensor_release(flat);
    return status;
}

void tutti__server_run_end(tutti_server_run *run)
{
    for (int i = 0; i < run->count; i++) {
        if (run->values)
            tutti_tensor_release(run->values[i]);
        if (run->gradients) {
            tutti_tensor_release(run->gradients[i].gradient);
            tutti_tensor_release(run->gradients[i].rows);
        }
    }
    free(run->numbers);
    free(run->values);
    free(run->gradients);
    *run = (tutti_server_run){0};
}
