/* graph.c: graphs and nodes: making, looking up, giving back. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/require.h"
#include "graph/attr.h"
#include "graph/graph.h"
#include "graph/inspect.h"
#include "graph/scope.h"

static _Atomic uint64_t next_serial = 1;

tutti_status tutti_graph_create(tutti_graph **ret_graph)
{
    TUTTI_REQUIRE(ret_graph);
    tutti_graph *graph = calloc(1, sizeof *graph);
    if (!graph)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a graph");
    graph->references = 1;
    graph->serial = atomic_fetch_add(&next_serial, 1);
    *ret_graph = graph;
    return TUTTI_OK;
}

tutti_graph *tutti__graph_retain(tutti_graph *graph)
{
    atomic_fetch_add(&graph->references, 1);
    return graph;
}

static void release_contents(tutti_graph *graph)
{
    for (size_t i = 0; i < graph->tensors.count; i++)
        tutti_tensor_release(graph->tensors.data[i]);
    for (size_t i = 0; i < graph->graphs.count; i++)
        tutti_graph_destroy(graph->graphs.data[i]);
    graph->tensors.count = graph->graphs.count = 0;
}

void tutti_graph_destroy(tutti_graph *graph)
{
    if (!graph || atomic_fetch_sub(&graph->references, 1) != 1)
        return;
    release_contents(graph);
    TUTTI_VEC_FREE(&graph->nodes);
    TUTTI_VEC_FREE(&graph->spare);
    TUTTI_VEC_FREE(&graph->results);
    TUTTI_VEC_FREE(&graph->targets);
    TUTTI_VEC_FREE(&graph->scopes);
    TUTTI_VEC_FREE(&graph->hooks);
    TUTTI_VEC_FREE(&graph->tensors);
    TUTTI_VEC_FREE(&graph->graphs);
    tutti__map_free(&graph->by_name);
    tutti__map_free(&graph->taken);
    tutti__inspection_free(graph->inspection);
    tutti__arena_free(&graph->arena);
    free(graph);
}

/* What symbols of the step that ends still lead to: a node of the next generation, with nothing. */
static void spare(tutti_graph *graph, tutti_node *node)
{
    *node = (tutti_node){.graph = graph,
                         .generation = graph->generation + 1,
                         .op = node->op,
                         .name = "",
                         .origin = "",
                         .device = ""};
    if (graph->lasting)
        (void)TUTTI_VEC_PUSH(&graph->spare, node); /* without memory it is not used again */
}

/* Whether a node outlives its step: a handle, unless its variable never got a value. */
static bool outlives_step(const tutti_node *node)
{
    return (node->op->flags & TUTTI_OP_HANDLE) && !node->dead;
}

/* Variables last, and so does what was asked of their gradients. */
static void keep_hooks(tutti_graph *graph)
{
    size_t kept = 0;
    for (size_t i = 0; i < graph->hooks.count; i++)
        if (outlives_step(graph->hooks.data[i].edge.node))
            graph->hooks.data[kept++] = graph->hooks.data[i];
    graph->hooks.count = kept;
}

void tutti__graph_reset(tutti_graph *graph)
{
    size_t kept = 0;
    char **texts = tutti__scopes_lift(graph);
    keep_hooks(graph);
    tutti__inspect_reset(graph);
    for (size_t i = 0; i < graph->nodes.count; i++) {
        tutti_node *node = graph->nodes.data[i];
        if (!outlives_step(node)) {
            if (node->op->flags & TUTTI_OP_HANDLE) /* a name that is there needs no memory */
                (void)tutti__map_set(&graph->by_name, node->name, NULL);
            spare(graph, node);
            continue;
        }
        node->current = (tutti_edge){0};
        node->updated = NULL;
        node->controls = node->grown = NULL;
        node->control_count = 0;
        node->colocate = NULL;
        node->id = (uint32_t)kept;
        graph->nodes.data[kept++] = node;
    }
    release_contents(graph);
    graph->nodes.count = kept;
    graph->results.count = graph->targets.count = 0;
    graph->error.status = TUTTI_OK;
    graph->regions = 0;
    for (size_t i = 0; i < graph->scopes.count; i++)
        if (graph->scopes.data[i].region > graph->regions)
            graph->regions = graph->scopes.data[i].region;
    graph->generation++;
    graph->drawn = 0;
    graph->initializers = 0;
    graph->version++;
    tutti__arena_reset(&graph->arena);
    tutti__scopes_lay_down(graph, texts);
}

