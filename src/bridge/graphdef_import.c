/* graphdef_import.c: frozen graphs of TensorFlow's as nodes of ours. Nodes may stand in any order:
 * each is built after what it takes. */
#include "bridge/graphdef.h"
#include "ops/reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/world.h"

void tutti__graphdef_fail(tutti_graphdef_import *m, tutti_status status, const char *format, ...)
{
    char text[700];
    va_list list;
    if (m->status != TUTTI_OK)
        return;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    m->status = tutti_fail(status, "%s: %s '%s': %s", m->def->file, m->node ? m->node->op : "graph",
                           m->node ? m->node->name : "", text);
    tutti__error_capture(m->status, &m->error);
}

int tutti__graphdef_inputs(const tutti_graphdef_node *node)
{
    int count = 0;
    while ((size_t)count < node->inputs.count && node->inputs.items[count][0] != '^')
        count++;
    return count;
}

/* "name" or "name:1"; a leading '^' is passed over. */
static tutti_graphdef_node *find(const tutti_graphdef *def, const char *input, int *ret_output)
{
    char name[512];
    input += input[0] == '^';
    const char *colon = strrchr(input, ':');
    size_t size = colon ? (size_t)(colon - input) : strlen(input);
    if (size >= sizeof name)
        return NULL;
    memcpy(name, input, size);
    name[size] = 0;
    *ret_output = colon ? atoi(colon + 1) : 0;
    return tutti__map_get(&def->by_name, name);
}

static tutti_graphdef_node *maker(tutti_graphdef_import *m, int i, int *ret_output)
{
    if (i < 0 || i >= tutti__graphdef_inputs(m->node)) {
        tutti__graphdef_fail(m, TUTTI_CORRUPT, "input %d is missing", i);
        return NULL;
    }
    return find(m->def, m->node->inputs.items[i], ret_output);
}

tutti_sym tutti__graphdef_in(tutti_graphdef_import *m, int i)
{
    int output = 0;
    tutti_graphdef_node *from = maker(m, i, &output);
    if (!from || !from->made.node || output < 0) {
        tutti__graphdef_fail(m, TUTTI_CORRUPT, "input %d is made by nobody", i);
        return TUTTI_NO_SYM;
    }
    if (output > 0 && output <= (int)TUTTI_COUNT(from->more) && from->more[output - 1].node)
        return from->more[output - 1];
    if (output >= tutti_output_count(from->made)) {
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "takes output %d of '%s'", output, from->name);
        return TUTTI_NO_SYM;
    }
    return output == 0 ? from->made : tutti_output_of(from->made, output);
}

/* Whether a node follows from small constants alone. */
static bool follows(const tutti_node *node, int depth, int *visited)
{
    uint32_t never = TUTTI_OP_STATEFUL | TUTTI_OP_UPDATES | TUTTI_OP_RANDOM | TUTTI_OP_COLLECTIVE |
                     TUTTI_OP_HANDLE | TUTTI_OP_TAKES_HANDLE | TUTTI_OP_BLOCKING;
    int64_t count = tutti_type_count(&node->types[0]);
    if ((node->op->flags & never) || tutti__is(node, "placeholder") || depth > 32 ||
        ++*visited > 256 || count < 0 || count > 1024)
        return false;
    for (int i = 0; i < node->input_count; i++)
        if (!follows(node->inputs[i].node, depth + 1, visited))
            return false;
    return true;
}

/* The value of input i where it follows from constants; NULL when it does not. */
static tutti_tensor *computed(tutti_graphdef_import *m, int i)
{
    tutti_tensor *value = NULL;
    tutti_sym sym = tutti__graphdef_in(m, i);
    int visited = 0;
    if (!sym.node || tutti_graph_check(m->graph) != TUTTI_OK || !follows(sym.node, 0, &visited))
        return NULL;
    tutti_edge edge = tutti__edge(sym);
    if (tutti__reference_run(m->graph, 0, NULL, 1, &edge, &value) != TUTTI_OK)
        return NULL;
    if (TUTTI_VEC_PUSH(&m->def->tensors, value))
        return value;
    tutti_tensor_release(value);
    return NULL;
}

tutti_tensor *tutti__graphdef_value(tutti_graphdef_import *m, int i)
{
    int output = 0;
    const tutti_graphdef_node *from = maker(m, i, &output);
    while (from && strcmp(from->op, "Identity") == 0 && from->inputs.count > 0)
        from = find(m->def, from->inputs.items[0], &output);
    const tutti_graphdef_attr *attr =
        from && strcmp(from->op, "Const") == 0 ? tutti__graphdef_attr(from, "value") : NULL;
    tutti_tensor *value = attr ? attr->tensor : computed(m, i);
    if (!value)
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "input %d must be a constant", i);
    return value;
}

bool tutti__graphdef_ints(tutti_graphdef_import *m, int i, tutti_axes *ret)
{
    const tutti_tensor *value = tutti__graphdef_value(m, i);
    *ret = (tutti_axes){0};
    if (!value)
        return false;
    if (tutti_tensor_count(value) > TUTTI_MAX_RANK) {
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "input %d has more than %d numbers", i,
                             TUTTI_MAX_RANK);
        return false;
    }
    for (int64_t k = 0; k < tutti_tensor_count(value); k++)
        ret->values[ret->count++] = tutti_tensor_get_int(value, k);
    return true;
}

