#include "base/bytes.h"
#include "base/c_locale.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The factor that a unit stands for; 0: there is no such unit. */
static double factor_of(const char *unit)
{
    static const char letters[] = "kmgt";
    if (unit[0] == 0 || strcmp(unit, "B") == 0)
        return 1;
    const char *letter = strchr(letters, tolower((unsigned char)unit[0]));
    if (!letter)
        return 0;
    bool thousands = strcmp(unit + 1, "B") == 0;
    if (!thousands && unit[1] != 0 && strcmp(unit + 1, "i") != 0 && strcmp(unit + 1, "iB") != 0)
        return 0;
    double factor = 1;
    for (const char *at = letters; at <= letter; at++)
        factor *= thousands ? 1000 : 1024;
    return factor;
}

tutti_status tutti__bytes_parse(const char *text, int64_t *ret_bytes)
{
    char *end;
    double number = tutti__strtod(text, &end);
    while (*end == ' ')
        end++;
    double bytes = number * factor_of(end);
    if (end == text || !(bytes >= 1 && bytes < 9e18))
        return tutti_fail(TUTTI_INVALID, "'%s' is no size; sizes are written 64MiB, 1.5GiB or 4096",
                          text);
    *ret_bytes = (int64_t)bytes;
    return TUTTI_OK;
}
