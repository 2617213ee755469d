/* safetensors_files.c: which files belong to a path, and which of them are still needed. */
#include "io/safetensors_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/container.h"
#include "base/world.h"
#include "io/json.h"

#define ENDING ".safetensors"
#define INDEX ".index.json"
#define PREVIOUS ".previous"
#define INDEX_LIMIT ((size_t)100 << 20) /* bytes */

typedef struct family {
    const char *path;
    const char *base;  /* the name without folder */
    size_t stem;       /* bytes of `base` before ".safetensors" */
    tutti_text folder; /* "." or as the path has it */
    char **names;      /* in the folder */
    size_t count;
} family;

static void safetensors_files_begin(family *f, const char *path)
{
    const char *slash = strrchr(path, '/');
    *f = (family){.path = path, .base = slash ? slash + 1 : path};
    size_t length = strlen(f->base), ending = strlen(ENDING);
    bool ends = length > ending && strcmp(f->base + length - ending, ENDING) == 0;
    f->stem = ends ? length - ending : length;
}

static tutti_status list(family *f)
{
    const tutti_world *world = tutti__world();
    if (f->base == f->path)
        tutti__text_add(&f->folder, ".");
    else
        tutti__text_bytes(&f->folder, f->path,
                          f->base - f->path > 1 ? (size_t)(f->base - f->path) - 1 : 1);
    if (f->folder.failed)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory", f->path);
    return world->list_folder(world->self, f->folder.data, &f->names, &f->count);
}

static void end(family *f)
{
    tutti__text_free(&f->folder);
    free(f->names);
}

/* "<folder>/<stem of the path><ending>" into the text, which is emptied before. */
static tutti_status full_name(const family *f, const char *ending, tutti_text *text)
{
    text->size = 0;
    tutti__text_bytes(text, f->path, (size_t)(f->base - f->path) + f->stem);
    tutti__text_add(text, "%s", ending);
    return text->failed ? tutti_fail(TUTTI_NO_MEMORY, "%s: no memory", f->path) : TUTTI_OK;
}

/* ---- names ---- */

static const char *safetensors_files_skip(const char *at, const char *word)
{
    size_t length = strlen(word);
    return at && strncmp(at, word, length) == 0 ? at + length : NULL;
}

static const char *skip_digits(const char *at, size_t least, size_t most)
{
    size_t count = at ? strspn(at, "0123456789") : 0;
    return count >= least && count <= most ? at + count : NULL;
}

/* Behind "-00001-of-00003.g2.safetensors"; NULL when that is not there. */
static const char *skip_piece(const char *at, int64_t *ret_generation)
{
    at = skip_digits(
        safetensors_files_skip(skip_digits(safetensors_files_skip(at, "-"), 5, 5), "-of-"), 5, 5);
    const char *number = safetensors_files_skip(at, ".g");
    *ret_generation = number ? strtoll(number, NULL, 10) : 0;
    return safetensors_files_skip(number ? skip_digits(number, 1, 15) : at, ENDING);
}

/* Behind ".<process>-<number>.tmp". */
static const char *skip_temporary(const char *at)
{
    return safetensors_files_skip(
        skip_digits(
            safetensors_files_skip(skip_digits(safetensors_files_skip(at, "."), 1, 20), "-"), 1,
            20),
        ".tmp");
}

bool tutti__safetensors_is_piece(const char *name)
{
    int64_t generation;
    for (const char *at = strchr(name, '-'); at; at = strchr(at + 1, '-')) {
        const char *behind = skip_piece(at, &generation);
        if (behind && *behind == 0)
            return true;
    }
    return false;
}

static bool is_piece_of(const family *f, const char *name, int64_t *ret_generation)
{
    if (strncmp(name, f->base, f->stem) != 0)
        return false;
    const char *behind = skip_piece(name + f->stem, ret_generation);
    return behind && *behind == 0;
}

/* Of the file, the index or a piece. */
static bool is_temporary_of(const family *f, const char *name)
{
    int64_t generation;
    if (strncmp(name, f->base, f->stem) != 0)
        return false;
    const char *at = name + f->stem, *file = safetensors_files_skip(at, f->base + f->stem);
    const char *index = safetensors_files_skip(at, ENDING INDEX),
               *piece = skip_piece(at, &generation);
    at = skip_temporary(piece ? piece : index ? index : file);
    return at && *at == 0;
}

tutti_status tutti__safetensors_next_generation(const char *path, int64_t *ret_generation)
{
    family f;
    int64_t next = 0, each;
    safetensors_files_begin(&f, path);
    tutti_status status = list(&f);
    for (size_t i = 0; status == TUTTI_OK && i < f.count; i++)
        if (is_piece_of(&f, f.names[i], &each) && each >= next)
            next = each + 1;
    end(&f);
    if (status == TUTTI_OK)
        *ret_generation = next;
    return status;
}

/* ---- generations ---- */

/* What is not there need not be removed. */
static tutti_status remove_if_there(const char *path)
{
    const tutti_world *world = tutti__world();
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    tutti_status status = world->remove_file(world->self, path);
    return status == TUTTI_NOT_FOUND ? tutti__error_restore(&before) : status;
}

