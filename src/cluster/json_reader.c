/* json_reader.c: see json_reader.h. */
#include "cluster/json_reader.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 32 };

static tutti_status fail_json(const tutti_json_reader *reader, const char *expected)
{
    return tutti_fail(TUTTI_INVALID, "at byte %td, '%.12s': expected %s", reader->at - reader->text,
                      reader->at, expected);
}

char tutti__json_peek(tutti_json_reader *reader)
{
    reader->at += strspn(reader->at, " \t\r\n");
    return *reader->at;
}

tutti_status tutti__json_open(tutti_json_reader *reader, char bracket, bool *ret_more)
{
    char close = bracket == '{' ? '}' : ']';
    if (tutti__json_peek(reader) != bracket)
        return fail_json(reader, bracket == '{' ? "an object {...}" : "a list [...]");
    reader->at++;
    *ret_more = tutti__json_peek(reader) != close;
    reader->at += !*ret_more;
    return TUTTI_OK;
}

tutti_status tutti__json_more(tutti_json_reader *reader, char close, bool *ret_more)
{
    char next = tutti__json_peek(reader);
    if (next != ',' && next != close)
        return fail_json(reader, close == '}' ? "',' or '}'" : "',' or ']'");
    reader->at++;
    *ret_more = next == ',';
    return TUTTI_OK;
}

/* The character behind a backslash; '\0' when it is not understood. */
static char unescape(tutti_json_reader *reader)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = *reader->at;
    const char *found = c != '\0' ? strchr(from, c) : NULL;
    if (found != NULL) {
        reader->at++;
        return to[found - from];
    }
    if (c != 'u' || strncmp(reader->at, "u00", 3) != 0)
        return '\0';
    char digits[3] = {reader->at[3], reader->at[3] != '\0' ? reader->at[4] : '\0', '\0'}, *end;
    long code = strtol(digits, &end, 16);
    if (end != digits + 2 || code < 1 || code > 126)
        return '\0';
    reader->at += 5;
    return (char)code;
}

tutti_status tutti__json_read_text(tutti_json_reader *reader, char *ret_text, size_t size)
{
    size_t length = 0;
    if (tutti__json_peek(reader) != '"')
        return fail_json(reader, "a text in double quotes");
    reader->at++;
    while (*reader->at != '"') {
        char c = *reader->at;
        if (c == '\0')
            return fail_json(reader, "the end of a text");
        reader->at++;
        if (c == '\\' && (c = unescape(reader)) == '\0')
            return fail_json(reader, "an escape such as \\n");
        if (length + 1 >= size)
            return fail_json(reader, "a shorter text");
        ret_text[length++] = c;
    }
    reader->at++;
    ret_text[length] = '\0';
    return TUTTI_OK;
}

tutti_status tutti__json_key_name(tutti_json_reader *reader, char *ret_text, size_t size)
{
    TUTTI_TRY(tutti__json_read_text(reader, ret_text, size));
    if (tutti__json_peek(reader) != ':')
        return fail_json(reader, "':'");
    reader->at++;
    return TUTTI_OK;
}

tutti_status tutti__json_read_int(tutti_json_reader *reader, int low, int high, int *ret_value)
{
    char *end;
    char first = tutti__json_peek(reader);
    long value = strtol(reader->at, &end, 10);
    if ((first != '-' && (first < '0' || first > '9')) || end == reader->at || value < low ||
        value > high || strchr(".eE", *end ? *end : ',') != NULL)
        return fail_json(reader, "a whole number that can be an index");
    reader->at = end;
    *ret_value = (int)value;
    return TUTTI_OK;
}

/* Texts in a value that nobody reads may have any length. */
static tutti_status skip_text(tutti_json_reader *reader)
{
    for (reader->at++; *reader->at != '"'; reader->at++) {
        reader->at += *reader->at == '\\';
        if (*reader->at == '\0')
            return fail_json(reader, "the end of a text");
    }
    reader->at++;
    return TUTTI_OK;
}

/* Brackets are counted, not matched by kind: what is passed over is not judged. */
tutti_status tutti__json_skip(tutti_json_reader *reader)
{
    int depth = 0;
    do {
        char c = tutti__json_peek(reader);
        if (c == '\0' || depth > MOST_DEPTH)
            return fail_json(reader, "a value");
        if (c == '"') {
            TUTTI_TRY(skip_text(reader));
            continue;
        }
        size_t word = strcspn(reader->at, " \t\r\n,:{}[]\"");
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        if (depth < 0 || (depth == 0 && (c == ',' || c == ':')))
            return fail_json(reader, "a value");
        reader->at += word > 0 ? word : 1;
    } while (depth > 0);
    return TUTTI_OK;
}

tutti_status tutti__json_end_of_text(tutti_json_reader *reader)
{
    return tutti__json_peek(reader) == '\0' ? TUTTI_OK : fail_json(reader, "the end");
}
