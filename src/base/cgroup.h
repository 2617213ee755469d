/* cgroup.h: limits of the control groups that this process is in (versions 1 and 2). */
#ifndef TUTTI_BASE_CGROUP_H
#define TUTTI_BASE_CGROUP_H

#include "base/status.h"

/* The limit that one group's folder states; INT64_MAX for none. */
typedef int64_t tutti_cgroup_reader(const char *folder);

/* The least limit from this process's group up to the root, by the reader of the version at hand;
 * INT64_MAX where there is none. `controller` is "cpu" or "memory". */
int64_t tutti__cgroup_least(const char *controller, tutti_cgroup_reader *version_1,
                            tutti_cgroup_reader *version_2);

/* The text of a file in a folder, or NULL; the caller frees it. */
char *tutti__cgroup_text(const char *folder, const char *file);

#endif
