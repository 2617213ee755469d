/* model.c: making models and what belongs to them. */
#include "nn/model/model.h"
#include "nn/model/model_strategy.h"
#include "nn/model/saver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/nearest.h"
#include "ops/build.h"

bool tutti__model_able(const tutti_model *model)
{
    return model && tutti__job_able(model->job) &&
           (!model->blueprint || tutti_graph_check(model->blueprint) == TUTTI_OK);
}

tutti_status tutti__model_fail(tutti_model *model, tutti_status status)
{
    if (model && status != TUTTI_OK)
        status = tutti__strategy_survive(tutti__model_strategy(model), status);
    return model ? tutti_job_fail(model->job, status) : status;
}

tutti_status tutti_model_check(const tutti_model *model)
{
    if (!model)
        return tutti_fail(TUTTI_INVALID, "there is no model; the call that should make it failed");
    if (model->blueprint)
        TUTTI_TRY(tutti_job_fail(model->job, tutti_graph_check(model->blueprint)));
    return tutti_job_check(model->job);
}

static void forget_missed(const tutti_model *model);

static void model_destroy(void *object)
{
    tutti_model *model = object;
    forget_missed(model);
    tutti__saver_destroy(model->saver);
    tutti__trainer_destroy(model->trainer);
    tutti_eager_close(model->eager);
    tutti_session_close(model->session);
    tutti__engine_destroy(model->engine);
    tutti_strategy_close(model->strategy);
    tutti_graph_destroy(model->graph);
    tutti_graph_destroy(model->blueprint);
    tutti__building_free(&model->plan);
    tutti__building_free(&model->inference);
    tutti__building_free(&model->applied);
    for (size_t i = 0; i < model->layers.count; i++) {
        model->layers.data[i]->owner = NULL;
        tutti_layer_release(model->layers.data[i]);
    }
    tutti__parts_free(model);
    if (model->kind && model->kind->destroy)
        model->kind->destroy(model->self);
    TUTTI_VEC_FREE(&model->weights);
    TUTTI_VEC_FREE(&model->layers);
    TUTTI_VEC_FREE(&model->inputs);
    TUTTI_VEC_FREE(&model->outputs);
    TUTTI_VEC_FREE(&model->fed);
    TUTTI_VEC_FREE(&model->answers);
    tutti__map_free(&model->layer_names);
    free(model->stage_of);
    tutti__map_free(&model->frozen);
    tutti__map_free(&model->taken);
    tutti__arena_free(&model->arena);
    free(model);
}

static tutti_status read_precision(const char *text, tutti_dtype *ret)
{
    tutti_dtype dtype;
    if (tutti_dtype_parse(text, &dtype) != TUTTI_OK ||
        (dtype != TUTTI_F32 && dtype != TUTTI_BF16 && dtype != TUTTI_F16))
        return tutti_fail(TUTTI_INVALID, "precision is f32, bf16 or f16, not '%s'", text);
    *ret = dtype;
    return TUTTI_OK;
}

tutti_dtype tutti_job_precision(tutti_job *job)
{
    tutti_dtype dtype = TUTTI_F32;
    tutti_job_fail(job, read_precision(tutti_flag_text(job, "precision", "f32"), &dtype));
    return dtype;
}

static tutti_status model_fill(tutti_model *model, const tutti_model_options *options,
                               bool blueprint)
{
    model->name =
        tutti__arena_string(&model->arena, options && options->name ? options->name : "model");
    if (!model->name)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a model");
    const char *precision = options && options->precision
                                ? options->precision
                                : tutti_flag_text(model->job, "precision", "f32");
    TUTTI_TRY(read_precision(precision, &model->compute));
    model->deterministic = tutti_flag_on(model->job, "deterministic");
    const char *memory = tutti_flag_text(model->job, "memory", NULL);
    if (memory && tutti__bytes_parse(memory, &model->memory_limit) != TUTTI_OK)
        return tutti__error_prefix(TUTTI_INVALID, "--set memory");
    TUTTI_TRY(tutti__model_meet_strategy(model));
    if (blueprint) {
        TUTTI_TRY(tutti_graph_create(&model->blueprint));
        model->plan = tutti__model_building(model, false);
        model->plan.records = true;
        model->plan.compute = TUTTI_F32;
        model->blueprint->building = &model->plan;
    }
    return TUTTI_OK;
}

