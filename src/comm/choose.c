/* choose.c: by which algorithm, and in how many parts, a call is run. */
#include <string.h>

#include "base/container.h"
#include "comm/comm.h"

/* Whether this call can be done by it, in this group. */
static bool suits(const tutti_collective *c, const tutti_coll *coll)
{
    return coll && coll->on[c->operation].run && tutti__coll_possible(coll, c->comm) &&
           (c->codec || c->compressor) == (strcmp(coll->name, "compressed") == 0) &&
           (!c->shards || strcmp(coll->name, "fixed") == 0);
}

static tutti_status unknown_algorithm(const tutti_collective *c, const char *name)
{
    tutti_text names = {0};
    const char *const *each = tutti_comm_algorithms(tutti__operation_names[c->operation]);
    for (; *each; each++)
        if (suits(c, tutti__coll_find(*each)))
            tutti__text_add(&names, "%s%s", names.size ? ", " : "", *each);
    tutti_status status =
        tutti_fail(TUTTI_INVALID,
                   "%s by '%s' is not possible in this group of %d ranks on %d machine%s; there "
                   "are: %s",
                   tutti__operation_names[c->operation], name, c->size, c->comm->hosts,
                   c->comm->hosts == 1 ? "" : "s", names.data ? names.data : "none");
    tutti__text_free(&names);
    return status;
}

static tutti_status by_name(const tutti_collective *c, const char *name, const tutti_coll **ret)
{
    const tutti_coll *coll = tutti__coll_find(name);
    if (!suits(c, coll))
        return unknown_algorithm(c, name);
    *ret = coll;
    return TUTTI_OK;
}

/* A large message in parts that go one after the other. */
static tutti_status run_parts(tutti_collective *c, const tutti_coll *by, int parts)
{
    for (int i = 0; i < parts; i++) {
        tutti_collective part = *c;
        if (parts == 1)
            return by->on[c->operation].run(c);
        int64_t low = tutti__coll_cut(c->count, parts, i);
        part.count = tutti__coll_cut(c->count, parts, i + 1) - low;
        part.in = (const char *)c->in + (size_t)low * c->element;
        part.out = (char *)c->out + (size_t)low * c->element;
        TUTTI_TRY(by->on[c->operation].run(&part));
    }
    return TUTTI_OK;
}

/* Within a machine bytes cost more than messages, and those in the caches the least. */
static int parts_for(const tutti_collective *c, const tutti_coll *by)
{
    if (!by->in_parts || c->operation != TUTTI_ALL_REDUCE || c->comm->hosts > 1)
        return 1;
    return tutti__coll_parts((double)c->count * (double)c->element, c->size);
}

static int range_of(const tutti_collective *c, const tutti_spec *spec)
{
    int i = 0;
    while (spec->range[i].limit < tutti__coll_bytes(c))
        i++;
    return i;
}

static bool has_levels(const tutti_collective *c, const tutti_spec *spec, int range)
{
    return spec->range[range].between[0] && c->comm->within;
}

/* A group made by splitting has its parent's list, as far as that is possible in it: the rest goes
 * by cost. */
static bool has_spec(const tutti_collective *c)
{
    const tutti_spec *spec = &c->comm->spec;
    if (c->operation != TUTTI_ALL_REDUCE || spec->count == 0)
        return false;
    int i = range_of(c, spec);
    return !c->comm->inherited ||
           suits(c,
                 tutti__coll_find(has_levels(c, spec, i) ? "hierarchical" : spec->range[i].within));
}

/* By a list of sizes. */
static tutti_status run_by_spec(tutti_collective *c, const tutti_spec *spec,
                                const tutti_coll **ret_by)
{
    int i = range_of(c, spec);
    const char *name = spec->range[i].within;
    if (has_levels(c, spec, i)) {
        c->inside = name;
        c->between = spec->range[i].between;
        name = "hierarchical";
    }
    TUTTI_TRY(by_name(c, name, ret_by));
    /* Shards do not lie side by side, and a compressor knows its tensor as a whole. */
    bool whole = c->shards || c->compressor;
    return run_parts(c, *ret_by, whole ? 1 : spec->range[i].parts);
}

tutti_status tutti__collective_choose(tutti_collective *c, const tutti_comm_call *call,
                                      const tutti_coll **ret_by)
{
    const char *asked = call ? call->algorithm : NULL;
    bool by_size = asked && strpbrk(asked, "/#:");
    if (by_size && c->operation == TUTTI_ALL_REDUCE) {
        tutti_spec spec;
        TUTTI_TRY(tutti__comm_spec_parse(asked, &spec));
        return run_by_spec(c, &spec, ret_by);
    }
    if (asked)
        TUTTI_TRY(by_name(c, asked, ret_by));
    else if (c->codec || c->compressor)
        *ret_by = tutti__coll_find("compressed");
    else if (c->shards)
        *ret_by = tutti__coll_find("fixed");
    else if (has_spec(c))
        return run_by_spec(c, &c->comm->spec, ret_by);
    else
        *ret_by = tutti__coll_choose(c);
    if (!*ret_by)
        return tutti_fail(TUTTI_INTERNAL, "there is no algorithm for %s",
                          tutti__operation_names[c->operation]);
    return run_parts(c, *ret_by, parts_for(c, *ret_by));
}
