/* building.c: how random nodes get their counter, seed and salt. */
#include "ops/random/random.h"

/* In `drawn`: the step gives the counter its first value. It does not advance it, and is told from
 * the next by its salts. */
#define FIRST (UINT32_C(1) << 31)

/* Traces have no table of names. */
static tutti_node *find_counter(tutti_graph *graph)
{
    if (!graph->trace)
        return tutti_graph_find(graph, TUTTI_RANDOM_COUNTER);
    for (size_t i = 0; i < graph->nodes.count; i++) {
        tutti_node *node = graph->nodes.data[i];
        if (!node->dead && tutti__is(node, "variable") &&
            strcmp(tutti__str(node, "shared_name"), TUTTI_RANDOM_COUNTER) == 0)
            return node;
    }
    return NULL;
}

tutti_sym tutti__random_counter(tutti_graph *graph)
{
    tutti_node *node = find_counter(graph);
    if (node)
        return tutti__sym(node, 0);
    tutti_hidden_scopes hidden = tutti__scopes_hide(graph);
    tutti_sym counter = tutti_variable(graph, tutti_zeros(), .name = TUTTI_RANDOM_COUNTER,
                                       .shared_name = TUTTI_RANDOM_COUNTER, .dtype = TUTTI_I64,
                                       .not_trainable = true);
    tutti__scopes_show(graph, hidden);
    if (!graph->holds || !graph->holds(graph, TUTTI_RANDOM_COUNTER))
        graph->drawn |= FIRST;
    return counter;
}

bool tutti__random_begins(tutti_graph *graph)
{
    if (graph->drawn & FIRST)
        return true;
    return graph->trace && !find_counter(graph) &&
           (!graph->holds || !graph->holds(graph, TUTTI_RANDOM_COUNTER));
}

/* Whether a random node of the step has that salt, in a first step or a later one. */
static bool is_drawn(const tutti_graph *graph, uint64_t salt)
{
    uint64_t first = tutti__hash_mix(salt, FIRST);
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const tutti_node *node = graph->nodes.data[i];
        if (!(node->op->flags & TUTTI_OP_RANDOM))
            continue;
        uint64_t other = (uint64_t)tutti__int(node, "salt");
        if (other == salt || other == first)
            return true;
    }
    return false;
}

/* Of the name that the node would have in a graph: "scope/name", "scope/name_1" and so on. In a
 * trace its number follows. */
static uint64_t salt_of_name(const tutti_node *node)
{
    tutti_graph *graph = node->graph;
    int size = (int)(strrchr(node->name, '_') - node->name);
    uint64_t salt = tutti__hash_bytes(0, node->name, (size_t)size);
    for (unsigned n = 1; is_drawn(graph, salt); n++)
        salt = tutti__hash_string(
            0, tutti__arena_format(&graph->arena, "%.*s_%u", size, node->name, n));
    return salt;
}

int64_t tutti__random_salt(const tutti_node *node, const char *wished, bool own_counter)
{
    tutti_graph *graph = node->graph;
    if (!graph->trace)
        return (int64_t)tutti__hash_string(0, node->name);
    uint32_t first = own_counter ? 0 : graph->drawn & FIRST;
    if (!wished || !wished[0]) {
        uint64_t kind = tutti__hash_string(0, node->op->name);
        uint32_t number = ++graph->drawn & ~FIRST;
        return (int64_t)tutti__hash_mix(kind, first | number);
    }
    uint64_t salt = salt_of_name(node);
    return (int64_t)(first ? tutti__hash_mix(salt, first) : salt);
}

tutti_sym tutti__random_build(tutti_graph *graph, const tutti_op *op,
                              const tutti_random_options *options, int input_count,
                              const tutti_sym *inputs, int attr_count, const tutti_attr *attrs)
{
    RULE_OPTIONS(tutti_random_options, own, options);
    tutti_sym all[3];
    tutti_attr given[8];
    if (tutti_graph_check(graph) != TUTTI_OK)
        return TUTTI_POISON;
    all[0] = own.counter;
    if (!tutti_sym_ok(all[0]))
        all[0] = tutti__random_counter(graph);
    for (int i = 0; i < input_count; i++)
        all[1 + i] = inputs[i];
    given[0] = TUTTI_INT("seed", own.seed);
    for (int i = 0; i < attr_count; i++)
        given[1 + i] = attrs[i];
    tutti_sym sym = tutti__build(graph, op, own.name, 1 + input_count, all, 1 + attr_count, given);
    if (tutti_sym_ok(sym))
        tutti__attr_set_int(sym.node, "salt",
                            tutti__random_salt(sym.node, own.name, tutti_sym_ok(own.counter)));
    return sym;
}

tutti_sym tutti__random_build_type(tutti_graph *graph, const tutti_op *op, tutti_type type,
                                   const tutti_random_options *options, int attr_count,
                                   const tutti_attr *attrs)
{
    RULE_OPTIONS(tutti_random_options, own, options);
    tutti_attr given[6] = {TUTTI_INT("dtype", type.dtype), tutti__dims_attr(&type)};
    for (int i = 0; i < attr_count; i++)
        given[2 + i] = attrs[i];
    return tutti__random_build(graph, op, options, tutti_sym_ok(own.like) ? 1 : 0, &own.like,
                               2 + attr_count, given);
}
