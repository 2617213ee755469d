/* cpus.c: how many CPUs the operating system grants: the least of the affinity mask and of every
 * CPU quota from this process's control group up to the root. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cgroup.h"
#include "base/pool.h"

static int affinity_count(void)
{
    for (int most = 1024; most <= 1 << 18; most *= 2) {
        cpu_set_t *set = CPU_ALLOC(most);
        if (set == NULL)
            break;
        size_t size = CPU_ALLOC_SIZE(most);
        int count = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (count > 0)
            return count;
    }
    return 1;
}

/* Quotas are microseconds of CPU per period of microseconds. */
static int64_t quota_cpus(long long quota, long long period)
{
    return quota <= 0 || period <= 0 ? INT64_MAX : quota / period + (quota % period != 0);
}

/* "cpu.max" is "<quota> <period>" or "max <period>". */
static int64_t quota_v2(const char *folder)
{
    long long quota = 0, period = 0;
    char *text = tutti__cgroup_text(folder, "cpu.max");
    bool found = text != NULL && sscanf(text, "%lld %lld", &quota, &period) == 2;
    free(text);
    return found ? quota_cpus(quota, period) : INT64_MAX;
}

/* No quota is -1. */
static int64_t quota_v1(const char *folder)
{
    char *quota = tutti__cgroup_text(folder, "cpu.cfs_quota_us");
    char *period = quota == NULL ? NULL : tutti__cgroup_text(folder, "cpu.cfs_period_us");
    int64_t cpus = period == NULL ? INT64_MAX : quota_cpus(atoll(quota), atoll(period));
    free(quota);
    free(period);
    return cpus;
}

int tutti__cpu_quota(void)
{
    int64_t groups = tutti__cgroup_least("cpu", quota_v1, quota_v2);
    return groups < INT_MAX ? (int)groups : INT_MAX;
}

int tutti__cpu_count(void)
{
    int affinity = affinity_count(), quota = tutti__cpu_quota();
    return affinity < quota ? affinity : quota;
}

void tutti__cpu_mask(uint64_t ret_mask[TUTTI_CPU_WORDS])
{
    cpu_set_t set;
    for (int word = 0; word < TUTTI_CPU_WORDS; word++)
        ret_mask[word] = 0;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE && cpu < TUTTI_CPU_WORDS * 64; cpu++)
        if (CPU_ISSET(cpu, &set))
            ret_mask[cpu / 64] |= UINT64_C(1) << cpu % 64;
}
