/* autodiff.c: reverse mode. Nodes between xs and ys are visited from the last to the first; each
 * operator's gradient rule turns the gradients of its outputs into gradients of its inputs. An
 * edge's gradient is the sum of what its users contribute; it is complete when its node is reached,
 * because ids ascend along edges. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/autodiff.h"
#include "graph/scope.h"

typedef struct contribution {
    tutti_grad grad;
    struct contribution *next, *last; /* last: of the list that begins here */
    bool complete;                    /* summed and shown to the hooks */
} contribution;

typedef struct diff {
    tutti_graph *graph;
    size_t count;         /* nodes there were before */
    bool *reached;        /* by id: some x reaches it, through whatever */
    bool *carries;        /* by id: a gradient of it is asked for, or of something before it */
    bool *wanted;         /* by id: it reaches some y */
    tutti_edge *sent;     /* by id: of a recv what its send sends; else no node */
    contribution ***sums; /* by id, by output */
    const char **devices; /* by id: where it stands; "" where the session says */
    bool scoped;          /* the caller says where gradients are computed */
    tutti_arena arena;
} diff;

static tutti_sym autodiff_apply(tutti_graph *graph, const char *op, int count,
                                const tutti_sym *inputs, int attr_count, const tutti_attr *attrs)
{
    return (tutti_apply_op_named)(graph, op, NULL, count, inputs, attr_count, attrs);
}

tutti_sym(tutti_grad_dense)(tutti_grad grad, tutti_sym like)
{
    if (!grad.rows.node)
        return grad.value;
    tutti_sym inputs[] = {grad.value, grad.rows, like};
    return autodiff_apply(tutti_sym_graph(grad.value), "rows_to_dense", 3, inputs, 0, NULL);
}

static tutti_sym as_i64(tutti_graph *graph, tutti_sym rows)
{
    tutti_attr dtype = TUTTI_INT("dtype", TUTTI_I64);
    return tutti_sym_type(rows).dtype == TUTTI_I64
               ? rows
               : autodiff_apply(graph, "cast", 1, &rows, 1, &dtype);
}

static tutti_grad sum_two(tutti_graph *graph, tutti_grad a, tutti_grad b, tutti_sym like)
{
    if (a.rows.node && b.rows.node) {
        tutti_attr axis = TUTTI_INT("axis", 0);
        tutti_sym values[] = {a.value, b.value}, rows[] = {a.rows, b.rows};
        if (tutti_sym_type(a.rows).dtype != tutti_sym_type(b.rows).dtype)
            for (int i = 0; i < 2; i++)
                rows[i] = as_i64(graph, rows[i]);
        return (tutti_grad){autodiff_apply(graph, "concat", 2, values, 1, &axis),
                            autodiff_apply(graph, "concat", 2, rows, 1, &axis)};
    }
    tutti_sym both[] = {tutti_grad_dense(a, like), tutti_grad_dense(b, like)};
    return (tutti_grad){.value = autodiff_apply(graph, "add", 2, both, 0, NULL)};
}

/* Whether a gradient can be one of this value: of the same graph and type, as far as shapes are
 * known; rows may be any of them. */
static bool is_gradient_of(const diff *d, tutti_grad grad, tutti_edge edge)
{
    if (grad.value.node->graph != d->graph || (grad.rows.node && grad.rows.node->graph != d->graph))
        return false;
    tutti_type type = tutti_sym_type(grad.value);
    const tutti_type *of = tutti__edge_type(edge);
    bool same = type.dtype == of->dtype && type.rank == of->rank && !type.handle;
    for (int i = grad.rows.node ? 1 : 0; same && i < type.rank; i++)
        same = type.dims[i] == of->dims[i] || type.dims[i] == TUTTI_ANY || of->dims[i] == TUTTI_ANY;
    return same;
}

