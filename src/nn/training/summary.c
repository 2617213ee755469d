/* summary.c: a model as a table: layers, shapes, parameters, FLOPs, memory. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/optimizers/optimizer.h"
#include "nn/training/forecast_model.h"
#include "nn/training/trainer.h"
#include "ops/build.h"

/* One row: a call of a layer. */
typedef struct row {
    char name[80], shape[TUTTI_TYPE_TEXT];
    int64_t parameters;
    double flops;
} row;

/* The rows, and by a layer's name the number of its first one, counted from 1: a shared layer's
 * weights and work count once, there. */
typedef struct rows {
    TUTTI_VEC(row) list;
    tutti_map of_layer;
} rows;

typedef struct totals {
    double parameters, trainable, bytes, trainable_bytes, slots, activations, flops;
} totals;

/* ---- counting ---- */

static double bytes_of(const tutti_type *type)
{
    int64_t count = tutti_type_count(type);
    return count < 0 ? 0 : (double)count * (double)tutti_dtype_size(type->dtype);
}

/* The row of the layer that this name begins with, "dense_1/kernel"; or NULL. */
static row *row_of(rows *all, const char *name)
{
    char layer[512];
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(layer, sizeof layer, "%.*s", (int)(slash - name), name);
        size_t number = (uintptr_t)tutti__map_get(&all->of_layer, layer);
        if (number > 0)
            return &all->list.data[number - 1];
    }
    return NULL;
}

static void count_weights(tutti_model *model, rows *all, totals *t)
{
    tutti_weight_info info;
    int count = tutti_weight_count(model);
    for (int i = 0; i < count && tutti_weight_at(model, i, &info) == TUTTI_OK; i++) {
        int64_t elements = tutti_type_count(&info.type);
        row *r = row_of(all, info.name);
        if (r)
            r->parameters += elements;
        t->parameters += (double)elements;
        t->bytes += bytes_of(&info.type);
        if (info.trainable) {
            t->trainable += (double)elements;
            t->trainable_bytes += bytes_of(&info.type);
        }
    }
}

/* The inference form for one batch size, in a graph of its own: known shapes give costs. */
static tutti_status count_nodes(tutti_model *model, int64_t batch, rows *all, totals *t)
{
    tutti_graph *graph;
    tutti_sym inputs[64], outputs[64];
    tutti_building building = tutti__model_building(model, false);
    TUTTI_TRY(tutti_graph_create(&graph));
    graph->building = &building;
    for (size_t i = 0; i < model->inputs.count && i < 64; i++) {
        tutti_type type = model->inputs.data[i].type;
        for (int k = 0; k < type.rank; k++)
            type.dims[k] = k == 0 ? batch : type.dims[k] < 0 ? 1 : type.dims[k];
        inputs[i] = (tutti_placeholder)(graph, type);
    }
    tutti_status status = tutti__model_instantiate(model, graph, inputs, outputs);
    for (size_t i = 0; status == TUTTI_OK && i < graph->nodes.count; i++) {
        const tutti_node *node = graph->nodes.data[i];
        if (node->op->flags & (TUTTI_OP_HANDLE | TUTTI_OP_UPDATES) ||
            strstr(node->name, "/initial"))
            continue;
        double flops = tutti__node_flops(node);
        bool own = !(node->op->flags & TUTTI_OP_VIEW) && !tutti__is(node, "read") &&
                   !tutti__is(node, "constant") && !tutti__is(node, "identity");
        for (int k = 0; own && k < node->output_count; k++)
            t->activations += bytes_of(&node->types[k]);
        t->flops += flops;
        row *r = row_of(all, node->name);
        if (r)
            r->flops += flops;
    }
    tutti__building_free(&building);
    tutti_graph_destroy(graph);
    return status;
}

/* ---- rows ---- */

static void shape_text(const tutti_type *type, char *ret, size_t size)
{
    size_t used = (size_t)snprintf(ret, size, "[");
    for (int i = 1; i < type->rank && used < size; i++) {
        if (type->dims[i] < 0)
            used += (size_t)snprintf(ret + used, size - used, "%s?", i > 1 ? ", " : "");
        else
            used += (size_t)snprintf(ret + used, size - used, "%s%" PRId64, i > 1 ? ", " : "",
                                     type->dims[i]);
    }
    if (used < size)
        snprintf(ret + used, size - used, "]");
}

static bool add_row(rows *all, const tutti_layer *layer, const char *name, const tutti_type *type)
{
    row r = {0};
    snprintf(r.name, sizeof r.name, "%s (%s)", name, layer ? layer->kind->name : "input");
    if (type)
        shape_text(type, r.shape, sizeof r.shape);
    if (!TUTTI_VEC_PUSH(&all->list, r))
        return false;
    return !layer || tutti__map_get(&all->of_layer, layer->name) ||
           tutti__map_set(&all->of_layer, layer->name, (void *)(uintptr_t)all->list.count) ==
               TUTTI_OK;
}