/* ---- nodes ---- */

/* Builds a node when all that it takes is there; else notes the first that is missing. */
static tutti_graphdef_node *missing_input(tutti_graphdef_import *m, const tutti_graphdef_node *node)
{
    for (size_t i = 0; m->status == TUTTI_OK && i < node->inputs.count; i++) {
        int output;
        tutti_graphdef_node *from = find(m->def, node->inputs.items[i], &output);
        if (!from) {
            tutti__graphdef_fail(m, TUTTI_CORRUPT, "takes '%s', which is not there",
                                 node->inputs.items[i]);
            return NULL;
        }
        if (node->inputs.items[i][0] != '^')
            from->used = true;
        if (from->state != 2)
            return from;
    }
    return NULL;
}

static void build(tutti_graphdef_import *m, tutti_graphdef_node *node)
{
    m->node = node;
    tutti__graphdef_rule_of(node->op)(m);
    if (m->status == TUTTI_OK && tutti_graph_check(m->graph) != TUTTI_OK)
        tutti__graphdef_fail(m, TUTTI_INVALID, "%s", tutti_error_message());
    node->state = 2;
    m->node = NULL;
}

/* Depth first with a stack of its own: chains are long. */
static void build_from(tutti_graphdef_import *m, tutti_graphdef_node *start)
{
    TUTTI_VEC(tutti_graphdef_node *) stack = {0};
    tutti_graphdef_node *node = start;
    while (m->status == TUTTI_OK && node) {
        m->node = node;
        node->state = node->state == 2 ? 2 : 1;
        tutti_graphdef_node *first = node->state == 2 ? NULL : missing_input(m, node);
        if (m->status != TUTTI_OK)
            break;
        if (first && first->state == 1) {
            tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "is part of a cycle (a loop)");
            break;
        }
        if (first) {
            if (!TUTTI_VEC_PUSH(&stack, node))
                tutti__graphdef_fail(m, TUTTI_NO_MEMORY, "no memory for the graph");
            node = first;
            continue;
        }
        if (node->state != 2)
            build(m, node);
        node = stack.count > 0 ? stack.data[--stack.count] : NULL;
    }
    TUTTI_VEC_FREE(&stack);
}

/* All operators without a rule at once. */
static tutti_status check_rules(const tutti_graphdef *def)
{
    tutti_map seen = {0};
    tutti_text text = {0};
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; status == TUTTI_OK && i < def->nodes.count; i++) {
        const tutti_graphdef_node *node = &def->nodes.items[i];
        if (tutti__graphdef_rule_of(node->op) || tutti__map_get(&seen, node->op))
            continue;
        status = tutti__map_set(&seen, node->op, (void *)node);
        tutti__text_add(&text, "%s%s ('%s')", text.size > 0 ? ", " : "", node->op, node->name);
    }
    if (status == TUTTI_OK && seen.count > 0)
        status = tutti_fail(TUTTI_UNSUPPORTED,
                            "%s: these operators of TensorFlow are not known here: %s", def->file,
                            text.data ? text.data : "");
    tutti__text_free(&text);
    tutti__map_free(&seen);
    return status;
}

static const char *kept_name(tutti_graphdef_import *m, const char *name)
{
    char *copy = tutti__arena_take(&m->graph->arena, strlen(name) + 1);
    if (!copy) {
        tutti__graphdef_fail(m, TUTTI_NO_MEMORY, "no memory for the graph");
        return "";
    }
    memcpy(copy, name, strlen(name) + 1);
    return copy;
}

static void give_ports(tutti_graphdef_import *m, tutti_onnx_ports *ret)
{
    size_t count = m->def->nodes.count;
    tutti_onnx_port *inputs = tutti__arena_array(&m->graph->arena, count, sizeof *inputs);
    tutti_onnx_port *outputs = tutti__arena_array(&m->graph->arena, count, sizeof *outputs);
    tutti_onnx_ports ports = {.inputs = inputs, .outputs = outputs};
    if (!inputs || !outputs)
        tutti__graphdef_fail(m, TUTTI_NO_MEMORY, "no memory for the graph");
    for (size_t i = 0; m->status == TUTTI_OK && i < count; i++) {
        const tutti_graphdef_node *node = &m->def->nodes.items[i];
        bool input = strcmp(node->op, "Placeholder") == 0;
        tutti_onnx_port port = {node->made.node ? kept_name(m, node->name) : "", node->made};
        if (input)
            inputs[ports.input_count++] = port;
        else if (!node->used && node->made.node && strcmp(node->op, "Const") != 0)
            outputs[ports.output_count++] = port;
    }
    if (m->status == TUTTI_OK && ports.output_count == 0)
        tutti__graphdef_fail(m, TUTTI_CORRUPT, "it has no outputs");
    if (m->status == TUTTI_OK)
        *ret = ports;
}

tutti_status tutti__graphdef_into_graph(tutti_graphdef *def, tutti_graph *graph,
                                        tutti_onnx_ports *ret_ports)
{
    tutti_graphdef_import m = {.def = def, .graph = graph};
    TUTTI_TRY(check_rules(def));
    for (size_t i = 0; m.status == TUTTI_OK && i < def->nodes.count; i++)
        build_from(&m, &def->nodes.items[i]);
    m.node = NULL;
    if (m.status == TUTTI_OK)
        give_ports(&m, ret_ports);
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
