/* checkpoint.c: writing and reading the state, two generations deep. */
#include "state/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/log.h"
#include "base/params.h"

#define ENDING ".safetensors"
#define INDEX ".index.json"

static tutti_param shard_bytes_limit =
    TUTTI_PARAM("SHARD_BYTES", "5000000000",
                "bytes of data in one file of weights or of a checkpoint; more goes into several");

int64_t tutti__checkpoint_shard_bytes(void)
{
    return tutti__param_int(&shard_bytes_limit);
}

/* Does the text of that length end so? */
static bool ends(const char *text, size_t length, const char *ending)
{
    size_t size = strlen(ending);
    return length >= size && strncmp(text + length - size, ending, size) == 0;
}

tutti_status tutti__checkpoint_path(const char *path, char *ret_path, size_t size)
{
    size_t length = path ? strlen(path) : 0;
    if (length == 0)
        return tutti_fail(TUTTI_INVALID, "a checkpoint needs a path");
    if (path[length - 1] == '/')
        return tutti_fail(TUTTI_INVALID, "'%s' names a folder; put the file's name behind it",
                          path);
    if (ends(path, length, ENDING INDEX))
        length -= strlen(INDEX);
    if (snprintf(ret_path, size, "%.*s%s", (int)length, path,
                 ends(path, length, ENDING) ? "" : ENDING) >= (int)size)
        return tutti_fail(TUTTI_TOO_LARGE, "the path '%.80s…' is too long", path);
    return TUTTI_OK;
}

static bool is_missing(const char *folder)
{
    const tutti_world *world = tutti__world();
    tutti_error before;
    char **names = NULL;
    size_t count;
    tutti__error_capture(TUTTI_OK, &before);
    bool missing = world->list_folder(world->self, folder, &names, &count) == TUTTI_NOT_FOUND;
    free(names);
    tutti__error_restore(&before);
    return missing;
}

/* A folder that is made is told of: its name may be a mistake. */
static tutti_status make_folder_of(const char *path)
{
    const tutti_world *world = tutti__world();
    char folder[4096];
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return TUTTI_OK;
    if ((size_t)(slash - path) >= sizeof folder)
        return tutti_fail(TUTTI_TOO_LARGE, "the path '%.80s…' is too long", path);
    memcpy(folder, path, (size_t)(slash - path));
    folder[slash - path] = 0;
    bool missing = is_missing(folder);
    TUTTI_TRY(world->make_folder(world->self, folder));
    if (missing && !tutti__log_quiet())
        tutti__log_job(TUTTI_LOG_INFO, "there was no folder '%s': it is made for %s", folder,
                       slash + 1);
    return TUTTI_OK;
}

tutti_status tutti__place_try(const char *path)
{
    const tutti_world *world = tutti__world();
    tutti_file *file;
    int64_t size;
    TUTTI_TRY(make_folder_of(path));
    TUTTI_TRY(world->open_file(world->self, path, TUTTI_FILE_REPLACE, &file, &size));
    return world->close_file(world->self, file, false);
}

tutti_status tutti__checkpoint_try(const char *path)
{
    char full[4096];
    TUTTI_TRY(tutti__checkpoint_path(path, full, sizeof full));
    return tutti__place_try(full);
}

/* The names of what is a box, and the text that says so; `pairs` has room for one more. */
static tutti_status name_boxes(const tutti_snapshot *snapshot, tutti_arena *arena,
                               tutti_named_tensor *tensors, tutti_text_pair *pairs, size_t *count)
{
    size_t boxes = 0;
    tutti_safetensors_box *list = tutti__arena_array(arena, snapshot->count + 1, sizeof *list);
    const char **names = tutti__arena_array(arena, snapshot->count + 1, sizeof *names);
    if (!list || !names)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to write boxes");
    for (size_t i = 0; i < snapshot->count; i++)
        if (snapshot->entries[i].cut)
            list[boxes++] = (tutti_safetensors_box){
                snapshot->entries[i].name, snapshot->entries[i].type, snapshot->entries[i].box};
    if (boxes == 0)
        return TUTTI_OK;
    TUTTI_TRY(tutti__safetensors_name_boxes(arena, boxes, list, names, &pairs[*count]));
    ++*count;
    for (size_t i = 0, at = 0; i < snapshot->count; i++)
        if (snapshot->entries[i].cut)
            tensors[i].name = names[at++];
    return TUTTI_OK;
}

