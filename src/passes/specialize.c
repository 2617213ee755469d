/* specialize.c: shapes become known. Every node's rule runs again on the types of its inputs; small
 * values that are known already (constants, shapes) are folded on the way, because later rules may
 * need them. Sub-graphs of control operators are specialised for the types they are called with. */
#include <stdlib.h>
#include <string.h>

#include "ops/reference.h"
#include "passes/rewrite.h"

#define SMALL 64 /* elements: larger constants are left to the folding pass */

static tutti_tensor *constant_value(const tutti_node *node)
{
    return tutti__is(node, "constant")
               ? tutti_attr_find(node->attrs, node->attr_count, "value")->value.tensor
               : NULL;
}

static tutti_status where(const tutti_node *node, tutti_status status)
{
    if (node->file)
        return tutti__error_prefix(status, "%s:%d", node->file, node->line);
    return status;
}

static tutti_node *gate_of(const tutti_node *node)
{
    return node->scratch;
}

/* Who needed the inputs only for what they say goes on to wait for what they wait for. */
static tutti_status wait_as_inputs(tutti_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (gate_of(node->inputs[i].node))
            TUTTI_TRY(tutti__node_after(node, gate_of(node->inputs[i].node)));
    return TUTTI_OK;
}

/* The node turns into a constant where it stands; the tensor is consumed. */
static tutti_status become_constant(tutti_node *node, tutti_tensor *value)
{
    tutti_graph *graph = node->graph;
    tutti_attr *attr = tutti__arena_take(&graph->arena, sizeof *attr);
    if (!attr || !TUTTI_VEC_PUSH(&graph->tensors, value)) {
        tutti_tensor_release(value);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a constant");
    }
    TUTTI_TRY(wait_as_inputs(node));
    const tutti_op *op = tutti_op_find("constant");
    *attr = TUTTI_TENSOR_ATTR(op->attrs[0].name, value);
    node->op = op;
    node->attrs = attr;
    node->attr_count = 1;
    node->input_count = 0;
    node->types[0] = *tutti_tensor_type(value);
    return TUTTI_OK;
}

/* How many elements axes `axes` (none: all) of a type have. */
static int64_t size_along(const tutti_node *node, const tutti_type *type)
{
    const int64_t *axes;
    int count = tutti_attr_ints(node->attrs, node->attr_count, "axes", &axes);
    tutti_type chosen = {.dtype = type->dtype};
    if (count == 0)
        return tutti_type_count(type);
    for (int i = 0; i < count; i++)
        chosen.dims[chosen.rank++] = type->dims[axes[i] < 0 ? axes[i] + type->rank : axes[i]];
    return tutti_type_count(&chosen);
}

static tutti_status fold_shape(tutti_node *node, bool *ret_done)
{
    const tutti_type *type = tutti__edge_type(node->inputs[0]);
    bool shape = tutti__is(node, "shape");
    tutti_tensor *value;
    *ret_done = false;
    if ((!shape && !tutti__is(node, "size")) || node->control_count || !tutti_type_is_static(type))
        return TUTTI_OK;
    TUTTI_TRY(tutti_tensor_create(node->types[0].dtype, node->types[0].rank, node->types[0].dims,
                                  &value));
    for (int i = 0; shape && i < type->rank; i++)
        tutti_tensor_set_int(value, i, type->dims[i]);
    if (!shape)
        tutti_tensor_set_int(value, 0, size_along(node, type));
    *ret_done = true;
    return become_constant(node, value);
}

static bool foldable(const tutti_node *node)
{
    uint32_t never = TUTTI_OP_STATEFUL | TUTTI_OP_UPDATES | TUTTI_OP_RANDOM | TUTTI_OP_COLLECTIVE |
                     TUTTI_OP_CONTROL | TUTTI_OP_HANDLE | TUTTI_OP_TAKES_HANDLE |
                     TUTTI_OP_BLOCKING | TUTTI_OP_FALLIBLE | TUTTI_OP_HOST;
    if ((node->op->flags & never) || node->input_count == 0 || node->output_count != 1 ||
        node->control_count || !tutti_type_is_static(&node->types[0]) ||
        tutti_type_count(&node->types[0]) > SMALL)
        return false;
    for (int i = 0; i < node->input_count; i++)
        if (!constant_value(node->inputs[i].node) ||
            tutti_type_count(tutti__edge_type(node->inputs[i])) > SMALL)
            return false;
    return true;
}

static tutti_status specialize_fold(tutti_node *node)
{
    tutti_tensor *inputs[16], *output;
    if (node->input_count > 16)
        return TUTTI_OK;
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = constant_value(node->inputs[i].node);
    if (tutti__reference_node(node, inputs, &output) != TUTTI_OK)
        return TUTTI_OK; /* it will fail, with its message, when it runs */
    return become_constant(node, output);
}

static tutti_status specialize_graph(tutti_graph *graph);

