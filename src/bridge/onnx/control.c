/* control.c: If. A condition that is known while the graph is built chooses a branch at once;
 * others become cond. */
#include "bridge/onnx/control.h"

#include <string.h>

#include "ops/control/control.h"

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
    int count, outputs;
    const char *names[ONNX_CAPTURES];
    tutti_onnx_pack captured[ONNX_CAPTURES];
    tutti_onnx_pack result[ONNX_STATES]; /* which are lists, and of what */
} branches;

/* Where one branch leaves a list empty of which only the other knows what its tensors are. */
static void build_branch(const branches *b, int which, tutti_graph *body, const tutti_sym *args,
                         tutti_onnx_pack *ret)
{
    tutti_onnx_pack captures[ONNX_CAPTURES];
    tutti__onnx_lift(b->count, b->captured, args, captures);
    tutti_onnx_body what = {.graph = b->graphs[which],
                            .capture_count = b->count,
                            .captures = captures,
                            .names = b->names};
    tutti__onnx_build_body(b->m, body, &what, ret);
    for (int i = 0; i < b->outputs; i++)
        if (tutti__onnx_is_bare(&ret[i]) && b->result[i].of.dtype != TUTTI_NO_DTYPE &&
            tutti_graph_check(body) == TUTTI_OK)
            ret[i] = tutti__onnx_empty_list(body, b->result[i].of);
}

static void lay_branch(const branches *b, int which, tutti_graph *body, const tutti_sym *args,
                       tutti_sym *ret)
{
    tutti_onnx_pack results[ONNX_STATES] = {{.list = false}};
    build_branch(b, which, body, args, results);
    if (tutti_graph_check(body) != TUTTI_OK)
        return;
    int count = tutti__onnx_lay(b->outputs, results, ret);
    for (int i = 0; i < count; i++)
        ret[i] = tutti_identity(ret[i]);
}

static void build_then(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                       void *context)
{
    (void)count;
    lay_branch(context, 0, body, args, ret);
}

static void build_else(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                       void *context)
{
    (void)count;
    lay_branch(context, 1, body, args, ret);
}

/* The values around a sub-graph that it uses. */
bool tutti__onnx_capture(tutti_onnx_import *m, int count, const char *const *names,
                         tutti_onnx_pack *ret)
{
    for (int i = 0; m->status == TUTTI_OK && i < count; i++)
        ret[i] = tutti__onnx_packed(m, tutti__onnx_find(m, names[i]));
    return m->status == TUTTI_OK;
}

/* What the tensors of a list are, from both branches. */
static void learn_list(branches *b, int i, const tutti_onnx_pack *found)
{
    tutti_onnx_pack *result = &b->result[i];
    result->list = true;
    if (tutti__onnx_is_bare(result))
        result->of = found->of;
    else if (!tutti__onnx_is_bare(found) && !tutti__onnx_widen(&result->of, &found->of))
        tutti__onnx_read_fail(b->m, TUTTI_UNSUPPORTED,
                              "output %d is a list of tensors of different ranks or element types",
                              i);
}

/* Lists among the outputs: the branches are built once in graphs of their own, for the types. */
static bool try_branches(branches *b, int count, const tutti_sym *args)
{
    tutti_type types[2 * ONNX_CAPTURES];
    tutti_sym trial_args[2 * ONNX_CAPTURES];
    bool lists = false;
    for (int i = 0; i < b->outputs; i++)
        lists =
            lists || b->graphs[0]->outputs.items[i].other || b->graphs[1]->outputs.items[i].other;
    for (int i = 0; i < count; i++)
        types[i] = tutti_sym_type(args[i]);
    for (int which = 0; lists && which < 2 && b->m->status == TUTTI_OK; which++) {
        tutti_onnx_pack results[ONNX_STATES] = {{.list = false}};
        tutti_graph *trial;
        if (tutti__subgraph_create(count, types, &trial, trial_args) != TUTTI_OK) {
            tutti__onnx_read_fail(b->m, TUTTI_NO_MEMORY, "no memory for the model");
            return false;
        }
        build_branch(b, which, trial, trial_args, results);
        if (tutti_graph_check(trial) != TUTTI_OK)
            tutti__onnx_read_fail(b->m, tutti_graph_check(trial), "%s", tutti_error_message());
        for (int i = 0; i < b->outputs; i++)
            if (results[i].list)
                learn_list(b, i, &results[i]);
        tutti_graph_destroy(trial);
    }
    for (int i = 0; i < b->outputs; i++)
        if (tutti__onnx_is_bare(&b->result[i]))
            tutti__onnx_read_fail(b->m, TUTTI_UNSUPPORTED,
                                  "output %d is a list of which nothing is known", i);
    return b->m->status == TUTTI_OK;
}

static void control_choose(tutti_onnx_import *m, const tutti_onnx_graph *graph)
{
    tutti_onnx_known *outputs[ONNX_STATES];
    if (graph->outputs.count > ONNX_STATES)
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "has more than %d outputs", ONNX_STATES);
    else if (tutti__onnx_inline(m, graph, 0, NULL, outputs))
        for (size_t i = 0; i < graph->outputs.count; i++)
            tutti__onnx_made_known(m, (int)i, outputs[i]);
}

/* What the cond gives, under the names of the node's outputs. */
static void make_results(branches *b, const tutti_sym *results)
{
    tutti_onnx_pack packs[ONNX_STATES];
    tutti__onnx_lift(b->outputs, b->result, results, packs);
    for (int i = 0; i < b->outputs; i++) {
        tutti_onnx_known *known = tutti__arena_take(&b->m->root->arena, sizeof *known);
        if (!known) {
            tutti__onnx_read_fail(b->m, TUTTI_NO_MEMORY, "no memory for the model");
            return;
        }
        *known = tutti__onnx_unpacked(&packs[i]);
        tutti__onnx_made_known(b->m, i, known);
    }
}

static void branch(branches *b)
{
    tutti_onnx_import *m = b->m;
    tutti_sym args[2 * ONNX_CAPTURES], results[2 * ONNX_STATES], pred = tutti__onnx_sym(m, 0);
    if (!pred.node || !tutti__onnx_capture(m, b->count, b->names, b->captured))
        return;
    if (tutti_sym_type(pred).rank > 0)
        pred = tutti_reshape(pred);
    int count = tutti__onnx_lay(b->count, b->captured, args);
    size_t needs = m->root->need_count;
    if (!try_branches(b, count, args) || m->root->need_count > needs)
        return;
    int given = tutti__onnx_lay(b->outputs, b->result, results);
    (tutti_cond)(pred, build_then, build_else, b, count, args, given, results);
    if (m->root->need_count > needs)
        return; /* named already */
    if (tutti_graph_check(m->graph) == TUTTI_OK)
        make_results(b, results);
}

static void read_if(tutti_onnx_import *m)
{
    branches b = {
        .m = m,
        .graphs = {tutti__onnx_graph_of(m, "then_branch"), tutti__onnx_graph_of(m, "else_branch")}};
    if (!b.graphs[0] || !b.graphs[1])
        return;
    const tutti_tensor *known = tutti__onnx_try_constant(m, 0);
    if (known) {
        control_choose(m, b.graphs[tutti_tensor_get_int(known, 0) ? 0 : 1]);
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
    b.outputs = (int)count;
    branch(&b);
}

const tutti_onnx_op tutti_onnx_if = {
    .type = "If",
    .read = read_if,
};
