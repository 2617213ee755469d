/* onnx_import.c: ONNX files as models. Nodes are built in the file's order into the blueprint of a
 * functional model, each by its operator's rule. */
#include "bridge/onnx.h"

#include <string.h>

/* Everything that is missing, at once: operators, domains. */
static tutti_status check_rules(const tutti_onnx *onnx, const char *file)
{
    tutti_map missing = {0};
    tutti_text text = {0};
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; status == TUTTI_OK && i < onnx->graph.nodes.count; i++) {
        const tutti_onnx_node *node = &onnx->graph.nodes.items[i];
        bool foreign = node->domain[0] && strcmp(node->domain, "ai.onnx") != 0;
        if ((foreign || !tutti__onnx_reader(node->type)) && !tutti__map_get(&missing, node->type))
            status = tutti__map_set(&missing, node->type, (void *)node);
    }
    for (size_t i = 0; i < missing.count; i++) {
        const tutti_onnx_node *node = missing.entries[i].value;
        tutti__text_add(&text, "%s%s%s%s ('%s')", i > 0 ? ", " : "", node->domain,
                        node->domain[0] ? "." : "", node->type, node->name);
    }
    if (status == TUTTI_OK && missing.count > 0)
        status = tutti_fail(TUTTI_UNSUPPORTED,
                            "%s: these operators of ONNX are not known here (opset %lld): %s", file,
                            (long long)onnx->opset, text.data ? text.data : "");
    tutti__text_free(&text);
    tutti__map_free(&missing);
    return status;
}

static tutti_status check_file(const tutti_onnx *onnx, const char *file)
{
    if (onnx->opset < ONNX_OPSET_OLDEST || onnx->opset > ONNX_OPSET_HIGHEST)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "%s: is of opset %lld; %d to %d can be read; convert it with "
                          "onnx.version_converter",
                          file, (long long)onnx->opset, ONNX_OPSET_OLDEST, ONNX_OPSET_HIGHEST);
    if (onnx->graph.outputs.count == 0 || onnx->graph.outputs.count > 64 ||
        onnx->graph.inputs.count > 64 + onnx->graph.initializers.count)
        return tutti_fail(TUTTI_UNSUPPORTED, "%s: models have 1 to 64 inputs and outputs", file);
    return check_rules(onnx, file);
}

static tutti_status learn(tutti_onnx_import *m, const char *name, tutti_onnx_known known)
{
    tutti_onnx_known *kept = tutti__arena_take(&m->arena, sizeof *kept);
    if (!kept)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for the model", m->file);
    *kept = known;
    kept->name = name;
    if (tutti__map_get(&m->known, name))
        return tutti_fail(TUTTI_CORRUPT, "%s: '%s' is there twice", m->file, name);
    return tutti__map_set(&m->known, name, kept);
}

static tutti_status learn_input(tutti_onnx_import *m, tutti_model *model,
                                const tutti_onnx_value *input)
{
    char text[TUTTI_TYPE_TEXT];
    tutti_type type = input->type;
    if (tutti__map_get(&m->known, input->name))
        return TUTTI_OK; /* an initializer's default value */
    if (type.dtype == TUTTI_NO_DTYPE || !input->ranked || type.rank < 1)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "%s: input '%s' is %s; models take tensors whose first dimension is the "
                          "batch",
                          m->file, input->name,
                          input->ranked ? tutti_type_text(&type, text) : "of unknown dimensions");
    memmove(type.dims, type.dims + 1, sizeof type.dims - sizeof type.dims[0]);
    type.rank--;
    tutti_sym sym = (tutti_input)(model, input->name, type);
    TUTTI_TRY(tutti_model_check(model));
    return learn(m, input->name, (tutti_onnx_known){.plain = sym});
}

/* BatchNormalization's statistics are no trained weights. */
static void freeze_statistics(tutti_onnx_import *m)
{
    for (size_t i = 0; i < m->onnx->graph.nodes.count; i++) {
        m->node = &m->onnx->graph.nodes.items[i];
        for (int k = 3; strcmp(m->node->type, "BatchNormalization") == 0 && k < 5; k++) {
            tutti_onnx_known *known = tutti__onnx_input(m, k);
            if (known)
                known->frozen = true;
        }
    }
    m->node = NULL;
}

