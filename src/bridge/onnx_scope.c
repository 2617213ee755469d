/* onnx_scope.c: names and what they stand for, node after node, in the graph, its sub-graphs and
 * functions. */
#include <string.h>

#include "bridge/onnx.h"
#include "bridge/onnx/list.h"

#define DEPTH 24 /* of functions and sub-graphs in each other */

tutti_onnx_known *tutti__onnx_learn(tutti_onnx_import *m, const char *name, tutti_onnx_known known)
{
    tutti_onnx_known *kept = tutti__arena_take(&m->root->arena, sizeof *kept);
    if (!kept) {
        tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
        return NULL;
    }
    *kept = known;
    kept->name = name;
    if (tutti__map_get(&m->known, name))
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "'%s' is there twice", name);
    else if (tutti__map_set(&m->known, name, kept) != TUTTI_OK)
        tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
    return m->status == TUTTI_OK ? kept : NULL;
}

/* A constant may be used in every graph, and so may an empty list; a weight is one variable and
 * must be handed in. */
static bool is_constant(const tutti_onnx_import *root, const tutti_onnx_known *known)
{
    if (known->sequence)
        return known->item_count == 0 && !known->shapes.node;
    return known->value && !(known->weight && !root->constants &&
                             tutti_dtype_is_float(tutti_tensor_dtype(known->value)));
}

tutti_onnx_known *tutti__onnx_find(tutti_onnx_import *m, const char *name)
{
    tutti_onnx_import *scope = m;
    tutti_onnx_known *known = NULL;
    for (; !known && scope; scope = scope->around) {
        known = tutti__map_get(&scope->known, name);
        if (!known && !scope->around)
            break;
    }
    if (known || !scope || !scope->beyond)
        return known;
    known = tutti__onnx_find(scope->beyond, name);
    if (!known || !is_constant(m->root, known))
        return NULL;
    return tutti__onnx_learn(scope, name,
                             (tutti_onnx_known){.value = known->value,
                                                .element = known->element,
                                                .sequence = known->sequence});
}

/* ---- nodes ---- */

/* What is not supported is one of the model's needs; its outputs are lost, and nodes that use them
 * are passed over, so that all needs are found. */
static void note_need(tutti_onnx_import *m, const tutti_onnx_node *node)
{
    tutti_onnx_import *root = m->root;
    if (m->status != TUTTI_UNSUPPORTED || tutti_graph_check(m->graph) != TUTTI_OK)
        return;
    tutti__error_restore(&m->error);
    if (root->need_count++ < 50)
        tutti__text_add(&root->needs, "%s%s", root->needs.size > 0 ? "; " : "",
                        tutti_error_message());
    m->status = TUTTI_OK;
    m->node = node;
    for (size_t i = 0; i < node->outputs.count; i++)
        if (node->outputs.items[i][0] && !tutti__map_get(&m->known, node->outputs.items[i]))
            tutti__onnx_learn(m, node->outputs.items[i], (tutti_onnx_known){.lost = true});
}

static bool uses_lost(tutti_onnx_import *m)
{
    bool lost = false;
    for (size_t i = 0; i < m->node->inputs.count; i++) {
        const tutti_onnx_known *known = tutti__onnx_input(m, (int)i);
        lost = lost || (known && known->lost);
    }
    for (size_t i = 0; lost && i < m->node->outputs.count; i++)
        if (m->node->outputs.items[i][0])
            tutti__onnx_learn(m, m->node->outputs.items[i], (tutti_onnx_known){.lost = true});
    return lost;
}

