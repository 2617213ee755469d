/* layer.c: making layers, their settings, and the kinds there are. */
#include "nn/model/layer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tables/layer_kind.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static TUTTI_VEC(const tutti_layer_kind *) registered; /* users' own; under lock */

static const tutti_layer_kind *find_registered(const char *name)
{
    for (size_t i = 0; i < registered.count; i++)
        if (strcmp(registered.data[i]->name, name) == 0)
            return registered.data[i];
    return NULL;
}

const tutti_layer_kind *tutti_layer_find(const char *name)
{
    if (!name)
        return NULL;
    for (const tutti_layer_kind *const *kind = tutti__layer_kind_table; *kind; kind++)
        if (strcmp((*kind)->name, name) == 0)
            return *kind;
    pthread_mutex_lock(&lock);
    const tutti_layer_kind *kind = find_registered(name);
    pthread_mutex_unlock(&lock);
    return kind;
}

static tutti_status check_kind(const tutti_layer_kind *kind)
{
    if (!kind || kind->struct_size != sizeof *kind || !kind->name || !kind->call)
        return tutti_fail(TUTTI_INVALID,
                          "a kind of layer needs struct_size, a name and a call; see layer.h");
    if (kind->settings_size != 0 && kind->settings_size < sizeof(tutti_layer_settings))
        return tutti_fail(TUTTI_INVALID,
                          "layer kind '%s': settings must begin with TUTTI_LAYER_SETTINGS",
                          kind->name);
    return TUTTI_OK;
}

tutti_status tutti_layer_register(const tutti_layer_kind *kind)
{
    TUTTI_TRY(check_kind(kind));
    if (tutti_layer_find(kind->name))
        return tutti_fail(TUTTI_EXISTS, "there is a kind of layer '%s' already", kind->name);
    pthread_mutex_lock(&lock);
    bool kept = TUTTI_VEC_PUSH(&registered, kind);
    pthread_mutex_unlock(&lock);
    return kept ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a kind of layer");
}

tutti_status tutti__settings_copy(const tutti_field *fields, tutti_arena *arena, void *settings)
{
    for (const tutti_field *field = fields; field && field->key; field++) {
        if (field->kind != TUTTI_FIELD_TEXT)
            continue;
        const char **text = (const char **)(void *)((char *)settings + field->offset);
        if (*text && !(*text = tutti__arena_string(arena, *text)))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a layer's settings");
    }
    return TUTTI_OK;
}

static tutti_status take_settings(tutti_layer *layer, const void *settings)
{
    size_t size =
        layer->kind->settings_size ? layer->kind->settings_size : sizeof(tutti_layer_settings);
    layer->settings = tutti__arena_take(&layer->arena, size);
    if (!layer->settings)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a layer");
    if (!settings)
        return TUTTI_OK;
    tutti_layer_settings common;
    memcpy(&common.struct_size, settings, sizeof common.struct_size);
    if (common.struct_size < sizeof common)
        return tutti_fail(TUTTI_INVALID, "layer '%s': settings without their struct_size",
                          layer->kind->name);
    memcpy(layer->settings, settings, common.struct_size < size ? common.struct_size : size);
    memcpy(&common, layer->settings, sizeof common);
    layer->frozen = common.frozen;
    layer->remat = common.remat;
    layer->stage = common.stage;
    if (common.name && !(layer->name = tutti__arena_string(&layer->arena, common.name)))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a layer");
    if (common.device && !(layer->device = tutti__arena_string(&layer->arena, common.device)))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a layer");
    ((tutti_layer_settings *)layer->settings)->name = layer->name;
    ((tutti_layer_settings *)layer->settings)->device = layer->device;
    return tutti__settings_copy(layer->kind->fields, &layer->arena, layer->settings);
}

static tutti_layer *layer_make(const tutti_layer_kind *kind, const void *settings,
                               tutti_status status)
{
    tutti_layer *layer = calloc(1, sizeof *layer);
    if (!layer)
        return NULL;
    layer->kind = kind;
    tutti__here_get(&layer->file, &layer->line);
    if (status == TUTTI_OK)
        status = take_settings(layer, settings);
    if (status != TUTTI_OK)
        tutti__error_capture(status, &layer->error);
    return layer;
}

tutti_layer *(tutti_layer_make)(const char *kind, const void *settings)
{
    const tutti_layer_kind *found = kind ? tutti_layer_find(kind) : NULL;
    tutti_status status = TUTTI_OK;
    if (!found)
        status = tutti_fail(TUTTI_NOT_FOUND, "there is no kind of layer '%s'", kind ? kind : "");
    return layer_make(found, settings, status);
}

tutti_layer *(tutti_layer_custom)(const tutti_layer_kind *kind, const void *settings)
{
    return layer_make(kind, settings, check_kind(kind));
}

void tutti_layer_release(tutti_layer *layer)
{
    if (!layer || layer->owner || layer->dropped)
        return;
    tutti__arena_free(&layer->arena);
    free(layer);
}

void tutti__layer_drop(tutti_layer *layer)
{
    static tutti_layer *all; /* under lock */
    if (!layer || layer->owner)
        return;
    pthread_mutex_lock(&lock);
    if (!layer->dropped) {
        layer->dropped = true;
        layer->next_dropped = all;
        all = layer;
    }
    pthread_mutex_unlock(&lock);
}

const char *tutti_layer_name(const tutti_layer *layer)
{
    return layer && layer->name ? layer->name : "";
}

const char *tutti_layer_kind_name(const tutti_layer *layer)
{
    return layer && layer->kind ? layer->kind->name : "";
}
