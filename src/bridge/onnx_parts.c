/* onnx_parts.c: the file's nodes as parts of the model: found, frozen and cut at by their names. */
#include "bridge/onnx.h"

static bool is_part(const tutti_onnx_import *m)
{
    return m->model && m == m->root;
}

/* A node without a name has that of its first output. */
static const char *name_of(const tutti_onnx_node *node)
{
    if (node->name[0] || node->outputs.count == 0)
        return node->name;
    return node->outputs.items[0];
}

size_t tutti__onnx_part_begin(tutti_onnx_import *m, const tutti_onnx_node *node)
{
    char name[256];
    if (!is_part(m))
        return 0;
    tutti__onnx_legal_name(name_of(node), name);
    tutti_name_push(m->graph, name);
    return m->graph->nodes.count;
}

static tutti_status add_values(tutti_onnx_import *m, const tutti_onnx_node *node, uint32_t part)
{
    for (size_t i = 0; i < node->outputs.count; i++) {
        const char *name = node->outputs.items[i];
        const tutti_onnx_known *known = name[0] ? tutti__map_get(&m->known, name) : NULL;
        if (!known || known->sequence)
            continue;
        tutti_sym sym = known->plain.node ? known->plain : known->last;
        if (sym.node && !tutti_sym_type(sym).handle)
            TUTTI_TRY(tutti__value_add(m->model, name, sym, !known->plain.node, part));
    }
    return TUTTI_OK;
}

void tutti__onnx_part_end(tutti_onnx_import *m, const tutti_onnx_node *node, size_t first_node)
{
    uint32_t part;
    if (!is_part(m))
        return;
    tutti_name_pop(m->graph);
    if (m->status != TUTTI_OK || tutti_graph_check(m->graph) != TUTTI_OK)
        return;
    const char *name = name_of(node);
    tutti_status status = tutti__part_add(m->model, name[0] ? name : node->type, node->type, &part);
    if (status == TUTTI_OK)
        status = tutti__part_take(m->model, part, first_node);
    if (status == TUTTI_OK)
        status = add_values(m, node, part);
    if (status != TUTTI_OK)
        tutti__onnx_read_fail(m, status, "%s", tutti_error_message());
}
