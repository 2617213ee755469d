/* variables.c: making, finding and initialising variables. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "graph/mesh.h"
#include "graph/scope.h"
#include "ops/state/initial.h"
#include "tutti/ops_control.h"

extern const tutti_op tutti_op_variable, tutti_op_assign;

/* "4,1": pieces along each axis, as the partitioner wants them. */
static tutti_status partition_text(tutti_partitioner *partitioner, const tutti_type *type,
                                   char *text, size_t size)
{
    int64_t pieces[TUTTI_MAX_RANK] = {0};
    size_t used = 0;
    text[0] = '\0';
    if (!partitioner)
        return TUTTI_OK;
    partitioner(type, pieces);
    for (int i = 0; i < type->rank; i++) {
        if (pieces[i] < 1 || pieces[i] > (type->dims[i] > 0 ? type->dims[i] : 1))
            return tutti_fail(TUTTI_INVALID,
                              "the partitioner asks for %" PRId64
                              " pieces along axis %d of size %" PRId64,
                              pieces[i], i, type->dims[i]);
        used += (size_t)snprintf(text + used, size - used, "%s%" PRId64, i ? "," : "", pieces[i]);
    }
    return TUTTI_OK;
}

/* A slot lies as its variable does. */
static void lie_like(tutti_graph *graph, const char *slot_of, tutti_node *slot)
{
    const tutti_node *of = slot_of && slot_of[0] ? tutti_graph_find(graph, slot_of) : NULL;
    if (!of || !tutti__is(of, "variable") || !of->shardings || !of->shardings[0] ||
        of->types[0].rank != slot->types[0].rank ||
        memcmp(of->types[0].dims, slot->types[0].dims,
               (size_t)of->types[0].rank * sizeof(int64_t)) != 0)
        return;
    (void)tutti__sharding_mark(tutti__sym(slot, 0), of->shardings[0]);
}

static bool shares(const tutti_node *node, const char *name)
{
    return node && !node->dead && tutti__is(node, "variable") &&
           strcmp(tutti__str(node, "shared_name"), name) == 0;
}

/* In a trace variables are known by what they share: mostly, but not always, the node's name. */
static tutti_node *find_variable(tutti_graph *graph, const char *name)
{
    tutti_node *named = tutti_graph_find(graph, name);
    if (!graph->trace || shares(named, name))
        return named;
    for (size_t i = 0; i < graph->nodes.count; i++)
        if (shares(graph->nodes.data[i], name))
            return graph->nodes.data[i];
    return NULL;
}

/* A slot lives in the stage of its variable, and on its device. */
static void stand_with(tutti_node *slot, const tutti_node *variable)
{
    if (!variable)
        return;
    slot->stage = variable->stage;
    if (!slot->device[0])
        slot->device = variable->device;
}

/* A table is larger than any machine's memory: its rows exist where they are touched. */
static bool is_table(const tutti_type *type)
{
    const int64_t terabyte = INT64_C(1) << 40;
    int64_t count = tutti_type_count(type), bytes;
    return type->rank > 0 && count > 0 &&
           (!tutti__mul_size(count, (int64_t)tutti_dtype_size(type->dtype), &bytes) ||
            bytes > terabyte);
}

/* "uniform:0.05": what a row of a table begins with; "" of what is no table, and of one with other
 * initial values, which has to be in memory as a whole. */
static void rows_text(const tutti_init *init, const tutti_type *type, char text[64])
{
    text[0] = '\0';
    if (!is_table(type))
        return;
    if (init->kind == TUTTI_INIT_FULL)
        snprintf(text, 64, "constant:%.17g", init->a);
    else if (init->kind == TUTTI_INIT_UNIFORM && init->a == -init->b)
        snprintf(text, 64, "uniform:%.17g", init->b);
    else if (init->kind == TUTTI_INIT_NORMAL && init->a == 0)
        snprintf(text, 64, "normal:%.17g", init->b);
}

