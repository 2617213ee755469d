/* hostlist.c: Slurm's host lists: names by commas, in brackets numbers and ranges, with their
 * zeros: node[001-003,7],b is node001 node002 node003 node7 b. Several brackets in one name
 * multiply. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster.h"

typedef struct expansion {
    const char *list;
    tutti_status (*add)(void *context, const char *host);
    void *context;
    int count;
} expansion;

static tutti_status fail_list(const expansion *e, const char *what)
{
    return tutti_fail(TUTTI_INVALID, "the host list '%s' %s", e->list, what);
}

static tutti_status hostlist_expand(expansion *e, const char *prefix, const char *rest,
                                    size_t size);

/* One number or range of a bracket: "7", "001-003". */
static tutti_status expand_range(expansion *e, const char *prefix, const char *range, size_t size,
                                 const char *rest, size_t rest_size)
{
    char name[256], *end;
    const char *dash = memchr(range, '-', size);
    int width = (int)(dash != NULL ? dash - range : (ptrdiff_t)size);
    if (width == 0 || width > 9 || strspn(range, "0123456789") < (size_t)width)
        return fail_list(e, "has a bracket without numbers");
    long first = strtol(range, &end, 10), last = first;
    if (dash != NULL) {
        size_t digits = strspn(dash + 1, "0123456789");
        last = strtol(dash + 1, &end, 10);
        if (digits == 0 || dash + 1 + digits != range + size || last < first || last > 999999999)
            return fail_list(e, "has a range that is none");
    }
    if (last - first >= TUTTI_MOST_RANKS)
        return fail_list(e, "names too many hosts");
    for (long number = first; number <= last; number++) {
        int length = snprintf(name, sizeof name, "%s%0*ld", prefix, width, number);
        if (length < 0 || (size_t)length >= sizeof name)
            return fail_list(e, "has a name that is too long");
        TUTTI_TRY(hostlist_expand(e, name, rest, rest_size));
    }
    return TUTTI_OK;
}

/* `prefix` is what is decided of a name, `rest` what is still to be read of it. */
static tutti_status hostlist_expand(expansion *e, const char *prefix, const char *rest, size_t size)
{
    char name[256];
    const char *open = memchr(rest, '[', size);
    size_t plain = open != NULL ? (size_t)(open - rest) : size;
    int length = snprintf(name, sizeof name, "%s%.*s", prefix, (int)plain, rest);
    if (length < 0 || (size_t)length >= sizeof name)
        return fail_list(e, "has a name that is too long");
    if (open == NULL) {
        if (memchr(rest, ']', size) != NULL || name[0] == '\0')
            return fail_list(e, "has an empty name or a bracket that was not opened");
        if (++e->count > TUTTI_MOST_RANKS)
            return fail_list(e, "names too many hosts");
        return e->add(e->context, name);
    }
    const char *close = memchr(open, ']', size - plain);
    if (close == NULL)
        return fail_list(e, "has a bracket that is not closed");
    size_t after = size - (size_t)(close + 1 - rest);
    for (const char *at = open + 1; at <= close;) {
        size_t part = strcspn(at, ",]");
        TUTTI_TRY(expand_range(e, name, at, part, close + 1, after));
        at += part + 1;
    }
    return TUTTI_OK;
}

tutti_status tutti__hostlist(const char *list, tutti_status (*add)(void *context, const char *host),
                             void *context)
{
    expansion e = {list, add, context, 0};
    const char *at = list;
    while (*at != '\0') {
        size_t size = 0;
        for (int depth = 0; at[size] != '\0' && (depth > 0 || at[size] != ','); size++)
            depth += (at[size] == '[') - (at[size] == ']');
        TUTTI_TRY(hostlist_expand(&e, "", at, size));
        at += size + (at[size] == ',');
    }
    return e.count > 0 ? TUTTI_OK : fail_list(&e, "is empty");
}
