/* cut.c: the part of a model that makes one of its values, as a model of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "nn/model/model.h"
#include "ops/build.h"
#include "ops/state/state.h"

typedef struct cutting {
    tutti_model *from, *to;
    const tutti_graph *blueprint; /* of `from` */
    bool *needed;                 /* per node of it */
    size_t *start;                /* per node: its first copy */
    tutti_sym *copies;
    size_t *layers;  /* per layer: 1 + its index in `to`; 0: not there */
    uint32_t *parts; /* per part, as layers */
} cutting;

static tutti_status no_memory(void)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory to cut a model");
}

/* ---- which value ---- */

static tutti_sym layer_value(const tutti_model *model, const tutti_layer *layer, uint32_t index)
{
    const tutti_graph *blueprint = model->blueprint;
    for (size_t i = 0; layer && i < blueprint->nodes.count; i++) {
        tutti_node *node = blueprint->nodes.data[i];
        if (!node->dead && node->op == tutti__layer_op &&
            model->layers.data[tutti__int(node, "layer")] == layer &&
            (int)index < node->output_count)
            return tutti__sym(node, index);
    }
    return TUTTI_NO_SYM;
}

/* Of an imported model: a tensor of the file, or the index-th one that a node makes. */
static const tutti_named_value *named_value(const tutti_model *model, const char *name,
                                            uint32_t index)
{
    const tutti_layer *part = tutti__map_get(&model->layer_names, name);
    for (size_t i = 0; i < model->values.count; i++)
        if (strcmp(model->values.data[i].name, name) == 0)
            return index == 0 ? &model->values.data[i] : NULL;
    for (size_t i = 0; part && i < model->values.count; i++)
        if (model->parts.data[model->values.data[i].part] == part && index-- == 0)
            return &model->values.data[i];
    return NULL;
}

static bool find_in(const tutti_model *model, const char *name, uint32_t index, tutti_sym *ret,
                    bool *ret_turned)
{
    const tutti_named_value *value = named_value(model, name, index);
    int port = tutti__port_find(&model->outputs, name);
    *ret_turned = value && value->turned;
    *ret = value ? value->sym
           : port >= 0 && index == 0
               ? model->outputs.data[port].sym
               : layer_value(model, tutti__map_get(&model->layer_names, name), index);
    if (!ret->node && model->parts.count == 0) {
        tutti_node *node = tutti_graph_find(model->blueprint, name);
        if (node && !node->dead && (int)index < node->output_count &&
            !(node->op->flags & TUTTI_OP_HANDLE) && !tutti__is(node, "placeholder"))
            *ret = tutti__sym(node, index);
    }
    return ret->node != NULL;
}

static tutti_status no_value(const tutti_model *model, const char *name)
{
    enum { SHOWN = 500 };
    tutti_nearest nearest = {.word = name};
    tutti_text text = {0};
    size_t count = model->layer_names.count, i = 0;
    for (size_t k = 0; k < count; k++)
        tutti__nearest_try(&nearest, model->layer_names.entries[k].key);
    for (size_t k = 0; k < model->values.count; k++)
        tutti__nearest_try(&nearest, model->values.data[k].name);
    if (nearest.found)
        tutti__text_add(&text, "; did you mean '%s'?", nearest.found);
    tutti__text_add(&text, "; its %s are ", model->parts.count > 0 ? "nodes" : "layers");
    for (; i < count && text.size < SHOWN; i++)
        tutti__text_add(&text, "%s%s", i > 0 ? ", " : "", model->layer_names.entries[i].key);
    if (i < count)
        tutti__text_add(&text, ", … (%zu in all)", count);
    tutti_status status = tutti_fail(TUTTI_NOT_FOUND, "model '%s' makes no value '%s'%s",
                                     model->name, name, text.data ? text.data : "");
    tutti__text_free(&text);
    return status;
}

