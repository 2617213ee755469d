/* building.c: layers into graphs: weights by name, updates, losses, masks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/inspect.h"
#include "graph/scope.h"
#include "nn/model/model.h"
#include "ops/build.h"
#include "ops/state/state.h"

void tutti__building_free(tutti_building *building)
{
    TUTTI_VEC_FREE(&building->updates);
    TUTTI_VEC_FREE(&building->added);
    TUTTI_VEC_FREE(&building->constraints);
    TUTTI_VEC_FREE(&building->penalized);
    TUTTI_VEC_FREE(&building->masks);
}

tutti_sym tutti__mask_of(const tutti_building *building, tutti_sym sym)
{
    for (size_t i = building->masks.count; i-- > 0;)
        if (building->masks.data[i].edge.node == sym.node &&
            building->masks.data[i].edge.index == sym.index)
            return building->masks.data[i].mask;
    return TUTTI_NO_SYM;
}

static void no_memory(tutti_graph *graph)
{
    tutti__poison(graph, TUTTI_NO_MEMORY, "no memory to build the model");
}

void tutti__mask_set(tutti_building *building, tutti_sym sym, tutti_sym mask)
{
    if (sym.node && mask.node &&
        !TUTTI_VEC_PUSH(&building->masks, ((tutti_masked){tutti__edge(sym), mask})))
        no_memory(sym.node->graph);
}

tutti_sym tutti_layer_fail(tutti_layer_call *call, const char *format, ...)
{
    char text[600];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    const tutti_layer *layer = call->layer;
    if (layer->file)
        tutti_here(layer->file, layer->line);
    return tutti__poison(call->graph, TUTTI_INVALID, "%s '%s': %s", layer->kind->name,
                         tutti_layer_name(layer), text);
}

/* Weights live in their layer's stage: that of its scope, or the last one of its inputs. */
static int stage_of(const tutti_layer_call *call)
{
    int stage = tutti__scope_stage(call->graph);
    for (int i = 0; i < call->input_count; i++)
        if (call->inputs[i].node && call->inputs[i].node->stage > stage)
            stage = call->inputs[i].node->stage;
    return stage;
}

/* The initial value, the regularizer's term and the constraint of a weight, by their texts. */
static tutti_sym make_variable(tutti_layer_call *call, const char *name, tutti_type type,
                               const tutti_weight_options *options, bool trainable)
{
    tutti_building *building = call->graph->building;
    char full[512];
    tutti_init init = {0};
    snprintf(full, sizeof full, "%s%s/%s", building->prefix, tutti_layer_name(call->layer), name);
    if (!tutti_type_is_static(&type)) {
        char text[TUTTI_TYPE_TEXT];
        return tutti_layer_fail(call,
                                "the shape of weight '%s' is %s: a dimension of the input that "
                                "must be known is not; give the model an input shape",
                                name, tutti_type_text(&type, text));
    }
    if (tutti__initializer(options->initializer, &type, building->seed, full, &init) != TUTTI_OK)
        return tutti_layer_fail(call, "weight '%s': %s", name, tutti_error_message());
    char text[TUTTI_DEVICE_TEXT];
    const char *device = tutti__scope_device(call->graph, text);
    int stage = stage_of(call);
    tutti_hidden_scopes hidden = tutti__scopes_hide(call->graph);
    tutti_device_push(call->graph, device);
    tutti_stage_push(call->graph, stage);
    tutti_sym variable =
        tutti_get_variable(call->graph, full, init, .dtype = type.dtype,
                           .not_trainable = !trainable, .seed = (int64_t)building->seed);
    tutti_stage_pop(call->graph);
    tutti_device_pop(call->graph);
    tutti__scopes_show(call->graph, hidden);
    tutti_tensor_release(init.tensor);
    return options->sharding ? (tutti_sharded)(variable, options->sharding) : variable;
}