static tutti_model *model_make(tutti_job *job, const tutti_model_options *options, bool blueprint)
{
    if (!tutti__job_able(job))
        return NULL;
    tutti_model *model = calloc(1, sizeof *model);
    if (!model) {
        tutti_job_fail(job, tutti_fail(TUTTI_NO_MEMORY, "no memory for a model"));
        return NULL;
    }
    model->job = job;
    if (!tutti_job_own(job, model, model_destroy))
        return NULL;
    return tutti_job_fail(job, model_fill(model, options, blueprint)) == TUTTI_OK ? model : NULL;
}

/* ---- layers ---- */

/* kind's name, then kind_1, kind_2, … A name of the user's that is taken is a mistake. */
static tutti_status name_layer(tutti_model *model, tutti_layer *layer)
{
    char name[256];
    if (layer->name) {
        if (tutti__map_get(&model->layer_names, layer->name))
            return layer->file
                       ? tutti_fail(TUTTI_EXISTS, "model '%s' has a layer '%s' already (%s:%d)",
                                    model->name, layer->name, layer->file, layer->line)
                       : tutti_fail(TUTTI_EXISTS, "model '%s' has a layer '%s' already",
                                    model->name, layer->name);
        return TUTTI_OK;
    }
    const char *kind = layer->kind ? layer->kind->name : "layer";
    uintptr_t number = (uintptr_t)tutti__map_get(&model->taken, kind);
    do {
        if (number == 0)
            snprintf(name, sizeof name, "%s", kind);
        else
            snprintf(name, sizeof name, "%s_%u", kind, (unsigned)number);
        number++;
    } while (tutti__map_get(&model->layer_names, name));
    TUTTI_TRY(tutti__map_set(&model->taken, kind, (void *)number));
    layer->name = tutti__arena_string(&layer->arena, name);
    return layer->name ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a layer");
}

tutti_status tutti__model_adopt(tutti_model *model, tutti_layer *layer)
{
    if (!layer)
        return tutti_fail(TUTTI_INVALID, "a layer is NULL");
    if (layer->owner == model)
        return TUTTI_OK;
    if (layer->owner)
        return tutti_fail(TUTTI_INVALID,
                          "layer '%s' belongs to model '%s'; share a whole model with "
                          "tutti_model_layer",
                          layer->name, layer->owner->name);
    if (layer->error.status != TUTTI_OK)
        return tutti_fail(layer->error.status, "%s (%s:%d)", layer->error.message,
                          layer->file ? layer->file : "?", layer->line);
    TUTTI_TRY(name_layer(model, layer));
    if (!TUTTI_VEC_PUSH(&model->layers, layer))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a layer");
    layer->owner = model;
    return tutti__map_set(&model->layer_names, layer->name, layer);
}

/* What tutti_find_layer did not find last: whoever is then given NULL for a layer says that. */
static pthread_mutex_t missed_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    tutti_job *job; /* NULL: nothing; forgotten with the model */
    const tutti_model *model;
    char message[900];
} missed;

static void forget_missed(const tutti_model *model)
{
    pthread_mutex_lock(&missed_lock);
    if (missed.model == model)
        missed.job = NULL;
    pthread_mutex_unlock(&missed_lock);
}