static tutti_sym make_handle(tutti_graph *graph, const char *name, const tutti_type *type,
                             const tutti_init *init, const tutti_variable_options *options)
{
    char rows[64];
    char partition[TUTTI_MAX_RANK * 24];
    tutti_status status = partition_text(options->partitioner, type, partition, sizeof partition);
    if (status == TUTTI_OK && options->partition)
        status = options->partitioner
                     ? tutti_fail(TUTTI_INVALID, "give it .partitioner or .partition, not both")
                 : snprintf(partition, sizeof partition, "%s", options->partition) <
                         (int)sizeof partition
                     ? TUTTI_OK
                     : tutti_fail(TUTTI_TOO_LARGE, ".partition is a text of %zu bytes at most",
                                  sizeof partition - 1);
    if (status != TUTTI_OK)
        return tutti__poison(graph, status, "variable '%s': %s", name, tutti_error_message());
    rows_text(init, type, rows);
    tutti_aggregation aggregation = options->aggregation;
    if (aggregation < TUTTI_AGGREGATE_AUTO || aggregation > TUTTI_AGGREGATE_FIRST)
        return tutti__poison(graph, TUTTI_INVALID,
                             "variable '%s': aggregation is %d, which is none of "
                             "tutti_aggregation",
                             name, (int)aggregation);
    if (aggregation == TUTTI_AGGREGATE_AUTO)
        aggregation = options->on_read ? TUTTI_AGGREGATE_SUM : TUTTI_AGGREGATE_NONE;
    if (aggregation == TUTTI_AGGREGATE_MEAN && !tutti_dtype_is_float(type->dtype))
        return tutti__poison(graph, TUTTI_INVALID,
                             "variable '%s': a mean over replicas needs a floating type, not %s",
                             name, tutti_dtype_name(type->dtype));
    tutti_attr attrs[] = {
        TUTTI_INT("dtype", type->dtype),
        TUTTI_INTS("dims", type->rank, type->dims),
        TUTTI_STR("shared_name", options->shared_name ? options->shared_name : ""),
        TUTTI_INT("trainable", !options->not_trainable),
        TUTTI_STR("slot_of", options->slot_of ? options->slot_of : ""),
        TUTTI_INT("partial", !options->on_read || aggregation == TUTTI_AGGREGATE_NONE ||
                                     aggregation == TUTTI_AGGREGATE_FIRST
                                 ? 0
                                 : 1 + (aggregation == TUTTI_AGGREGATE_MEAN)),
        TUTTI_INT("on_read", options->on_read),
        TUTTI_INT("aggregation", aggregation),
        TUTTI_STR("partition", partition),
        TUTTI_STR("rows", rows),
    };
    tutti_sym variable =
        tutti__build(graph, &tutti_op_variable, name, 0, NULL, TUTTI_COUNT(attrs), attrs);
    if (tutti_sym_ok(variable))
        lie_like(graph, options->slot_of, variable.node);
    if (tutti_sym_ok(variable) && !(options->shared_name && options->shared_name[0]))
        tutti__attr_set_string(variable.node, "shared_name", variable.node->name);
    if (tutti_sym_ok(variable) && options->slot_of && options->slot_of[0])
        stand_with(variable.node, find_variable(graph, options->slot_of));
    return variable;
}

/* In a trace everything is in the order of building. */
static tutti_sym after_others(tutti_graph *graph, tutti_sym value)
{
    tutti_edge edge = tutti__edge(value);
    tutti_status status = tutti__after_initializers(graph, &edge);
    return status == TUTTI_OK
               ? tutti__sym(edge.node, edge.index)
               : tutti__poison(graph, status, "initial value: %s", tutti_error_message());
}

/* Initial value and assignment, in the variable's name scope and on its device. */
static void make_initializer(tutti_graph *graph, tutti_sym variable, const tutti_init *init,
                             int64_t seed)
{
    tutti_type type = tutti_sym_type(variable);
    type.handle = false;
    tutti_name_push(graph, variable.node->name + strlen(tutti__scope_prefix(graph)));
    tutti_colocate_push(graph, variable);
    tutti_sym inputs[] = {variable, tutti__initial_value(graph, init, &type, seed)};
    if (init->kind == TUTTI_INIT_SYM && !graph->trace && tutti_sym_ok(inputs[1]))
        inputs[1] = after_others(graph, inputs[1]);
    tutti__build(graph, &tutti_op_assign, "assign", 2, inputs, 1, &TUTTI_INT("initializer", 1));
    graph->initializers++;
    tutti_colocate_pop(graph);
    tutti_name_pop(graph);
}

/* The first value is not assigned where the state has one already. */
static bool has_value(const tutti_graph *graph, const tutti_node *variable)
{
    return graph->holds && graph->holds(graph, tutti__state_name(variable));
}

