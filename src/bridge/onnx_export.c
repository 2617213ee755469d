/* onnx_export.c: graphs and models as ONNX.
 *
 * Every node that the outputs need is written by its operator's rule, inputs before their users.
 * What no output needs in the end (parts that a rule took into a larger node) is dropped, and the
 * outputs take their own names. */
#include "bridge/onnx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/world.h"

typedef struct wish {
    int opset;
    const char *name;
    int input_count, output_count;
    const tutti_onnx_port *inputs, *outputs;
} wish;

/* ---- what is to be written ---- */

static bool is_fed(const wish *w, const tutti_node *node)
{
    for (int i = 0; i < w->input_count; i++)
        if (w->inputs[i].sym.node == node)
            return true;
    return false;
}

static tutti_status onnx_export_prepare(tutti_onnx_export *x, const wish *w)
{
    size_t count = x->graph->nodes.count, total = 0;
    x->needed = calloc(count + 1, sizeof *x->needed);
    x->start = calloc(count + 1, sizeof *x->start);
    if (!x->needed || !x->start)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to export a model");
    for (size_t i = 0; i < count; i++) {
        x->start[i] = total;
        total += (size_t)x->graph->nodes.data[i]->output_count;
    }
    x->edges = calloc(total + 1, sizeof *x->edges);
    if (!x->edges)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to export a model");
    for (int i = 0; i < w->output_count; i++) {
        x->needed[w->outputs[i].sym.node->id] = !is_fed(w, w->outputs[i].sym.node);
        x->edges[x->start[w->outputs[i].sym.node->id] + w->outputs[i].sym.index].uses++;
    }
    for (size_t n = count; n-- > 0;) {
        const tutti_node *node = x->graph->nodes.data[n];
        for (int i = 0; x->needed[n] && i < node->input_count; i++) {
            x->needed[node->inputs[i].node->id] = !is_fed(w, node->inputs[i].node);
            x->edges[x->start[node->inputs[i].node->id] + node->inputs[i].index].uses++;
        }
    }
    return TUTTI_OK;
}

/* Names all operators without a rule at once. */
static tutti_status check_rules(const tutti_onnx_export *x)
{
    tutti_map missing = {0};
    tutti_text text = {0};
    tutti_status status = TUTTI_OK;
    for (size_t n = 0; status == TUTTI_OK && n < x->graph->nodes.count; n++) {
        const tutti_node *node = x->graph->nodes.data[n];
        if (x->needed[n] && !tutti__onnx_writer(node->op->name) &&
            !tutti__map_get(&missing, node->op->name))
            status = tutti__map_set(&missing, node->op->name, (void *)node->name);
    }
    for (size_t i = 0; i < missing.count; i++)
        tutti__text_add(&text, "%s%s ('%s')", i > 0 ? ", " : "", missing.entries[i].key,
                        (const char *)missing.entries[i].value);
    if (status == TUTTI_OK && missing.count > 0)
        status = tutti_fail(TUTTI_UNSUPPORTED, "no form in ONNX is known for the operators %s",
                            text.data ? text.data : "");
    tutti__text_free(&text);
    tutti__map_free(&missing);
    return status;
}

/* ---- inputs and outputs ---- */

static tutti_status fill_value(tutti_onnx_export *x, tutti_onnx_value *value, const char *name,
                               tutti_type type, bool input)
{
    tutti_arena *arena = &x->onnx->arena;
    if (!value)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to export a model");
    type.dtype = tutti__onnx_written(type.dtype);
    if (tutti__onnx_dtype(type.dtype) == 0 || type.dtype == TUTTI_STRING)
        return tutti_fail(TUTTI_UNSUPPORTED, "'%s' is of %s, which cannot be exported", name,
                          tutti_dtype_name(type.dtype));
    *value =
        (tutti_onnx_value){.name = tutti__arena_string(arena, name), .type = type, .ranked = true};
    for (int i = 0; i < type.rank; i++) {
        if (type.dims[i] >= 0)
            continue;
        if (i == 0)
            value->names[i] = "batch";
        else if (input)
            value->names[i] = tutti__arena_format(arena, "%s_%d", name, i);
    }
    return value->name ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory to export a model");
}

static tutti_status take_name(tutti_onnx_export *x, const char *name)
{
    if (tutti__map_get(&x->names, name))
        return tutti_fail(TUTTI_EXISTS, "two inputs or outputs are called '%s'", name);
    return tutti__map_set(&x->names, name, x);
}

static tutti_status open_ports(tutti_onnx_export *x, const wish *w)
{
    tutti_onnx_graph *graph = &x->onnx->graph;
    for (int i = 0; i < w->output_count; i++)
        TUTTI_TRY(take_name(x, w->outputs[i].name));
    for (int i = 0; i < w->input_count; i++) {
        tutti_sym sym = w->inputs[i].sym;
        tutti_onnx_value *value = ONNX_PUSH(&x->onnx->arena, &graph->inputs);
        TUTTI_TRY(fill_value(x, value, w->inputs[i].name, tutti_sym_type(sym), true));
        TUTTI_TRY(take_name(x, value->name));
        x->edges[x->start[sym.node->id] + sym.index].plain = value->name;
    }
    return TUTTI_OK;
}