/* "model 'm' has no layer 'dens' (is 'dense' meant?); it has conv2d, dense". */
static void note_missed(tutti_model *model, const char *name)
{
    tutti_nearest nearest = {.word = name};
    tutti_text list = {0};
    enum { SHOWN = 24 };
    for (size_t i = 0; i < model->layers.count; i++) {
        tutti__nearest_try(&nearest, model->layers.data[i]->name);
        if (i < SHOWN)
            tutti__text_add(&list, "%s%s", i ? ", " : "", model->layers.data[i]->name);
    }
    if (model->layers.count > SHOWN)
        tutti__text_add(&list, ", … (%zu in all)", model->layers.count);
    tutti_fail(TUTTI_NOT_FOUND, "model '%s' has no layer '%s'%s%s%s; it has %s", model->name, name,
               nearest.found ? " (is '" : "", nearest.found ? nearest.found : "",
               nearest.found ? "' meant?)" : "", list.data ? list.data : "none");
    pthread_mutex_lock(&missed_lock);
    missed.job = model->job;
    missed.model = model;
    snprintf(missed.message, sizeof missed.message, "%s", tutti_error_message());
    pthread_mutex_unlock(&missed_lock);
    tutti__text_free(&list);
}

tutti_layer *tutti_find_layer(tutti_model *model, const char *name)
{
    tutti_layer *found = model && name ? tutti__map_get(&model->layer_names, name) : NULL;
    if (model && !found)
        note_missed(model, name ? name : "");
    return found;
}

/* A function that takes a layer was given NULL. */
static void no_layer(const char *function)
{
    pthread_mutex_lock(&missed_lock);
    tutti_job *job = missed.job;
    tutti_status status =
        job ? tutti_fail(TUTTI_NOT_FOUND, "%s: the layer is NULL: %s", function, missed.message)
            : tutti_fail(TUTTI_INVALID, "%s: the layer is NULL", function);
    pthread_mutex_unlock(&missed_lock);
    tutti_job_fail(job, status);
}

void tutti__models_declare_again(const tutti_job *job)
{
    for (size_t i = 0; i < job->owned.count; i++)
        if (job->owned.data[i].destroy == model_destroy)
            tutti__model_fail(job->owned.data[i].object,
                              tutti__model_declare(job->owned.data[i].object));
}

void tutti_set_trainable(tutti_layer *layer, bool trainable)
{
    if (!layer) {
        no_layer("tutti_set_trainable");
        return;
    }
    bool changes = layer->frozen == trainable;
    layer->frozen = !trainable;
    tutti__layer_trainable_changed(layer);
    if (changes && layer->owner && tutti__job_able(layer->owner->job))
        tutti__models_declare_again(layer->owner->job);
}

void tutti_set_remat(tutti_layer *layer, bool remat)
{
    if (!layer)
        no_layer("tutti_set_remat");
    else
        layer->remat = remat;
}

/* ---- ports ---- */

int tutti__port_find(const tutti_ports *ports, const char *name)
{
    for (size_t i = 0; i < ports->count; i++)
        if (strcmp(ports->data[i].name, name) == 0)
            return (int)i;
    return -1;
}

tutti_status tutti__port_add(tutti_model *model, tutti_ports *ports, const char *name,
                             tutti_type type, tutti_sym sym)
{
    if (!name || !name[0])
        return tutti_fail(TUTTI_INVALID, "an input or output of a model needs a name");
    if (tutti__port_find(&model->inputs, name) >= 0 || tutti__port_find(&model->outputs, name) >= 0)
        return tutti_fail(TUTTI_EXISTS, "model '%s' has an input or output '%s' already",
                          model->name, name);
    char *kept = tutti__arena_string(&model->arena, name);
    if (!kept || !TUTTI_VEC_PUSH(ports, ((tutti_port){kept, type, sym})))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a model");
    return TUTTI_OK;
}

/* ---- the three ways ---- */

