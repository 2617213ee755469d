/* recurrent_second.c: the gradient of the backward operators of simple_rnn, gru and lstm, made of
 * other operators.
 *
 * A backward operator walks over the steps from the last to the first. Its round r is
 *     s[r + 1], a[r], b[r] = step(s[r], values[r], recurrent)
 * where s are the gradients of the states, a and b those of the products (see tutti_cell); its
 * outputs are s after the last round and products and sums of all a and b. With u the gradients of
 * those outputs, the gradients l of s come from a loop in the other direction:
 *     l[rounds] = u of the states,  l[r] = (d s[r + 1] / d s[r])^T l[r + 1] + e[r]
 * where e comes from the products and sums. Once s and l are there, no round waits for another: all
 * of them are one computation, whose gradient gives those of the inputs. */
#include "ops/control/control.h"
#include "ops/network/recurrent.h"
#include "ops/pull_back.h"

/* What a round knows besides the states and `recurrent`. Those of all rounds are
 * [rounds, batch, …]; what a cell does not have is H again, and not looked at. */
enum { H, H_BEFORE, C_BEFORE, RESERVE, Y_GRAD, RESERVE_GRAD, ACTIVE, VALUES };

enum { MOST_STATES = 2, MOST_LOOP = 1 + MOST_STATES + VALUES + 2 + MOST_STATES };

typedef struct walk {
    const tutti_cell *cell;
    tutti_rnn_slots slots;
    tutti_graph *graph;
    bool reverse;
    int states;
} walk;

tutti_sym tutti__one_minus(tutti_sym y)
{
    return tutti_sub(1, y);
}

tutti_sym tutti__sigmoid_slope(tutti_sym y)
{
    return tutti_mul(y, tutti__one_minus(y));
}

tutti_sym tutti__tanh_slope(tutti_sym y)
{
    return tutti__one_minus(tutti_square(y));
}

/* [batch, time, …] in the order of the rounds, and back. */
static tutti_sym by_round(const walk *w, tutti_sym x)
{
    tutti_sym turned = tutti_transpose(x, 1, 0, 2);
    return w->reverse ? turned : tutti_reverse(turned, 0);
}

static tutti_sym by_time(const walk *w, tutti_sym x)
{
    return tutti_transpose(w->reverse ? x : tutti_reverse(x, 0), 1, 0, 2);
}

/* Of a sequence [batch, time, units]: what was there before each step. */
static tutti_sym one_before(const walk *w, tutti_sym x, tutti_sym first)
{
    first = tutti_expand_dims(first, 1);
    return w->reverse
               ? tutti_slice_axis(tutti_concatenate(TUTTI_SYMS(x, first), .axis = 1), 1, 1,
                                  TUTTI_LAST)
               : tutti_slice_axis(tutti_concatenate(TUTTI_SYMS(first, x), .axis = 1), 1, 0, -1);
}

/* [batch, time, 1]: whether the row is as long as that. */
static tutti_sym active(tutti_sym y, tutti_sym lengths)
{
    tutti_sym rows = tutti_sum(y, .axes = TUTTI_AXES(2), .keepdims = true); /* also of no units */
    tutti_sym ones = tutti_cast(tutti_ones_like(rows), TUTTI_I64);
    tutti_sym ends = tutti_expand_dims(tutti_expand_dims(tutti_cast(lengths, TUTTI_I64), 1), 1);
    return tutti_less_equal(tutti_cumsum(ones, 1), ends);
}

/* The values of all rounds, from the operator's inputs. */
static void gather_values(const walk *w, const tutti_sym *inputs, tutti_sym *ret)
{
    const tutti_rnn_slots *slots = &w->slots;
    const tutti_cell *cell = w->cell;
    tutti_sym y = inputs[slots->y];
    int y_grad = slots->grads[0], reserve_grad = slots->grads[1 + w->states];
    for (int i = 0; i < VALUES; i++)
        ret[i] = by_round(w, y);
    ret[H_BEFORE] = by_round(w, one_before(w, y, inputs[1]));
    ret[Y_GRAD] = by_round(w, y_grad < 0 ? tutti_zeros_like(y) : inputs[y_grad]);
    if (cell->kept > 0) {
        tutti_sym reserve = inputs[slots->reserve];
        ret[RESERVE] = by_round(w, reserve);
        ret[RESERVE_GRAD] =
            by_round(w, reserve_grad < 0 ? tutti_zeros_like(reserve) : inputs[reserve_grad]);
        if (w->states == 2) {
            tutti_sym c =
                tutti_sym_output(tutti_split_into(reserve, 2, cell->kept), cell->kept - 1);
            ret[C_BEFORE] = by_round(w, one_before(w, c, inputs[2]));
        }
    }
    if (slots->lengths >= 0)
        ret[ACTIVE] = by_round(w, active(y, inputs[slots->lengths]));
}