tutti_status tutti_graph_check(const tutti_graph *graph)
{
    if (!graph)
        return tutti_fail(TUTTI_INVALID, "the graph is NULL");
    return graph->error.status == TUTTI_OK ? TUTTI_OK : tutti__error_restore(&graph->error);
}

size_t tutti_graph_node_count(const tutti_graph *graph)
{
    if (!graph)
        return 0;
    return graph->nodes.count;
}

tutti_node *tutti_graph_find(const tutti_graph *graph, const char *name)
{
    return graph && name ? tutti__map_get(&graph->by_name, name) : NULL;
}

const char *tutti_node_name(const tutti_node *node)
{
    if (!node)
        return "";
    return node->name;
}
const char *tutti_node_op(const tutti_node *node)
{
    if (!node)
        return "";
    return node->op->name;
}
const char *tutti_node_device(const tutti_node *node)
{
    if (!node)
        return "";
    return node->device;
}
tutti_graph *tutti_sym_graph(tutti_sym sym)
{
    return sym.node ? sym.node->graph : NULL;
}

tutti_type tutti_sym_type(tutti_sym sym)
{
    if (!sym.node || sym.node->generation != sym.generation ||
        (int)sym.index >= sym.node->output_count)
        return (tutti_type){0};
    return sym.node->types[sym.index];
}

int tutti_sym_output_count(tutti_sym sym)
{
    return sym.node ? sym.node->output_count : 0;
}

tutti_sym(tutti_sym_output)(tutti_sym sym, int index)
{
    if (!sym.node)
        return sym;
    if (tutti__sym_usable(sym.node->graph, sym, "tutti_sym_output: the symbol", -1) != TUTTI_OK)
        return tutti__poison(sym.node->graph, TUTTI_INVALID, "%s", tutti_error_message());
    if (index < 0 || index >= sym.node->output_count)
        return tutti__poison(sym.node->graph, TUTTI_OUT_OF_RANGE,
                             "%s '%s' has %d outputs; there is no output %d", sym.node->op->name,
                             sym.node->name, sym.node->output_count, index);
    return tutti__sym(sym.node, (uint32_t)index);
}

enum { MAX_OUTPUTS = 4096 }; /* of those counted by an attribute */

/* How many outputs a node has: fixed, by attribute "outputs", by list "types", by attribute
 * "loop_count", or by its first sub-graph's results; -1 when the attribute is out of range. */
static int output_count(const tutti_node *node)
{
    if (node->op->outputs >= 0)
        return node->op->outputs;
    for (int i = 0; i < node->attr_count; i++) {
        const tutti_attr *attr = &node->attrs[i];
        if (attr->kind == TUTTI_ATTR_INT && strcmp(attr->name, "outputs") == 0)
            return attr->value.i < 0 || attr->value.i > MAX_OUTPUTS ? -1 : (int)attr->value.i;
        if (attr->kind == TUTTI_ATTR_TYPES && strcmp(attr->name, "types") == 0)
            return attr->count;
    }
    const tutti_attr *loop = tutti_attr_find(node->attrs, node->attr_count, "loop_count");
    if (loop && loop->kind == TUTTI_ATTR_INT)
        return loop->value.i < 0 || loop->value.i > MAX_OUTPUTS ? -1 : (int)loop->value.i;
    for (int i = 0; i < node->attr_count; i++)
        if (node->attrs[i].kind == TUTTI_ATTR_GRAPH)
            return (int)node->attrs[i].value.graph->results.count;
    return 0;
}

/* What a shape rule gave, a user's own too: types that can be, of a size that 64 bits hold. */
static tutti_status check_outputs(const tutti_infer *rule)
{
    char text[TUTTI_TYPE_TEXT];
    for (int i = 0; i < rule->output_count; i++) {
        const tutti_type *type = &rule->outputs[i];
        bool typed = type->dtype > TUTTI_NO_DTYPE && type->dtype < TUTTI_DTYPE_END &&
                     type->rank >= 0 && type->rank <= TUTTI_MAX_RANK;
        if (!typed)
            return tutti_fail(TUTTI_INTERNAL,
                              "%s '%s': the shape rule left output %d without a type",
                              rule->op->name, rule->name, i);
        if (type->handle && !(i == 0 && (rule->op->flags & TUTTI_OP_HANDLE)))
            return tutti_fail(TUTTI_INTERNAL,
                              "%s '%s': the shape rule made output %d a handle, as the type of a "
                              "variable among the inputs is one; a value has .handle = false",
                              rule->op->name, rule->name, i);
        for (int d = 0; d < type->rank; d++)
            if (type->dims[d] < TUTTI_ANY)
                return tutti_fail(TUTTI_INVALID,
                                  "%s '%s': the shape rule gave output %d the dimension %lld (axis "
                                  "%d)",
                                  rule->op->name, rule->name, i, (long long)type->dims[d], d);
        int64_t elements = tutti_type_count(type), bytes;
        if (elements == -2 ||
            (elements > 0 &&
             !tutti__mul_size(elements, (int64_t)tutti_dtype_size(type->dtype), &bytes)))
            return tutti_fail(TUTTI_TOO_LARGE,
                              "%s '%s': output %d would be %s, whose size overflows 64 bits",
                              rule->op->name, rule->name, i, tutti_type_text(type, text));
    }
    return TUTTI_OK;
}