static tutti_status autodiff_refuse(const diff *d, tutti_grad grad, tutti_edge edge,
                                    const char *what)
{
    char given[TUTTI_TYPE_TEXT], wanted[TUTTI_TYPE_TEXT];
    tutti_type type = tutti_sym_type(grad.value), of = *tutti__edge_type(edge);
    const tutti_node *foreign = grad.value.node->graph != d->graph ? grad.value.node : NULL;
    if (!foreign && grad.rows.node && grad.rows.node->graph != d->graph)
        foreign = grad.rows.node;
    if (foreign)
        return tutti_fail(TUTTI_INVALID,
                          "%s gives '%s' of another graph as the gradient of '%s'; build it in the "
                          "graph of the gradient that is passed in",
                          what, foreign->name, edge.node->name);
    of.handle = false; /* a variable's gradient is one of its value */
    return tutti_fail(TUTTI_INVALID, "%s gives %s '%s' of %s as the gradient of '%s' of %s", what,
                      tutti_type_text(&type, given), grad.value.node->name,
                      grad.rows.node ? "rows" : "all elements", edge.node->name,
                      tutti_type_text(&of, wanted));
}

static tutti_grad total(diff *d, tutti_edge edge)
{
    contribution *list = d->sums[edge.node->id] ? d->sums[edge.node->id][edge.index] : NULL;
    if (!list)
        return (tutti_grad){0};
    if (list->complete)
        return list->grad;
    tutti_sym forward = tutti__sym(edge.node, edge.index);
    tutti_grad sum = list->grad;
    for (list = list->next; list; list = list->next)
        sum = sum_two(d->graph, sum, list->grad, forward);
    for (size_t i = 0; i < d->graph->hooks.count; i++) {
        tutti_gradient_hook hook = d->graph->hooks.data[i];
        if (hook.edge.node == edge.node && hook.edge.index == edge.index)
            sum = hook.fn(forward, sum, hook.context);
        if (sum.value.node && d->graph->error.status == TUTTI_OK && !is_gradient_of(d, sum, edge)) {
            (void)autodiff_refuse(d, sum, edge, "a hook");
            tutti__poison(d->graph, TUTTI_INVALID, "%s", tutti_error_message());
        }
    }
    list = d->sums[edge.node->id][edge.index];
    *list = (contribution){.grad = sum, .last = list, .complete = true};
    return sum;
}

static tutti_status contribute(diff *d, tutti_edge edge, tutti_grad grad)
{
    tutti_node *node = edge.node;
    if (!d->sums[node->id])
        d->sums[node->id] =
            tutti__arena_array(&d->arena, (size_t)node->output_count, sizeof(contribution *));
    contribution *one = tutti__arena_take(&d->arena, sizeof *one);
    if (!d->sums[node->id] || !one)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for gradients");
    one->grad = grad;
    contribution **first = &d->sums[node->id][edge.index];
    if (*first)
        (*first)->last->next = one; /* in the order of arrival: sums are the same in every run */
    else
        *first = one;
    (*first)->last = one;
    return TUTTI_OK;
}

/* Whether gradients flow through a node: a tape has recorded it, or there is none. */
static bool is_recorded(const diff *d, size_t node)
{
    return d->graph->recorded.last == 0 ||
           (node >= d->graph->recorded.first && node < d->graph->recorded.last);
}

/* Whether the gradient of this value goes on to some x, or to a hook. */
static bool flows(const diff *d, tutti_edge edge)
{
    return d->carries[edge.node->id] && tutti_dtype_is_float(tutti__edge_type(edge)->dtype);
}

static bool passes_gradients(const diff *d, const tutti_node *node)
{
    return is_recorded(d, node->id) && !(node->op->flags & TUTTI_OP_NO_GRADIENT);
}

