/* safetensors_save.c: tensors into one file, or into several with an index. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/safetensors.h"
#include "io/safetensors_files.h"

typedef struct saving {
    const char *path;
    size_t stem; /* length of the path without ".safetensors" */
    size_t count, metadata_count;
    const tutti_named_tensor **tensors; /* in the order they are written in */
    const tutti_text_pair *metadata;
    int *shard_of; /* of each tensor */
    int shards;
    int64_t generation; /* of the shards' names */
    bool keep_previous;
    int64_t total; /* bytes */
    uint32_t *header_crcs;
} saving;

static int64_t bytes_of(const tutti_named_tensor *each)
{
    return tutti_tensor_count(each->tensor) *
           (int64_t)tutti_dtype_size(tutti_tensor_dtype(each->tensor));
}

/* Larger elements first; within a size as given: pointers into one array keep its order. */
static int by_element_size(const void *a, const void *b)
{
    const tutti_named_tensor *left = *(const tutti_named_tensor *const *)a;
    const tutti_named_tensor *right = *(const tutti_named_tensor *const *)b;
    size_t x = tutti_dtype_size(tutti_tensor_dtype(left->tensor));
    size_t y = tutti_dtype_size(tutti_tensor_dtype(right->tensor));
    return x != y ? (x < y ? 1 : -1) : (left > right) - (left < right);
}

/* Fills each file up to the limit; a tensor that is larger gets a file of its own. */
static void divide(saving *s, int64_t limit)
{
    int64_t filled = 0;
    s->shards = 1;
    for (size_t i = 0; i < s->count; i++) {
        int64_t size = bytes_of(s->tensors[i]);
        if (limit > 0 && filled > 0 && size > limit - filled) {
            s->shards++;
            filled = 0;
        }
        filled += size;
        s->total += size;
        s->shard_of[i] = s->shards - 1;
    }
}

static void add_shard_name(const saving *s, int shard, tutti_text *text)
{
    const char *slash = strrchr(s->path, '/'), *file = slash != NULL ? slash + 1 : s->path;
    tutti__text_add(text, "%.*s-%05d-of-%05d", (int)(s->path + s->stem - file), file, shard + 1,
                    s->shards);
    if (s->generation > 0)
        tutti__text_add(text, ".g%lld", (long long)s->generation);
    tutti__text_add(text, ".safetensors");
}

static void add_folder(const saving *s, tutti_text *text)
{
    const char *slash = strrchr(s->path, '/');
    tutti__text_bytes(text, s->path, slash != NULL ? (size_t)(slash - s->path) + 1 : 0);
}

/* The tensors [first, end) into the sink. */
static tutti_status write_range(saving *s, size_t first, size_t end, tutti_sink *sink,
                                uint32_t *ret_crc)
{
    tutti_safetensors_plan *plan = calloc(end - first + 1, sizeof *plan);
    tutti_safetensors_writer writer = {0};
    if (plan == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory to write %zu tensors", s->path,
                          end - first);
    for (size_t i = first; i < end; i++)
        plan[i - first] = (tutti_safetensors_plan){
            .name = s->tensors[i]->name, .type = *tutti_tensor_type(s->tensors[i]->tensor)};
    tutti_status status =
        tutti__safetensors_begin(sink, end - first, plan, s->metadata_count, s->metadata, &writer);
    for (size_t i = first; i < end && status == TUTTI_OK; i++)
        status = tutti__safetensors_write_tensor(&writer, s->tensors[i]->tensor);
    if (status == TUTTI_OK)
        status = tutti__safetensors_finish(&writer);
    if (status == TUTTI_OK)
        *ret_crc = writer.header_crc;
    tutti__safetensors_free(&writer);
    free(plan);
    return status;
}

static tutti_status write_shard(saving *s, int shard, const char *path)
{
    size_t first = 0, end;
    while (first < s->count && s->shard_of[first] < shard)
        first++;
    for (end = first; end < s->count && s->shard_of[end] == shard;)
        end++;
    tutti_sink *sink;
    TUTTI_TRY(tutti__sink_file(
        path, s->keep_previous ? TUTTI_FILE_REPLACE_UNREAD : TUTTI_FILE_REPLACE, &sink));
    tutti_status status = write_range(s, first, end, sink, &s->header_crcs[shard]);
    if (status == TUTTI_OK && s->shards == 1 && s->keep_previous)
        status = tutti__safetensors_keep_previous(s->path);
    return tutti__sink_end(sink, status);
}

