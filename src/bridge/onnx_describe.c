/* onnx_describe.c: what is in an ONNX file, for a person, or for programs as lines of JSON. */
#include "bridge/onnx.h"

#include <stdio.h>
#include <string.h>

#include "io/json.h"

/* Where it goes: lines of text, or of objects. */
typedef struct description {
    tutti_text *text;
    bool json;
} description;

static tutti_json_writer begin_object(const description *d)
{
    tutti_json_writer w = {.text = d->text};
    tutti__json_begin(&w, '{');
    return w;
}

static void put_string(tutti_json_writer *w, const char *key, const char *value)
{
    tutti__json_key(w, key);
    tutti__json_put_string(w, value);
}

static void put_int(tutti_json_writer *w, const char *key, int64_t value)
{
    tutti__json_key(w, key);
    tutti__json_put_int(w, value);
}

static void end_object(const description *d, tutti_json_writer *w)
{
    tutti__json_end(w);
    tutti__text_add(d->text, "\n");
}

/* "input    x: f32[batch,4]" */
static void add_typed(const description *d, const char *what, const char *name, const char *type)
{
    if (!d->json) {
        tutti__text_add(d->text, "%-8s %s: %s\n", what, name, type);
        return;
    }
    tutti_json_writer w = begin_object(d);
    put_string(&w, what, name);
    put_string(&w, "type", type);
    end_object(d, &w);
}

/* "f32[batch,4]" */
static void value_type(const tutti_onnx_value *value, tutti_text *ret)
{
    bool known = value->type.dtype != TUTTI_NO_DTYPE;
    if (value->other) {
        tutti__text_add(ret, "a list or a map");
        return;
    }
    tutti__text_add(ret, "%s[",
                    known ? tutti_dtype_name(value->type.dtype)
                          : tutti__onnx_element(value->element));
    for (int i = 0; value->ranked && i < value->type.rank; i++) {
        tutti__text_add(ret, "%s", i > 0 ? "," : "");
        if (value->type.dims[i] >= 0)
            tutti__text_add(ret, "%lld", (long long)value->type.dims[i]);
        else
            tutti__text_add(ret, "%s",
                            value->names[i] && value->names[i][0] ? value->names[i] : "?");
    }
    tutti__text_add(ret, value->ranked ? "]" : "…]");
}

