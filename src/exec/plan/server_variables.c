/* server_variables.c: see server_variables.h.
 *
 * A trainable variable that an update operator moves lies on the servers, with its slots: both are
 * variables of its update rule. Everything else (rates, counters, statistics, metrics, random
 * state) stays with each worker. A rate goes with every push; a count of steps is kept by the rule.
 * A run sees the values that the servers had when it began, also behind its updates. */
#include "exec/plan/server_variables.h"

#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "ops/update/rule.h"
#include "parallel/strategies/servers.h"
#include "tutti/ops_state.h"

static const tutti_node *variable_of(const tutti_node *node)
{
    const tutti_node *variable = node->input_count > 0 ? node->inputs[0].node : NULL;
    return variable && tutti__is(variable, "variable") && tutti__int(variable, "trainable") &&
                   !tutti__str(variable, "slot_of")[0]
               ? variable
               : NULL;
}

/* An update of a trainable variable, but for its first value. */
static bool is_update(const tutti_node *node)
{
    if (node->dead || !(node->op->flags & TUTTI_OP_UPDATES) || !variable_of(node))
        return false;
    return !tutti__is(node, "assign") || !tutti__int(node, "initializer");
}

bool tutti__server_trains(const tutti_graph *graph, int target_count, tutti_node *const *targets,
                          int fetch_count, const tutti_edge *fetches)
{
    bool trains = false, *needed = calloc(graph->nodes.count + 1, 1);
    for (int i = 0; needed && i < target_count; i++)
        needed[targets[i]->id] = true;
    for (int i = 0; needed && i < fetch_count; i++)
        needed[fetches[i].node->id] = true;
    for (size_t n = graph->nodes.count; needed && n-- > 0;) {
        const tutti_node *node = graph->nodes.data[n];
        if (!needed[n])
            continue;
        trains = trains || is_update(node);
        for (int i = 0; i < node->input_count; i++)
            needed[node->inputs[i].node->id] = true;
        for (int i = 0; i < node->control_count; i++)
            needed[node->controls[i]->id] = true;
    }
    free(needed);
    return trains;
}

tutti_tensor *tutti__server_local_value(tutti_state *state, const char *name)
{
    tutti_state_variable *variable = tutti__state_find(state, name);
    tutti_tensor *value = NULL;
    if (variable && tutti__state_has_value(state, name) &&
        tutti__variable_get(state, variable, &value) == TUTTI_OK)
        return value;
    value = tutti__state_expected(state, name);
    return value ? tutti_tensor_retain(value) : NULL;
}

/* ---- the update rule ---- */

typedef struct rule_builder {
    const tutti_node *update;
    tutti_state *state;
    tutti_graph *graph;
    tutti_sym inputs[TUTTI_UPDATE_SLOTS + 8];
    int count;
    const char *wrong; /* what cannot be done there */
} rule_builder;

static tutti_type own_type(const tutti_node *variable)
{
    tutti_type type = variable->types[0];
    type.handle = false;
    return type;
}

static bool is_table(const tutti_node *variable)
{
    return tutti__str(variable, "rows")[0] != '\0';
}

/* What the rule has: of a table a block of rows. */
static tutti_type rule_type(const tutti_node *variable)
{
    tutti_type type = own_type(variable);
    if (is_table(variable))
        type.dims[0] = TUTTI_SERVERS_BLOCK;
    return type;
}

/* Slots of a table begin alike in all rows. */
static double slot_begin(const tutti_node *slot)
{
    const char *text = tutti__str(slot, "rows");
    return strncmp(text, "constant:", 9) == 0 ? tutti__strtod(text + 9, NULL) : 0;
}

/* A variable of the rule, which begins with what the worker has. */
static tutti_sym rule_variable(rule_builder *b, const tutti_node *like, const char *name)
{
    tutti_type type = rule_type(like);
    tutti_tensor *value = strcmp(name, "value") == 0 || is_table(like)
                              ? NULL
                              : tutti__server_local_value(b->state, tutti__state_name(like));
    bool uniform = true;
    int64_t count = value ? tutti_tensor_count(value) : 0;
    double first = count > 0 ? tutti_tensor_get(value, 0) : slot_begin(like);
    for (int64_t i = 1; i < count && uniform; i++)
        uniform = tutti_tensor_get(value, i) == first;
    tutti_init init = uniform ? tutti_init_make(TUTTI_INIT_FULL, first, 0, type.rank, type.dims)
                              : tutti_tensor_init(value);
    tutti_sym made =
        tutti_variable(b->graph, init, .name = name, .dtype = type.dtype, .not_trainable = true);
    tutti_tensor_release(value); /* the graph keeps it */
    return made;
}

