/* testing.c: a reader of just enough JSON. */
#include "program/testing.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/c_locale.h"
#include "base/test.h"

static const char *testing_skip(const char *at)
{
    while (*at == ' ' || *at == '\n')
        at++;
    return at;
}

static const char *testing_value(const char *at);

static const char *string(const char *at)
{
    CHECK(*at == '"');
    for (at++; *at != '"'; at++) {
        CHECK((unsigned char)*at >= 32);
        if (*at == '\\')
            at++;
    }
    return testing_skip(at + 1);
}

static const char *list(const char *at, char end, bool named)
{
    at = testing_skip(at + 1);
    while (*at != end) {
        if (named) {
            at = string(at);
            CHECK(*at == ':');
            at = testing_skip(at + 1);
        }
        at = testing_value(at);
        CHECK(*at == ',' || *at == end);
        if (*at == ',') {
            at = testing_skip(at + 1);
            CHECK(*at != end);
        }
    }
    return testing_skip(at + 1);
}

static const char *testing_value(const char *at)
{
    if (*at == '{')
        return list(at, '}', true);
    if (*at == '[')
        return list(at, ']', false);
    if (*at == '"')
        return string(at);
    char *after;
    tutti__strtod(at, &after);
    CHECK(after != at);
    return testing_skip(after);
}

void tutti__check_json(const char *text)
{
    const char *after = testing_value(testing_skip(text));
    CHECK(*after == '\0');
}

char *tutti__take_file(const char *path)
{
    enum { MOST = 1 << 24 };
    FILE *in = fopen(path, "r");
    CHECK(in != NULL);
    char *text = calloc(1, MOST);
    CHECK(text != NULL);
    size_t size = fread(text, 1, MOST - 1, in);
    fclose(in);
    remove(path);
    CHECK(size > 0 && size < MOST - 1);
    return text;
}