/* Parameters of a sub-graph take the types of the node's inputs from `first` on. */
static tutti_status specialize_body(tutti_node *node, tutti_attr *attr, int first)
{
    tutti_graph *body;
    TUTTI_TRY(tutti__graph_copy(attr->value.graph, &body, NULL));
    for (size_t i = 0; i < body->nodes.count; i++) {
        tutti_node *inner = body->nodes.data[i];
        int64_t index = tutti__is(inner, "parameter") ? tutti__int(inner, "index") + first : -1;
        if (index >= first && index < node->input_count)
            inner->types[0] = *tutti__edge_type(node->inputs[index]);
    }
    tutti_status status = specialize_graph(body);
    if (status == TUTTI_OK)
        status = tutti__graph_prune(body);
    if (status == TUTTI_OK && !TUTTI_VEC_PUSH(&node->graph->graphs, body))
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for a sub-graph");
    if (status != TUTTI_OK) {
        tutti_graph_destroy(body);
        return status;
    }
    attr->value.graph = body;
    return TUTTI_OK;
}

static tutti_status specialize_bodies(tutti_node *node)
{
    for (int i = 0; i < node->attr_count; i++)
        if (node->attrs[i].kind == TUTTI_ATTR_GRAPH)
            TUTTI_TRY(specialize_body(node, &node->attrs[i], tutti__is(node, "cond") ? 1 : 0));
    return TUTTI_OK;
}

/* Whether a loop's variables have after a round the shapes that its body was made for: a dimension
 * that the body leaves open may be another one in the next round. */
static bool settles(const tutti_node *node)
{
    if (!tutti__is(node, "while") && !tutti__is(node, "while_history"))
        return true;
    const tutti_graph *body =
        tutti_attr_find(node->attrs, node->attr_count, "body_graph")->value.graph;
    for (int i = 0; i < (int)tutti__int(node, "loop_count"); i++) {
        const tutti_type *before = tutti__edge_type(node->inputs[i]);
        const tutti_type *after = tutti__edge_type(body->results.data[i]);
        for (int axis = 0; axis < after->rank; axis++)
            if (after->dims[axis] == TUTTI_ANY && before->dims[axis] != TUTTI_ANY)
                return false;
    }
    return true;
}

/* A loop whose variables change their shapes from round to round keeps its general bodies: its
 * results then have unknown dimensions. */
static tutti_status specialize_control(tutti_node *node)
{
    tutti_attr *general = (void *)tutti__arena_bytes(
        &node->graph->arena, node->attrs, (size_t)node->attr_count * sizeof *node->attrs);
    if (!general)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a sub-graph");
    if (specialize_bodies(node) == TUTTI_OK &&
        tutti__node_infer(node, NULL, node->types) == TUTTI_OK && settles(node))
        return TUTTI_OK;
    node->attrs = general;
    return tutti__node_infer(node, NULL, node->types);
}

static tutti_status specialize_node(tutti_node *node)
{
    tutti_tensor *few[16] = {0}, **values = node->input_count <= 16 ? few : NULL;
    bool done = false;
    for (int i = 0; values && i < node->input_count; i++)
        values[i] = constant_value(node->inputs[i].node);
    if (node->op->flags & TUTTI_OP_CONTROL)
        return specialize_control(node);
    TUTTI_TRY(tutti__node_infer(node, values, node->types));
    if (node->input_count == 1)
        TUTTI_TRY(fold_shape(node, &done));
    return !done && foldable(node) ? specialize_fold(node) : TUTTI_OK;
}

static tutti_status specialize(tutti_graph *graph)
{
    for (size_t i = 0; i < graph->nodes.count; i++) {
        tutti_node *node = graph->nodes.data[i];
        node->scratch = tutti__gate(node, gate_of);
        if (tutti__is(node, "parameter") || tutti__is(node, "constant") ||
            (node->op->flags & TUTTI_OP_HANDLE))
            continue;
        if (tutti__is(node, "placeholder"))
            return where(
                node,
                tutti_fail(TUTTI_INVALID,
                           "placeholder '%s' must be fed: give it a value in the run's feeds; "
                           "a tape takes values by tutti_eager_feed",
                           node->name));
        tutti_status status = specialize_node(node);
        if (status != TUTTI_OK)
            return where(node, status);
    }
    return TUTTI_OK;
}

static tutti_status specialize_graph(tutti_graph *graph)
{
    tutti_status status = specialize(graph);
    for (size_t i = 0; i < graph->nodes.count; i++)
        graph->nodes.data[i]->scratch = NULL;
    return status;
}

/* What has an effect and was only asked for its shape runs all the same. */
static tutti_status keep_effects(tutti_graph *graph, const bool *before, bool *needed)
{
    tutti__mark_needed(graph, needed);
    for (size_t n = graph->nodes.count; n-- > 0;) {
        tutti_node *node = graph->nodes.data[n];
        if (needed[n] || !before[n] || !tutti__has_effect(node))
            continue;
        if (!TUTTI_VEC_PUSH(&graph->targets, node))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a target");
        tutti__mark_needed(graph, needed);
    }
    return TUTTI_OK;
}

tutti_status tutti__specialize(tutti_graph *graph)
{
    bool *before = calloc(2 * graph->nodes.count + 1, sizeof *before);
    if (!before)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to specialise a graph");
    tutti__mark_needed(graph, before);
    tutti_status status = specialize_graph(graph);
    if (status == TUTTI_OK)
        status = keep_effects(graph, before, before + graph->nodes.count);
    free(before);
    return status == TUTTI_OK ? tutti__graph_prune(graph) : status;
}