tutti_status tutti__node_infer(tutti_node *node, tutti_tensor *const *values, tutti_type *ret_types)
{
    tutti_type few[8], *types = few;
    if (node->input_count > 8) {
        types = malloc((size_t)node->input_count * sizeof *types);
        if (!types)
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for types of %d inputs",
                              node->input_count);
    }
    for (int i = 0; i < node->input_count; i++)
        types[i] = *tutti__edge_type(node->inputs[i]);
    tutti_infer rule = {.op = node->op,
                        .name = node->name,
                        .input_count = node->input_count,
                        .output_count = node->output_count,
                        .inputs = types,
                        .attrs = node->attrs,
                        .attr_count = node->attr_count,
                        .values = values,
                        .outputs = ret_types};
    tutti__error_forget();
    tutti_status status = node->op->infer ? node->op->infer(&rule) : TUTTI_OK;
    if (status != TUTTI_OK)
        tutti__error_say(status, "the shape rule failed");
    else
        status = check_outputs(&rule);
    if (types != few)
        free(types);
    return status;
}

/* The value of an edge that is a constant, or NULL. */
static tutti_tensor *constant_value(tutti_edge edge)
{
    for (int i = 0; tutti__is(edge.node, "constant") && i < edge.node->attr_count; i++)
        if (edge.node->attrs[i].kind == TUTTI_ATTR_TENSOR)
            return edge.node->attrs[i].value.tensor;
    return NULL;
}

tutti_status tutti__node_infer_known(tutti_node *node, tutti_type *ret_types)
{
    tutti_tensor **values = calloc((size_t)node->input_count + 1, sizeof *values);
    if (!values)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for values of %d inputs", node->input_count);
    for (int i = 0; i < node->input_count; i++)
        values[i] = constant_value(node->inputs[i]);
    tutti_status status = tutti__node_infer(node, values, ret_types);
    free(values);
    return status;
}

static tutti_status check_inputs(const tutti_graph *graph, const tutti_op *op, int count,
                                 const tutti_edge *inputs)
{
    if (count < op->min_inputs || (op->max_inputs >= 0 && count > op->max_inputs))
        return op->max_inputs > op->min_inputs
                   ? tutti_fail(TUTTI_INVALID, "has %d inputs, needs %d to %d", count,
                                op->min_inputs, op->max_inputs)
                   : tutti_fail(TUTTI_INVALID, "has %d inputs, needs %s%d", count,
                                op->max_inputs < 0 ? "at least " : "", op->min_inputs);
    for (int i = 0; i < count; i++) {
        if (!inputs[i].node || inputs[i].node->graph != graph)
            return tutti_fail(TUTTI_INVALID, "input %d %s", i,
                              inputs[i].node ? "belongs to another graph" : "is missing");
        if ((int)inputs[i].index >= inputs[i].node->output_count)
            return tutti_fail(TUTTI_INVALID, "input %d is output %u of %s '%s', which has %d", i,
                              inputs[i].index, inputs[i].node->op->name, inputs[i].node->name,
                              inputs[i].node->output_count);
        if (tutti__edge_type(inputs[i])->handle && !(op->flags & TUTTI_OP_TAKES_HANDLE))
            return tutti_fail(TUTTI_INVALID, "input %d ('%s') is a handle, needs a value", i,
                              inputs[i].node->name);
    }
    return TUTTI_OK;
}

/* Name, device and the like: from the scopes in force, or from another node. */
static tutti_status give_identity(tutti_graph *graph, tutti_node *node, const char *name,
                                  const tutti_node *like)
{
    if (!like) {
        TUTTI_TRY(tutti__scope_apply(graph, node, name));
        node->origin = node->name;
        return TUTTI_OK;
    }
    node->name = like->name;
    node->origin = like->origin;
    node->device = like->device;
    tutti__node_mark_like(node, like);
    return TUTTI_OK;
}