tutti_status tutti__checkpoint_write(const char *path, const tutti_snapshot *snapshot,
                                     size_t metadata_count, const tutti_text_pair *metadata,
                                     int64_t shard_bytes)
{
    tutti_named_tensor *tensors = calloc(snapshot->count + 1, sizeof *tensors);
    if (!tensors)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to write %s", path);
    tutti_arena arena = {0};
    tutti_text_pair *pairs = tutti__arena_array(&arena, metadata_count + 1, sizeof *pairs);
    tutti_status status =
        pairs ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory to write %s", path);
    size_t count = 0;
    if (pairs && metadata_count > 0)
        memcpy(pairs, metadata, metadata_count * sizeof *pairs);
    for (; status == TUTTI_OK && count < snapshot->count; count++) {
        tensors[count].name = snapshot->entries[count].name;
        status = tutti__tensor_to_host(snapshot->entries[count].value, &tensors[count].tensor);
    }
    if (status == TUTTI_OK)
        status = name_boxes(snapshot, &arena, tensors, pairs, &metadata_count);
    if (status == TUTTI_OK)
        status = make_folder_of(path);
    if (status == TUTTI_OK)
        status = tutti__safetensors_save(path, snapshot->count, tensors, metadata_count, pairs,
                                         shard_bytes, true);
    for (size_t i = 0; i < count; i++)
        tutti_tensor_release(tensors[i].tensor);
    free(tensors);
    tutti__arena_free(&arena);
    return status;
}

/* ---- reading ---- */

/* Every tensor with a checksum once, so that damage is found before anything is used. */
static tutti_status check_all(const tutti_safetensors *file)
{
    for (size_t i = 0; i < file->count; i++) {
        tutti_tensor *tensor;
        if (!file->items[i].checked)
            continue;
        TUTTI_TRY(tutti__safetensors_tensor(file, &file->items[i], &tensor));
        tutti_tensor_release(tensor);
    }
    return TUTTI_OK;
}

static tutti_status open_one(const char *path, bool checked, tutti_safetensors **ret)
{
    tutti_safetensors *file;
    TUTTI_TRY(tutti__safetensors_open(path, checked, &file));
    tutti_status status = check_all(file);
    if (status == TUTTI_OK)
        *ret = file;
    else
        tutti__safetensors_close(file);
    return status;
}

tutti_status tutti__checkpoint_open(const char *path, bool checked, tutti_safetensors **ret)
{
    static const char *const endings[] = {".previous", INDEX ".previous"};
    char previous[4200];
    tutti_error before, first;
    tutti__error_capture(TUTTI_OK, &before);
    tutti_status status = open_one(path, checked, ret);
    if (status == TUTTI_OK || (status != TUTTI_CORRUPT && status != TUTTI_NOT_FOUND))
        return status;
    tutti__error_capture(status, &first);
    for (size_t i = 0; i < TUTTI_COUNT(endings); i++) {
        if (snprintf(previous, sizeof previous, "%s%s", path, endings[i]) >= (int)sizeof previous)
            continue;
        status = open_one(previous, true, ret);
        if (status != TUTTI_OK && status != TUTTI_NOT_FOUND && first.status == TUTTI_NOT_FOUND)
            tutti__error_capture(status, &first); /* damage is no absence */
        if (status != TUTTI_OK)
            continue;
        tutti__log_job(TUTTI_LOG_WARNING, "%s; the generation before it is used instead: %s",
                       first.message, previous);
        return tutti__error_restore(&before);
    }
    return tutti__error_restore(&first);
}

uint64_t tutti__checkpoint_identity(const tutti_safetensors *file)
{
    uint64_t hash = 0;
    for (int i = 0; i < file->file_count; i++)
        hash = tutti__hash_bytes(hash, &file->files[i].header_crc, sizeof(uint32_t));
    return hash == 0 ? 1 : hash;
}

/* Before anything is changed: what is there must be as it was saved. */
static tutti_status checkpoint_compare(const tutti_safetensors *file, tutti_state *state)
{
    for (size_t i = 0; i < file->count; i++) {
        const tutti_safetensor *item = &file->items[i];
        const tutti_state_variable *variable = tutti__state_find(state, item->name);
        if (variable)
            TUTTI_TRY(tutti__saved_fits(file->name, item->name, &item->type, &variable->type));
    }
    return TUTTI_OK;
}

/* The parts of queues, or all else. */
static tutti_status expect(const tutti_safetensors *file, tutti_state *state, bool queues)
{
    for (size_t i = 0; i < file->count; i++) {
        const tutti_safetensor *item = &file->items[i];
        tutti_tensor *tensor;
        if (tutti__is_queue_part(item->name) != queues)
            continue;
        TUTTI_TRY(tutti__safetensors_tensor(file, item, &tensor));
        tutti_status status = tutti__state_expect_from(state, item->name, tensor, file->name);
        tutti_tensor_release(tensor);
        TUTTI_TRY(status);
    }
    return TUTTI_OK;
}

tutti_status tutti__checkpoint_restore(const tutti_safetensors *file, tutti_state *state)
{
    TUTTI_TRY(checkpoint_compare(file, state));
    tutti_status status = expect(file, state, true);
    if (status == TUTTI_OK)
        status = tutti__state_fill_queues(state);
    for (size_t i = 0; status != TUTTI_OK && i < file->count; i++)
        if (tutti__is_queue_part(file->items[i].name))
            tutti__state_forget(state, file->items[i].name);
    TUTTI_TRY(status);
    tutti__error_feedback_restart(state);
    return expect(file, state, false);
}
