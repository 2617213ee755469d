/* loop.c: Loop and Scan. Few rounds that are known are built one after the other; others become
 * while. */
#include "bridge/onnx/control.h"

#include <string.h>

#include "ops/control/control.h"

/* One loop: the states go round; scanned values are handed out one after the other along an axis;
 * what each round gives beside the states is stacked. */
typedef struct loop {
    tutti_onnx_import *m;
    const tutti_onnx_graph *graph;
    bool counts; /* Loop: the body sees the round and the condition */
    int states, scans, gives;
    int first_state; /* the node's input that is state 0 */
    int64_t axes[ONNX_STATES], out_axes[ONNX_STATES];
    bool back[ONNX_STATES], out_back[ONNX_STATES];
    int flats;              /* of the stacks: dimensions are not known; see flat_stack */
    bool flat[ONNX_STATES]; /* per stack */
    int captures;
    const char *names[ONNX_CAPTURES];
    bool limited; /* the first capture is the limit */
} loop;

/* Element `at` of scanned input i. */
static tutti_sym scanned(const loop *l, int i, tutti_sym x, tutti_sym at)
{
    int axis = (int)l->axes[i];
    if (l->back[i])
        at = tutti_sub(tutti_add_scalar(tutti_size(x, axis), -1), at);
    return tutti_gather(x, at, axis);
}

static tutti_onnx_known *kept_sym(loop *l, tutti_sym sym)
{
    tutti_onnx_known *known = tutti__arena_take(&l->m->root->arena, sizeof *known);
    if (!known) {
        tutti__onnx_read_fail(l->m, TUTTI_NO_MEMORY, "no memory for the model");
        return l->m->root->missing;
    }
    *known = (tutti_onnx_known){.name = "", .plain = sym};
    return known;
}

static tutti_onnx_known *kept_number(loop *l, tutti_dtype dtype, int64_t value)
{
    tutti_tensor *tensor;
    tutti_onnx_known *known = kept_sym(l, TUTTI_NO_SYM);
    if (tutti_tensor_create(dtype, 0, NULL, &tensor) != TUTTI_OK)
        return known;
    tutti_tensor_set_int(tensor, 0, value);
    if (TUTTI_VEC_PUSH(&l->m->root->made, tensor))
        known->value = tensor;
    else
        tutti_tensor_release(tensor);
    return known;
}

/* Whether the body's condition stays true: it is its own input, or a constant. */
static bool goes_on(const loop *l)
{
    const char *name = l->graph->outputs.items[0].name;
    const char *input = l->graph->inputs.items[1].name;
    for (size_t i = 0; i < l->graph->nodes.count; i++) {
        const tutti_onnx_node *node = &l->graph->nodes.items[i];
        bool makes = node->outputs.count > 0 && strcmp(node->outputs.items[0], name) == 0;
        if (makes && strcmp(node->type, "Identity") == 0)
            return strcmp(node->inputs.items[0], input) == 0;
        if (makes && strcmp(node->type, "Constant") == 0) {
            const tutti_onnx_attr *attr = tutti__onnx_attr(node, "value", ONNX_TENSOR);
            return attr && attr->tensor && tutti_tensor_get_int(attr->tensor, 0) != 0;
        }
    }
    for (size_t i = 0; i < l->graph->initializers.count; i++)
        if (strcmp(l->graph->initializers.items[i].name, name) == 0)
            return tutti_tensor_get_int(l->graph->initializers.items[i].value, 0) != 0;
    return strcmp(name, input) == 0;
}