static tutti_status graph_fill(tutti_graph *graph, tutti_node *node, const char *name,
                               const tutti_node *like, int input_count, const tutti_edge *inputs,
                               int attr_count, const tutti_attr *attrs)
{
    node->input_count = input_count;
    node->inputs =
        (void *)tutti__arena_bytes(&graph->arena, inputs, (size_t)input_count * sizeof *inputs);
    TUTTI_TRY(
        tutti__attrs_complete(graph, node->op, attr_count, attrs, &node->attr_count, &node->attrs));
    node->output_count = output_count(node);
    if (node->output_count < 0)
        return tutti_fail(TUTTI_INVALID, "the attribute that counts its outputs is outside [0, %d]",
                          MAX_OUTPUTS);
    if (like && node->output_count != like->output_count)
        return tutti_fail(TUTTI_INVALID, "has %d outputs by its attributes, not %d",
                          node->output_count, like->output_count);
    node->types =
        tutti__arena_array(&graph->arena, (size_t)node->output_count + 1, sizeof *node->types);
    TUTTI_TRY(give_identity(graph, node, name, like));
    if (!node->inputs || !node->types || !node->name)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a node");
    return tutti__node_infer(node, NULL, node->types);
}

static tutti_node *new_node(tutti_graph *graph, const tutti_op *op)
{
    if (!graph->lasting || (op->flags & TUTTI_OP_HANDLE))
        return tutti__arena_take(&graph->arena, sizeof(tutti_node));
    if (graph->spare.count == 0)
        return tutti__arena_take(graph->lasting, sizeof(tutti_node));
    tutti_node *node = graph->spare.data[--graph->spare.count];
    *node = (tutti_node){0};
    return node;
}

static tutti_status graph_add(tutti_graph *graph, const tutti_op *op, const char *name,
                              const tutti_node *like, int input_count, const tutti_edge *inputs,
                              int attr_count, const tutti_attr *attrs, tutti_node **ret_node)
{
    TUTTI_TRY(check_inputs(graph, op, input_count, inputs));
    tutti_node *node = new_node(graph, op);
    if (!node || !TUTTI_VEC_RESERVE_ONE(&graph->nodes))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a node");
    node->graph = graph;
    node->op = op;
    node->generation = graph->generation;
    node->id = (uint32_t)graph->nodes.count;
    tutti_status status =
        graph_fill(graph, node, name, like, input_count, inputs, attr_count, attrs);
    if (status != TUTTI_OK && graph->lasting && !(op->flags & TUTTI_OP_HANDLE))
        (void)TUTTI_VEC_PUSH(&graph->spare, node); /* nobody knows of it */
    TUTTI_TRY(status);
    if (!like && (!graph->trace || (op->flags & TUTTI_OP_HANDLE)))
        TUTTI_TRY(tutti__map_set(&graph->by_name, node->name, node));
    graph->nodes.data[graph->nodes.count++] = node;
    graph->version++;
    *ret_node = node;
    return TUTTI_OK;
}

static void swap_arenas(tutti_arena *a, tutti_arena *b)
{
    tutti_arena held = *a;
    *a = *b;
    *b = held;
}

tutti_status tutti__node_add(tutti_graph *graph, const tutti_op *op, const char *name,
                             int input_count, const tutti_edge *inputs, int attr_count,
                             const tutti_attr *attrs, tutti_node **ret_node)
{
    bool lasts = graph->lasting && (op->flags & TUTTI_OP_HANDLE);
    if (lasts)
        swap_arenas(&graph->arena, graph->lasting);
    tutti_status status =
        graph_add(graph, op, name, NULL, input_count, inputs, attr_count, attrs, ret_node);
    if (lasts)
        swap_arenas(&graph->arena, graph->lasting);
    return status;
}

tutti_status tutti__node_restore(tutti_graph *graph, const tutti_node *like, int attr_count,
                                 const tutti_attr *attrs, tutti_node **ret_node)
{
    return graph_add(graph, like->op, NULL, like, like->input_count, like->inputs, attr_count,
                     attrs, ret_node);
}

tutti_status tutti__graph_result(tutti_graph *graph, tutti_edge edge)
{
    if (!edge.node || edge.node->graph != graph)
        return tutti_fail(TUTTI_INVALID, "a sub-graph's result must be one of its own nodes");
    return TUTTI_VEC_PUSH(&graph->results, edge)
               ? TUTTI_OK
               : tutti_fail(TUTTI_NO_MEMORY, "no memory for results");
}
