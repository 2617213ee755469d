/* loop_while.c: loops whose rounds are not known, as while.
 *
 * Variables of the while: round, condition, states (a list of tensors is two, see list.h), what was
 * stacked so far, shapes of what is stacked flat. Captures: the limit, scanned values, what the
 * body takes from around it. */
#include <string.h>

#include "bridge/onnx/loop.h"
#include "ops/control/control.h"

#define MOST (4 * ONNX_STATES + 2 * ONNX_CAPTURES + 4)

/* y behind what a round has given before it, or before it. */
static tutti_sym stacked_on(const tutti_onnx_rounds *l, int i, tutti_sym far, tutti_sym y)
{
    int axis = l->flat[i] ? 0 : (int)l->out_axes[i];
    y = l->flat[i] ? tutti_reshape(y, -1) : tutti_expand_dims(y, axis);
    return l->out_back[i] ? tutti_concatenate(TUTTI_SYMS(y, far), .axis = axis)
                          : tutti_concatenate(TUTTI_SYMS(far, y), .axis = axis);
}

static int count_flats(const tutti_onnx_rounds *l)
{
    int flats = 0;
    for (int i = 0; i < l->gives; i++)
        flats += l->flat[i];
    return flats;
}

/* The body itself: what it makes of the round, the condition and the states, which stand first in
 * `args`, and of what is captured. */
static void build_round(tutti_onnx_rounds *l, tutti_graph *body, const tutti_sym *args,
                        const tutti_sym *captures, tutti_onnx_pack *ret)
{
    tutti_onnx_pack inputs[2 * ONNX_STATES + 2], around[ONNX_CAPTURES];
    int head = 0;
    if (l->counts) {
        inputs[head++] = (tutti_onnx_pack){.sym = args[0]};
        inputs[head++] = (tutti_onnx_pack){.sym = args[1]};
    }
    tutti__onnx_lift(l->states, l->state, args + 2, inputs + head);
    head += l->states;
    for (int i = 0; i < l->scans; i++)
        inputs[head++] =
            (tutti_onnx_pack){.sym = tutti__onnx_scanned(l, i, captures[1 + i], args[0])};
    tutti__onnx_lift(l->captures, l->captured, captures + 1 + l->scans, around);
    tutti_onnx_body what = {.graph = l->graph,
                            .input_count = head,
                            .capture_count = l->captures,
                            .inputs = inputs,
                            .captures = around,
                            .names = l->names};
    tutti__onnx_build_body(l->m, body, &what, ret);
}

static void build_step(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                       void *context)
{
    tutti_onnx_rounds *l = context;
    tutti_onnx_pack outputs[2 * ONNX_STATES + 2] = {{.list = false}};
    tutti_sym unused[2 * ONNX_STATES];
    int stacks = 2 + tutti__onnx_lay(l->states, l->state, unused), tail = l->counts ? 1 : 0;
    int shapes = stacks + l->gives;
    (void)count;
    build_round(l, body, args, args + shapes + count_flats(l), outputs);
    if (tutti_graph_check(body) != TUTTI_OK)
        return;
    ret[0] = tutti_add(args[0], 1);
    ret[1] = l->counts ? tutti_reshape(outputs[0].sym) : tutti_identity(args[1]);
    tutti__onnx_lay(l->states, outputs + tail, ret + 2);
    for (int i = 2; i < stacks; i++)
        ret[i] = tutti_identity(ret[i]);
    for (int i = 0; i < l->gives; i++) {
        tutti_sym y = outputs[tail + l->states + i].sym;
        ret[stacks + i] = stacked_on(l, i, args[stacks + i], y);
        if (l->flat[i])
            ret[shapes++] = tutti_shape(y);
    }
}

/* round < limit and condition */
static void build_condition(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                            void *context)
{
    const tutti_onnx_rounds *l = context;
    tutti_sym unused[2 * ONNX_STATES];
    int variables = 2 + tutti__onnx_lay(l->states, l->state, unused) + l->gives + count_flats(l);
    (void)body;
    (void)count;
    ret[0] = tutti_logical_and(tutti_less(args[0], args[variables]), args[1]);
}

