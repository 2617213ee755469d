/* blueprint.c: noting calls of layers, and building what was noted into another graph. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "graph/inspect.h"
#include "graph/scope.h"
#include "nn/model/model_strategy.h"
#include "ops/build.h"
#include "ops/state/state.h"

/* ---- the operator "layer": only in blueprints, never run ---- */

static tutti_status infer_layer(tutti_infer *node)
{
    const tutti_attr *types = tutti_attr_find(node->attrs, node->attr_count, "types");
    for (int i = 0; i < node->output_count; i++)
        node->outputs[i] = types->value.types[i];
    return TUTTI_OK;
}

static const tutti_attr_spec layer_attrs[] = {
    {"layer", TUTTI_ATTR_INT, NULL}, {"types", TUTTI_ATTR_TYPES, NULL}, {NULL, 0, NULL}};

static const tutti_op layer_op = {
    .struct_size = sizeof(tutti_op),
    .name = "layer",
    .version = 1,
    .doc = "layer(x, …): a call of a layer in a model's blueprint",
    .category = "model",
    .min_inputs = 0,
    .max_inputs = -1,
    .outputs = -1,
    .flags = TUTTI_OP_STATEFUL,
    .attrs = layer_attrs,
    .infer = infer_layer,
};
const tutti_op *const tutti__layer_op = &layer_op;

/* ---- noting ---- */

/* The types of a layer's outputs: builds it once into a graph that is thrown away. Returns their
 * number; 0 after a mistake, which is then the blueprint's. */
static int try_layer(tutti_graph *blueprint, tutti_layer *layer, int count, const tutti_sym *inputs,
                     tutti_type *ret_types)
{
    tutti_building *plan = blueprint->building;
    tutti_building trial = tutti__model_building(plan->model, false);
    tutti_graph *graph;
    tutti_sym args[64], outputs[TUTTI_LAYER_OUTPUTS];
    trial.compute = TUTTI_F32;
    if (count > 64 || tutti_graph_create(&graph) != TUTTI_OK) {
        tutti__poison(blueprint, TUTTI_NO_MEMORY, "layer '%s': too many inputs or no memory",
                      tutti_layer_name(layer));
        return 0;
    }
    graph->building = &trial;
    for (int i = 0; i < count; i++)
        args[i] = (tutti_placeholder)(graph, tutti_sym_type(inputs[i]));
    int made = tutti__layer_build(layer, graph, count, args, outputs);
    if (made == 0 && blueprint->error.status == TUTTI_OK)
        blueprint->error = graph->error;
    for (int i = 0; i < made; i++)
        ret_types[i] = tutti_sym_type(outputs[i]);
    tutti__building_free(&trial);
    tutti_graph_destroy(graph);
    return made;
}

static tutti_sym note_call(tutti_graph *graph, tutti_layer *layer, int count,
                           const tutti_sym *inputs)
{
    tutti_building *plan = graph->building;
    tutti_model *model = plan->model;
    tutti_type types[TUTTI_LAYER_OUTPUTS];
    if (!model || tutti_graph_check(graph) != TUTTI_OK)
        return TUTTI_NO_SYM;
    for (int i = 0; i < count; i++)
        if (!inputs[i].node || inputs[i].node->graph != graph)
            return tutti__poison(graph, TUTTI_INVALID,
                                 "layer '%s': input %d is not of the same model",
                                 tutti_layer_name(layer), i);
    int made = try_layer(graph, layer, count, inputs, types);
    if (made == 0)
        return TUTTI_NO_SYM;
    size_t index = 0;
    while (index < model->layers.count && model->layers.data[index] != layer)
        index++;
    tutti_attr attrs[] = {TUTTI_INT("layer", (int64_t)index),
                          TUTTI_TYPES_ATTR("types", made, types)};
    return tutti__build(graph, &layer_op, tutti_layer_name(layer), count, inputs, 2, attrs);
}

