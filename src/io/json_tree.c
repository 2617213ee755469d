/* json_tree.c: reading a parsed tree. */
#include <string.h>

#include "io/json.h"

static bool is(const tutti_json *json, tutti_json_kind kind)
{
    return json != NULL && json->kind == kind;
}

const tutti_json *tutti__json_first(const tutti_json *json)
{
    return is(json, TUTTI_JSON_ARRAY) || is(json, TUTTI_JSON_OBJECT) ? json->as.first : NULL;
}

const tutti_json *tutti__json_get(const tutti_json *json, const char *key)
{
    const tutti_json *each = is(json, TUTTI_JSON_OBJECT) ? json->as.first : NULL;
    while (each != NULL && strcmp(each->key, key) != 0)
        each = each->next;
    return each;
}

const char *tutti__json_text(const tutti_json *json, const char *fallback)
{
    return is(json, TUTTI_JSON_STRING) && strlen(json->as.text) == json->count ? json->as.text
                                                                               : fallback;
}

int64_t tutti__json_int(const tutti_json *json, int64_t fallback)
{
    return is(json, TUTTI_JSON_INT) ? json->as.integer : fallback;
}

double tutti__json_real(const tutti_json *json, double fallback)
{
    return is(json, TUTTI_JSON_REAL)  ? json->as.real
           : is(json, TUTTI_JSON_INT) ? (double)json->as.integer
                                      : fallback;
}

bool tutti__json_bool(const tutti_json *json, bool fallback)
{
    return is(json, TUTTI_JSON_BOOL) ? json->as.truth : fallback;
}

const char *tutti__json_kind_text(const tutti_json *json)
{
    static const char *const names[] = {"null",     "true or false", "an integer", "a number",
                                        "a string", "an array",      "an object"};
    return json != NULL ? names[json->kind] : "nothing";
}
