/* rewrite.c: replacing nodes in one walk; see rewrite.h. */
#include "passes/rewrite.h"

#include <stdlib.h>
#include <string.h>

static tutti_rewrite_mark *mark_of(const tutti_node *node)
{
    return node->scratch;
}

static void pin(tutti_node *node)
{
    mark_of(node)->pinned = true;
}

static bool is_sharded(const tutti_node *node)
{
    for (int i = 0; node->shardings != NULL && i < node->output_count; i++)
        if (node->shardings[i] != NULL)
            return true;
    return false;
}

void tutti__mark_needed(const tutti_graph *graph, bool *seen)
{
    for (size_t i = 0; i < graph->results.count; i++)
        seen[graph->results.data[i].node->id] = true;
    for (size_t i = 0; i < graph->targets.count; i++)
        seen[graph->targets.data[i]->id] = true;
    for (size_t n = graph->nodes.count; n-- > 0;) {
        const tutti_node *node = graph->nodes.data[n];
        for (int i = 0; seen[n] && i < node->input_count; i++)
            seen[node->inputs[i].node->id] = true;
        for (int i = 0; seen[n] && i < node->control_count; i++)
            seen[node->controls[i]->id] = true;
    }
}

static tutti_status no_memory(const tutti_graph *graph)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory to rewrite a graph of %zu nodes",
                      graph->nodes.count);
}

tutti_node *tutti__gate(tutti_node *node, tutti_node *(*known)(const tutti_node *))
{
    tutti_node *gate = NULL;
    if (node->op->flags & TUTTI_OP_UPDATES)
        return node;
    for (int i = 0; i < node->input_count + node->control_count; i++) {
        tutti_node *each = i < node->input_count ? known(node->inputs[i].node)
                                                 : node->controls[i - node->input_count];
        if (each != NULL && gate != NULL && each != gate)
            return node;
        gate = each != NULL ? each : gate;
    }
    return gate;
}

/* Nodes that rules have made are not marked. */
static tutti_node *gate_of(const tutti_node *node)
{
    return mark_of(node) != NULL ? mark_of(node)->gate : tutti__gate((tutti_node *)node, gate_of);
}

bool tutti__rewrite_waits(const tutti_node *node)
{
    return gate_of(node) != NULL;
}

tutti_status tutti__rewrite_begin(tutti_rewrite *rewrite, tutti_graph *graph,
                                  const tutti_pass_context *context)
{
    *rewrite =
        (tutti_rewrite){.graph = graph, .context = context, .node_count = graph->nodes.count};
    bool *needed = calloc(rewrite->node_count + 1, sizeof *needed);
    rewrite->marks = calloc(rewrite->node_count + 1, sizeof *rewrite->marks);
    if (rewrite->marks == NULL || needed == NULL) {
        free(needed);
        return no_memory(graph);
    }
    tutti__mark_needed(graph, needed);
    for (size_t n = 0; n < rewrite->node_count; n++) {
        graph->nodes.data[n]->scratch = &rewrite->marks[n];
        rewrite->marks[n].needed = needed[n];
    }
    free(needed);
    for (size_t n = 0; n < rewrite->node_count; n++) {
        tutti_node *node = graph->nodes.data[n];
        for (int i = 0; i < node->control_count; i++)
            pin(node->controls[i]);
        if (node->control_count > 0 || is_sharded(node))
            pin(node);
        mark_of(node)->gate = tutti__gate(node, gate_of);
    }
    for (size_t i = 0; i < graph->targets.count; i++)
        pin(graph->targets.data[i]);
    return TUTTI_OK;
}

tutti_edge tutti__rewrite_now(tutti_edge edge)
{
    for (;;) {
        const tutti_rewrite_mark *mark = mark_of(edge.node);
        if (mark == NULL || mark->to == NULL || mark->to[edge.index].node == NULL)
            return edge;
        edge = mark->to[edge.index];
    }
}

/* A node that is replaced as a whole, seen by those who only wait for it. */
static tutti_node *node_now(tutti_node *node)
{
    return node->output_count > 0 ? tutti__rewrite_now((tutti_edge){node, 0}).node : node;
}

void tutti__rewrite_visit(tutti_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        node->inputs[i] = tutti__rewrite_now(node->inputs[i]);
    for (int i = 0; i < node->control_count; i++)
        node->controls[i] = node_now(node->controls[i]);
}