static tutti_sym rule_placeholder(rule_builder *b, const char *name, tutti_type type)
{
    return (tutti_placeholder_named)(b->graph, name, type);
}

/* The count of steps, which the worker's graph raises by one: the rule has one of its own. */
static tutti_sym rule_step(rule_builder *b, tutti_edge step)
{
    const tutti_node *node = step.node;
    if (!tutti__is(node, "assign_add") || !tutti__is(node->inputs[0].node, "variable")) {
        b->wrong = "its count of steps is not a variable that one is added to";
        return TUTTI_NO_SYM;
    }
    tutti_sym counter =
        rule_variable(b, node->inputs[0].node, tutti__state_name(node->inputs[0].node));
    return tutti_assign_add(counter, tutti_scalar(b->graph, TUTTI_I64, 1));
}

static void rule_gradient(rule_builder *b, const tutti_type *value, int rows, tutti_edge gradient)
{
    tutti_type type = *value;
    if (rows >= 0) {
        type.dims[0] = TUTTI_ANY;
        b->inputs[b->count++] =
            rule_placeholder(b, "indices", tutti_type_make(TUTTI_I64, 1, (int64_t[]){TUTTI_ANY}));
    }
    type.dtype = tutti__edge_type(gradient)->dtype;
    b->inputs[b->count++] = rule_placeholder(b, rows >= 0 ? "rows" : "gradient", type);
}

/* Inputs of an optimizer's update, as rule.h lists them. */
static void rule_of_optimizer(rule_builder *b, const tutti_update_layout *at)
{
    const tutti_node *u = b->update;
    tutti_type type = rule_type(u->inputs[0].node);
    for (int i = 1; i <= at->slots; i++) {
        if (!tutti__is(u->inputs[i].node, "variable"))
            b->wrong = "one of its slots is no variable";
        else
            b->inputs[b->count++] =
                rule_variable(b, u->inputs[i].node, tutti__state_name(u->inputs[i].node));
    }
    rule_gradient(b, &type, at->indices, u->inputs[at->gradient]);
    if (at->lr >= 0)
        b->inputs[b->count++] = tutti_read(tutti_variable(
            b->graph, tutti_full(1.0), .name = "learning_rate", .not_trainable = true));
    if (at->step >= 0)
        b->inputs[b->count++] = rule_step(b, u->inputs[at->step]);
}

static bool is_rows_op(const tutti_node *u)
{
    return tutti__is(u, "scatter_add") || tutti__is(u, "scatter_sub");
}

static bool is_optimizer(const tutti_node *u)
{
    return strcmp(u->op->category, "update") == 0;
}

static tutti_status rule_serialize(rule_builder *b, void **ret_data, size_t *ret_size)
{
    const tutti_node *u = b->update;
    tutti_sym target =
        (tutti_apply_op)(b->graph, u->op->name, b->count, b->inputs, u->attr_count, u->attrs);
    TUTTI_TRY(tutti_graph_check(b->graph));
    if (!TUTTI_VEC_PUSH(&b->graph->targets, target.node))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for an update rule");
    return tutti_graph_serialize(b->graph, ret_data, ret_size);
}