/* Few rounds: one after the other. */
static void unroll(loop *l, int64_t rounds)
{
    tutti_onnx_import *m = l->m;
    tutti_onnx_known *in[2 * ONNX_STATES + 2], *out[2 * ONNX_STATES + 2];
    tutti_sym given[ONNX_STATES][ONNX_UNROLL];
    int head = l->counts ? 2 : 0, tail = l->counts ? 1 : 0;
    for (int i = 0; i < l->states; i++)
        in[head + i] = tutti__onnx_input(m, l->first_state + i);
    for (int64_t r = 0; r < rounds; r++) {
        if (l->counts) {
            in[0] = kept_number(l, TUTTI_I64, r);
            in[1] = kept_number(l, TUTTI_BOOL, 1);
        }
        for (int i = 0; i < l->scans; i++) {
            tutti_sym x = tutti__onnx_sym(m, l->first_state + l->states + i);
            in[head + l->states + i] =
                kept_sym(l, scanned(l, i, x, tutti_scalar(m->graph, TUTTI_I64, (double)r)));
        }
        if (m->status != TUTTI_OK ||
            !tutti__onnx_inline(m, l->graph, (size_t)(head + l->states + l->scans), in, out))
            return;
        for (int i = 0; i < l->states; i++)
            in[head + i] = out[tail + i];
        for (int i = 0; i < l->gives; i++)
            given[i][l->out_back[i] ? rounds - 1 - r : r] =
                tutti__onnx_symbol(m, out[tail + l->states + i]);
    }
    for (int i = 0; i < l->states; i++)
        tutti__onnx_made_known(m, i, in[head + i]);
    for (int i = 0; m->status == TUTTI_OK && i < l->gives; i++)
        tutti__onnx_made(m, l->states + i,
                         (tutti_stack)((int)l->out_axes[i], (int)rounds, given[i]));
}

/* y behind what a round has given before it, or before it. */
static tutti_sym stacked_on(const loop *l, int i, tutti_sym far, tutti_sym y)
{
    int axis = l->flat[i] ? 0 : (int)l->out_axes[i];
    y = l->flat[i] ? tutti_reshape(y, -1) : tutti_expand_dims(y, axis);
    return l->out_back[i] ? tutti_concat(axis, y, far) : tutti_concat(axis, far, y);
}

/* Variables of the while: round, condition, states, what was given so far, shapes of what is
 * stacked flat. Captures: the limit, scanned values, names. */
static void build_round(loop *l, tutti_graph *body, const tutti_sym *args, tutti_sym *ret,
                        bool stacked)
{
    int states = l->states, first = 2 + states + (stacked ? l->gives + l->flats : 0);
    tutti_sym inputs[2 * ONNX_STATES + 2], outputs[2 * ONNX_STATES + 2] = {{0}};
    int head = 0, tail = l->counts ? 1 : 0;
    if (l->counts) {
        inputs[head++] = args[0];
        inputs[head++] = args[1];
    }
    for (int i = 0; i < states; i++)
        inputs[head++] = args[2 + i];
    for (int i = 0; i < l->scans; i++)
        inputs[head++] = scanned(l, i, args[first + 1 + i], args[0]);
    tutti_onnx_body what = {.graph = l->graph,
                            .input_count = head,
                            .capture_count = l->captures,
                            .inputs = inputs,
                            .captures = args + first + 1 + l->scans,
                            .names = l->names};
    tutti__onnx_build_body(l->m, body, &what, outputs);
    if (tutti_graph_check(body) != TUTTI_OK)
        return;
    ret[0] = tutti_add_scalar(args[0], 1);
    ret[1] = l->counts ? tutti_reshape(outputs[0]) : tutti_identity(args[1]);
    for (int i = 0; i < states; i++)
        ret[2 + i] = outputs[tail + i];
    int shapes = 2 + states + l->gives;
    for (int i = 0; i < l->gives; i++) {
        tutti_sym y = outputs[tail + states + i];
        ret[2 + states + i] = stacked ? stacked_on(l, i, args[2 + states + i], y) : y;
        if (stacked && l->flat[i])
            ret[shapes++] = tutti_shape(y);
    }
}

static void build_step(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                       void *context)
{
    (void)count;
    build_round(context, body, args, ret, true);
}