bool tutti__rewrite_pinned(const tutti_node *node)
{
    return mark_of(node) != NULL && mark_of(node)->pinned;
}

tutti_status tutti__rewrite_replace(tutti_rewrite *rewrite, tutti_node *node, uint32_t output,
                                    tutti_edge to)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    const tutti_type *from = &node->types[output];
    tutti_rewrite_mark *mark = mark_of(node);
    if (!tutti_type_equal(from, tutti__edge_type(to)))
        return tutti_fail(TUTTI_INTERNAL,
                          "a pass would replace %s '%s' of type %s by %s of type %s",
                          node->op->name, node->name, tutti_type_text(from, a), to.node->op->name,
                          tutti_type_text(tutti__edge_type(to), b));
    if (mark->to == NULL)
        mark->to = tutti__arena_array(&rewrite->graph->arena, (size_t)node->output_count,
                                      sizeof *mark->to);
    if (mark->to == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to replace '%s'", node->name);
    mark->to[output] = to;
    rewrite->changes++;
    return TUTTI_OK;
}

static void rewire(tutti_graph *graph)
{
    for (size_t n = 0; n < graph->nodes.count; n++) {
        tutti_node *node = graph->nodes.data[n];
        tutti__rewrite_visit(node);
        if (node->colocate != NULL && !node->colocate->dead && node->colocate->output_count > 0)
            node->colocate = tutti__rewrite_now((tutti_edge){(tutti_node *)node->colocate, 0}).node;
    }
    for (size_t i = 0; i < graph->results.count; i++)
        graph->results.data[i] = tutti__rewrite_now(graph->results.data[i]);
    for (size_t i = 0; i < graph->targets.count; i++)
        graph->targets.data[i] = node_now(graph->targets.data[i]);
}

bool tutti__has_effect(const tutti_node *node)
{
    const uint32_t effects = TUTTI_OP_STATEFUL | TUTTI_OP_UPDATES | TUTTI_OP_BLOCKING |
                             TUTTI_OP_COLLECTIVE | TUTTI_OP_CONTROL;
    return (node->op->flags & effects) && !(node->op->flags & TUTTI_OP_HANDLE) &&
           !tutti__is(node, "parameter");
}

/* Users before inputs, so that one effect keeps those that it waits for. */
static tutti_status keep_effects(tutti_graph *graph)
{
    bool *needed = calloc(graph->nodes.count + 1, sizeof *needed);
    tutti_status status = needed != NULL ? TUTTI_OK : no_memory(graph);
    if (status == TUTTI_OK)
        tutti__mark_needed(graph, needed);
    for (size_t n = graph->nodes.count; status == TUTTI_OK && n-- > 0;) {
        tutti_node *node = graph->nodes.data[n];
        const tutti_rewrite_mark *mark = mark_of(node);
        if (needed[n] || mark == NULL || !mark->needed || !tutti__has_effect(node))
            continue;
        if (!TUTTI_VEC_PUSH(&graph->targets, node))
            status = no_memory(graph);
        tutti__mark_needed(graph, needed);
    }
    free(needed);
    return status;
}

static tutti_status put_in_order(tutti_graph *graph)
{
    TUTTI_TRY(tutti__graph_prune(graph));
    for (size_t n = 0; n < graph->nodes.count; n++) {
        tutti_node *node = graph->nodes.data[n];
        if (node->colocate != NULL && node->colocate->dead)
            node->colocate = NULL;
    }
    return TUTTI_OK;
}

tutti_status tutti__rewrite_end(tutti_rewrite *rewrite, tutti_status status, int *ret_changes)
{
    tutti_graph *graph = rewrite->graph;
    if (rewrite->marks != NULL && status == TUTTI_OK && rewrite->changes > 0) {
        rewire(graph);
        status = tutti__graph_sort(graph);
        if (status == TUTTI_OK)
            status = keep_effects(graph);
    }
    for (size_t n = 0; rewrite->marks != NULL && n < graph->nodes.count; n++)
        graph->nodes.data[n]->scratch = NULL;
    free(rewrite->marks);
    rewrite->marks = NULL;
    if (status == TUTTI_OK && (rewrite->changes > 0 || rewrite->leftovers))
        status = put_in_order(graph);
    if (status == TUTTI_OK)
        *ret_changes = rewrite->changes;
    return status;
}