/* A layer used by itself, outside any model. */
static tutti_sym call_alone(tutti_graph *graph, tutti_layer *layer, int count,
                            const tutti_sym *inputs)
{
    static atomic_uint number;
    tutti_building building = {.prefix = "", .compute = TUTTI_F32, .seed = 1};
    tutti_sym outputs[TUTTI_LAYER_OUTPUTS] = {TUTTI_NO_SYM};
    if (!layer->name && layer->kind)
        layer->name = tutti__arena_format(&layer->arena, "%s_%u", layer->kind->name,
                                          atomic_fetch_add(&number, 1) + 1);
    graph->building = &building;
    tutti__layer_build(layer, graph, count, inputs, outputs);
    graph->building = NULL;
    tutti__building_free(&building);
    return outputs[0];
}

tutti_sym tutti_layer_apply(tutti_layer *layer, int count, const tutti_sym *inputs)
{
    tutti_graph *graph = count > 0 && inputs ? tutti_sym_graph(inputs[0]) : NULL;
    if (!graph) {
        tutti__layer_drop(layer);
        return TUTTI_NO_SYM;
    }
    if (!layer)
        return tutti__poison(graph, TUTTI_INVALID, "tutti_call: the layer is NULL");
    tutti_building *building = graph->building;
    if (!building)
        return call_alone(graph, layer, count, inputs);
    if (building->model && tutti__model_adopt(building->model, layer) != TUTTI_OK) {
        tutti__poison(graph, TUTTI_INVALID, "%s", tutti_error_message());
        tutti__layer_drop(layer);
        return TUTTI_NO_SYM;
    }
    if (building->records)
        return note_call(graph, layer, count, inputs);
    tutti_sym outputs[TUTTI_LAYER_OUTPUTS] = {TUTTI_NO_SYM};
    tutti__layer_build(layer, graph, count, inputs, outputs);
    return outputs[0];
}

/* ---- building ---- */

/* Per blueprint node its outputs in the other graph: the first of them, or an array. */
typedef struct copies {
    size_t *start; /* per node: index into all */
    tutti_sym *all;
    uint32_t *regions; /* by region of the blueprint: that of the other graph; 0: none yet */
    bool *frozen;      /* per node: a variable of a part that is not trained; NULL: none is */
} copies;

static void free_copies(copies *c)
{
    free(c->start);
    free(c->all);
    free(c->regions);
    free(c->frozen);
}

static tutti_status make_copies(const tutti_model *model, copies *ret)
{
    const tutti_graph *blueprint = model->blueprint;
    size_t total = 0, count = blueprint->nodes.count;
    size_t *start = calloc(count + 1, sizeof *start);
    if (!start)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to build a model");
    for (size_t i = 0; i < count; i++) {
        start[i] = total;
        int outputs = blueprint->nodes.data[i]->output_count;
        total += (size_t)(outputs > TUTTI_LAYER_OUTPUTS ? outputs : TUTTI_LAYER_OUTPUTS);
    }
    tutti_sym *all = calloc(total + 1, sizeof *all);
    uint32_t *regions = calloc((size_t)blueprint->regions + 1, sizeof *regions);
    if (!all || !regions) {
        free(start);
        free(all);
        free(regions);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to build a model");
    }
    *ret = (copies){.start = start, .all = all, .regions = regions};
    tutti_status status = tutti__part_frozen(model, &ret->frozen);
    if (status != TUTTI_OK)
        free_copies(ret);
    return status;
}

/* A variable that the user made in the blueprint is one variable in every graph; of a model inside
 * another it is under the name that this one has there. */
static bool find_handle(tutti_graph *graph, const tutti_node *node, tutti_sym *ret)
{
    char name[700];
    if (!(node->op->flags & TUTTI_OP_HANDLE))
        return false;
    snprintf(name, sizeof name, "%s%s", tutti__scope_prefix(graph), node->name);
    tutti_node *found = tutti_graph_find(graph, name);
    if (found)
        *ret = tutti__sym(found, 0);
    return found != NULL;
}

/* Inside another model the variable is that model's: known in the state by its name there. */
static void name_variable(tutti_node *made)
{
    if (tutti__is(made, "variable") && tutti__scope_prefix(made->graph)[0])
        tutti__attr_set_string(made, "shared_name", made->name);
}