static tutti_status build_rule(const tutti_node *u, tutti_state *state, void **ret_data,
                               size_t *ret_size)
{
    rule_builder b = {.update = u, .state = state};
    const tutti_node *variable = u->inputs[0].node;
    tutti_type type = rule_type(variable);
    TUTTI_TRY(tutti_graph_create(&b.graph));
    b.inputs[b.count++] = rule_variable(&b, variable, "value");
    if (is_optimizer(u)) {
        tutti_update_layout at =
            tutti__update_layout(u->op, u->attrs, u->attr_count, u->input_count);
        if (at.scale >= 0)
            b.wrong = "its gradient is scaled inside of it";
        else
            rule_of_optimizer(&b, &at);
    } else if (tutti__is(u, "assign_add") || tutti__is(u, "assign_sub")) {
        rule_gradient(&b, &type, -1, u->inputs[1]);
    } else if (is_rows_op(u)) {
        rule_gradient(&b, &type, 1, u->inputs[2]);
    } else {
        b.wrong = "it gives the variable a value whatever others did: use assign_add, assign_sub, "
                  "an optimizer, or tutti_put";
    }
    tutti_status status =
        b.wrong ? tutti_fail(TUTTI_UNSUPPORTED,
                             "%s '%s' cannot move variable '%s' on parameter servers: %s",
                             u->op->name, u->name, tutti__state_name(variable), b.wrong)
                : rule_serialize(&b, ret_data, ret_size);
    tutti_graph_destroy(b.graph);
    return status == TUTTI_OK ? TUTTI_OK : tutti__node_failed(u, status);
}

/* ---- the job ---- */

typedef struct server_rewriting {
    tutti_graph *job;
    tutti_state *state;
    tutti_server_plan *plan;
    size_t node_count; /* before it began */
    int *numbers;      /* by a variable's id: its number, or -1 */
    tutti_edge *pulls; /* by number */
} server_rewriting;

static tutti_status number_of(server_rewriting *w, const tutti_node *variable, int *ret)
{
    if (w->numbers[variable->id] < 0) {
        tutti_server_variable made = {.name = strdup(tutti__state_name(variable)),
                                      .type = own_type(variable),
                                      .partition = strdup(tutti__str(variable, "partition")),
                                      .rows = strdup(tutti__str(variable, "rows"))};
        if (!made.name || !made.partition || !made.rows ||
            !TUTTI_VEC_PUSH(&w->plan->variables, made)) {
            free(made.name);
            free(made.partition);
            free(made.rows);
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
        }
        w->numbers[variable->id] = (int)w->plan->variables.count - 1;
    }
    *ret = w->numbers[variable->id];
    return TUTTI_OK;
}

static tutti_status node_like(server_rewriting *w, const tutti_node *like, const char *op,
                              int input_count, const tutti_edge *inputs, int attr_count,
                              const tutti_attr *attrs, tutti_node **ret)
{
    TUTTI_TRY(tutti__node_add(w->job, tutti_op_find(op), NULL, input_count, inputs, attr_count,
                              attrs, ret));
    (*ret)->origin = like->origin;
    (*ret)->device = like->device;
    (*ret)->file = like->file;
    (*ret)->line = like->line;
    tutti__node_mark_like(*ret, like);
    return TUTTI_OK;
}

static tutti_status pull_of(server_rewriting *w, const tutti_node *like, const tutti_node *variable,
                            tutti_edge *ret)
{
    int number;
    TUTTI_TRY(number_of(w, variable, &number));
    if (!w->pulls[number].node) {
        const tutti_type type = own_type(variable);
        tutti_attr attrs[] = {TUTTI_STR("variable", tutti__state_name(variable)),
                              TUTTI_INT("number", number), TUTTI_INT("dtype", type.dtype),
                              TUTTI_INTS("dims", type.rank, type.dims)};
        tutti_node *node;
        TUTTI_TRY(node_like(w, like, "pull", 0, NULL, TUTTI_COUNT(attrs), attrs, &node));
        node->region = 0;
        node->remat = node->backward = false;
        w->pulls[number] = (tutti_edge){node, 0};
        w->plan->variables.data[number].pulled = true;
    }
    *ret = w->pulls[number];
    return TUTTI_OK;
}

static tutti_status push_of(server_rewriting *w, tutti_node *u, int number, tutti_node **ret)
{
    tutti_edge inputs[4];
    int count = 0, rows = -1, gradient = 1, rate = -1, apply = -1;
    if (is_optimizer(u)) {
        tutti_update_layout at =
            tutti__update_layout(u->op, u->attrs, u->attr_count, u->input_count);
        rows = at.indices;
        gradient = at.gradient;
        rate = at.lr;
        apply = at.apply;
    } else if (is_rows_op(u)) {
        rows = 1;
        gradient = 2;
    }
    if (rows >= 0)
        inputs[count++] = u->inputs[rows];
    inputs[count++] = u->inputs[gradient];
    if (rate >= 0)
        inputs[count++] = u->inputs[rate];
    if (apply >= 0)
        inputs[count++] = u->inputs[apply];
    tutti_attr attrs[] = {TUTTI_STR("variable", w->plan->variables.data[number].name),
                          TUTTI_INT("number", number), TUTTI_INT("rows", rows >= 0),
                          TUTTI_INT("rate", rate >= 0), TUTTI_INT("apply", apply >= 0)};
    return node_like(w, u, "push", count, inputs, TUTTI_COUNT(attrs), attrs, ret);
}

