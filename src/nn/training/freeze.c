/* freeze.c: which weights are trained.
 *
 * A weight that could be trained is not where it was frozen: by name (tutti_freeze), or with its
 * layer or a model that it stands in (tutti_set_trainable). Of a model inside another the outermost
 * that says anything decides; in one model a weight's name before its layer. What is asked of names
 * is kept by weight, so that a pattern is matched once. The flag stands in the variable's attribute
 * "trainable"; whoever builds a model into a graph sets it anew, and the work graph's are brought
 * up to date when somebody looks at them. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "base/nearest.h"
#include "nn/training/trainer.h"
#include "ops/build.h"

enum { UNDECIDED, FROZEN, TRAINED };

/* Of all models: a model inside another does not know where it stands. */
static _Atomic unsigned changes = 1;

unsigned tutti__trainable_changes(void)
{
    return atomic_load(&changes);
}

/* ---- deciding ---- */

static int decide(const tutti_building *b, bool flagged, const char *name)
{
    int outer = b->around ? decide(b->around, b->stands->frozen, name) : UNDECIDED;
    if (outer != UNDECIDED)
        return outer;
    void *own = b->model ? tutti__map_get(&b->model->frozen, name + strlen(b->prefix)) : NULL;
    if (own)
        return (int)(uintptr_t)own;
    return flagged ? FROZEN : UNDECIDED;
}

bool tutti__weight_frozen(tutti_building *building, bool flagged, const char *name)
{
    bool frozen = decide(building, flagged, name) == FROZEN;
    building->decided = tutti__hash_mix(building->decided, tutti__hash_string(frozen, name));
    return frozen;
}

bool tutti__layer_frozen(const tutti_layer_call *call, const char *weight)
{
    tutti_building *building = call->graph->building;
    char name[512];
    snprintf(name, sizeof name, "%s%s/%s", building->prefix, tutti_layer_name(call->layer), weight);
    return tutti__weight_frozen(building, call->layer->frozen, name);
}

/* ---- marking variables ---- */

void tutti__set_trainable(tutti_node *variable, bool trainable)
{
    for (int i = 0; i < variable->attr_count; i++)
        if (strcmp(variable->attrs[i].name, "trainable") == 0)
            variable->attrs[i].value.i = trainable;
}

/* As in the inference form in a graph that is thrown away. */
static void mark_like(tutti_model *model, const tutti_graph *fresh)
{
    for (size_t i = 0; i < model->weight_end; i++) {
        tutti_node *node = model->graph->nodes.data[i];
        tutti_node *now = tutti__is(node, "variable") ? tutti_graph_find(fresh, node->name) : NULL;
        if (now && tutti__is(now, "variable"))
            tutti__set_trainable(node, tutti__int(now, "trainable") != 0);
    }
}

tutti_status tutti__trainable_refresh(tutti_model *model)
{
    unsigned seen = tutti__trainable_changes();
    tutti_sym inputs[64], outputs[64];
    tutti_graph *graph;
    if (!model->built || model->trainable_seen == seen)
        return TUTTI_OK;
    tutti_building building = tutti__model_building(model, false);
    TUTTI_TRY(tutti_graph_create(&graph));
    graph->building = &building;
    for (size_t i = 0; i < model->inputs.count && i < 64; i++)
        inputs[i] = (tutti_placeholder)(graph, model->inputs.data[i].type);
    tutti_status status = tutti__model_instantiate(model, graph, inputs, outputs);
    if (status == TUTTI_OK) {
        model->trainable_seen = seen;
        mark_like(model, graph);
        if (building.decided != model->inference.decided)
            tutti__trainer_drop_step(model->trainer);
        model->inference.decided = building.decided;
    }
    tutti__building_free(&building);
    tutti_graph_destroy(graph);
    return status;
}

/* ---- asking by name ---- */

tutti_status tutti__freeze_by_name(tutti_model *model, const char *name, bool frozen)
{
    atomic_fetch_add(&changes, 1);
    return tutti__map_set(&model->frozen, name, (void *)(uintptr_t)(frozen ? FROZEN : TRAINED));
}

