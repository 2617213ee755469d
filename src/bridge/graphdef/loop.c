/* loop.c: loops. Few rounds whose number is known are built one after the other; others
 * become while. */
#include "bridge/graphdef/rules.h"
#include "ops/control/control.h"

#include <string.h>

#define SMALL 1024 /* elements of a constant that is built again inside a loop */

typedef struct rounds {
    tutti_graphdef_import *m;
    tutti_graphdef_loop *loop;
    bool fixed[GRAPHDEF_VALUES];                /* it stays as it is before the loop */
    const tutti_tensor *known[GRAPHDEF_VALUES]; /* fixed, small and constant; or NULL */
    int variables, captures;                    /* of the while */
    bool lost;                                  /* something in it is not supported */
} rounds;

static tutti_graphdef_value *take_values(const rounds *r)
{
    return tutti__graphdef_take(r->m, (size_t)r->loop->args, sizeof(tutti_graphdef_value));
}

/* ---- what stays ---- */

/* The node behind Identity nodes that makes an input. */
static const tutti_graphdef_node *behind(const tutti_graphdef_graph *graph, const char *input,
                                         int *ret_output)
{
    const tutti_graphdef_node *node = tutti__graphdef_find(graph, input, ret_output);
    for (int i = 0; i < 64 && node && strcmp(node->op, "Identity") == 0 && node->inputs.count > 0;
         i++)
        node = tutti__graphdef_find(graph, node->inputs.items[0], ret_output);
    return node;
}

static bool stays(const tutti_graphdef_body *step, int i)
{
    int output = 0;
    const tutti_graphdef_node *node = behind(step->graph, step->results.items[i], &output);
    for (size_t k = 0; node && k < step->bindings.count; k++) {
        const tutti_graphdef_binding *bound = &step->bindings.items[k];
        if (bound->node == node && bound->output == output)
            return bound->arg == i;
    }
    return false;
}

/* ---- how many rounds ---- */

/* One result of a body from constants alone; NULL when that does not do. */
static tutti_tensor *result_of(tutti_graphdef_import *m, const tutti_graphdef_body *body,
                               int result, int count, tutti_tensor *const *known)
{
    tutti_graph *graph;
    tutti_graphdef_value value = {0}, *args = tutti__graphdef_take(m, (size_t)count, sizeof *args);
    tutti_graphdef_body one = *body;
    tutti_graphdef_import attempt = *m;
    tutti_tensor *found = NULL;
    one.results = (tutti_onnx_names){&body->results.items[result], 1, 1};
    if (!args || tutti_graph_create(&graph) != TUTTI_OK)
        return NULL;
    for (int i = 0; i < count; i++)
        args[i] = known[i] ? (tutti_graphdef_value){.sym = tutti_constant(graph, known[i])}
                           : (tutti_graphdef_value){.lost = true};
    attempt.quiet = true;
    attempt.graph = graph;
    if (tutti__graphdef_enter(&attempt, &one, graph, args, &value) && !value.lost && !value.list)
        found = tutti__graphdef_known(&attempt, value.sym);
    if (found && !TUTTI_VEC_PUSH(&m->def->tensors, tutti_tensor_retain(found))) {
        tutti_tensor_release(found);
        found = NULL;
    }
    tutti_graph_destroy(graph);
    return found;
}

/* What the condition depends on, in this round and later ones. */
static bool decisive(tutti_graphdef_import *m, const tutti_graphdef_loop *loop, bool *matters)
{
    bool more = true, done[GRAPHDEF_VALUES] = {false};
    if (tutti__graphdef_reaches(m, loop->condition, loop->condition->results.items[0], matters) < 0)
        return false;
    while (more) {
        more = false;
        for (int i = 0; i < loop->variables; i++) {
            if (!matters[i] || done[i])
                continue;
            done[i] = more = true;
            if (tutti__graphdef_reaches(m, loop->step, loop->step->results.items[i], matters) < 0)
                return false;
        }
    }
    return true;
}

static int nodes_of(tutti_graphdef_import *m, const tutti_graphdef_loop *loop)
{
    bool unused[GRAPHDEF_VALUES] = {false};
    int64_t sum = 1;
    for (int i = 0; i < loop->variables; i++) {
        int nodes = tutti__graphdef_reaches(m, loop->step, loop->step->results.items[i], unused);
        sum = nodes > sum ? nodes : sum;
    }
    return (int)sum;
}

/* -1: not known, or too many to be built one after the other. */
static int count_rounds(rounds *r)
{
    tutti_graphdef_import *m = r->m;
    const tutti_graphdef_loop *loop = r->loop;
    bool matters[GRAPHDEF_VALUES] = {false};
    tutti_tensor *known[GRAPHDEF_VALUES] = {NULL}, *next[GRAPHDEF_VALUES];
    if (!decisive(m, loop, matters))
        return -1;
    for (int i = 0; i < loop->args; i++)
        if (matters[i] &&
            (loop->values[i].list || !(known[i] = tutti__graphdef_known(m, loop->values[i].sym))))
            return -1;
    int nodes = nodes_of(m, loop), built = m->root->built;
    for (int round = 0; round <= GRAPHDEF_UNROLL && round * nodes <= GRAPHDEF_UNROLLED; round++) {
        const tutti_tensor *again = result_of(m, loop->condition, 0, loop->args, known);
        if (!again || tutti_tensor_count(again) != 1)
            return -1;
        if (!tutti_tensor_get_int(again, 0)) {
            m->root->built = built;
            return round;
        }
        memcpy(next, known, sizeof next);
        for (int i = 0; i < loop->variables; i++)
            if (matters[i] && !r->fixed[i] &&
                !(next[i] = result_of(m, loop->step, i, loop->args, known)))
                return -1;
        memcpy(known, next, sizeof known);
    }
    return -1;
}