/* A recv gives what the send of its channel takes. */
static void pair_sends(diff *d)
{
    for (size_t r = 0; r < d->count; r++) {
        const tutti_node *recv = d->graph->nodes.data[r];
        if (recv->dead || !tutti__is(recv, "recv") || !is_recorded(d, r))
            continue;
        for (size_t s = 0; s < d->count && !d->sent[r].node; s++) {
            const tutti_node *send = d->graph->nodes.data[s];
            if (!send->dead && tutti__is(send, "send") && is_recorded(d, s) &&
                strcmp(tutti__str(send, "channel"), tutti__str(recv, "channel")) == 0)
                d->sent[r] = send->inputs[0];
        }
    }
}

static int source_count(const diff *d, const tutti_node *node)
{
    return d->sent[node->id].node ? 1 : node->input_count;
}

/* What a node's value is made of: its inputs, or what was sent. */
static tutti_edge source(const diff *d, const tutti_node *node, int i)
{
    return d->sent[node->id].node ? d->sent[node->id] : node->inputs[i];
}

/* reached: forwards from xs. */
static void mark_reached(diff *d, int x_count, const tutti_sym *xs)
{
    for (int i = 0; i < x_count; i++)
        d->reached[xs[i].node->id] = true;
    for (size_t n = 0; n < d->count; n++) {
        const tutti_node *node = d->graph->nodes.data[n];
        for (int i = 0; is_recorded(d, n) && !d->reached[n] && i < source_count(d, node); i++)
            d->reached[n] = d->reached[source(d, node, i).node->id];
    }
}

/* carries: forwards from xs, and from the values with hooks that they reach, as far as nothing
 * stops gradients. */
static void mark_carries(diff *d, int x_count, const tutti_sym *xs)
{
    for (int i = 0; i < x_count; i++)
        d->carries[xs[i].node->id] = true;
    for (size_t i = 0; i < d->graph->hooks.count; i++) {
        const tutti_node *node = d->graph->hooks.data[i].edge.node;
        if (node->id < d->count && d->graph->nodes.data[node->id] == node && d->reached[node->id])
            d->carries[node->id] = true;
    }
    for (size_t n = 0; n < d->count; n++) {
        const tutti_node *node = d->graph->nodes.data[n];
        bool passes = passes_gradients(d, node);
        for (int i = 0; passes && !d->carries[n] && i < source_count(d, node); i++)
            d->carries[n] = flows(d, source(d, node, i));
    }
}

/* wanted: backwards from ys. */
static void mark_wanted(diff *d, int y_count, const tutti_sym *ys)
{
    for (int i = 0; i < y_count; i++)
        d->wanted[ys[i].node->id] = true;
    for (size_t n = d->count; n-- > 0;) {
        const tutti_node *node = d->graph->nodes.data[n];
        for (int i = 0; d->wanted[n] && i < source_count(d, node); i++)
            d->wanted[source(d, node, i).node->id] = true;
    }
}

static tutti_status seed(diff *d, int y_count, const tutti_sym *ys, const tutti_sym *y_grads)
{
    for (int i = 0; i < y_count; i++) {
        tutti_grad grad = {.value = y_grads ? y_grads[i] : TUTTI_NO_SYM};
        if (!grad.value.node)
            grad.value = autodiff_apply(d->graph, "ones_like", 1, &ys[i], 0, NULL);
        if (!grad.value.node)
            return tutti_graph_check(d->graph);
        TUTTI_TRY(contribute(d, tutti__edge(ys[i]), grad));
    }
    return TUTTI_OK;
}

static bool keeps_rows(const tutti_node *node)
{
    return (node->op->flags & TUTTI_OP_TAKES_HANDLE) && tutti__is(node, "read");
}

/* The gradient of what was sent is that of what came: partitioning lets it travel back. */
static tutti_status send_back(diff *d, const tutti_node *recv, tutti_grad grad)
{
    tutti_edge sent = d->sent[recv->id];
    return is_gradient_of(d, grad, sent) ? contribute(d, sent, grad)
                                         : autodiff_refuse(d, grad, sent, "recv");
}

