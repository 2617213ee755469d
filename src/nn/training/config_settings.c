/* config_settings.c: settings structs as JSON members, through their fields. */
#include <math.h>
#include <string.h>

#include "nn/training/config.h"

static const void *at(const void *settings, const tutti_field *field)
{
    return (const char *)settings + field->offset;
}

static bool is_default(const tutti_field *field, const void *value)
{
    static const int64_t zeros[TUTTI_MAX_RANK * 4];
    size_t sizes[] = {0,
                      sizeof(int64_t),
                      sizeof(double),
                      sizeof(bool),
                      sizeof(char *),
                      sizeof(int64_t) * (size_t)field->count,
                      sizeof(void *)};
    size_t size = sizes[field->kind];
    return size <= sizeof zeros && memcmp(value, zeros, size) == 0;
}

static void write_field(const tutti_field *field, const void *value, tutti_json_writer *writer)
{
    tutti__json_key(writer, field->key);
    switch (field->kind) {
    case TUTTI_FIELD_INT:
        tutti__json_put_int(writer, *(const int64_t *)value);
        return;
    case TUTTI_FIELD_NUMBER:
        tutti__json_put_real(writer, *(const double *)value);
        return;
    case TUTTI_FIELD_FLAG:
        tutti__json_put_bool(writer, *(const bool *)value);
        return;
    case TUTTI_FIELD_TEXT:
        tutti__json_put_string(writer, *(const char *const *)value);
        return;
    case TUTTI_FIELD_INTS:
        tutti__json_begin(writer, '[');
        for (int i = 0; i < field->count; i++)
            tutti__json_put_int(writer, ((const int64_t *)value)[i]);
        tutti__json_end(writer);
        return;
    case TUTTI_FIELD_CODE:
        tutti__json_put_null(writer);
    }
}

tutti_status tutti__settings_write(const char *who, const tutti_field *fields, const void *settings,
                                   tutti_json_writer *writer)
{
    for (const tutti_field *field = fields; field && field->key; field++) {
        const void *value = at(settings, field);
        if (is_default(field, value))
            continue;
        if (field->kind == TUTTI_FIELD_CODE)
            return tutti_fail(TUTTI_UNSUPPORTED,
                              "%s holds code of the program ('%s'), which a file cannot hold", who,
                              field->key);
        write_field(field, value, writer);
    }
    return TUTTI_OK;
}

/* ---- reading ---- */

static tutti_status wrong(const char *who, const tutti_json *json, const char *expected)
{
    return tutti_fail(TUTTI_CORRUPT, "%s: '%s' is %s, expected is %s", who, json->key,
                      tutti__json_kind_text(json), expected);
}

static tutti_status read_ints(const char *who, const tutti_field *field, const tutti_json *json,
                              int64_t *ret)
{
    if (json->kind != TUTTI_JSON_ARRAY || json->count > (size_t)field->count)
        return wrong(who, json, "a list of whole numbers, not longer than the setting");
    for (const tutti_json *each = tutti__json_first(json); each; each = each->next) {
        if (each->kind != TUTTI_JSON_INT)
            return wrong(who, json, "a list of whole numbers");
        *ret++ = each->as.integer;
    }
    return TUTTI_OK;
}

static tutti_status read_field(const char *who, const tutti_field *field, const tutti_json *json,
                               tutti_arena *arena, void *value)
{
    switch (field->kind) {
    case TUTTI_FIELD_INT:
        if (json->kind != TUTTI_JSON_INT)
            return wrong(who, json, "a whole number");
        *(int64_t *)value = json->as.integer;
        return TUTTI_OK;
    case TUTTI_FIELD_NUMBER:
        if (json->kind != TUTTI_JSON_INT && json->kind != TUTTI_JSON_REAL)
            return wrong(who, json, "a number");
        *(double *)value = tutti__json_real(json, 0);
        return TUTTI_OK;
    case TUTTI_FIELD_FLAG:
        if (json->kind != TUTTI_JSON_BOOL)
            return wrong(who, json, "true or false");
        *(bool *)value = json->as.truth;
        return TUTTI_OK;
    case TUTTI_FIELD_TEXT: {
        const char *text = tutti__json_text(json, NULL);
        if (!text)
            return wrong(who, json, "a text");
        *(const char **)value = tutti__arena_string(arena, text);
        return *(const char **)value ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory");
    }
    case TUTTI_FIELD_INTS:
        return read_ints(who, field, json, value);
    case TUTTI_FIELD_CODE:
        break;
    }
    return wrong(who, json, "nothing: it is code of a program");
}

static bool listed(const char *const *names, const char *name)
{
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

tutti_status tutti__settings_read(const char *who, const tutti_field *fields,
                                  const tutti_json *json, const char *const *others,
                                  tutti_arena *arena, void *settings)
{
    for (const tutti_json *each = tutti__json_first(json); each; each = each->next) {
        if (listed(others, each->key))
            continue;
        const tutti_field *field = fields;
        while (field && field->key && strcmp(field->key, each->key) != 0)
            field++;
        if (!field || !field->key)
            return tutti_fail(TUTTI_CORRUPT, "%s has no setting '%s'", who, each->key);
        TUTTI_TRY(read_field(who, field, each, arena, (char *)settings + field->offset));
    }
    return TUTTI_OK;
}
