/* onnx_describe.c: what is in an ONNX file, for a person. */
#include "bridge/onnx.h"

#include <stdio.h>
#include <string.h>

static void add_value(tutti_text *text, const char *what, const tutti_onnx_value *value)
{
    bool known = value->type.dtype != TUTTI_NO_DTYPE;
    if (value->other) {
        tutti__text_add(text, "%-8s %s: a list or a map\n", what, value->name);
        return;
    }
    tutti__text_add(text, "%-8s %s: %s", what, value->name,
                    known ? tutti_dtype_name(value->type.dtype)
                          : tutti__onnx_element(value->element));
    if (!value->ranked) {
        tutti__text_add(text, "[…]\n");
        return;
    }
    tutti__text_add(text, "[");
    for (int i = 0; i < value->type.rank; i++) {
        tutti__text_add(text, "%s", i > 0 ? "," : "");
        if (value->type.dims[i] >= 0)
            tutti__text_add(text, "%lld", (long long)value->type.dims[i]);
        else
            tutti__text_add(text, "%s",
                            value->names[i] && value->names[i][0] ? value->names[i] : "?");
    }
    tutti__text_add(text, "]\n");
}

static bool is_initializer(const tutti_onnx_graph *graph, const char *name)
{
    for (size_t i = 0; i < graph->initializers.count; i++)
        if (strcmp(graph->initializers.items[i].name, name) == 0)
            return true;
    return false;
}

/* Nodes by operator, those of sub-graphs too. */
static tutti_status count_operators(tutti_map *counts, tutti_arena *arena, size_t count,
                                    const tutti_onnx_node *nodes)
{
    for (size_t i = 0; i < count; i++) {
        const tutti_onnx_node *node = &nodes[i];
        size_t size = strlen(node->domain) + strlen(node->type) + 2;
        char *key = tutti__arena_take(arena, size);
        if (!key)
            return tutti_fail(TUTTI_NO_MEMORY, "no memory to describe a model");
        snprintf(key, size, "%s%s%s", node->domain, node->domain[0] ? "." : "", node->type);
        uintptr_t many = (uintptr_t)tutti__map_get(counts, key);
        TUTTI_TRY(tutti__map_set(counts, key, (void *)(many + 1)));
        for (size_t k = 0; k < node->attrs.count; k++) {
            const tutti_onnx_attr *attr = &node->attrs.items[k];
            if (attr->kind == ONNX_GRAPH && attr->graph)
                TUTTI_TRY(count_operators(counts, arena, attr->graph->nodes.count,
                                          attr->graph->nodes.items));
        }
    }
    return TUTTI_OK;
}

/* "Conv 2, Relu 3, …" */
static tutti_status add_operators(tutti_text *text, const tutti_onnx *onnx)
{
    tutti_map counts = {0};
    tutti_arena arena = {0};
    const tutti_onnx_graph *graph = &onnx->graph;
    tutti_status status = count_operators(&counts, &arena, graph->nodes.count, graph->nodes.items);
    tutti__text_add(text, "nodes    %zu:", graph->nodes.count);
    for (size_t i = 0; i < counts.count; i++)
        tutti__text_add(text, "%s %s %zu", i > 0 ? "," : "", counts.entries[i].key,
                        (size_t)(uintptr_t)counts.entries[i].value);
    tutti__text_add(text, "\n");
    for (size_t i = 0; i < onnx->functions.count; i++)
        tutti__text_add(text, "function %s%s%s: %zu nodes\n", onnx->functions.items[i].domain,
                        onnx->functions.items[i].domain[0] ? "." : "",
                        onnx->functions.items[i].name, onnx->functions.items[i].nodes.count);
    tutti__map_free(&counts);
    tutti__arena_free(&arena);
    return status;
}

/* What import would refuse. */
static void add_needs(tutti_text *text, const tutti_onnx *onnx)
{
    tutti_error kept;
    if (tutti__onnx_check_needs(onnx, "") == TUTTI_OK)
        return;
    tutti__error_capture(TUTTI_UNSUPPORTED, &kept);
    const char *list = strstr(kept.message, "here: ");
    tutti__text_add(text, "missing  %s\n", list ? list + 6 : kept.message);
}

static void add_parameters(tutti_text *text, const tutti_onnx_graph *graph)
{
    char type[TUTTI_TYPE_TEXT];
    int64_t elements = 0, bytes = 0;
    size_t tensors = 0;
    for (size_t i = 0; i < graph->initializers.count; i++) {
        const tutti_onnx_tensor *t = &graph->initializers.items[i];
        tutti_dtype dtype = t->value ? tutti_tensor_dtype(t->value) : TUTTI_NO_DTYPE;
        if (!tutti_dtype_is_float(dtype))
            continue;
        tutti__text_add(text, "weight   %s: %s\n", t->name,
                        tutti_type_text(tutti_tensor_type(t->value), type));
        elements += tutti_tensor_count(t->value);
        bytes += tutti_tensor_count(t->value) * (int64_t)tutti_dtype_size(dtype);
        tensors++;
    }
    tutti__text_add(text, "weights  %zu tensors, %lld parameters, %lld bytes\n", tensors,
                    (long long)elements, (long long)bytes);
}

tutti_status tutti__onnx_describe(const char *path, tutti_text *text)
{
    tutti_onnx *onnx;
    TUTTI_TRY(tutti__onnx_load(path, &onnx));
    const tutti_onnx_graph *graph = &onnx->graph;
    tutti__text_add(text, "ONNX model '%s', opset %lld, IR version %lld", graph->name,
                    (long long)onnx->opset, (long long)onnx->ir_version);
    if (onnx->producer[0])
        tutti__text_add(text, ", by %s %s", onnx->producer, onnx->producer_version);
    tutti__text_add(text, "\n");
    for (size_t i = 0; i < onnx->domains.count; i++)
        tutti__text_add(text, "domain   %s\n", onnx->domains.items[i]);
    for (size_t i = 0; i < graph->inputs.count; i++)
        if (!is_initializer(graph, graph->inputs.items[i].name))
            add_value(text, "input", &graph->inputs.items[i]);
    for (size_t i = 0; i < graph->outputs.count; i++)
        add_value(text, "output", &graph->outputs.items[i]);
    tutti_status status = add_operators(text, onnx);
    add_needs(text, onnx);
    add_parameters(text, graph);
    tutti__onnx_free(onnx);
    if (status == TUTTI_OK && text->failed)
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory to describe '%s'", path);
    return status;
}