/* Nodes are visited by id: a recv must stand behind what it gets. */
static tutti_status check_recvs(const diff *d)
{
    char place[TUTTI_PLACE_TEXT];
    for (size_t n = 0; n < d->count; n++) {
        const tutti_node *recv = d->graph->nodes.data[n];
        tutti_edge sent = d->sent[n];
        if (sent.node && sent.node->id > n && d->wanted[n] && flows(d, sent))
            return tutti_fail(TUTTI_UNSUPPORTED,
                              "recv '%s'%s was built before '%s', which it gets on channel '%s': "
                              "no gradient finds its way back; build tutti_send first, or use "
                              "device scopes alone, between which values travel by themselves",
                              recv->name, tutti__node_place(recv, place), sent.node->name,
                              tutti__str(recv, "channel"));
    }
    return TUTTI_OK;
}

static tutti_status rule_failed(const tutti_node *node, tutti_status status)
{
    char who[640], place[TUTTI_PLACE_TEXT];
    snprintf(who, sizeof who, "%s '%s'%s: the gradient rule failed", node->op->name, node->name,
             tutti__node_place(node, place));
    return tutti__node_failed(node, tutti__error_say(status, who));
}

/* Calls one node's rule and hands its results on. */
static tutti_status apply_rule(diff *d, tutti_node *node, const tutti_grad *outputs)
{
    size_t in = (size_t)node->input_count, out = (size_t)node->output_count;
    tutti_sym *syms = tutti__arena_array(&d->arena, 3 * in + 2 * out + 1, sizeof *syms);
    bool *wanted = tutti__arena_array(&d->arena, in + 1, sizeof *wanted);
    if (!syms || !wanted)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for gradients");
    tutti_sym *inputs = syms, *grads = syms + in, *rows = syms + 2 * in, *results = syms + 3 * in,
              *given = results + out;
    for (size_t i = 0; i < in; i++) {
        tutti_edge edge = node->inputs[i];
        inputs[i] = tutti__sym(edge.node, edge.index);
        wanted[i] = flows(d, edge);
    }
    for (size_t i = 0; i < out; i++) {
        results[i] = tutti__sym(node, (uint32_t)i);
        given[i] = outputs[i].value.node ? tutti_grad_dense(outputs[i], results[i]) : TUTTI_NO_SYM;
    }
    tutti_gradient_call rule = {.graph = d->graph,
                                .name = node->name,
                                .input_count = (int)in,
                                .output_count = (int)out,
                                .inputs = inputs,
                                .outputs = results,
                                .attrs = node->attrs,
                                .attr_count = node->attr_count,
                                .output_grads = given,
                                .wanted = wanted,
                                .input_grads = grads,
                                .input_grad_rows = rows};
    tutti__error_forget();
    tutti_status status = node->op->gradient(&rule);
    if (status != TUTTI_OK)
        return rule_failed(node, status);
    TUTTI_TRY(tutti_graph_check(d->graph));
    for (size_t i = 0; i < in; i++)
        if (wanted[i] && grads[i].node) {
            tutti_grad grad = {grads[i], rows[i]};
            if (!is_gradient_of(d, grad, node->inputs[i]))
                return autodiff_refuse(d, grad, node->inputs[i], node->op->name);
            TUTTI_TRY(contribute(d, node->inputs[i], grad));
        }
    return TUTTI_OK;
}

/* Gradients are computed where their node is, unless a device scope says otherwise; those of
 * collectives always, because every device along the axis takes part in them. */
static tutti_status apply_there(diff *d, tutti_node *node, const tutti_grad *outputs)
{
    const char *device = d->devices[node->id];
    if (!device[0] || (d->scoped && !(node->op->flags & TUTTI_OP_COLLECTIVE)))
        return apply_rule(d, node, outputs);
    tutti_device_push(d->graph, device);
    tutti_status status = apply_rule(d, node, outputs);
    tutti_device_pop(d->graph);
    return status;
}