/* One round, or all at once: leading axes are whatever values and states have. */
static void recurrent_second_step(const walk *w, const tutti_sym *values, tutti_sym recurrent,
                                  const tutti_sym *states, tutti_sym *ret_states, tutti_sym *ret_a,
                                  tutti_sym *ret_b)
{
    const tutti_cell *cell = w->cell;
    tutti_cell_nodes n = {
        .h = values[H], .h_before = values[H_BEFORE], .c_before = values[C_BEFORE]};
    for (int k = 0; k < cell->kept; k++) {
        n.reserve[k] = tutti_sym_output(tutti_split_into(values[RESERVE], -1, cell->kept), k);
        n.reserve_grad[k] =
            tutti_sym_output(tutti_split_into(values[RESERVE_GRAD], -1, cell->kept), k);
    }
    tutti_sym here[MOST_STATES] = {tutti_add(states[0], values[Y_GRAD])};
    if (w->states == 2)
        here[1] = tutti_add(states[1], n.reserve_grad[cell->kept - 1]);
    memcpy(ret_states, here, (size_t)w->states * sizeof *here);
    cell->back_nodes(&n, ret_states, ret_a, ret_b);
    tutti__accumulate(&ret_states[0], tutti_matmul(*ret_b, recurrent, .transpose_b = true));
    if (w->slots.lengths < 0)
        return;
    for (int i = 0; i < w->states; i++)
        ret_states[i] = tutti_where(values[ACTIVE], ret_states[i], here[i]);
    *ret_a = tutti_where(values[ACTIVE], *ret_a, tutti_zeros_like(*ret_a));
    *ret_b = tutti_where(values[ACTIVE], *ret_b, tutti_zeros_like(*ret_b));
}

/* ---- all rounds at once ---- */

/* x of all rounds; 0 behind the rows' lengths, where it may be anything, NaN too. */
static tutti_sym taken(const walk *w, const tutti_sym *values, tutti_sym x)
{
    x = by_round(w, x);
    return w->slots.lengths < 0 ? x : tutti_where(values[ACTIVE], x, tutti_zeros_like(x));
}

/* From the operator's inputs and the states before each round: the states after each round, and
 * the gradients of x, kernel, recurrent and bias. */
static void build_all(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                      void *context)
{
    const walk *w = context;
    tutti_sym values[VALUES], a = TUTTI_NO_SYM, b = TUTTI_NO_SYM;
    tutti_sym kernel = args[w->slots.kernel], recurrent = args[w->slots.recurrent];
    (void)body;
    gather_values(w, args, values);
    recurrent_second_step(w, values, recurrent, args + count - w->states, ret, &a, &b);
    ret += w->states;
    ret[0] = by_time(w, tutti_matmul(a, kernel, .transpose_b = true));
    ret[1] = tutti_einsum("rbf,rbg->fg", taken(w, values, args[0]), a);
    ret[2] = tutti_einsum("rbu,rbg->ug", values[H_BEFORE], b);
    ret[3] = tutti_sum(a, .axes = TUTTI_AXES(0, 1));
    if (w->cell->biases == 2)
        ret[3] = tutti_stack(TUTTI_SYMS(ret[3], tutti_sum(b, .axes = TUTTI_AXES(0, 1))));
}

/* ---- round by round ---- */

/* A loop that keeps its variables. Those are the round (i64) and `states` more; captures: VALUES,
 * recurrent, the number of rounds, and for the way back e. */
typedef struct kept_loop {
    walk *w;
    tutti_body_fn *condition, *step;
    int inputs;
    tutti_sym given[MOST_LOOP];
    tutti_sym last[MOST_STATES], history[MOST_STATES];
} kept_loop;

static tutti_status make_body(const kept_loop *loop, tutti_body_fn *fn, int results,
                              tutti_graph **ret)
{
    tutti_type types[MOST_LOOP];
    tutti_sym params[MOST_LOOP], made[1 + MOST_STATES];
    for (int i = 0; i < loop->inputs; i++)
        types[i] = tutti_sym_type(loop->given[i]);
    TUTTI_TRY(tutti__subgraph_create(loop->inputs, types, ret, params));
    fn(*ret, loop->inputs, params, made, loop->w);
    TUTTI_TRY(tutti_graph_check(*ret));
    return tutti__subgraph_results(*ret, results, made);
}

