/* part.c: parts of a blueprint: nodes that belong together, because they were one node of a file.
 * A part has a name, and can be frozen, as a layer can; it is never called. */
#include <stdlib.h>
#include <string.h>

#include "nn/model/model.h"
#include "ops/build.h"

static tutti_sym refuse_call(tutti_layer_call *call)
{
    return tutti_layer_fail(call, "is a node of an imported model, which cannot be called again; "
                                  "tutti_cut makes a model that ends at it");
}

static tutti_status no_memory(void)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory for a model");
}

/* The kind's name is the file's; the kind lives as long as its one layer. */
static tutti_status part_fill(tutti_layer *layer, const char *name, const char *kind)
{
    tutti_layer_kind *own = tutti__arena_take(&layer->arena, sizeof *own);
    char *text = tutti__arena_string(&layer->arena, kind);
    layer->name = tutti__arena_string(&layer->arena, name);
    layer->settings = tutti__arena_take(&layer->arena, sizeof(tutti_layer_settings));
    if (!own || !text || !layer->name || !layer->settings)
        return no_memory();
    *own = (tutti_layer_kind){.struct_size = sizeof *own, .name = text, .call = refuse_call};
    layer->kind = own;
    return TUTTI_OK;
}

bool tutti__is_part(const tutti_layer *layer)
{
    return layer->kind && layer->kind->call == refuse_call;
}

/* name, then name_1, name_2, … */
static tutti_status name_part(tutti_model *model, tutti_layer *layer, const char *name)
{
    for (uintptr_t number = (uintptr_t)tutti__map_get(&model->taken, name) + 1;
         tutti__map_get(&model->layer_names, layer->name); number++) {
        TUTTI_TRY(tutti__map_set(&model->taken, name, (void *)number));
        layer->name = tutti__arena_format(&layer->arena, "%s_%u", name, (unsigned)number);
        if (!layer->name)
            return no_memory();
    }
    return tutti__map_set(&model->layer_names, layer->name, layer);
}

tutti_status tutti__part_add(tutti_model *model, const char *name, const char *kind, uint32_t *ret)
{
    tutti_layer *layer = calloc(1, sizeof *layer);
    if (!layer)
        return no_memory();
    tutti_status status = part_fill(layer, name, kind);
    if (status == TUTTI_OK && !TUTTI_VEC_RESERVE_ONE(&model->parts))
        status = no_memory();
    if (status == TUTTI_OK)
        status = name_part(model, layer, name);
    if (status != TUTTI_OK) {
        tutti_layer_release(layer);
        return status;
    }
    layer->owner = model;
    *ret = (uint32_t)model->parts.count;
    model->parts.data[model->parts.count++] = layer;
    return TUTTI_OK;
}

tutti_status tutti__part_take(tutti_model *model, uint32_t part, size_t first_node)
{
    while (model->part_of.count < model->blueprint->nodes.count) {
        uint32_t of = model->part_of.count < first_node ? 0 : part + 1;
        if (!TUTTI_VEC_PUSH(&model->part_of, of))
            return no_memory();
    }
    return TUTTI_OK;
}

void tutti__parts_free(tutti_model *model)
{
    for (size_t i = 0; i < model->parts.count; i++) {
        model->parts.data[i]->owner = NULL;
        tutti_layer_release(model->parts.data[i]);
    }
    for (size_t i = 0; i < model->values.count; i++)
        free(model->values.data[i].name);
    TUTTI_VEC_FREE(&model->parts);
    TUTTI_VEC_FREE(&model->part_of);
    TUTTI_VEC_FREE(&model->values);
}

tutti_status tutti__value_add(tutti_model *model, const char *name, tutti_sym sym, bool turned,
                              uint32_t part)
{
    char *kept = strdup(name);
    if (kept && TUTTI_VEC_PUSH(&model->values, ((tutti_named_value){kept, sym, turned, part})))
        return TUTTI_OK;
    free(kept);
    return no_memory();
}

/* ---- weights ---- */

/* Whether a value comes of variables and constants alone: a weight that was read, turned, cast. */
static bool comes_of_weights(const tutti_node *node, const bool *known)
{
    if (tutti__is(node, "variable"))
        return true;
    if (tutti__is(node, "placeholder") || node->op == tutti__layer_op ||
        (node->op->flags & (TUTTI_OP_RANDOM | TUTTI_OP_UPDATES)))
        return false;
    for (int i = 0; i < node->input_count; i++)
        if (!known[node->inputs[i].node->id])
            return false;
    return true;
}

tutti_status tutti__part_weights(const tutti_model *model, const bool *chosen, bool *ret_nodes)
{
    size_t count = model->blueprint->nodes.count;
    bool *known = calloc(count + 1, sizeof *known);
    if (!known)
        return no_memory();
    memset(ret_nodes, 0, count * sizeof *ret_nodes);
    for (size_t i = 0; i < count; i++)
        known[i] = comes_of_weights(model->blueprint->nodes.data[i], known);
    for (size_t i = count; i-- > 0;) {
        const tutti_node *node = model->blueprint->nodes.data[i];
        uint32_t part = i < model->part_of.count ? model->part_of.data[i] : 0;
        if (!ret_nodes[i] && !(part > 0 && chosen[part - 1]))
            continue;
        for (int k = 0; k < node->input_count; k++)
            if (known[node->inputs[k].node->id])
                ret_nodes[node->inputs[k].node->id] = true;
        ret_nodes[i] = ret_nodes[i] && tutti__is(node, "variable");
    }
    free(known);
    return TUTTI_OK;
}

tutti_status tutti__part_frozen(const tutti_model *model, bool **ret_nodes)
{
    bool any = false;
    *ret_nodes = NULL;
    for (size_t i = 0; i < model->parts.count; i++)
        any = any || model->parts.data[i]->frozen;
    if (!any)
        return TUTTI_OK;
    bool *chosen = calloc(model->parts.count, sizeof *chosen);
    bool *nodes = calloc(model->blueprint->nodes.count + 1, sizeof *nodes);
    tutti_status status = chosen && nodes ? TUTTI_OK : no_memory();
    for (size_t i = 0; status == TUTTI_OK && i < model->parts.count; i++)
        chosen[i] = model->parts.data[i]->frozen;
    if (status == TUTTI_OK)
        status = tutti__part_weights(model, chosen, nodes);
    free(chosen);
    if (status == TUTTI_OK)
        *ret_nodes = nodes;
    else
        free(nodes);
    return status;
}
