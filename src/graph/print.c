/* print.c: a graph as text, one line a node:
 *
 *     %logits = matmul(%x, %w/read) {transpose_b=true} : f32[?,10] @/cpu:0 ^%init  # train.c:31
 *
 * Attributes that have their default value are left out. Sub-graphs stand indented below their
 * node. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "graph/print.h"
#include "graph/serialize.h"

enum { MAX_ELEMENTS = 8, MAX_LIST = 16, MAX_BYTES = 64, INDENT = 4 };

void tutti__print_bytes(tutti_text *out, const char *data, size_t size)
{
    for (size_t i = 0; i < size && i < MAX_BYTES; i++) {
        unsigned char c = (unsigned char)data[i];
        if (c < ' ' || c > 126)
            tutti__text_add(out, "\\x%02x", c);
        else
            tutti__text_add(out, c == '"' || c == '\\' ? "\\%c" : "%c", c);
    }
    if (size > MAX_BYTES)
        tutti__text_add(out, "…");
}

static void print_element(tutti_text *out, const tutti_tensor *tensor, int64_t index)
{
    tutti_dtype dtype = tutti_tensor_dtype(tensor);
    if (dtype == TUTTI_STRING) {
        tutti_string s = tutti_tensor_get_string(tensor, index);
        tutti__text_add(out, "\"");
        tutti__print_bytes(out, s.data, (size_t)s.size);
        tutti__text_add(out, "\"");
    } else if (dtype == TUTTI_BOOL) {
        tutti__text_add(out, tutti_tensor_get_int(tensor, index) ? "true" : "false");
    } else if (tutti_dtype_is_float(dtype)) {
        tutti__text_add(out, "%.6g", tutti_tensor_get(tensor, index));
    } else {
        tutti__text_add(out, "%" PRId64, tutti_tensor_get_int(tensor, index));
    }
}

/* "f32[2,2](1 2 3 4)", "f32[784,10](0.1 0.2 …)"; a scalar as "f32(1)". */
static void print_tensor(tutti_text *out, const tutti_tensor *tensor)
{
    char text[TUTTI_TYPE_TEXT];
    int64_t count = tutti_tensor_count(tensor);
    tutti__text_add(out, "%s(",
                    tutti_tensor_rank(tensor) > 0 ? tutti_type_text(tutti_tensor_type(tensor), text)
                                                  : tutti_dtype_name(tutti_tensor_dtype(tensor)));
    for (int64_t i = 0; i < count && i < MAX_ELEMENTS; i++) {
        tutti__text_add(out, i > 0 ? " " : "");
        print_element(out, tensor, i);
    }
    tutti__text_add(out, count > MAX_ELEMENTS ? " …)" : ")");
}

static const char *fallback_of(const tutti_op *op, const char *name)
{
    for (const tutti_attr_spec *spec = op->attrs; spec && spec->name; spec++)
        if (strcmp(spec->name, name) == 0 && spec->fallback)
            return spec->fallback;
    return "";
}

/* Bools and data types are integers; how the default is written, or the name, tells them apart. */
static void print_int(tutti_text *out, const tutti_op *op, const tutti_attr *attr)
{
    const char *fallback = fallback_of(op, attr->name);
    bool is_bool = strcmp(fallback, "true") == 0 || strcmp(fallback, "false") == 0;
    bool is_dtype = strcmp(attr->name, "dtype") == 0;
    for (int dtype = 1; !is_dtype && dtype < TUTTI_DTYPE_END; dtype++)
        is_dtype = strcmp(fallback, tutti_dtype_name((tutti_dtype)dtype)) == 0;
    if (is_bool && (attr->value.i == 0 || attr->value.i == 1))
        tutti__text_add(out, attr->value.i ? "true" : "false");
    else if (is_dtype && attr->value.i > 0 && attr->value.i < TUTTI_DTYPE_END)
        tutti__text_add(out, "%s", tutti_dtype_name((tutti_dtype)attr->value.i));
    else
        tutti__text_add(out, "%" PRId64, attr->value.i);
}

static void print_list(tutti_text *out, const tutti_attr *attr)
{
    char text[TUTTI_TYPE_TEXT];
    tutti__text_add(out, "[");
    for (int i = 0; i < attr->count && i < MAX_LIST; i++) {
        tutti__text_add(out, i > 0 ? "," : "");
        if (attr->kind == TUTTI_ATTR_INTS)
            tutti__text_add(out, "%" PRId64, attr->value.ints[i]);
        else if (attr->kind == TUTTI_ATTR_FLOATS)
            tutti__text_add(out, "%.9g", attr->value.floats[i]);
        else
            tutti__text_add(out, "%s", tutti_type_text(&attr->value.types[i], text));
    }
    tutti__text_add(out, attr->count > MAX_LIST ? ",…]" : "]");
}

void tutti__print_attr(tutti_text *out, const tutti_op *op, const tutti_attr *attr)
{
    tutti__text_add(out, "%s", attr->name);
    if (attr->kind == TUTTI_ATTR_GRAPH)
        return;
    tutti__text_add(out, "=");
    switch (attr->kind) {
    case TUTTI_ATTR_INT:
        print_int(out, op, attr);
        break;
    case TUTTI_ATTR_FLOAT:
        tutti__text_add(out, "%.9g", attr->value.f);
        break;
    case TUTTI_ATTR_STRING:
        tutti__text_add(out, "\"");
        tutti__print_bytes(out, attr->value.s, (size_t)attr->count);
        tutti__text_add(out, "\"");
        break;
    case TUTTI_ATTR_TENSOR:
        print_tensor(out, attr->value.tensor);
        break;
    default:
        print_list(out, attr);
    }
}