/* The first value of a variable that has one: in a step by hand it is not assigned again. */
static bool is_assigned(tutti_graph *graph, const tutti_node *node, const tutti_sym *inputs)
{
    if (!graph->trace || !graph->holds || !(node->op->flags & TUTTI_OP_UPDATES) ||
        node->input_count < 1 || !inputs[0].node || !tutti__is(inputs[0].node, "variable"))
        return false;
    return graph->holds(graph, tutti__state_name(inputs[0].node));
}

/* As layers' weights are marked by tutti_weight. */
static void mark_trainable(tutti_node *made, const tutti_node *node, const copies *c)
{
    tutti_building *building = made->graph->building;
    char name[700];
    if (!tutti__is(node, "variable") || !building)
        return;
    snprintf(name, sizeof name, "%s%s", building->prefix, node->name);
    tutti__set_trainable(
        made, tutti__int(node, "trainable") &&
                  !tutti__weight_frozen(building, c->frozen && c->frozen[node->id], name));
}

/* In a model that answers step by step operators may not join steps. */
static bool works_by_step(tutti_graph *graph, const tutti_node *node)
{
    bool may = (node->op->flags & (TUTTI_OP_ELEMENTWISE | TUTTI_OP_HANDLE)) ||
               node->input_count == 0 || tutti__is(node, "read") || tutti__is(node, "cast");
    const tutti_building *building = graph->building;
    if (may || !building || !building->decoding)
        return true;
    tutti__poison(graph, TUTTI_UNSUPPORTED,
                  "operator %s '%s' may join steps: the model cannot answer step by step",
                  node->op->name, node->name);
    return false;
}

static void copy_node(tutti_model *model, const tutti_node *node, tutti_graph *graph, copies *c)
{
    tutti_sym *outputs = c->all + c->start[node->id];
    tutti_sym inputs[64];
    if (node->input_count > 64) {
        tutti__poison(graph, TUTTI_TOO_LARGE, "'%s' has more than 64 inputs", node->name);
        return;
    }
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = c->all[c->start[node->inputs[i].node->id] + node->inputs[i].index];
    if (node->file)
        tutti_here(node->file, node->line);
    if (node->op == &layer_op) {
        tutti_layer *layer = model->layers.data[tutti__int(node, "layer")];
        tutti__layer_build(layer, graph, node->input_count, inputs, outputs);
        return;
    }
    if (node->op == tutti__added_op) {
        tutti__added_copy(node, outputs[0] = inputs[0]);
        return;
    }
    if (!works_by_step(graph, node))
        return;
    if (find_handle(graph, node, &outputs[0])) {
        mark_trainable(outputs[0].node, node, c);
        return;
    }
    if (is_assigned(graph, node, inputs))
        return;
    tutti_sym made = tutti__build(graph, node->op, node->name, node->input_count, inputs,
                                  node->attr_count, node->attrs);
    if (made.node) {
        name_variable(made.node);
        mark_trainable(made.node, node, c);
    }
    for (int i = 0; made.node && i < node->output_count; i++)
        outputs[i] = tutti__sym(made.node, (uint32_t)i);
}

/* On the device and in the stage that scopes of the blueprint's say. */
static void copy_in_place(tutti_model *model, const tutti_node *node, tutti_graph *graph, copies *c)
{
    int stage =
        model->stage_of && node->id < model->stage_nodes ? model->stage_of[node->id] : node->stage;
    bool placed = node->device[0] != 0, staged = stage > 0;
    if (placed)
        tutti_device_push(graph, node->device);
    if (staged)
        tutti_stage_push(graph, stage);
    copy_node(model, node, graph, c);
    if (staged)
        tutti_stage_pop(graph);
    if (placed)
        tutti_device_pop(graph);
}

/* In a scope of the blueprint's that is computed again, so is the copy. */
static void copy_in_region(tutti_model *model, const tutti_node *node, tutti_graph *graph,
                           copies *c)
{
    if (!node->remat) {
        copy_in_place(model, node, graph, c);
        return;
    }
    tutti__region_push(graph, c->regions[node->region], true);
    if (!c->regions[node->region])
        c->regions[node->region] = graph->regions;
    copy_in_place(model, node, graph, c);
    tutti__region_pop(graph);
}

