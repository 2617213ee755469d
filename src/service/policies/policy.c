/* policy.c: consistency models by name, and the workers that one knows. */
#include "service/policies/policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tables/consistency.h"

static tutti_status policy_unknown(const char *text)
{
    tutti_text names = {0};
    for (const tutti_consistency *const *each = tutti__consistency_table; *each; each++) {
        const char *argument = (*each)->argument;
        tutti__text_add(&names, "%s%s", names.size ? ", " : "", (*each)->name);
        if (argument)
            tutti__text_add(&names, (*each)->optional ? "[:%s]" : ":%s", argument);
    }
    tutti_fail(TUTTI_INVALID, "there is no consistency '%s'; there are: %s", text,
               names.data ? names.data : "none");
    tutti__text_free(&names);
    return TUTTI_INVALID;
}

/* "3" for the argument "s", "backup=3" for "backup=b". */
static bool policy_argument(const tutti_consistency *by, const char *text, int64_t *ret)
{
    const char *equals = strchr(by->argument, '=');
    size_t prefix = equals ? (size_t)(equals + 1 - by->argument) : 0;
    char *end;
    if (strncmp(text, by->argument, prefix) != 0 || text[prefix] < '0' || text[prefix] > '9')
        return false;
    errno = 0;
    long long value = strtoll(text + prefix, &end, 10);
    if (errno != 0 || *end)
        return false;
    *ret = value;
    return true;
}

tutti_status tutti__policy_open(const char *text, tutti_policy *ret_policy)
{
    size_t length = strcspn(text, ":");
    const tutti_consistency *by = NULL;
    for (const tutti_consistency *const *each = tutti__consistency_table; *each; each++)
        if (strlen((*each)->name) == length && strncmp((*each)->name, text, length) == 0)
            by = *each;
    if (!by || (text[length] == ':' && !by->argument) ||
        (text[length] == '\0' && by->argument && !by->optional))
        return policy_unknown(text);
    int64_t argument = by->least;
    if (text[length] == ':' && !policy_argument(by, text + length + 1, &argument))
        return policy_unknown(text);
    if (argument < by->least || argument > by->most)
        return tutti_fail(TUTTI_INVALID, "consistency '%s': the number is from %lld to %lld; %s",
                          text, (long long)by->least, (long long)by->most, by->doc);
    *ret_policy = (tutti_policy){.by = by, .argument = argument};
    return TUTTI_OK;
}

void tutti__policy_close(tutti_policy *policy)
{
    TUTTI_VEC_FREE(&policy->workers);
}

const tutti_policy_worker *tutti__policy_find(const tutti_policy *policy, uint32_t number)
{
    for (size_t i = 0; i < policy->workers.count; i++)
        if (policy->workers.data[i].number == number)
            return &policy->workers.data[i];
    return NULL;
}

tutti_policy_worker *tutti__policy_worker(tutti_policy *policy, uint32_t number)
{
    size_t at = 0;
    while (at < policy->workers.count && policy->workers.data[at].number < number)
        at++;
    if (at < policy->workers.count && policy->workers.data[at].number == number)
        return &policy->workers.data[at];
    if (!TUTTI_VEC_RESERVE_ONE(&policy->workers))
        return NULL;
    tutti_policy_worker *entry = &policy->workers.data[at];
    memmove(entry + 1, entry, (policy->workers.count - at) * sizeof *entry);
    policy->workers.count++;
    *entry = (tutti_policy_worker){.number = number};
    return entry;
}

tutti_status tutti__policy_members(tutti_policy *policy, int64_t count, const uint32_t *numbers)
{
    for (int64_t i = 0; i < count; i++)
        if (!tutti__policy_worker(policy, numbers[i]))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a shard's %lld workers",
                              (long long)count);
    for (size_t w = 0; w < policy->workers.count; w++) {
        tutti_policy_worker *worker = &policy->workers.data[w];
        bool alive = false;
        for (int64_t i = 0; i < count; i++)
            alive = alive || numbers[i] == worker->number;
        worker->counts = alive && (worker->counts || !policy->begun);
        worker->alive = alive;
    }
    policy->begun = policy->begun || count > 0;
    return TUTTI_OK;
}

uint64_t tutti__policy_clock(const tutti_policy *policy, uint32_t number)
{
    const tutti_policy_worker *worker = tutti__policy_find(policy, number);
    uint64_t own = worker ? worker->clock : 0;
    return policy->by->clock ? policy->by->clock(policy, own) : own;
}

bool tutti__policy_may_read(const tutti_policy *policy, uint64_t clock)
{
    return !policy->by->may_read || policy->by->may_read(policy, clock);
}

int64_t tutti__policy_counting(const tutti_policy *policy)
{
    int64_t count = 0;
    for (size_t i = 0; i < policy->workers.count; i++)
        count += policy->workers.data[i].counts;
    return count;
}

int64_t tutti__policy_arrived(const tutti_policy *policy, uint64_t step)
{
    int64_t count = 0;
    for (size_t i = 0; i < policy->workers.count; i++)
        count += policy->workers.data[i].counts && policy->workers.data[i].clock > step;
    return count;
}

uint64_t tutti__policy_slowest(const tutti_policy *policy)
{
    uint64_t slowest = UINT64_MAX;
    for (size_t i = 0; i < policy->workers.count; i++)
        if (policy->workers.data[i].counts && policy->workers.data[i].clock < slowest)
            slowest = policy->workers.data[i].clock;
    return slowest == UINT64_MAX ? 0 : slowest;
}

tutti_policy_arrival tutti__policy_of_step(const tutti_policy *policy, uint64_t step)
{
    return step < policy->version   ? TUTTI_POLICY_LATE
           : step > policy->version ? TUTTI_POLICY_FUTURE
                                    : TUTTI_POLICY_HOLD;
}

bool tutti__policy_step_is_here(const tutti_policy *policy, uint64_t clock)
{
    return policy->version >= clock;
}

uint64_t tutti__policy_clock_of_step(const tutti_policy *policy, uint64_t own)
{
    return own > policy->version ? own : policy->version;
}
