/* onnx_import.c: ONNX files as graphs and models. Nodes are built in the file's order, each by its
 * operator's rule. */
#include "bridge/onnx.h"

#include <stdio.h>
#include <string.h>

/* Makes the symbol of an input; poison or TUTTI_NO_SYM after a failure. */
typedef tutti_sym input_fn(tutti_onnx_import *m, const tutti_onnx_value *input, void *context);

static bool is_known(const tutti_onnx_import *m, const char *name)
{
    return tutti__map_get(&m->known, name) != NULL;
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

static void learn_all(tutti_onnx_import *m, input_fn *make, void *context)
{
    const tutti_onnx_graph *graph = &m->onnx->graph;
    for (size_t i = 0; m->status == TUTTI_OK && i < graph->initializers.count; i++)
        tutti__onnx_learn(m, graph->initializers.items[i].name,
                          (tutti_onnx_known){.value = graph->initializers.items[i].value,
                                             .element = graph->initializers.items[i].element,
                                             .weight = true});
    for (size_t i = 0; m->status == TUTTI_OK && i < graph->inputs.count; i++) {
        const tutti_onnx_value *input = &graph->inputs.items[i];
        if (is_known(m, input->name))
            continue; /* an initializer's default value */
        tutti_sym sym = make(m, input, context);
        if (m->status == TUTTI_OK)
            tutti__onnx_learn(m, input->name,
                              (tutti_onnx_known){.plain = sym, .element = input->element});
    }
    freeze_statistics(m);
}

/* What is not supported, found while the nodes were built. */
static void check_needs(tutti_onnx_import *m)
{
    if (m->status == TUTTI_OK && m->need_count > 0) {
        m->status = tutti_fail(TUTTI_UNSUPPORTED, "%s", m->needs.data ? m->needs.data : m->file);
        tutti__error_capture(m->status, &m->error);
    }
}

static void onnx_import_begin(tutti_onnx_import *m, input_fn *make, void *context)
{
    m->root = m;
    m->opset = m->onnx->opset;
    m->missing = tutti__arena_take(&m->arena, sizeof *m->missing);
    if (!m->missing)
        tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
    tutti_status status = tutti__onnx_check_needs(m->onnx, m->file);
    if (status == TUTTI_OK &&
        (m->onnx->graph.outputs.count == 0 || m->onnx->graph.outputs.count > 64 ||
         m->onnx->graph.inputs.count > 64 + m->onnx->graph.initializers.count))
        status =
            tutti_fail(TUTTI_UNSUPPORTED, "%s: models have 1 to 64 inputs and outputs", m->file);
    if (status != TUTTI_OK && m->status == TUTTI_OK) {
        m->status = status;
        tutti__error_capture(status, &m->error);
    }
    if (m->status == TUTTI_OK)
        learn_all(m, make, context);
    const tutti_onnx_node *nodes;
    size_t count;
    if (m->status == TUTTI_OK &&
        tutti__onnx_live(&m->onnx->graph, &m->arena, &count, &nodes) != TUTTI_OK)
        tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
    if (m->status == TUTTI_OK)
        tutti__onnx_build_nodes(m, count, nodes);
    check_needs(m);
}

static tutti_status end(tutti_onnx_import *m)
{
    tutti_status status = m->status == TUTTI_OK ? TUTTI_OK : tutti__error_restore(&m->error);
    for (size_t i = 0; i < m->made.count; i++)
        tutti_tensor_release(m->made.data[i]);
    TUTTI_VEC_FREE(&m->made);
    tutti__text_free(&m->needs);
    tutti__map_free(&m->known);
    tutti__arena_free(&m->arena);
    return status;
}

/* Hands one output on: give(m, context, name, symbol). */
typedef void output_fn(tutti_onnx_import *m, void *context, const char *name, tutti_sym sym);

/* Of a list that is known each tensor is an output: 'y.0', 'y.1', …. */
static void each_output(tutti_onnx_import *m, const char *name, output_fn *give, void *context)
{
    char own[512];
    tutti_onnx_known *known = tutti__onnx_find(m, name);
    if (!known) {
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "output '%s' is made by nobody", name);
        return;
    }
    if (known->shapes.node)
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED,
                              "output '%s' is a list whose length is known only when it runs; join "
                              "its tensors in the model (ConcatFromSequence)",
                              name);
    size_t count = known->sequence ? known->item_count : 1;
    for (size_t i = 0; m->status == TUTTI_OK && i < count; i++) {
        tutti_onnx_known *item = known->sequence ? known->items[i] : known;
        tutti_sym sym = tutti__onnx_symbol(m, item);
        snprintf(own, sizeof own, "%s.%zu", name, i);
        if (m->status == TUTTI_OK)
            give(m, context, known->sequence ? own : name, sym);
    }
}

