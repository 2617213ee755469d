/* named_spec.c: texts of the form "l2(0.01)": a name and numbers. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "nn/model/layer.h"

static const char *skip_space(const char *at)
{
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

static tutti_status bad(const char *text)
{
    return tutti_fail(TUTTI_INVALID, "'%s' is not of the form name or name(1, 2)", text);
}

tutti_status tutti__spec_takes(const tutti_named_spec *spec, const char *what, int most)
{
    if (spec->count > most)
        return tutti_fail(TUTTI_INVALID, "%s '%s' takes at most %d numbers, %d are given", what,
                          spec->name, most, spec->count);
    for (int i = 0; i < spec->count; i++)
        if (!isfinite(spec->values[i]))
            return tutti_fail(TUTTI_INVALID, "%s '%s' takes finite numbers, number %d is %g", what,
                              spec->name, i + 1, spec->values[i]);
    return TUTTI_OK;
}

tutti_status tutti__spec_parse(const char *text, tutti_named_spec *ret)
{
    tutti_named_spec spec = {0};
    const char *at = skip_space(text);
    size_t size = strcspn(at, "( ");
    if (size == 0 || size >= sizeof spec.name)
        return bad(text);
    memcpy(spec.name, at, size);
    at = skip_space(at + size);
    if (*at == '(') {
        do {
            char *end;
            at = skip_space(at + 1);
            if (spec.count == 0 && *at == ')')
                break;
            if (spec.count == (int)TUTTI_COUNT(spec.values))
                return bad(text);
            spec.values[spec.count++] = tutti__strtod(at, &end);
            if (end == at)
                return bad(text);
            at = skip_space(end);
        } while (*at == ',');
        if (*at != ')')
            return bad(text);
        at = skip_space(at + 1);
    }
    if (*at)
        return bad(text);
    *ret = spec;
    return TUTTI_OK;
}
