/* body.c: reading a single operator or a fused body. */
#include "device/cpu/tile/body.h"

#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

static tutti_status body_refuse(void)
{
    return tutti_fail(TUTTI_UNSUPPORTED, "not element-wise work for tiles");
}

static const tutti_graph *body_graph(const tutti_infer *node)
{
    for (int i = 0; i < node->attr_count; i++)
        if (node->attrs[i].kind == TUTTI_ATTR_GRAPH)
            return node->attrs[i].value.graph;
    return NULL;
}

/* One block of memory: the body, its values, constants and results. */
static tutti_tile_body *body_allocate(size_t values, size_t sources, size_t outputs)
{
    size_t bytes = sizeof(tutti_tile_body) + values * sizeof(tutti_body_value) +
                   sources * sizeof(void *) + outputs * sizeof(int);
    tutti_tile_body *body = calloc(1, bytes);
    if (body == NULL)
        return NULL;
    body->values = (tutti_body_value *)(body + 1);
    body->constants = (const void **)(body->values + values);
    body->result_values = (int *)(body->constants + sources);
    return body;
}

static void add_source(tutti_tile_body *body, const tutti_type *type, const void *constant)
{
    int index = body->source_count++;
    body->constants[index] = constant;
    body->values[body->value_count++] =
        (tutti_body_value){.source = index, .output = -1, .type = *type};
}

static tutti_status read_single(const tutti_infer *node, tutti_tile_body **ret_body)
{
    if (node->input_count > TUTTI_TILE_INPUTS || node->output_count != 1)
        return body_refuse();
    tutti_tile_body *body =
        body_allocate((size_t)node->input_count + 1, (size_t)node->input_count, 1);
    if (body == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of %s", node->op->name);
    tutti_body_value last = {.op = node->op,
                             .attrs = node->attrs,
                             .attr_count = node->attr_count,
                             .source = -1,
                             .output = 0,
                             .type = node->outputs[0]};
    for (int i = 0; i < node->input_count; i++) {
        add_source(body, &node->inputs[i], NULL);
        last.inputs[i] = i;
    }
    body->result_values[0] = body->value_count;
    body->values[body->value_count++] = last;
    body->output_count = 1;
    body->full = node->outputs[0];
    *ret_body = body;
    return TUTTI_OK;
}

/* What a reduction or an operator over rows works along; false when it is neither. */
static bool read_kind(const tutti_node *node, tutti_body_value *value)
{
    static const char *const reductions[] = {"sum", "mean", "max", "min", NULL};
    static const char *const over_rows[] = {"softmax", "log_softmax", "layer_norm", "rms_norm",
                                            NULL};
    const int64_t *axes;
    value->kept = *tutti__edge_type(node->inputs[0]);
    int rank = value->kept.rank;
    for (int i = 0; reductions[i] != NULL; i++) {
        if (!tutti__is(node, reductions[i]))
            continue;
        int count = tutti_attr_ints(node->attrs, node->attr_count, "axes", &axes);
        for (int a = 0; a < (count > 0 ? count : rank); a++)
            value->kept.dims[count == 0 ? a : axes[a] < 0 ? axes[a] + rank : axes[a]] = 1;
        value->kind = TUTTI_BODY_REDUCES;
        return true;
    }
    for (int i = 0; over_rows[i] != NULL; i++) {
        if (!tutti__is(node, over_rows[i]) || rank < 1)
            continue;
        const tutti_attr *axis = tutti_attr_find(node->attrs, node->attr_count, "axis");
        if (axis != NULL && axis->value.i != -1 && axis->value.i != rank - 1)
            return false;
        value->kept.dims[rank - 1] = 1;
        value->kind = TUTTI_BODY_ROWS;
        return true;
    }
    return false;
}

/* Parameters come first, in the order of their index, whether the body uses them or not. */
static tutti_status read_nodes(const tutti_graph *graph, tutti_tile_body *body, int *value_of)
{
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const tutti_node *node = graph->nodes.data[i];
        if (node->dead)
            continue;
        if (tutti__is(node, "parameter")) {
            value_of[i] = (int)tutti__int(node, "index");
            continue;
        }
        if (tutti__is(node, "constant")) {
            const tutti_attr *value = tutti_attr_find(node->attrs, node->attr_count, "value");
            value_of[i] = body->value_count;
            add_source(body, &node->types[0], tutti_tensor_data(value->value.tensor));
        }
    }
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const tutti_node *node = graph->nodes.data[i];
        if (node->dead || tutti__is(node, "parameter") || tutti__is(node, "constant"))
            continue;
        if (node->input_count > TUTTI_TILE_INPUTS || node->output_count != 1)
            return body_refuse();
        tutti_body_value value = {.op = node->op,
                                  .attrs = node->attrs,
                                  .source = -1,
                                  .output = -1,
                                  .attr_count = node->attr_count,
                                  .type = node->types[0]};
        if (!(node->op->flags & TUTTI_OP_ELEMENTWISE)) {
            if (!read_kind(node, &value))
                return body_refuse();
            if (body->row_count++ == 0)
                body->full = *tutti__edge_type(node->inputs[0]);
        }
        for (int k = 0; k < node->input_count; k++)
            value.inputs[k] = value_of[node->inputs[k].node->id];
        value_of[i] = body->value_count;
        body->values[body->value_count++] = value;
    }
    return TUTTI_OK;
}

static tutti_status read_results(const tutti_graph *graph, const tutti_infer *node,
                                 tutti_tile_body *body, const int *value_of)
{
    if ((int)graph->results.count != node->output_count)
        return body_refuse();
    body->output_count = node->output_count;
    for (int i = 0; i < node->output_count; i++) {
        int value = value_of[graph->results.data[i].node->id];
        body->result_values[i] = value;
        if (body->values[value].output < 0)
            body->values[value].output = i;
    }
    return TUTTI_OK;
}

static tutti_status read_graph(const tutti_infer *node, const tutti_graph *graph,
                               tutti_tile_body **ret_body)
{
    size_t most = graph->nodes.count + (size_t)node->input_count;
    tutti_tile_body *body = body_allocate(most, most, (size_t)node->output_count);
    int *value_of = calloc(graph->nodes.count + 1, sizeof *value_of);
    tutti_status status = TUTTI_OK;
    if (body == NULL || value_of == NULL)
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of '%s'", node->name);
    if (status == TUTTI_OK) {
        for (int i = 0; i < node->input_count; i++)
            add_source(body, &node->inputs[i], NULL);
        body->full = node->outputs[0];
        status = read_nodes(graph, body, value_of);
    }
    if (status == TUTTI_OK)
        status = read_results(graph, node, body, value_of);
    free(value_of);
    if (status != TUTTI_OK) {
        free(body);
        return status;
    }
    *ret_body = body;
    return TUTTI_OK;
}

tutti_status tutti__body_read(const tutti_kernel_query *query, tutti_tile_body **ret_body)
{
    const tutti_infer *node = &query->node;
    const tutti_graph *graph = body_graph(node);
    if (graph == NULL)
        return node->op->flags & TUTTI_OP_ELEMENTWISE ? read_single(node, ret_body) : body_refuse();
    return read_graph(node, graph, ret_body);
}
