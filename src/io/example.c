/* example.c: see example.h. Lists are counted first, then filled, so that memory is taken once. */
#include "io/example.h"

#include <stdlib.h>
#include <string.h>

static const tutti_dtype dtype_of[] = {TUTTI_F32, TUTTI_STRING, TUTTI_F32, TUTTI_I64};

static void set(tutti_tensor *tensor, int64_t index, const tutti_proto_field *value,
                tutti_status *status)
{
    if (*status == TUTTI_OK)
        *status =
            tutti_tensor_set_string(tensor, index, (const char *)value->data, (int64_t)value->size);
}

/* Values of one list of kind 1 bytes, 2 floats, 3 integers; stored when `tensor` is given. */
static tutti_status walk_list(tutti_proto list, uint32_t kind, tutti_tensor *tensor,
                              int64_t *ret_count)
{
    tutti_proto_field f;
    int64_t count = 0;
    tutti_status status = TUTTI_OK;
    while (tutti__proto_next(&list, &f)) {
        size_t at = 0;
        float real;
        int64_t integer;
        if (f.number != 1)
            continue;
        if (kind == 1 && f.kind != TUTTI_PROTO_BYTES)
            tutti__proto_stop(&list, "bytes in a bytes_list");
        else if (kind == 1 && tensor != NULL)
            set(tensor, count, &f, &status);
        count += kind == 1;
        for (; kind == 2 && tutti__proto_each_float(&list, &f, &at, &real); count++)
            if (tensor != NULL)
                ((float *)tutti_tensor_data(tensor))[count] = real;
        for (; kind == 3 && tutti__proto_each_int(&list, &f, &at, &integer); count++)
            if (tensor != NULL)
                ((int64_t *)tutti_tensor_data(tensor))[count] = integer;
    }
    TUTTI_TRY(tutti__proto_end(&list));
    TUTTI_TRY(status);
    *ret_count = count;
    return TUTTI_OK;
}

static tutti_status parse_feature(tutti_proto feature, tutti_tensor **ret_tensor)
{
    tutti_proto_field f, chosen = {0};
    while (tutti__proto_next(&feature, &f))
        if (f.number >= 1 && f.number <= 3)
            chosen = f;
    TUTTI_TRY(tutti__proto_end(&feature));
    tutti_tensor *tensor;
    int64_t count = 0;
    if (chosen.number != 0)
        TUTTI_TRY(walk_list(tutti__proto_inside(&feature, &chosen), chosen.number, NULL, &count));
    TUTTI_TRY(tutti_tensor_create(dtype_of[chosen.number], 1, &count, &tensor));
    tutti_status status = chosen.number != 0 ? walk_list(tutti__proto_inside(&feature, &chosen),
                                                         chosen.number, tensor, &count)
                                             : TUTTI_OK;
    if (status != TUTTI_OK)
        tutti_tensor_release(tensor);
    else
        *ret_tensor = tensor;
    return status;
}

/* Adds, or replaces what has the same name. */
static tutti_status example_add(tutti_named_tensors *list, const tutti_proto_field *key,
                                tutti_tensor *tensor)
{
    for (size_t i = 0; i < list->count; i++)
        if (tutti__proto_is(key, list->items[i].name)) {
            tutti_tensor_release(list->items[i].tensor);
            list->items[i].tensor = tensor;
            return TUTTI_OK;
        }
    return tutti__named_add(list, (const char *)key->data, key->size, tensor);
}

static tutti_status parse_entry(tutti_proto entry, tutti_named_tensors *list)
{
    tutti_proto_field f, key = {.kind = TUTTI_PROTO_BYTES}, value = {0};
    while (tutti__proto_next(&entry, &f)) {
        if (f.number == 1)
            key = f;
        else if (f.number == 2)
            value = f;
    }
    TUTTI_TRY(tutti__proto_end(&entry));
    if (key.kind != TUTTI_PROTO_BYTES || (key.size > 0 && memchr(key.data, 0, key.size) != NULL)) {
        tutti__proto_stop(&entry, "a feature's name, without NUL");
        return tutti__proto_end(&entry);
    }
    key.data = key.data != NULL ? key.data : (const uint8_t *)"";
    value.data = value.number != 0 ? value.data : entry.end;
    value.kind = value.number != 0 ? value.kind : TUTTI_PROTO_BYTES;
    tutti_tensor *tensor;
    TUTTI_TRY(parse_feature(tutti__proto_inside(&entry, &value), &tensor));
    return example_add(list, &key, tensor);
}

