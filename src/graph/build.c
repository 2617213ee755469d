/* build.c: the builder with a sticky error, and reads of variables put in where values are wanted.
 */
#include <stdio.h>
#include <string.h>

#include "graph/attr.h"
#include "graph/scope.h"

/* Keeps the first mistake only. */
static void build_note(tutti_graph *graph, tutti_status status)
{
    if (graph && graph->error.status == TUTTI_OK)
        tutti__error_capture(status, &graph->error);
}

/* Puts the user's place into the thread's message: "op 'name' (file:line): …". A message that
 * begins with the operator's own head keeps the name it gives. */
static void add_place(const char *op, const char *name)
{
    const char *file;
    int line;
    char head[640], message[1024];
    tutti__here_get(&file, &line);
    snprintf(message, sizeof message, "%s", tutti_error_message());
    snprintf(head, sizeof head, "%s '%s'", op, name);
    const char *rest = message, *colon = strstr(message, "': ");
    size_t op_size = strlen(op);
    if (strncmp(message, op, op_size) == 0 && strncmp(message + op_size, " '", 2) == 0 && colon) {
        snprintf(head, sizeof head, "%.*s", (int)(colon + 1 - message), message);
        rest = colon + 3;
    }
    if (file)
        tutti_fail(TUTTI_INVALID, "%s (%s:%d): %s", head, file, line, rest);
    else
        tutti_fail(TUTTI_INVALID, "%s: %s", head, rest);
}

const char *tutti__node_place(const tutti_node *node, char text[TUTTI_PLACE_TEXT])
{
    text[0] = '\0';
    if (node->file)
        snprintf(text, TUTTI_PLACE_TEXT, " (%s:%d)", node->file, node->line);
    return text;
}

tutti_status tutti__node_failed(const tutti_node *node, tutti_status status)
{
    char who[600], head[640], message[1024];
    snprintf(who, sizeof who, "%s '%s'", node->op->name, node->name);
    tutti__error_say(status, who);
    int size = snprintf(head, sizeof head, "%s: ", who);
    snprintf(message, sizeof message, "%s", tutti_error_message());
    if (!node->file || size >= (int)sizeof head)
        return status;
    if (strncmp(message, head, (size_t)size) == 0)
        return tutti_fail(status, "%.*s (%s:%d): %s", size - 2, head, node->file, node->line,
                          message + size);
    if (strstr(message, node->file)) /* it names a place already, of a node in a body */
        return status;
    return tutti_fail(status, "%s (%s, %s:%d)", message, who, node->file, node->line);
}

tutti_sym tutti__poison(tutti_graph *graph, tutti_status status, const char *format, ...)
{
    char message[1024], place[512];
    const char *file;
    int line;
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    tutti__here_get(&file, &line);
    snprintf(place, sizeof place, "(%s:%d)", file ? file : "", line);
    if (file && !strstr(message, place)) /* a message that was passed on may have it */
        tutti_fail(status, "%s %s", message, place);
    else
        tutti_fail(status, "%s", message);
    build_note(graph, status);
    return TUTTI_POISON;
}

tutti_status tutti__handle_read(tutti_graph *graph, tutti_edge handle, tutti_edge *ret)
{
    static const tutti_op *_Atomic known;
    const tutti_op *read_op = known;
    bool shared = !tutti__scope_has_control(graph);
    if (shared && handle.node->current.node) {
        *ret = handle.node->current;
        return TUTTI_OK;
    }
    if (!read_op)
        known = read_op = tutti_op_find("read");
    if (!read_op)
        return tutti_fail(TUTTI_INTERNAL, "operator 'read' is missing");
    tutti_node *node;
    TUTTI_TRY(tutti__node_add(graph, read_op, NULL, 1, &handle, 0, NULL, &node));
    if (handle.node->updated)
        TUTTI_TRY(tutti__node_after(node, handle.node->updated));
    *ret = (tutti_edge){node, 0};
    if (shared)
        handle.node->current = *ret;
    return TUTTI_OK;
}

tutti_status tutti__sym_usable(const tutti_graph *graph, tutti_sym sym, const char *what,
                               int number)
{
    char which[80];
    if (sym.node && sym.node->graph == graph && sym.generation == sym.node->generation)
        return TUTTI_OK;
    int used = snprintf(which, sizeof which, "%s", what);
    if (number >= 0 && used < (int)sizeof which)
        snprintf(which + used, sizeof which - (size_t)used, " %d", number);
    if (!sym.node) /* were it this graph's poison, there would be an error already */
        return tutti_fail(
            TUTTI_INVALID,
            "%s is not a symbol (never set, or a call that failed in another graph); give it the "
            "result of a builder call",
            which);
    if (sym.node->graph != graph)
        return tutti_fail(TUTTI_INVALID, "%s ('%s') belongs to another graph", which,
                          sym.node->name);
    return tutti_fail(
        TUTTI_INVALID,
        "%s is a value of an earlier step of the tape; read it with tutti_value before the step "
        "ends",
        which);
}