static tutti_status autodiff_visit(diff *d, tutti_node *node)
{
    bool any = false;
    tutti_grad *outputs =
        tutti__arena_array(&d->arena, (size_t)node->output_count + 1, sizeof *outputs);
    if (!outputs)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for gradients");
    for (int i = 0; i < node->output_count; i++) {
        outputs[i] = total(d, (tutti_edge){node, (uint32_t)i});
        any = any || outputs[i].value.node;
    }
    bool goes_on = false;
    char place[TUTTI_PLACE_TEXT];
    for (int i = 0; i < source_count(d, node); i++)
        goes_on = goes_on || flows(d, source(d, node, i));
    if (!any || !goes_on || !passes_gradients(d, node))
        return TUTTI_OK;
    if (keeps_rows(node))
        return contribute(d, node->inputs[0], outputs[0]);
    if (d->sent[node->id].node)
        return send_back(d, node, outputs[0]);
    if (!node->op->gradient)
        return tutti_fail(
            TUTTI_UNSUPPORTED,
            "%s '%s'%s has no gradient; put tutti_stop_gradient before it if none should flow",
            node->op->name, node->name, tutti__node_place(node, place));
    return apply_there(d, node, outputs);
}

static tutti_status visit_in_stage(diff *d, tutti_node *node)
{
    tutti__stage_push_exact(d->graph, node->stage);
    tutti_status status = autodiff_visit(d, node);
    tutti_stage_pop(d->graph);
    return status;
}

static tutti_status autodiff_run(diff *d, int y_count, const tutti_sym *ys,
                                 const tutti_sym *y_grads, int x_count, const tutti_sym *xs,
                                 tutti_sym *ret_grads, tutti_sym *ret_rows)
{
    pair_sends(d);
    mark_reached(d, x_count, xs);
    mark_carries(d, x_count, xs);
    mark_wanted(d, y_count, ys);
    TUTTI_TRY(check_recvs(d));
    TUTTI_TRY(seed(d, y_count, ys, y_grads));
    for (size_t n = d->count; n-- > 0;)
        if (d->wanted[n] && d->carries[n] && d->sums[n])
            TUTTI_TRY(visit_in_stage(d, d->graph->nodes.data[n]));
    for (int i = 0; i < x_count; i++) {
        tutti_grad grad = total(d, tutti__edge(xs[i]));
        if (grad.rows.node && !ret_rows)
            grad = (tutti_grad){.value = tutti_grad_dense(grad, xs[i])};
        ret_grads[i] = grad.value;
        if (ret_rows)
            ret_rows[i] = grad.rows;
    }
    return tutti_graph_check(d->graph);
}

tutti_status tutti__gradients(tutti_graph *graph, int y_count, const tutti_sym *ys,
                              const tutti_sym *y_grads, int x_count, const tutti_sym *xs,
                              tutti_sym *ret_grads, tutti_sym *ret_rows)
{
    TUTTI_TRY(tutti_graph_check(graph));
    for (int i = 0; i < y_count; i++)
        TUTTI_TRY(tutti__sym_usable(graph, ys[i], "differentiation: y", i));
    for (int i = 0; i < x_count; i++)
        TUTTI_TRY(tutti__sym_usable(graph, xs[i], "differentiation: x", i));
    for (int i = 0; i < x_count; i++)
        if (tutti_sym_type(xs[i]).handle && !tutti__is(xs[i].node, "variable"))
            return tutti_fail(
                TUTTI_INVALID,
                "differentiation: x '%s' is a %s; values and variables have gradients",
                xs[i].node->name, xs[i].node->op->name);
    for (int i = 0; i < y_count; i++)
        if (!tutti_dtype_is_float(tutti_sym_type(ys[i]).dtype))
            return tutti_fail(TUTTI_INVALID,
                              "differentiation: y '%s' is %s; only floats have gradients",
                              ys[i].node->name, tutti_dtype_name(tutti_sym_type(ys[i]).dtype));
    diff d = {.graph = graph, .count = graph->nodes.count};
    d.reached = calloc(d.count + 1, 1);
    d.carries = calloc(d.count + 1, 1);
    d.wanted = calloc(d.count + 1, 1);
    d.sums = calloc(d.count + 1, sizeof *d.sums);
    d.sent = calloc(d.count + 1, sizeof *d.sent);
    d.devices = tutti__devices_by_graph(graph);
    d.scoped = tutti__scope_has_device(graph);
    tutti_name_push(graph, "gradients");
    graph->differentiated++;
    tutti_status status =
        d.reached && d.carries && d.wanted && d.sums && d.sent && d.devices
            ? autodiff_run(&d, y_count, ys, y_grads, x_count, xs, ret_grads, ret_rows)
            : tutti_fail(TUTTI_NO_MEMORY, "no memory for gradients");
    graph->differentiated--;
    tutti_name_pop(graph);
    free(d.reached);
    free(d.carries);
    free(d.wanted);
    free(d.sums);
    free(d.sent);
    free(d.devices);
    tutti__arena_free(&d.arena);
    return status;
}

