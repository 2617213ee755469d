/* scope.c: nodes and what they stand for in the graph, in a function, or in the body of a
 * loop or branch. A node is built when somebody asks for it, after what it takes. */
#include "bridge/graphdef/graphdef.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *tutti__graphdef_take(tutti_graphdef_import *m, size_t count, size_t size)
{
    void *memory = tutti__arena_array(&m->def->arena, count ? count : 1, size);
    if (!memory)
        tutti__graphdef_fail(m, TUTTI_NO_MEMORY, "no memory for the graph");
    return memory;
}

tutti_graphdef_node *tutti__graphdef_find(const tutti_graphdef_graph *graph, const char *input,
                                          int *ret_output)
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
    return tutti__map_get(&graph->by_name, name);
}

/* ---- what a node stands for ---- */

static tutti_graphdef_made **slot_of(tutti_graphdef_made **slots, size_t capacity,
                                     const tutti_graphdef_node *node)
{
    size_t at = (size_t)tutti__hash_mix(7, (uint64_t)(uintptr_t)node) & (capacity - 1);
    while (slots[at] && slots[at]->node != node)
        at = (at + 1) & (capacity - 1);
    return &slots[at];
}

static bool grow(tutti_graphdef_scope *scope)
{
    size_t capacity = scope->capacity ? 2 * scope->capacity : 64;
    tutti_graphdef_made **slots = calloc(capacity, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < scope->capacity; i++)
        if (scope->slots[i])
            *slot_of(slots, capacity, scope->slots[i]->node) = scope->slots[i];
    free(scope->slots);
    scope->slots = slots;
    scope->capacity = capacity;
    return true;
}

tutti_graphdef_made *tutti__graphdef_at(tutti_graphdef_import *m, const tutti_graphdef_node *node)
{
    tutti_graphdef_scope *scope = m->scope;
    if (2 * (scope->count + 1) > scope->capacity && !grow(scope)) {
        tutti__graphdef_fail(m, TUTTI_NO_MEMORY, "no memory for the graph");
        return NULL;
    }
    tutti_graphdef_made **slot = slot_of(scope->slots, scope->capacity, node);
    if (!*slot && (*slot = tutti__graphdef_take(m, 1, sizeof **slot))) {
        (*slot)->node = node;
        scope->count++;
    }
    return *slot;
}

void tutti__graphdef_scope_free(tutti_graphdef_scope *scope)
{
    free(scope->slots);
    *scope = (tutti_graphdef_scope){0};
}

static void give(tutti_graphdef_import *m, tutti_graphdef_made *made, int i,
                 const tutti_graphdef_value *value)
{
    if (i >= made->count) {
        tutti_graphdef_value *more = tutti__graphdef_take(m, (size_t)i + 1, sizeof *more);
        if (!more)
            return;
        if (made->count > 0)
            memcpy(more, made->outputs, (size_t)made->count * sizeof *more);
        made->outputs = more;
        made->count = i + 1;
    }
    made->outputs[i] = *value;
}

void tutti__graphdef_give(tutti_graphdef_import *m, int i, const tutti_graphdef_value *value)
{
    if (m->status == TUTTI_OK)
        give(m, m->here, i, value);
}

static bool is_there(const tutti_graphdef_value *value)
{
    return value->sym.node || value->list || value->lost;
}

/* Output `output` of a node that was built; NULL: it has none. */
static const tutti_graphdef_value *output_of(tutti_graphdef_import *m, tutti_graphdef_made *made,
                                             int output)
{
    if (output >= 0 && output < made->count && is_there(&made->outputs[output]))
        return &made->outputs[output];
    if (output <= 0 || made->count == 0)
        return NULL;
    tutti_graphdef_value first = made->outputs[0];
    if (first.lost)
        return &made->outputs[0];
    if (first.list || !first.sym.node || output >= tutti_sym_output_count(first.sym))
        return NULL;
    give(m, made, output, &(tutti_graphdef_value){.sym = tutti_sym_output(first.sym, output)});
    return output < made->count ? &made->outputs[output] : NULL;
}

const tutti_graphdef_value *tutti__graphdef_input(tutti_graphdef_import *m, int i)
{
    int output = 0;
    if (i < 0 || i >= tutti__graphdef_inputs(m->node)) {
        tutti__graphdef_fail(m, TUTTI_CORRUPT, "input %d is missing", i);
        return NULL;
    }
    tutti_graphdef_node *from =
        tutti__graphdef_find(m->scope->graph, m->node->inputs.items[i], &output);
    tutti_graphdef_made *made = from ? tutti__graphdef_at(m, from) : NULL;
    const tutti_graphdef_value *value = made ? output_of(m, made, output) : NULL;
    if (!value)
        tutti__graphdef_fail(m, TUTTI_CORRUPT, "input %d, '%s', is made by nobody", i,
                             m->node->inputs.items[i]);
    return value;
}