static tutti_status remove_ending(const family *f, const char *ending)
{
    tutti_text name = {0};
    tutti_status status = full_name(f, ending, &name);
    if (status == TUTTI_OK)
        status = remove_if_there(name.data);
    tutti__text_free(&name);
    return status;
}

/* *ret_kept: it was there. */
static tutti_status safetensors_files_keep(const family *f, const char *ending,
                                           const char *previous, bool *ret_kept)
{
    const tutti_world *world = tutti__world();
    tutti_text name = {0}, second = {0};
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    tutti_status status = full_name(f, ending, &name);
    if (status == TUTTI_OK)
        status = full_name(f, previous, &second);
    if (status == TUTTI_OK)
        status = world->link_file(world->self, name.data, second.data);
    *ret_kept = status == TUTTI_OK;
    tutti__text_free(&name);
    tutti__text_free(&second);
    return status == TUTTI_NOT_FOUND ? tutti__error_restore(&before) : status;
}

tutti_status tutti__safetensors_keep_previous(const char *path)
{
    family f;
    bool kept;
    safetensors_files_begin(&f, path);
    const char *file = f.base + f.stem;
    const char *file_before = *file ? ENDING PREVIOUS : PREVIOUS;
    TUTTI_TRY(safetensors_files_keep(&f, file, file_before, &kept));
    if (kept)
        return remove_ending(&f, ENDING INDEX PREVIOUS);
    TUTTI_TRY(safetensors_files_keep(&f, ENDING INDEX, ENDING INDEX PREVIOUS, &kept));
    return kept ? remove_ending(&f, file_before) : TUTTI_OK;
}

/* Adds the names of files in an index to the map. An index that is missing or damaged names none.
 */
static tutti_status add_named(const family *f, const char *ending, tutti_arena *arena,
                              tutti_map *names)
{
    const tutti_world *world = tutti__world();
    tutti_text path = {0};
    void *data = NULL;
    size_t size;
    const tutti_json *root = NULL;
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    tutti_status status = full_name(f, ending, &path);
    if (status == TUTTI_OK)
        status = world->read_file(world->self, path.data, INDEX_LIMIT, &data, &size);
    if (status == TUTTI_OK)
        status = tutti__json_parse(path.data, data, size, NULL, arena, &root);
    free(data);
    tutti__text_free(&path);
    if (status == TUTTI_NOT_FOUND || status == TUTTI_CORRUPT)
        return tutti__error_restore(&before);
    const tutti_json *map = status == TUTTI_OK ? tutti__json_get(root, "weight_map") : NULL;
    if (!map || map->kind != TUTTI_JSON_OBJECT)
        return status;
    for (const tutti_json *each = map->as.first; each && status == TUTTI_OK; each = each->next) {
        const char *name = tutti__json_text(each, NULL);
        if (name && !tutti__map_get(names, name))
            status = tutti__map_set(names, name, (void *)(uintptr_t)name);
    }
    return status;
}

/* What was left behind by savings before, and by processes that died. */
static tutti_status remove_left(family *f, const tutti_map *needed)
{
    const tutti_world *world = tutti__world();
    tutti_status status = list(f);
    tutti_text path = {0};
    for (size_t i = 0; status == TUTTI_OK && i < f->count; i++) {
        int64_t generation;
        const char *name = f->names[i];
        bool piece = is_piece_of(f, name, &generation) && !tutti__map_get(needed, name);
        if (!piece && !is_temporary_of(f, name))
            continue;
        path.size = 0;
        tutti__text_add(&path, "%s/%s", f->folder.data, name);
        status = path.failed ? tutti_fail(TUTTI_NO_MEMORY, "%s: no memory", f->path)
                 : piece     ? remove_if_there(path.data)
                             : world->remove_abandoned(world->self, path.data);
    }
    tutti__text_free(&path);
    return status;
}

tutti_status tutti__safetensors_clean(const char *path, bool pieces)
{
    family f;
    tutti_map needed = {0};
    tutti_arena arena = {0};
    safetensors_files_begin(&f, path);
    tutti_status status = remove_ending(&f, pieces ? f.base + f.stem : ENDING INDEX);
    if (status == TUTTI_OK)
        status = add_named(&f, ENDING INDEX, &arena, &needed);
    if (status == TUTTI_OK)
        status = add_named(&f, ENDING INDEX PREVIOUS, &arena, &needed);
    if (status == TUTTI_OK)
        status = remove_left(&f, &needed);
    tutti__map_free(&needed);
    tutti__arena_free(&arena);
    end(&f);
    return status;
}

void tutti__safetensors_remove(const char *path)
{
    static const char *const endings[] = {ENDING, ENDING PREVIOUS, ENDING INDEX,
                                          ENDING INDEX PREVIOUS};
    family f;
    tutti_map none = {0};
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    safetensors_files_begin(&f, path);
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < TUTTI_COUNT(endings); i++)
        status = remove_ending(&f, endings[i]) != TUTTI_OK ? TUTTI_IO : status;
    if (remove_left(&f, &none) != TUTTI_OK || status != TUTTI_OK)
        tutti__error_restore(&before);
    end(&f);
}