/* ---- one after the other ---- */

static void unroll(rounds *r, int count)
{
    tutti_graphdef_loop *loop = r->loop;
    tutti_graphdef_value *results = take_values(r);
    for (int round = 0; results && round < count; round++) {
        if (!tutti__graphdef_enter(r->m, loop->step, r->m->graph, loop->values, results))
            return;
        for (int i = 0; i < loop->variables; i++)
            if (!r->fixed[i])
                loop->values[i] = results[i];
    }
}

/* ---- while ---- */

/* Values inside: variables, then captures, stand in `args`; constants are built again. */
static void open_values(const rounds *r, tutti_graph *body, const tutti_sym *args,
                        tutti_graphdef_value *ret)
{
    const tutti_graphdef_loop *loop = r->loop;
    int variable = 0, capture = r->variables;
    for (int i = 0; i < loop->args; i++) {
        const tutti_graphdef_value *value = &loop->values[i];
        if (value->lost)
            ret[i] = *value;
        else if (r->known[i])
            ret[i] =
                (tutti_graphdef_value){.sym = tutti_constant(body, (tutti_tensor *)r->known[i])};
        else
            ret[i] = tutti__graphdef_lift(value, args[r->fixed[i] ? capture++ : variable++]);
    }
}

/* Builds one of the bodies; what goes wrong is the sub-graph's too. */
static bool build_inside(rounds *r, const tutti_graphdef_body *what, tutti_graph *body,
                         const tutti_sym *args, tutti_graphdef_value *ret)
{
    tutti_graphdef_value *values = take_values(r);
    if (values)
        open_values(r, body, args, values);
    if (!values || !tutti__graphdef_enter(r->m, what, body, values, ret))
        tutti__poison(body, r->m->status, "%s", tutti_error_message());
    return r->m->status == TUTTI_OK && tutti_graph_check(body) == TUTTI_OK;
}

static void build_condition(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                            void *context)
{
    rounds *r = context;
    tutti_graphdef_value value = {0};
    (void)count;
    if (!build_inside(r, r->loop->condition, body, args, &value))
        return;
    if (value.lost || value.list)
        tutti__poison(body, TUTTI_UNSUPPORTED, "the condition of a loop is not known");
    else
        ret[0] = tutti_reshape(value.sym);
}

static void build_step(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                       void *context)
{
    rounds *r = context;
    tutti_graphdef_value *results = take_values(r);
    int at = 0;
    (void)count;
    if (!results || !build_inside(r, r->loop->step, body, args, results))
        return;
    for (int i = 0; i < r->loop->variables; i++)
        if (!r->fixed[i]) {
            tutti__graphdef_resolve(&(tutti_graphdef_import){.def = r->m->def, .graph = body},
                                    &results[i]);
            ret[at++] = tutti_identity(tutti__graphdef_lay(&results[i]));
        }
}

/* Symbols of variables, then captures. */
static int lay_values(rounds *r, tutti_sym *ret)
{
    const tutti_graphdef_loop *loop = r->loop;
    int at = 0;
    r->variables = r->captures = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < loop->args; i++)
            if (r->fixed[i] == (pass == 1) && !r->known[i] && !loop->values[i].lost) {
                ret[at++] = tutti__graphdef_lay(&loop->values[i]);
                *(pass ? &r->captures : &r->variables) += 1;
            }
    return at;
}

/* A list of which nothing is known before the loop: zeros like what a first round makes of it. The
 * shapes alone of that round are used. */
static void learn_lists(rounds *r, const bool *learnt)
{
    tutti_graphdef_loop *loop = r->loop;
    tutti_graphdef_import *m = r->m;
    tutti_graphdef_value *results = take_values(r);
    if (!results || !tutti__graphdef_enter(m, loop->step, m->graph, loop->values, results))
        return;
    for (int i = 0; i < loop->variables; i++) {
        tutti_graphdef_value *value = &loop->values[i];
        if (!learnt[i] || !tutti__graphdef_resolve(m, &results[i]) || !results[i].sym.node)
            continue;
        tutti_sym count = value->count, zero = tutti_scalar(m->graph, TUTTI_I64, 0);
        *value = results[i];
        value->sym = tutti_zeros_like(value->sym);
        if (value->grows)
            value->sym = tutti_gather(
                value->sym, tutti_range_dynamic(zero, count, tutti_scalar(m->graph, TUTTI_I64, 1)),
                0);
        value->count = TUTTI_NO_SYM;
    }
}

