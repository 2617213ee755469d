/* onnx_needs.c: what is in a file that is not supported, all of it at once. */
#include <stdio.h>
#include <string.h>

#include "bridge/onnx.h"

typedef struct needs {
    const tutti_onnx *onnx;
    tutti_map operators; /* "domain.Type" → number of nodes */
    tutti_text text;
    int count;
    tutti_status status;
} needs;

static void onnx_needs_add(needs *n, const char *format, ...) TUTTI_PRINTF(2, 3);
static void onnx_needs_add(needs *n, const char *format, ...)
{
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (n->count++ < 50)
        tutti__text_add(&n->text, "%s%s", n->text.size > 0 ? "; " : "", text);
}

static void check_nodes(needs *n, size_t count, const tutti_onnx_node *nodes, int64_t opset,
                        int depth)
{
    for (size_t i = 0; n->status == TUTTI_OK && i < count; i++) {
        const tutti_onnx_node *node = &nodes[i];
        char key[256];
        for (size_t k = 0; depth < ONNX_DEPTH && k < node->attrs.count; k++) {
            const tutti_onnx_attr *attr = &node->attrs.items[k];
            if (attr->kind == ONNX_GRAPH && attr->graph)
                check_nodes(n, attr->graph->nodes.count, attr->graph->nodes.items, opset,
                            depth + 1);
        }
        if (tutti__onnx_function_of(n->onnx, node) || tutti__onnx_reader(node->domain, node->type))
            continue;
        snprintf(key, sizeof key, "%s%s%s", node->domain, node->domain[0] ? "." : "", node->type);
        if (tutti__map_get(&n->operators, key))
            continue;
        n->status = tutti__map_set(&n->operators, key, (void *)node);
        onnx_needs_add(n, "operator %s (opset %lld, node '%s')", key, (long long)opset,
                       node->name[0] || node->outputs.count == 0 ? node->name
                                                                 : node->outputs.items[0]);
    }
}

/* Lists may be outputs: each of their tensors is one. */
static void check_values(needs *n, const char *what, size_t count, const tutti_onnx_value *values)
{
    for (size_t i = 0; i < count; i++) {
        if (values[i].other && strcmp(what, "input") == 0)
            onnx_needs_add(n, "%s '%s', which is no tensor", what, values[i].name);
        else if (!values[i].other && values[i].type.dtype == TUTTI_NO_DTYPE &&
                 values[i].element > 0)
            onnx_needs_add(n, "%s '%s' of %s", what, values[i].name,
                           tutti__onnx_element(values[i].element));
    }
}

tutti_status tutti__onnx_check_needs(const tutti_onnx *onnx, const char *file)
{
    needs n = {.onnx = onnx};
    if (onnx->opset != 0 && (onnx->opset < ONNX_OPSET_OLDEST || onnx->opset > ONNX_OPSET_NEWEST))
        onnx_needs_add(&n, "opset %lld (%d to %d can be read; onnx.version_converter converts)",
                       (long long)onnx->opset, ONNX_OPSET_OLDEST, ONNX_OPSET_NEWEST);
    check_nodes(&n, onnx->graph.nodes.count, onnx->graph.nodes.items, onnx->opset, 0);
    for (size_t i = 0; i < onnx->functions.count; i++)
        check_nodes(&n, onnx->functions.items[i].nodes.count, onnx->functions.items[i].nodes.items,
                    onnx->functions.items[i].opset, 0);
    for (size_t i = 0; i < onnx->needs.count; i++)
        onnx_needs_add(&n, "%s", onnx->needs.items[i]);
    check_values(&n, "input", onnx->graph.inputs.count, onnx->graph.inputs.items);
    check_values(&n, "output", onnx->graph.outputs.count, onnx->graph.outputs.items);
    tutti_status status = n.status;
    if (status == TUTTI_OK && n.count > 0)
        status =
            tutti_fail(TUTTI_UNSUPPORTED, "%s: the model needs what is not supported here: %s%s",
                       file, n.text.data ? n.text.data : "", n.count > 50 ? "; …" : "");
    tutti__text_free(&n.text);
    tutti__map_free(&n.operators);
    return status;
}
