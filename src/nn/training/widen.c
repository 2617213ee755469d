/* widen.c: batches of other shapes than the first. A model is built for the shapes that it sees
 * first; a dimension that comes in another size later (the time of padded sequences) becomes
 * unknown, and what was built is built again. Each dimension does so once at most. */
#include <stdlib.h>
#include <string.h>

#include "nn/training/trainer.h"

bool tutti__type_widen(tutti_type *type, const tutti_type *seen)
{
    bool changed = false;
    if (type->dtype != seen->dtype || type->rank != seen->rank)
        return false;
    for (int i = 1; i < type->rank; i++)
        if (type->dims[i] != TUTTI_ANY && type->dims[i] != seen->dims[i]) {
            type->dims[i] = TUTTI_ANY;
            changed = true;
        }
    return changed;
}

/* Can the model be built for these types? In a graph that is thrown away. */
static tutti_status try_types(tutti_model *model, int count, const tutti_type *types)
{
    tutti_building trial = tutti__model_building(model, false);
    tutti_sym inputs[64], outputs[64];
    tutti_graph *graph;
    TUTTI_TRY(tutti_graph_create(&graph));
    graph->building = &trial;
    for (int i = 0; i < count; i++)
        inputs[i] = (tutti_placeholder)(graph, types[i]);
    tutti_status status = tutti__model_instantiate(model, graph, inputs, outputs);
    tutti__building_free(&trial);
    tutti_graph_destroy(graph);
    return status;
}

static tutti_status widen_refuse(const tutti_model *model, int input, const tutti_type *seen)
{
    char got[TUTTI_TYPE_TEXT], wanted[TUTTI_TYPE_TEXT];
    const tutti_port *port = &model->inputs.data[input];
    return tutti_fail(TUTTI_INVALID, "model '%s': input '%s' is %s, it takes %s", model->name,
                      port->name, tutti_type_text(seen, got), tutti_type_text(&port->type, wanted));
}

tutti_status tutti__model_widen(tutti_model *model, int count, tutti_tensor *const *tensors)
{
    tutti_type types[64];
    int first = -1;
    if (count > 64 || (size_t)count != model->inputs.count)
        return tutti_fail(TUTTI_INVALID, "model '%s' has %zu inputs, it is given %d", model->name,
                          model->inputs.count, count);
    for (int i = 0; i < count; i++) {
        const tutti_type *seen = tutti_tensor_type(tensors[i]);
        types[i] = model->inputs.data[i].type;
        if (types[i].dtype != seen->dtype || types[i].rank != seen->rank)
            return widen_refuse(model, i, seen);
        if (tutti__type_widen(&types[i], seen) && first < 0)
            first = i;
    }
    if (first < 0)
        return TUTTI_OK;
    if (try_types(model, count, types) != TUTTI_OK)
        return widen_refuse(model, first, tutti_tensor_type(tensors[first]));
    for (int i = 0; i < count; i++)
        model->inputs.data[i].type = types[i];
    return tutti__model_build_inference(model);
}

tutti_status tutti__step_function_types(const tutti_model *model,
                                        const tutti_step_function *function, int count,
                                        tutti_tensor *const *tensors, tutti_type *ret_types,
                                        bool *ret_new)
{
    int inputs = (int)model->inputs.count;
    char got[TUTTI_TYPE_TEXT], wanted[TUTTI_TYPE_TEXT];
    *ret_new = !function->built;
    for (int i = 0; i < count; i++) {
        const tutti_type *seen = tutti_tensor_type(tensors[i]);
        tutti_type before = function->built ? function->feeds.data[i].node->types[0] : *seen;
        const char *what = i < inputs + (int)model->trainer->goals.count ? "targets" : "weights";
        if (seen->rank < 1)
            return tutti_fail(TUTTI_INVALID,
                              "component %d of the data is a scalar: it has no batch; join "
                              "examples with tutti_batch",
                              i);
        if (before.dtype != seen->dtype || before.rank != seen->rank)
            return tutti_fail(TUTTI_INVALID, "model '%s': the %s are %s, those before were %s",
                              model->name, what, tutti_type_text(seen, got),
                              tutti_type_text(&before, wanted));
        ret_types[i] = i < inputs ? model->inputs.data[i].type : before;
        ret_types[i].dims[0] = TUTTI_ANY;
        if (i >= inputs)
            tutti__type_widen(&ret_types[i], seen);
        *ret_new = *ret_new || !tutti_type_equal(&ret_types[i], &before);
    }
    return TUTTI_OK;
}

void tutti__step_function_drop(tutti_step_function *function)
{
    TUTTI_VEC_FREE(&function->feeds);
    tutti__building_free(&function->building);
    memset(function, 0, sizeof *function);
}
