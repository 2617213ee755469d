/* regex.h: regular expressions of POSIX (extended) that stand in attributes. */
#ifndef TUTTI_OPS_TEXT_REGEX_H
#define TUTTI_OPS_TEXT_REGEX_H

#include <regex.h>

#include "ops/text/strings.h"

#define TUTTI_REGEX_MOST 1024    /* bytes of a pattern */
#define TUTTI_REGEX_REPEAT 10000 /* product of all the bounds {m,n} in it */

/* Compiles attribute "pattern"; regfree it. Long ones, and bounds that multiply up, are refused
 * because they would take more memory than any text is worth. */
tutti_status tutti__regex_compile(const char *op, const char *name, const char *pattern,
                                  regex_t *ret);
/* The first match in text[at..size), which ends in a 0; offsets count from text. */
bool tutti__regex_find(const regex_t *regex, const char *text, size_t size, size_t at,
                       size_t group_count, regmatch_t *ret_groups);

#endif