/* A layer that stands in several places has one weight, and one penalty for it. */
static void note_terms(tutti_layer_call *call, const char *name, tutti_sym variable,
                       const tutti_weight_options *options)
{
    tutti_building *building = call->graph->building;
    tutti_sym term = TUTTI_NO_SYM;
    for (size_t i = 0; i < building->penalized.count; i++)
        if (building->penalized.data[i] == variable.node)
            return;
    if ((options->regularizer || options->constraint) &&
        !TUTTI_VEC_PUSH(&building->penalized, variable.node))
        no_memory(call->graph);
    if (options->regularizer) {
        if (tutti__regularizer(options->regularizer, variable, &term) != TUTTI_OK)
            tutti_layer_fail(call, "weight '%s': %s", name, tutti_error_message());
        else
            tutti__add(term, NULL, true);
    }
    if (options->constraint &&
        !TUTTI_VEC_PUSH(&building->constraints,
                        ((tutti_constrained){variable, options->constraint})))
        no_memory(call->graph);
}

tutti_sym tutti_weight_with(tutti_layer_call *call, const char *name, tutti_type type,
                            const tutti_weight_options *options)
{
    tutti_building *building = call->graph->building;
    bool trainable = !options->not_trainable && !tutti__layer_frozen(call, name);
    tutti_sym variable = make_variable(call, name, type, options, trainable);
    if (!variable.node)
        return variable;
    tutti__set_trainable(variable.node, trainable);
    if (trainable)
        note_terms(call, name, variable, options);
    if (building->compute == type.dtype || options->full_precision ||
        !tutti_dtype_is_float(type.dtype))
        return variable;
    return tutti_cast(tutti_read(variable), building->compute);
}

tutti_sym tutti_layer_state_with(tutti_layer_call *call, const char *name, tutti_type type,
                                 const tutti_weight_options *options)
{
    return make_variable(call, name, type, options, false);
}

void tutti_layer_update(tutti_layer_call *call, tutti_sym update)
{
    tutti_building *building = call->graph->building;
    if (update.node && !TUTTI_VEC_PUSH(&building->updates, update))
        no_memory(call->graph);
}

tutti_sym tutti_nn_activation(tutti_sym x, const char *activation)
{
    if (!x.node || !activation || !activation[0] || strcmp(activation, "linear") == 0)
        return x;
    if (strcmp(activation, TUTTI_GELU_TANH) == 0)
        return tutti_gelu(x, .approximate = true);
    if (!tutti_op_find(activation))
        return tutti__poison(x.node->graph, TUTTI_NOT_FOUND,
                             "there is no activation '%s'; any operator of one input serves "
                             "(`tutti ops` lists them)",
                             activation);
    return tutti_apply_op(x.node->graph, activation, 1, &x, 0, NULL);
}

/* Inputs in the precision that layers compute in. */
static void lower_inputs(const tutti_building *building, int count, const tutti_sym *inputs,
                         tutti_sym *ret)
{
    for (int i = 0; i < count; i++) {
        tutti_type type = tutti_sym_type(inputs[i]);
        bool wide = type.dtype == TUTTI_F32 && building->compute != TUTTI_F32;
        ret[i] = wide ? tutti_cast(inputs[i], building->compute) : inputs[i];
        if (wide)
            tutti__mask_set((tutti_building *)building, ret[i],
                            tutti__mask_of(building, inputs[i]));
    }
}

static bool check_inputs(tutti_layer_call *call, int count)
{
    const tutti_layer_kind *kind = call->layer->kind;
    int low = kind->max_inputs == 0 ? 1 : kind->min_inputs;
    int high = kind->max_inputs == 0 ? 1 : kind->max_inputs;
    if (count >= low && (high < 0 || count <= high) && count <= 64)
        return true;
    tutti_layer_fail(call, "takes %d%s input%s, it is called with %d", low,
                     high < 0 ? " or more" : "", low == 1 && high == 1 ? "" : "s", count);
    return false;
}

