/* config_compile.c: optimizer, losses and metrics of a compiled model in its JSON. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nn/optimizers/optimizer.h"
#include "nn/training/config.h"

static const tutti_field loss_fields[] = {
    TUTTI_FLAG_FIELD(tutti_loss, from_logits), TUTTI_NUMBER_FIELD(tutti_loss, label_smoothing),
    TUTTI_NUMBER_FIELD(tutti_loss, delta),     TUTTI_NUMBER_FIELD(tutti_loss, quantile),
    TUTTI_NUMBER_FIELD(tutti_loss, alpha),     TUTTI_NUMBER_FIELD(tutti_loss, gamma),
    TUTTI_CODE_FIELD(tutti_loss, fn),          {0},
};
static const tutti_field metric_fields[] = {
    TUTTI_FLAG_FIELD(tutti_metric, from_logits),
    TUTTI_NUMBER_FIELD(tutti_metric, threshold),
    TUTTI_INT_FIELD(tutti_metric, k),
    TUTTI_INT_FIELD(tutti_metric, thresholds),
    TUTTI_INT_FIELD(tutti_metric, classes),
    TUTTI_CODE_FIELD(tutti_metric, fn),
    {0},
};

/* One of C code (fields NULL) is left out: its present rate stands beside it. */
static void write_schedule(const tutti_schedule *schedule, tutti_json_writer *w)
{
    tutti_setting settings[TUTTI_SCHEDULE_NUMBERS];
    int count = tutti__schedule_settings(schedule, TUTTI_SCHEDULE_NUMBERS, settings);
    tutti__json_key(w, "schedule");
    tutti__json_begin(w, '{');
    tutti__json_key(w, "kind");
    tutti__json_put_string(w, schedule->def->name);
    for (int i = 0; i < count; i++) {
        tutti__json_key(w, settings[i].key);
        if (settings[i].list)
            tutti__json_begin(w, '[');
        for (int k = 0; k < settings[i].count; k++)
            tutti__json_put_real(w, settings[i].values[k]);
        if (settings[i].list)
            tutti__json_end(w);
    }
    tutti__json_end(w);
}

/* What is given of a group; a 0 that stands there is meant. */
static const struct {
    const char *key;
    size_t offset;
} group_keys[] = {
    {"learning_rate", offsetof(tutti_param_group, learning_rate)},
    {"learning_rate_factor", offsetof(tutti_param_group, learning_rate_factor)},
    {"weight_decay", offsetof(tutti_param_group, weight_decay)},
    {"clip_value", offsetof(tutti_param_group, clip_value)},
    {"clip_norm", offsetof(tutti_param_group, clip_norm)},
    {"global_clip_norm", offsetof(tutti_param_group, global_clip_norm)},
};

static void write_groups(const tutti_optimizer *optimizer, tutti_json_writer *w)
{
    tutti__json_key(w, "groups");
    tutti__json_begin(w, '[');
    for (int i = 0; i < optimizer->group_count; i++) {
        const tutti_param_group *group = &optimizer->groups[i];
        tutti__json_begin(w, '{');
        tutti__json_key(w, "pattern");
        tutti__json_put_string(w, group->pattern);
        for (size_t k = 0; k < TUTTI_COUNT(group_keys); k++) {
            double number;
            memcpy(&number, (const char *)group + group_keys[k].offset, sizeof number);
            if (number == 0 && !signbit(number))
                continue;
            tutti__json_key(w, group_keys[k].key);
            tutti__json_put_real(w, fabs(number));
        }
        if (group->frozen) {
            tutti__json_key(w, "frozen");
            tutti__json_put_int(w, 1);
        }
        tutti__json_end(w);
    }
    tutti__json_end(w);
}