/* ---- what the rounds give ---- */

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

/* State i after a round, which says more about it than it did before: true when something is new.
 */
static bool learn_state(tutti_onnx_rounds *l, int i, const tutti_onnx_pack *after)
{
    tutti_onnx_pack *state = &l->state[i];
    if (state->list != after->list || (tutti__onnx_is_bare(after) && tutti__onnx_is_bare(state))) {
        tutti__onnx_read_fail(l->m, TUTTI_UNSUPPORTED,
                              "state %d is a list of tensors of which nothing is known: neither "
                              "before the loop nor in a round one is put into it",
                              i);
        return false;
    }
    if (!state->list) {
        tutti_type type = tutti_sym_type(state->sym), other = tutti_sym_type(after->sym);
        if (memcmp(type.dims, other.dims, (size_t)type.rank * sizeof *type.dims) != 0)
            state->sym = loosened(state->sym);
        return false;
    }
    if (tutti__onnx_is_bare(state)) {
        *state = tutti__onnx_empty_list(l->m->graph, after->of);
        return true;
    }
    tutti_type before = state->of;
    if (!tutti__onnx_is_bare(after) && !tutti__onnx_widen(&state->of, &after->of))
        tutti__onnx_read_fail(l->m, TUTTI_UNSUPPORTED,
                              "the tensors of the list that is state %d differ in their ranks or "
                              "element types",
                              i);
    return memcmp(before.dims, state->of.dims, (size_t)before.rank * sizeof *before.dims) != 0;
}

/* One round in a graph of its own, for the types: true when something about the states is new, so
 * that another round may give something else. */
static bool try_round(tutti_onnx_rounds *l, const tutti_sym *first, int behind,
                      const tutti_sym *rest)
{
    tutti_type types[MOST];
    tutti_sym args[MOST], all[MOST] = {first[0], first[1]};
    tutti_onnx_pack results[2 * ONNX_STATES + 2] = {{.list = false}};
    tutti_graph *trial;
    int states = 2 + tutti__onnx_lay(l->states, l->state, all + 2), tail = l->counts ? 1 : 0;
    bool news = false;
    memcpy(all + states, rest, (size_t)behind * sizeof *all);
    for (int i = 0; i < states + behind; i++)
        types[i] = tutti_sym_type(all[i]);
    if (tutti__subgraph_create(states + behind, types, &trial, args) != TUTTI_OK) {
        tutti__onnx_read_fail(l->m, TUTTI_NO_MEMORY, "no memory for the model");
        return false;
    }
    build_round(l, trial, args, args + states, results);
    if (tutti_graph_check(trial) != TUTTI_OK)
        tutti__onnx_read_fail(l->m, tutti_graph_check(trial), "%s", tutti_error_message());
    for (int i = 0; l->m->status == TUTTI_OK && i < l->states; i++)
        news = learn_state(l, i, &results[tail + i]) || news;
    for (int i = 0; l->m->status == TUTTI_OK && i < l->gives; i++) {
        if (results[tail + l->states + i].list)
            tutti__onnx_read_fail(l->m, TUTTI_UNSUPPORTED, "stacks lists of tensors");
        else
            l->given[i] = tutti_sym_type(results[tail + l->states + i].sym);
    }
    tutti_graph_destroy(trial);
    return news && l->m->status == TUTTI_OK;
}

/* An empty stack of such values; one of unknown dimensions is flat. */
static tutti_sym empty_stack(tutti_onnx_rounds *l, int i)
{
    const tutti_type type = l->given[i];
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
    int rank = l->flat[i] ? 1 : type.rank + 1;
    return loosened(
        (tutti_fill)(l->m->graph, type.dtype, 0, rank, l->flat[i] ? (int64_t[]){0} : dims));
}

/* ---- the loop ---- */

