/* save.c: weights by name, and whole models, in files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "io/crc32c.h"
#include "nn/model/model.h"
#include "nn/model/model_strategy.h"
#include "nn/training/config.h"
#include "nn/training/trainer.h"
#include "state/checkpoint.h"
#include "tutti/checkpoint.h"

/* ---- names ---- */

/* The file's name of a weight. */
static tutti_status file_name(const tutti_weight_names *names, const char *weight, char *ret,
                              size_t size)
{
    int written = -1;
    for (int i = 0; names && i < names->count && written < 0; i++) {
        const char *from = names->list[i].weight, *to = names->list[i].file;
        const char *star = strchr(from, '*'), *other = strchr(to, '*');
        size_t before = star ? (size_t)(star - from) : strlen(from), length = strlen(weight);
        size_t behind = star ? strlen(star + 1) : 0;
        if (!star && strcmp(from, weight) == 0)
            written = snprintf(ret, size, "%s", to);
        if (!star || length < before + behind || strncmp(from, weight, before) != 0 ||
            strcmp(star + 1, weight + length - behind) != 0)
            continue;
        if (!other)
            return tutti_fail(TUTTI_INVALID,
                              "names: '%s' stands for several weights, '%s' for one tensor; write "
                              "a '*' in both",
                              from, to);
        written = snprintf(ret, size, "%.*s%.*s%s", (int)(other - to), to,
                           (int)(length - before - behind), weight + before, other + 1);
    }
    if (written < 0)
        written = snprintf(ret, size, "%s", weight);
    if ((size_t)written >= size)
        return tutti_fail(TUTTI_TOO_LARGE, "names: that of weight '%.60s' is too long", weight);
    return TUTTI_OK;
}

/* ---- saving ---- */

static tutti_status take_constants(const tutti_config_stored *stored, tutti_snapshot *snapshot)
{
    for (size_t i = 0; stored && i < stored->constants.count; i++) {
        tutti_snapshot_entry *entry = &snapshot->entries[snapshot->count];
        entry->name = strdup(stored->constants.data[i].name);
        if (!entry->name)
            return tutti_fail(TUTTI_NO_MEMORY, "no memory");
        entry->value = tutti_tensor_retain(stored->constants.data[i].value);
        snapshot->count++;
    }
    return TUTTI_OK;
}

/* `stored`: large constants of the model's, or NULL; so are `options`. */
static tutti_status take_weights(tutti_model *model, const tutti_config_stored *stored,
                                 const tutti_save_weights_options *options, tutti_snapshot *ret)
{
    char name[1024], full[1200];
    const char *prefix = options && options->prefix ? options->prefix : "";
    int count = tutti_weight_count(model);
    size_t room = (size_t)count + (stored ? stored->constants.count : 0) + 1;
    tutti_snapshot snapshot = {.entries = calloc(room, sizeof *snapshot.entries)};
    tutti_status status = snapshot.entries ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory");
    for (int i = 0; status == TUTTI_OK && i < count; i++) {
        tutti_weight_info info;
        tutti_snapshot_entry *entry = &snapshot.entries[snapshot.count];
        status = tutti_weight_at(model, i, &info);
        if (status == TUTTI_OK)
            status = tutti_get_weight(model, info.name, &entry->value);
        if (status != TUTTI_OK)
            break;
        snapshot.count++;
        status = file_name(options ? &options->names : NULL, info.name, name, sizeof name);
        if (status != TUTTI_OK)
            break;
        snprintf(full, sizeof full, "%.150s%s", prefix, name);
        entry->name = strdup(full);
        status = entry->name ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory");
    }
    if (status == TUTTI_OK)
        status = take_constants(stored, &snapshot);
    if (status == TUTTI_OK)
        *ret = snapshot;
    else
        tutti__snapshot_release(&snapshot);
    return status;
}

static tutti_status write_weights(tutti_model *model, const tutti_config_stored *stored,
                                  const tutti_save_weights_options *options, const char *path)
{
    char full[4096];
    tutti_snapshot snapshot;
    TUTTI_TRY(tutti__checkpoint_path(path, full, sizeof full));
    TUTTI_TRY(take_weights(model, stored, options, &snapshot));
    tutti_text_pair metadata[] = {
        {"format", "pt"}, {"tutti.kind", "weights"}, {"tutti.model", model->name}};
    tutti_status status =
        tutti__checkpoint_write(full, &snapshot, 3, metadata, tutti__checkpoint_shard_bytes());
    tutti__snapshot_release(&snapshot);
    return status;
}

static tutti_status save_weights(tutti_model *model, const void *options, const char *path)
{
    return write_weights(model, NULL, options, path);
}

/* `path` without ".safetensors", its index's ending or ".json", with another ending. */
static tutti_status with_ending(const char *path, const char *ending, char *ret, size_t size)
{
    static const char *const known[] = {".safetensors.index.json", ".safetensors", ".json"};
    size_t length = path ? strlen(path) : 0;
    for (size_t i = 0; i < TUTTI_COUNT(known); i++) {
        size_t n = strlen(known[i]);
        if (length > n && strcmp(path + length - n, known[i]) == 0) {
            length -= n;
            break;
        }
    }
    if (length == 0 || snprintf(ret, size, "%.*s%s", (int)length, path, ending) >= (int)size)
        return tutti_fail(TUTTI_INVALID, "a model's file needs a path of 1 to 4000 bytes");
    return TUTTI_OK;
}

