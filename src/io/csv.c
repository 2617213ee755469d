/* csv.c: rows. A row is split in place: fields point into the line. */
#include "io/csv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tutti_status fail_row(const tutti_csv *csv, const char *what)
{
    return tutti_fail(TUTTI_CORRUPT, "%s: line %lld: %s", csv->lines.source->name,
                      (long long)csv->lines.number, what);
}

/* After the opening quote: doubled quotes shrink to one. Returns where the field's text ended in
 * the line, NULL when it never did. */
static char *unquote(char *at, char *end, tutti_string *ret)
{
    char *to = at;
    ret->data = at;
    for (; at < end; at++) {
        if (*at == '"') {
            if (at + 1 == end || at[1] != '"') {
                ret->size = to - ret->data;
                return at + 1;
            }
            at++;
        }
        *to++ = *at;
    }
    return NULL;
}

/* Fields of a line; as many as there are are counted, those within `room` are kept. */
static tutti_status csv_split(const tutti_csv *csv, char *line, size_t size, tutti_string *fields,
                              size_t room, size_t *ret_count)
{
    char *at = line, *end = line + size;
    size_t count = 0;
    for (bool more = true; more; count++) {
        tutti_string field = {.data = at};
        if (at < end && *at == '"') {
            at = unquote(at + 1, end, &field);
            if (at == NULL || (at < end && *at != csv->options.delimiter))
                return fail_row(csv, at == NULL ? "a quote is opened and never closed"
                                                : "text follows a closing quote, expected the "
                                                  "delimiter");
        } else {
            while (at < end && *at != csv->options.delimiter && *at != '"' && *at != '\r')
                at++;
            if (at < end && *at == '\r')
                return fail_row(csv, "a carriage return without a line feed; end lines with LF or "
                                     "CR LF, or put the field in quotes");
            if (at < end && *at == '"')
                return fail_row(csv, "a quote inside a field that does not begin with one; put the "
                                     "field in quotes and double those inside");
            field.size = at - field.data;
        }
        if (count < room)
            fields[count] = field;
        more = at < end;
        at += more;
    }
    *ret_count = count;
    return TUTTI_OK;
}

/* The header's names, or numbers. */
static tutti_status name_columns(tutti_csv *csv)
{
    csv->names = calloc(csv->count, sizeof(char *));
    tutti_text text = {0};
    for (size_t i = 0; csv->names != NULL && i < csv->count && !text.failed; i++) {
        text.size = 0;
        if (csv->options.names != NULL)
            tutti__text_add(&text, "%s", csv->options.names[i]);
        else if (csv->options.no_header)
            tutti__text_add(&text, "%zu", i);
        else
            tutti__text_add(&text, "%.*s", (int)csv->fields[i].size, csv->fields[i].data);
        csv->names[i] = text.failed ? NULL : tutti__arena_string(&csv->arena, text.data);
        text.failed |= csv->names[i] == NULL;
    }
    bool failed = text.failed || csv->names == NULL;
    tutti__text_free(&text);
    return failed ? tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for %zu names of columns",
                               csv->lines.source->name, csv->count)
                  : TUTTI_OK;
}

/* The next line that is not empty; NULL at the end. */
static tutti_status next_line(tutti_csv *csv, char **ret_line, size_t *ret_size)
{
    do
        TUTTI_TRY(tutti__lines_next(&csv->lines, ret_line, ret_size));
    while (*ret_line != NULL && *ret_size == 0);
    return TUTTI_OK;
}

static tutti_status read_first(tutti_csv *csv)
{
    char *line;
    size_t size;
    TUTTI_TRY(next_line(csv, &line, &size));
    if (line == NULL)
        return tutti_fail(TUTTI_CORRUPT, "%s: it is empty, expected %s", csv->lines.source->name,
                          csv->options.no_header ? "rows" : "a header");
    if (size >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) { /* a byte order mark */
        line += 3;
        size -= 3;
    }
    csv->first = csv->options.no_header ? malloc(size + 1) : NULL;
    csv->first_size = size;
    if (csv->first != NULL)
        memcpy(csv->first, line, size + 1);
    else if (csv->options.no_header)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for a row", csv->lines.source->name);
    size_t most = 1; /* fields are at most the delimiters and one */
    for (size_t i = 0; i < size; i++)
        most += line[i] == csv->options.delimiter;
    csv->fields = calloc(most, sizeof *csv->fields);
    if (csv->fields == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for %zu columns", csv->lines.source->name,
                          most);
    TUTTI_TRY(csv_split(csv, line, size, csv->fields, most, &csv->count));
    return name_columns(csv);
}

tutti_status tutti__csv_open(tutti_source *source, const tutti_csv_options *options,
                             tutti_csv *ret_csv)
{
    tutti_csv csv = {.options = options != NULL ? *options : (tutti_csv_options){0}};
    csv.options.delimiter = csv.options.delimiter != '\0' ? csv.options.delimiter : ',';
    tutti__lines_open(source, '"', 0, &csv.lines);
    tutti_status status = read_first(&csv);
    if (status != TUTTI_OK)
        tutti__csv_close(&csv);
    else
        *ret_csv = csv;
    return status;
}

void tutti__csv_close(tutti_csv *csv)
{
    tutti__arena_free(&csv->arena);
    free(csv->names);
    free(csv->fields);
    free(csv->first);
    tutti__lines_close(&csv->lines);
    *csv = (tutti_csv){0};
}

tutti_status tutti__csv_next(tutti_csv *csv, const tutti_string **ret_fields)
{
    char *line;
    size_t size, count;
    if (csv->first != NULL && !csv->first_given) {
        line = csv->first;
        size = csv->first_size;
    } else {
        TUTTI_TRY(next_line(csv, &line, &size));
    }
    csv->first_given = true;
    if (line == NULL) {
        *ret_fields = NULL;
        return TUTTI_OK;
    }
    TUTTI_TRY(csv_split(csv, line, size, csv->fields, csv->count, &count));
    if (count != csv->count)
        return tutti_fail(TUTTI_CORRUPT, "%s: line %lld has %zu fields, expected %zu as in line 1",
                          csv->lines.source->name, (long long)csv->lines.number, count, csv->count);
    *ret_fields = csv->fields;
    return TUTTI_OK;
}

bool tutti__csv_is_missing(const tutti_csv *csv, tutti_string field)
{
    const char *missing = csv->options.missing;
    return field.size == 0 || (missing != NULL && strlen(missing) == (size_t)field.size &&
                               memcmp(missing, field.data, (size_t)field.size) == 0);
}