static tutti_status make_loop(kept_loop *loop)
{
    tutti_graph *condition = NULL, *body = NULL, *graph = loop->w->graph;
    int variables = 1 + loop->w->states;
    TUTTI_TRY(tutti_graph_check(graph));
    tutti_status status = make_body(loop, loop->condition, 1, &condition);
    if (status == TUTTI_OK)
        status = make_body(loop, loop->step, variables, &body);
    if (status == TUTTI_OK) {
        tutti_attr attrs[] = {
            TUTTI_GRAPH_ATTR("cond_graph", condition), TUTTI_GRAPH_ATTR("body_graph", body),
            TUTTI_INT("loop_count", variables), TUTTI_INT("outputs", 3 * variables + 1)};
        tutti_sym made = tutti_apply_op(graph, "while_history", loop->inputs, loop->given,
                                        (int)TUTTI_COUNT(attrs), attrs);
        for (int i = 0; i < loop->w->states; i++) {
            loop->last[i] = tutti_sym_output(made, 1 + i);
            loop->history[i] = tutti_sym_output(made, variables + 2 + i);
        }
        status = tutti_graph_check(graph);
    }
    tutti_graph_destroy(condition);
    tutti_graph_destroy(body);
    return status;
}

static void build_forth_condition(tutti_graph *body, int count, const tutti_sym *args,
                                  tutti_sym *ret, void *context)
{
    const walk *w = context;
    (void)body;
    (void)count;
    ret[0] = tutti_less(args[0], args[2 + w->states + VALUES]);
}

static void build_forth(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                        void *context)
{
    const walk *w = context;
    const tutti_sym *all = args + 1 + w->states;
    tutti_sym values[VALUES], a = TUTTI_NO_SYM, b = TUTTI_NO_SYM;
    (void)body;
    (void)count;
    for (int i = 0; i < VALUES; i++)
        values[i] = tutti_gather(all[i], args[0], 0);
    ret[0] = tutti_add(args[0], 1);
    recurrent_second_step(w, values, all[VALUES], args + 1, ret + 1, &a, &b);
}

static void build_back_condition(tutti_graph *body, int count, const tutti_sym *args,
                                 tutti_sym *ret, void *context)
{
    (void)count;
    (void)context;
    ret[0] = tutti_greater(args[0], tutti_scalar(body, TUTTI_I64, 0));
}

/* A round for tutti__pull_back: states, values, recurrent. */
static void build_states(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                         void *context)
{
    const walk *w = context;
    tutti_sym a = TUTTI_NO_SYM, b = TUTTI_NO_SYM;
    (void)body;
    recurrent_second_step(w, args + w->states, args[count - 1], args, ret, &a, &b);
}

/* l of the round before, from l. A step is linear in the states: any will do, so l stands there. */
static void build_back(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                       void *context)
{
    walk *w = context;
    const tutti_sym *all = args + 1 + w->states, *e = all + VALUES + 1;
    tutti_sym one[MOST_STATES + VALUES + 1], grads[MOST_STATES + VALUES + 1];
    bool wanted[MOST_STATES + VALUES + 1] = {0};
    (void)count;
    ret[0] = tutti_add(args[0], -1);
    for (int i = 0; i < w->states; i++) {
        one[i] = args[1 + i];
        wanted[i] = true;
    }
    for (int i = 0; i < VALUES; i++)
        one[w->states + i] = tutti_gather(all[i], ret[0], 0);
    one[w->states + VALUES] = all[VALUES];
    tutti_pull_back round = {.fn = build_states,
                             .context = w,
                             .arg_count = w->states + VALUES + 1,
                             .result_count = w->states,
                             .args = one,
                             .result_grads = args + 1,
                             .wanted = wanted};
    tutti_status status = tutti__pull_back(body, &round, grads);
    if (status != TUTTI_OK)
        tutti__poison(body, status, "%s", tutti_error_message());
    for (int i = 0; i < w->states; i++) {
        ret[1 + i] = tutti_gather(e[i], ret[0], 0);
        tutti__accumulate(&ret[1 + i], grads[i]);
    }
}

/* ---- the rule ---- */

typedef struct second {
    walk w;
    tutti_gradient_call *node;
    int args;
    tutti_sym inputs[TUTTI_SPLIT_SLOTS]; /* the operator's, then the states before each round */
    tutti_sym grads[TUTTI_SPLIT_SLOTS];  /* of those */
    tutti_sym out[TUTTI_SPLIT_SLOTS];    /* of the operator's outputs */
    tutti_sym values[VALUES], rounds;
} second;