/* "dense", "dense:1"; a name may have a colon of its own. */
static tutti_status find_value(const tutti_model *model, const char *name, tutti_sym *ret,
                               bool *ret_turned)
{
    char stem[1024], *end = NULL;
    const char *colon = strrchr(name, ':');
    if (find_in(model, name, 0, ret, ret_turned))
        return TUTTI_OK;
    unsigned long index = colon ? strtoul(colon + 1, &end, 10) : 0;
    if (!colon || end == colon + 1 || *end || index > TUTTI_LAYER_OUTPUTS ||
        (size_t)(colon - name) >= sizeof stem)
        return no_value(model, name);
    snprintf(stem, sizeof stem, "%.*s", (int)(colon - name), name);
    return find_in(model, stem, (uint32_t)index, ret, ret_turned) ? TUTTI_OK
                                                                  : no_value(model, name);
}

/* ---- what it needs ---- */

/* The first value of a weight is not among it: the copy begins with the present one. */
static void mark_needed(cutting *c, const tutti_node *end)
{
    c->needed[end->id] = true;
    for (size_t i = end->id + 1; i-- > 0;) {
        const tutti_node *node = c->blueprint->nodes.data[i];
        for (int k = 0; c->needed[i] && k < node->input_count; k++)
            c->needed[node->inputs[k].node->id] = true;
    }
}

static tutti_status cut_prepare(cutting *c)
{
    size_t count = c->blueprint->nodes.count, total = 0;
    c->needed = calloc(count + 1, sizeof *c->needed);
    c->start = calloc(count + 1, sizeof *c->start);
    for (size_t i = 0; c->start && i < count; i++) {
        c->start[i] = total;
        total += (size_t)c->blueprint->nodes.data[i]->output_count;
    }
    c->copies = calloc(total + 1, sizeof *c->copies);
    c->layers = calloc(c->from->layers.count + 1, sizeof *c->layers);
    c->parts = calloc(c->from->parts.count + 1, sizeof *c->parts);
    return c->needed && c->start && c->copies && c->layers && c->parts ? TUTTI_OK : no_memory();
}

static void cut_finish(cutting *c)
{
    free(c->needed);
    free(c->start);
    free(c->copies);
    free(c->layers);
    free(c->parts);
}

/* ---- copying ---- */

static tutti_layer *copy_layer(const tutti_layer *layer)
{
    tutti_model *inner = tutti__layer_model(layer);
    if (layer->file)
        tutti_here(layer->file, layer->line);
    tutti_layer *copy = inner ? tutti__model_layer_named(inner, layer->name)
                              : (tutti_layer_custom)(layer->kind, layer->settings);
    if (!copy)
        return NULL;
    if (!copy->name || strcmp(copy->name, layer->name) != 0)
        copy->name = tutti__arena_string(&copy->arena, layer->name);
    copy->frozen = layer->frozen;
    copy->remat = layer->remat;
    copy->stage = layer->stage;
    if (layer->device)
        copy->device = tutti__arena_string(&copy->arena, layer->device);
    return copy;
}

static tutti_status take_layer(cutting *c, int64_t index, tutti_layer **ret)
{
    const tutti_layer *layer = c->from->layers.data[index];
    if (c->layers[index] == 0) {
        tutti_layer *copy = copy_layer(layer);
        if (!copy)
            return no_memory();
        tutti_status status = tutti__model_adopt(c->to, copy);
        if (status != TUTTI_OK) {
            tutti_layer_release(copy);
            return status;
        }
        c->layers[index] = c->to->layers.count;
    }
    *ret = c->to->layers.data[c->layers[index] - 1];
    return TUTTI_OK;
}

static tutti_status take_part(cutting *c, const tutti_node *node, size_t before)
{
    uint32_t part = node->id < c->from->part_of.count ? c->from->part_of.data[node->id] : 0, made;
    if (part == 0)
        return TUTTI_OK;
    if (c->parts[part - 1] == 0) {
        const tutti_layer *layer = c->from->parts.data[part - 1];
        TUTTI_TRY(tutti__part_add(c->to, layer->name, layer->kind->name, &made));
        c->to->parts.data[made]->frozen = layer->frozen;
        c->parts[part - 1] = made + 1;
    }
    return tutti__part_take(c->to, c->parts[part - 1] - 1, before);
}