/* Sizes of windows and steps, of which 0 is the default, are never negative. */
static bool check_sizes(tutti_layer_call *call)
{
    static const char *const keys[] = {"kernel_size", "pool_size", "size",
                                       "strides",     "dilations", "depth_multiplier"};
    const tutti_field *field = call->layer->kind->fields;
    bool own = strchr(call->layer->kind->name, '.') != NULL; /* a user's: it may mean anything */
    for (; !own && field && field->key; field++)
        for (size_t k = 0; k < TUTTI_COUNT(keys); k++) {
            const int64_t *value =
                (const void *)((const char *)call->layer->settings + field->offset);
            bool sizes = strcmp(field->key, keys[k]) == 0 &&
                         (field->kind == TUTTI_FIELD_INT || field->kind == TUTTI_FIELD_INTS);
            for (int i = 0; sizes && i < field->count; i++)
                if (value[i] < 0) {
                    tutti_layer_fail(call, "%s is %lld, it cannot be negative", field->key,
                                     (long long)value[i]);
                    return false;
                }
        }
    return true;
}

/* In a model that answers step by step. */
static bool check_step(tutti_layer_call *call)
{
    const tutti_building *building = call->graph->building;
    if (!building->decoding || (call->layer->kind->flags & TUTTI_LAYER_EACH_STEP))
        return true;
    tutti_layer_fail(call, "looks at other steps than its own, or does not say that it does not "
                           "(TUTTI_LAYER_EACH_STEP): the model cannot answer step by step");
    return false;
}

/* What layers give is looked at under their names, as weights have them. */
static void inspect_layer(const tutti_layer_call *call, tutti_sym output)
{
    const tutti_building *building = call->graph->building;
    char name[512];
    if (!tutti__inspect_on())
        return;
    snprintf(name, sizeof name, "%s%s", building->prefix, tutti_layer_name(call->layer));
    tutti_inspect(output, name);
}

int tutti__layer_build(tutti_layer *layer, tutti_graph *graph, int count, const tutti_sym *inputs,
                       tutti_sym *ret_outputs)
{
    tutti_building *building = graph->building;
    tutti_layer_call call = {.layer = layer,
                             .settings = layer->settings,
                             .graph = graph,
                             .input_count = count,
                             .training = building->training};
    tutti_sym lowered[64];
    if (layer->error.status != TUTTI_OK) {
        if (layer->file)
            tutti_here(layer->file, layer->line);
        tutti__poison(graph, layer->error.status, "%s", layer->error.message);
        return 0;
    }
    if (!check_inputs(&call, count) || !check_sizes(&call) || !check_step(&call))
        return 0;
    lower_inputs(building, count, inputs, lowered);
    call.inputs = lowered;
    call.mask = tutti__mask_of(building, lowered[0]);
    if (layer->kind->flags & TUTTI_LAYER_KEEPS_MASK)
        call.ret_mask = call.mask;
    if (layer->file)
        tutti_here(layer->file, layer->line);
    tutti_name_push(graph, tutti_layer_name(layer));
    tutti__region_push(graph, 0, layer->remat);
    if (layer->device)
        tutti_device_push(graph, layer->device);
    if (layer->stage != 0)
        tutti_stage_push(graph, layer->stage);
    ret_outputs[0] = layer->kind->call(&call);
    if (layer->stage != 0)
        tutti_stage_pop(graph);
    if (layer->device)
        tutti_device_pop(graph);
    tutti__region_pop(graph);
    tutti_name_pop(graph);
    if (!ret_outputs[0].node && tutti_graph_check(graph) == TUTTI_OK)
        tutti_layer_fail(&call, "its call gave no output");
    if (!ret_outputs[0].node || tutti_graph_check(graph) != TUTTI_OK)
        return 0;
    tutti__mask_set(building, ret_outputs[0], call.ret_mask);
    inspect_layer(&call, ret_outputs[0]);
    int extra = call.extra_count < TUTTI_LAYER_OUTPUTS ? call.extra_count : TUTTI_LAYER_OUTPUTS - 1;
    for (int i = 0; i < extra; i++)
        ret_outputs[1 + i] = call.extra[i];
    return 1 + extra;
}
