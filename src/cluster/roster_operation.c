/* roster_operation.c: which operation ranks were stuck in when one failed, and who had arrived.
 *
 * A rank tells where it is in the operations of all ranks and in those of the groups that it used
 * last. Groups number their operations apart, so that each is judged by itself; the verdict names
 * the operation that is nearest to the culprit. */
#include <stdio.h>
#include <string.h>

#include "cluster/roster.h"

typedef struct operation {
    const tutti_where *where; /* of one who is inside; NULL: there is none */
    tutti_ranks members, arrived;
    int arrived_count;
    int absent;     /* members that had not arrived, without the culprit */
    bool concerned; /* the culprit is a member */
    bool awaited;   /* and had not arrived */
} operation;

/* Those of all ranks, and of groups that a program has not too many of. */
static bool has_known_members(const tutti_where *where)
{
    static const tutti_ranks none;
    return where->group == 0 || memcmp(&where->members, &none, sizeof none) != 0;
}

static bool may_belong(const tutti_where *where, bool known, int rank)
{
    return !known || where->group == 0 || tutti__ranks_have(&where->members, rank);
}

/* What a rank says of a group; NULL: nothing. */
static const tutti_where *report_of(const tutti_roster *roster, int rank, uint64_t group)
{
    const tutti_where *of = roster->members[rank].where.of;
    int i = group == 0 ? 0 : 1;
    while (group != 0 && i < TUTTI_WHERES && of[i].group != group)
        i++;
    return i < TUTTI_WHERES && of[i].operation[0] != '\0' ? &of[i] : NULL;
}

/* Of the group of `any`, the latest that anybody is inside. Of who died the last word may be old:
 * nobody is inside what another has finished. */
static const tutti_where *latest_inside(const tutti_roster *roster, const tutti_where *any)
{
    const tutti_where *latest = NULL;
    bool known = has_known_members(any);
    uint64_t finished = 0;
    for (int r = 0; r < roster->options.size; r++) {
        const tutti_where *where =
            may_belong(any, known, r) ? report_of(roster, r, any->group) : NULL;
        if (where == NULL)
            continue;
        if (where->inside == 1 && (latest == NULL || where->sequence > latest->sequence))
            latest = where;
        uint64_t left = where->inside == 1 ? where->sequence - 1 : where->sequence;
        finished = left > finished ? left : finished;
    }
    return latest != NULL && latest->sequence > finished ? latest : NULL;
}

/* Whoever is in it or beyond has arrived. */
static operation judge_group(const tutti_roster *roster, const tutti_where *any, int culprit)
{
    operation o = {.where = latest_inside(roster, any), .members = any->members};
    bool known = has_known_members(any);
    for (int r = 0; o.where != NULL && r < roster->options.size; r++) {
        if (!may_belong(any, known, r))
            continue;
        const tutti_where *where = report_of(roster, r, any->group);
        o.concerned = o.concerned || (r == culprit && (known || where != NULL));
        if (where != NULL && where->sequence >= o.where->sequence) {
            tutti__ranks_add(&o.arrived, r);
            o.arrived_count++;
        } else
            o.absent += r != culprit;
    }
    o.awaited = o.concerned && !tutti__ranks_have(&o.arrived, culprit);
    return o;
}

/* Whether a rank's word of what it is inside still holds: who died may have left it before. */
static bool is_present(const tutti_roster *roster, int rank)
{
    const tutti_roster_member *member = &roster->members[rank];
    return rank == roster->options.rank || member->accusation == 0 ||
           member->why == TUTTI_FAILURE_BROKEN || member->why == TUTTI_FAILURE_ABORTED;
}

/* A group is judged once: at the first of its ranks that is inside. */
static bool is_first_inside(const tutti_roster *roster, int rank, const tutti_where *where)
{
    bool known = has_known_members(where);
    for (int r = 0; r < rank; r++) {
        if (!may_belong(where, known, r) || !is_present(roster, r))
            continue;
        const tutti_where *other = report_of(roster, r, where->group);
        if (other != NULL && other->inside == 1)
            return false;
    }
    return true;
}

/* Where the culprit is a member, and as few as can be are missing beside it: they are held up
 * elsewhere. Of equals what it has not come to, then that of all ranks, which is judged first. */
static bool is_nearer(const operation *a, const operation *b)
{
    if (a->where == NULL || b->where == NULL)
        return a->where != NULL;
    if (a->concerned != b->concerned)
        return a->concerned;
    if (a->absent != b->absent)
        return a->absent < b->absent;
    return a->awaited && !b->awaited;
}

/* Ranks that the culprit is not among go on without it: who of them is late is no matter. */
static bool is_of_others(const operation *o, const tutti_verdict *verdict)
{
    return verdict->rank >= 0 && !o->concerned && has_known_members(o->where);
}

void tutti__roster_find_operation(const tutti_roster *roster, tutti_verdict *verdict)
{
    static const tutti_where of_all;
    operation best = judge_group(roster, &of_all, verdict->rank);
    for (int r = 0; r < roster->options.size; r++) {
        const tutti_where *of = roster->members[r].where.of;
        for (int i = 1; i < TUTTI_WHERES && is_present(roster, r); i++) {
            if (of[i].group == 0 || of[i].inside != 1 || !is_first_inside(roster, r, &of[i]))
                continue;
            operation each = judge_group(roster, &of[i], verdict->rank);
            if (is_nearer(&each, &best))
                best = each;
        }
    }
    if (best.where == NULL || is_of_others(&best, verdict))
        return;
    snprintf(verdict->operation, sizeof verdict->operation, "%s", best.where->operation);
    verdict->sequence = best.where->sequence;
    verdict->group = best.where->group;
    verdict->members = best.members;
    verdict->arrived = best.arrived;
    verdict->arrived_count = best.arrived_count;
}
