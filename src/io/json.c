/* json.c: the reader: recursive descent with a limit on depth, values and bytes. */
#include "io/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/number.h"

typedef struct parser {
    const char *name, *text;
    size_t size, at;
    size_t values, most_values;
    int depth, most_depth;
    tutti_arena *arena;
} parser;

static tutti_status parse_value(parser *p, tutti_json *json);

static tutti_status fail_at(const parser *p, size_t at, const char *expected)
{
    if (at >= p->size)
        return tutti_fail(TUTTI_CORRUPT, "%s: the JSON text ends at offset %zu, expected %s",
                          p->name, p->size, expected);
    unsigned char c = (unsigned char)p->text[at];
    return c > ' ' && c < 127
               ? tutti_fail(TUTTI_CORRUPT, "%s: offset %zu: found '%c' in JSON, expected %s",
                            p->name, at, c, expected)
               : tutti_fail(TUTTI_CORRUPT, "%s: offset %zu: found byte 0x%02x in JSON, expected %s",
                            p->name, at, c, expected);
}

static void skip_blanks(parser *p)
{
    while (p->at < p->size && p->text[p->at] != '\0' && strchr(" \t\r\n", p->text[p->at]) != NULL)
        p->at++;
}

static bool json_take(parser *p, char c)
{
    skip_blanks(p);
    bool there = p->at < p->size && p->text[p->at] == c;
    p->at += there;
    return there;
}

