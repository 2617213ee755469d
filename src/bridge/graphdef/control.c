/* control.c: calls, branches and loops: of functions, and lowered ones. */
#include "ops/control/control.h"
#include "bridge/graphdef/rules.h"

#include <stdlib.h>
#include <string.h>

/* All data inputs; NULL after a failure. */
static tutti_graphdef_value *take_inputs(tutti_graphdef_import *m, int first, int count)
{
    tutti_graphdef_value *values =
        count >= 0 ? tutti__graphdef_take(m, (size_t)count, sizeof *values) : NULL;
    if (count > GRAPHDEF_VALUES || count < 0)
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "has %d inputs", count);
    for (int i = 0; m->status == TUTTI_OK && i < count; i++) {
        const tutti_graphdef_value *value = tutti__graphdef_input(m, first + i);
        if (value)
            values[i] = *value;
    }
    return m->status == TUTTI_OK ? values : NULL;
}

static void give_all(tutti_graphdef_import *m, int count, const tutti_graphdef_value *values)
{
    for (int i = 0; i < count; i++)
        tutti__graphdef_give(m, i, &values[i]);
}

static const char *function_attr(const tutti_graphdef_import *m, const char *name)
{
    const tutti_graphdef_attr *attr = tutti__graphdef_attr(m->node, name);
    return attr ? attr->function : "";
}

/* ---- what depends on what ---- */

int tutti__graphdef_reaches(tutti_graphdef_import *m, const tutti_graphdef_body *body,
                            const char *result, bool *args)
{
    TUTTI_VEC(const char *) stack = {0};
    tutti_graphdef_scope seen = {.graph = body->graph}, *kept = m->scope;
    bool memory = TUTTI_VEC_PUSH(&stack, result);
    int nodes = 0;
    m->scope = &seen;
    while (memory && stack.count > 0) {
        int output;
        const tutti_graphdef_node *node =
            tutti__graphdef_find(body->graph, stack.data[--stack.count], &output);
        bool bound = false;
        for (size_t i = 0; node && i < body->bindings.count; i++)
            if (body->bindings.items[i].node == node && body->bindings.items[i].output == output) {
                args[body->bindings.items[i].arg] = bound = true;
            }
        tutti_graphdef_made *made = node && !bound ? tutti__graphdef_at(m, node) : NULL;
        if (!made || made->state == 2)
            continue;
        made->state = 2;
        nodes++;
        const tutti_onnx_names *waits = node->flow ? &node->flow->waits : &node->inputs;
        for (size_t i = 0; memory && i < waits->count && waits->items[i][0] != '^'; i++)
            memory = TUTTI_VEC_PUSH(&stack, waits->items[i]);
    }
    m->scope = kept;
    tutti__graphdef_scope_free(&seen);
    TUTTI_VEC_FREE(&stack);
    return memory && m->status == TUTTI_OK ? nodes : -1;
}

/* ---- calls and loops of functions ---- */

static void read_call(tutti_graphdef_import *m)
{
    const char *name = function_attr(m, "f");
    int count = tutti__graphdef_inputs(m->node);
    tutti_graphdef_value *values = take_inputs(m, 0, count);
    const tutti_graphdef_body *body =
        values ? tutti__graphdef_function(m, name[0] ? name : m->node->op, count, -1) : NULL;
    tutti_graphdef_value *results =
        body ? tutti__graphdef_take(m, body->results.count, sizeof *results) : NULL;
    if (results && tutti__graphdef_enter(m, body, m->graph, values, results))
        give_all(m, (int)body->results.count, results);
}

static void read_while(tutti_graphdef_import *m)
{
    int count = tutti__graphdef_inputs(m->node);
    tutti_graphdef_loop loop = {.args = count, .variables = count};
    loop.values = take_inputs(m, 0, count);
    loop.condition =
        loop.values ? tutti__graphdef_function(m, function_attr(m, "cond"), count, 1) : NULL;
    loop.step =
        loop.condition ? tutti__graphdef_function(m, function_attr(m, "body"), count, count) : NULL;
    if (!loop.step)
        return;
    tutti__graphdef_go_round(m, &loop);
    give_all(m, count, loop.values);
}

/* ---- branches ---- */

typedef struct choice {
    tutti_graphdef_import *m;
    const tutti_graphdef_branches *branches;
    const tutti_graphdef_value *values; /* settled */
    tutti_graphdef_value *results;      /* of a trial: their forms */
    bool lost;
} choice;

static bool build_inside(choice *c, int which, tutti_graph *body, const tutti_sym *args,
                         tutti_graphdef_value *ret)
{
    const tutti_graphdef_branches *b = c->branches;
    tutti_graphdef_import *m = c->m, inside = {.def = m->def, .graph = body, .root = m->root};
    tutti_graphdef_value *values = tutti__graphdef_take(m, (size_t)b->args, sizeof *values);
    for (int i = 0; values && i < b->args; i++)
        values[i] = tutti__graphdef_lift(&c->values[i], args[i]);
    if (!values || !tutti__graphdef_enter(m, b->bodies[which], body, values, ret)) {
        tutti__poison(body, m->status, "%s", tutti_error_message());
        return false;
    }
    for (int i = 0; i < b->results; i++) {
        c->lost = c->lost || ret[i].lost;
        tutti__graphdef_resolve(&inside, &ret[i]);
    }
    return !c->lost && tutti_graph_check(body) == TUTTI_OK;
}

