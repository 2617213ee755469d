/* checkpoint.c: writing and reading the state, two generations deep. */
#include "state/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define ENDING ".safetensors"

tutti_status tutti__checkpoint_path(const char *path, char *ret_path, size_t size)
{
    size_t length = path ? strlen(path) : 0;
    bool there = length >= strlen(ENDING) && strcmp(path + length - strlen(ENDING), ENDING) == 0;
    if (length == 0)
        return tutti_fail(TUTTI_INVALID, "a checkpoint needs a path");
    if (snprintf(ret_path, size, "%s%s", path, there ? "" : ENDING) >= (int)size)
        return tutti_fail(TUTTI_TOO_LARGE, "the path '%.80s…' is too long", path);
    return TUTTI_OK;
}

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
    return world->make_folder(world->self, folder);
}

static tutti_status previous_of(const char *path, char *ret, size_t size)
{
    if (snprintf(ret, size, "%s.previous", path) >= (int)size)
        return tutti_fail(TUTTI_TOO_LARGE, "the path '%.80s…' is too long", path);
    return TUTTI_OK;
}

/* The present file gets a second name, which stays when the first is given to the new file. */
static tutti_status keep_previous(const char *path)
{
    const tutti_world *world = tutti__world();
    char previous[4200];
    tutti_error before;
    TUTTI_TRY(previous_of(path, previous, sizeof previous));
    tutti__error_capture(TUTTI_OK, &before);
    tutti_status status = world->link_file(world->self, path, previous);
    if (status != TUTTI_NOT_FOUND)
        return status;
    tutti__error_restore(&before); /* that there is none yet is no error */
    return TUTTI_OK;
}

tutti_status tutti__checkpoint_write(const char *path, const tutti_snapshot *snapshot,
                                     size_t metadata_count, const tutti_text_pair *metadata,
                                     int64_t shard_bytes)
{
    tutti_named_tensor *tensors = calloc(snapshot->count + 1, sizeof *tensors);
    if (!tensors)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to write %s", path);
    tutti_status status = TUTTI_OK;
    size_t count = 0;
    for (; status == TUTTI_OK && count < snapshot->count; count++) {
        tensors[count].name = snapshot->entries[count].name;
        status = tutti__tensor_to_host(snapshot->entries[count].value, &tensors[count].tensor);
    }
    if (status == TUTTI_OK)
        status = make_folder_of(path);
    if (status == TUTTI_OK)
        status = keep_previous(path);
    if (status == TUTTI_OK)
        status = tutti__safetensors_save(path, snapshot->count, tensors, metadata_count, metadata,
                                         shard_bytes);
    for (size_t i = 0; i < count; i++)
        tutti_tensor_release(tensors[i].tensor);
    free(tensors);
    return status;
}

/* ---- reading ---- */

/* Every tensor once, so that damage is found before anything is used. */
static tutti_status check_all(const tutti_safetensors *file)
{
    for (size_t i = 0; i < file->count; i++) {
        tutti_tensor *tensor;
        TUTTI_TRY(tutti__safetensors_tensor(file, &file->items[i], &tensor));
        tutti_tensor_release(tensor);
    }
    return TUTTI_OK;
}

static tutti_status open_one(const char *path, tutti_safetensors **ret)
{
    tutti_safetensors *file;
    TUTTI_TRY(tutti__safetensors_open(path, true, &file));
    tutti_status status = check_all(file);
    if (status == TUTTI_OK)
        *ret = file;
    else
        tutti__safetensors_close(file);
    return status;
}

tutti_status tutti__checkpoint_open(const char *path, tutti_safetensors **ret)
{
    char previous[4200];
    tutti_error first;
    tutti_status status = open_one(path, ret);
    if (status == TUTTI_OK || (status != TUTTI_CORRUPT && status != TUTTI_NOT_FOUND))
        return status;
    tutti__error_capture(status, &first);
    TUTTI_TRY(previous_of(path, previous, sizeof previous));
    if (open_one(previous, ret) != TUTTI_OK)
        return tutti__error_restore(&first);
    tutti__log(TUTTI_LOG_WARNING, "%s; the generation before it is used instead: %s", first.message,
               previous);
    return TUTTI_OK;
}

tutti_status tutti__checkpoint_restore(const tutti_safetensors *file, tutti_state *state)
{
    for (size_t i = 0; i < file->count; i++) {
        tutti_tensor *tensor;
        TUTTI_TRY(tutti__safetensors_tensor(file, &file->items[i], &tensor));
        tutti_status status = tutti__state_expect(state, file->items[i].name, tensor);
        tutti_tensor_release(tensor);
        TUTTI_TRY(status);
    }
    return TUTTI_OK;
}