static void write_optimizer(const tutti_optimizer *optimizer, tutti_json_writer *w)
{
    tutti_setting settings[TUTTI_OPTIMIZER_KEYS];
    int count = tutti__optimizer_settings(optimizer, TUTTI_OPTIMIZER_KEYS, settings);
    tutti__json_key(w, "optimizer");
    tutti__json_begin(w, '{');
    tutti__json_key(w, "kind");
    tutti__json_put_string(w, optimizer->def->name);
    for (int i = 0; i < count; i++) {
        tutti__json_key(w, settings[i].key);
        tutti__json_put_real(w, settings[i].values[0]);
    }
    if (optimizer->schedule.def && optimizer->schedule.def->fields)
        write_schedule(&optimizer->schedule, w);
    if (optimizer->decay) {
        tutti__json_key(w, "decay");
        tutti__json_put_string(w, optimizer->decay);
    }
    if (optimizer->group_count > 0)
        write_groups(optimizer, w);
    tutti__json_end(w);
}

static tutti_status write_losses(const tutti_model *model, tutti_json_writer *w)
{
    tutti__json_key(w, "losses");
    tutti__json_begin(w, '[');
    for (size_t i = 0; i < model->trainer->goals.count; i++) {
        const tutti_goal *goal = &model->trainer->goals.data[i];
        tutti__json_begin(w, '{');
        tutti__json_key(w, "output");
        tutti__json_put_int(w, goal->output);
        tutti__json_key(w, "loss");
        tutti__json_put_string(w, goal->loss.def->name);
        tutti__json_key(w, "weight");
        tutti__json_put_real(w, goal->weight);
        tutti__json_key(w, "reduction");
        tutti__json_put_int(w, goal->loss.reduction);
        TUTTI_TRY(tutti__settings_write("the loss", loss_fields, &goal->loss, w));
        tutti__json_end(w);
    }
    tutti__json_end(w);
    return TUTTI_OK;
}

static tutti_status write_metrics(const tutti_model *model, tutti_json_writer *w)
{
    tutti__json_key(w, "metrics");
    tutti__json_begin(w, '[');
    for (size_t i = 0; i < model->trainer->tracked.count; i++) {
        const tutti_tracked *item = &model->trainer->tracked.data[i];
        if (!item->metric.def)
            continue;
        tutti__json_begin(w, '{');
        tutti__json_key(w, "output");
        tutti__json_put_int(w, item->output);
        tutti__json_key(w, "metric");
        tutti__json_put_string(w, item->metric.def->name);
        tutti__json_key(w, "name");
        tutti__json_put_string(w, item->name);
        TUTTI_TRY(tutti__settings_write(item->name, metric_fields, &item->metric, w));
        tutti__json_end(w);
    }
    tutti__json_end(w);
    return TUTTI_OK;
}

tutti_status tutti__config_write_compile(tutti_model *model, tutti_json_writer *w)
{
    for (size_t i = 0; i < model->trainer->goals.count; i++)
        if (model->trainer->goals.data[i].loss.fn)
            return TUTTI_OK; /* code of the program: whoever loads the model compiles it */
    for (size_t i = 0; i < model->trainer->tracked.count; i++)
        if (model->trainer->tracked.data[i].metric.fn)
            return TUTTI_OK;
    for (int i = 0; i < model->trainer->optimizer.group_count; i++)
        if (model->trainer->optimizer.groups[i].filter)
            return TUTTI_OK;
    tutti__json_key(w, "compile");
    tutti__json_begin(w, '{');
    write_optimizer(&model->trainer->optimizer, w);
    TUTTI_TRY(write_losses(model, w));
    TUTTI_TRY(write_metrics(model, w));
    tutti__json_end(w);
    return TUTTI_OK;
}

/* ---- reading ---- */

