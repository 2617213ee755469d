#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/test.h"
#include "base/world.h"

/* A world that holds a few files: path, text, path, text, NULL. */
static tutti_status fake_read(void *self, const char *path, size_t limit, void **ret_data,
                              size_t *ret_size)
{
    for (const char *const *file = self; *file != NULL; file += 2)
        if (strcmp(path, file[0]) == 0 && strlen(file[1]) <= limit) {
            *ret_size = strlen(file[1]);
            *ret_data = calloc(1, *ret_size + 1);
            memcpy(*ret_data, file[1], *ret_size);
            return TUTTI_OK;
        }
    return tutti_fail(TUTTI_NOT_FOUND, "no '%s'", path);
}

static int count_with(const char **files)
{
    tutti_world fake = *tutti__world();
    fake.read_file = fake_read;
    fake.self = files;
    tutti__world_replace(&fake);
    int count = tutti__cpu_count();
    tutti__world_replace(NULL);
    return count;
}

/* What the affinity mask grants. */
static int without_groups(void)
{
    return count_with((const char *[]){NULL});
}

TUTTI_TEST(cpus_count_keeps_the_last_message)
{
    (void)tutti_fail(TUTTI_IO, "before");
    CHECK(tutti__cpu_count() >= 1);
    CHECK(without_groups() >= tutti__cpu_count());
    CHECK_STR(tutti_error_message(), "before");
}

TUTTI_TEST(cpus_quota_of_version_2)
{
    const char *limited[] = {"/proc/self/cgroup",
                             "0::/job/step\n",
                             "/sys/fs/cgroup/job/step/cpu.max",
                             "max 100000\n",
                             "/sys/fs/cgroup/job/cpu.max",
                             "50000 100000\n",
                             NULL};
    CHECK_INT(count_with(limited), 1);
    limited[5] = "99999900000 100000\n";
    CHECK_INT(count_with(limited), without_groups());
    const char *root[] = {"/proc/self/cgroup", "0::/\n", "/sys/fs/cgroup/cpu.max", "90000 100000\n",
                          NULL};
    CHECK_INT(count_with(root), 1);
    root[3] = "150000 100000\n";
    CHECK_INT(count_with(root), without_groups() < 2 ? 1 : 2);
}

TUTTI_TEST(cpus_quota_of_version_1)
{
    const char *files[] = {"/proc/self/cgroup",
                           "5:cpuset:/a\n4:cpuacct,cpu:/docker/0123\n0::/x\n",
                           "/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
                           "100000\n",
                           "/sys/fs/cgroup/cpu/cpu.cfs_period_us",
                           "100000\n",
                           NULL};
    CHECK_INT(count_with(files), 1);
    files[3] = "-1\n";
    CHECK_INT(count_with(files), without_groups());
}

TUTTI_TEST(cpus_malformed_groups_are_ignored)
{
    const char *files[] = {"/proc/self/cgroup",
                           "\n:\nx\n0::\n::\n1:cpu:/\n",
                           "/sys/fs/cgroup/cpu.max",
                           "garbage",
                           "/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
                           "",
                           NULL};
    CHECK_INT(count_with(files), without_groups());
}