void tutti__frozen_by_name(const tutti_model *model, bool frozen,
                           void (*say)(void *context, const char *name), void *context)
{
    for (size_t i = 0; i < model->frozen.count; i++)
        if ((uintptr_t)model->frozen.entries[i].value == (uintptr_t)(frozen ? FROZEN : TRAINED))
            say(context, model->frozen.entries[i].key);
}

static void forget(tutti_model *model, const char *name)
{
    if (tutti__map_get(&model->frozen, name))
        (void)tutti__map_set(&model->frozen, name, NULL); /* is there: needs no memory */
}

/* What was asked by name of a part's weights. */
static void forget_part(tutti_model *model, const tutti_layer *layer)
{
    bool *chosen = calloc(model->parts.count + 1, sizeof *chosen);
    bool *nodes = calloc(model->blueprint->nodes.count + 1, sizeof *nodes);
    for (size_t i = 0; chosen && i < model->parts.count; i++)
        chosen[i] = model->parts.data[i] == layer;
    if (chosen && nodes && tutti__part_weights(model, chosen, nodes) == TUTTI_OK)
        for (size_t i = 0; i < model->blueprint->nodes.count; i++)
            if (nodes[i])
                forget(model, model->blueprint->nodes.data[i]->name);
    free(chosen);
    free(nodes);
}

void tutti__layer_trainable_changed(const tutti_layer *layer)
{
    tutti_model *model = layer->owner;
    atomic_fetch_add(&changes, 1);
    if (!model || model->frozen.count == 0)
        return;
    if (tutti__is_part(layer)) {
        forget_part(model, layer);
        return;
    }
    size_t length = strlen(layer->name);
    for (size_t i = 0; i < model->frozen.count; i++) {
        const char *name = model->frozen.entries[i].key;
        if (strncmp(name, layer->name, length) == 0 && name[length] == '/')
            forget(model, name);
    }
}

/* ---- patterns ---- */

typedef struct choice {
    tutti_model *model;
    tutti_glob pattern;
    bool frozen;
    int found;
} choice;

static tutti_status freeze_choose(choice *c, const char *weight)
{
    c->found++;
    return tutti__freeze_by_name(c->model, weight, c->frozen);
}

/* A weight by its name, or by that of a layer or model it stands in. */
static bool freeze_fits(tutti_glob pattern, const char *weight)
{
    char place[1024];
    if (tutti__glob_match_one(pattern, weight))
        return true;
    for (size_t i = 0; weight[i] && i < sizeof place; i++) {
        place[i] = 0;
        if (weight[i] == '/' && tutti__glob_match_one(pattern, place))
            return true;
        place[i] = weight[i];
    }
    return false;
}

static bool is_weight(const tutti_model *model, const tutti_node *node)
{
    return node && node->id < model->weight_end && tutti__is(node, "variable");
}

/* The weights of parts that fit, of a model that stands in c->model under that prefix. */
static tutti_status choose_parts(choice *c, const tutti_model *model, const char *prefix)
{
    char name[1024];
    bool any = false;
    size_t count = model->parts.count > 0 ? model->blueprint->nodes.count : 0;
    bool *chosen = calloc(model->parts.count + 1, sizeof *chosen);
    bool *nodes = calloc(count + 1, sizeof *nodes);
    tutti_status status = chosen && nodes ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory");
    for (size_t i = 0; status == TUTTI_OK && i < model->parts.count; i++) {
        snprintf(name, sizeof name, "%s%s", prefix, model->parts.data[i]->name);
        any = (chosen[i] = tutti__glob_match_one(c->pattern, name)) || any;
    }
    if (status == TUTTI_OK && any)
        status = tutti__part_weights(model, chosen, nodes);
    for (size_t i = 0; status == TUTTI_OK && any && i < count; i++) {
        if (!nodes[i])
            continue;
        snprintf(name, sizeof name, "%s%s", prefix, model->blueprint->nodes.data[i]->name);
        if (is_weight(c->model, tutti_graph_find(c->model->graph, name)))
            status = freeze_choose(c, name);
    }
    free(chosen);
    free(nodes);
    for (size_t i = 0; status == TUTTI_OK && i < model->layers.count; i++) {
        const tutti_model *inner = tutti__layer_model(model->layers.data[i]);
        snprintf(name, sizeof name, "%s%s/", prefix, model->layers.data[i]->name);
        if (inner)
            status = choose_parts(c, inner, name);
    }
    return status;
}