static void lay_branch(choice *c, int which, tutti_graph *body, const tutti_sym *args,
                       tutti_sym *ret)
{
    const tutti_graphdef_branches *b = c->branches;
    tutti_graphdef_value *results = tutti__graphdef_take(c->m, (size_t)b->results, sizeof *results);
    if (results && build_inside(c, which, body, args, results))
        for (int i = 0; i < b->results; i++)
            ret[i] = tutti_identity(tutti__graphdef_lay(&results[i]));
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

/* Both branches in graphs of their own: which results are lists, and whether all is supported. */
static bool try_branches(choice *c, const tutti_sym *args)
{
    const tutti_graphdef_branches *b = c->branches;
    tutti_type types[GRAPHDEF_VALUES];
    tutti_sym trial_args[GRAPHDEF_VALUES];
    tutti_graphdef_import *m = c->m;
    for (int i = 0; i < b->args; i++)
        types[i] = tutti_sym_type(args[i]);
    for (int which = 0; which < 2; which++) {
        tutti_graph *trial;
        tutti_graphdef_value *results =
            tutti__graphdef_take(m, (size_t)b->results, sizeof *results);
        if (!results || tutti__subgraph_create(b->args, types, &trial, trial_args) != TUTTI_OK)
            return false;
        build_inside(c, which, trial, trial_args, results);
        if (tutti_graph_check(trial) != TUTTI_OK)
            tutti__graphdef_fail(m, tutti_graph_check(trial), "%s", tutti_error_message());
        for (int i = 0; m->status == TUTTI_OK && !c->lost && which == 1 && i < b->results; i++)
            if (results[i].list != c->results[i].list ||
                !results[i].sym.node != !c->results[i].sym.node)
                tutti__graphdef_fail(m, TUTTI_UNSUPPORTED,
                                     "result %d is a list of tensors in one of its branches only, "
                                     "or one of which nothing is known",
                                     i);
        c->results = which == 0 ? results : c->results;
        tutti_graph_destroy(trial);
    }
    return m->status == TUTTI_OK && !c->lost;
}

static void give_lost(const tutti_graphdef_branches *b, tutti_graphdef_value *ret)
{
    for (int i = 0; i < b->results; i++)
        ret[i] = (tutti_graphdef_value){.lost = true};
}

void tutti__graphdef_choose(tutti_graphdef_import *m, tutti_sym pred,
                            const tutti_graphdef_branches *b, tutti_graphdef_value *ret)
{
    const tutti_tensor *known = tutti__graphdef_known(m, pred);
    tutti_sym args[GRAPHDEF_VALUES], results[GRAPHDEF_VALUES];
    if (known && tutti_tensor_count(known) == 1) {
        tutti__graphdef_enter(m, b->bodies[tutti_tensor_get_int(known, 0) ? 0 : 1], m->graph,
                              b->values, ret);
        return;
    }
    tutti_graphdef_value *values = tutti__graphdef_take(m, (size_t)b->args, sizeof *values);
    if (b->args > GRAPHDEF_VALUES || b->results > GRAPHDEF_VALUES || b->results < 1)
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "has %d inputs and %d outputs", b->args,
                             b->results);
    choice c = {.m = m, .branches = b, .values = values};
    for (int i = 0; m->status == TUTTI_OK && i < b->args; i++) {
        values[i] = b->values[i];
        if (!tutti__graphdef_resolve(m, &values[i]))
            return;
        args[i] = tutti__graphdef_lay(&values[i]);
    }
    if (m->status != TUTTI_OK)
        return;
    if (!try_branches(&c, args)) {
        give_lost(b, ret);
        return;
    }
    tutti_type type = tutti_sym_type(pred);
    pred = type.dtype == TUTTI_BOOL ? pred : tutti_not_equal(pred, 0);
    (tutti_cond)(tutti_reshape(pred), build_then, build_else, &c, b->args, args, b->results,
                 results);
    if (tutti_graph_check(m->graph) == TUTTI_OK)
        for (int i = 0; i < b->results; i++)
            ret[i] = tutti__graphdef_lift(&c.results[i], results[i]);
}

static void read_if(tutti_graphdef_import *m)
{
    int args = tutti__graphdef_inputs(m->node) - 1;
    tutti_sym pred = IN(0);
    tutti_graphdef_value *values = take_inputs(m, 1, args);
    const tutti_graphdef_body *bodies[2] = {NULL, NULL};
    if (values)
        bodies[0] = tutti__graphdef_function(m, function_attr(m, "then_branch"), args, -1);
    if (bodies[0])
        bodies[1] = tutti__graphdef_function(m, function_attr(m, "else_branch"), args,
                                             (int)bodies[0]->results.count);
    if (!bodies[1])
        return;
    int count = (int)bodies[0]->results.count;
    tutti_graphdef_value *results = tutti__graphdef_take(m, (size_t)count, sizeof *results);
    tutti_graphdef_branches b = {bodies, args, count, values};
    if (results)
        tutti__graphdef_choose(m, pred, &b, results);
    give_all(m, count, results);
}