bool tutti__attr_is_default(const tutti_op *op, const tutti_attr *attr)
{
    tutti_arena arena = {0};
    tutti_attr usual;
    bool same = false;
    for (const tutti_attr_spec *spec = op->attrs; spec && spec->name; spec++)
        if (strcmp(spec->name, attr->name) == 0 && spec->fallback)
            same = tutti__attr_parse(&arena, spec, spec->fallback, &usual) == TUTTI_OK &&
                   tutti__attr_equal(attr, &usual);
    tutti__arena_free(&arena);
    return same;
}

void tutti__print_sharding(tutti_text *out, const tutti_sharding *sharding)
{
    for (int i = 0; sharding && i < sharding->count; i++) {
        const tutti_axis_shard *shard = &sharding->shards[i];
        tutti__text_add(out, "%s%s:", i > 0 ? ", " : " <", shard->axis);
        if (shard->kind == TUTTI_SPLIT)
            tutti__text_add(out, "split(%d)", shard->dimension);
        else
            tutti__text_add(out, shard->kind == TUTTI_PARTIAL ? "partial" : "replicated");
    }
    if (sharding && sharding->count > 0)
        tutti__text_add(out, ">");
}

static void print_edge(tutti_text *out, tutti_edge edge)
{
    tutti__text_add(out, "%%%s", edge.node->name);
    if (edge.node->output_count != 1)
        tutti__text_add(out, ":%u", edge.index);
}

static void print_attrs(tutti_text *out, const tutti_node *node)
{
    const char *before = " {";
    for (int i = 0; i < node->attr_count; i++) {
        if (tutti__attr_is_default(node->op, &node->attrs[i]))
            continue;
        tutti__text_add(out, "%s", before);
        tutti__print_attr(out, node->op, &node->attrs[i]);
        before = ", ";
    }
    tutti__text_add(out, before[0] == ',' ? "}" : "");
}

static void print_node(tutti_text *out, const tutti_node *node)
{
    char text[TUTTI_TYPE_TEXT];
    tutti__text_add(out, "%%%s = %s(", node->name, node->op->name);
    for (int i = 0; i < node->input_count; i++) {
        tutti__text_add(out, i > 0 ? ", " : "");
        print_edge(out, node->inputs[i]);
    }
    tutti__text_add(out, ")");
    print_attrs(out, node);
    for (int i = 0; i < node->output_count; i++) {
        tutti__text_add(out, "%s%s", i > 0 ? ", " : " : ", tutti_type_text(&node->types[i], text));
        tutti__print_sharding(out, node->shardings ? node->shardings[i] : NULL);
    }
    if (node->device[0])
        tutti__text_add(out, " @%s", node->device);
    if (node->colocate)
        tutti__text_add(out, " @%%%s", node->colocate->name);
    for (int i = 0; i < node->control_count; i++)
        tutti__text_add(out, " ^%%%s", node->controls[i]->name);
    if (node->file)
        tutti__text_add(out, "  # %s:%d", node->file, node->line);
    tutti__text_add(out, "\n");
}

static void print_ends(tutti_text *out, const tutti_graph *graph, int indent)
{
    if (graph->results.count > 0)
        tutti__text_add(out, "%*sreturn", indent, "");
    for (size_t i = 0; i < graph->results.count; i++) {
        tutti__text_add(out, i > 0 ? ", " : " ");
        print_edge(out, graph->results.data[i]);
    }
    tutti__text_add(out, graph->results.count > 0 ? "\n" : "");
    if (graph->targets.count > 0)
        tutti__text_add(out, "%*srun", indent, "");
    for (size_t i = 0; i < graph->targets.count; i++)
        tutti__text_add(out, "%s%%%s", i > 0 ? ", " : " ", graph->targets.data[i]->name);
    tutti__text_add(out, graph->targets.count > 0 ? "\n" : "");
}

static void print_graph(tutti_text *out, const tutti_graph *graph, int depth)
{
    int indent = 2 * INDENT * (depth - 1);
    if (depth > TUTTI_GRAPH_MAX_DEPTH) {
        tutti__text_add(out, "%*s…\n", indent, "");
        return;
    }
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        if (node->dead)
            continue;
        tutti__text_add(out, "%*s", indent, "");
        print_node(out, node);
        for (int i = 0; i < node->attr_count; i++) {
            if (node->attrs[i].kind != TUTTI_ATTR_GRAPH)
                continue;
            tutti__text_add(out, "%*s%s:\n", indent + INDENT, "", node->attrs[i].name);
            print_graph(out, node->attrs[i].value.graph, depth + 1);
        }
    }
    print_ends(out, graph, indent);
}

tutti_status tutti__print_finish(tutti_text *out, char **ret_text)
{
    tutti__text_add(out, "%s", "");
    if (out->failed) {
        tutti__text_free(out);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the text of a graph");
    }
    *ret_text = out->data;
    return TUTTI_OK;
}

tutti_status tutti_graph_print(const tutti_graph *graph, char **ret_text)
{
    tutti_text out = {0};
    if (!graph || !ret_text)
        return tutti_fail(TUTTI_INVALID, "tutti_graph_print: the %s is NULL",
                          graph ? "place for the text" : "graph");
    print_graph(&out, graph, 1);
    return tutti__print_finish(&out, ret_text);
}
