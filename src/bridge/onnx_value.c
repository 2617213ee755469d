/* onnx_value.c: values that are known while the graph is built: constants, what is made of them
 * alone, and lists of integers (shapes) of which some are numbers and others sizes of inputs. */
#include <string.h>

#include "bridge/onnx.h"
#include "ops/reference.h"

/* ---- constants ---- */

/* The given value of a placeholder, or NULL. */
static tutti_tensor *given_value(const tutti_onnx_import *root, const tutti_node *node)
{
    for (size_t i = 0; i < root->given_count; i++) {
        const tutti_onnx_known *known = tutti__map_get(&root->known, root->given[i].name);
        if (known && known->plain.node == node)
            return root->given[i].value;
    }
    return NULL;
}

typedef struct search {
    const tutti_onnx_import *root;
    uint8_t *seen; /* per node of the graph */
    tutti_reference_feed feeds[64];
    int feed_count, visited;
    bool heavy; /* there are layers on the way: worth a program of their own */
} search;

/* Whether a node follows from constants and given inputs. */
static bool follows(search *s, tutti_node *node, int depth)
{
    uint32_t never = TUTTI_OP_STATEFUL | TUTTI_OP_UPDATES | TUTTI_OP_RANDOM | TUTTI_OP_COLLECTIVE |
                     TUTTI_OP_HANDLE | TUTTI_OP_TAKES_HANDLE | TUTTI_OP_BLOCKING;
    if (s->seen[node->id])
        return true;
    if (tutti__is(node, "placeholder")) {
        tutti_tensor *value = given_value(s->root, node);
        if (!value || s->feed_count == (int)TUTTI_COUNT(s->feeds))
            return false;
        s->seen[node->id] = 1;
        s->feeds[s->feed_count++] = (tutti_reference_feed){{node, 0}, value};
        return true;
    }
    if ((node->op->flags & never) || tutti__is(node, "parameter") || depth > 2000 ||
        ++s->visited > 20000)
        return false;
    for (int i = 0; i < node->output_count; i++) { /* a file may be hostile, what is given is not */
        int64_t count = tutti_type_count(&node->types[i]);
        if (count > 1 << 24 || (count < 0 && s->root->given_count == 0))
            return false;
    }
    for (int i = 0; i < node->input_count; i++)
        if (!follows(s, node->inputs[i].node, depth + 1))
            return false;
    s->seen[node->id] = 1;
    s->heavy = s->heavy || strcmp(node->op->category, "network") == 0 ||
               strcmp(node->op->category, "linear") == 0;
    return true;
}

static tutti_status run_heavy(tutti_graph *graph, const search *s, tutti_sym sym,
                              tutti_tensor **ret)
{
    tutti_feed feeds[TUTTI_COUNT(s->feeds)];
    tutti_fetch fetch = {sym, ret};
    tutti_session *session;
    for (int i = 0; i < s->feed_count; i++)
        feeds[i] = (tutti_feed){tutti__sym(s->feeds[i].edge.node, s->feeds[i].edge.index),
                                s->feeds[i].value};
    TUTTI_TRY(tutti_session_open(&session, graph));
    tutti_run_options options = {
        .struct_size = sizeof options, .feed = {s->feed_count, feeds}, .fetch = {1, &fetch}};
    tutti_status status = tutti_run_with(session, &options);
    tutti_session_close(session);
    return status;
}

static tutti_tensor *computed(tutti_onnx_import *m, tutti_sym sym)
{
    search s = {.root = m->root};
    tutti_edge edge = tutti__edge(sym);
    tutti_tensor *value = NULL;
    s.seen = tutti__arena_take(&m->root->arena, m->graph->nodes.count + 1);
    if (!s.seen || !follows(&s, sym.node, 0))
        return NULL;
    bool heavy = s.heavy && s.feed_count > 0;
    if ((heavy
             ? run_heavy(m->graph, &s, sym, &value)
             : tutti__reference_run(m->graph, s.feed_count, s.feeds, 1, &edge, &value)) != TUTTI_OK)
        return NULL;
    if (TUTTI_VEC_PUSH(&m->root->made, value))
        return value;
    tutti_tensor_release(value);
    return NULL;
}

tutti_tensor *tutti__onnx_try_constant(tutti_onnx_import *m, int i)
{
    tutti_onnx_known *known = tutti__onnx_input(m, i);
    if (!known || known->sequence || m->status != TUTTI_OK)
        return NULL;
    if (!known->value && !known->lost && tutti_graph_check(m->graph) == TUTTI_OK) {
        tutti_sym sym = tutti__onnx_sym(m, i);
        if (sym.node && !tutti_sym_type(sym).handle)
            known->value = computed(m, sym);
    }
    return known->value;
}

/* ---- lists of integers ---- */

bool tutti__onnx_all_known(const tutti_onnx_elements *elements)
{
    for (int i = 0; i < elements->count; i++)
        if (!elements->items[i].known)
            return false;
    return true;
}

static bool from_value(const tutti_tensor *value, tutti_onnx_elements *ret)
{
    tutti_dtype dtype = tutti_tensor_dtype(value);
    if ((dtype != TUTTI_I64 && dtype != TUTTI_I32 && dtype != TUTTI_BOOL) ||
        tutti_tensor_rank(value) > 1 || tutti_tensor_count(value) > ONNX_ELEMENTS)
        return false;
    ret->rank = tutti_tensor_rank(value);
    ret->count = (int)tutti_tensor_count(value);
    ret->dtype = dtype;
    for (int i = 0; i < ret->count; i++)
        ret->items[i] =
            (tutti_onnx_element){.known = true, .value = tutti_tensor_get_int(value, i)};
    return true;
}

