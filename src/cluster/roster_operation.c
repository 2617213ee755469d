/* roster_operation.c: which operation ranks were stuck in when one failed, and who had arrived.
 *
 * A rank tells where it is in the operations of all ranks and in those of the groups that it used
 * last. Groups number their operations apart, so that each is judged by itself; the verdict names
 * the operation that is nearest to the culprit, or the one whose failure a rank has told of. */
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

/* Whether a rank's word of where it is still holds. That of one who died, or does not answer, is as
 * old as its last beat: it may have gone on since. */
static bool is_present(const tutti_roster *roster, int rank)
{
    return rank == roster->options.rank || roster->members[rank].reported;
}

/* Of the group of `any`, the earliest that a rank is inside of: who is further on will wait for it.
 */
static const tutti_where *earliest_inside(const tutti_roster *roster, const tutti_where *any)
{
    const tutti_where *earliest = NULL;
    bool known = has_known_members(any);
    for (int r = 0; r < roster->options.size; r++) {
        const tutti_where *where = may_belong(any, known, r) && is_present(roster, r)
                                       ? report_of(roster, r, any->group)
                                       : NULL;
        if (where != NULL && where->inside == 1 &&
            (earliest == NULL || where->sequence < earliest->sequence))
            earliest = where;
    }
    return earliest;
}

/* Whether nobody leaves such an operation before all have come; its label may follow its name. */
static bool is_meeting(const char *name)
{
    static const char *const names[] = {"all_reduce", "all_gather", "all_to_all", "barrier",
                                        "reduce_scatter"};
    size_t length = strcspn(name, " ");
    for (size_t i = 0; i < TUTTI_COUNT(names); i++)
        if (strlen(names[i]) == length && strncmp(name, names[i], length) == 0)
            return true;
    return false;
}

static bool has_left(const tutti_where *where, uint64_t sequence)
{
    return where != NULL &&
           (where->sequence > sequence || (where->sequence == sequence && where->inside != 1));
}

/* Whether a rank's having left it says that all have come, also those whose word is old. */
static bool all_have_come(const tutti_roster *roster, const tutti_where *to)
{
    bool known = has_known_members(to), left = false;
    for (int r = 0; r < roster->options.size && !left; r++)
        left = may_belong(to, known, r) && has_left(report_of(roster, r, to->group), to->sequence);
    return left && is_meeting(to->operation);
}

/* Whoever is in `at`, an operation of its group, or beyond has arrived. */
static operation roster_operation_judge(const tutti_roster *roster, const tutti_where *at,
                                        int culprit)
{
    operation o = {.where = at};
    if (at == NULL)
        return o;
    bool known = has_known_members(at), met = all_have_come(roster, at);
    o.members = at->members;
    for (int r = 0; r < roster->options.size; r++) {
        if (!may_belong(at, known, r))
            continue;
        const tutti_where *where = report_of(roster, r, at->group);
        o.concerned = o.concerned || (r == culprit && (known || where != NULL));
        if ((known && met) || (where != NULL && where->sequence >= at->sequence)) {
            tutti__ranks_add(&o.arrived, r);
            o.arrived_count++;
        } else
            o.absent += r != culprit;
    }
    o.awaited = o.concerned && !tutti__ranks_have(&o.arrived, culprit);
    return o;
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

/* The operation that is nearest to the culprit, of all groups. */
static operation find_nearest(const tutti_roster *roster, int culprit)
{
    static const tutti_where of_all;
    operation best = roster_operation_judge(roster, earliest_inside(roster, &of_all), culprit);
    for (int r = 0; r < roster->options.size; r++) {
        const tutti_where *of = roster->members[r].where.of;
        for (int i = 1; i < TUTTI_WHERES && is_present(roster, r); i++) {
            if (of[i].group == 0 || of[i].inside != 1 || !is_first_inside(roster, r, &of[i]))
                continue;
            operation each =
                roster_operation_judge(roster, earliest_inside(roster, &of[i]), culprit);
            if (is_nearer(&each, &best))
                best = each;
        }
    }
    return best;
}

/* What a rank says of an operation that failed there begins with its name and number. NULL: with
 * none that it is in. */
static const tutti_where *find_told(const tutti_roster *roster, const tutti_verdict *verdict)
{
    for (int i = 0; verdict->why == TUTTI_FAILURE_BROKEN && i < TUTTI_WHERES; i++) {
        const tutti_where *where = &roster->members[verdict->rank].where.of[i];
        char begin[sizeof where->operation + 32];
        int length = snprintf(begin, sizeof begin, "%s number %llu ", where->operation,
                              (unsigned long long)where->sequence);
        if (where->inside == 1 && strncmp(verdict->reason, begin, (size_t)length) == 0)
            return where;
    }
    return NULL;
}

void tutti__roster_find_operation(const tutti_roster *roster, tutti_verdict *verdict)
{
    const tutti_where *told = find_told(roster, verdict);
    operation best = told != NULL ? roster_operation_judge(roster, told, verdict->rank)
                                  : find_nearest(roster, verdict->rank);
    if (best.where == NULL || is_of_others(&best, verdict))
        return;
    snprintf(verdict->operation, sizeof verdict->operation, "%s", best.where->operation);
    verdict->sequence = best.where->sequence;
    verdict->group = best.where->group;
    verdict->members = best.members;
    verdict->arrived = best.arrived;
    verdict->arrived_count = best.arrived_count;
}

static bool is_in_none(const tutti_roster *roster, int rank)
{
    for (int i = 0; i < TUTTI_WHERES; i++)
        if (roster->members[rank].where.of[i].inside == 1)
            return false;
    return true;
}

int tutti__roster_find_idle(const tutti_roster *roster, const tutti_verdict *verdict)
{
    for (int r = 0; verdict->operation[0] != '\0' && r < roster->options.size; r++) {
        bool member = verdict->group == 0 || tutti__ranks_have(&verdict->members, r);
        if (member && !tutti__ranks_have(&verdict->arrived, r) && is_present(roster, r) &&
            is_in_none(roster, r))
            return r;
    }
    return -1;
}