static void add_value(const description *d, const char *what, const tutti_onnx_value *value)
{
    tutti_text type = {0};
    value_type(value, &type);
    d->text->failed = d->text->failed || type.failed;
    add_typed(d, what, value->name, type.data ? type.data : "");
    tutti__text_free(&type);
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
static void add_counts(const description *d, size_t nodes, const tutti_map *counts)
{
    if (!d->json) {
        tutti__text_add(d->text, "nodes    %zu:", nodes);
        for (size_t i = 0; i < counts->count; i++)
            tutti__text_add(d->text, "%s %s %zu", i > 0 ? "," : "", counts->entries[i].key,
                            (size_t)(uintptr_t)counts->entries[i].value);
        tutti__text_add(d->text, "\n");
        return;
    }
    tutti_json_writer w = begin_object(d);
    put_int(&w, "nodes", (int64_t)nodes);
    tutti__json_key(&w, "operators");
    tutti__json_begin(&w, '{');
    for (size_t i = 0; i < counts->count; i++)
        put_int(&w, counts->entries[i].key, (int64_t)(uintptr_t)counts->entries[i].value);
    tutti__json_end(&w);
    end_object(d, &w);
}

static void add_function(const description *d, const tutti_onnx_function *function)
{
    if (!d->json) {
        tutti__text_add(d->text, "function %s%s%s: %zu nodes\n", function->domain,
                        function->domain[0] ? "." : "", function->name, function->nodes.count);
        return;
    }
    tutti_json_writer w = begin_object(d);
    put_string(&w, "function", function->name);
    put_string(&w, "domain", function->domain);
    put_int(&w, "nodes", (int64_t)function->nodes.count);
    end_object(d, &w);
}

static tutti_status add_operators(const description *d, const tutti_onnx *onnx)
{
    tutti_map counts = {0};
    tutti_arena arena = {0};
    const tutti_onnx_graph *graph = &onnx->graph;
    tutti_status status = count_operators(&counts, &arena, graph->nodes.count, graph->nodes.items);
    add_counts(d, graph->nodes.count, &counts);
    for (size_t i = 0; i < onnx->functions.count; i++)
        add_function(d, &onnx->functions.items[i]);
    tutti__map_free(&counts);
    tutti__arena_free(&arena);
    return status;
}

/* What import would refuse. */
static void add_needs(const description *d, const tutti_onnx *onnx)
{
    tutti_error kept;
    if (tutti__onnx_check_needs(onnx, "") == TUTTI_OK)
        return;
    tutti__error_capture(TUTTI_UNSUPPORTED, &kept);
    const char *list = strstr(kept.message, "here: ");
    list = list ? list + 6 : kept.message;
    if (!d->json) {
        tutti__text_add(d->text, "missing  %s\n", list);
        return;
    }
    tutti_json_writer w = begin_object(d);
    put_string(&w, "missing", list);
    end_object(d, &w);
}

static void add_parameters(const description *d, const tutti_onnx_graph *graph)
{
    char type[TUTTI_TYPE_TEXT];
    int64_t elements = 0, bytes = 0;
    size_t tensors = 0;
    for (size_t i = 0; i < graph->initializers.count; i++) {
        const tutti_onnx_tensor *t = &graph->initializers.items[i];
        tutti_dtype dtype = t->value ? tutti_tensor_dtype(t->value) : TUTTI_NO_DTYPE;
        if (!tutti_dtype_is_float(dtype))
            continue;
        add_typed(d, "weight", t->name, tutti_type_text(tutti_tensor_type(t->value), type));
        elements += tutti_tensor_count(t->value);
        bytes += tutti_tensor_count(t->value) * (int64_t)tutti_dtype_size(dtype);
        tensors++;
    }
    if (!d->json) {
        tutti__text_add(d->text, "weights  %zu tensors, %lld parameters, %lld bytes\n", tensors,
                        (long long)elements, (long long)bytes);
        return;
    }
    tutti_json_writer w = begin_object(d);
    put_int(&w, "weights", (int64_t)tensors);
    put_int(&w, "parameters", elements);
    put_int(&w, "bytes", bytes);
    end_object(d, &w);
}

static void add_model(const description *d, const tutti_onnx *onnx)
{
    if (d->json) {
        tutti_json_writer w = begin_object(d);
        put_string(&w, "model", onnx->graph.name);
        put_int(&w, "opset", onnx->opset);
        put_int(&w, "ir_version", onnx->ir_version);
        put_string(&w, "producer", onnx->producer);
        put_string(&w, "producer_version", onnx->producer_version);
        end_object(d, &w);
    } else {
        tutti__text_add(d->text, "ONNX model '%s', opset %lld, IR version %lld", onnx->graph.name,
                        (long long)onnx->opset, (long long)onnx->ir_version);
        if (onnx->producer[0])
            tutti__text_add(d->text, ", by %s %s", onnx->producer, onnx->producer_version);
        tutti__text_add(d->text, "\n");
    }
    for (size_t i = 0; i < onnx->domains.count; i++) {
        if (!d->json) {
            tutti__text_add(d->text, "domain   %s\n", onnx->domains.items[i]);
            continue;
        }
        tutti_json_writer w = begin_object(d);
        put_string(&w, "domain", onnx->domains.items[i]);
        end_object(d, &w);
    }
}

tutti_status tutti__onnx_describe(const char *path, bool json, tutti_text *text)
{
    tutti_onnx *onnx;
    description d = {text, json};
    TUTTI_TRY(tutti__onnx_load(path, &onnx));
    const tutti_onnx_graph *graph = &onnx->graph;
    add_model(&d, onnx);
    for (size_t i = 0; i < graph->inputs.count; i++)
        if (!is_initializer(graph, graph->inputs.items[i].name))
            add_value(&d, "input", &graph->inputs.items[i]);
    for (size_t i = 0; i < graph->outputs.count; i++)
        add_value(&d, "output", &graph->outputs.items[i]);
    tutti_status status = add_operators(&d, onnx);
    add_needs(&d, onnx);
    add_parameters(&d, graph);
    tutti__onnx_free(onnx);
    if (status == TUTTI_OK && text->failed)
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory to describe '%s'", path);
    return status;
}
