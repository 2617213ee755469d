/* algorithm_spec.c: algorithms by size: "NAME[/BETWEEN][#PARTS][:LIMIT:…]". */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/require.h"
#include "comm/comm.h"

static tutti_status wrong(const char *text, const char *at, const char *what)
{
    return tutti_fail(TUTTI_INVALID,
                      "algorithms by size '%s': %s at '%s'; the form is NAME[/BETWEEN][#PARTS]"
                      "[:LIMIT:NAME...], as in tree:64k:ring",
                      text, what, at);
}

/* A name up to one of / # : or the end. */
static tutti_status read_name(const char *text, const char **at, tutti_operation operation,
                              char *ret_name)
{
    size_t length = strcspn(*at, "/#:");
    char name[TUTTI_COLL_NAME];
    if (length == 0 || length >= TUTTI_COLL_NAME)
        return wrong(text, *at, "an algorithm's name is missing");
    memcpy(name, *at, length);
    name[length] = 0;
    const tutti_coll *coll = tutti__coll_find(name);
    if (!coll || !coll->on[operation].run) {
        char what[64];
        snprintf(what, sizeof what, "there is no such algorithm for %s",
                 tutti__operation_names[operation]);
        return wrong(text, *at, what);
    }
    memcpy(ret_name, name, length + 1);
    *at += length;
    return TUTTI_OK;
}

static tutti_status read_number(const char *text, const char **at, int64_t most, int64_t *ret)
{
    char *end, what[64];
    errno = 0;
    long long value = strtoll(*at, &end, 10);
    int shift = *end == 'k' || *end == 'K'   ? 10
                : *end == 'm' || *end == 'M' ? 20
                : *end == 'g' || *end == 'G' ? 30
                                             : 0;
    snprintf(what, sizeof what, "a number of 1 to %lld is expected", (long long)most);
    if (end == *at || errno == ERANGE || value < 1 || value > most >> shift)
        return wrong(text, *at, what);
    *ret = (int64_t)value << shift;
    *at = end + (shift != 0);
    return TUTTI_OK;
}

/* A part of the message is a message of its own only where every element stands for itself. */
static bool has_parts(tutti_operation operation)
{
    return operation == TUTTI_ALL_REDUCE || operation == TUTTI_REDUCE ||
           operation == TUTTI_BROADCAST;
}

static bool is_hierarchical(tutti_operation operation)
{
    return tutti__coll_find("hierarchical")->on[operation].run != NULL;
}

/* One of two levels: within machines, or between them. */
static tutti_status check_level(const char *text, const char *at, const char *name)
{
    static const char *const whole[] = {"hierarchical", "compressed", "native"};
    for (size_t i = 0; i < TUTTI_COUNT(whole); i++)
        if (strcmp(name, whole[i]) == 0)
            return wrong(text, at,
                         "hierarchical, compressed and native are for whole groups, not "
                         "for one of two levels");
    return TUTTI_OK;
}

tutti_status tutti__comm_spec_parse(const char *text, tutti_operation operation,
                                    tutti_algorithm_spec *ret_spec)
{
    tutti_algorithm_spec spec = {0};
    const char *at = text;
    for (;;) {
        if (spec.count == TUTTI_SPEC_MOST)
            return wrong(text, at, "there are too many ranges");
        int i = spec.count++;
        int64_t number = 1;
        TUTTI_TRY(read_name(text, &at, operation, spec.range[i].within));
        if (*at == '/') {
            if (!is_hierarchical(operation))
                return wrong(text, at, "this operation has no two levels");
            at++;
            TUTTI_TRY(read_name(text, &at, operation, spec.range[i].between));
            TUTTI_TRY(check_level(text, at, spec.range[i].within));
            TUTTI_TRY(check_level(text, at, spec.range[i].between));
        }
        if (*at == '#') {
            if (!has_parts(operation))
                return wrong(text, at,
                             "only all_reduce, reduce and broadcast can be cut into parts");
            at++;
            TUTTI_TRY(read_number(text, &at, 1024, &number));
        }
        spec.range[i].parts = (int)number;
        spec.range[i].limit = INT64_MAX;
        if (!*at)
            break;
        if (*at++ != ':')
            return wrong(text, at - 1, "a colon is expected");
        TUTTI_TRY(read_number(text, &at, INT64_MAX, &spec.range[i].limit));
        if (i > 0 && spec.range[i].limit <= spec.range[i - 1].limit)
            return wrong(text, at, "limits must rise");
        if (*at++ != ':')
            return wrong(text, at - 1, "an algorithm for larger messages is expected");
    }
    *ret_spec = spec;
    return TUTTI_OK;
}

tutti_status tutti_comm_spec_check(const char *spec)
{
    tutti_algorithm_spec parsed;
    TUTTI_REQUIRE(spec);
    return tutti__comm_spec_parse(spec, TUTTI_ALL_REDUCE, &parsed);
}
