/* choose.c: by which algorithm, and in how many parts, a call is run. */
#include <string.h>

#include "base/container.h"
#include "comm/coll/lane.h"
#include "comm/comm.h"

/* Why it does not go with the form that the call asks for; NULL: it does. */
static const char *misfits(const tutti_collective *c, const tutti_coll *coll)
{
    bool compressed = strcmp(coll->name, "compressed") == 0, travels = c->codec || c->compressor;
    if (compressed && !travels)
        return "it needs .wire, .codec or .compressor, which say what travels";
    if (travels && !compressed)
        return "with .wire, .codec or .compressor it goes by 'compressed' only";
    if (c->shards && strcmp(coll->name, "fixed") != 0)
        return "with .shards it goes by 'fixed' only";
    return NULL;
}

/* Whether the operation can be done by it in this group at all. */
static bool is_there(const tutti_collective *c, const tutti_coll *coll)
{
    return coll && coll->on[c->operation].run && tutti__coll_possible(coll, c->comm);
}

/* Whether calls like this one can be done by it in this group, whatever their type and size. */
static bool choose_fits(const tutti_collective *c, const tutti_coll *coll)
{
    return is_there(c, coll) && !misfits(c, coll);
}

/* Why this one cannot, cut into so many parts; NULL: it can. */
static const char *lacks(const tutti_collective *c, const tutti_coll *coll, int parts)
{
    tutti_collective largest = *c;
    largest.count = c->count / parts + (c->count % parts != 0);
    return tutti__coll_lacks(coll, &largest);
}

static tutti_status unknown_algorithm(const tutti_collective *c, const char *name, const char *why)
{
    tutti_text names = {0};
    const char *const *each = tutti_comm_algorithms(tutti__operation_names[c->operation]);
    for (; *each; each++) {
        const tutti_coll *coll = tutti__coll_find(*each);
        if (choose_fits(c, coll) && !lacks(c, coll, 1))
            tutti__text_add(&names, "%s%s", names.size ? ", " : "", *each);
    }
    const char *there_are = names.data ? names.data : "none";
    tutti_status status =
        why ? tutti_fail(TUTTI_INVALID,
                         "%s of %lld x %s by '%s' is not possible: %s; there are: %s",
                         tutti__operation_names[c->operation], (long long)c->count,
                         tutti_dtype_name(c->dtype), name, why, there_are)
            : tutti_fail(TUTTI_INVALID,
                         "%s by '%s' is not possible in this group of %d ranks on %d machine%s; "
                         "there are: %s",
                         tutti__operation_names[c->operation], name, c->size, c->comm->hosts,
                         c->comm->hosts == 1 ? "" : "s", there_are);
    tutti__text_free(&names);
    return status;
}

/* Refused before anybody has begun, on all ranks in the same way: it depends on the call and the
 * group. */
static tutti_status by_name(const tutti_collective *c, const char *name, int parts,
                            const tutti_coll **ret)
{
    const tutti_coll *coll = tutti__coll_find(name);
    if (!is_there(c, coll))
        return unknown_algorithm(c, name, NULL);
    const char *why = misfits(c, coll);
    if (!why)
        why = lacks(c, coll, parts);
    if (why)
        return unknown_algorithm(c, name, why);
    *ret = coll;
    return TUTTI_OK;
}

/* A large message in parts that go one after the other. */
static tutti_status run_parts(tutti_collective *c, const tutti_coll *by, int parts)
{
    for (int i = 0; i < parts; i++) {
        if (parts == 1)
            return by->on[c->operation].run(c);
        int64_t low = tutti__coll_cut(c->count, parts, i);
        tutti_collective part =
            tutti__coll_part(c, low, tutti__coll_cut(c->count, parts, i + 1) - low);
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

static tutti_status run_lane(tutti_collective *part, const void *by)
{
    return run_parts(part, by, parts_for(part, by));
}

tutti_status tutti__coll_run(tutti_collective *c, const tutti_coll *by)
{
    int lanes = c->codec || c->compressor || c->shards || c->comm->trace
                    ? 1
                    : tutti__lanes_for(&c->comm->cost, c->size, by, c->operation,
                                       (double)c->count * (double)c->element);
    return lanes > 1 ? tutti__lanes_run(c, lanes, run_lane, by) : run_lane(c, by);
}

static int range_of(const tutti_collective *c, const tutti_algorithm_spec *spec)
{
    int i = 0;
    while (spec->range[i].limit < tutti__coll_bytes(c))
        i++;
    return i;
}

static bool has_levels(const tutti_collective *c, const tutti_algorithm_spec *spec, int range)
{
    return spec->range[range].between[0] && c->comm->within;
}

/* A group made by splitting has its parent's list, as far as that is possible in it: the rest goes
 * by cost. So do, in every group, types and sizes that an engine's library does not have: a list is
 * for all calls, whatever they reduce. */
static bool has_spec(const tutti_collective *c)
{
    const tutti_algorithm_spec *spec = &c->comm->spec;
    if (c->operation != TUTTI_ALL_REDUCE || spec->count == 0)
        return false;
    int i = range_of(c, spec);
    const tutti_coll *coll =
        tutti__coll_find(has_levels(c, spec, i) ? "hierarchical" : spec->range[i].within);
    return choose_fits(c, coll) ? !lacks(c, coll, spec->range[i].parts) : !c->comm->inherited;
}

/* By a list of sizes. */
static tutti_status by_spec(tutti_collective *c, const tutti_algorithm_spec *spec,
                            const tutti_coll **ret_by, int *ret_parts)
{
    int i = range_of(c, spec);
    const char *name = spec->range[i].within;
    if (has_levels(c, spec, i)) {
        c->inside = name;
        c->between = spec->range[i].between;
        name = "hierarchical";
    }
    /* Shards do not lie side by side, and a compressor knows its tensor as a whole. */
    int parts = c->shards || c->compressor ? 1 : spec->range[i].parts;
    *ret_parts = parts;
    return by_name(c, name, parts, ret_by);
}

tutti_status tutti__collective_choose(tutti_collective *c, const tutti_comm_call *call,
                                      tutti_algorithm_spec *room, const tutti_coll **ret_by,
                                      int *ret_parts)
{
    *ret_parts = 1;
    const char *asked = call ? call->algorithm : NULL;
    bool by_size = asked && strpbrk(asked, "/#:");
    if (by_size) {
        TUTTI_TRY(tutti__comm_spec_parse(asked, c->operation, room));
        return by_spec(c, room, ret_by, ret_parts);
    }
    if (asked)
        TUTTI_TRY(by_name(c, asked, 1, ret_by));
    else if (c->codec || c->compressor)
        *ret_by = tutti__coll_find("compressed");
    else if (c->shards)
        *ret_by = tutti__coll_find("fixed");
    else if (has_spec(c))
        return by_spec(c, &c->comm->spec, ret_by, ret_parts);
    else
        *ret_by = tutti__coll_choose(c);
    if (!*ret_by)
        return tutti_fail(TUTTI_INTERNAL, "there is no algorithm for %s",
                          tutti__operation_names[c->operation]);
    return TUTTI_OK;
}

tutti_status tutti__collective_do(tutti_collective *c, const tutti_coll *by, int parts)
{
    return parts > 1 ? run_parts(c, by, parts) : tutti__coll_run(c, by);
}