/* What was stacked flat, of `rounds` values of that shape and type. */
static tutti_sym flat_stack(tutti_sym flat, tutti_sym rounds, tutti_sym shape, tutti_type type,
                            int64_t axis)
{
    int64_t dims[TUTTI_MAX_RANK] = {-1}, order[TUTTI_MAX_RANK];
    memcpy(dims + 1, type.dims, (size_t)type.rank * sizeof *dims);
    tutti_sym whole = tutti_concatenate(TUTTI_SYMS(tutti_reshape(rounds, 1), shape));
    tutti_sym like = (tutti_fill_dynamic)(whole, TUTTI_BOOL, 0, type.rank + 1, dims);
    for (int k = 0; k <= type.rank; k++)
        order[k] = k == axis ? 0 : k < axis ? k + 1 : k;
    return (tutti_transpose)(tutti_reshape_like(flat, like), type.rank + 1, order);
}

static void make_results(tutti_onnx_rounds *l, const tutti_sym *results)
{
    tutti_onnx_pack states[ONNX_STATES];
    int stacks = 2 + tutti__onnx_lift(l->states, l->state, results + 2, states);
    int shape = stacks + l->gives;
    for (int i = 0; i < l->states; i++) {
        tutti_onnx_known *known = tutti__arena_take(&l->m->root->arena, sizeof *known);
        if (!known) {
            tutti__onnx_read_fail(l->m, TUTTI_NO_MEMORY, "no memory for the model");
            return;
        }
        *known = tutti__onnx_unpacked(&states[i]);
        tutti__onnx_made_known(l->m, i, known);
    }
    for (int i = 0; i < l->gives; i++) {
        tutti_sym y = results[stacks + i];
        if (l->flat[i])
            y = flat_stack(y, results[0], results[shape++], l->given[i], l->out_axes[i]);
        tutti__onnx_made(l->m, l->states + i, y);
    }
}

/* The states before the loop, and everything that comes in; false after a failure. */
static bool take_inputs(tutti_onnx_rounds *l, tutti_sym *rest, int *ret_count)
{
    tutti_onnx_import *m = l->m;
    for (int i = 0; m->status == TUTTI_OK && i < l->states; i++) {
        tutti_onnx_known *known = tutti__onnx_input(m, l->first_state + i);
        if (known)
            l->state[i] = tutti__onnx_packed(m, known);
        else
            tutti__onnx_sym(m, l->first_state + i); /* says what is missing */
        if (m->status == TUTTI_OK && l->state[i].list && !tutti__onnx_is_bare(&l->state[i]))
            l->state[i] = tutti__onnx_open_list(&l->state[i]);
    }
    for (int i = 0; i < l->scans; i++)
        rest[1 + i] = tutti__onnx_sym(m, l->first_state + l->states + i);
    if (m->status != TUTTI_OK || !tutti__onnx_capture(m, l->captures, l->names, l->captured))
        return false;
    *ret_count = 1 + l->scans + tutti__onnx_lay(l->captures, l->captured, rest + 1 + l->scans);
    return true;
}

void tutti__onnx_go_round(tutti_onnx_rounds *l, tutti_sym limit, tutti_sym condition)
{
    tutti_onnx_import *m = l->m;
    tutti_sym rest[MOST] = {limit}, variables[MOST], results[MOST];
    int behind;
    variables[0] = tutti_scalar(m->graph, TUTTI_I64, 0);
    variables[1] = condition;
    if (!take_inputs(l, rest, &behind))
        return;
    size_t needs = m->root->need_count;
    while (try_round(l, variables, behind, rest))
        continue;
    if (m->status != TUTTI_OK || m->root->need_count > needs)
        return;
    int stacks = 2 + tutti__onnx_lay(l->states, l->state, variables + 2), shape;
    for (int i = 0; m->status == TUTTI_OK && i < l->gives; i++)
        variables[stacks + i] = empty_stack(l, i);
    shape = stacks + l->gives;
    for (int i = 0; m->status == TUTTI_OK && i < l->gives; i++)
        if (l->flat[i])
            variables[shape++] = tutti_fill(m->graph, TUTTI_I64, 0, l->given[i].rank);
    if (m->status != TUTTI_OK)
        return;
    (tutti_while)(build_condition, build_step, l, shape, variables, behind, rest, results);
    if (tutti_graph_check(m->graph) == TUTTI_OK)
        make_results(l, results);
}