/* ---- models ---- */

static tutti_sym model_input(tutti_onnx_import *m, const tutti_onnx_value *input, void *context)
{
    char text[TUTTI_TYPE_TEXT];
    tutti_model *model = context;
    tutti_type type = input->type;
    if (type.dtype == TUTTI_NO_DTYPE || !input->ranked || type.rank < 1) {
        tutti__onnx_read_fail(
            m, TUTTI_UNSUPPORTED,
            "input '%s' is %s; models take tensors whose first dimension is the "
            "batch; others are imported by tutti_import_graph_onnx",
            input->name, input->ranked ? tutti_type_text(&type, text) : "of unknown dimensions");
        return TUTTI_NO_SYM;
    }
    memmove(type.dims, type.dims + 1, sizeof type.dims - sizeof type.dims[0]);
    type.rank--;
    tutti_sym sym = (tutti_input)(model, input->name, type);
    tutti_status status = tutti_model_check(model);
    if (status != TUTTI_OK)
        tutti__onnx_read_fail(m, status, "%s", tutti_error_message());
    return sym;
}

static void name_output(tutti_onnx_import *m, void *context, const char *name, tutti_sym sym)
{
    tutti_model *model = context;
    bool made = sym.node->input_count > 0 && !tutti_sym_type(sym).handle;
    (tutti_output)(model, name, made ? sym : tutti_identity(sym));
    tutti_status status = tutti_model_check(model);
    if (status != TUTTI_OK)
        tutti__onnx_read_fail(m, status, "output '%s': %s", name, tutti_error_message());
}

tutti_status tutti__onnx_into_model(const tutti_onnx *onnx, const char *file, tutti_model *model)
{
    tutti_onnx_import m = {.onnx = onnx,
                           .file = file,
                           .graph = model->blueprint,
                           .model = model,
                           .compute = model->compute};
    onnx_import_begin(&m, model_input, model);
    for (size_t i = 0; m.status == TUTTI_OK && i < onnx->graph.outputs.count; i++)
        each_output(&m, onnx->graph.outputs.items[i].name, name_output, model);
    if (m.status == TUTTI_OK && model->inputs.count == 0)
        tutti__onnx_read_fail(&m, TUTTI_UNSUPPORTED,
                              "the model has no inputs; tutti_import_graph_onnx takes such ones");
    return end(&m);
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
        model = (tutti_functional_with)(job, TUTTI_OPTIONS(tutti_model_options, .name = name));
        status = model ? tutti__onnx_into_model(onnx, path, model) : tutti_job_check(job);
    }
    if (status == TUTTI_OK && model) { /* weights have their values at once */
        tutti_type types[64];
        for (size_t i = 0; i < model->inputs.count && i < 64; i++)
            types[i] = model->inputs.data[i].type;
        status = tutti__model_build_batched(model, (int)model->inputs.count, types);
        if (status == TUTTI_OK)
            model->settled = tutti__engine_constants(model->engine);
    }
    tutti__onnx_free(onnx);
    return tutti_job_fail(job, status) == TUTTI_OK ? model : NULL;
}

/* ---- graphs ---- */