void(tutti_gradients)(tutti_sym y, int count, const tutti_sym *xs, tutti_grad *ret_grads)
{
    tutti_graph *graph = tutti_sym_graph(y);
    if (ret_grads && count > 0)
        memset(ret_grads, 0, (size_t)count * sizeof *ret_grads);
    for (int i = 0; !graph && xs && i < count; i++)
        graph = tutti_sym_graph(xs[i]);
    if (!graph || count == 0)
        return;
    if (count < 0) {
        tutti__poison(graph, TUTTI_INVALID, "gradients: of %d values", count);
        return;
    }
    if (!xs || !ret_grads) {
        tutti__poison(graph, TUTTI_INVALID, "gradients: the list of %d %s is NULL", count,
                      xs ? "gradients to return" : "values");
        return;
    }
    tutti_sym *grads = calloc((size_t)count * 2, sizeof *grads);
    tutti_status status =
        grads ? tutti__gradients(graph, 1, &y, NULL, count, xs, grads, grads + count)
              : tutti_fail(TUTTI_NO_MEMORY, "no memory for gradients");
    if (status != TUTTI_OK && graph->error.status == TUTTI_OK)
        tutti__poison(graph, status, "%s", tutti_error_message());
    for (int i = 0; status == TUTTI_OK && i < count; i++)
        ret_grads[i] = (tutti_grad){grads[i], grads[count + i]};
    free(grads);
}

tutti_sym(tutti_gradient)(tutti_sym y, tutti_sym x)
{
    tutti_grad grad = {0};
    (tutti_gradients)(y, 1, &x, &grad);
    tutti_graph *graph = tutti_sym_graph(y);
    if (graph && graph->error.status == TUTTI_OK && !grad.value.node)
        return autodiff_apply(graph, "zeros_like", 1, &x, 0, NULL);
    return tutti_grad_dense(grad, x);
}

void(tutti_on_gradient)(tutti_sym sym, tutti_grad (*fn)(tutti_sym, tutti_grad, void *),
                        void *context)
{
    if (!sym.node)
        return;
    if (tutti__sym_usable(sym.node->graph, sym, "tutti_on_gradient: the symbol", -1) != TUTTI_OK) {
        tutti__poison(sym.node->graph, TUTTI_INVALID, "%s", tutti_error_message());
        return;
    }
    if (!fn) {
        tutti__poison(sym.node->graph, TUTTI_INVALID,
                      "tutti_on_gradient: no function is given that intercepts");
        return;
    }
    tutti_gradient_hook hook = {tutti__edge(sym), fn, context};
    if (!TUTTI_VEC_PUSH(&sym.node->graph->hooks, hook))
        tutti__poison(sym.node->graph, TUTTI_NO_MEMORY, "no memory for a gradient hook");
}