tutti_status tutti__rewrite_add(tutti_rewrite *rewrite, const tutti_node *like, const char *op,
                                int input_count, const tutti_edge *inputs, int attr_count,
                                const tutti_attr *attrs, tutti_edge *ret)
{
    const tutti_op *found = tutti_op_find(op);
    tutti_node *node;
    if (found == NULL)
        return tutti_fail(TUTTI_INTERNAL, "operator '%s', which a pass needs for '%s', is missing",
                          op, like->name);
    TUTTI_TRY(tutti__node_add(rewrite->graph, found, NULL, input_count, inputs, attr_count, attrs,
                              &node));
    if (rewrite->graph->trace) /* names are not looked up there, so they may occur twice */
        node->name = like->name;
    tutti__node_mark_like(node, like);
    node->origin = like->origin;
    node->device = like->device;
    node->colocate = like->colocate;
    node->file = like->file;
    node->line = like->line;
    *ret = (tutti_edge){node, 0};
    return TUTTI_OK;
}

tutti_status tutti__rewrite_constant(tutti_rewrite *rewrite, const tutti_node *like,
                                     tutti_tensor *value, tutti_edge *ret)
{
    return tutti__rewrite_add(rewrite, like, "constant", 0, NULL, 1,
                              &TUTTI_TENSOR_ATTR("value", value), ret);
}

tutti_status tutti__rewrite_scalar(tutti_rewrite *rewrite, const tutti_node *like,
                                   tutti_dtype dtype, double value, tutti_edge *ret)
{
    tutti_tensor *tensor;
    TUTTI_TRY(tutti_tensor_create(dtype, 0, NULL, &tensor));
    tutti_tensor_set(tensor, 0, value);
    tutti_status status = tutti__rewrite_constant(rewrite, like, tensor, ret);
    tutti_tensor_release(tensor);
    return status;
}

tutti_status tutti__rewrite_reshape(tutti_rewrite *rewrite, const tutti_node *like, tutti_edge x,
                                    int rank, const int64_t *dims, tutti_edge *ret)
{
    tutti_type wanted = tutti_type_make(tutti__edge_type(x)->dtype, rank, dims);
    if (tutti__same_dims(&wanted, tutti__edge_type(x))) {
        *ret = x;
        return TUTTI_OK;
    }
    return tutti__rewrite_add(rewrite, like, "reshape", 1, &x, 1, &TUTTI_INTS("dims", rank, dims),
                              ret);
}

/* Whether a replacement follows what a gate stands for. */
static bool follows(const tutti_node *made, const tutti_node *gate)
{
    if (made == gate || gate_of(made) == gate)
        return true;
    for (int i = 0; mark_of(made) == NULL && i < made->input_count; i++)
        if (follows(made->inputs[i].node, gate))
            return true;
    return false;
}

/* Whether an input follows something that the replacement would not wait for. */
static bool forgets_to_wait(const tutti_node *node, const tutti_node *to)
{
    for (int i = 0; i < node->input_count; i++) {
        const tutti_node *gate = gate_of(node->inputs[i].node);
        if (gate != NULL && !follows(to, gate))
            return true;
    }
    return false;
}

/* A replacement that the rule has made waits itself for what the inputs follow. */
static tutti_status wait_as_inputs(const tutti_node *node, tutti_node *to)
{
    for (int i = 0; i < node->input_count; i++) {
        tutti_node *gate = gate_of(node->inputs[i].node);
        if (gate != NULL && !follows(to, gate))
            TUTTI_TRY(tutti__node_after(to, gate));
    }
    return TUTTI_OK;
}

/* A node that a rule made is looked at again: one rewrite may open the way for the next. */
static tutti_status rewrite_node(tutti_rewrite *rewrite, tutti_node *node, tutti_rewrite_rule *rule)
{
    tutti_node *current = node;
    for (int round = 0; round < 16; round++) {
        tutti_edge to = {0};
        TUTTI_TRY(rule(rewrite, current, &to));
        if (to.node == NULL)
            return TUTTI_OK;
        if (forgets_to_wait(current, to.node)) {
            if (mark_of(to.node) != NULL) { /* it may be somebody else's */
                rewrite->leftovers = true;
                return TUTTI_OK;
            }
            TUTTI_TRY(wait_as_inputs(current, to.node));
        }
        TUTTI_TRY(tutti__rewrite_replace(rewrite, node, 0, to));
        if (mark_of(to.node) != NULL || to.node->control_count > 0)
            return TUTTI_OK; /* it was there and has been visited, or keeps its place */
        current = to.node;
    }
    return TUTTI_OK;
}