tutti_model *(tutti_sequential)(tutti_job *job, int count, tutti_layer *const *layers)
{
    tutti_model *model = model_make(job, NULL, true);
    if (model)
        model->sequential = true;
    for (int i = 0; i < count && layers; i++) {
        if (model)
            tutti_model_add(model, layers[i]);
        else
            tutti_layer_release(layers[i]);
    }
    /* Weights need no data where the first layer says the shape of an example. */
    if (model && count > 1 && layers && tutti__model_able(model) &&
        strcmp(tutti_layer_kind_name(layers[0]), "input") == 0)
        (tutti_build)(model, 0, NULL);
    return model;
}

void tutti_model_add(tutti_model *model, tutti_layer *layer)
{
    tutti_status status = TUTTI_OK;
    if (!model || !layer) {
        tutti_layer_release(layer);
        if (model)
            tutti__model_fail(
                model, tutti_fail(TUTTI_NO_MEMORY,
                                  "a layer is NULL: there was no memory for it, or none is given"));
        return;
    }
    bool stands_already = layer->owner == model;
    if (!model->sequential || model->closed)
        status =
            tutti_fail(TUTTI_INVALID, "layers are added to a sequential model before it is used");
    else if (stands_already)
        status = tutti_fail(TUTTI_EXISTS,
                            "layer '%s' stands in the sequential model already; make another one, "
                            "or share its weights in a functional model with tutti_call",
                            layer->name);
    else
        status = tutti__model_adopt(model, layer);
    if (tutti__model_fail(model, status) != TUTTI_OK && !stands_already)
        tutti_layer_release(layer);
}

tutti_model *tutti_functional_with(tutti_job *job, const tutti_model_options *options)
{
    return model_make(job, options, true);
}

tutti_sym(tutti_input)(tutti_model *model, const char *name, tutti_type type)
{
    if (!tutti__model_able(model))
        return TUTTI_NO_SYM;
    tutti_type batched = type;
    batched.rank = type.rank + 1;
    if (type.rank >= TUTTI_MAX_RANK || type.dtype == TUTTI_NO_DTYPE) {
        tutti__model_fail(model, tutti_fail(TUTTI_INVALID, "input '%s' has too many dimensions",
                                            name ? name : ""));
        return TUTTI_NO_SYM;
    }
    memmove(batched.dims + 1, type.dims, sizeof type.dims - sizeof type.dims[0]);
    batched.dims[0] = TUTTI_ANY;
    tutti_sym sym = (tutti_placeholder_named)(model->blueprint, name, batched);
    tutti_status status = tutti_graph_check(model->blueprint);
    if (status == TUTTI_OK)
        status = tutti__port_add(model, &model->inputs, name, batched, sym);
    return tutti__model_fail(model, status) == TUTTI_OK ? sym : TUTTI_NO_SYM;
}

void(tutti_output)(tutti_model *model, const char *name, tutti_sym sym)
{
    if (!model || tutti_model_check(model) != TUTTI_OK)
        return;
    tutti_status status;
    if (!sym.node || sym.node->graph != model->blueprint)
        status = tutti_fail(TUTTI_INVALID, "output '%s' is not made of model '%s''s inputs",
                            name ? name : "", model->name);
    else
        status = tutti__port_add(model, &model->outputs, name, tutti_sym_type(sym), sym);
    tutti__model_fail(model, status);
    model->closed = true;
}

tutti_model *tutti_subclass(tutti_job *job, const tutti_model_kind *kind, void *self)
{
    if (!tutti__job_able(job))
        return NULL;
    if (!kind || kind->struct_size != sizeof *kind || !kind->call) {
        tutti_job_fail(
            job, tutti_fail(TUTTI_INVALID, "a kind of model needs its struct_size and a call"));
        return NULL;
    }
    tutti_model *model =
        model_make(job, TUTTI_OPTIONS(tutti_model_options, .name = kind->name), false);
    if (model) {
        model->kind = kind;
        model->self = self;
        model->closed = true;
    }
    return model;
}

const char *tutti_model_name(const tutti_model *model)
{
    return model ? model->name : "";
}

tutti_job *tutti_model_job(const tutti_model *model)
{
    return model ? model->job : NULL;
}