/* Branch 0, 1, …; a place that is none of them is the last. */
static void read_case(tutti_graphdef_import *m)
{
    const tutti_graphdef_attr *attr = tutti__graphdef_attr(m->node, "branches");
    int args = tutti__graphdef_inputs(m->node) - 1, count = attr ? (int)attr->functions.count : 0;
    tutti_graphdef_value *values = take_inputs(m, 1, args);
    const tutti_tensor *known = values ? tutti__graphdef_value(m, 0) : NULL;
    int64_t at = known ? tutti_tensor_get_int(known, 0) : 0;
    at = at < 0 || at >= count ? count - 1 : at;
    const tutti_graphdef_body *body =
        known && count > 0 ? tutti__graphdef_function(m, attr->functions.items[at], args, -1)
                           : NULL;
    tutti_graphdef_value *results =
        body ? tutti__graphdef_take(m, body->results.count, sizeof *results) : NULL;
    if (results && tutti__graphdef_enter(m, body, m->graph, values, results))
        give_all(m, (int)body->results.count, results);
}

/* ---- lowered ---- */

/* What a loop or branch waits for. */
static tutti_graphdef_value *take_waits(tutti_graphdef_import *m)
{
    const tutti_onnx_names *waits = &m->node->flow->waits;
    tutti_graphdef_value *values = tutti__graphdef_take(m, waits->count, sizeof *values);
    tutti_graphdef_import inner = *m;
    for (size_t i = 0; values && i < waits->count; i++)
        if (!tutti__graphdef_build(&inner, waits->items[i], &values[i])) {
            m->status = inner.status;
            m->error = inner.error;
            return NULL;
        }
    return values;
}

/* Results under all the nodes that are one. */
static void give_ends(tutti_graphdef_import *m, const tutti_graphdef_value *results)
{
    const tutti_graphdef_flow *flow = m->node->flow;
    tutti_graphdef_import other = *m;
    for (size_t i = 0; m->status == TUTTI_OK && i < flow->ends.count; i++) {
        other.here = tutti__graphdef_at(m, flow->ends.items[i].node);
        if (!other.here)
            return;
        tutti__graphdef_give(&other, 0, &results[flow->ends.items[i].result]);
        other.here->state = 2;
    }
}

static void read_exit(tutti_graphdef_import *m)
{
    const tutti_graphdef_flow *flow = m->node->flow;
    if (!flow) {
        tutti__graphdef_fail(m, TUTTI_CORRUPT, "belongs to no loop that is understood here");
        return;
    }
    tutti_graphdef_loop loop = {.condition = &flow->bodies[0],
                                .step = &flow->bodies[1],
                                .args = (int)flow->waits.count,
                                .variables = flow->variables,
                                .values = take_waits(m)};
    if (!loop.values)
        return;
    tutti__graphdef_go_round(m, &loop);
    give_ends(m, loop.values);
}

static void read_merge(tutti_graphdef_import *m)
{
    const tutti_graphdef_flow *flow = m->node->flow;
    if (!flow) {
        tutti__graphdef_fail(m, TUTTI_CORRUPT, "joins no two branches that are understood here");
        return;
    }
    const tutti_graphdef_body *bodies[2] = {&flow->bodies[0], &flow->bodies[1]};
    tutti_graphdef_value *values = take_waits(m);
    tutti_graphdef_value *results =
        tutti__graphdef_take(m, flow->bodies[0].results.count, sizeof *results);
    if (!values || !results)
        return;
    tutti_graphdef_branches b = {bodies, (int)flow->waits.count - 1,
                                 (int)flow->bodies[0].results.count, values + 1};
    tutti__graphdef_choose(m, values[0].sym, &b, results);
    give_ends(m, results);
}

/* What only stands inside a loop or branch, where it stands for an argument. */
static void read_inside(tutti_graphdef_import *m)
{
    tutti__graphdef_fail(m, TUTTI_CORRUPT, "is used outside of its loop or branch");
}

const tutti_graphdef_entry tutti__graphdef_control[] = {
    {"PartitionedCall", read_call},
    {"StatefulPartitionedCall", read_call},
    {"While", read_while},
    {"StatelessWhile", read_while},
    {"If", read_if},
    {"StatelessIf", read_if},
    {"Case", read_case},
    {"StatelessCase", read_case},
    {"Exit", read_exit},
    {"Merge", read_merge},
    {"Enter", read_inside},
    {"Switch", read_inside},
    {"NextIteration", read_inside},
    {"_Arg", read_inside},
    {NULL, NULL},
};