/* ---- building ---- */

/* What must be there before a node. */
static const tutti_onnx_names *waits_of(const tutti_graphdef_node *node)
{
    return node->flow ? &node->flow->waits : &node->inputs;
}

/* The first of what a node waits for that is not built; *ret_lost: one of them could not be. */
static tutti_graphdef_made *missing_input(tutti_graphdef_import *m, const tutti_graphdef_node *node,
                                          bool *ret_lost)
{
    const tutti_onnx_names *waits = waits_of(node);
    for (size_t i = 0; i < waits->count && waits->items[i][0] != '^'; i++) {
        int output;
        tutti_graphdef_node *from = tutti__graphdef_find(m->scope->graph, waits->items[i], &output);
        tutti_graphdef_made *made = from ? tutti__graphdef_at(m, from) : NULL;
        if (!from)
            tutti__graphdef_fail(m, TUTTI_CORRUPT, "takes '%s', which is not there",
                                 waits->items[i]);
        if (!made)
            return NULL;
        if (made->state != 2)
            return made;
        const tutti_graphdef_value *value = output_of(m, made, output);
        *ret_lost = *ret_lost || (value && value->lost);
    }
    return NULL;
}

/* What is not supported is noted, and its users are passed over. */
static void note_need(tutti_graphdef_import *m)
{
    tutti_graphdef_import *root = m->root;
    const char *text = tutti_error_message();
    size_t prefix = strlen(m->def->file) + 2;
    if (strncmp(text, m->def->file, prefix - 2) == 0 && strlen(text) > prefix)
        text += prefix;
    if (!m->quiet && !(root->needs.data && strstr(root->needs.data, text))) {
        tutti__text_add(&root->needs, "%s%s", root->needs.size > 0 ? "; " : "", text);
        root->need_count++;
    }
    m->status = TUTTI_OK;
}

static void run_rule(tutti_graphdef_import *m)
{
    tutti_graphdef_rule *rule = tutti__graphdef_rule_of(m->node->op);
    if (++m->root->built > GRAPHDEF_BUILT)
        tutti__graphdef_fail(m, TUTTI_TOO_LARGE, "more than %d nodes with all that is built again",
                             GRAPHDEF_BUILT);
    else if (!rule && tutti__map_get(&m->def->by_name, m->node->op))
        tutti__graphdef_rule_of("PartitionedCall")(m);
    else if (!rule)
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "this operator is not known here");
    else
        rule(m);
    if (m->status == TUTTI_OK && tutti_graph_check(m->graph) != TUTTI_OK)
        tutti__graphdef_fail(m, TUTTI_INVALID, "%s", tutti_error_message());
}

/* Numbers of shapes that are all known become constants. */
static void scope_fold(tutti_graphdef_import *m, tutti_graphdef_value *value)
{
    tutti_type type = value->sym.node ? tutti_sym_type(value->sym) : (tutti_type){0};
    int64_t count = tutti_type_count(&type);
    if (value->list || (type.dtype != TUTTI_I32 && type.dtype != TUTTI_I64) || type.rank > 1 ||
        count < 0 || count > TUTTI_MAX_RANK || tutti__is(value->sym.node, "constant") ||
        tutti_sym_output_count(value->sym) > 1)
        return;
    tutti_tensor *known = tutti__graphdef_known(m, value->sym);
    if (known)
        value->sym = tutti_constant(m->graph, known);
}

static void scope_build(tutti_graphdef_import *m, tutti_graphdef_made *made, bool lost)
{
    m->node = made->node;
    m->here = made;
    if (!lost)
        run_rule(m);
    if (m->status == TUTTI_OK && made->count > 0 && !lost)
        scope_fold(m, &made->outputs[0]);
    if (m->status == TUTTI_UNSUPPORTED) {
        note_need(m);
        lost = true;
    }
    if (lost && m->status == TUTTI_OK)
        give(m, made, 0, &(tutti_graphdef_value){.lost = true});
    made->state = 2;
}

