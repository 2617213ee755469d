/* regex.c: regular expressions of POSIX; see regex.h. */
#include "ops/text/regex.h"

/* The product of the upper bounds of all {m}, {m,} and {m,n}; SIZE_MAX when it is beyond measure.
 */
static size_t repeats_of(const char *pattern)
{
    size_t product = 1;
    for (const char *at = pattern; (at = strchr(at, '{')) != NULL; at++) {
        size_t most = 1, number = 0;
        for (const char *digit = at + 1; *digit && *digit != '}'; digit++) {
            number = *digit >= '0' && *digit <= '9' && number <= TUTTI_REGEX_REPEAT
                         ? number * 10 + (size_t)(*digit - '0')
                     : *digit == ',' ? 0
                                     : number;
            most = number > most ? number : most;
        }
        product *= most;
        if (product > TUTTI_REGEX_REPEAT)
            return SIZE_MAX;
    }
    return product;
}

tutti_status tutti__regex_compile(const char *op, const char *name, const char *pattern,
                                  regex_t *ret)
{
    char why[128];
    if (strlen(pattern) > TUTTI_REGEX_MOST)
        return tutti__rule_fail(op, name, TUTTI_TOO_LARGE,
                                "the pattern has %zu bytes, at most %d are legal", strlen(pattern),
                                TUTTI_REGEX_MOST);
    if (repeats_of(pattern) > TUTTI_REGEX_REPEAT)
        return tutti__rule_fail(op, name, TUTTI_TOO_LARGE,
                                "the bounds {m,n} of '%s' multiply to more than %d", pattern,
                                TUTTI_REGEX_REPEAT);
    int error = regcomp(ret, pattern, REG_EXTENDED);
    if (error != 0) {
        regerror(error, ret, why, sizeof why);
        return tutti__rule_fail(op, name, TUTTI_INVALID,
                                "'%s' is no extended regular expression of POSIX: %s", pattern,
                                why);
    }
    return TUTTI_OK;
}

bool tutti__regex_find(const regex_t *regex, const char *text, size_t size, size_t at,
                       size_t group_count, regmatch_t *ret_groups)
{
    int flags = at > 0 ? REG_NOTBOL : 0;
#ifdef REG_STARTEND
    ret_groups[0] = (regmatch_t){.rm_so = (regoff_t)at, .rm_eo = (regoff_t)size};
    return regexec(regex, text, group_count, ret_groups, flags | REG_STARTEND) == 0;
#else
    TUTTI_UNUSED(size);
    if (regexec(regex, text + at, group_count, ret_groups, flags) != 0)
        return false;
    for (size_t i = 0; i < group_count; i++)
        if (ret_groups[i].rm_so >= 0) {
            ret_groups[i].rm_so += (regoff_t)at;
            ret_groups[i].rm_eo += (regoff_t)at;
        }
    return true;
#endif
}