/* A mistake in the graph gets the name of the node in the file. */
static void build_node(tutti_onnx_import *m, const tutti_onnx_node *node)
{
    const tutti_onnx_function *function = tutti__onnx_function_of(m->onnx, node);
    m->node = node;
    m->rule = tutti__onnx_reader(node->domain, node->type);
    if (++m->root->built > ONNX_BUILT)
        tutti__onnx_read_fail(m, TUTTI_TOO_LARGE,
                              "with its functions and loops the model has more than %d nodes",
                              ONNX_BUILT);
    if (m->status != TUTTI_OK || uses_lost(m))
        return;
    if (function)
        tutti__onnx_call_function(m, function);
    else if (!m->rule)
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "is not known here");
    else if (!tutti__onnx_fold(m))
        m->rule->read(m);
    if (m->status == TUTTI_OK && tutti_graph_check(m->graph) != TUTTI_OK)
        tutti__onnx_read_fail(m, TUTTI_INVALID, "%s", tutti_error_message());
    note_need(m, node);
}

void tutti__onnx_build_nodes(tutti_onnx_import *m, size_t count, const tutti_onnx_node *nodes)
{
    for (size_t i = 0; m->status == TUTTI_OK && i < count; i++) {
        size_t first = tutti__onnx_part_begin(m, &nodes[i]);
        build_node(m, &nodes[i]);
        tutti__onnx_part_end(m, &nodes[i], first);
    }
    m->node = NULL;
}

/* ---- scopes in place ---- */

static bool enter(tutti_onnx_import *m, tutti_onnx_import *inner)
{
    *inner = (tutti_onnx_import){.onnx = m->onnx,
                                 .file = m->file,
                                 .graph = m->graph,
                                 .opset = m->opset,
                                 .root = m->root,
                                 .depth = m->depth + 1};
    if (m->depth < DEPTH)
        return true;
    tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "functions and sub-graphs nest deeper than %d",
                          DEPTH);
    return false;
}

static void leave(tutti_onnx_import *m, tutti_onnx_import *inner)
{
    if (m->status == TUTTI_OK && inner->status != TUTTI_OK) {
        m->status = inner->status;
        m->error = inner->error;
    }
    tutti__map_free(&inner->known);
}

static void learn_initializers(tutti_onnx_import *m, const tutti_onnx_graph *graph)
{
    for (size_t i = 0; m->status == TUTTI_OK && i < graph->initializers.count; i++)
        tutti__onnx_learn(m, graph->initializers.items[i].name,
                          (tutti_onnx_known){.value = graph->initializers.items[i].value,
                                             .element = graph->initializers.items[i].element,
                                             .weight = !m->beyond});
}

/* What the sub-graph's outputs stand for; false when one is lost. */
static bool find_outputs(tutti_onnx_import *inner, size_t count, const char *const *names,
                         tutti_onnx_known **ret)
{
    for (size_t i = 0; inner->status == TUTTI_OK && i < count; i++) {
        ret[i] = tutti__onnx_find(inner, names[i]);
        if (!ret[i])
            tutti__onnx_read_fail(inner, TUTTI_CORRUPT, "output '%s' is made by nobody", names[i]);
        else if (ret[i]->lost)
            return false;
    }
    return inner->status == TUTTI_OK;
}

bool tutti__onnx_inline(tutti_onnx_import *m, const tutti_onnx_graph *graph, size_t input_count,
                        tutti_onnx_known *const *inputs, tutti_onnx_known **ret_outputs)
{
    tutti_onnx_import inner;
    bool done = false;
    if (!enter(m, &inner))
        return false;
    inner.around = m;
    learn_initializers(&inner, graph);
    for (size_t i = 0; i < input_count && i < graph->inputs.count; i++)
        if (tutti__map_set(&inner.known, graph->inputs.items[i].name, inputs[i]) != TUTTI_OK)
            tutti__onnx_read_fail(&inner, TUTTI_NO_MEMORY, "no memory for the model");
    tutti__onnx_build_nodes(&inner, graph->nodes.count, graph->nodes.items);
    const char **names =
        tutti__arena_array(&m->root->arena, graph->outputs.count + 1, sizeof *names);
    for (size_t i = 0; names && i < graph->outputs.count; i++)
        names[i] = graph->outputs.items[i].name;
    done = names && find_outputs(&inner, graph->outputs.count, names, ret_outputs);
    if (!done && inner.status == TUTTI_OK)
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "something in its sub-graph is not supported");
    leave(m, &inner);
    return done;
}

