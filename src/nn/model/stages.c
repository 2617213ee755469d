/* stages.c: under a pipeline a model whose layers are in no stage is cut by itself: into runs of
 * layers, in the order in which they were called, so that the slowest stage is as fast as possible.
 *
 * A layer's time is its FLOPs for one example, forwards; backwards it is about twice that for all.
 * Where a device's memory is limited, a stage's weights, with their gradients and two slots, have
 * to fit; the compiled program is checked against the limit all the same. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nn/model/model_strategy.h"

typedef struct cut_item {
    uint32_t node; /* of the blueprint */
    double flops, bytes;
} cut_item;

typedef struct cutting {
    tutti_model *model;
    const tutti_strategy *strategy;
    int stages;
    size_t count;
    cut_item *items;   /* calls of layers, in order */
    tutti_map of_name; /* a layer's name → its item's number, from 1 */
} cutting;

static bool is_marked(const tutti_model *model)
{
    for (size_t i = 0; i < model->layers.count; i++)
        if (model->layers.data[i]->stage != 0 || model->layers.data[i]->device)
            return true;
    for (size_t i = 0; i < model->blueprint->nodes.count; i++)
        if (model->blueprint->nodes.data[i]->stage > 0 ||
            model->blueprint->nodes.data[i]->device[0])
            return true;
    return false;
}

static tutti_status no_memory(void)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory to cut a model into stages");
}

/* A layer that is called several times counts where it is called first. */
static tutti_status collect_layers(cutting *c)
{
    const tutti_graph *blueprint = c->model->blueprint;
    c->items = calloc(blueprint->nodes.count + 1, sizeof *c->items);
    if (!c->items)
        return no_memory();
    for (size_t i = 0; i < blueprint->nodes.count; i++) {
        const tutti_node *node = blueprint->nodes.data[i];
        if (node->dead || node->op != tutti__layer_op)
            continue;
        const tutti_layer *layer = c->model->layers.data[tutti__int(node, "layer")];
        if (strcmp(layer->kind->name, "input") == 0)
            continue;
        c->items[c->count++] = (cut_item){.node = (uint32_t)i};
        if (!tutti__map_get(&c->of_name, layer->name))
            TUTTI_TRY(tutti__map_set(&c->of_name, layer->name, (void *)(uintptr_t)c->count));
    }
    return TUTTI_OK;
}

/* The item whose layer made a node: its name begins with the layer's. */
static cut_item *item_of(const cutting *c, const char *name)
{
    char layer[300];
    size_t length = strcspn(name, "/");
    if (length >= sizeof layer)
        return NULL;
    memcpy(layer, name, length);
    layer[length] = 0;
    uintptr_t at = (uintptr_t)tutti__map_get(&c->of_name, layer);
    return at > 0 ? &c->items[at - 1] : NULL;
}

static void weigh_nodes(const cutting *c, const tutti_graph *graph)
{
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const tutti_node *node = graph->nodes.data[i];
        cut_item *item = item_of(c, node->name);
        int64_t elements = tutti__is(node, "variable") ? tutti_type_count(&node->types[0]) : 0;
        if (!item || strstr(node->name, "/initial"))
            continue;
        item->flops += tutti__node_flops(node);
        item->bytes +=
            elements > 0 ? (double)elements * (double)tutti_dtype_size(node->types[0].dtype) : 0;
    }
}

/* The inference form of one example, in a graph of its own. */
static tutti_status weigh(cutting *c)
{
    tutti_graph *graph;
    tutti_sym inputs[64], outputs[64];
    tutti_building building = tutti__model_building(c->model, false);
    TUTTI_TRY(tutti_graph_create(&graph));
    graph->building = &building;
    for (size_t i = 0; i < c->model->inputs.count && i < 64; i++) {
        tutti_type type = c->model->inputs.data[i].type;
        for (int k = 0; k < type.rank; k++)
            type.dims[k] = k == 0 ? 1 : type.dims[k] < 0 ? 16 : type.dims[k];
        inputs[i] = (tutti_placeholder)(graph, type);
    }
    tutti_status status = tutti__model_instantiate(c->model, graph, inputs, outputs);
    if (status == TUTTI_OK)
        weigh_nodes(c, graph);
    tutti__building_free(&building);
    tutti_graph_destroy(graph);
    return status;
}