static tutti_status learn_all(tutti_onnx_import *m, tutti_model *model)
{
    const tutti_onnx_graph *graph = &m->onnx->graph;
    for (size_t i = 0; i < graph->initializers.count; i++)
        TUTTI_TRY(
            learn(m, graph->initializers.items[i].name,
                  (tutti_onnx_known){.value = graph->initializers.items[i].value, .weight = true}));
    for (size_t i = 0; i < graph->inputs.count; i++)
        TUTTI_TRY(learn_input(m, model, &graph->inputs.items[i]));
    freeze_statistics(m);
    return TUTTI_OK;
}

/* A mistake in the graph gets the name of the node in the file. */
static tutti_status build_node(tutti_onnx_import *m, const tutti_onnx_node *node)
{
    m->node = node;
    m->rule = tutti__onnx_reader(node->type);
    m->rule->read(m);
    if (m->status == TUTTI_OK && tutti_graph_check(m->graph) != TUTTI_OK)
        tutti__onnx_read_fail(m, TUTTI_INVALID, "%s", tutti_error_message());
    m->node = NULL;
    return m->status == TUTTI_OK ? TUTTI_OK : tutti__error_restore(&m->error);
}

static tutti_status name_output(tutti_onnx_import *m, tutti_model *model, const char *name)
{
    /* As a node's input, so that the order of dimensions is the file's. */
    tutti_onnx_names inputs = {.items = &name, .count = 1};
    tutti_onnx_node end = {.name = name, .type = "output", .domain = "", .inputs = inputs};
    m->node = &end;
    tutti_sym sym = tutti__onnx_sym(m, 0);
    m->node = NULL;
    if (m->status != TUTTI_OK)
        return tutti__error_restore(&m->error);
    bool made = sym.node->input_count > 0 && !tutti_sym_type(sym).handle;
    (tutti_output)(model, name, made ? sym : tutti_identity(sym));
    return tutti_model_check(model);
}

tutti_status tutti__onnx_into_model(const tutti_onnx *onnx, const char *file, tutti_model *model)
{
    tutti_onnx_import m = {.onnx = onnx, .file = file, .graph = model->blueprint};
    tutti_status status = check_file(onnx, file);
    if (status == TUTTI_OK)
        status = learn_all(&m, model);
    for (size_t i = 0; status == TUTTI_OK && i < onnx->graph.nodes.count; i++)
        status = build_node(&m, &onnx->graph.nodes.items[i]);
    for (size_t i = 0; status == TUTTI_OK && i < onnx->graph.outputs.count; i++)
        status = name_output(&m, model, onnx->graph.outputs.items[i].name);
    if (status == TUTTI_OK && model->inputs.count == 0)
        status = tutti_fail(TUTTI_UNSUPPORTED, "%s: the model has no inputs", file);
    tutti__map_free(&m.known);
    tutti__arena_free(&m.arena);
    return status;
}

tutti_model *tutti_import_onnx(tutti_job *job, const char *path)
{
    tutti_onnx *onnx = NULL;
    tutti_model *model = NULL;
    if (!tutti__job_able(job))
        return NULL;
    tutti_status status = path ? tutti__onnx_load(path, &onnx)
                               : tutti_fail(TUTTI_INVALID, "tutti_import_onnx: no path");
    if (status == TUTTI_OK) {
        const char *name = onnx->graph.name[0] ? onnx->graph.name : "onnx";
        model = (tutti_functional_of)(job, TUTTI_OPTIONS(tutti_model_options, .name = name));
        status = model ? tutti__onnx_into_model(onnx, path, model) : tutti_job_check(job);
    }
    if (status == TUTTI_OK && model) { /* weights have their values at once */
        tutti_type types[64];
        for (size_t i = 0; i < model->inputs.count && i < 64; i++)
            types[i] = model->inputs.data[i].type;
        status = tutti__model_build_batched(model, (int)model->inputs.count, types);
    }
    tutti__onnx_free(onnx);
    return tutti_job_fail(job, status) == TUTTI_OK ? model : NULL;
}