/* Of a symbol whose length is known: one scalar for each element. */
static bool from_sym(tutti_sym sym, tutti_onnx_elements *ret)
{
    tutti_type type = tutti_sym_type(sym);
    bool whole = type.dtype == TUTTI_I64 || type.dtype == TUTTI_I32;
    if (!whole || type.rank > 1 || (type.rank == 1 && (type.dims[0] < 0 || type.dims[0] > 16)))
        return false;
    ret->rank = type.rank;
    ret->count = type.rank == 0 ? 1 : (int)type.dims[0];
    ret->dtype = type.dtype;
    for (int i = 0; i < ret->count; i++) {
        tutti_sym one = type.rank == 0 ? sym : tutti_squeeze(tutti_slice_axis(sym, 0, i, i + 1), 0);
        ret->items[i] =
            (tutti_onnx_element){.sym = type.dtype == TUTTI_I64 ? one : tutti_cast(one, TUTTI_I64)};
    }
    return true;
}

bool tutti__onnx_read_elements(tutti_onnx_import *m, int i, tutti_onnx_elements *ret)
{
    tutti_onnx_known *known = tutti__onnx_input(m, i);
    *ret = (tutti_onnx_elements){0};
    if (!known || known->sequence)
        return false;
    if (known->value)
        return from_value(known->value, ret);
    if (known->elements) {
        *ret = *known->elements;
        return true;
    }
    tutti_tensor *value = tutti__onnx_try_constant(m, i);
    if (value)
        return from_value(value, ret);
    tutti_sym sym = tutti__onnx_sym(m, i);
    return sym.node && from_sym(sym, ret);
}

tutti_sym tutti__onnx_elements_sym(tutti_onnx_import *m, const tutti_onnx_elements *elements)
{
    tutti_sym scalars[ONNX_ELEMENTS] = {TUTTI_NO_SYM}, y;
    for (int i = 0; i < elements->count; i++) {
        const tutti_onnx_element *e = &elements->items[i];
        scalars[i] = e->known ? tutti_scalar(m->graph, TUTTI_I64, (double)e->value) : e->sym;
        if (e->known && (e->value > (1LL << 53) || e->value < -(1LL << 53)))
            scalars[i] = tutti_squeeze(tutti_ints(m->graph, e->value), 0);
    }
    if (elements->rank == 0)
        y = scalars[0];
    else
        y = elements->count == 0 ? (tutti_fill)(m->graph, TUTTI_I64, 0, 1, (int64_t[]){0})
                                 : tutti_stack(elements->count, scalars);
    return elements->dtype == TUTTI_I64 ? y : tutti_cast(y, elements->dtype);
}

/* ---- dimensions of unknown size ---- */

/* One step from a dimension to where it comes from; false when it is not known to come from
 * anywhere. */
static bool step_back(tutti_edge *edge, int *axis)
{
    const tutti_node *node = edge->node;
    const tutti_type *out = tutti__edge_type(*edge);
    if (node->input_count == 0 || edge->index != 0)
        return false;
    const tutti_type *in = tutti__edge_type(node->inputs[0]);
    if (tutti__is(node, "transpose") && in->rank == out->rank) {
        const int64_t *order;
        int count = tutti_attr_ints(node->attrs, node->attr_count, "order", &order);
        *axis = count == 0 ? out->rank - 1 - *axis : (int)order[*axis];
        *axis += *axis < 0 ? in->rank : 0;
    } else if (node->op->flags & TUTTI_OP_ELEMENTWISE) {
        int i = 0, from = 0;
        for (; i < node->input_count; i++) {
            in = tutti__edge_type(node->inputs[i]);
            from = *axis - (out->rank - in->rank);
            if (from >= 0 && in->dims[from] == TUTTI_ANY)
                break;
        }
        if (i == node->input_count)
            return false;
        *axis = from;
        *edge = node->inputs[i];
        return true;
    } else if (tutti__is(node, "expand_dims") && in->rank == out->rank - 1) {
        int64_t new_axis = tutti__int(node, "axis");
        new_axis += new_axis < 0 ? out->rank : 0;
        *axis -= *axis > new_axis;
    } else if (*axis != 0 || in->rank == 0 || in->dims[0] != TUTTI_ANY) {
        return false;
    } else if (tutti__is(node, "reshape")) {
        int64_t before = 1, after = 1;
        for (int i = 1; i < in->rank; i++)
            before = in->dims[i] < 0 || before < 0 ? -1 : before * in->dims[i];
        for (int i = 1; i < out->rank; i++)
            after = out->dims[i] < 0 || after < 0 ? -1 : after * out->dims[i];
        if (before < 0 || before != after)
            return false;
    } else {
        static const char *const keep[] = {
            "conv2d",  "max_pool2d",  "average_pool2d", "batch_norm", "layer_norm",    "rms_norm",
            "softmax", "log_softmax", "identity",       "cast",       "flatten",       "lstm",
            "gru",     "simple_rnn",  "attention",      "matmul",     "stop_gradient", "conv3d"};
        bool kept = false;
        for (size_t i = 0; i < TUTTI_COUNT(keep); i++)
            kept = kept || tutti__is(node, keep[i]);
        kept = kept &&
               !(tutti__is(node, "matmul") && in->rank == 2 && tutti__int(node, "transpose_a"));
        if (!kept)
            return false;
    }
    *edge = node->inputs[0];
    return true;
}

bool tutti__onnx_same_dim(tutti_sym a, int axis_a, tutti_sym b, int axis_b)
{
    tutti_edge x = tutti__edge(a), y = tutti__edge(b);
    for (int steps = 0; steps < 2000 && step_back(&x, &axis_a); steps++)
        continue;
    for (int steps = 0; steps < 2000 && step_back(&y, &axis_b); steps++)
        continue;
    return x.node == y.node && x.index == y.index && axis_a == axis_b;
}
