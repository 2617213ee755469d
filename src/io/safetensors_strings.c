/* safetensors_strings.c: strings, which the format does not know: NAME is then the bytes of all of
 * them, one after the other, and tutti/lengths/NAME has their shape and their lengths. Both may
 * stand in different files of an index. */
#include <stdlib.h>
#include <string.h>

#include "io/safetensors.h"

#define LENGTHS "tutti/lengths/"
#define LENGTHS_SIZE (sizeof LENGTHS - 1)

static bool is_lengths(const char *name)
{
    return strncmp(name, LENGTHS, LENGTHS_SIZE) == 0;
}

/* ---- writing ---- */

void tutti__safetensors_drop_list(tutti_safetensors_list *list)
{
    for (size_t i = 0; i < list->made; i++) {
        tutti_tensor_release(list->tensors[2 * i].tensor);
        tutti_tensor_release(list->tensors[2 * i + 1].tensor);
        free((char *)(uintptr_t)list->tensors[2 * i + 1].name);
    }
    free(list->tensors);
    *list = (tutti_safetensors_list){0};
}

static tutti_status add_strings(tutti_safetensors_list *list, const tutti_named_tensor *from)
{
    tutti_text name = {0};
    tutti_named_tensor *to = &list->tensors[2 * list->made];
    tutti__text_add(&name, LENGTHS "%s", from->name);
    tutti_status status =
        name.failed ? tutti_fail(TUTTI_NO_MEMORY, "no memory to write strings '%.200s'", from->name)
                    : tutti__tensor_pack_strings(from->tensor, &to[0].tensor, &to[1].tensor);
    if (status != TUTTI_OK) {
        tutti__text_free(&name);
        return status;
    }
    to[0].name = from->name;
    to[1].name = name.data;
    list->made++;
    return TUTTI_OK;
}

tutti_status tutti__safetensors_list_all(const char *path, size_t count,
                                         const tutti_named_tensor *tensors,
                                         tutti_safetensors_list *ret)
{
    tutti_safetensors_list list = {.tensors = calloc(2 * count + 1, sizeof *list.tensors)};
    tutti_status status =
        list.tensors
            ? TUTTI_OK
            : tutti_fail(TUTTI_NO_MEMORY, "%s: no memory to write %zu tensors", path, count);
    for (size_t i = 0; i < count && status == TUTTI_OK; i++) {
        if (is_lengths(tensors[i].name))
            status = tutti_fail(TUTTI_INVALID,
                                "%s: '%.200s' cannot be a name in a safetensors file: what begins "
                                "with " LENGTHS " is the lengths of strings",
                                path, tensors[i].name);
        else if (tutti_tensor_dtype(tensors[i].tensor) == TUTTI_STRING)
            status = add_strings(&list, &tensors[i]);
    }
    list.count = 2 * list.made;
    for (size_t i = 0; i < count && status == TUTTI_OK; i++)
        if (tutti_tensor_dtype(tensors[i].tensor) != TUTTI_STRING)
            list.tensors[list.count++] = tensors[i];
    if (status == TUTTI_OK)
        *ret = list;
    else
        tutti__safetensors_drop_list(&list);
    return status;
}

/* ---- reading ---- */

/* The tensor becomes one of strings. */
static tutti_status safetensors_strings_join(tutti_safetensors *file,
                                             const tutti_safetensor *lengths)
{
    tutti_safetensor *bytes =
        (tutti_safetensor *)(uintptr_t)tutti__safetensors_find(file, lengths->name + LENGTHS_SIZE);
    tutti_safetensor *kept = tutti__arena_array(&file->arena, 1, sizeof *kept);
    if (kept == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for strings", file->name);
    if (bytes == NULL || bytes->type.dtype != TUTTI_U8 || bytes->type.rank != 1 ||
        lengths->type.dtype != TUTTI_I64)
        return tutti_fail(TUTTI_CORRUPT,
                          "%s: tensor '%.200s' must be of I64 and stand beside '%.200s' of U8 and "
                          "one dimension, the bytes of the strings whose lengths it holds",
                          file->name, lengths->name, lengths->name + LENGTHS_SIZE);
    *kept = *lengths;
    bytes->lengths = kept;
    bytes->type = lengths->type;
    bytes->type.dtype = TUTTI_STRING;
    return TUTTI_OK;
}

tutti_status tutti__safetensors_join_strings(tutti_safetensors *file, size_t *ret_joined)
{
    size_t left = 0;
    for (size_t i = 0; i < file->count; i++)
        if (is_lengths(file->items[i].name))
            TUTTI_TRY(safetensors_strings_join(file, &file->items[i]));
    for (size_t i = 0; i < file->count; i++)
        if (!is_lengths(file->items[i].name))
            file->items[left++] = file->items[i];
    *ret_joined = file->count - left;
    file->count = left;
    return TUTTI_OK;
}

tutti_status tutti__safetensors_strings(const tutti_safetensors *file, const tutti_safetensor *item,
                                        tutti_tensor **ret_tensor)
{
    tutti_tensor *bytes = NULL, *lengths = NULL;
    tutti_safetensor raw = *item;
    raw.lengths = NULL;
    raw.type = (tutti_type){.dtype = TUTTI_U8, .rank = 1, .dims = {item->size}};
    tutti_status status = tutti__safetensors_tensor(file, &raw, &bytes);
    if (status == TUTTI_OK)
        status = tutti__safetensors_tensor(file, item->lengths, &lengths);
    if (status == TUTTI_OK) {
        status = tutti__tensor_unpack_strings(bytes, lengths, ret_tensor);
        if (status != TUTTI_OK)
            tutti__error_prefix(status, "%s: tensor '%.200s'", file->files[item->file].source->name,
                                item->name);
    }
    tutti_tensor_release(bytes);
    tutti_tensor_release(lengths);
    return status;
}
