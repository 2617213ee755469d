/* json_write.c: the writer. */
#include <math.h>
#include <string.h>

#include "io/json.h"
#include "io/number.h"

static void new_line(tutti_json_writer *w)
{
    if (w->indent > 0)
        tutti__text_add(w->text, "\n%*s", w->indent * w->depth, "");
}

/* What stands before a value or key: a comma and a new line where they belong. */
static void separate(tutti_json_writer *w)
{
    if (w->depth == 0 || w->open[w->depth] == '[' || !w->keyed) {
        if (w->filled[w->depth])
            tutti__text_add(w->text, w->indent > 0 ? "," : ", ");
        if (w->depth > 0)
            new_line(w);
    }
    w->filled[w->depth] = true;
}

static void before_value(tutti_json_writer *w)
{
    bool in_object = w->depth > 0 && w->open[w->depth] == '{';
    w->wrong |= in_object != w->keyed || (w->depth == 0 && w->filled[0]);
    separate(w);
    w->keyed = false;
}

void tutti__json_begin(tutti_json_writer *w, char bracket)
{
    before_value(w);
    if (w->depth >= TUTTI_JSON_DEPTH) {
        w->wrong = true;
        return;
    }
    tutti__text_add(w->text, "%c", bracket);
    w->depth++;
    w->open[w->depth] = bracket;
    w->filled[w->depth] = false;
}

void tutti__json_end(tutti_json_writer *w)
{
    if (w->depth == 0 || w->keyed) {
        w->wrong = true;
        return;
    }
    char bracket = w->open[w->depth];
    bool filled = w->filled[w->depth];
    w->depth--;
    if (filled)
        new_line(w);
    tutti__text_add(w->text, "%c", bracket == '{' ? '}' : ']');
}

/* One character, escaped where JSON asks for it; returns the bytes it took. */
static size_t put_character(tutti_text *text, const char *from, size_t size)
{
    static const char special[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
    size_t bytes = tutti__utf8_length(from, size);
    const char *found = bytes == 1 && *from != '\0' ? strchr(special, *from) : NULL;
    if (bytes == 0)
        tutti__text_add(text, "\xef\xbf\xbd");
    else if (found != NULL)
        tutti__text_add(text, "\\%c", letter[found - special]);
    else if (bytes == 1 && ((unsigned char)*from < 0x20 || *from == 0x7f))
        tutti__text_add(text, "\\u%04x", (unsigned)*from);
    else
        tutti__text_bytes(text, from, bytes);
    return bytes > 0 ? bytes : 1;
}

static void put_quoted(tutti_text *text, const char *from, size_t size)
{
    tutti__text_bytes(text, "\"", 1);
    while (size > 0) {
        size_t plain = 0;
        while (plain < size && from[plain] >= 0x20 && from[plain] < 0x7f && from[plain] != '"' &&
               from[plain] != '\\')
            plain++;
        tutti__text_bytes(text, from, plain);
        size_t taken =
            plain < size ? plain + put_character(text, from + plain, size - plain) : plain;
        from += taken;
        size -= taken;
    }
    tutti__text_bytes(text, "\"", 1);
}

void tutti__json_key(tutti_json_writer *w, const char *key)
{
    w->wrong |= w->depth == 0 || w->open[w->depth] != '{' || w->keyed;
    separate(w);
    put_quoted(w->text, key, strlen(key));
    tutti__text_add(w->text, ": ");
    w->keyed = true;
}

void tutti__json_put_bytes(tutti_json_writer *w, const char *text, size_t size)
{
    before_value(w);
    put_quoted(w->text, text, size);
}

void tutti__json_put_string(tutti_json_writer *w, const char *text)
{
    tutti__json_put_bytes(w, text, strlen(text));
}

void tutti__json_put_int(tutti_json_writer *w, int64_t value)
{
    before_value(w);
    tutti__text_add(w->text, "%lld", (long long)value);
}

/* A fraction is always written, so that the number stays real when it is read again. */
static void put_number(tutti_json_writer *w, double value, bool single)
{
    char text[TUTTI_NUMBER_TEXT];
    before_value(w);
    if (!isfinite(value)) {
        tutti__text_add(w->text, "null");
        return;
    }
    tutti__number_text(value, single, text);
    tutti__text_add(w->text, "%s%s", text, strpbrk(text, ".e") != NULL ? "" : ".0");
}

void tutti__json_put_real(tutti_json_writer *w, double value)
{
    put_number(w, value, false);
}

void tutti__json_put_float(tutti_json_writer *w, float value)
{
    put_number(w, (double)value, true);
}

void tutti__json_put_bool(tutti_json_writer *w, bool value)
{
    before_value(w);
    tutti__text_add(w->text, value ? "true" : "false");
}

void tutti__json_put_null(tutti_json_writer *w)
{
    before_value(w);
    tutti__text_add(w->text, "null");
}

void tutti__json_put(tutti_json_writer *w, const tutti_json *json)
{
    switch (json != NULL ? json->kind : TUTTI_JSON_NULL) {
    case TUTTI_JSON_NULL:
        tutti__json_put_null(w);
        return;
    case TUTTI_JSON_BOOL:
        tutti__json_put_bool(w, json->as.truth);
        return;
    case TUTTI_JSON_INT:
        tutti__json_put_int(w, json->as.integer);
        return;
    case TUTTI_JSON_REAL:
        tutti__json_put_real(w, json->as.real);
        return;
    case TUTTI_JSON_STRING:
        tutti__json_put_bytes(w, json->as.text, json->count);
        return;
    case TUTTI_JSON_ARRAY:
    case TUTTI_JSON_OBJECT:
        break;
    }
    bool object = json->kind == TUTTI_JSON_OBJECT;
    tutti__json_begin(w, object ? '{' : '[');
    for (const tutti_json *each = json->as.first; each != NULL && !w->wrong; each = each->next) {
        if (object)
            tutti__json_key(w, each->key);
        tutti__json_put(w, each);
    }
    tutti__json_end(w);
}

tutti_status tutti__json_finish(const tutti_json_writer *w)
{
    if (w->text->failed)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a JSON text of %zu bytes", w->text->size);
    if (w->wrong || w->depth != 0 || !w->filled[0])
        return tutti_fail(TUTTI_INVALID,
                          "JSON was written in a wrong order (a value without its key, brackets "
                          "that do not match, or more than %d levels)",
                          TUTTI_JSON_DEPTH);
    return TUTTI_OK;
}
