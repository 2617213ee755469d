/* optimizer_settings.c: optimizers from settings, by name, and to and from numbers by key. */
#include <stdio.h>
#include <string.h>

#include "base/require.h"
#include "nn/optimizers/optimizer.h"
#include "tables/optimizer_def.h"

/* What all settings begin with. */
typedef struct common_settings {
    TUTTI_OPTIMIZER_SETTINGS;
} common_settings;

static double read_field(const void *settings, const tutti_optimizer_field *field)
{
    double number;
    bool flag;
    if (!settings)
        return 0;
    if (field->flag) {
        memcpy(&flag, (const char *)settings + field->offset, sizeof flag);
        return flag;
    }
    memcpy(&number, (const char *)settings + field->offset, sizeof number);
    return number;
}

static bool wants_torch(const tutti_optimizer_def *def, const void *settings)
{
    for (const tutti_optimizer_field *field = def->fields; field && field->key; field++)
        if (strcmp(field->key, "torch_form") == 0)
            return read_field(settings, field) != 0;
    return false;
}

tutti_optimizer tutti__optimizer_make(const tutti_optimizer_def *def, const void *settings)
{
    common_settings common = {0};
    bool torch = wants_torch(def, settings);
    if (settings)
        memcpy(&common, settings, sizeof common);
    tutti_optimizer made = {
        .def = def,
        .name = common.name ? common.name : def->name,
        .learning_rate = tutti__setting_or(common.learning_rate, def->learning_rate),
        .weight_decay = tutti__setting_or(common.weight_decay,
                                          torch ? def->torch_weight_decay : def->weight_decay),
        .decay = common.decay,
        .clip_value = common.clip_value,
        .clip_norm = common.clip_norm,
        .global_clip_norm = common.global_clip_norm,
        .ema_decay = common.ema_decay,
        .schedule = common.schedule};
    for (int i = 0; def->fields && def->fields[i].key; i++)
        made.numbers[i] =
            tutti__setting_or(read_field(settings, &def->fields[i]),
                              torch ? def->fields[i].torch_fallback : def->fields[i].fallback);
    made.group_count = common.groups.count;
    for (int i = 0; i < made.group_count && i < TUTTI_OPTIMIZER_GROUPS; i++)
        made.groups[i] = common.groups.list[i];
    tutti__param_groups_resolve(&made);
    return made;
}

double tutti__optimizer_number(const tutti_optimizer *optimizer, const char *key)
{
    const tutti_optimizer_field *fields = optimizer->def->fields;
    for (int i = 0; fields && fields[i].key; i++)
        if (fields[i].key[0] == key[0] && strcmp(fields[i].key, key) == 0)
            return optimizer->numbers[i];
    return 0;
}

static tutti_status optimizer_settings_find(const char *kind, const tutti_optimizer_def **ret)
{
    char names[400] = "";
    for (const tutti_optimizer_def *const *def = tutti__optimizer_def_table; *def; def++) {
        size_t used = strlen(names);
        if (strcmp((*def)->name, kind) == 0) {
            *ret = *def;
            return TUTTI_OK;
        }
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", (*def)->name);
    }
    return tutti_fail(TUTTI_NOT_FOUND, "there is no optimizer '%s'; there are %s", kind, names);
}

tutti_status tutti_optimizer_by_name(const char *kind, double learning_rate,
                                     tutti_optimizer *ret_optimizer)
{
    TUTTI_REQUIRE(ret_optimizer);
    const tutti_optimizer_def *def;
    TUTTI_TRY(optimizer_settings_find(kind ? kind : "", &def));
    *ret_optimizer = tutti__optimizer_make(def, NULL);
    ret_optimizer->learning_rate = tutti__setting_or(learning_rate, def->learning_rate);
    return TUTTI_OK;
}

/* Numbers of every optimizer. */
static const struct {
    const char *key;
    size_t offset;
} common_keys[] = {
    {"learning_rate", offsetof(tutti_optimizer, learning_rate)},
    {"weight_decay", offsetof(tutti_optimizer, weight_decay)},
    {"clip_value", offsetof(tutti_optimizer, clip_value)},
    {"clip_norm", offsetof(tutti_optimizer, clip_norm)},
    {"global_clip_norm", offsetof(tutti_optimizer, global_clip_norm)},
    {"ema_decay", offsetof(tutti_optimizer, ema_decay)},
};

int tutti__optimizer_settings(const tutti_optimizer *optimizer, int capacity, tutti_setting *ret)
{
    int count = 0;
    const tutti_optimizer_field *fields = optimizer->def->fields;
    for (size_t i = 0; i < TUTTI_COUNT(common_keys); i++, count++)
        if (count < capacity)
            ret[count] =
                (tutti_setting){.key = common_keys[i].key,
                                .count = 1,
                                .values = (const double *)(const void *)((const char *)optimizer +
                                                                         common_keys[i].offset)};
    for (int i = 0; fields && fields[i].key; i++, count++)
        if (count < capacity)
            ret[count] =
                (tutti_setting){.key = fields[i].key, .count = 1, .values = &optimizer->numbers[i]};
    return count;
}

tutti_status tutti__optimizer_from(const char *kind, int count, const tutti_setting *settings,
                                   tutti_optimizer *ret_optimizer)
{
    tutti_optimizer made;
    tutti_setting places[TUTTI_OPTIMIZER_KEYS];
    TUTTI_TRY(tutti_optimizer_by_name(kind, 0, &made));
    int place_count = tutti__optimizer_settings(&made, TUTTI_OPTIMIZER_KEYS, places);
    for (int i = 0; i < count; i++) {
        const tutti_setting *place = tutti__setting_find(places, place_count, settings[i].key);
        if (!place || settings[i].count != 1)
            return tutti_fail(TUTTI_INVALID, "optimizer %s has no setting '%s' of %d numbers", kind,
                              settings[i].key, settings[i].count);
        /* It points into `made`, which is ours to write. */
        size_t offset = (size_t)((const char *)place->values - (const char *)&made);
        memcpy((char *)&made + offset, settings[i].values, sizeof(double));
    }
    *ret_optimizer = made;
    return TUTTI_OK;
}

double tutti__optimizer_rate(const tutti_optimizer *optimizer, int64_t step)
{
    return optimizer->schedule.def ? tutti_schedule_at(&optimizer->schedule, step)
                                   : optimizer->learning_rate;
}