static bool is_input(const tutti_onnx_graph *graph, const char *name)
{
    for (size_t i = 0; i < graph->inputs.count; i++)
        if (strcmp(graph->inputs.items[i].name, name) == 0)
            return true;
    return false;
}

static void rename_all(tutti_onnx_graph *graph, const char *from, const char *to)
{
    for (size_t n = 0; n < graph->nodes.count; n++) {
        tutti_onnx_node *node = &graph->nodes.items[n];
        for (size_t i = 0; i < node->inputs.count; i++)
            if (strcmp(node->inputs.items[i], from) == 0)
                node->inputs.items[i] = to;
        for (size_t i = 0; i < node->outputs.count; i++)
            if (strcmp(node->outputs.items[i], from) == 0)
                node->outputs.items[i] = to;
    }
}

/* Whether a node makes that value and no output has taken it yet. */
static bool is_free(const tutti_onnx_graph *graph, const char *name)
{
    if (is_input(graph, name))
        return false;
    for (size_t i = 0; i < graph->outputs.count; i++)
        if (strcmp(graph->outputs.items[i].name, name) == 0)
            return false;
    for (size_t n = 0; n < graph->nodes.count; n++)
        for (size_t i = 0; i < graph->nodes.items[n].outputs.count; i++)
            if (strcmp(graph->nodes.items[n].outputs.items[i], name) == 0)
                return true;
    return false;
}

static tutti_status close_port(tutti_onnx_export *x, const tutti_onnx_port *port)
{
    tutti_onnx_graph *graph = &x->onnx->graph;
    tutti_edge edge = tutti__edge(port->sym);
    /* An identity stands for the output: its input is the edge in our order. */
    tutti_node end = {
        .name = port->name, .op = tutti_op_find("identity"), .inputs = &edge, .input_count = 1};
    tutti_onnx_value value;
    TUTTI_TRY(fill_value(x, &value, port->name, tutti_sym_type(port->sym), false));
    x->node = &end;
    const char *name = tutti__onnx_in(x, 0);
    if (x->status == TUTTI_OK && !is_free(graph, name))
        name = ONNX(x, "Identity", name);
    x->node = NULL;
    TUTTI_TRY(x->status);
    rename_all(graph, name, value.name);
    for (size_t i = 0; i < graph->nodes.count; i++)
        if (strcmp(graph->nodes.items[i].name, name) == 0)
            graph->nodes.items[i].name = value.name;
    tutti_onnx_value *slot = ONNX_PUSH(&x->onnx->arena, &graph->outputs);
    if (!slot)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to export a model");
    *slot = value;
    /* Later outputs may be the same edge. */
    tutti_onnx_edge *e = &x->edges[x->start[edge.node->id] + edge.index];
    e->plain = is_input(graph, e->plain) ? e->plain : value.name;
    return TUTTI_OK;
}

/* ---- the whole ---- */

static tutti_status write_nodes(tutti_onnx_export *x)
{
    for (size_t n = 0; n < x->graph->nodes.count && x->status == TUTTI_OK; n++) {
        if (!x->needed[n])
            continue;
        x->node = x->graph->nodes.data[n];
        x->rule = tutti__onnx_writer(x->node->op->name);
        x->rule->write(x);
    }
    x->node = NULL;
    return x->status == TUTTI_OK ? TUTTI_OK : tutti__error_restore(&x->error);
}

static tutti_status write_file(tutti_onnx_export *x, const wish *w)
{
    static const int ir_versions[] = {8, 8, 9, 9, 10}; /* of opset 17, 18, … */
    x->onnx->opset = w->opset;
    x->onnx->ir_version = ir_versions[w->opset - ONNX_OPSET_LOWEST];
    x->onnx->producer = "tutti";
    x->onnx->producer_version = tutti_version();
    x->onnx->graph.name = tutti__arena_string(&x->onnx->arena, w->name);
    if (!x->onnx->graph.name)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to export a model");
    TUTTI_TRY(onnx_export_prepare(x, w));
    TUTTI_TRY(check_rules(x));
    TUTTI_TRY(open_ports(x, w));
    TUTTI_TRY(write_nodes(x));
    for (int i = 0; i < w->output_count; i++)
        TUTTI_TRY(close_port(x, &w->outputs[i]));
    return tutti__onnx_prune(x->onnx);
}

