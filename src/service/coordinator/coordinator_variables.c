/* coordinator_variables.c: variables of a coordinator on their servers, and the graphs of their
 * updates. */
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "service/coordinator/coordinator.h"
#include "tutti/ops_state.h"

static tutti_sym plain_update(tutti_sym value, const tutti_grad *gradient, double rate)
{
    tutti_sym by = tutti_variable(value.node->graph, tutti_full(rate), .name = "learning_rate",
                                  .not_trainable = true);
    return tutti_grad_ok(*gradient) && gradient->rows.node
               ? tutti_sgd_update_rows(value, gradient->rows, gradient->value, by)
               : tutti_sgd_update(value, gradient->value, by);
}

/* A table's rows come alone; other variables are given whole gradients. */
static tutti_status build_update(void *context, const tutti_type *shard, void **ret_data,
                                 size_t *ret_size)
{
    const tutti_closure_variable *v = context;
    tutti_graph *g = NULL;
    TUTTI_TRY(tutti_graph_create(&g));
    tutti_sym value = tutti_get_variable(
        g, "value", tutti_init_make(TUTTI_INIT_FULL, 0, 0, shard->rank, shard->dims),
        .dtype = shard->dtype);
    tutti_grad gradient = {.value = (tutti_placeholder_named)(g, "gradient", *shard)};
    tutti_sym step = v->options.update ? v->options.update(value, &gradient, v->options.user)
                                       : plain_update(value, &gradient, v->options.learning_rate);
    tutti_status status = tutti_graph_check(g);
    if (status == TUTTI_OK && !tutti_sym_ok(step))
        status = tutti_fail(TUTTI_INVALID, "variable '%s': .update gave nothing that can be run",
                            v->spec.name);
    if (status == TUTTI_OK && !TUTTI_VEC_PUSH(&g->targets, step.node))
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for the update of '%s'", v->spec.name);
    if (status == TUTTI_OK)
        status = tutti_graph_serialize(g, ret_data, ret_size);
    tutti_graph_destroy(g);
    return status;
}

static void variable_free(tutti_closure_variable *v)
{
    if (!v)
        return;
    for (size_t i = 0; i < TUTTI_COUNT(v->texts); i++)
        free(v->texts[i]);
    tutti_tensor_release(v->first);
    free(v);
}

void tutti__coordinator_free_variables(tutti_coordinator *c)
{
    for (size_t i = 0; i < c->variables.count; i++)
        variable_free(c->variables.data[i]);
    TUTTI_VEC_FREE(&c->variables);
}

static tutti_status declare(tutti_coordinator *c, const char *name, tutti_tensor *first,
                            const tutti_server_variable_options *options, tutti_closure_variable *v)
{
    v->options = *options;
    if (v->options.learning_rate == 0)
        v->options.learning_rate = 0.01;
    v->texts[0] = strdup(name);
    v->texts[1] = strdup(options->partitioner ? options->partitioner : "");
    v->texts[2] = strdup(options->initial ? options->initial : "");
    if (!v->texts[0] || !v->texts[1] || !v->texts[2])
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for variable '%s'", name);
    v->spec = (tutti_store_variable_spec){.name = v->texts[0],
                                          .type = *tutti_tensor_type(first),
                                          .partitioner = v->texts[1],
                                          .consistency = c->options.consistency,
                                          .rate = c->options.rate,
                                          .pieces = options->pieces,
                                          .build = build_update,
                                          .context = v};
    if (options->rows == 0) {
        v->first = tutti_tensor_retain(first);
        return TUTTI_OK;
    }
    if (v->spec.type.rank < 1 || (options->rows < 0 && options->rows != TUTTI_ANY))
        return tutti_fail(TUTTI_INVALID,
                          "table '%s': its first value is [1, …] and .rows a number or TUTTI_ANY",
                          name);
    v->spec.type.dims[0] = options->rows;
    v->spec.rule = "hashed";
    v->spec.initial = v->texts[2];
    return TUTTI_OK;
}