static tutti_sym graph_input(tutti_onnx_import *m, const tutti_onnx_value *input, void *context)
{
    tutti_type type = input->type;
    (void)context;
    for (size_t i = 0; !input->ranked && i < m->given_count; i++)
        if (strcmp(m->given[i].name, input->name) == 0)
            type = *tutti_tensor_type(m->given[i].value);
    for (int i = 0; input->ranked && i < (int)m->given_count; i++)
        if (strcmp(m->given[i].name, input->name) == 0 &&
            tutti_tensor_rank(m->given[i].value) != type.rank)
            type = *tutti_tensor_type(m->given[i].value); /* the file's rank is wrong */
    if (type.dtype == TUTTI_NO_DTYPE || (!input->ranked && m->given_count == 0))
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "input '%s' is of unknown dimensions",
                              input->name);
    return (tutti_placeholder)(m->graph, type);
}

static const char *kept_name(tutti_onnx_import *m, const char *name)
{
    char *copy = tutti__arena_take(&m->graph->arena, strlen(name) + 1);
    if (!copy) {
        tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
        return "";
    }
    memcpy(copy, name, strlen(name) + 1);
    return copy;
}

/* Ports that grow as outputs are found. */
typedef ONNX_LIST(tutti_onnx_port) port_list;

static void add_port(tutti_onnx_import *m, void *context, const char *name, tutti_sym sym)
{
    tutti_onnx_port *port = ONNX_PUSH(&m->graph->arena, (port_list *)context);
    if (!port)
        tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
    else
        *port = (tutti_onnx_port){kept_name(m, name),
                                  tutti_sym_type(sym).handle ? tutti_read(sym) : sym};
}

static void give_ports(tutti_onnx_import *m, tutti_onnx_ports *ret)
{
    const tutti_onnx_graph *graph = &m->onnx->graph;
    port_list inputs = {0}, outputs = {0};
    for (size_t i = 0; m->status == TUTTI_OK && i < graph->inputs.count; i++) {
        const tutti_onnx_known *known = tutti__onnx_find(m, graph->inputs.items[i].name);
        if (known && !known->weight)
            add_port(m, &inputs, graph->inputs.items[i].name, known->plain);
    }
    for (size_t i = 0; m->status == TUTTI_OK && i < graph->outputs.count; i++)
        each_output(m, graph->outputs.items[i].name, add_port, &outputs);
    if (m->status == TUTTI_OK)
        *ret = (tutti_onnx_ports){.inputs = inputs.items,
                                  .outputs = outputs.items,
                                  .input_count = (int)inputs.count,
                                  .output_count = (int)outputs.count};
}

tutti_status tutti__onnx_into_graph(const tutti_onnx *onnx, const char *file, tutti_graph *graph,
                                    const tutti_onnx_graph_options *options,
                                    tutti_onnx_ports *ret_ports)
{
    tutti_onnx_import m = {.onnx = onnx,
                           .file = file,
                           .graph = graph,
                           .constants = options->constants,
                           .given_count = (size_t)options->given_count,
                           .given = options->given};
    onnx_import_begin(&m, graph_input, NULL);
    if (m.status == TUTTI_OK)
        give_ports(&m, ret_ports);
    return end(&m);
}

tutti_status tutti_import_graph_onnx_with(tutti_graph *graph, const char *path,
                                          tutti_onnx_ports *ret_ports,
                                          const tutti_onnx_graph_options *options)
{
    tutti_onnx_graph_options all = {0};
    tutti_onnx *onnx;
    size_t size = options ? options->struct_size : 0;
    if (!graph || !path || !ret_ports)
        return tutti_fail(TUTTI_INVALID, "tutti_import_graph_onnx: no graph, path or ports");
    if (options)
        memcpy(&all, options, size < sizeof all ? size : sizeof all);
    TUTTI_TRY(tutti__onnx_load(path, &onnx));
    tutti_status status = tutti__onnx_into_graph(onnx, path, graph, &all, ret_ports);
    tutti__onnx_free(onnx);
    return status;
}
