/* apply.c: a model inside other graphs: on tapes, in sessions, as a layer of another model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/require.h"
#include "exec/plan/share.h"
#include "nn/model/model.h"
#include "nn/model/model_strategy.h"
#include "ops/build.h"
#include "tutti/inspect.h"

static tutti_status apply(tutti_model *model, tutti_graph *graph, int count,
                          const tutti_sym *inputs, bool training, tutti_sym *ret_outputs)
{
    tutti_type types[64];
    TUTTI_TRY(tutti_graph_check(graph));
    for (int i = 0; i < count && i < 64; i++) {
        TUTTI_TRY(tutti__sym_usable(graph, inputs[i], "tutti_apply: input", i));
        types[i] = tutti_sym_type(inputs[i]);
    }
    TUTTI_TRY(tutti__model_build_batched(model, count, types));
    if ((size_t)count != model->inputs.count)
        return tutti_fail(TUTTI_INVALID, "model '%s' has %zu inputs, it is given %d", model->name,
                          model->inputs.count, count);
    tutti_building building = tutti__model_building(model, training);
    void *before = graph->building;
    graph->building = &building;
    tutti_status status = tutti__model_instantiate(model, graph, inputs, ret_outputs);
    graph->building = before;
    building.prefix = "";
    tutti__building_free(&model->applied);
    model->applied = building;
    model->applied_to = graph;
    model->applied_generation = graph->generation;
    return status;
}

const tutti_building *tutti__last_applied(const tutti_model *model, const tutti_graph *graph)
{
    return model->applied_to == graph && model->applied_generation == graph->generation
               ? &model->applied
               : NULL;
}

tutti_sym(tutti_model_losses)(tutti_model *model, tutti_sym like)
{
    tutti_graph *graph = tutti_sym_graph(like);
    if (!model || !graph)
        return TUTTI_NO_SYM;
    const tutti_building *noted = tutti__last_applied(model, graph);
    tutti_sym sum = TUTTI_NO_SYM;
    if (!noted)
        return tutti__poison(
            graph, TUTTI_INVALID,
            "tutti_model_losses: model '%s' was not applied in this step, or graph; "
            "call tutti_apply first",
            model->name);
    for (size_t i = 0; i < noted->added.count; i++) {
        if (!noted->added.data[i].loss)
            continue;
        tutti_sym term = tutti__added_value(&noted->added.data[i], false);
        sum = sum.node ? tutti_add(sum, term) : term;
    }
    return sum.node ? sum : tutti_scalar(graph, TUTTI_F32, 0);
}

tutti_status tutti_apply_many(tutti_model *model, int input_count, const tutti_sym *inputs,
                              bool training, int output_count, tutti_sym *ret_outputs)
{
    tutti_sym outputs[64] = {TUTTI_NO_SYM};
    TUTTI_TRY(tutti_model_check(model));
    tutti_graph *graph = input_count > 0 ? tutti_sym_graph(inputs[0]) : NULL;
    if (!graph)
        return tutti_fail(TUTTI_INVALID, "tutti_apply: the input is not a symbol");
    tutti_status status = apply(model, graph, input_count, inputs, training, outputs);
    if (status != TUTTI_OK && tutti_graph_check(graph) == TUTTI_OK)
        tutti__poison(graph, status, "%s", tutti_error_message());
    TUTTI_TRY(status);
    for (int i = 0; i < output_count; i++)
        ret_outputs[i] = i < (int)model->outputs.count ? outputs[i] : TUTTI_NO_SYM;
    return TUTTI_OK;
}

tutti_sym tutti_apply_with(tutti_model *model, tutti_sym x, const tutti_apply_options *options)
{
    tutti_sym y = TUTTI_NO_SYM;
    if (tutti_apply_many(model, 1, &x, options && options->training, 1, &y) != TUTTI_OK)
        return TUTTI_NO_SYM;
    return y;
}

/* Between two steps the tape's graph has handles only. */
static bool is_between_steps(const tutti_graph *graph)
{
    for (size_t i = 0; i < graph->nodes.count; i++)
        if (!graph->nodes.data[i]->dead && !(graph->nodes.data[i]->op->flags & TUTTI_OP_HANDLE))
            return false;
    return true;
}