static tutti_status make_on(const tutti_closure_variable *v, tutti_coordinator_worker *w)
{
    int number;
    return tutti__store_worker_variable(w->store, &v->spec, v->first, &number);
}

void tutti_coordinator_variable_with(tutti_coordinator *c, const char *name, tutti_tensor *first,
                                     const tutti_server_variable_options *options)
{
    if (!c || c->role == TUTTI_COORDINATOR_SERVED || tutti_job_check(c->job) != TUTTI_OK)
        return;
    tutti_closure_variable *v = calloc(1, sizeof *v);
    tutti_status status = !v       ? tutti_fail(TUTTI_NO_MEMORY, "no memory for '%s'", name)
                          : !first ? tutti_fail(TUTTI_INVALID, "variable '%s' has no value", name)
                          : c->begun
                              ? tutti_fail(TUTTI_INVALID,
                                           "variable '%s': variables are made before the first "
                                           "closure",
                                           name)
                              : declare(c, name, first, options, v);
    if (status == TUTTI_OK && !TUTTI_VEC_PUSH(&c->variables, v))
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for '%s'", name);
    if (status != TUTTI_OK) {
        variable_free(v);
        tutti_job_fail(c->job, status);
        return;
    }
    status = c->self.store ? make_on(v, &c->self) : TUTTI_OK;
    for (int i = 0; status == TUTTI_OK && i < c->here; i++)
        status = make_on(v, &c->workers[i]);
    if (status != TUTTI_OK)
        tutti_job_fail(c->job, status);
}

tutti_status tutti__coordinator_make_variables(tutti_coordinator *c, tutti_coordinator_worker *w)
{
    for (size_t i = 0; i < c->variables.count; i++)
        TUTTI_TRY(make_on(c->variables.data[i], w));
    return TUTTI_OK;
}

int tutti__coordinator_variable(const tutti_coordinator *c, const char *name)
{
    tutti_text all = {0};
    for (size_t i = 0; i < c->variables.count; i++) {
        if (strcmp(c->variables.data[i]->spec.name, name) == 0)
            return (int)i;
        tutti__text_add(&all, "%s%s", i > 0 ? ", " : "", c->variables.data[i]->spec.name);
    }
    tutti_fail(TUTTI_NOT_FOUND, "there is no variable '%s' on servers; there are: %s", name,
               all.data ? all.data : "none");
    tutti__text_free(&all);
    return -1;
}

void tutti_coordinator_place(tutti_coordinator *c, tutti_place_fn *place, void *user)
{
    if (!c)
        return;
    for (int i = -1; i < c->here; i++) {
        tutti_store_placement *p = i < 0 ? &c->self.placement : &c->workers[i].placement;
        p->name = "function";
        p->fn = place;
        p->context = user;
    }
    c->place = place;
    c->place_user = user;
}

void tutti_coordinator_loads(const tutti_coordinator *c, char *ret_text, size_t size)
{
    if (c && c->role != TUTTI_COORDINATOR_SERVED)
        tutti__store_placement_print(c->self.store ? &c->self.placement : &c->workers[0].placement,
                                     ret_text, size);
    else if (size > 0)
        ret_text[0] = '\0';
}

tutti_status tutti_coordinator_get(tutti_coordinator *c, const char *name, tutti_tensor **ret_value)
{
    int v = c && c->self.store ? tutti__coordinator_variable(c, name) : -1;
    return v < 0 ? TUTTI_NOT_FOUND
                 : tutti__store_worker_pull(c->self.store, 1, &v, false, ret_value);
}

tutti_status tutti_coordinator_get_rows(tutti_coordinator *c, const char *name, tutti_tensor *rows,
                                        tutti_tensor **ret_values)
{
    int v = c && c->self.store ? tutti__coordinator_variable(c, name) : -1;
    return v < 0 ? TUTTI_NOT_FOUND
                 : tutti__store_worker_pull_rows(c->self.store, v, rows, ret_values);
}
