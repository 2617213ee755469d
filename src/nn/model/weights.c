/* weights.c: making the weights for shapes that are known, and reaching their values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/plan/share.h"
#include "nn/model/model.h"
#include "nn/model/model_strategy.h"
#include "nn/training/trainer.h"
#include "ops/build.h"
#include "ops/state/state.h"
#include "tutti/layers.h"

tutti_building tutti__model_building(tutti_model *model, bool training)
{
    return (tutti_building){.model = model,
                            .training = training,
                            .prefix = "",
                            .compute = model ? model->compute : TUTTI_F32,
                            .seed = model ? tutti_job_seed(model->job) : 1};
}

/* A sequential model's blueprint, once the input is known. */
static tutti_status chain_layers(tutti_model *model, const tutti_type *type)
{
    char name[300];
    tutti_sym x = (tutti_placeholder_named)(model->blueprint, "input", *type);
    TUTTI_TRY(tutti_graph_check(model->blueprint));
    TUTTI_TRY(tutti__port_add(model, &model->inputs, "input", *type, x));
    if (model->layers.count == 0)
        return tutti_fail(TUTTI_INVALID, "model '%s' has no layers", model->name);
    for (size_t i = 0; i < model->layers.count; i++)
        x = tutti_layer_apply(model->layers.data[i], 1, &x);
    TUTTI_TRY(tutti_graph_check(model->blueprint));
    snprintf(name, sizeof name, "%s",
             tutti_layer_name(model->layers.data[model->layers.count - 1]));
    model->closed = true;
    return tutti__port_add(model, &model->outputs, name, tutti_sym_type(x), x);
}

tutti_status tutti__model_describe(tutti_model *model, int count, const tutti_type *types)
{
    if (model->sequential && model->inputs.count == 0) {
        if (count != 1)
            return tutti_fail(TUTTI_INVALID, "sequential model '%s' has one input, not %d",
                              model->name, count);
        return chain_layers(model, types);
    }
    for (int i = 0; model->kind && model->inputs.count < (size_t)count; i++) {
        char name[32];
        snprintf(name, sizeof name, i == 0 ? "input" : "input_%d", i);
        TUTTI_TRY(tutti__port_add(model, &model->inputs, name, types[i], TUTTI_NO_SYM));
    }
    if ((size_t)count != model->inputs.count)
        return tutti_fail(TUTTI_INVALID, "model '%s' has %zu inputs, it is given %d", model->name,
                          model->inputs.count, count);
    if (!model->kind && model->outputs.count == 0)
        return tutti_fail(TUTTI_INVALID, "model '%s' has no output; name one with tutti_output",
                          model->name);
    return TUTTI_OK;
}

static bool has_value(tutti_model *model, const tutti_node *variable)
{
    return tutti__state_has_value(tutti__engine_state(model->engine), tutti__state_name(variable));
}

/* The inference form in the work graph: its variables are the weights. */
tutti_status tutti__model_build_inference(tutti_model *model)
{
    tutti_sym inputs[64], outputs[64];
    size_t count = model->inputs.count;
    if (count > 64 || model->outputs.count > 64)
        return tutti_fail(TUTTI_TOO_LARGE, "a model has at most 64 inputs and outputs");
    model->fed.count = model->answers.count = 0;
    tutti__building_free(&model->inference);
    model->inference = tutti__model_building(model, false);
    model->trainable_seen = tutti__trainable_changes();
    model->graph->building = &model->inference;
    for (size_t i = 0; i < count; i++) {
        inputs[i] = (tutti_placeholder_named)(model->graph, model->inputs.data[i].name,
                                              model->inputs.data[i].type);
        inputs[i] = tutti_split_batch(inputs[i]);
        if (!TUTTI_VEC_PUSH(&model->fed, inputs[i]))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a model");
    }
    tutti_status status = tutti__model_instantiate(model, model->graph, inputs, outputs);
    model->graph->building = NULL;
    TUTTI_TRY(status);
    for (size_t i = 0; i < model->outputs.count; i++)
        if (!TUTTI_VEC_PUSH(&model->answers, outputs[i]))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a model");
    return TUTTI_OK;
}