/* Depth first with a stack of its own: chains are long. */
static void build_from(tutti_graphdef_import *m, tutti_graphdef_made *start)
{
    TUTTI_VEC(tutti_graphdef_made *) stack = {0};
    tutti_graphdef_made *made = start;
    while (m->status == TUTTI_OK && made) {
        bool lost = false;
        m->node = made->node;
        made->state = made->state == 2 ? 2 : 1;
        tutti_graphdef_made *first = made->state == 2 ? NULL : missing_input(m, made->node, &lost);
        if (m->status != TUTTI_OK)
            break;
        if (first && first->state == 1) {
            tutti__graphdef_fail(m, TUTTI_CORRUPT,
                                 "is part of a cycle that is no loop of TensorFlow's");
            break;
        }
        if (first) {
            if (!TUTTI_VEC_PUSH(&stack, made))
                tutti__graphdef_fail(m, TUTTI_NO_MEMORY, "no memory for the graph");
            made = first;
            continue;
        }
        if (made->state != 2)
            scope_build(m, made, lost);
        made = stack.count > 0 ? stack.data[--stack.count] : NULL;
    }
    TUTTI_VEC_FREE(&stack);
}

bool tutti__graphdef_build(tutti_graphdef_import *m, const char *input, tutti_graphdef_value *ret)
{
    int output;
    tutti_graphdef_node *node = tutti__graphdef_find(m->scope->graph, input, &output);
    if (!node) {
        tutti__graphdef_fail(m, TUTTI_CORRUPT, "'%s' is not there", input);
        return false;
    }
    tutti_graphdef_made *made = tutti__graphdef_at(m, node);
    if (!made)
        return false;
    build_from(m, made);
    if (m->status != TUTTI_OK)
        return false;
    const tutti_graphdef_value *value = output_of(m, made, output);
    if (!value)
        tutti__graphdef_fail(m, TUTTI_CORRUPT, "'%s' is made by nobody", input);
    else
        *ret = *value;
    return m->status == TUTTI_OK;
}

/* ---- bodies ---- */

bool tutti__graphdef_enter(tutti_graphdef_import *m, const tutti_graphdef_body *body,
                           tutti_graph *into, const tutti_graphdef_value *args,
                           tutti_graphdef_value *ret)
{
    tutti_graphdef_scope scope = {.graph = body->graph};
    tutti_graphdef_import inner = {.def = m->def,
                                   .graph = into,
                                   .scope = &scope,
                                   .node = m->node,
                                   .root = m->root,
                                   .depth = m->depth + 1,
                                   .quiet = m->quiet};
    if (inner.depth > GRAPHDEF_DEPTH)
        tutti__graphdef_fail(&inner, TUTTI_TOO_LARGE,
                             "functions, loops and branches are more than %d deep in each other",
                             GRAPHDEF_DEPTH);
    for (size_t i = 0; inner.status == TUTTI_OK && i < body->bindings.count; i++) {
        const tutti_graphdef_binding *bound = &body->bindings.items[i];
        tutti_graphdef_made *made = tutti__graphdef_at(&inner, bound->node);
        if (!made)
            break;
        give(&inner, made, bound->output, &args[bound->arg]);
        made->state = 2;
    }
    for (size_t i = 0; inner.status == TUTTI_OK && i < body->results.count; i++)
        tutti__graphdef_build(&inner, body->results.items[i], &ret[i]);
    tutti__graphdef_scope_free(&scope);
    if (inner.status != TUTTI_OK && m->status == TUTTI_OK) {
        m->status = inner.status;
        m->error = inner.error;
    }
    return inner.status == TUTTI_OK;
}

const tutti_graphdef_body *tutti__graphdef_function(tutti_graphdef_import *m, const char *name,
                                                    int args, int results)
{
    tutti_graphdef_graph *graph = tutti__map_get(&m->def->by_name, name);
    if (!graph || graph->arg_count != (size_t)args ||
        (results >= 0 && graph->results.count != (size_t)results)) {
        if (graph)
            tutti__graphdef_fail(m, TUTTI_CORRUPT,
                                 "function '%s' takes %zu and gives %zu values, expected %d and %d",
                                 name, graph->arg_count, graph->results.count, args, results);
        else
            tutti__graphdef_fail(m, TUTTI_CORRUPT, "function '%s' is not in the file", name);
        return NULL;
    }
    tutti_graphdef_body *body = tutti__graphdef_take(m, 1, sizeof *body);
    if (!body)
        return NULL;
    if (tutti__graphdef_find_flows(m->def, graph) != TUTTI_OK) {
        tutti__graphdef_fail(m, TUTTI_CORRUPT, "%s", tutti_error_message());
        return NULL;
    }
    body->graph = graph;
    body->results = graph->results;
    for (int i = 0; i < args; i++) {
        tutti_graphdef_binding *bound = ONNX_PUSH(&m->def->arena, &body->bindings);
        if (bound)
            *bound = (tutti_graphdef_binding){&graph->nodes.items[i], 0, i};
        else
            tutti__graphdef_fail(m, TUTTI_NO_MEMORY, "no memory for the graph");
    }
    return m->status == TUTTI_OK ? body : NULL;
}