static bool is_group(const tutti_node *node)
{
    return tutti__is(node, "group") || tutti__is(node, "push");
}

/* Who only waits for an update waits for its push; who takes its value gets the one of the run's
 * beginning. */
static tutti_status replace_update(server_rewriting *w, tutti_node *u, tutti_node *push)
{
    const tutti_node *variable = u->inputs[0].node;
    for (size_t n = 0; n < w->job->nodes.count; n++) {
        tutti_node *node = w->job->nodes.data[n];
        for (int i = 0; i < node->input_count; i++) {
            if (node->inputs[i].node != u)
                continue;
            tutti_edge pull;
            TUTTI_TRY(pull_of(w, u, variable, &pull));
            node = w->job->nodes.data[n];
            node->inputs[i] = is_group(node) ? (tutti_edge){push, 0} : pull;
        }
        for (int i = 0; i < node->control_count; i++)
            if (node->controls[i] == u)
                node->controls[i] = push;
    }
    for (size_t i = 0; i < w->job->results.count; i++)
        if (w->job->results.data[i].node == u)
            TUTTI_TRY(pull_of(w, u, variable, &w->job->results.data[i]));
    for (size_t i = 0; i < w->job->targets.count; i++)
        if (w->job->targets.data[i] == u)
            w->job->targets.data[i] = push;
    u->dead = true;
    return TUTTI_OK;
}

static tutti_status rewrite_update(server_rewriting *w, tutti_node *u)
{
    int number;
    tutti_node *push;
    TUTTI_TRY(number_of(w, u->inputs[0].node, &number));
    tutti_server_variable *v = &w->plan->variables.data[number];
    if (v->rule)
        return tutti__node_failed(
            u, tutti_fail(TUTTI_UNSUPPORTED,
                          "%s '%s': variable '%s' on parameter servers is moved twice in one step; "
                          "sum what moves it",
                          u->op->name, u->name, v->name));
    TUTTI_TRY(build_rule(u, w->state, &v->rule, &v->rule_size));
    w->plan->pushes++;
    TUTTI_TRY(push_of(w, u, number, &push));
    return replace_update(w, u, push);
}

/* Others that wait for a read have nothing to wait for: it is there when the run begins. */
static void drop_controls(tutti_graph *job, const tutti_node *read)
{
    for (size_t n = 0; n < job->nodes.count; n++) {
        tutti_node *node = job->nodes.data[n];
        int kept = 0;
        for (int i = 0; i < node->control_count; i++)
            if (node->controls[i] != read)
                node->controls[kept++] = node->controls[i];
        if (kept < node->control_count)
            node->grown = NULL;
        node->control_count = kept;
    }
}

/* Pieces along axis 0 only, so that rows can be asked for. */
static bool cuts_rows(const tutti_node *variable)
{
    const char *text = tutti__str(variable, "partition"), *comma = strchr(text, ',');
    if (strncmp(text, "variable_axis_size", 18) == 0)
        return false;
    if (text[0] < '0' || text[0] > '9')
        return true;
    for (; comma; comma = strchr(comma + 1, ','))
        if (atoi(comma + 1) != 1)
            return false;
    return true;
}

static bool is_lookup(const tutti_node *node, const tutti_node *read)
{
    return tutti__is(node, "gather") && node->inputs[0].node == read &&
           node->inputs[1].node != read && tutti__int(node, "axis") == 0;
}

/* Whether all that is read of it is rows. */
static bool is_looked_up(const server_rewriting *w, const tutti_node *read)
{
    bool any = false;
    if (!cuts_rows(read->inputs[0].node) || own_type(read->inputs[0].node).rank < 1)
        return false;
    for (size_t n = 0; n < w->job->nodes.count; n++) {
        const tutti_node *node = w->job->nodes.data[n];
        for (int i = 0; !node->dead && i < node->input_count; i++)
            if (node->inputs[i].node == read) {
                if (!is_lookup(node, read))
                    return false;
                any = true;
            }
    }
    for (size_t i = 0; i < w->job->results.count; i++)
        if (w->job->results.data[i].node == read)
            return false;
    return any;
}