/* A weight of a model inside begins with the value it has there, unless one waits for it. */
static tutti_status take_value(tutti_model *model, tutti_model *inner, const char *weight,
                               const char *name)
{
    const tutti_node *node = tutti_graph_find(model->graph, name);
    tutti_tensor *value;
    if (!node || !tutti__is(node, "variable") || has_value(model, node))
        return TUTTI_OK;
    TUTTI_TRY(tutti_get_weight(inner, weight, &value));
    tutti_status status =
        tutti_session_set(model->session, tutti__sym((tutti_node *)node, 0), value);
    tutti_tensor_release(value);
    return status;
}

static tutti_status take_values(tutti_model *model, tutti_model *from, const char *prefix)
{
    char name[700];
    for (size_t i = 0; i < from->layers.count; i++) {
        tutti_model *inner = tutti__layer_model(from->layers.data[i]);
        if (!inner)
            continue;
        snprintf(name, sizeof name, "%s%s/", prefix, from->layers.data[i]->name);
        if (!inner->built) {
            TUTTI_TRY(take_values(model, inner, name));
            continue;
        }
        size_t length = strlen(name);
        for (size_t k = 0; k < inner->weight_end; k++) {
            const tutti_node *node = inner->graph->nodes.data[k];
            snprintf(name + length, sizeof name - length, "%s", node->name);
            if (tutti__is(node, "variable"))
                TUTTI_TRY(take_value(model, inner, node->name, name));
        }
    }
    return TUTTI_OK;
}

/* The variables that are there are the weights. */
static tutti_status note_weights(tutti_model *model)
{
    model->weight_end = model->graph->nodes.count;
    for (size_t i = 0; i < model->weight_end; i++) {
        tutti_node *node = model->graph->nodes.data[i];
        if (tutti__is(node, "variable") && !TUTTI_VEC_PUSH(&model->weights, node))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a model");
    }
    return TUTTI_OK;
}

static tutti_status weights_build(tutti_model *model, int count, const tutti_type *types)
{
    TUTTI_TRY(tutti__model_describe(model, count, types));
    TUTTI_TRY(tutti_graph_create(&model->graph));
    TUTTI_TRY(tutti__model_engine(model));
    TUTTI_TRY(tutti__session_share(model->graph, model->engine, &model->session));
    TUTTI_TRY(tutti__model_build_inference(model));
    model->built = true;
    TUTTI_TRY(note_weights(model));
    TUTTI_TRY(tutti__goals_of_outputs(model));
    TUTTI_TRY(take_values(model, model, ""));
    return tutti__model_initialize(model);
}

tutti_status tutti__model_build_batched(tutti_model *model, int count, const tutti_type *types)
{
    TUTTI_TRY(tutti_model_check(model));
    if (model->built)
        return TUTTI_OK;
    tutti_type open[64];
    if (count < 1 || count > 64)
        return tutti__model_fail(model, tutti_fail(TUTTI_INVALID, "a model has 1 to 64 inputs"));
    for (int i = 0; i < count; i++) {
        open[i] = types[i];
        if (types[i].rank < 1)
            return tutti__model_fail(
                model, tutti_fail(TUTTI_INVALID, "input %d is a scalar: it has no batch", i));
        open[i].dims[0] = TUTTI_ANY;
    }
    return tutti__model_fail(model, weights_build(model, count, open));
}

/* The input that a sequential model's first layer asks for, batch first. */
static bool first_shape(const tutti_model *model, tutti_type *ret)
{
    const tutti_layer *first = model->layers.count > 0 ? model->layers.data[0] : NULL;
    if (!model->sequential || !first || strcmp(first->kind->name, "input") != 0)
        return false;
    const tutti_input_settings *s = first->settings;
    if (s->rank < 0 || s->rank >= TUTTI_MAX_RANK)
        return false;
    *ret = (tutti_type){.dtype = s->dtype ? (tutti_dtype)s->dtype : TUTTI_F32,
                        .rank = (int32_t)s->rank + 1,
                        .dims = {TUTTI_ANY}};
    memcpy(ret->dims + 1, s->dims, (size_t)s->rank * sizeof(int64_t));
    return true;
}

tutti_status tutti__model_need_built(tutti_model *model)
{
    tutti_type types[64];
    TUTTI_TRY(tutti_model_check(model));
    if (model->built)
        return TUTTI_OK;
    size_t count = model->inputs.count;
    for (size_t i = 0; i < count && i < 64; i++)
        types[i] = model->inputs.data[i].type;
    if (count == 0 && first_shape(model, &types[0]))
        count = 1;
    if (count == 0 || count > 64)
        return tutti_fail(TUTTI_UNINITIALIZED,
                          "model '%s' has no weights yet: its input's shape is not known; begin "
                          "it with tutti_input_shape, call tutti_build, or give it data",
                          model->name);
    return tutti__model_build_batched(model, (int)count, types);
}