tutti_status tutti__rewrite_nodes(tutti_graph *graph, const tutti_pass_context *context,
                                  tutti_rewrite_rule *rule, int *ret_changes)
{
    tutti_rewrite rewrite;
    tutti_status status = tutti__rewrite_begin(&rewrite, graph, context);
    for (size_t n = 0; status == TUTTI_OK && n < rewrite.node_count; n++) {
        tutti_node *node = graph->nodes.data[n];
        tutti__rewrite_visit(node);
        if (!tutti__rewrite_pinned(node))
            status = rewrite_node(&rewrite, node, rule);
    }
    return tutti__rewrite_end(&rewrite, status, ret_changes);
}

tutti_tensor *tutti__constant_of(tutti_edge edge)
{
    if (!tutti__is(edge.node, "constant") || edge.node->control_count > 0)
        return NULL;
    return tutti_attr_find(edge.node->attrs, edge.node->attr_count, "value")->value.tensor;
}

/* Large constants are not searched. */
#define SPLAT_LIMIT 4096

static bool tensor_is_splat(const tutti_tensor *tensor, double *ret_value)
{
    int64_t count = tutti_tensor_count(tensor);
    if (tutti_tensor_dtype(tensor) == TUTTI_STRING || count < 1 || count > SPLAT_LIMIT)
        return false;
    double first = tutti_tensor_get(tensor, 0);
    for (int64_t i = 1; i < count; i++)
        if (tutti_tensor_get(tensor, i) != first)
            return false;
    *ret_value = first;
    return true;
}

bool tutti__splat_of(tutti_edge edge, double *ret_value)
{
    while ((tutti__is(edge.node, "broadcast_to") || tutti__is(edge.node, "reshape")) &&
           edge.node->control_count == 0)
        edge = edge.node->inputs[0];
    tutti_tensor *constant = tutti__constant_of(edge);
    if (constant != NULL)
        return tensor_is_splat(constant, ret_value);
    if (!tutti__is(edge.node, "fill") || edge.node->control_count > 0)
        return false;
    *ret_value = tutti__float(edge.node, "value");
    return true;
}

bool tutti__is_pure(const tutti_node *node)
{
    const uint32_t impure = TUTTI_OP_STATEFUL | TUTTI_OP_UPDATES | TUTTI_OP_BLOCKING |
                            TUTTI_OP_FALLIBLE | TUTTI_OP_RANDOM | TUTTI_OP_COLLECTIVE |
                            TUTTI_OP_CONTROL | TUTTI_OP_HANDLE | TUTTI_OP_TAKES_HANDLE;
    return !(node->op->flags & impure);
}

bool tutti__same_dims(const tutti_type *a, const tutti_type *b)
{
    for (int i = 0; a->rank == b->rank && i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return a->rank == b->rank;
}

int64_t tutti__known_bytes(const tutti_type *type)
{
    int64_t count = tutti_type_count(type);
    return count > 0 ? count * (int64_t)tutti_dtype_size(type->dtype) : 0;
}

void tutti__transpose_order(const tutti_node *node, int ret_order[TUTTI_MAX_RANK])
{
    const int64_t *order;
    int rank = node->types[0].rank;
    int count = tutti_attr_ints(node->attrs, node->attr_count, "order", &order);
    for (int i = 0; i < rank; i++) {
        int64_t axis = count > 0 ? order[i] : rank - 1 - i;
        ret_order[i] = (int)(axis < 0 ? axis + rank : axis);
    }
}

bool tutti__order_moves_nothing(int rank, const int64_t *dims, const int *order)
{
    int last = -1;
    for (int i = 0; i < rank; i++) {
        if (dims[order[i]] == 1)
            continue;
        if (order[i] < last)
            return false;
        last = order[i];
    }
    return true;
}