/* Of several processes the first one writes. */
static tutti_status save_on_first(tutti_model *model, const void *options, const char *path,
                                  tutti_status (*write)(tutti_model *, const void *, const char *))
{
    TUTTI_TRY(tutti__model_need_built(model));
    TUTTI_TRY(tutti__model_join_to_save(model));
    return tutti__model_saved(model,
                              tutti__model_speaks(model) ? write(model, options, path) : TUTTI_OK);
}

tutti_status tutti_save_weights_with(tutti_model *model, const char *path,
                                     const tutti_save_weights_options *options)
{
    return tutti__model_fail(model, save_on_first(model, options, path, save_weights));
}

/* The JSON with a checksum of the whole text as its first member, whose digits count as zeros. */
static tutti_status save_describe(tutti_model *model, tutti_config_stored *stored, tutti_text *text)
{
    static const char first[] = "{\n  \"crc32c\": \"";
    char *json, digits[9];
    TUTTI_TRY(tutti__model_json(model, stored, &json));
    tutti__text_add(text, "%s00000000\",", first);
    tutti__text_bytes(text, json + 1, strlen(json + 1));
    free(json);
    if (text->failed)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for JSON");
    snprintf(digits, sizeof digits, "%08x", tutti__crc32c(0, text->data, text->size));
    memcpy(text->data + sizeof first - 1, digits, 8);
    return TUTTI_OK;
}

static tutti_status save(tutti_model *model, const void *options, const char *path)
{
    (void)options;
    const tutti_world *world = tutti__world();
    char weights[4096], architecture[4096];
    tutti_text text = {0};
    tutti_config_stored stored = {.prefix = ""};
    TUTTI_TRY(with_ending(path, ".safetensors", weights, sizeof weights));
    TUTTI_TRY(with_ending(path, ".json", architecture, sizeof architecture));
    tutti_status status = save_describe(model, &stored, &text);
    if (status == TUTTI_OK)
        status = write_weights(model, &stored, NULL, weights);
    if (status == TUTTI_OK)
        status = world->write_file(world->self, architecture, text.data, text.size);
    tutti__text_free(&text);
    tutti__config_stored_free(&stored);
    return status;
}

tutti_status tutti__model_try_place(const char *path)
{
    char full[4096];
    TUTTI_TRY(with_ending(path, ".safetensors", full, sizeof full));
    TUTTI_TRY(tutti__place_try(full));
    TUTTI_TRY(with_ending(path, ".json", full, sizeof full));
    return tutti__place_try(full);
}

tutti_status tutti_save_model(tutti_model *model, const char *path)
{
    return tutti__model_fail(model, save_on_first(model, NULL, path, save));
}

/* ---- loading ---- */

typedef struct loading {
    tutti_model *model;
    const tutti_safetensors *file;
    const tutti_load_weights_options *options;
    const char *path;
    bool *used; /* by tensor of the file */
    tutti_load_report report;
    tutti_text lines;
} loading;

/* The file's tensor for a weight, or NULL. */
static tutti_status find_item(const loading *l, const char *weight, const tutti_safetensor **ret)
{
    char name[1024], full[2048];
    const char *maybe = l->options->maybe_prefix ? l->options->maybe_prefix : "";
    TUTTI_TRY(file_name(&l->options->names, weight, name, sizeof name));
    for (int with = 1; with >= 0; with--) {
        snprintf(full, sizeof full, "%s%s%s", l->options->prefix ? l->options->prefix : "",
                 with ? maybe : "", name);
        *ret = tutti__safetensors_find(l->file, full);
        if (*ret)
            break;
    }
    return TUTTI_OK;
}

static tutti_status load_one(loading *l, const tutti_weight_info *info)
{
    char have[TUTTI_TYPE_TEXT], want[TUTTI_TYPE_TEXT];
    const tutti_safetensor *item;
    TUTTI_TRY(find_item(l, info->name, &item));
    if (!item) {
        l->report.missing++;
        tutti__text_add(&l->lines, "missing     %s %s\n", info->name,
                        tutti_type_text(&info->type, want));
        return TUTTI_OK;
    }
    l->used[item - l->file->items] = true;
    bool same_shape =
        item->type.rank == info->type.rank &&
        memcmp(item->type.dims, info->type.dims, (size_t)info->type.rank * sizeof(int64_t)) == 0;
    bool same_kind = (item->type.dtype == TUTTI_STRING) == (info->type.dtype == TUTTI_STRING);
    if (!same_shape || !same_kind || item->type.dtype == TUTTI_NO_DTYPE) {
        l->report.mismatched++;
        tutti__text_add(&l->lines, "mismatched  %s: %s in the file, %s in the model\n", info->name,
                        tutti_type_text(&item->type, have), tutti_type_text(&info->type, want));
        return TUTTI_OK;
    }
    tutti_tensor *tensor, *cast;
    TUTTI_TRY(tutti__safetensors_tensor(l->file, item, &tensor));
    tutti_status status = tutti_tensor_cast(tensor, info->type.dtype, &cast);
    tutti_tensor_release(tensor);
    TUTTI_TRY(status);
    status = tutti_set_weight(l->model, info->name, cast);
    tutti_tensor_release(cast);
    l->report.loaded += status == TUTTI_OK;
    return status;
}

