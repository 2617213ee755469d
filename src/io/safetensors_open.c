/* safetensors_open.c: opening one file or all files of an index, and finding what they hold. */
#include <stdlib.h>
#include <string.h>

#include "base/require.h"
#include "io/safetensors.h"

#define INDEX_LIMIT ((size_t)100 << 20) /* bytes */
#define FILES_LIMIT 1000                /* each stays open */

tutti_status tutti__safetensors_new(const char *name, tutti_safetensors **ret)
{
    tutti_safetensors *file = calloc(1, sizeof *file);
    char *copy = strdup(name);
    if (file == NULL || copy == NULL) {
        free(file);
        free(copy);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to read '%s'", name);
    }
    file->name = copy;
    *ret = file;
    return TUTTI_OK;
}

void tutti__safetensors_close(tutti_safetensors *file)
{
    if (file == NULL)
        return;
    for (int i = 0; i < file->file_count; i++)
        tutti__source_close(file->files[i].source);
    tutti__arena_free(&file->arena);
    free(file->files);
    free(file->items);
    free(file->by_name);
    free(file->name);
    free(file);
}

static int by_name(const void *a, const void *b)
{
    const tutti_safetensor *left = *(tutti_safetensor *const *)a;
    const tutti_safetensor *right = *(tutti_safetensor *const *)b;
    return strcmp(left->name, right->name);
}

static void sort_names(tutti_safetensors *file)
{
    for (size_t i = 0; i < file->count; i++)
        file->by_name[i] = &file->items[i];
    qsort(file->by_name, file->count, sizeof(tutti_safetensor *), by_name);
}