/* Four hexadecimal digits at `at`; -1 when they are not there. */
static int32_t hex4(const parser *p, size_t at)
{
    int32_t value = 0;
    if (p->size - at < 4 || at > p->size)
        return -1;
    for (size_t i = at; i < at + 4; i++) {
        char c = p->text[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* After "\u": a code point, of two escapes when the first is a high surrogate. */
static tutti_status parse_unicode(parser *p, uint32_t *ret_code)
{
    int32_t high = hex4(p, p->at);
    if (high < 0)
        return fail_at(p, p->at, "four hexadecimal digits after \\u");
    p->at += 4;
    if (high < 0xd800 || high > 0xdfff) {
        *ret_code = (uint32_t)high;
        return TUTTI_OK;
    }
    bool pair = high < 0xdc00 && p->size - p->at >= 6 && p->text[p->at] == '\\' &&
                p->text[p->at + 1] == 'u';
    int32_t low = pair ? hex4(p, p->at + 2) : -1;
    if (low < 0xdc00 || low > 0xdfff)
        return fail_at(p, p->at, "the second half of a surrogate pair");
    p->at += 6;
    *ret_code = 0x10000 + (((uint32_t)high & 0x3ff) << 10 | ((uint32_t)low & 0x3ff));
    return TUTTI_OK;
}

/* After a backslash; appends to the string being built. */
static tutti_status parse_escape(parser *p, char *to, size_t *length)
{
    static const char letters[] = "\"\\/bfnrt", meaning[] = "\"\\/\b\f\n\r\t";
    char c = p->at < p->size ? p->text[p->at] : '\0';
    const char *found = c != '\0' ? strchr(letters, c) : NULL;
    if (found != NULL) {
        p->at++;
        to[(*length)++] = meaning[found - letters];
        return TUTTI_OK;
    }
    if (c != 'u')
        return fail_at(p, p->at, "one of \" \\ / b f n r t u after a backslash");
    p->at++;
    uint32_t code = 0;
    TUTTI_TRY(parse_unicode(p, &code));
    *length += tutti__utf8_put(code, to + *length);
    return TUTTI_OK;
}

/* Offset behind the closing quote's place, so that memory is taken once; escapes only shrink. */
static size_t find_quote(const parser *p)
{
    size_t at = p->at;
    while (at < p->size && p->text[at] != '"')
        at += p->text[at] == '\\' ? 2 : 1;
    return at;
}

/* After the opening quote. */
static tutti_status parse_string(parser *p, const char **ret_text, size_t *ret_size)
{
    size_t end = find_quote(p), length = 0;
    if (end >= p->size)
        return fail_at(p, p->size, "the closing quote of a string");
    char *to = tutti__arena_take(p->arena, end - p->at + 1);
    if (to == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for a string of %zu bytes", p->name,
                          end - p->at);
    while (p->text[p->at] != '"') {
        unsigned char c = (unsigned char)p->text[p->at];
        size_t bytes = tutti__utf8_length(p->text + p->at, p->size - p->at);
        if (c < 0x20)
            return fail_at(p, p->at, "control characters as escapes (\\n) inside a string");
        if (bytes == 0)
            return fail_at(p, p->at, "UTF-8");
        if (c == '\\') {
            p->at++;
            TUTTI_TRY(parse_escape(p, to, &length));
            continue;
        }
        memcpy(to + length, p->text + p->at, bytes);
        length += bytes;
        p->at += bytes;
    }
    p->at++;
    *ret_text = to;
    *ret_size = length;
    return TUTTI_OK;
}

static size_t skip_digits(const parser *p, size_t at)
{
    while (at < p->size && p->text[at] >= '0' && p->text[at] <= '9')
        at++;
    return at;
}

/* -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)? */
static tutti_status parse_number(parser *p, tutti_json *json)
{
    size_t start = p->at, at = start + (p->text[start] == '-'), digits = at;
    bool whole = true;
    at = skip_digits(p, at);
    if (at == digits || (p->text[digits] == '0' && at > digits + 1))
        return fail_at(p, digits, "a digit, and no 0 before others");
    if (at < p->size && p->text[at] == '.') {
        digits = at + 1;
        at = skip_digits(p, digits);
        if (at == digits)
            return fail_at(p, at, "a digit after the point");
        whole = false;
    }
    if (at < p->size && (p->text[at] == 'e' || p->text[at] == 'E')) {
        at++;
        digits = at += at < p->size && (p->text[at] == '+' || p->text[at] == '-');
        at = skip_digits(p, digits);
        if (at == digits)
            return fail_at(p, at, "a digit in the exponent");
        whole = false;
    }
    p->at = at;
    json->kind = TUTTI_JSON_INT;
    if (whole && tutti__integer_parse(p->text + start, at - start, &json->as.integer))
        return TUTTI_OK;
    json->kind = TUTTI_JSON_REAL;
    if (!tutti__number_parse(p->text + start, at - start, &json->as.real) ||
        !isfinite(json->as.real))
        return tutti_fail(TUTTI_CORRUPT, "%s: offset %zu: the number does not fit a double",
                          p->name, start);
    return TUTTI_OK;
}

static tutti_json *new_value(parser *p)
{
    return p->values++ < p->most_values ? tutti__arena_take(p->arena, sizeof(tutti_json)) : NULL;
}

static tutti_status fail_values(const parser *p)
{
    return p->values > p->most_values
               ? tutti_fail(TUTTI_TOO_LARGE, "%s: more than %zu JSON values, the most allowed here",
                            p->name, p->most_values)
               : tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for JSON value %zu", p->name,
                            p->values);
}

static int by_key(const void *a, const void *b)
{
    const tutti_json *left = *(const tutti_json *const *)a, *right = *(const tutti_json *const *)b;
    return strcmp(left->key, right->key);
}

/* Sorted, so that hostile keys cost no more than others. */
static tutti_status check_keys(const parser *p, const tutti_json *object)
{
    if (object->count < 2)
        return TUTTI_OK;
    const tutti_json **members = malloc(object->count * sizeof(tutti_json *));
    if (members == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for %zu keys", p->name, object->count);
    size_t n = 0;
    for (const tutti_json *each = object->as.first; each != NULL; each = each->next)
        members[n++] = each;
    qsort(members, n, sizeof *members, by_key);
    tutti_status status = TUTTI_OK;
    for (size_t i = 1; i < n && status == TUTTI_OK; i++)
        if (strcmp(members[i - 1]->key, members[i]->key) == 0)
            status = tutti_fail(TUTTI_CORRUPT,
                                "%s: the JSON object at offset %u holds the key \"%.100s\" twice",
                                p->name, object->offset, members[i]->key);
    free(members);
    return status;
}

static tutti_status parse_key(parser *p, tutti_json *member)
{
    size_t length = 0;
    if (!json_take(p, '"'))
        return fail_at(p, p->at, "a key in quotes");
    size_t start = p->at;
    TUTTI_TRY(parse_string(p, &member->key, &length));
    if (strlen(member->key) != length)
        return fail_at(p, start, "a key without NUL");
    if (!json_take(p, ':'))
        return fail_at(p, p->at, "':' after a key");
    return TUTTI_OK;
}

/* After the bracket; `end` closes. */
static tutti_status parse_inside(parser *p, tutti_json *json, char end)
{
    if (++p->depth > p->most_depth)
        return tutti_fail(TUTTI_TOO_LARGE,
                          "%s: offset %u: JSON nests deeper than %d levels, the most allowed here",
                          p->name, json->offset, p->most_depth);
    tutti_json **tail = &json->as.first;
    if (!json_take(p, end)) {
        do {
            tutti_json *value = new_value(p);
            if (value == NULL)
                return fail_values(p);
            if (end == '}')
                TUTTI_TRY(parse_key(p, value));
            TUTTI_TRY(parse_value(p, value));
            *tail = value;
            tail = &value->next;
            json->count++;
        } while (json_take(p, ','));
        if (!json_take(p, end))
            return fail_at(p, p->at, end == '}' ? "',' or '}'" : "',' or ']'");
    }
    p->depth--;
    return end == '}' ? check_keys(p, json) : TUTTI_OK;
}

static tutti_status parse_word(parser *p, tutti_json *json)
{
    static const struct {
        const char *text;
        tutti_json_kind kind;
        bool truth;
    } words[] = {{"true", TUTTI_JSON_BOOL, true},
                 {"false", TUTTI_JSON_BOOL, false},
                 {"null", TUTTI_JSON_NULL, false}};
    for (size_t i = 0; i < TUTTI_COUNT(words); i++) {
        size_t length = strlen(words[i].text);
        if (p->size - p->at >= length && memcmp(p->text + p->at, words[i].text, length) == 0) {
            p->at += length;
            json->kind = words[i].kind;
            json->as.truth = words[i].truth;
            return TUTTI_OK;
        }
    }
    return fail_at(p, p->at, "a value: an object, array, string, number, true, false or null");
}

static tutti_status parse_value(parser *p, tutti_json *json)
{
    skip_blanks(p);
    json->offset = (uint32_t)p->at;
    char c = p->at < p->size ? p->text[p->at] : '\0';
    if (c == '-' || (c >= '0' && c <= '9'))
        return parse_number(p, json);
    if (c != '{' && c != '[' && c != '"')
        return parse_word(p, json);
    p->at++;
    if (c == '"') {
        json->kind = TUTTI_JSON_STRING;
        return parse_string(p, &json->as.text, &json->count);
    }
    json->kind = c == '{' ? TUTTI_JSON_OBJECT : TUTTI_JSON_ARRAY;
    return parse_inside(p, json, c == '{' ? '}' : ']');
}

tutti_status tutti__json_parse(const char *name, const char *text, size_t size,
                               const tutti_json_limits *limits, tutti_arena *arena,
                               const tutti_json **ret_root)
{
    tutti_json_limits most = limits != NULL ? *limits : (tutti_json_limits){0};
    most.bytes = most.bytes != 0 ? most.bytes : (size_t)256 << 20;
    most.bytes = most.bytes < UINT32_MAX ? most.bytes : UINT32_MAX;
    most.depth = most.depth <= 0 ? 64 : most.depth > 512 ? 512 : most.depth;
    if (size > most.bytes)
        return tutti_fail(TUTTI_TOO_LARGE, "%s: %zu bytes of JSON, at most %zu are read here", name,
                          size, most.bytes);
    parser p = {.name = name,
                .text = text,
                .size = size,
                .most_values = most.values != 0 ? most.values : (size_t)4 << 20,
                .most_depth = most.depth,
                .arena = arena};
    tutti_json *root = new_value(&p);
    if (root == NULL)
        return fail_values(&p);
    TUTTI_TRY(parse_value(&p, root));
    skip_blanks(&p);
    if (p.at < size)
        return fail_at(&p, p.at, "nothing after the value");
    *ret_root = root;
    return TUTTI_OK;
}