/* A weight that stands in the blueprint begins with its present value. */
static tutti_status first_value(cutting *c, const tutti_node *node, tutti_sym variable)
{
    tutti_graph *graph = c->to->blueprint;
    tutti_tensor *value;
    const tutti_node *weight = tutti_graph_find(c->from->graph, node->name);
    if (!weight || !tutti__is(weight, "variable"))
        return TUTTI_OK;
    TUTTI_TRY(tutti_get_weight(c->from, node->name, &value));
    tutti_sym inputs[] = {variable, tutti_constant(graph, value)};
    tutti_tensor_release(value);
    tutti__build(graph, tutti_op_find("assign"), NULL, 2, inputs, 1, &TUTTI_INT("initializer", 1));
    return tutti_graph_check(graph);
}

static tutti_status copy_node(cutting *c, const tutti_node *node)
{
    tutti_graph *graph = c->to->blueprint;
    tutti_sym inputs[64], made;
    tutti_layer *layer;
    size_t before = graph->nodes.count;
    if (node->input_count > 64)
        return tutti_fail(TUTTI_TOO_LARGE, "'%s' has more than 64 inputs", node->name);
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = c->copies[c->start[node->inputs[i].node->id] + node->inputs[i].index];
    if (node->file)
        tutti_here(node->file, node->line);
    if (node->op == tutti__layer_op) {
        TUTTI_TRY(take_layer(c, tutti__int(node, "layer"), &layer));
        made = tutti_layer_apply(layer, node->input_count, inputs);
    } else {
        made = tutti__build(graph, node->op, node->name, node->input_count, inputs,
                            node->attr_count, node->attrs);
    }
    TUTTI_TRY(tutti_graph_check(graph));
    for (int i = 0; i < node->output_count; i++)
        c->copies[c->start[node->id] + (size_t)i] = tutti__sym(made.node, (uint32_t)i);
    if (tutti__is(node, "variable"))
        TUTTI_TRY(first_value(c, node, made));
    return take_part(c, node, before);
}

static tutti_status copy_inputs(cutting *c)
{
    for (size_t i = 0; i < c->from->inputs.count; i++) {
        const tutti_port *port = &c->from->inputs.data[i];
        if (!c->needed[port->sym.node->id])
            continue;
        tutti_sym sym = (tutti_placeholder_named)(c->to->blueprint, port->name, port->type);
        TUTTI_TRY(tutti_graph_check(c->to->blueprint));
        TUTTI_TRY(tutti__port_add(c->to, &c->to->inputs, port->name, port->type, sym));
        c->copies[c->start[port->sym.node->id]] = sym;
    }
    if (c->to->inputs.count == 0)
        return tutti_fail(TUTTI_INVALID, "the value does not depend on an input of model '%s'",
                          c->from->name);
    return TUTTI_OK;
}

/* In a scope that is computed again, so is the copy. */
static tutti_status copy_nodes(cutting *c)
{
    uint32_t from = 0, to = 0; /* the scope copied last */
    for (size_t i = 0; i < c->blueprint->nodes.count; i++) {
        const tutti_node *node = c->blueprint->nodes.data[i];
        if (!c->needed[i] || tutti__is(node, "placeholder"))
            continue;
        bool again = node->remat;
        if (again)
            tutti__region_push(c->to->blueprint, from == node->region ? to : 0, true);
        if (again && from != node->region) {
            from = node->region;
            to = c->to->blueprint->regions;
        }
        tutti_status status = copy_node(c, node);
        if (again)
            tutti__region_pop(c->to->blueprint);
        TUTTI_TRY(status);
    }
    return TUTTI_OK;
}