/* ---- functions ---- */

const tutti_onnx_function *tutti__onnx_function_of(const tutti_onnx *onnx,
                                                   const tutti_onnx_node *node)
{
    for (size_t i = 0; i < onnx->functions.count; i++) {
        const tutti_onnx_function *f = &onnx->functions.items[i];
        if (strcmp(f->name, node->type) == 0 && strcmp(f->domain, node->domain) == 0)
            return f;
    }
    return NULL;
}

static const tutti_onnx_attr *attr_named(size_t count, const tutti_onnx_attr *attrs,
                                         const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(attrs[i].name, name) == 0)
            return &attrs[i];
    return NULL;
}

static bool bind_nodes(tutti_onnx_import *m, const tutti_onnx_function *f, size_t count,
                       const tutti_onnx_node *from, tutti_onnx_node **ret);

/* An attribute in a function's body: the call's where it refers to one; false: it has none. */
static bool bind_attr(tutti_onnx_import *m, const tutti_onnx_function *f,
                      const tutti_onnx_attr *from, tutti_onnx_attr *ret)
{
    const tutti_onnx_attr *actual = from;
    if (from->refers[0]) {
        actual = attr_named(m->node->attrs.count, m->node->attrs.items, from->refers);
        if (!actual)
            actual = attr_named(f->defaults.count, f->defaults.items, from->refers);
        if (!actual)
            return false;
    }
    *ret = *actual;
    ret->name = from->name;
    ret->refers = "";
    if (ret->kind != ONNX_GRAPH || from->refers[0])
        return true;
    tutti_onnx_graph *graph = tutti__arena_take(&m->root->arena, sizeof *graph);
    if (!graph)
        return false;
    *graph = *from->graph;
    ret->graph = graph;
    return bind_nodes(m, f, graph->nodes.count, graph->nodes.items, &graph->nodes.items);
}

/* Copies of nodes, in which attributes that refer to the call's have its values. */
static bool bind_nodes(tutti_onnx_import *m, const tutti_onnx_function *f, size_t count,
                       const tutti_onnx_node *from, tutti_onnx_node **ret)
{
    tutti_arena *arena = &m->root->arena;
    tutti_onnx_node *nodes = tutti__arena_array(arena, count + 1, sizeof *nodes);
    for (size_t n = 0; nodes && n < count; n++) {
        nodes[n] = from[n];
        nodes[n].attrs.count = 0;
        nodes[n].attrs.items =
            tutti__arena_array(arena, from[n].attrs.count + 1, sizeof *nodes[n].attrs.items);
        if (!nodes[n].attrs.items)
            return false;
        for (size_t i = 0; i < from[n].attrs.count; i++)
            nodes[n].attrs.count += bind_attr(m, f, &from[n].attrs.items[i],
                                              &nodes[n].attrs.items[nodes[n].attrs.count]);
    }
    *ret = nodes;
    return nodes != NULL;
}