/* Values that the blueprint marks are looked at in what is built of it. */
static void copy_marks(const tutti_graph *blueprint, const copies *c)
{
    tutti_edge edge;
    const char *name;
    for (size_t i = 0; tutti__inspect_mark_at(blueprint, i, &edge, &name); i++) {
        tutti_sym value = c->all[c->start[edge.node->id] + edge.index];
        if (value.node)
            tutti_inspect(value, name);
    }
}

static tutti_status build_blueprint(tutti_model *model, tutti_graph *graph, const tutti_sym *inputs,
                                    tutti_sym *ret_outputs)
{
    copies c;
    const tutti_graph *blueprint = model->blueprint;
    const tutti_building *building = graph->building;
    if (building && !building->prefix[0]) /* no part of another model */
        TUTTI_TRY(tutti__model_find_stages(model, tutti__model_strategy(model)));
    TUTTI_TRY(make_copies(model, &c));
    for (size_t i = 0; i < model->inputs.count; i++)
        c.all[c.start[model->inputs.data[i].sym.node->id]] = inputs[i];
    for (size_t i = 0; i < blueprint->nodes.count; i++) {
        const tutti_node *node = blueprint->nodes.data[i];
        if (tutti_graph_check(graph) != TUTTI_OK)
            break;
        if (!node->dead && !c.all[c.start[i]].node)
            copy_in_region(model, node, graph, &c);
    }
    copy_marks(blueprint, &c);
    for (size_t i = 0; i < model->outputs.count; i++) {
        tutti_sym sym = model->outputs.data[i].sym;
        ret_outputs[i] = c.all[c.start[sym.node->id] + sym.index];
    }
    free_copies(&c);
    return tutti_graph_check(graph);
}

static tutti_status build_subclass(tutti_model *model, tutti_graph *graph, const tutti_sym *inputs,
                                   tutti_sym *ret_outputs)
{
    tutti_building *building = graph->building;
    tutti_model_call call = {.model = model,
                             .self = model->self,
                             .graph = graph,
                             .input_count = (int)model->inputs.count,
                             .inputs = inputs,
                             .training = building->training,
                             .output_count = 1};
    model->kind->call(&call);
    TUTTI_TRY(tutti_graph_check(graph));
    if (call.output_count < 1 || call.output_count > (int)TUTTI_COUNT(call.outputs))
        return tutti_fail(TUTTI_INVALID, "model '%s': its call gives %d outputs; 1 to 16 are legal",
                          model->name, call.output_count);
    for (int i = 0; i < call.output_count; i++) {
        char name[32];
        if (!call.outputs[i].node)
            return tutti_fail(TUTTI_INVALID, "model '%s': its call left output %d unset",
                              model->name, i);
        snprintf(name, sizeof name, i == 0 ? "output" : "output_%d", i);
        if (model->outputs.count < (size_t)call.output_count)
            TUTTI_TRY(tutti__port_add(model, &model->outputs, name, tutti_sym_type(call.outputs[i]),
                                      TUTTI_NO_SYM));
        ret_outputs[i] = call.outputs[i];
    }
    return TUTTI_OK;
}

tutti_status tutti__model_instantiate(tutti_model *model, tutti_graph *graph,
                                      const tutti_sym *inputs, tutti_sym *ret_outputs)
{
    tutti_building *building = graph->building;
    if (model->kind)
        TUTTI_TRY(build_subclass(model, graph, inputs, ret_outputs));
    else
        TUTTI_TRY(build_blueprint(model, graph, inputs, ret_outputs));
    for (size_t i = 0; i < model->outputs.count; i++) {
        tutti_sym raw = ret_outputs[i];
        if (tutti_sym_type(raw).dtype != building->compute || building->compute == TUTTI_F32)
            continue;
        ret_outputs[i] = tutti_cast(raw, TUTTI_F32);
        tutti__mask_set(building, ret_outputs[i], tutti__mask_of(building, raw));
    }
    return tutti_graph_check(graph);
}
