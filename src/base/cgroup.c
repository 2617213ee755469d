/* cgroup.c: finds the groups that /proc/self/cgroup names and asks each for its limit. */
#include "base/cgroup.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/world.h"

char *tutti__cgroup_text(const char *folder, const char *file)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", folder, file);
    if (length < 0 || (size_t)length >= sizeof path)
        return NULL;
    const tutti_world *world = tutti__world();
    tutti_error before; /* that a file is not there is no error */
    void *data;
    size_t size;
    tutti__error_capture(TUTTI_OK, &before);
    if (world->read_file(world->self, path, 1 << 16, &data, &size) == TUTTI_OK)
        return data;
    tutti__error_restore(&before);
    return NULL;
}

/* Least limit from mount + group up to the mount. A group that the mount does not show (a container
 * that sees the host's path) has no files and does not count. */
static int64_t least_above(const char *mount, const char *group, tutti_cgroup_reader *read)
{
    char folder[PATH_MAX];
    int length = snprintf(folder, sizeof folder, "%s%s", mount, group);
    if (length < 0 || (size_t)length >= sizeof folder)
        return INT64_MAX;
    int64_t least = INT64_MAX;
    for (;;) {
        int64_t here = read(folder);
        least = here < least ? here : least;
        char *slash = strrchr(folder, '/');
        if (slash == NULL || slash < folder + strlen(mount))
            return least;
        *slash = '\0';
    }
}

/* Whether `controller` is one of the comma-separated names. */
static bool names(const char *controllers, const char *controller)
{
    for (const char *name = controllers; *name != '\0';) {
        size_t length = strcspn(name, ",");
        if (length == strlen(controller) && strncmp(name, controller, length) == 0)
            return true;
        name += length + (name[length] == ',');
    }
    return false;
}

/* A line of /proc/self/cgroup is "id:controllers:/group"; version 2 has id 0 and no controllers. */
static int64_t line_limit(char *line, const char *controller, tutti_cgroup_reader *version_1,
                          tutti_cgroup_reader *version_2)
{
    char mount[64], *controllers = strchr(line, ':');
    char *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (group == NULL)
        return INT64_MAX;
    *controllers++ = '\0';
    *group++ = '\0';
    if (*controllers == '\0')
        return least_above("/sys/fs/cgroup", group, version_2);
    if (!names(controllers, controller))
        return INT64_MAX;
    snprintf(mount, sizeof mount, "/sys/fs/cgroup/%s", controller);
    return least_above(mount, group, version_1);
}

/* A file that is not there is no error here, so the thread's last message is put back. */
int64_t tutti__cgroup_least(const char *controller, tutti_cgroup_reader *version_1,
                            tutti_cgroup_reader *version_2)
{
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    char *text = tutti__cgroup_text("/proc/self", "cgroup"), *rest = NULL;
    int64_t least = INT64_MAX;
    for (char *line = text == NULL ? NULL : strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        int64_t here = line_limit(line, controller, version_1, version_2);
        least = here < least ? here : least;
    }
    free(text);
    tutti__error_restore(&before);
    return least;
}