void tutti__onnx_call_function(tutti_onnx_import *m, const tutti_onnx_function *f)
{
    tutti_onnx_import inner;
    tutti_onnx_node *nodes;
    tutti_onnx_known **outputs =
        tutti__arena_array(&m->root->arena, f->outputs.count + 1, sizeof *outputs);
    if (!enter(m, &inner))
        return;
    inner.opset = f->opset > 0 ? f->opset : m->opset;
    for (size_t i = 0; i < f->inputs.count; i++) {
        tutti_onnx_known *known = tutti__onnx_input(m, (int)i);
        if (known && tutti__map_set(&inner.known, f->inputs.items[i], known) != TUTTI_OK)
            tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
        else if (tutti__onnx_has(m, (int)i) && !known)
            tutti__onnx_read_fail(m, TUTTI_CORRUPT, "its input '%s' is made by nobody before it",
                                  m->node->inputs.items[i]);
        else if (!known)
            tutti__map_set(&inner.known, f->inputs.items[i], m->root->missing);
    }
    if (!outputs || !bind_nodes(m, f, f->nodes.count, f->nodes.items, &nodes)) {
        tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
    } else if (m->status == TUTTI_OK) {
        tutti__onnx_build_nodes(&inner, f->nodes.count, nodes);
        if (find_outputs(&inner, f->outputs.count, f->outputs.items, outputs))
            for (size_t i = 0; i < f->outputs.count; i++)
                tutti__onnx_made_known(m, (int)i, outputs[i]);
        else if (inner.status == TUTTI_OK)
            tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "something in it is not supported");
    }
    leave(m, &inner);
}

/* ---- bodies ---- */

static bool adds(int limit, int *count, const char **names, const char *name)
{
    for (int i = 0; i < *count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    if (*count == limit)
        return false;
    names[(*count)++] = name;
    return true;
}

bool tutti__onnx_captures(tutti_onnx_import *m, const tutti_onnx_graph *graph, int limit,
                          int *count, const char **names)
{
    tutti_onnx_node end = {.attrs = {0}};
    for (size_t n = 0; n <= graph->nodes.count; n++) {
        const tutti_onnx_node *node = n < graph->nodes.count ? &graph->nodes.items[n] : &end;
        size_t uses = node == &end ? graph->outputs.count : node->inputs.count;
        for (size_t i = 0; i < uses; i++) {
            const char *name = node == &end ? graph->outputs.items[i].name : node->inputs.items[i];
            const tutti_onnx_known *known = name[0] ? tutti__onnx_find(m, name) : NULL;
            if (known && !is_constant(m->root, known) && !adds(limit, count, names, name))
                return false;
        }
        for (size_t i = 0; i < node->attrs.count; i++)
            if (node->attrs.items[i].kind == ONNX_GRAPH &&
                !tutti__onnx_captures(m, node->attrs.items[i].graph, limit, count, names))
                return false;
    }
    return true;
}

void tutti__onnx_build_body(tutti_onnx_import *m, tutti_graph *body, const tutti_onnx_body *what,
                            tutti_onnx_pack *ret_outputs)
{
    const tutti_onnx_graph *graph = what->graph;
    tutti_onnx_import inner;
    if (!enter(m, &inner))
        return;
    inner.graph = body;
    inner.beyond = m;
    for (int i = 0; i < what->capture_count; i++)
        tutti__onnx_learn(&inner, what->names[i], tutti__onnx_unpacked(&what->captures[i]));
    learn_initializers(&inner, graph);
    for (int i = 0; i < what->input_count && (size_t)i < graph->inputs.count; i++)
        tutti__onnx_learn(&inner, graph->inputs.items[i].name,
                          tutti__onnx_unpacked(&what->inputs[i]));
    size_t needs = m->root->need_count;
    tutti__onnx_build_nodes(&inner, graph->nodes.count, graph->nodes.items);
    for (size_t i = 0; inner.status == TUTTI_OK && i < graph->outputs.count; i++) {
        tutti_onnx_known *known = tutti__onnx_find(&inner, graph->outputs.items[i].name);
        if (!known || known->lost)
            tutti__onnx_read_fail(&inner, TUTTI_CORRUPT, "output '%s' is made by nobody",
                                  graph->outputs.items[i].name);
        else
            ret_outputs[i] = tutti__onnx_packed(&inner, known);
    }
    if (m->root->need_count > needs)
        tutti__poison(body, TUTTI_UNSUPPORTED, "something in a sub-graph is not supported");
    else if (inner.status != TUTTI_OK)
        tutti__poison(body, inner.status, "%s", inner.error.message);
    tutti__map_free(&inner.known);
}