tutti_sym tutti_variable_with(tutti_graph *graph, tutti_init init,
                              const tutti_variable_options *options)
{
    RULE_OPTIONS(tutti_variable_options, own, options);
    const char *name = own.name ? own.name : "variable";
    tutti_type type;
    if (tutti_graph_check(graph) != TUTTI_OK)
        return TUTTI_POISON;
    tutti_status status = tutti__init_type(&init, own.dtype, &type);
    if (status != TUTTI_OK)
        return tutti__poison(graph, status, "variable '%s': %s", name, tutti_error_message());
    tutti__controls_hide(graph);
    tutti_sym variable = make_handle(graph, name, &type, &init, &own);
    if (tutti_sym_ok(variable) && !tutti__str(variable.node, "rows")[0] &&
        !has_value(graph, variable.node))
        make_initializer(graph, variable, &init, own.seed);
    tutti__controls_show(graph);
    return graph->error.status == TUTTI_OK ? variable : TUTTI_NO_SYM;
}

static tutti_sym check_found(tutti_graph *graph, tutti_node *node, const tutti_init *init,
                             tutti_dtype dtype)
{
    char there[TUTTI_TYPE_TEXT], asked[TUTTI_TYPE_TEXT];
    tutti_type type, own;
    if (!tutti__is(node, "variable"))
        return tutti__poison(graph, TUTTI_INVALID, "get_variable '%s': that name belongs to a %s",
                             node->name, node->op->name);
    tutti_status status = tutti__init_type(init, dtype, &type);
    if (status != TUTTI_OK)
        return tutti__poison(graph, status, "get_variable '%s': %s", node->name,
                             tutti_error_message());
    own = node->types[0];
    own.handle = false;
    if (!tutti_type_equal(&own, &type))
        return tutti__poison(
            graph, TUTTI_INVALID,
            "get_variable '%s': the variable is %s, asked for is %s; use another name "
            "or the same type",
            node->name, tutti_type_text(&own, there), tutti_type_text(&type, asked));
    return tutti__sym(node, 0);
}

tutti_sym tutti_get_variable_with(tutti_graph *graph, const char *name, tutti_init init,
                                  const tutti_variable_options *options)
{
    char scoped[1100];
    RULE_OPTIONS(tutti_variable_options, own, options);
    if (tutti_graph_check(graph) != TUTTI_OK)
        return TUTTI_POISON;
    if (!name || !name[0])
        return tutti__poison(graph, TUTTI_INVALID, "get_variable: needs a name");
    const char *full = name, *prefix = tutti__scope_prefix(graph);
    if (strlen(prefix) + strlen(name) >= sizeof scoped)
        return tutti__poison(graph, TUTTI_INVALID, "get_variable: the name is too long");
    if (prefix[0]) {
        snprintf(scoped, sizeof scoped, "%s%s", prefix, name);
        full = scoped;
    }
    tutti_node *node = find_variable(graph, full);
    if (node)
        return check_found(graph, node, &init, own.dtype);
    own.struct_size = sizeof own;
    own.name = name;
    if (graph->trace && !own.shared_name)
        own.shared_name = full;
    return tutti_variable_with(graph, init, &own);
}

tutti_sym(tutti_initialize_variables)(tutti_graph *graph)
{
    if (tutti_graph_check(graph) != TUTTI_OK)
        return TUTTI_POISON;
    tutti_sym *all = calloc(graph->nodes.count + 1, sizeof *all);
    int count = 0;
    if (!all)
        return tutti__poison(graph, TUTTI_NO_MEMORY, "initialize_all: no memory");
    for (size_t i = 0; i < graph->nodes.count; i++) {
        tutti_node *node = graph->nodes.data[i];
        if (!node->dead && tutti__is(node, "assign") && tutti__int(node, "initializer"))
            all[count++] = tutti__sym(node, 0);
    }
    tutti__controls_hide(graph);
    tutti_sym group = (tutti_group)(graph, "initialize_all", count, all);
    tutti__controls_show(graph);
    free(all);
    return group;
}

int tutti_trainable_variables(const tutti_graph *graph, int capacity, tutti_sym *ret_variables)
{
    if (!graph)
        return 0;
    int count = 0;
    for (size_t i = 0; i < graph->nodes.count; i++) {
        tutti_node *node = graph->nodes.data[i];
        if (node->dead || !tutti__is(node, "variable") || !tutti__int(node, "trainable"))
            continue;
        if (count < capacity && ret_variables)
            ret_variables[count] = tutti__sym(node, 0);
        count++;
    }
    return count;
}