tutti_status tutti__safetensors_sort(tutti_safetensors *file)
{
    size_t joined;
    file->by_name = malloc((file->count + 1) * sizeof(tutti_safetensor *));
    if (file->by_name == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for %zu names", file->name, file->count);
    sort_names(file);
    for (size_t i = 1; i < file->count; i++)
        if (strcmp(file->by_name[i - 1]->name, file->by_name[i]->name) == 0)
            return tutti_fail(TUTTI_CORRUPT, "%s: tensor '%.200s' stands in two files", file->name,
                              file->by_name[i]->name);
    TUTTI_TRY(tutti__safetensors_join_strings(file, &joined));
    if (joined > 0)
        sort_names(file);
    TUTTI_TRY(tutti__safetensors_join_boxes(file, &joined));
    if (joined == 0)
        return TUTTI_OK;
    sort_names(file);
    for (size_t i = 1; i < file->count; i++)
        if (strcmp(file->by_name[i - 1]->name, file->by_name[i]->name) == 0)
            return tutti_fail(TUTTI_CORRUPT,
                              "%s: tensor '%.200s' stands there as a whole and in boxes",
                              file->name, file->by_name[i]->name);
    return TUTTI_OK;
}

const tutti_safetensor *tutti__safetensors_find(const tutti_safetensors *file, const char *name)
{
    const tutti_safetensor key = {.name = name}, *pointer = &key;
    tutti_safetensor **found =
        bsearch(&pointer, file->by_name, file->count, sizeof(tutti_safetensor *), by_name);
    return found != NULL ? *found : NULL;
}

const char *tutti__safetensors_metadata(const tutti_safetensors *file, const char *key)
{
    const char *text = NULL;
    for (int i = 0; i < file->file_count && text == NULL; i++)
        text = tutti__json_text(tutti__json_get(file->files[i].metadata, key), NULL);
    return text;
}

static tutti_status open_source(const char *name, tutti_source *source, tutti_safetensors **ret)
{
    tutti_safetensors *file;
    tutti_status status = tutti__safetensors_new(name, &file);
    if (status != TUTTI_OK) {
        tutti__source_close(source);
        return status;
    }
    status = tutti__safetensors_add(file, source);
    if (status == TUTTI_OK)
        status = tutti__safetensors_sort(file);
    if (status != TUTTI_OK)
        tutti__safetensors_close(file);
    else
        *ret = file;
    return status;
}

static tutti_status read_through(tutti_source *self, int64_t offset, void *data, size_t size,
                                 size_t *ret_got)
{
    return tutti__source_some(self->inside, offset, data, size, ret_got);
}

tutti_status tutti__safetensors_read(tutti_source *source, tutti_safetensors **ret)
{
    const tutti_source kind = {.read = read_through};
    tutti_source *through;
    TUTTI_TRY(tutti__source_make(source->name, source->size, &kind, source, &through));
    return open_source(source->name, through, ret);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* The file, or the index beside it when only that is there. */
static tutti_status open_any(const char *path, tutti_safetensors **ret)
{
    if (ends_with(path, ".index.json") || ends_with(path, ".index.json.previous"))
        return tutti__safetensors_open_index(path, ret);
    tutti_source *source;
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    tutti_status status = tutti__source_file(path, &source);
    if (status != TUTTI_NOT_FOUND) {
        TUTTI_TRY(status);
        return open_source(path, source, ret);
    }
    tutti_error missing;
    tutti__error_capture(status, &missing);
    tutti_text index = {0};
    tutti__text_add(&index, "%s%s", path,
                    ends_with(path, ".safetensors") ? ".index.json" : ".safetensors.index.json");
    status = index.failed ? tutti_fail(TUTTI_NO_MEMORY, "no memory to open '%s'", path)
                          : tutti__safetensors_open_index(index.data, ret);
    tutti__text_free(&index);
    if (status == TUTTI_OK || status == TUTTI_NOT_FOUND)
        tutti__error_restore(status == TUTTI_OK ? &before : &missing);
    return status;
}

tutti_status tutti__safetensors_open(const char *path, bool checked, tutti_safetensors **ret)
{
    TUTTI_REQUIRE(path);
    tutti_safetensors *file;
    TUTTI_TRY(open_any(path, &file));
    for (int i = 0; checked && i < file->file_count; i++)
        if (!file->files[i].checked) {
            tutti_status status = tutti_fail(TUTTI_CORRUPT,
                                             "%s: it carries no checksums, which are expected of "
                                             "this file: it is damaged or another program wrote it",
                                             file->files[i].source->name);
            tutti__safetensors_close(file);
            return status;
        }
    *ret = file;
    return TUTTI_OK;
}

/* A name in the index's own folder, and nothing else. */
static bool is_plain_name(const char *name)
{
    return name != NULL && name[0] != '\0' && name[0] != '.' && strpbrk(name, "/\\:") == NULL &&
           strstr(name, "..") == NULL && strlen(name) < 256;
}

typedef struct shard_map {
    const tutti_json **by_file; /* entries of weight_map in order of file, then tensor */
    size_t count;
} shard_map;

static int by_file_then_name(const void *a, const void *b)
{
    const tutti_json *left = *(const tutti_json *const *)a, *right = *(const tutti_json *const *)b;
    int order = strcmp(left->as.text, right->as.text);
    return order != 0 ? order : strcmp(left->key, right->key);
}

static tutti_status sort_map(const char *path, const tutti_json *weights, tutti_arena *arena,
                             shard_map *ret)
{
    if (weights == NULL || weights->kind != TUTTI_JSON_OBJECT || weights->count == 0)
        return tutti_fail(TUTTI_CORRUPT, "%s: expected an object \"weight_map\" with tensors",
                          path);
    ret->by_file = tutti__arena_array(arena, weights->count, sizeof(tutti_json *));
    if (ret->by_file == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for %zu names", path, weights->count);
    for (const tutti_json *each = weights->as.first; each != NULL; each = each->next) {
        if (!is_plain_name(tutti__json_text(each, NULL)))
            return tutti_fail(TUTTI_CORRUPT,
                              "%s: offset %u: tensor '%.200s' must name a file beside the index, "
                              "without folders",
                              path, each->offset, each->key);
        ret->by_file[ret->count++] = each;
    }
    qsort(ret->by_file, ret->count, sizeof(tutti_json *), by_file_then_name);
    return TUTTI_OK;
}

/* Where symbolic links lead: below the index's folder, or below that of the file which the index
 * itself is a link to, as in caches that keep all files of a model in one folder and link to them.
 */
static bool may_read(const char *index, const char *shard, size_t folder)
{
    if (tutti__stays_below(shard, folder))
        return true;
    char *real = realpath(index, NULL), *file = realpath(shard, NULL);
    const char *slash = real != NULL ? strrchr(real, '/') : NULL;
    size_t size = slash != NULL ? (size_t)(slash - real) + 1 : 0;
    bool beside = size > 0 && file != NULL && strncmp(file, real, size) == 0;
    free(real);
    free(file);
    return beside;
}

static tutti_status open_shard(const char *path, const char *name, tutti_source **ret)
{
    const char *slash = strrchr(path, '/');
    size_t folder = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    tutti_text shard = {0};
    tutti__text_bytes(&shard, path, folder);
    tutti__text_add(&shard, "%s", name);
    tutti_status status = TUTTI_OK;
    if (shard.failed)
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory to open '%s'", name);
    else if (!may_read(path, shard.data, folder))
        status = tutti_fail(TUTTI_INVALID,
                            "'%s' is a link that leads out of the index's folder; put the file "
                            "itself there",
                            name);
    else
        status = tutti__source_file(shard.data, ret);
    tutti__text_free(&shard);
    return status;
}

static tutti_status add_shard(const char *path, const char *name, tutti_safetensors *file)
{
    tutti_source *source;
    tutti_status status = file->file_count >= FILES_LIMIT
                              ? tutti_fail(TUTTI_TOO_LARGE, "more than %d files", FILES_LIMIT)
                              : open_shard(path, name, &source);
    if (status == TUTTI_NOT_FOUND) /* the index is there, and so should be its files */
        status = TUTTI_CORRUPT;
    if (status != TUTTI_OK)
        return tutti__error_prefix(status, "%s", path);
    return tutti__safetensors_add(file, source);
}

static int name_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The file's tensors (items from `first` on) are exactly those the index puts there. */
static tutti_status compare_shard(const char *path, const tutti_safetensors *file, size_t first,
                                  const tutti_json *const *entries, size_t count)
{
    size_t held = file->count - first;
    const char **names = malloc((held + 1) * sizeof(char *));
    if (names == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for %zu names", path, held);
    for (size_t i = 0; i < held; i++)
        names[i] = file->items[first + i].name;
    qsort(names, held, sizeof(char *), name_order);
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; status == TUTTI_OK && i < (held > count ? held : count); i++) {
        const char *expected = i < count ? entries[i]->key : NULL;
        const char *found = i < held ? names[i] : NULL;
        if (expected == NULL || found == NULL || strcmp(expected, found) != 0)
            status = tutti_fail(TUTTI_CORRUPT,
                                "%s: the index expects tensor '%.150s' in '%.150s', which holds "
                                "'%.150s'",
                                path, expected ? expected : "(no more)", entries[0]->as.text,
                                found ? found : "(no more)");
    }
    free(names);
    return status;
}

static tutti_status check_shard_sum(const char *path, const tutti_json *sums, const char *name,
                                    const tutti_safetensors_file *file)
{
    const char *text = tutti__json_text(tutti__json_get(sums, name), NULL);
    if (sums == NULL)
        return TUTTI_OK;
    if (text == NULL || !file->checked || strtoul(text, NULL, 16) != file->header_crc)
        return tutti_fail(TUTTI_CORRUPT,
                          "%s: '%s' is not the file that was saved with this index (its header's "
                          "checksum is %08x, expected %s)",
                          path, name, file->header_crc, text ? text : "none");
    return TUTTI_OK;
}

static tutti_status add_shards(const char *path, const tutti_json *root, const shard_map *map,
                               tutti_safetensors *file)
{
    const tutti_json *metadata = tutti__json_get(root, "metadata");
    const tutti_json *total = tutti__json_get(metadata, "total_size");
    const tutti_json *sums = tutti__json_get(metadata, "tutti.crc32c");
    int64_t bytes = 0;
    for (size_t i = 0, end; i < map->count; i = end) {
        const char *name = map->by_file[i]->as.text;
        size_t first = file->count;
        for (end = i + 1; end < map->count && strcmp(map->by_file[end]->as.text, name) == 0;)
            end++;
        TUTTI_TRY(add_shard(path, name, file));
        TUTTI_TRY(compare_shard(path, file, first, map->by_file + i, end - i));
        TUTTI_TRY(check_shard_sum(path, sums, name, &file->files[file->file_count - 1]));
    }
    for (size_t i = 0; i < file->count; i++)
        bytes += file->items[i].size;
    if (total != NULL && tutti__json_real(total, -1) != (double)bytes)
        return tutti_fail(TUTTI_CORRUPT, "%s: total_size differs from the %lld bytes in its files",
                          path, (long long)bytes);
    return tutti__safetensors_sort(file);
}

tutti_status tutti__safetensors_open_index(const char *path, tutti_safetensors **ret)
{
    const tutti_world *world = tutti__world();
    void *text;
    size_t size;
    TUTTI_TRY(world->read_file(world->self, path, INDEX_LIMIT, &text, &size));
    tutti_safetensors *file = NULL;
    const tutti_json *root;
    shard_map map = {0};
    tutti_status status = tutti__safetensors_new(path, &file);
    if (status == TUTTI_OK)
        status = tutti__json_parse(path, text, size, NULL, &file->arena, &root);
    free(text);
    if (status == TUTTI_OK)
        status = sort_map(path, tutti__json_get(root, "weight_map"), &file->arena, &map);
    if (status == TUTTI_OK)
        status = add_shards(path, root, &map, file);
    if (status != TUTTI_OK)
        tutti__safetensors_close(file);
    else
        *ret = file;
    return status;
}
