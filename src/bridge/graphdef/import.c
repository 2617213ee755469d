/* import.c: frozen graphs of TensorFlow's as nodes of ours. Nodes may stand in any order:
 * each is built after what it takes. */
#include "bridge/graphdef/graphdef.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/world.h"

/* Nodes that give nothing: what they take is not needed for them. */
static bool is_silent(const tutti_graphdef_node *node)
{
    static const char *const ops[] = {"NoOp", "Assert", "Print", "PrintV2", "ControlTrigger"};
    for (size_t i = 0; i < TUTTI_COUNT(ops); i++)
        if (strcmp(node->op, ops[i]) == 0)
            return true;
    return false;
}

static bool may_be_output(const tutti_graphdef_node *node)
{
    return !node->used && !node->inside && !is_silent(node) && strcmp(node->op, "Const") != 0 &&
           strcmp(node->op, "Placeholder") != 0;
}

/* Nodes that nobody uses. Loops leave what nobody wants at their Exit: that counts only where there
 * is nothing else. */
static void mark_outputs(tutti_graphdef_graph *graph)
{
    bool any = false;
    for (size_t i = 0; i < graph->nodes.count; i++) {
        tutti_graphdef_node *node = &graph->nodes.items[i];
        node->output = may_be_output(node) && strcmp(node->op, "Exit") != 0;
        any = any || node->output;
    }
    for (size_t i = 0; !any && i < graph->nodes.count; i++)
        graph->nodes.items[i].output = may_be_output(&graph->nodes.items[i]);
}

static void mark_used(tutti_graphdef_graph *graph)
{
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const tutti_graphdef_node *node = &graph->nodes.items[i];
        for (int k = 0; k < tutti__graphdef_inputs(node); k++) {
            int output;
            tutti_graphdef_node *from = tutti__graphdef_find(graph, node->inputs.items[k], &output);
            if (from)
                from->used = true;
        }
    }
}

/* ---- operators that are not known ---- */

typedef struct search {
    tutti_graphdef *def; /* its graph's nodes are marked where an output needs them */
    tutti_map seen;      /* operators, and functions as "()name" */
    tutti_text text;
    TUTTI_VEC(tutti_graphdef_graph *) graphs; /* to look through */
    TUTTI_VEC(const tutti_graphdef_node *) stack;
} search;

static tutti_status look_at_function(search *s, const char *name)
{
    char key[600];
    tutti_graphdef_graph *graph = tutti__map_get(&s->def->by_name, name);
    snprintf(key, sizeof key, "()%s", name);
    if (!graph || tutti__map_get(&s->seen, key))
        return TUTTI_OK;
    TUTTI_TRY(tutti__map_set(&s->seen, key, graph));
    return TUTTI_VEC_PUSH(&s->graphs, graph) ? TUTTI_OK : tutti__graphdef_no_memory(s->def);
}

static tutti_status look_at_node(search *s, const tutti_graphdef_node *node)
{
    for (size_t i = 0; i < node->attrs.count; i++) {
        const tutti_graphdef_attr *attr = &node->attrs.items[i];
        if (attr->function[0])
            TUTTI_TRY(look_at_function(s, attr->function));
        for (size_t k = 0; k < attr->functions.count; k++)
            TUTTI_TRY(look_at_function(s, attr->functions.items[k]));
    }
    TUTTI_TRY(look_at_function(s, node->op));
    if (tutti__graphdef_rule_of(node->op) || tutti__map_get(&s->def->by_name, node->op) ||
        tutti__map_get(&s->seen, node->op))
        return TUTTI_OK;
    tutti__text_add(&s->text, "%s%s ('%s')", s->text.size > 0 ? ", " : "", node->op, node->name);
    return tutti__map_set(&s->seen, node->op, (void *)node);
}

/* Nodes that a graph's results, or the file's outputs, need. */
static tutti_status look_through(search *s, tutti_graphdef_graph *graph)
{
    int output;
    tutti_map visited = {0};
    tutti_status status = TUTTI_OK;
    s->stack.count = 0;
    for (size_t i = 0; i < graph->nodes.count; i++)
        if (graph == &s->def->graph && graph->nodes.items[i].output &&
            !TUTTI_VEC_PUSH(&s->stack, &graph->nodes.items[i]))
            status = tutti__graphdef_no_memory(s->def);
    for (size_t i = 0; i < graph->results.count; i++) {
        const tutti_graphdef_node *node =
            tutti__graphdef_find(graph, graph->results.items[i], &output);
        if (node && !TUTTI_VEC_PUSH(&s->stack, node))
            status = tutti__graphdef_no_memory(s->def);
    }
    while (status == TUTTI_OK && s->stack.count > 0) {
        const tutti_graphdef_node *node = s->stack.data[--s->stack.count];
        if (tutti__map_get(&visited, node->name))
            continue;
        status = tutti__map_set(&visited, node->name, (void *)node);
        graph->nodes.items[node - graph->nodes.items].needed = true;
        if (status == TUTTI_OK)
            status = look_at_node(s, node);
        for (int k = tutti__graphdef_inputs(node) - 1; status == TUTTI_OK && k >= 0; k--) {
            const tutti_graphdef_node *from =
                tutti__graphdef_find(graph, node->inputs.items[k], &output);
            if (from && !TUTTI_VEC_PUSH(&s->stack, from))
                status = tutti__graphdef_no_memory(s->def);
        }
    }
    tutti__map_free(&visited);
    return status;
}