static tutti_status rewrite_lookup(server_rewriting *w, tutti_node *gather,
                                   const tutti_node *variable)
{
    int number;
    tutti_node *pull;
    const tutti_type type = own_type(variable);
    TUTTI_TRY(number_of(w, variable, &number));
    tutti_attr attrs[] = {TUTTI_STR("variable", tutti__state_name(variable)),
                          TUTTI_INT("number", number), TUTTI_INT("dtype", type.dtype),
                          TUTTI_INTS("dims", type.rank, type.dims)};
    TUTTI_TRY(
        node_like(w, gather, "pull_rows", 1, &gather->inputs[1], TUTTI_COUNT(attrs), attrs, &pull));
    w->plan->variables.data[number].by_rows = true;
    tutti__graph_replace(w->job, (tutti_edge){gather, 0}, (tutti_edge){pull, 0});
    gather->dead = true;
    return TUTTI_OK;
}

static tutti_status rewrite_lookups(server_rewriting *w, tutti_node *read)
{
    size_t count = w->job->nodes.count;
    for (size_t n = 0; n < count; n++) {
        tutti_node *node = w->job->nodes.data[n];
        if (!node->dead && node->input_count > 0 && is_lookup(node, read))
            TUTTI_TRY(rewrite_lookup(w, node, read->inputs[0].node));
    }
    drop_controls(w->job, read);
    read->dead = true;
    return TUTTI_OK;
}

static tutti_status rewrite_read(server_rewriting *w, tutti_node *read)
{
    if (is_looked_up(w, read))
        return rewrite_lookups(w, read);
    if (is_table(read->inputs[0].node))
        return tutti__node_failed(
            read, tutti_fail(TUTTI_UNSUPPORTED,
                             "table '%s' has more rows than any memory: it is read by tutti_gather "
                             "along axis 0 only, and moved by optimizers that take rows",
                             tutti__state_name(read->inputs[0].node)));
    tutti_edge pull;
    TUTTI_TRY(pull_of(w, read, read->inputs[0].node, &pull));
    tutti__graph_replace(w->job, (tutti_edge){read, 0}, pull);
    drop_controls(w->job, read);
    for (size_t i = 0; i < w->job->targets.count; i++)
        if (w->job->targets.data[i] == read)
            w->job->targets.data[i] = pull.node;
    read->dead = true;
    return TUTTI_OK;
}

static tutti_status server_rewrite(server_rewriting *w)
{
    bool any = false;
    for (size_t n = 0; n < w->node_count; n++) {
        tutti_node *node = w->job->nodes.data[n];
        if (node->dead)
            continue;
        if (is_update(node))
            TUTTI_TRY(rewrite_update(w, node));
        else if (tutti__is(node, "read") && variable_of(node))
            TUTTI_TRY(rewrite_read(w, node));
        else
            continue;
        any = true;
    }
    return any ? tutti__graph_prune(w->job) : TUTTI_OK;
}

tutti_status tutti__server_rewrite(tutti_graph *job, tutti_state *state, tutti_server_plan *ret)
{
    server_rewriting w = {.job = job, .state = state, .plan = ret, .node_count = job->nodes.count};
    w.numbers = malloc((job->nodes.count + 1) * sizeof *w.numbers);
    w.pulls = calloc(job->nodes.count + 1, sizeof *w.pulls);
    for (size_t n = 0; w.numbers && n < job->nodes.count; n++)
        w.numbers[n] = -1;
    tutti_status status = w.numbers && w.pulls
                              ? server_rewrite(&w)
                              : tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    free(w.numbers);
    free(w.pulls);
    return status;
}

void tutti__server_plan_free(tutti_server_plan *plan)
{
    for (size_t i = 0; i < plan->variables.count; i++) {
        free(plan->variables.data[i].name);
        free(plan->variables.data[i].partition);
        free(plan->variables.data[i].rows);
        free(plan->variables.data[i].rule);
    }
    TUTTI_VEC_FREE(&plan->variables);
    *plan = (tutti_server_plan){0};
}