/* round < limit and condition */
static void build_condition(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                            void *context)
{
    const loop *l = context;
    (void)body;
    (void)count;
    ret[0] =
        tutti_logical_and(tutti_less(args[0], args[2 + l->states + l->gives + l->flats]), args[1]);
}

/* The same value, of which the builder knows the rank only: its dimensions change from round to
 * round. */
static tutti_sym loosened(tutti_sym x)
{
    int rank = tutti_sym_ok(x) ? tutti_sym_type(x).rank : 0;
    int64_t open[TUTTI_MAX_RANK];
    for (int i = 0; i < rank; i++)
        open[i] = -1;
    if (rank == 0)
        return x;
    return tutti_reshape_like(x, (tutti_fill_dynamic)(tutti_shape(x), TUTTI_BOOL, 0, rank, open));
}

/* What the rounds give, from a trial body: its types. */
static bool try_body(loop *l, int count, const tutti_sym *inputs, tutti_type *ret)
{
    tutti_type types[3 * ONNX_STATES + ONNX_CAPTURES];
    tutti_sym args[3 * ONNX_STATES + ONNX_CAPTURES], results[2 * ONNX_STATES + 2] = {{0}};
    tutti_graph *trial;
    for (int i = 0; i < count; i++)
        types[i] = tutti_sym_type(inputs[i]);
    if (tutti__subgraph_create(count, types, &trial, args) != TUTTI_OK) {
        tutti__onnx_read_fail(l->m, TUTTI_NO_MEMORY, "no memory for the model");
        return false;
    }
    build_round(l, trial, args, results, false);
    if (tutti_graph_check(trial) != TUTTI_OK)
        tutti__onnx_read_fail(l->m, tutti_graph_check(trial), "%s", tutti_error_message());
    for (int i = 0; l->m->status == TUTTI_OK && i < 2 + l->states + l->gives; i++)
        ret[i] = tutti_sym_type(results[i]);
    tutti_graph_destroy(trial);
    return l->m->status == TUTTI_OK;
}

/* An empty stack of such values; one of unknown dimensions is flat. */
static tutti_sym empty_stack(loop *l, int i, tutti_type type)
{
    int64_t dims[TUTTI_MAX_RANK] = {0}, axis = l->out_axes[i];
    axis += axis < 0 ? type.rank + 1 : 0;
    if (type.rank >= TUTTI_MAX_RANK || axis < 0 || axis > type.rank) {
        tutti__onnx_read_fail(l->m, TUTTI_INVALID, "stacks values of rank %d along axis %lld",
                              type.rank, (long long)axis);
        return TUTTI_NO_SYM;
    }
    l->out_axes[i] = axis;
    for (int k = 0; k < type.rank; k++) {
        dims[k < axis ? k : k + 1] = type.dims[k];
        l->flat[i] = l->flat[i] || type.dims[k] < 0;
    }
    l->flats += l->flat[i];
    int rank = l->flat[i] ? 1 : type.rank + 1;
    return loosened(
        (tutti_fill)(l->m->graph, type.dtype, 0, rank, l->flat[i] ? (int64_t[]){0} : dims));
}

/* What was stacked flat, of `rounds` values of that shape and type. */
static tutti_sym flat_stack(tutti_sym flat, tutti_sym rounds, tutti_sym shape, tutti_type type,
                            int64_t axis)
{
    int64_t dims[TUTTI_MAX_RANK] = {-1}, order[TUTTI_MAX_RANK];
    memcpy(dims + 1, type.dims, (size_t)type.rank * sizeof *dims);
    tutti_sym whole = tutti_concat(0, tutti_reshape(rounds, 1), shape);
    tutti_sym like = (tutti_fill_dynamic)(whole, TUTTI_BOOL, 0, type.rank + 1, dims);
    for (int k = 0; k <= type.rank; k++)
        order[k] = k == axis ? 0 : k < axis ? k + 1 : k;
    return (tutti_transpose)(tutti_reshape_like(flat, like), type.rank + 1, order);
}

