/* control.c: If. A condition that is known while the graph is built chooses a branch at once;
 * others become cond. */
#include "bridge/onnx/control.h"

#include <string.h>

const tutti_onnx_graph *tutti__onnx_graph_of(tutti_onnx_import *m, const char *name)
{
    const tutti_onnx_attr *attr = tutti__onnx_attr(m->node, name, ONNX_GRAPH);
    if (!attr)
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "attribute %s is missing", name);
    return attr ? attr->graph : NULL;
}

/* ---- If ---- */

typedef struct branches {
    tutti_onnx_import *m;
    const tutti_onnx_graph *graphs[2];
    int count;
    const char *names[ONNX_CAPTURES];
} branches;

static void build_branch(const branches *b, int which, tutti_graph *body, const tutti_sym *args,
                         tutti_sym *ret)
{
    tutti_onnx_body what = {
        .graph = b->graphs[which], .capture_count = b->count, .captures = args, .names = b->names};
    tutti__onnx_build_body(b->m, body, &what, ret);
}

static void build_then(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                       void *context)
{
    (void)count;
    build_branch(context, 0, body, args, ret);
}

static void build_else(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                       void *context)
{
    (void)count;
    build_branch(context, 1, body, args, ret);
}

/* The values around a sub-graph that it uses. */
bool tutti__onnx_capture(tutti_onnx_import *m, int count, const char *const *names, tutti_sym *ret)
{
    for (int i = 0; m->status == TUTTI_OK && i < count; i++) {
        tutti_onnx_known *known = tutti__onnx_find(m, names[i]);
        tutti_sym sym = tutti__onnx_symbol(m, known);
        ret[i] = m->status == TUTTI_OK && tutti_sym_type(sym).handle ? tutti_read(sym) : sym;
    }
    return m->status == TUTTI_OK;
}

static void choose(tutti_onnx_import *m, const tutti_onnx_graph *graph)
{
    tutti_onnx_known *outputs[ONNX_STATES];
    if (graph->outputs.count > ONNX_STATES)
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "has more than %d outputs", ONNX_STATES);
    else if (tutti__onnx_inline(m, graph, 0, NULL, outputs))
        for (size_t i = 0; i < graph->outputs.count; i++)
            tutti__onnx_made_known(m, (int)i, outputs[i]);
}

static void read_if(tutti_onnx_import *m)
{
    branches b = {
        .m = m,
        .graphs = {tutti__onnx_graph_of(m, "then_branch"), tutti__onnx_graph_of(m, "else_branch")}};
    tutti_sym args[ONNX_CAPTURES], results[ONNX_STATES];
    if (m->status != TUTTI_OK)
        return;
    const tutti_tensor *known = tutti__onnx_try_constant(m, 0);
    if (known) {
        choose(m, b.graphs[tutti_tensor_get_int(known, 0) ? 0 : 1]);
        return;
    }
    size_t count = b.graphs[0]->outputs.count;
    if (count == 0 || count > ONNX_STATES || count != b.graphs[1]->outputs.count ||
        !tutti__onnx_captures(m, b.graphs[0], ONNX_CAPTURES, &b.count, b.names) ||
        !tutti__onnx_captures(m, b.graphs[1], ONNX_CAPTURES, &b.count, b.names)) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED,
                              "its branches have too many values, or not as "
                              "many outputs as each other");
        return;
    }
    tutti_sym pred = tutti__onnx_sym(m, 0);
    if (!pred.node || !tutti__onnx_capture(m, b.count, b.names, args))
        return;
    if (tutti_sym_type(pred).rank > 0)
        pred = tutti_reshape(pred);
    size_t needs = m->root->need_count;
    (tutti_cond)(pred, build_then, build_else, &b, b.count, args, (int)count, results);
    if (m->root->need_count > needs)
        return; /* named already */
    for (size_t i = 0; tutti_graph_check(m->graph) == TUTTI_OK && i < count; i++)
        tutti__onnx_made(m, (int)i, results[i]);
}

const tutti_onnx_op tutti_onnx_if = {
    .type = "If",
    .read = read_if,
};