static tutti_status collect_rows(const tutti_model *model, rows *all)
{
    bool ok = true;
    for (size_t i = 0; ok && i < model->inputs.count; i++)
        ok = add_row(all, NULL, model->inputs.data[i].name, &model->inputs.data[i].type);
    for (size_t i = 0; ok && model->kind && i < model->layers.count; i++)
        ok = add_row(all, model->layers.data[i], model->layers.data[i]->name, NULL);
    for (size_t i = 0; ok && model->blueprint && i < model->blueprint->nodes.count; i++) {
        const tutti_node *node = model->blueprint->nodes.data[i];
        if (node->dead || node->op != tutti__layer_op)
            continue;
        const tutti_layer *layer = model->layers.data[tutti__int(node, "layer")];
        if (strcmp(layer->kind->name, "input") != 0) /* it is among the inputs */
            ok = add_row(all, layer, node->name, &node->types[0]);
    }
    return ok ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a summary");
}

/* ---- text ---- */

static const char *with_unit(double value, const char *unit, double step, char ret[32])
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T"};
    int i = 0;
    while (value >= step && i < 4)
        value /= step, i++;
    snprintf(ret, 32, i == 0 ? "%.0f %s%s" : "%.2f %s%s", value, prefixes[i], unit);
    return ret;
}

static void write_text(const tutti_model *model, const rows *all, const totals *t, int64_t batch,
                       tutti_text *text)
{
    char a[32], b[32], c[32], d[32], e[32];
    tutti__text_add(text, "Model %s\n\n%-34s %-22s %12s %14s\n", model->name, "layer", "output",
                    "parameters", "FLOPs");
    for (size_t i = 0; i < all->list.count; i++) {
        const row *r = &all->list.data[i];
        tutti__text_add(text, "%-34s %-22s %12" PRId64 " %14s\n", r->name, r->shape, r->parameters,
                        with_unit(r->flops / (double)batch, "", 1000, a));
    }
    tutti__text_add(text, "\nparameters %.0f, trainable %.0f; %s an example forward\n",
                    t->parameters, t->trainable,
                    with_unit(t->flops / (double)batch, "FLOP", 1000, a));
    tutti__text_add(
        text,
        "memory at batch %" PRId64
        ": parameters %s, gradients %s, optimizer %s, activations %s, total %s\n",
        batch, tutti__bytes_text(t->bytes, a), tutti__bytes_text(t->trainable_bytes, b),
        tutti__bytes_text(t->slots, c), tutti__bytes_text(t->activations, d),
        tutti__bytes_text(t->bytes + t->trainable_bytes + t->slots + t->activations, e));
}

/* The training step as it is compiled; nothing where there is none. */
static void write_planned(tutti_model *model, int64_t batch, tutti_text *text)
{
    char a[32], b[32];
    tutti_planned planned;
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    tutti_status status = tutti__model_planned(model, batch, &planned);
    if (status == TUTTI_TOO_LARGE)
        tutti__text_add(text, "training step at batch %" PRId64 ": %s\n", batch,
                        tutti_error_message());
    if (status != TUTTI_OK)
        tutti__error_restore(&before);
    if (status != TUTTI_OK)
        return;
    tutti__text_add(text,
                    "planned for a training step at batch %" PRId64
                    ": activations and gradients %s, bound %s (%.2f times)\n",
                    batch, tutti__bytes_text(planned.bytes, a), tutti__bytes_text(planned.bound, b),
                    planned.bound > 0 ? planned.bytes / planned.bound : 1);
    if (planned.recomputed > 0)
        tutti__text_add(
            text,
            "computed again for the gradients: saves %s of %s (%.0f %%) for %.1f %% more FLOPs\n",
            tutti__bytes_text(fmax(planned.kept - planned.bytes, 0), a),
            tutti__bytes_text(planned.kept, b), 100 * fmax(1 - planned.bytes / planned.kept, 0),
            100 * planned.recomputed / (planned.flops - planned.recomputed));
}

static void count_slots(const tutti_model *model, totals *t)
{
    tutti_optimizer_slot slots[8];
    if (model->trainer && model->trainer->optimizer.def->slots)
        t->slots = model->trainer->optimizer.def->slots(&model->trainer->optimizer, slots) *
                   t->trainable_bytes;
}

tutti_status tutti_summary(tutti_model *model, int64_t batch, char **ret_text)
{
    rows all = {0};
    totals t = {0};
    tutti_text text = {0};
    TUTTI_TRY(tutti__model_need_built(model));
    batch = batch > 0 ? batch : 1;
    tutti_status status = collect_rows(model, &all);
    if (status == TUTTI_OK)
        status = count_nodes(model, batch, &all, &t);
    count_weights(model, &all, &t);
    count_slots(model, &t);
    if (status == TUTTI_OK)
        write_text(model, &all, &t, batch, &text);
    if (status == TUTTI_OK)
        tutti__summary_parts(model, &text);
    if (status == TUTTI_OK)
        write_planned(model, batch, &text);
    TUTTI_VEC_FREE(&all.list);
    tutti__map_free(&all.of_layer);
    if (status == TUTTI_OK && !text.failed) {
        *ret_text = text.data;
        return TUTTI_OK;
    }
    tutti__text_free(&text);
    return status != TUTTI_OK ? status : tutti_fail(TUTTI_NO_MEMORY, "no memory for a summary");
}

void tutti_print_summary(tutti_model *model, int64_t batch)
{
    char *text = NULL;
    if (!model || !tutti__job_able(model->job))
        return;
    if (tutti__model_fail(model, tutti_summary(model, batch, &text)) != TUTTI_OK)
        return;
    fputs(text, stdout);
    free(text);
}
