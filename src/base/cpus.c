/* cpus.c: how many CPUs the operating system grants: the least of the affinity mask and of every
 * CPU quota from this process's control group up to the root. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/world.h"

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

/* The file's text, or NULL; the caller frees it. */
static char *read_text(const char *folder, const char *file)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", folder, file);
    if (length < 0 || (size_t)length >= sizeof path)
        return NULL;
    const tutti_world *world = tutti__world();
    void *data;
    size_t size;
    if (world->read_file(world->self, path, 1 << 16, &data, &size) != TUTTI_OK)
        return NULL;
    return data;
}

/* Quotas are microseconds of CPU per period of microseconds; INT_MAX is none. */
static int quota_cpus(long long quota, long long period)
{
    if (quota <= 0 || period <= 0)
        return INT_MAX;
    long long cpus = quota / period + (quota % period != 0);
    return cpus < INT_MAX ? (int)cpus : INT_MAX;
}

/* "cpu.max" is "<quota> <period>" or "max <period>". */
static int quota_v2(const char *folder)
{
    long long quota = 0, period = 0;
    char *text = read_text(folder, "cpu.max");
    bool found = text != NULL && sscanf(text, "%lld %lld", &quota, &period) == 2;
    free(text);
    return found ? quota_cpus(quota, period) : INT_MAX;
}

/* No quota is -1. */
static int quota_v1(const char *folder)
{
    char *quota = read_text(folder, "cpu.cfs_quota_us");
    char *period = quota == NULL ? NULL : read_text(folder, "cpu.cfs_period_us");
    int cpus = period == NULL ? INT_MAX : quota_cpus(atoll(quota), atoll(period));
    free(quota);
    free(period);
    return cpus;
}

/* Least quota from mount + group up to the mount. A group that the mount does not show (a container
 * that sees the host's path) has no files and does not count. */
static int least_quota(const char *mount, const char *group, int (*quota)(const char *folder))
{
    char folder[PATH_MAX];
    int length = snprintf(folder, sizeof folder, "%s%s", mount, group);
    if (length < 0 || (size_t)length >= sizeof folder)
        return INT_MAX;
    int least = INT_MAX;
    for (;;) {
        int here = quota(folder);
        least = here < least ? here : least;
        char *slash = strrchr(folder, '/');
        if (slash == NULL || slash < folder + strlen(mount))
            return least;
        *slash = '\0';
    }
}

/* Whether "cpu" is one of the comma-separated names. */
static bool names_cpu(const char *controllers)
{
    for (const char *name = controllers; *name != '\0';) {
        size_t length = strcspn(name, ",");
        if (length == 3 && strncmp(name, "cpu", 3) == 0)
            return true;
        name += length + (name[length] == ',');
    }
    return false;
}

/* A line of /proc/self/cgroup is "id:controllers:/group"; version 2 has id 0 and no controllers. */
static int line_quota(char *line)
{
    char *controllers = strchr(line, ':');
    char *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (group == NULL)
        return INT_MAX;
    *controllers++ = '\0';
    *group++ = '\0';
    if (*controllers == '\0')
        return least_quota("/sys/fs/cgroup", group, quota_v2);
    return names_cpu(controllers) ? least_quota("/sys/fs/cgroup/cpu", group, quota_v1) : INT_MAX;
}

static int group_count(void)
{
    char *text = read_text("/proc/self", "cgroup"), *rest = NULL;
    int least = INT_MAX;
    if (text == NULL)
        return least;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        int quota = line_quota(line);
        least = quota < least ? quota : least;
    }
    free(text);
    return least;
}

/* A file that is not there is no error here, so the thread's last message is put back. */
int tutti__cpu_count(void)
{
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    int affinity = affinity_count(), groups = group_count();
    tutti__error_restore(&before);
    return affinity < groups ? affinity : groups;
}