static tutti_status read_schedule(const tutti_json *json, tutti_schedule *ret)
{
    tutti_setting settings[TUTTI_SCHEDULE_NUMBERS];
    double values[TUTTI_SCHEDULE_NUMBERS];
    int count = 0, used = 0;
    for (const tutti_json *each = tutti__json_first(json); each; each = each->next) {
        bool list = each->kind == TUTTI_JSON_ARRAY;
        int numbers = list ? (int)each->count : 1;
        if (strcmp(each->key, "kind") == 0)
            continue;
        if (count == TUTTI_SCHEDULE_NUMBERS || each->count > TUTTI_SCHEDULE_NUMBERS ||
            used + numbers > TUTTI_SCHEDULE_NUMBERS)
            return tutti_fail(TUTTI_CORRUPT, "the model's schedule has too many numbers");
        settings[count] = (tutti_setting){
            .key = each->key, .list = list, .count = numbers, .values = &values[used]};
        count++;
        if (!list)
            values[used++] = tutti__json_real(each, 0);
        for (const tutti_json *n = list ? tutti__json_first(each) : NULL; n; n = n->next)
            values[used++] = tutti__json_real(n, 0);
    }
    return tutti__schedule_make(tutti__json_text(tutti__json_get(json, "kind"), ""), count,
                                settings, ret);
}

static tutti_status read_group(const tutti_json *json, tutti_param_group *ret)
{
    *ret = (tutti_param_group){.pattern = tutti__json_text(tutti__json_get(json, "pattern"), NULL),
                               .frozen = tutti__json_int(tutti__json_get(json, "frozen"), 0) != 0};
    for (size_t k = 0; k < TUTTI_COUNT(group_keys); k++) {
        const tutti_json *number = tutti__json_get(json, group_keys[k].key);
        double value = number ? tutti__json_real(number, 0) : 0;
        value = number && value == 0 ? TUTTI_ZERO : value;
        memcpy((char *)ret + group_keys[k].offset, &value, sizeof value);
    }
    return ret->pattern
               ? TUTTI_OK
               : tutti_fail(TUTTI_CORRUPT, "a parameter group of the model has no pattern");
}

/* Texts stay the JSON's: compile copies them. */
static tutti_status read_groups(const tutti_json *json, tutti_optimizer *optimizer)
{
    const tutti_json *list = tutti__json_get(json, "groups");
    optimizer->decay = tutti__json_text(tutti__json_get(json, "decay"), NULL);
    for (const tutti_json *each = tutti__json_first(list); each; each = each->next) {
        if (optimizer->group_count == TUTTI_OPTIMIZER_GROUPS)
            return tutti_fail(TUTTI_CORRUPT, "the model's optimizer has more than %d groups",
                              TUTTI_OPTIMIZER_GROUPS);
        TUTTI_TRY(read_group(each, &optimizer->groups[optimizer->group_count++]));
    }
    return TUTTI_OK;
}

static tutti_status read_optimizer(const tutti_json *json, tutti_optimizer *ret)
{
    tutti_setting settings[TUTTI_OPTIMIZER_KEYS];
    double values[TUTTI_OPTIMIZER_KEYS];
    int count = 0;
    const char *kind = tutti__json_text(tutti__json_get(json, "kind"), "adam");
    for (const tutti_json *each = tutti__json_first(json); each; each = each->next) {
        if (strcmp(each->key, "kind") == 0 || strcmp(each->key, "schedule") == 0 ||
            strcmp(each->key, "decay") == 0 || strcmp(each->key, "groups") == 0)
            continue;
        if (count == TUTTI_OPTIMIZER_KEYS)
            return tutti_fail(TUTTI_CORRUPT, "the model's optimizer has too many settings");
        if (each->kind != TUTTI_JSON_INT && each->kind != TUTTI_JSON_REAL)
            return tutti_fail(TUTTI_CORRUPT, "optimizer %s: '%s' is no number", kind, each->key);
        values[count] = tutti__json_real(each, 0);
        settings[count] = (tutti_setting){.key = each->key, .count = 1, .values = &values[count]};
        count++;
    }
    TUTTI_TRY(tutti__optimizer_from(kind, count, settings, ret));
    TUTTI_TRY(read_groups(json, ret));
    const tutti_json *schedule = tutti__json_get(json, "schedule");
    return schedule ? read_schedule(schedule, &ret->schedule) : TUTTI_OK;
}

static const char *const loss_members[] = {"output", "loss", "weight", "reduction", NULL};
static const char *const metric_members[] = {"output", "metric", "name", NULL};