static tutti_status copy_values(cutting *c)
{
    for (size_t i = 0; i < c->from->values.count; i++) {
        const tutti_named_value *value = &c->from->values.data[i];
        tutti_sym sym = c->copies[c->start[value->sym.node->id] + value->sym.index];
        if (sym.node && c->parts[value->part])
            TUTTI_TRY(tutti__value_add(c->to, value->name, sym, value->turned,
                                       c->parts[value->part] - 1));
    }
    return TUTTI_OK;
}

/* Weights of layers get their values; all get what was asked of them by name. */
static tutti_status copy_weights(cutting *c)
{
    tutti_model *to = c->to;
    for (size_t i = 0; i < to->weight_end; i++) {
        const tutti_node *node = to->graph->nodes.data[i];
        tutti_tensor *value;
        if (!tutti__is(node, "variable"))
            continue;
        TUTTI_TRY(tutti_get_weight(c->from, node->name, &value));
        tutti_status status = tutti_set_weight(to, node->name, value);
        tutti_tensor_release(value);
        TUTTI_TRY(status);
        void *asked = tutti__map_get(&c->from->frozen, node->name);
        if (asked)
            TUTTI_TRY(tutti__map_set(&to->frozen, node->name, asked));
    }
    to->trainable_seen = 0;
    if (c->from->settled) /* weights that came with a file */
        to->settled = tutti__engine_constants(to->engine);
    return TUTTI_OK;
}

static tutti_status cut(cutting *c, const char *name, tutti_sym end, bool turned)
{
    int64_t order[TUTTI_MAX_RANK];
    tutti_type type = tutti_sym_type(end);
    TUTTI_TRY(cut_prepare(c));
    mark_needed(c, end.node);
    TUTTI_TRY(copy_inputs(c));
    TUTTI_TRY(copy_nodes(c));
    TUTTI_TRY(copy_values(c));
    tutti_sym sym = c->copies[c->start[end.node->id] + end.index];
    for (int i = 0; i < type.rank; i++)
        order[i] = i < 1 ? 0 : i == 1 ? type.rank - 1 : i - 1;
    if (turned && type.rank > 2)
        sym = (tutti_transpose)(sym, type.rank, order);
    TUTTI_TRY(tutti_graph_check(c->to->blueprint));
    /* An input of that name is no reason to refuse it. */
    bool taken = tutti__port_find(&c->to->inputs, name) >= 0;
    TUTTI_TRY(
        tutti__port_add(c->to, &c->to->outputs, taken ? "output" : name, tutti_sym_type(sym), sym));
    c->to->closed = true;
    TUTTI_TRY(tutti__model_need_built(c->to));
    return copy_weights(c);
}

static tutti_status cut_model(tutti_model *model, const char *name, tutti_model **ret)
{
    tutti_sym end;
    bool turned;
    if (!name || !name[0])
        return tutti_fail(TUTTI_INVALID, "tutti_cut: the value of model '%s' has no name",
                          model->name);
    TUTTI_TRY(tutti__model_need_built(model));
    if (!model->blueprint)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "model '%s' is made by code of its own (tutti_subclass), which cannot be "
                          "cut; give the value as an output of the model",
                          model->name);
    TUTTI_TRY(find_value(model, name, &end, &turned));
    cutting c = {.from = model, .blueprint = model->blueprint};
    c.to = (tutti_functional_with)(model->job,
                                   TUTTI_OPTIONS(tutti_model_options, .name = model->name,
                                                 .precision = tutti_dtype_name(model->compute)));
    tutti_status status = c.to ? cut(&c, name, end, turned) : tutti_job_check(model->job);
    cut_finish(&c);
    if (status == TUTTI_OK)
        *ret = c.to;
    return status;
}

tutti_model *tutti_cut(tutti_model *model, const char *value)
{
    tutti_model *made = NULL;
    if (tutti_model_check(model) != TUTTI_OK)
        return NULL;
    tutti_status status = cut_model(model, value, &made);
    return tutti__model_fail(model, status) == TUTTI_OK ? made : NULL;
}