tutti_status(tutti_build)(tutti_model *model, int count, const tutti_type *types)
{
    tutti_type batched[64];
    TUTTI_TRY(tutti_model_check(model));
    if (count == 0) {
        TUTTI_TRY(tutti__model_fail(model, tutti__model_need_built(model)));
        return tutti__model_fail(model, tutti__model_declare(model));
    }
    for (int i = 0; i < count && i < 64; i++) {
        batched[i] = types[i];
        if (types[i].rank >= TUTTI_MAX_RANK)
            return tutti__model_fail(model, tutti_fail(TUTTI_INVALID, "too many dimensions"));
        memmove(batched[i].dims + 1, types[i].dims, sizeof types[i].dims - sizeof types[i].dims[0]);
        batched[i].rank = types[i].rank + 1;
    }
    TUTTI_TRY(tutti__model_build_batched(model, count, batched));
    return tutti__model_fail(model, tutti__model_declare(model));
}

/* ---- values ---- */

/* What an earlier run has initialised is not asked for again: where stages stand in other
 * processes, the state of this one does not have it, and all of them have to run the same. */
tutti_status tutti__model_initialize(tutti_model *model)
{
    tutti_graph *graph = model->graph;
    TUTTI_TRY(tutti_graph_check(graph));
    tutti_sym *targets = calloc(graph->nodes.count + 1, sizeof *targets);
    int count = 0;
    if (!targets)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to initialise a model");
    for (size_t i = model->initialized; i < graph->nodes.count; i++) {
        tutti_node *node = graph->nodes.data[i];
        if (!node->dead && tutti__is(node, "assign") && tutti__int(node, "initializer") &&
            !has_value(model, node->inputs[0].node))
            targets[count++] = tutti__sym(node, 0);
    }
    tutti_status status = TUTTI_OK;
    if (count > 0)
        status = tutti_run(model->session, .targets = {count, targets});
    if (status == TUTTI_OK)
        model->initialized = graph->nodes.count;
    free(targets);
    return status;
}

int tutti_weight_count(tutti_model *model)
{
    return tutti__model_need_built(model) == TUTTI_OK ? (int)model->weights.count : 0;
}

tutti_status tutti_weight_at(tutti_model *model, int index, tutti_weight_info *ret_info)
{
    if (!model || index < 0 || (size_t)index >= model->weights.count)
        return tutti_fail(TUTTI_OUT_OF_RANGE, "the model has no weight %d", index);
    TUTTI_TRY(tutti__trainable_refresh(model));
    const tutti_node *node = model->weights.data[index];
    *ret_info = (tutti_weight_info){.name = node->name,
                                    .type = node->types[0],
                                    .trainable = tutti__int(node, "trainable") != 0};
    ret_info->type.handle = false;
    return TUTTI_OK;
}

static tutti_status find_weight(tutti_model *model, const char *name, tutti_node **ret)
{
    TUTTI_TRY(tutti__model_need_built(model));
    tutti_node *node = tutti_graph_find(model->graph, name);
    if (!node || !tutti__is(node, "variable"))
        return tutti_fail(TUTTI_NOT_FOUND, "model '%s' has no weight '%s'", model->name, name);
    *ret = node;
    return TUTTI_OK;
}

tutti_status tutti_get_weight(tutti_model *model, const char *name, tutti_tensor **ret_value)
{
    tutti_node *node;
    tutti_state_variable *found;
    TUTTI_TRY(find_weight(model, name, &node));
    TUTTI_TRY(tutti__session_variable(model->session, tutti__sym(node, 0), &found));
    /* Not tutti_session_get: of a variable that nothing puts together the first replica's value is
     * saved, as in checkpoints. */
    return tutti__engine_get(model->engine, found, ret_value);
}

tutti_status tutti_set_weight(tutti_model *model, const char *name, tutti_tensor *value)
{
    tutti_node *node;
    TUTTI_TRY(find_weight(model, name, &node));
    return tutti_session_set(model->session, tutti__sym(node, 0), value);
}
