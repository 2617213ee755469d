/* glob.c: see glob.h.
 *
 * After a mismatch only the last '*' is tried again, one letter further: what an earlier one could
 * take, the last can take as well. So the time is at most pattern times text. */
#include "base/glob.h"

#include <string.h>

bool tutti__glob_match_one(tutti_glob pattern, const char *text)
{
    const char *p = pattern.text, *end = p + pattern.length;
    const char *star = NULL, *from = NULL;
    while (*text) {
        if (p < end && *p == '*') {
            star = ++p;
            from = text;
        } else if (p < end && (*p == '?' || *p == *text)) {
            p++;
            text++;
        } else if (star) {
            p = star;
            text = ++from;
        } else {
            return false;
        }
    }
    while (p < end && *p == '*')
        p++;
    return p == end;
}

bool tutti__glob_next(const char **patterns, tutti_glob *ret_pattern)
{
    const char *at = *patterns + strspn(*patterns, ", ");
    size_t length = strcspn(at, ",");
    *patterns = at + length;
    while (length > 0 && at[length - 1] == ' ')
        length--;
    if (length == 0)
        return false;
    *ret_pattern = (tutti_glob){at, length};
    return true;
}

bool tutti__glob_match(const char *patterns, const char *text)
{
    tutti_glob pattern;
    while (tutti__glob_next(&patterns, &pattern))
        if (tutti__glob_match_one(pattern, text))
            return true;
    return false;
}
