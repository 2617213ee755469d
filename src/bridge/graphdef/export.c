/* export.c: a graph as a GraphDef, for TensorBoard. */
#include <stdio.h>
#include <string.h>

#include "base/world.h"
#include "bridge/graphdef/graphdef.h"
#include "io/events.h"

static size_t open_attr(tutti_text *text, const char *name, size_t *ret_value)
{
    size_t mark = tutti__proto_open(text, 5);
    tutti__proto_put_string(text, 1, name);
    *ret_value = tutti__proto_open(text, 2);
    return mark;
}

static void close_attr(tutti_text *text, size_t mark, size_t value)
{
    tutti__proto_close(text, value);
    tutti__proto_close(text, mark);
}

static void put_shape(tutti_text *text, uint32_t number, const tutti_type *type)
{
    size_t shape = tutti__proto_open(text, number);
    for (int i = 0; i < type->rank; i++) {
        size_t dim = tutti__proto_open(text, 2);
        tutti__proto_put_int(text, 1, type->dims[i]);
        tutti__proto_close(text, dim);
    }
    tutti__proto_close(text, shape);
}

/* _output_shapes is what TensorBoard writes at the edges. */
static void put_types(tutti_text *text, const tutti_node *node)
{
    size_t value, mark;
    if (node->output_count == 0)
        return;
    mark = open_attr(text, "T", &value);
    tutti__proto_put_int(text, 6, tutti__graphdef_dtype(node->types[0].dtype));
    close_attr(text, mark, value);
    mark = open_attr(text, "_output_shapes", &value);
    size_t list = tutti__proto_open(text, 1);
    for (int i = 0; i < node->output_count; i++)
        put_shape(text, 7, &node->types[i]);
    tutti__proto_close(text, list);
    close_attr(text, mark, value);
}

static void put_attr(tutti_text *text, const tutti_attr *attr)
{
    size_t value, mark;
    if (attr->kind == TUTTI_ATTR_TENSOR || attr->kind == TUTTI_ATTR_GRAPH ||
        attr->kind == TUTTI_ATTR_TYPES || attr->kind == TUTTI_ATTR_NONE)
        return;
    mark = open_attr(text, attr->name, &value);
    if (attr->kind == TUTTI_ATTR_INT)
        tutti__proto_put_int(text, 3, attr->value.i);
    if (attr->kind == TUTTI_ATTR_FLOAT)
        tutti__proto_put_float(text, 4, (float)attr->value.f);
    if (attr->kind == TUTTI_ATTR_STRING)
        tutti__proto_put_bytes(text, 2, attr->value.s,
                               attr->count < 0 ? strlen(attr->value.s) : (size_t)attr->count);
    if (attr->kind == TUTTI_ATTR_INTS || attr->kind == TUTTI_ATTR_FLOATS) {
        size_t list = tutti__proto_open(text, 1);
        for (int i = 0; i < attr->count; i++)
            if (attr->kind == TUTTI_ATTR_INTS)
                tutti__proto_put_int(text, 3, attr->value.ints[i]);
            else
                tutti__proto_put_float(text, 4, (float)attr->value.floats[i]);
        tutti__proto_close(text, list);
    }
    close_attr(text, mark, value);
}

/* NodeDef: name 1, op 2, input 3, device 4, attr 5. */
static void put_node(tutti_text *text, const tutti_node *node)
{
    char name[600];
    size_t mark = tutti__proto_open(text, 1);
    tutti__proto_put_string(text, 1, node->name);
    tutti__proto_put_string(text, 2, node->op->name);
    for (int i = 0; i < node->input_count; i++) {
        tutti_edge edge = node->inputs[i];
        if (edge.index == 0)
            snprintf(name, sizeof name, "%s", edge.node->name);
        else
            snprintf(name, sizeof name, "%s:%u", edge.node->name, edge.index);
        tutti__proto_put_string(text, 3, name);
    }
    for (int i = 0; i < node->control_count; i++) {
        snprintf(name, sizeof name, "^%s", node->controls[i]->name);
        tutti__proto_put_string(text, 3, name);
    }
    if (node->device && node->device[0])
        tutti__proto_put_string(text, 4, node->device);
    put_types(text, node);
    for (int i = 0; i < node->attr_count; i++)
        put_attr(text, &node->attrs[i]);
    tutti__proto_close(text, mark);
}

tutti_status tutti__graphdef_encode(const tutti_graph *graph, tutti_text *text)
{
    for (size_t i = 0; i < graph->nodes.count; i++)
        if (!graph->nodes.data[i]->dead)
            put_node(text, graph->nodes.data[i]);
    size_t versions = tutti__proto_open(text, 4);
    tutti__proto_put_int(text, 1, 1882);
    tutti__proto_close(text, versions);
    return text->failed ? tutti_fail(TUTTI_NO_MEMORY, "no memory to write a GraphDef") : TUTTI_OK;
}

tutti_status tutti_export_graphdef(const tutti_graph *graph, const char *path)
{
    const tutti_world *world = tutti__world();
    tutti_text text = {0};
    if (!graph || !path)
        return tutti_fail(TUTTI_INVALID, "tutti_export_graphdef: no graph or path");
    tutti_status status = tutti__graphdef_encode(graph, &text);
    if (status == TUTTI_OK)
        status = world->write_file(world->self, path, text.data, text.size);
    tutti__text_free(&text);
    return status;
}

tutti_status tutti_log_graph(const tutti_graph *graph, const char *folder)
{
    tutti_events events = {0};
    tutti_text text = {0};
    if (!graph || !folder)
        return tutti_fail(TUTTI_INVALID, "tutti_log_graph: no graph or folder");
    tutti_status status = tutti__graphdef_encode(graph, &text);
    if (status == TUTTI_OK)
        status = tutti__events_create(folder, NULL, &events);
    if (status == TUTTI_OK) {
        status = tutti__events_graph(&events, text.data, text.size);
        tutti_status closed = tutti__events_close(&events);
        status = status == TUTTI_OK ? closed : status;
    }
    tutti__text_free(&text);
    return status;
}