/* s of all rounds. */
static tutti_status go_forth(second *s)
{
    walk *w = &s->w;
    kept_loop loop = {.w = w, .condition = build_forth_condition, .step = build_forth};
    loop.given[loop.inputs++] = tutti_scalar(w->graph, TUTTI_I64, 0);
    for (int i = 0; i < w->states; i++) {
        int grad = w->slots.grads[1 + i];
        loop.given[loop.inputs++] = grad < 0 ? tutti_zeros_like(s->inputs[1 + i]) : s->inputs[grad];
    }
    for (int i = 0; i < VALUES; i++)
        loop.given[loop.inputs++] = s->values[i];
    loop.given[loop.inputs++] = s->inputs[w->slots.recurrent];
    loop.given[loop.inputs++] = s->rounds;
    TUTTI_TRY(make_loop(&loop));
    memcpy(s->inputs + s->node->input_count, loop.history,
           (size_t)w->states * sizeof *loop.history);
    return TUTTI_OK;
}

/* The gradients of the inputs, or of the states before each round, when the states after each
 * round have these. */
static tutti_status pull_all(second *s, const tutti_sym *after, bool of_states)
{
    const walk *w = &s->w;
    bool wanted[TUTTI_SPLIT_SLOTS] = {0};
    tutti_sym results[MOST_STATES + 4] = {{0}};
    for (int i = 0; i < s->args; i++)
        wanted[i] = i < s->node->input_count ? !of_states && s->node->wanted[i] : of_states;
    for (int i = 0; after != NULL && i < w->states; i++)
        results[i] = after[i];
    results[w->states] = s->out[0];
    for (int i = 0; i < 3; i++)
        results[w->states + 1 + i] = s->out[1 + w->states + i];
    tutti_pull_back all = {.fn = build_all,
                           .context = &s->w,
                           .arg_count = s->args,
                           .result_count = w->states + 4,
                           .args = s->inputs,
                           .result_grads = results,
                           .wanted = wanted};
    return tutti__pull_back(w->graph, &all, s->grads);
}

/* l of all rounds, in the order of the rounds; the last one is that of the final states'
 * gradients. */
static tutti_status go_back(second *s, tutti_sym *ret_after, tutti_sym *ret_first)
{
    walk *w = &s->w;
    kept_loop loop = {.w = w, .condition = build_back_condition, .step = build_back};
    loop.given[loop.inputs++] = s->rounds;
    for (int i = 0; i < w->states; i++)
        loop.given[loop.inputs++] =
            tutti_sym_ok(s->out[1 + i]) ? s->out[1 + i] : tutti_zeros_like(s->inputs[1 + i]);
    for (int i = 0; i < VALUES; i++)
        loop.given[loop.inputs++] = s->values[i];
    loop.given[loop.inputs++] = s->inputs[w->slots.recurrent];
    for (int i = 0; i < w->states; i++) {
        int at = s->node->input_count + i;
        loop.given[loop.inputs++] =
            tutti_sym_ok(s->grads[at]) ? s->grads[at] : tutti_zeros_like(s->inputs[at]);
    }
    TUTTI_TRY(make_loop(&loop));
    for (int i = 0; i < w->states; i++) {
        ret_after[i] = tutti_reverse(loop.history[i], 0);
        ret_first[i] = loop.last[i];
    }
    return tutti_graph_check(w->graph);
}

static void give(second *s, const tutti_sym *first)
{
    tutti_gradient_call *node = s->node;
    for (int i = 0; i < s->w.states; i++) {
        int grad = s->w.slots.grads[1 + i];
        if (grad >= 0)
            s->grads[grad] = first[i];
    }
    for (int i = 0; i < node->input_count; i++)
        if (node->wanted[i] && tutti_sym_ok(s->grads[i]))
            node->input_grads[i] =
                tutti__narrowed(s->grads[i], tutti_sym_type(node->inputs[i]).dtype);
}

tutti_status tutti__rnn_second_gradient(tutti_gradient_call *node, const tutti_cell *cell)
{
    second s = {.node = node, .args = node->input_count + cell->states};
    tutti_sym after[MOST_STATES], first[MOST_STATES];
    s.w = (walk){.cell = cell,
                 .slots = tutti__rnn_slots(cell, RULE_INT(node, "grads"), node->input_count),
                 .graph = node->graph,
                 .reverse = RULE_INT(node, "reverse") != 0,
                 .states = cell->states};
    for (int i = 0; i < node->input_count; i++)
        s.inputs[i] = tutti__widened(node->inputs[i]);
    for (int i = 0; i < node->output_count; i++)
        s.out[i] = tutti_sym_ok(node->output_grads[i]) ? tutti__widened(node->output_grads[i])
                                                       : TUTTI_NO_SYM;
    gather_values(&s.w, s.inputs, s.values);
    s.rounds = tutti_size(node->inputs[0], 1);
    TUTTI_TRY(go_forth(&s));
    TUTTI_TRY(pull_all(&s, NULL, true));
    TUTTI_TRY(go_back(&s, after, first));
    TUTTI_TRY(pull_all(&s, after, false));
    give(&s, first);
    return tutti_graph_check(node->graph);
}
