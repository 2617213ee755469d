/* safetensors_boxes.c: tensors that are stored as boxes, which the format does not know: NAME@8,0
 * is the box of NAME that begins at [8, 0], and the metadata's text "tutti.boxes" has the whole
 * shapes,
 * {"NAME": [16, 4], …}. Boxes of one tensor may stand in different files of an index. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/safetensors.h"
#include "tensor/block.h"

#define BOXES "tutti.boxes"

/* ---- writing ---- */

static tutti_status add_box_name(tutti_arena *arena, const tutti_safetensors_box *from,
                                 const char **ret)
{
    tutti_text text = {0};
    tutti__text_add(&text, "%s@", from->name);
    for (int d = 0; d < from->type.rank; d++)
        tutti__text_add(&text, "%s%lld", d > 0 ? "," : "", (long long)from->box.offset[d]);
    *ret = text.failed ? NULL : tutti__arena_string(arena, text.data);
    tutti__text_free(&text);
    return *ret ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory to write '%s'", from->name);
}

static bool is_first_of(size_t i, const tutti_safetensors_box *boxes)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(boxes[k].name, boxes[i].name) == 0)
            return false;
    return true;
}

tutti_status tutti__safetensors_name_boxes(tutti_arena *arena, size_t count,
                                           const tutti_safetensors_box *boxes,
                                           const char **ret_names, tutti_text_pair *ret_pair)
{
    tutti_text text = {0};
    tutti_json_writer json = {.text = &text};
    tutti__json_begin(&json, '{');
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; status == TUTTI_OK && i < count; i++) {
        status = add_box_name(arena, &boxes[i], &ret_names[i]);
        if (!is_first_of(i, boxes))
            continue;
        tutti__json_key(&json, boxes[i].name);
        tutti__json_begin(&json, '[');
        for (int d = 0; d < boxes[i].type.rank; d++)
            tutti__json_put_int(&json, boxes[i].type.dims[d]);
        tutti__json_end(&json);
    }
    tutti__json_end(&json);
    if (status == TUTTI_OK)
        status = tutti__json_finish(&json);
    char *kept = status == TUTTI_OK ? tutti__arena_string(arena, text.data) : NULL;
    tutti__text_free(&text);
    if (status == TUTTI_OK && !kept)
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory to write boxes");
    *ret_pair = (tutti_text_pair){BOXES, kept};
    return status;
}

/* ---- reading ---- */

static tutti_status boxes_fail(const tutti_safetensors *file, const char *name, const char *why)
{
    return tutti_fail(TUTTI_CORRUPT, "%s: tensor '%.200s' stands in boxes, and %s", file->name,
                      name, why);
}

/* "NAME@8,0" of that name. */
static bool read_name(const char *text, const char *name, int rank, tutti_box *ret)
{
    size_t length = strlen(name);
    if (strncmp(text, name, length) != 0 || text[length] != '@')
        return false;
    const char *at = text + length + 1;
    for (int d = 0; d < rank; d++) {
        char *end;
        if (*at < '0' || *at > '9')
            return false;
        ret->offset[d] = strtoll(at, &end, 10);
        at = end + (d + 1 < rank && *end == ',');
    }
    return *at == 0;
}

static tutti_status read_shape(const tutti_safetensors *file, const tutti_json *shape,
                               tutti_type *ret)
{
    if (shape->kind != TUTTI_JSON_ARRAY || shape->count < 1 || shape->count > TUTTI_MAX_RANK)
        return boxes_fail(file, shape->key, "its shape is none");
    for (const tutti_json *each = shape->as.first; each; each = each->next) {
        int64_t dim = tutti__json_int(each, -1);
        if (dim < 0)
            return boxes_fail(file, shape->key, "its shape is none");
        ret->dims[ret->rank++] = dim;
    }
    return TUTTI_OK;
}

/* A place that no box holds; false: there is none. Candidates are where boxes begin and end. */
static bool find_hole(const tutti_safetensor *item, tutti_box *ret)
{
    int rank = item->type.rank;
    int64_t at[TUTTI_MAX_RANK] = {0};
    for (;;) {
        int64_t next[TUTTI_MAX_RANK];
        bool held = false;
        memcpy(next, item->type.dims, sizeof next);
        for (int i = 0; i < item->box_count; i++) {
            const tutti_box *box = &item->boxes[i].box;
            bool inside = true;
            for (int d = 0; d < rank; d++) {
                int64_t end = box->offset[d] + box->dims[d];
                inside = inside && at[d] >= box->offset[d] && at[d] < end;
                if (box->offset[d] > at[d] && box->offset[d] < next[d])
                    next[d] = box->offset[d];
                if (end > at[d] && end < next[d])
                    next[d] = end;
            }
            held = held || inside;
        }
        if (!held) {
            for (int d = 0; d < rank; d++) {
                ret->offset[d] = at[d];
                ret->dims[d] = next[d] - at[d];
            }
            return true;
        }
        int d = rank - 1;
        for (; d >= 0 && next[d] >= item->type.dims[d]; d--)
            at[d] = 0;
        if (d < 0)
            return false;
        at[d] = next[d];
    }
}