/* ---- what there is ---- */

static void list_names(tutti_text *text, const char *what, const tutti_map *names, size_t room)
{
    size_t start = text->size, i = 0;
    if (names->count == 0)
        return;
    tutti__text_add(text, "; its %s are ", what);
    for (; i < names->count && text->size - start < room; i++)
        tutti__text_add(text, "%s%s", i > 0 ? ", " : "", names->entries[i].key);
    if (i < names->count)
        tutti__text_add(text, ", … (%zu in all)", names->count);
}

static tutti_status no_match(const choice *c)
{
    char wanted[128];
    snprintf(wanted, sizeof wanted, "%.*s", (int)c->pattern.length, c->pattern.text);
    tutti_nearest nearest = {.word = wanted};
    tutti_map weights = {0};
    tutti_text text = {0};
    for (size_t i = 0; i < c->model->layer_names.count; i++)
        tutti__nearest_try(&nearest, c->model->layer_names.entries[i].key);
    for (size_t i = 0; i < c->model->weight_end; i++) {
        const tutti_node *node = c->model->graph->nodes.data[i];
        if (!is_weight(c->model, node))
            continue;
        tutti__nearest_try(&nearest, node->name);
        (void)tutti__map_set(&weights, node->name, (void *)node);
    }
    if (nearest.found)
        tutti__text_add(&text, "; did you mean '%s'?", nearest.found);
    list_names(&text, c->model->parts.count > 0 ? "nodes" : "layers", &c->model->layer_names, 250);
    list_names(&text, "weights", &weights, 350);
    tutti_status status =
        tutti_fail(TUTTI_NOT_FOUND, "model '%s' has no weight, layer or node '%s'%s",
                   c->model->name, wanted, text.data ? text.data : "");
    tutti__map_free(&weights);
    tutti__text_free(&text);
    return status;
}

static tutti_status ask(tutti_model *model, const char *patterns, bool frozen)
{
    choice c = {.model = model, .frozen = frozen};
    const char *rest = patterns ? patterns : "";
    TUTTI_TRY(tutti__model_need_built(model));
    bool any = false;
    for (; tutti__glob_next(&rest, &c.pattern); any = true) {
        c.found = 0;
        for (size_t i = 0; i < model->weight_end; i++) {
            const tutti_node *node = model->graph->nodes.data[i];
            if (is_weight(model, node) && freeze_fits(c.pattern, node->name))
                TUTTI_TRY(freeze_choose(&c, node->name));
        }
        TUTTI_TRY(choose_parts(&c, model, ""));
        if (c.found == 0)
            return no_match(&c);
    }
    return any ? TUTTI_OK
               : tutti_fail(TUTTI_INVALID,
                            "model '%s': no pattern says which weights; \"*\" is all", model->name);
}

static tutti_status ask_by_user(tutti_model *model, const char *patterns, bool freeze)
{
    TUTTI_TRY(tutti_model_check(model));
    TUTTI_TRY(tutti__model_fail(model, ask(model, patterns, freeze)));
    tutti__models_declare_again(model->job);
    return TUTTI_OK;
}

tutti_status tutti_freeze(tutti_model *model, const char *patterns)
{
    return ask_by_user(model, patterns, true);
}

tutti_status tutti_unfreeze(tutti_model *model, const char *patterns)
{
    return ask_by_user(model, patterns, false);
}