static tutti_status parse_features(tutti_proto features, tutti_named_tensors *list)
{
    tutti_proto_field f;
    while (tutti__proto_next(&features, &f))
        if (f.number == 1) {
            if (list->count >= 10000)
                tutti__proto_stop(&features, "at most 10000 features");
            else
                TUTTI_TRY(parse_entry(tutti__proto_inside(&features, &f), list));
        }
    return tutti__proto_end(&features);
}

tutti_status tutti__example_parse(const char *name, const void *data, size_t size,
                                  tutti_named_tensors *ret_features)
{
    tutti_proto p = tutti__proto(name, data, size);
    tutti_proto_field f;
    tutti_named_tensors list = {0};
    tutti_status status = TUTTI_OK;
    while (status == TUTTI_OK && tutti__proto_next(&p, &f))
        if (f.number == 1)
            status = parse_features(tutti__proto_inside(&p, &f), &list);
    if (status == TUTTI_OK)
        status = tutti__proto_end(&p);
    if (status != TUTTI_OK)
        tutti_named_tensors_clear(&list);
    else
        *ret_features = list;
    return status;
}

static void put_list(tutti_text *text, const tutti_tensor *tensor)
{
    tutti_dtype dtype = tutti_tensor_dtype(tensor);
    int64_t count = tutti_tensor_count(tensor);
    uint32_t kind = dtype == TUTTI_STRING ? 1 : tutti_dtype_is_float(dtype) ? 2 : 3;
    size_t list = tutti__proto_open(text, kind);
    if (kind == 1) {
        for (int64_t i = 0; i < count; i++) {
            tutti_string string = tutti_tensor_get_string(tensor, i);
            tutti__proto_put_bytes(text, 1, string.data, (size_t)string.size);
        }
    } else if (count > 0) {
        size_t packed = tutti__proto_open(text, 1);
        bool as_is = dtype == TUTTI_F32 && tutti_tensor_is_contiguous(tensor); /* NaNs too */
        if (as_is)
            tutti__text_bytes(text, tutti_tensor_data(tensor), 4 * (size_t)count);
        for (int64_t i = 0; !as_is && i < count; i++) {
            float real = (float)tutti_tensor_get(tensor, i);
            if (kind == 2)
                tutti__text_bytes(text, &real, 4);
            else
                tutti__proto_put_varint(text, (uint64_t)tutti_tensor_get_int(tensor, i));
        }
        tutti__proto_close(text, packed);
    }
    tutti__proto_close(text, list);
}

tutti_status tutti__example_build(size_t count, const tutti_named_tensor *features,
                                  tutti_text *ret_text)
{
    tutti_text text = {0};
    size_t all = tutti__proto_open(&text, 1);
    for (size_t i = 0; i < count; i++) {
        tutti_tensor *host;
        tutti_status status = tutti__tensor_to_host(features[i].tensor, &host);
        if (status != TUTTI_OK) {
            tutti__text_free(&text);
            return status;
        }
        size_t entry = tutti__proto_open(&text, 1);
        tutti__proto_put_string(&text, 1, features[i].name);
        size_t feature = tutti__proto_open(&text, 2);
        put_list(&text, host);
        tutti__proto_close(&text, feature);
        tutti__proto_close(&text, entry);
        tutti_tensor_release(host);
    }
    tutti__proto_close(&text, all);
    if (text.failed) {
        tutti__text_free(&text);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for an example of %zu features", count);
    }
    *ret_text = text;
    return TUTTI_OK;
}