static tutti_status check_boxes(const tutti_safetensors *file, const tutti_safetensor *item)
{
    tutti_box common, hole = {0};
    char text[TUTTI_BOX_TEXT], why[TUTTI_BOX_TEXT + 64];
    int rank = item->type.rank;
    for (int i = 0; i < item->box_count; i++) {
        if (item->boxes[i].item->type.dtype != item->type.dtype ||
            !tutti__box_fits(&item->boxes[i].box, &item->type))
            return boxes_fail(file, item->name, "one of them does not lie in it");
        for (int k = 0; k < i; k++)
            if (tutti__box_common(&item->boxes[i].box, &item->boxes[k].box, rank, &common))
                return boxes_fail(file, item->name, "two of them overlap");
    }
    if (tutti_type_count(&item->type) == 0 || !find_hole(item, &hole))
        return TUTTI_OK;
    snprintf(why, sizeof why, "its box %s is missing; is a file of a process not there?",
             tutti__box_text(&hole, rank, text));
    return boxes_fail(file, item->name, why);
}

/* All boxes of that name become one item; they are marked by an empty name. */
static tutti_status join_name(tutti_safetensors *file, const tutti_json *shape,
                              tutti_safetensor *ret)
{
    tutti_safetensor joined = {.name = shape->key, .dtype = "boxes"};
    tutti_box box = {0};
    TUTTI_TRY(read_shape(file, shape, &joined.type));
    int count = 0;
    for (size_t i = 0; i < file->count; i++)
        count += read_name(file->items[i].name, shape->key, joined.type.rank, &box);
    joined.boxes = tutti__arena_array(&file->arena, (size_t)count + 1, sizeof *joined.boxes);
    if (!joined.boxes)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for boxes", file->name);
    for (size_t i = 0; i < file->count; i++) {
        tutti_safetensor *item = &file->items[i];
        if (!read_name(item->name, shape->key, joined.type.rank, &box))
            continue;
        tutti_safetensor *kept = tutti__arena_array(&file->arena, 1, sizeof *kept);
        if (!kept)
            return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for boxes", file->name);
        *kept = *item;
        if (item->type.rank != joined.type.rank)
            return boxes_fail(file, shape->key, "one of them has another rank");
        memcpy(box.dims, item->type.dims, sizeof box.dims);
        joined.type.dtype = item->type.dtype;
        joined.dtype = item->dtype;
        joined.file = item->file;
        joined.size += item->size;
        joined.checked = item->checked;
        joined.boxes[joined.box_count].box = box;
        joined.boxes[joined.box_count++].item = kept;
        item->name = "";
    }
    TUTTI_TRY(check_boxes(file, &joined));
    *ret = joined;
    return TUTTI_OK;
}

static bool is_joined(const tutti_safetensor *made, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(made[i].name, name) == 0)
            return true;
    return false;
}

/* Each file names the tensors that it has boxes of. */
static tutti_status join_all(tutti_safetensors *file, const tutti_json *const *roots,
                             tutti_safetensor *made, size_t *count)
{
    for (int f = 0; f < file->file_count; f++)
        for (const tutti_json *each = roots[f] ? roots[f]->as.first : NULL; each; each = each->next)
            if (!is_joined(made, *count, each->key))
                TUTTI_TRY(join_name(file, each, &made[(*count)++]));
    return TUTTI_OK;
}

tutti_status tutti__safetensors_join_boxes(tutti_safetensors *file, size_t *ret_joined)
{
    const tutti_json **roots =
        tutti__arena_array(&file->arena, (size_t)file->file_count + 1, sizeof *roots);
    size_t most = 0, count = 0, left = 0;
    *ret_joined = 0;
    if (!roots)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for boxes", file->name);
    for (int f = 0; f < file->file_count; f++) {
        const char *text = tutti__json_text(tutti__json_get(file->files[f].metadata, BOXES), NULL);
        roots[f] = NULL;
        if (!text)
            continue;
        TUTTI_TRY(tutti__json_parse(file->files[f].source->name, text, strlen(text), NULL,
                                    &file->arena, &roots[f]));
        if (roots[f]->kind != TUTTI_JSON_OBJECT)
            return tutti_fail(TUTTI_CORRUPT, "%s: the metadata's " BOXES " is no object",
                              file->files[f].source->name);
        most += roots[f]->count;
    }
    if (most == 0)
        return TUTTI_OK;
    tutti_safetensor *made = tutti__arena_array(&file->arena, most, sizeof *made);
    if (!made)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for boxes", file->name);
    TUTTI_TRY(join_all(file, roots, made, &count));
    for (size_t i = 0; i < file->count; i++)
        if (file->items[i].name[0])
            file->items[left++] = file->items[i];
    if (left + count > file->count)
        return boxes_fail(file, made[0].name, "there are more names than boxes");
    memcpy(file->items + left, made, count * sizeof *made);
    file->count = left + count;
    *ret_joined = count;
    return TUTTI_OK;
}

tutti_status tutti__safetensors_whole(const tutti_safetensors *file, const tutti_safetensor *item,
                                      tutti_tensor **ret_tensor)
{
    tutti_tensor *whole, *part = NULL;
    tutti_box all = tutti__box_whole(&item->type);
    TUTTI_TRY(tutti__tensor_in(tutti__host_memory(), &item->type, &whole));
    tutti_status status = TUTTI_OK;
    for (int i = 0; status == TUTTI_OK && i < item->box_count; i++) {
        status = tutti__safetensors_tensor(file, item->boxes[i].item, &part);
        if (status != TUTTI_OK)
            break;
        const tutti_box *box = &item->boxes[i].box;
        tutti__box_copy(tutti_tensor_data(whole), &all, tutti_tensor_data(part), box, box,
                        item->type.rank, tutti_dtype_size(item->type.dtype));
        tutti_tensor_release(part);
    }
    if (status == TUTTI_OK)
        *ret_tensor = whole;
    else
        tutti_tensor_release(whole);
    return status;
}