static void make_results(loop *l, const tutti_sym *results, const tutti_type *types)
{
    int fixed = 2 + l->states, shape = fixed + l->gives;
    for (int i = 0; i < l->states + l->gives; i++) {
        int stack = i - l->states;
        tutti_sym y = results[2 + i];
        if (stack >= 0 && l->flat[stack])
            y = flat_stack(y, results[0], results[shape++], types[2 + i], l->out_axes[stack]);
        tutti__onnx_made(l->m, i, y);
    }
}

static void go_round(loop *l, tutti_sym limit, tutti_sym condition)
{
    tutti_onnx_import *m = l->m;
    tutti_sym variables[3 * ONNX_STATES + ONNX_CAPTURES], results[3 * ONNX_STATES + 2];
    tutti_sym trial[3 * ONNX_STATES + ONNX_CAPTURES],
        rest[ONNX_STATES + ONNX_CAPTURES + 1] = {limit};
    tutti_type types[2 * ONNX_STATES + 2];
    int fixed = 2 + l->states, behind = 1 + l->scans + l->captures;
    variables[0] = tutti_scalar(m->graph, TUTTI_I64, 0);
    variables[1] = condition;
    for (int i = 0; i < l->states; i++) {
        tutti_sym x = tutti__onnx_sym(m, l->first_state + i);
        variables[2 + i] = x.node && tutti_sym_type(x).handle ? tutti_read(x) : x;
    }
    for (int i = 0; i < l->scans; i++)
        rest[1 + i] = tutti__onnx_sym(m, l->first_state + l->states + i);
    if (m->status != TUTTI_OK ||
        !tutti__onnx_capture(m, l->captures, l->names, rest + 1 + l->scans))
        return;
    size_t needs = m->root->need_count;
    memcpy(trial, variables, (size_t)fixed * sizeof *trial);
    memcpy(trial + fixed, rest, (size_t)behind * sizeof *trial);
    if (!try_body(l, fixed + behind, trial, types) || m->root->need_count > needs)
        return;
    for (int i = 0; i < l->states; i++) {
        tutti_type type = tutti_sym_type(variables[2 + i]);
        if (memcmp(type.dims, types[2 + i].dims, (size_t)type.rank * sizeof *type.dims) != 0)
            variables[2 + i] = loosened(variables[2 + i]);
    }
    for (int i = 0; m->status == TUTTI_OK && i < l->gives; i++)
        variables[fixed + i] = empty_stack(l, i, types[fixed + i]);
    for (int i = 0, k = fixed + l->gives; m->status == TUTTI_OK && i < l->gives; i++)
        if (l->flat[i])
            variables[k++] = tutti_fill(m->graph, TUTTI_I64, 0, types[fixed + i].rank);
    if (m->status != TUTTI_OK)
        return;
    (tutti_while)(build_condition, build_step, l, fixed + l->gives + l->flats, variables, behind,
                  rest, results);
    if (tutti_graph_check(m->graph) == TUTTI_OK)
        make_results(l, results, types);
}

static bool fits(loop *l)
{
    if (l->states >= 0 && l->gives >= 0 && l->states + l->gives <= ONNX_STATES &&
        l->scans <= ONNX_STATES &&
        tutti__onnx_captures(l->m, l->graph, ONNX_CAPTURES, &l->captures, l->names))
        return true;
    tutti__onnx_read_fail(l->m, TUTTI_UNSUPPORTED,
                          "has more than %d states or %d values from "
                          "around it",
                          ONNX_STATES, ONNX_CAPTURES);
    return false;
}