static void put_index(const saving *s, tutti_json_writer *json)
{
    tutti_text name = {0};
    char digits[9];
    tutti__json_begin(json, '{');
    tutti__json_key(json, "metadata");
    tutti__json_begin(json, '{');
    tutti__json_key(json, "total_size");
    tutti__json_put_int(json, s->total);
    tutti__json_key(json, "tutti.crc32c");
    tutti__json_begin(json, '{');
    for (int i = 0; i < s->shards; i++) {
        name.size = 0;
        add_shard_name(s, i, &name);
        snprintf(digits, sizeof digits, "%08x", s->header_crcs[i]);
        tutti__json_key(json, name.failed ? "" : name.data);
        tutti__json_put_string(json, digits);
    }
    tutti__json_end(json);
    tutti__json_end(json);
    tutti__json_key(json, "weight_map");
    tutti__json_begin(json, '{');
    for (size_t i = 0; i < s->count; i++) {
        name.size = 0;
        add_shard_name(s, s->shard_of[i], &name);
        tutti__json_key(json, s->tensors[i]->name);
        tutti__json_put_string(json, name.failed ? "" : name.data);
    }
    tutti__json_end(json);
    tutti__json_end(json);
    json->text->failed |= name.failed;
    tutti__text_free(&name);
}

static tutti_status write_index(const saving *s, const char *path)
{
    const tutti_world *world = tutti__world();
    tutti_text text = {0};
    tutti_json_writer json = {.text = &text, .indent = 2};
    put_index(s, &json);
    tutti_status status = tutti__json_finish(&json);
    if (status == TUTTI_OK)
        status = world->write_file(world->self, path, text.data, text.size);
    tutti__text_free(&text);
    return status;
}

static tutti_status write_shards(saving *s)
{
    tutti_text shard = {0};
    tutti_status status = tutti__safetensors_next_generation(s->path, &s->generation);
    for (int i = 0; i < s->shards && status == TUTTI_OK; i++) {
        shard.size = 0;
        add_folder(s, &shard);
        add_shard_name(s, i, &shard);
        status = shard.failed ? tutti_fail(TUTTI_NO_MEMORY, "%s: no memory", s->path)
                              : write_shard(s, i, shard.data);
    }
    if (status == TUTTI_OK && s->keep_previous)
        status = tutti__safetensors_keep_previous(s->path);
    if (status == TUTTI_OK) {
        shard.size = 0;
        tutti__text_add(&shard, "%.*s.safetensors.index.json", (int)s->stem, s->path);
        status = shard.failed ? tutti_fail(TUTTI_NO_MEMORY, "%s: no memory", s->path)
                              : write_index(s, shard.data);
    }
    tutti__text_free(&shard);
    return status;
}

static tutti_status write_all(saving *s)
{
    bool pieces = s->shards > 1;
    TUTTI_TRY(pieces ? write_shards(s) : write_shard(s, 0, s->path));
    return tutti__safetensors_clean(s->path, pieces);
}

/* Across all files: each file checks only its own names. */
static tutti_status check_unique(const saving *s)
{
    tutti_map seen = {0};
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < s->count && status == TUTTI_OK; i++) {
        const char *name = s->tensors[i]->name;
        status =
            tutti__map_get(&seen, name) != NULL
                ? tutti_fail(TUTTI_INVALID, "%s: the name '%.200s' is given twice", s->path, name)
                : tutti__map_set(&seen, name, s->tensors[i]->tensor);
    }
    tutti__map_free(&seen);
    return status;
}

static tutti_status safetensors_save_save(const char *path, const tutti_safetensors_list *list,
                                          size_t metadata_count, const tutti_text_pair *metadata,
                                          int64_t shard_bytes, bool keep_previous)
{
    size_t length = strlen(path), suffix = strlen(".safetensors"), count = list->count;
    bool has_suffix = length > suffix && strcmp(path + length - suffix, ".safetensors") == 0;
    saving s = {.path = path,
                .stem = has_suffix ? length - suffix : length,
                .count = count,
                .metadata_count = metadata_count,
                .metadata = metadata,
                .keep_previous = keep_previous,
                .tensors = calloc(count + 1, sizeof(tutti_named_tensor *)),
                .shard_of = calloc(count + 1, sizeof(int)),
                .header_crcs = calloc(count + 1, sizeof(uint32_t))};
    tutti_status status = TUTTI_OK;
    if (s.tensors == NULL || s.shard_of == NULL || s.header_crcs == NULL) {
        status = tutti_fail(TUTTI_NO_MEMORY, "%s: no memory to write %zu tensors", path, count);
    } else {
        for (size_t i = 0; i < count; i++)
            s.tensors[i] = &list->tensors[i];
        qsort(s.tensors, count, sizeof *s.tensors, by_element_size);
        divide(&s, shard_bytes);
        status = s.shards > 99999 ? tutti_fail(TUTTI_TOO_LARGE, "%s: more than 99999 files", path)
                                  : check_unique(&s);
        if (status == TUTTI_OK)
            status = write_all(&s);
    }
    free(s.tensors);
    free(s.shard_of);
    free(s.header_crcs);
    return status;
}

tutti_status tutti__safetensors_save(const char *path, size_t count,
                                     const tutti_named_tensor *tensors, size_t metadata_count,
                                     const tutti_text_pair *metadata, int64_t shard_bytes,
                                     bool keep_previous)
{
    tutti_safetensors_list list;
    TUTTI_TRY(tutti__safetensors_list_all(path, count, tensors, &list));
    tutti_status status =
        safetensors_save_save(path, &list, metadata_count, metadata, shard_bytes, keep_previous);
    tutti__safetensors_drop_list(&list);
    return status;
}