tutti_status tutti__model_declare(tutti_model *model)
{
    tutti_sym inputs[64], outputs[64];
    if (!model->built || !model->eager || !is_between_steps(tutti_eager_graph(model->eager)))
        return TUTTI_OK;
    for (size_t i = 0; i < model->inputs.count && i < 64; i++)
        inputs[i] =
            (tutti_placeholder)(tutti_eager_graph(model->eager), model->inputs.data[i].type);
    tutti_status status = apply(model, tutti_eager_graph(model->eager), (int)model->inputs.count,
                                inputs, false, outputs);
    tutti_status ended = tutti_eager_step(model->eager); /* of it only the variables stay */
    return status == TUTTI_OK ? ended : status;
}

static tutti_status open_eager(tutti_model *model)
{
    TUTTI_TRY(tutti__model_engine(model));
    TUTTI_TRY(tutti__eager_share(model->engine, &model->eager));
    return tutti__model_declare(model);
}

tutti_eager *tutti_model_eager(tutti_model *model)
{
    if (tutti_model_check(model) != TUTTI_OK)
        return NULL;
    if (!model->eager && tutti__model_fail(model, open_eager(model)) != TUTTI_OK)
        return NULL;
    return model->eager;
}

tutti_status tutti_model_inspected(tutti_model *model, const char *name, tutti_tensor **ret_value)
{
    TUTTI_REQUIRE(model);
    TUTTI_REQUIRE(name);
    TUTTI_REQUIRE(ret_value);
    tutti_status status = tutti_inspected(model->graph, name, ret_value);
    if (status == TUTTI_NOT_FOUND && model->eager)
        status = tutti_inspected(tutti_eager_graph(model->eager), name, ret_value);
    return status;
}

/* ---- a model as a layer ---- */

typedef struct model_settings {
    TUTTI_LAYER_SETTINGS
    tutti_model *model;
} model_settings;

static tutti_sym call_model(tutti_layer_call *call)
{
    const model_settings *s = call->settings;
    tutti_building *outer = call->graph->building;
    tutti_sym outputs[64] = {TUTTI_NO_SYM};
    tutti_type types[64];
    char prefix[512];
    for (int i = 0; i < call->input_count; i++)
        types[i] = tutti_sym_type(call->inputs[i]);
    if (tutti__model_describe(s->model, call->input_count, types) != TUTTI_OK)
        return tutti_layer_fail(call, "%s", tutti_error_message());
    tutti_building inner = *outer;
    snprintf(prefix, sizeof prefix, "%s%s/", outer->prefix, tutti_layer_name(call->layer));
    inner.prefix = prefix;
    inner.model = s->model;
    inner.records = false;
    inner.around = outer;
    inner.stands = call->layer;
    call->graph->building = &inner;
    tutti_status status = tutti__model_instantiate(s->model, call->graph, call->inputs, outputs);
    inner.prefix = outer->prefix;
    inner.model = outer->model;
    inner.records = outer->records;
    inner.around = outer->around;
    inner.stands = outer->stands;
    *outer = inner; /* the lists have grown */
    call->graph->building = outer;
    if (status != TUTTI_OK)
        return tutti_graph_check(call->graph) == TUTTI_OK
                   ? tutti_layer_fail(call, "%s", tutti_error_message())
                   : TUTTI_NO_SYM;
    int count = (int)s->model->outputs.count;
    for (int i = 1; i < count && i < TUTTI_LAYER_OUTPUTS; i++)
        call->extra[call->extra_count++] = outputs[i];
    return outputs[0];
}

static const tutti_field model_fields[] = {TUTTI_CODE_FIELD(model_settings, model), {0}};

static const tutti_layer_kind model_kind = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "model",
    .doc = "model(): another model, whole",
    .settings_size = sizeof(model_settings),
    .fields = model_fields,
    .min_inputs = 1,
    .max_inputs = -1,
    .flags = TUTTI_LAYER_EACH_STEP, /* its layers are asked */
    .call = call_model,
};

tutti_layer *tutti__model_layer_named(tutti_model *model, const char *name)
{
    return (tutti_layer_custom)(&model_kind,
                                TUTTI_OPTIONS(model_settings, .name = name, .model = model));
}

tutti_layer *tutti_model_layer(tutti_model *model)
{
    return model ? tutti__model_layer_named(model, model->name) : NULL;
}

tutti_model *tutti__layer_model(const tutti_layer *layer)
{
    return layer->kind == &model_kind ? ((const model_settings *)layer->settings)->model : NULL;
}