/* Items [0, first) are spread over the stages before; what a stage of [first, end) takes. */
static double stage_time(const cutting *c, size_t first, size_t end, int stage)
{
    double flops = 0, bytes = 0;
    const tutti_pipeline *p = &c->strategy->pipeline;
    int64_t limit = tutti__strategy_limit(c->strategy, p->devices[stage % p->device_count]);
    for (size_t i = first; i < end; i++) {
        flops += c->items[i].flops + 1;
        bytes += 4 * c->items[i].bytes;
    }
    return limit > 0 && bytes * p->chunks > (double)limit ? INFINITY : flops;
}

/* best[s][n]: the slowest of stages 0 to s that have the first n items; from[s][n]: where the last
 * of them begins. */
static tutti_status find_cuts(const cutting *c, size_t *ret_begins)
{
    size_t room = c->count + 1, stages = (size_t)c->stages;
    double *best = malloc(stages * room * sizeof *best);
    size_t *from = calloc(stages * room, sizeof *from);
    if (!best || !from) {
        free(best);
        free(from);
        return no_memory();
    }
    for (size_t s = 0; s < stages; s++)
        for (size_t n = 0; n < room; n++) {
            double *mine = &best[s * room + n];
            *mine = s == 0 && n > 0 ? stage_time(c, 0, n, 0) : INFINITY;
            for (size_t first = s; s > 0 && first < n; first++) {
                double before = best[(s - 1) * room + first];
                double time = isfinite(before) ? stage_time(c, first, n, (int)s) : INFINITY;
                time = time > before ? time : before;
                if (time < *mine) {
                    *mine = time;
                    from[s * room + n] = first;
                }
            }
        }
    bool fits = isfinite(best[(stages - 1) * room + c->count]);
    size_t end = c->count;
    for (size_t s = stages; fits && s-- > 0;)
        end = ret_begins[s] = s > 0 ? from[s * room + end] : 0;
    free(best);
    free(from);
    return fits ? TUTTI_OK
                : tutti_fail(TUTTI_TOO_LARGE,
                             "model '%s': no cut into %d stages fits the memory of the devices; "
                             "take more stages, or devices with more",
                             c->model->name, c->stages);
}

static tutti_status note_stages(const cutting *c)
{
    tutti_model *model = c->model;
    size_t *begins = calloc((size_t)c->stages, sizeof *begins);
    if (!begins)
        return no_memory();
    tutti_status status = find_cuts(c, begins);
    int *stage_of =
        status == TUTTI_OK ? calloc(model->blueprint->nodes.count + 1, sizeof *stage_of) : NULL;
    if (status == TUTTI_OK && !stage_of)
        status = no_memory();
    for (int s = 0; status == TUTTI_OK && s < c->stages; s++) {
        size_t end = s + 1 < c->stages ? begins[s + 1] : c->count;
        for (size_t i = begins[s]; i < end; i++)
            stage_of[c->items[i].node] = s;
    }
    free(begins);
    if (status == TUTTI_OK) {
        model->stage_of = stage_of;
        model->stage_nodes = model->blueprint->nodes.count;
    }
    return status;
}

static tutti_status cut_layers(cutting *c)
{
    TUTTI_TRY(collect_layers(c));
    if (c->count < (size_t)c->stages)
        return tutti_fail(TUTTI_INVALID,
                          "model '%s' has %zu layers, which cannot be cut into %d stages; take "
                          "fewer stages",
                          c->model->name, c->count, c->stages);
    TUTTI_TRY(weigh(c));
    return note_stages(c);
}

tutti_status tutti__model_find_stages(tutti_model *model, const tutti_strategy *strategy)
{
    if (!strategy || !strategy->kind || !strategy->kind->pipeline || model->stages_found)
        return TUTTI_OK;
    const tutti_pipeline *p = &strategy->pipeline;
    cutting c = {.model = model, .strategy = strategy, .stages = p->device_count * p->chunks};
    model->stages_found = true; /* also while its layers are weighed */
    if (c.stages == 1 || is_marked(model))
        return TUTTI_OK;
    tutti_status status = cut_layers(&c);
    free(c.items);
    tutti__map_free(&c.of_name);
    model->stages_found = status == TUTTI_OK;
    return status;
}