static tutti_status read_index(const tutti_model *model, const tutti_json *json, const char **ret)
{
    int64_t index = tutti__json_int(tutti__json_get(json, "output"), 0);
    if (index < 0 || (index > 0 && (size_t)index >= model->outputs.count))
        return tutti_fail(TUTTI_CORRUPT,
                          "the model's JSON speaks of output %lld, which is not there",
                          (long long)index);
    *ret = (size_t)index < model->outputs.count ? model->outputs.data[index].name : NULL;
    return TUTTI_OK;
}

static tutti_status read_loss(tutti_model *model, const tutti_json *json, tutti_arena *arena,
                              tutti_output_loss *ret)
{
    const char *name = tutti__json_text(tutti__json_get(json, "loss"), "");
    tutti_loss loss = tutti_loss_by_name(name, NULL);
    if (!loss.def)
        return tutti_fail(TUTTI_NOT_FOUND, "there is no loss '%s'", name);
    int64_t reduction = tutti__json_int(tutti__json_get(json, "reduction"), 0);
    if (reduction < 0 || reduction > 2)
        return tutti_fail(TUTTI_CORRUPT,
                          "loss %s: the reduction is 0 (mean), 1 (sum) or 2 "
                          "(weighted mean), not %lld",
                          name, (long long)reduction);
    loss.reduction = (tutti_loss_reduction)reduction;
    TUTTI_TRY(tutti__settings_read(name, loss_fields, json, loss_members, arena, &loss));
    *ret = (tutti_output_loss){.loss = loss,
                               .weight = tutti__json_real(tutti__json_get(json, "weight"), 1)};
    return read_index(model, json, &ret->output);
}

/* The name that a metric was given, without the output's before it, which compile adds. */
static const char *shown_name(tutti_model *model, const char *output, const tutti_json *json,
                              const char *fallback)
{
    const char *name = tutti__json_text(json, "");
    size_t length = output ? strlen(output) : 0;
    if (length > 0 && strncmp(name, output, length) == 0 && name[length] == '_')
        name += length + 1;
    const char *kept = name[0] ? tutti__arena_string(&model->arena, name) : NULL;
    return kept ? kept : fallback;
}

/* `prefixed`: there are several losses, and metrics begin with their outputs' names. */
static tutti_status read_metric(tutti_model *model, const tutti_json *json, bool prefixed,
                                tutti_output_metric *ret)
{
    const char *name = tutti__json_text(tutti__json_get(json, "metric"), "");
    tutti_metric metric = tutti_metric_by_name(name, NULL);
    if (!metric.def)
        return tutti__metric_missing(name);
    TUTTI_TRY(
        tutti__settings_read(name, metric_fields, json, metric_members, &model->arena, &metric));
    TUTTI_TRY(read_index(model, json, &ret->output));
    metric.name = shown_name(model, prefixed ? ret->output : NULL, tutti__json_get(json, "name"),
                             metric.name);
    ret->metric = metric;
    return TUTTI_OK;
}

tutti_status tutti__config_read_compile(tutti_model *model, const tutti_json *json)
{
    tutti_output_loss losses[32];
    tutti_output_metric metrics[32];
    int loss_count = 0, metric_count = 0;
    tutti_optimizer optimizer = {0};
    const tutti_json *list = tutti__json_get(json, "optimizer");
    if (list)
        TUTTI_TRY(read_optimizer(list, &optimizer));
    list = tutti__json_get(json, "losses");
    for (const tutti_json *each = tutti__json_first(list); each && loss_count < 32;
         each = each->next)
        TUTTI_TRY(read_loss(model, each, &model->arena, &losses[loss_count++]));
    list = tutti__json_get(json, "metrics");
    for (const tutti_json *each = tutti__json_first(list); each && metric_count < 32;
         each = each->next)
        TUTTI_TRY(read_metric(model, each, loss_count > 1, &metrics[metric_count++]));
    tutti_compile_options options = {.struct_size = sizeof options,
                                     .optimizer = optimizer,
                                     .losses = {loss_count, losses},
                                     .metric_list = {metric_count, metrics}};
    return tutti_compile_with(model, &options);
}
