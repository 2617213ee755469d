/* files.c: the public functions of files.h: a path, the format behind it, and tensors. */
#include "tutti/files.h"

#include <stdlib.h>
#include <string.h>

#include "base/require.h"
#include "base/world.h"
#include "io/image.h"
#include "io/json.h"
#include "io/named.h"
#include "io/npy.h"
#include "io/npz.h"
#include "io/safetensors.h"

tutti_status tutti_safetensors_load(const char *path, tutti_named_tensors *ret_list)
{
    tutti_safetensors *file;
    tutti_named_tensors list = {0};
    TUTTI_TRY(tutti__safetensors_open(path, false, &file));
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < file->count && status == TUTTI_OK; i++) {
        const tutti_safetensor *item = &file->items[i];
        tutti_tensor *tensor;
        status = tutti__safetensors_tensor(file, item, &tensor);
        if (status == TUTTI_OK)
            status = tutti__named_add(&list, item->name, strlen(item->name), tensor);
    }
    tutti__safetensors_close(file);
    if (status != TUTTI_OK)
        tutti_named_tensors_clear(&list);
    else
        *ret_list = list;
    return status;
}

/* A list as files take it: no name and no tensor is missing. */
static tutti_status check_list(const char *path, size_t count, const tutti_named_tensor *tensors)
{
    TUTTI_REQUIRE(path);
    if (count > 0 && !tensors)
        return tutti_fail(TUTTI_INVALID, "%s: the list of %zu tensors is NULL", path, count);
    for (size_t i = 0; i < count; i++)
        if (!tensors[i].name || !tensors[i].tensor)
            return tutti_fail(TUTTI_INVALID, "%s: %s %zu of %zu is NULL", path,
                              tensors[i].name ? "tensor" : "the name of tensor", i, count);
    return TUTTI_OK;
}

tutti_status tutti_safetensors_save_with(const char *path, size_t count,
                                         const tutti_named_tensor *tensors,
                                         const tutti_safetensors_options *options)
{
    TUTTI_TRY(check_list(path, count, tensors));
    for (size_t i = 0; i < options->metadata_count; i++)
        if (!options->metadata[i].key || !options->metadata[i].value)
            return tutti_fail(TUTTI_INVALID, "%s: pair %zu of the metadata holds a NULL", path, i);
    return tutti__safetensors_save(path, count, tensors, options->metadata_count, options->metadata,
                                   options->shard_bytes, false);
}

tutti_status tutti_npy_load(const char *path, tutti_tensor **ret_tensor)
{
    tutti_source *source;
    TUTTI_TRY(tutti__source_file(path, &source));
    tutti_status status = tutti__npy_read(source, ret_tensor);
    tutti__source_close(source);
    return status;
}

tutti_status tutti_npy_save(const char *path, tutti_tensor *tensor)
{
    tutti_sink *sink;
    if (!tensor)
        return tutti_fail(TUTTI_INVALID, "%s: the tensor is NULL", path);
    TUTTI_TRY(tutti__sink_file(path, TUTTI_FILE_REPLACE, &sink));
    return tutti__sink_end(sink, tutti__npy_write(sink, tensor));
}

tutti_status tutti_npz_load(const char *path, tutti_named_tensors *ret_list)
{
    tutti_source *source;
    TUTTI_TRY(tutti__source_file(path, &source));
    tutti_status status = tutti__npz_read(source, ret_list);
    tutti__source_close(source);
    return status;
}

tutti_status tutti_npz_save(const char *path, size_t count, const tutti_named_tensor *tensors,
                            bool compress)
{
    tutti_sink *sink;
    TUTTI_TRY(check_list(path, count, tensors));
    TUTTI_TRY(tutti__sink_file(path, TUTTI_FILE_REPLACE, &sink));
    return tutti__sink_end(sink, tutti__npz_write(sink, count, tensors, compress));
}

tutti_status tutti_image_decode(const char *name, const void *data, size_t size, int channels,
                                tutti_tensor **ret_image)
{
    return tutti__image_decode(name, data, size, channels, 0, ret_image);
}

tutti_status tutti_image_load(const char *path, int channels, tutti_tensor **ret_image)
{
    const tutti_world *world = tutti__world();
    void *data;
    size_t size;
    TUTTI_TRY(world->read_file(world->self, path, (size_t)1 << 30, &data, &size));
    tutti_status status = tutti__image_decode(path, data, size, channels, 0, ret_image);
    free(data);
    return status;
}

tutti_status tutti_png_save(const char *path, tutti_tensor *image)
{
    TUTTI_REQUIRE(path);
    TUTTI_REQUIRE(image);
    const tutti_world *world = tutti__world();
    tutti_text text = {0};
    tutti_status status = tutti__png_encode(image, &text);
    if (status == TUTTI_OK)
        status = world->write_file(world->self, path, text.data, text.size);
    tutti__text_free(&text);
    return status;
}

static tutti_status number_of(const char *path, const tutti_json *root, const char *key,
                              double *ret_value)
{
    const tutti_json *value = tutti__json_get(root, key);
    if (root->kind != TUTTI_JSON_OBJECT)
        return tutti_fail(TUTTI_CORRUPT, "%s holds %s; expected an object", path,
                          tutti__json_kind_text(root));
    if (!value)
        return tutti_fail(TUTTI_NOT_FOUND, "%s has no '%s'", path, key);
    if (value->kind != TUTTI_JSON_INT && value->kind != TUTTI_JSON_REAL)
        return tutti_fail(TUTTI_INVALID, "%s, byte %u: '%s' is %s; expected a number", path,
                          value->offset, key, tutti__json_kind_text(value));
    *ret_value = tutti__json_real(value, 0);
    return TUTTI_OK;
}

tutti_status tutti_json_number(const char *path, const char *key, double *ret_value)
{
    const tutti_world *world = tutti__world();
    tutti_arena arena = {0};
    const tutti_json *root;
    void *text;
    size_t size;
    TUTTI_REQUIRE(path);
    TUTTI_REQUIRE(key);
    TUTTI_REQUIRE(ret_value);
    TUTTI_TRY(world->read_file(world->self, path, (size_t)256 << 20, &text, &size));
    tutti_status status = tutti__json_parse(path, text, size, NULL, &arena, &root);
    if (status == TUTTI_OK)
        status = number_of(path, root, key, ret_value);
    tutti__arena_free(&arena);
    free(text);
    return status;
}