/* What a round makes of value i, of which it may say more: true when the loop must be tried again.
 */
static bool loop_compare(rounds *r, int i, const tutti_graphdef_value *after, bool *ret_learn)
{
    tutti_graphdef_value *before = &r->loop->values[i];
    r->lost = r->lost || after->lost || before->lost;
    if (r->lost || before->list != after->list) {
        if (!r->lost)
            tutti__graphdef_fail(r->m, TUTTI_UNSUPPORTED,
                                 "value %d is a list of tensors before a round or behind it, not "
                                 "both",
                                 i);
        return false;
    }
    if (!before->sym.node || !after->sym.node) {
        *ret_learn = !before->sym.node && after->sym.node;
        return *ret_learn;
    }
    tutti_type a = tutti_sym_type(before->sym), b = tutti_sym_type(after->sym);
    before->grows = before->grows || after->grows;
    if (a.rank == b.rank && memcmp(a.dims, b.dims, (size_t)a.rank * sizeof *a.dims) != 0)
        before->sym = tutti__graphdef_loosened(before->sym);
    return false;
}

/* One round in a graph of its own, for the types: true when the loop must be tried again. */
static bool try_round(rounds *r)
{
    tutti_graphdef_loop *loop = r->loop;
    tutti_sym all[GRAPHDEF_VALUES], args[GRAPHDEF_VALUES];
    tutti_type types[GRAPHDEF_VALUES];
    tutti_graphdef_value *results = take_values(r), condition = {0};
    bool learn[GRAPHDEF_VALUES] = {false}, again = false;
    tutti_graph *trial;
    int count = lay_values(r, all);
    for (int i = 0; i < count; i++)
        types[i] = tutti_sym_type(all[i]);
    if (!results || tutti_graph_check(r->m->graph) != TUTTI_OK ||
        tutti__subgraph_create(count, types, &trial, args) != TUTTI_OK) {
        tutti__graphdef_fail(r->m, TUTTI_INVALID, "%s", tutti_error_message());
        return false;
    }
    tutti_graphdef_import inside = {.def = r->m->def, .graph = trial, .root = r->m->root};
    if (build_inside(r, loop->step, trial, args, results))
        for (int i = 0; r->m->status == TUTTI_OK && i < loop->variables; i++)
            if (!r->fixed[i] && tutti__graphdef_resolve(&inside, &results[i]))
                again = loop_compare(r, i, &results[i], &learn[i]) || again;
    if (build_inside(r, loop->condition, trial, args, &condition))
        r->lost = r->lost || condition.lost;
    if (tutti_graph_check(trial) != TUTTI_OK)
        tutti__graphdef_fail(r->m, tutti_graph_check(trial), "%s", tutti_error_message());
    tutti_graph_destroy(trial);
    again = again && !r->lost && r->m->status == TUTTI_OK;
    if (again)
        learn_lists(r, learn);
    return again && r->m->status == TUTTI_OK;
}

static void go_round(rounds *r)
{
    tutti_graphdef_loop *loop = r->loop;
    tutti_graphdef_import *m = r->m;
    tutti_sym all[GRAPHDEF_VALUES], results[GRAPHDEF_VALUES];
    for (int i = 0; i < loop->args; i++)
        tutti__graphdef_resolve(m, &loop->values[i]);
    for (int i = 0; m->status == TUTTI_OK && i < loop->args; i++)
        if (r->fixed[i] && !loop->values[i].list && !loop->values[i].lost) {
            const tutti_tensor *known = tutti__graphdef_known(m, loop->values[i].sym);
            r->known[i] = known && tutti_tensor_count(known) <= SMALL ? known : NULL;
        }
    for (int tries = 0; m->status == TUTTI_OK && tries < 8 && try_round(r);)
        tries++;
    if (m->status != TUTTI_OK)
        return;
    lay_values(r, all);
    if (r->variables == 0)
        tutti__graphdef_fail(m, TUTTI_INVALID, "a loop in which nothing changes has no end");
    if (!r->lost && m->status == TUTTI_OK)
        (tutti_while)(build_condition, build_step, r, r->variables, all, r->captures,
                      all + r->variables, results);
    if (m->status != TUTTI_OK || tutti_graph_check(m->graph) != TUTTI_OK)
        return;
    for (int i = 0, at = 0; i < loop->variables; i++)
        if (r->lost)
            loop->values[i] = (tutti_graphdef_value){.lost = true};
        else if (!r->fixed[i] && !loop->values[i].lost)
            loop->values[i] = tutti__graphdef_lift(&loop->values[i], results[at++]);
}

void tutti__graphdef_go_round(tutti_graphdef_import *m, tutti_graphdef_loop *loop)
{
    rounds r = {.m = m, .loop = loop};
    if (loop->args > GRAPHDEF_VALUES) {
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "has more than %d values", GRAPHDEF_VALUES);
        return;
    }
    for (int i = 0; i < loop->args; i++)
        r.fixed[i] = i >= loop->variables || stays(loop->step, i);
    int count = count_rounds(&r);
    if (count >= 0)
        unroll(&r, count);
    else if (m->status == TUTTI_OK)
        go_round(&r);
}