static tutti_status build_resolve(tutti_graph *graph, const tutti_op *op, const tutti_sym *input,
                                  int position, tutti_edge *ret)
{
    TUTTI_TRY(tutti__sym_usable(graph, *input, "input", position));
    *ret = (tutti_edge){input->node, input->index};
    if (position == 0 && (op->flags & TUTTI_OP_UPDATES) && tutti__is(input->node, "parameter"))
        return tutti_fail(TUTTI_INVALID,
                          "input 0 is an argument of a body of cond or while, which is a value: "
                          "bodies write no variables; return the new value and assign it outside");
    if ((int)input->index < input->node->output_count && input->node->types[input->index].handle &&
        !(op->flags & TUTTI_OP_TAKES_HANDLE))
        TUTTI_TRY(tutti__handle_read(graph, *ret, ret));
    return TUTTI_OK;
}

/* In a trace updates act in the order of building: what uses a handle follows its last update. */
static tutti_status follow_updates(tutti_graph *graph, tutti_node *node)
{
    if (!graph->trace || !(node->op->flags & TUTTI_OP_TAKES_HANDLE))
        return TUTTI_OK;
    for (int i = 0; i < node->input_count; i++) {
        tutti_node *handle = node->inputs[i].node;
        if (!handle->types[node->inputs[i].index].handle)
            continue;
        if (handle->updated)
            TUTTI_TRY(tutti__node_after(node, handle->updated));
        bool acts = (node->op->flags & TUTTI_OP_UPDATES) || !tutti__is(handle, "variable");
        if (acts) { /* whatever takes a queue acts on it */
            handle->current = (tutti_edge){0};
            handle->updated = node;
        }
    }
    return TUTTI_OK;
}

static tutti_status build(tutti_graph *graph, const tutti_op *op, const char *name, int input_count,
                          const tutti_sym *inputs, int attr_count, const tutti_attr *attrs,
                          tutti_sym *ret)
{
    tutti_edge few[16], *edges = few;
    if (input_count > 16 &&
        !(edges = tutti__arena_array(&graph->arena, (size_t)input_count, sizeof *edges)))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %d inputs", input_count);
    for (int i = 0; i < input_count; i++)
        TUTTI_TRY(build_resolve(graph, op, &inputs[i], i, &edges[i]));
    tutti_node *node;
    TUTTI_TRY(tutti__node_add(graph, op, name, input_count, edges, attr_count, attrs, &node));
    TUTTI_TRY(follow_updates(graph, node));
    *ret = tutti__sym(node, 0);
    return TUTTI_OK;
}

tutti_sym tutti__build(tutti_graph *graph, const tutti_op *op, const char *name, int input_count,
                       const tutti_sym *inputs, int attr_count, const tutti_attr *attrs)
{
    if (!graph)
        return tutti__poison(NULL, TUTTI_INVALID,
                             "%s: the graph is NULL; give what tutti_graph_create made", op->name);
    if (graph->error.status != TUTTI_OK)
        return TUTTI_POISON;
    tutti_sym sym = TUTTI_POISON;
    tutti_status status = build(graph, op, name, input_count, inputs, attr_count, attrs, &sym);
    if (status != TUTTI_OK) {
        enum { SHOWN = 512 }; /* more is no name */
        char full[600];
        int size =
            snprintf(full, sizeof full, "%s%s", tutti__scope_prefix(graph), name ? name : op->name);
        if (size > SHOWN)
            snprintf(full + 60, sizeof full - 60, "\u2026");
        add_place(op->name, full);
        build_note(graph, status);
    }
    return sym;
}

tutti_sym(tutti_apply_op_named)(tutti_graph *graph, const char *op_name, const char *name,
                                int input_count, const tutti_sym *inputs, int attr_count,
                                const tutti_attr *attrs)
{
    if (!op_name)
        return tutti__poison(graph, TUTTI_INVALID, "no operator is named: its name is NULL");
    const tutti_op *op = tutti_op_find(op_name);
    if (!op)
        return tutti__poison(
            graph, TUTTI_NOT_FOUND,
            "there is no operator '%s'; 'tutti ops' lists them, tutti_op_register adds one",
            op_name);
    if (input_count < 0 || attr_count < 0)
        return tutti__poison(
            graph, TUTTI_INVALID,
            "%s: %d inputs and %d attributes are announced; neither can be below 0", op_name,
            input_count, attr_count);
    bool no_inputs = input_count > 0 && !inputs;
    if (no_inputs || (attr_count > 0 && !attrs))
        return tutti__poison(graph, TUTTI_INVALID, "%s: %d %s are announced, and the array is NULL",
                             op_name, no_inputs ? input_count : attr_count,
                             no_inputs ? "inputs" : "attributes");
    return tutti__build(graph, op, name, input_count, inputs, attr_count, attrs);
}

tutti_sym(tutti_apply_op)(tutti_graph *graph, const char *op, int input_count,
                          const tutti_sym *inputs, int attr_count, const tutti_attr *attrs)
{
    return (tutti_apply_op_named)(graph, op, NULL, input_count, inputs, attr_count, attrs);
}