tutti_status tutti__onnx_from_graph(tutti_graph *graph, tutti_session *session, const char *name,
                                    int opset, int input_count, const tutti_onnx_port *inputs,
                                    int output_count, const tutti_onnx_port *outputs,
                                    tutti_onnx **ret_onnx)
{
    tutti_onnx_export x = {.graph = graph, .session = session};
    wish w = {.opset = opset == 0 ? ONNX_OPSET_LOWEST : opset,
              .name = name,
              .input_count = input_count,
              .inputs = inputs,
              .output_count = output_count,
              .outputs = outputs};
    if (w.opset < ONNX_OPSET_LOWEST || w.opset > ONNX_OPSET_HIGHEST)
        return tutti_fail(TUTTI_INVALID, "ONNX is written in opset %d to %d, not %d",
                          ONNX_OPSET_LOWEST, ONNX_OPSET_HIGHEST, w.opset);
    TUTTI_TRY(tutti_graph_check(graph));
    TUTTI_TRY(tutti__onnx_create(&x.onnx));
    tutti_status status = write_file(&x, &w);
    free(x.needed);
    free(x.start);
    free(x.edges);
    tutti__map_free(&x.names);
    tutti__map_free(&x.shared);
    if (status == TUTTI_OK)
        *ret_onnx = x.onnx;
    else
        tutti__onnx_free(x.onnx);
    return status;
}

static tutti_status onnx_export_save(tutti_onnx *onnx, const char *path)
{
    tutti_text text = {0};
    const tutti_world *world = tutti__world();
    tutti_status status = tutti__onnx_encode(onnx, &text);
    tutti__onnx_free(onnx);
    if (status == TUTTI_OK)
        status = world->write_file(world->self, path, text.data, text.size);
    tutti__text_free(&text);
    return status;
}

static int opset_of(const tutti_onnx_options *options)
{
    return options && options->struct_size >= sizeof *options ? options->opset : 0;
}

static tutti_status export_model(tutti_model *model, const char *path, int opset)
{
    tutti_onnx_port inputs[64], outputs[64];
    tutti_onnx *onnx;
    if (!model->built)
        return tutti_fail(TUTTI_UNINITIALIZED,
                          "model '%s' cannot be exported yet: its input's shape is not known; call "
                          "tutti_build or give it data",
                          model->name);
    for (size_t i = 0; i < model->fed.count; i++)
        inputs[i] = (tutti_onnx_port){model->inputs.data[i].name, model->fed.data[i]};
    for (size_t i = 0; i < model->answers.count; i++)
        outputs[i] = (tutti_onnx_port){model->outputs.data[i].name, model->answers.data[i]};
    TUTTI_TRY(tutti__onnx_from_graph(model->graph, model->session, model->name, opset,
                                     (int)model->fed.count, inputs, (int)model->answers.count,
                                     outputs, &onnx));
    return onnx_export_save(onnx, path);
}

tutti_status tutti_export_onnx_with(tutti_model *model, const char *path,
                                    const tutti_onnx_options *options)
{
    TUTTI_TRY(tutti_model_check(model));
    if (!path)
        return tutti__model_fail(model, tutti_fail(TUTTI_INVALID, "tutti_export_onnx: no path"));
    tutti_status status = export_model(model, path, opset_of(options));
    if (status != TUTTI_OK)
        status = tutti__error_prefix(status, "exporting model '%s' to '%s'", model->name, path);
    return tutti__model_fail(model, status);
}

/* Symbols under the names of their nodes. */
static tutti_status name_ports(const tutti_graph *graph, int count, const tutti_sym *syms,
                               tutti_onnx_port *ret)
{
    if (count < 0 || count > 64)
        return tutti_fail(TUTTI_INVALID, "tutti_export_graph_onnx: at most 64 inputs and outputs");
    for (int i = 0; i < count; i++) {
        if (!syms || !syms[i].node || syms[i].node->graph != graph)
            return tutti_fail(TUTTI_INVALID,
                              "tutti_export_graph_onnx: input or output %d is not of the graph", i);
        ret[i] = (tutti_onnx_port){syms[i].node->name, syms[i]};
    }
    return TUTTI_OK;
}

tutti_status tutti_export_graph_onnx_with(tutti_session *session, const char *path, int input_count,
                                          const tutti_sym *inputs, int output_count,
                                          const tutti_sym *outputs,
                                          const tutti_onnx_options *options)
{
    tutti_onnx_port fed[64], wanted[64];
    tutti_onnx *onnx;
    tutti_graph *graph = output_count > 0 && outputs ? tutti_sym_graph(outputs[0]) : NULL;
    if (!session || !path || !graph)
        return tutti_fail(TUTTI_INVALID,
                          "tutti_export_graph_onnx: needs a session, a path and an output");
    TUTTI_TRY(name_ports(graph, input_count, inputs, fed));
    TUTTI_TRY(name_ports(graph, output_count, outputs, wanted));
    TUTTI_TRY(tutti__onnx_from_graph(graph, session, "graph", opset_of(options), input_count, fed,
                                     output_count, wanted, &onnx));
    return onnx_export_save(onnx, path);
}