static void read_loop(tutti_onnx_import *m)
{
    loop l = {.m = m, .graph = tutti__onnx_graph_of(m, "body"), .counts = true, .first_state = 2};
    if (!l.graph)
        return;
    l.states = (int)m->node->inputs.count - 2;
    l.gives = (int)l.graph->outputs.count - 1 - l.states;
    if (l.graph->inputs.count != (size_t)(l.states + 2) || !fits(&l))
        return;
    const tutti_tensor *limit = tutti__onnx_has(m, 0) ? tutti__onnx_try_constant(m, 0) : NULL;
    const tutti_tensor *start = tutti__onnx_has(m, 1) ? tutti__onnx_try_constant(m, 1) : NULL;
    bool begins = !tutti__onnx_has(m, 1) || (start && tutti_tensor_get_int(start, 0));
    bool always = l.gives == 0 || !limit || tutti_tensor_get_int(limit, 0) > 0;
    int64_t rounds = limit ? tutti_tensor_get_int(limit, 0) : -1;
    if (limit && begins && always && goes_on(&l) && rounds <= ONNX_UNROLL && rounds >= 0) {
        unroll(&l, rounds);
        return;
    }
    tutti_sym most = tutti__onnx_has(m, 0) ? tutti_reshape(tutti__onnx_sym(m, 0))
                                           : tutti_squeeze(tutti_ints(m->graph, INT64_MAX), 0);
    tutti_sym yes = tutti__onnx_has(m, 1) ? tutti_reshape(tutti__onnx_sym(m, 1))
                                          : tutti_scalar(m->graph, TUTTI_BOOL, 1);
    if (m->status == TUTTI_OK)
        go_round(&l, most, yes);
}

/* ---- Scan ---- */

static void read_axes(tutti_onnx_import *m, const char *axes, const char *ways, int count,
                      int64_t *ret_axes, bool *ret_back)
{
    const int64_t *list;
    int given = tutti__onnx_attr_ints(m, axes, &list);
    for (int i = 0; i < count; i++)
        ret_axes[i] = i < given ? list[i] : 0;
    given = tutti__onnx_attr_ints(m, ways, &list);
    for (int i = 0; i < count; i++)
        ret_back[i] = i < given && list[i] != 0;
}

static void read_scan(tutti_onnx_import *m)
{
    loop l = {.m = m, .graph = tutti__onnx_graph_of(m, "body")};
    if (!l.graph)
        return;
    l.scans = (int)tutti__onnx_attr_int(m, "num_scan_inputs", 0);
    l.first_state = m->opset < 9 ? 1 : 0;
    l.states = (int)m->node->inputs.count - l.first_state - l.scans;
    l.gives = (int)l.graph->outputs.count - l.states;
    if (m->opset < 9) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "Scan of opset 8 is not supported");
        return;
    }
    if (l.scans < 1 || l.states < 0 || l.gives < 0 || !fits(&l))
        return;
    read_axes(m, "scan_input_axes", "scan_input_directions", l.scans, l.axes, l.back);
    read_axes(m, "scan_output_axes", "scan_output_directions", l.gives, l.out_axes, l.out_back);
    tutti_sym x = tutti__onnx_sym(m, l.first_state + l.states);
    if (!x.node)
        return;
    tutti_type type = tutti_sym_type(x);
    for (int i = 0; i < l.scans; i++)
        l.axes[i] += l.axes[i] < 0 ? type.rank : 0;
    int64_t rounds = l.axes[0] < type.rank ? type.dims[l.axes[0]] : -1;
    if (rounds > 0 && rounds <= ONNX_UNROLL)
        unroll(&l, rounds);
    else
        go_round(&l, tutti_size(x, l.axes[0]), tutti_scalar(m->graph, TUTTI_BOOL, 1));
}

const tutti_onnx_op tutti_onnx_loop = {
    .type = "Loop",
    .read = read_loop,
};

const tutti_onnx_op tutti_onnx_scan = {
    .type = "Scan",
    .read = read_scan,
    .note = "from opset 9 on",
};