/* All operators without a rule at once, in the graph and the functions that it calls. */
static tutti_status check_rules(tutti_graphdef *def)
{
    search s = {.def = def};
    tutti_status status = look_through(&s, &def->graph);
    for (size_t i = 0; status == TUTTI_OK && i < s.graphs.count; i++)
        status = look_through(&s, s.graphs.data[i]);
    if (status == TUTTI_OK && s.text.size > 0)
        status = tutti_fail(TUTTI_UNSUPPORTED,
                            "%s: these operators of TensorFlow are not known here: %s", def->file,
                            s.text.data);
    tutti__text_free(&s.text);
    tutti__map_free(&s.seen);
    TUTTI_VEC_FREE(&s.graphs);
    TUTTI_VEC_FREE(&s.stack);
    return status;
}

/* ---- inputs and outputs ---- */

static const char *kept_name(tutti_graphdef_import *m, const char *name)
{
    const char *copy = tutti__arena_string(&m->graph->arena, name);
    if (!copy)
        tutti__graphdef_fail(m, TUTTI_NO_MEMORY, "no memory for the graph");
    return copy ? copy : "";
}

/* Builds what a node gives. A list of tensors is no output. */
static void build_port(tutti_graphdef_import *m, const tutti_graphdef_node *node,
                       tutti_onnx_port *ports, int *count)
{
    tutti_graphdef_value value = {0};
    if (!tutti__graphdef_build(m, node->name, &value) || value.lost)
        return;
    if (!value.list)
        ports[(*count)++] = (tutti_onnx_port){kept_name(m, node->name), value.sym};
}

/* A graph without outputs is one of cycles, or of constants. */
static void say_no_outputs(tutti_graphdef_import *m)
{
    tutti_graphdef_value value;
    for (size_t i = 0; m->status == TUTTI_OK && i < m->def->graph.nodes.count; i++)
        if (m->def->graph.nodes.items[i].used)
            tutti__graphdef_build(m, m->def->graph.nodes.items[i].name, &value);
    m->node = NULL;
    tutti__graphdef_fail(m, TUTTI_CORRUPT, "it has no outputs");
}

static void build_ports(tutti_graphdef_import *m, tutti_onnx_ports *ret)
{
    size_t count = m->def->graph.nodes.count;
    tutti_onnx_port *inputs = tutti__arena_array(&m->graph->arena, count, sizeof *inputs);
    tutti_onnx_port *outputs = tutti__arena_array(&m->graph->arena, count, sizeof *outputs);
    tutti_onnx_ports ports = {.inputs = inputs, .outputs = outputs};
    if (!inputs || !outputs) {
        tutti__graphdef_fail(m, TUTTI_NO_MEMORY, "no memory for the graph");
        return;
    }
    for (size_t i = 0; m->status == TUTTI_OK && i < count; i++)
        if (strcmp(m->def->graph.nodes.items[i].op, "Placeholder") == 0 &&
            m->def->graph.nodes.items[i].needed)
            build_port(m, &m->def->graph.nodes.items[i], inputs, &ports.input_count);
    for (size_t i = 0; m->status == TUTTI_OK && i < count; i++)
        if (m->def->graph.nodes.items[i].output)
            build_port(m, &m->def->graph.nodes.items[i], outputs, &ports.output_count);
    m->node = NULL;
    if (m->status == TUTTI_OK && ports.output_count == 0 && m->need_count == 0)
        say_no_outputs(m);
    if (m->status == TUTTI_OK && m->need_count > 0)
        m->status =
            tutti_fail(TUTTI_UNSUPPORTED, "%s: what these nodes ask for is not supported: %s",
                       m->def->file, m->needs.data ? m->needs.data : "");
    if (m->status == TUTTI_UNSUPPORTED && m->need_count > 0)
        tutti__error_capture(m->status, &m->error);
    if (m->status == TUTTI_OK)
        *ret = ports;
}

tutti_status tutti__graphdef_into_graph(tutti_graphdef *def, tutti_graph *graph,
                                        tutti_onnx_ports *ret_ports)
{
    tutti_graphdef_scope scope = {.graph = &def->graph};
    tutti_graphdef_import m = {.def = def, .graph = graph, .scope = &scope};
    m.root = &m;
    mark_used(&def->graph);
    TUTTI_TRY(tutti__graphdef_find_flows(def, &def->graph));
    mark_outputs(&def->graph);
    TUTTI_TRY(check_rules(def));
    build_ports(&m, ret_ports);
    tutti__graphdef_scope_free(&scope);
    tutti__text_free(&m.needs);
    return m.status == TUTTI_OK ? TUTTI_OK : tutti__error_restore(&m.error);
}

tutti_status tutti_import_graphdef(tutti_graph *graph, const char *path,
                                   tutti_onnx_ports *ret_ports)
{
    const tutti_world *world = tutti__world();
    tutti_graphdef *def;
    void *data;
    size_t size;
    if (!graph || !path || !ret_ports)
        return tutti_fail(TUTTI_INVALID, "tutti_import_graphdef: no graph, path or ports");
    TUTTI_TRY(world->read_file(world->self, path, ONNX_BYTES, &data, &size));
    tutti_status status = tutti__graphdef_decode(path, data, size, &def);
    free(data);
    TUTTI_TRY(status);
    status = tutti__graphdef_into_graph(def, graph, ret_ports);
    tutti__graphdef_free(def);
    return status;
}