static void note_unused(loading *l)
{
    const char *prefix = l->options->prefix ? l->options->prefix : "";
    for (size_t i = 0; i < l->file->count; i++) {
        const char *name = l->file->items[i].name;
        if (strncmp(name, prefix, strlen(prefix)) != 0 ||
            strncmp(name, TUTTI_CONFIG_CONSTANTS, strlen(TUTTI_CONFIG_CONSTANTS)) == 0)
            continue;
        const char *maybe = l->options->maybe_prefix, *own = name + strlen(prefix);
        if (maybe && strncmp(own, maybe, strlen(maybe)) == 0)
            own += strlen(maybe);
        if (l->used[i] || (l->options->ignored && tutti__glob_match(l->options->ignored, own)))
            continue;
        l->report.unused++;
        tutti__text_add(&l->lines, "unused      %s\n", name);
    }
}

static tutti_status load_all(loading *l)
{
    tutti_weight_info info;
    int count = tutti_weight_count(l->model);
    for (int i = 0; i < count; i++) {
        TUTTI_TRY(tutti_weight_at(l->model, i, &info));
        TUTTI_TRY(load_one(l, &info));
    }
    note_unused(l);
    const char *kind = tutti__safetensors_metadata(l->file, "tutti.kind");
    bool training = kind && strcmp(kind, "checkpoint") == 0; /* slots are unused, rightly */
    if (l->options->partial || (l->report.missing == 0 && l->report.mismatched == 0 &&
                                (l->report.unused == 0 || training)))
        return TUTTI_OK;
    return tutti_fail(
        TUTTI_INVALID,
        "%s does not fit model '%s' (%d loaded, %d missing, %d unused, %d mismatched; "
        ".partial takes what fits):\n%s",
        l->path, l->model->name, l->report.loaded, l->report.missing, l->report.unused,
        l->report.mismatched, l->lines.data ? l->lines.data : "");
}

static tutti_status load_weights(tutti_model *model, const char *path,
                                 const tutti_load_weights_options *options)
{
    tutti_safetensors *file;
    TUTTI_TRY(tutti__model_need_built(model));
    char full[4096];
    TUTTI_TRY(with_ending(path, ".safetensors", full, sizeof full));
    TUTTI_TRY(tutti__checkpoint_open(full, false, &file));
    loading l = {.model = model, .file = file, .options = options, .path = full};
    l.used = calloc(file->count + 1, sizeof *l.used);
    tutti_status status =
        l.used ? load_all(&l) : tutti_fail(TUTTI_NO_MEMORY, "no memory to load weights");
    free(l.used);
    tutti__safetensors_close(file);
    if (options->report) {
        *options->report = l.report;
        options->report->text = l.lines.data;
    } else {
        tutti__text_free(&l.lines);
    }
    return status;
}

tutti_status tutti_load_weights_with(tutti_model *model, const char *path,
                                     const tutti_load_weights_options *options)
{
    return tutti__model_fail(model, load_weights(model, path, options));
}

static tutti_status load_model(tutti_job *job, const char *path, tutti_model **ret)
{
    const tutti_world *world = tutti__world();
    char architecture[4096], weights[4096];
    tutti_config_source from = {.prefix = ""};
    tutti_safetensors *file = NULL;
    tutti_model *model = NULL;
    void *text;
    size_t size;
    TUTTI_TRY(with_ending(path, ".json", architecture, sizeof architecture));
    TUTTI_TRY(with_ending(path, ".safetensors", weights, sizeof weights));
    TUTTI_TRY(world->read_file(world->self, architecture, (size_t)256 << 20, &text, &size));
    tutti_status status = TUTTI_OK;
    if (strstr(text, "\"stored\""))
        status = tutti__checkpoint_open(weights, false, &file);
    from.file = file;
    if (status == TUTTI_OK && (status = tutti__model_of_json(job, &from, text, &model)) != TUTTI_OK)
        status = tutti__error_prefix(status, "%s", architecture);
    tutti__safetensors_close(file);
    free(text);
    TUTTI_TRY(status);
    TUTTI_TRY(tutti__model_need_built(model));
    TUTTI_TRY(tutti_load_weights(model, path));
    *ret = model;
    return TUTTI_OK;
}

tutti_model *tutti_load_model(tutti_job *job, const char *path)
{
    tutti_model *model = NULL;
    if (!tutti__job_able(job))
        return NULL;
    return tutti_job_fail(job, load_model(job, path, &model)) == TUTTI_OK ? model : NULL;
}
