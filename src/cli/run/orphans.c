/* orphans.c: processes that have left their rank's process group (setsid, daemons) and whose
 * parents have ended. They become children of the station, or of its warden where that was killed,
 * which ends them when its ranks have ended. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/world.h"
#include "cli/run/station.h"

enum { MILLISECOND = 1000000, LONGEST = 2000 };

void tutti__orphans_adopt(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* "77 (a name) S 42 …": 42, behind a name that may hold anything. */
static pid_t parent_of(const char *process)
{
    char path[300], text[512];
    snprintf(path, sizeof path, "/proc/%s/stat", process);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return -1;
    size_t got = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[got] = '\0';
    const char *name_end = strrchr(text, ')');
    int parent = -1;
    return name_end != NULL && sscanf(name_end + 1, " %*c %d", &parent) == 1 ? parent : -1;
}

/* A child's number is not given to another process before we have waited for it. */
static void kill_children(void)
{
    DIR *folder = opendir("/proc");
    const struct dirent *entry;
    pid_t own = getpid();
    while (folder != NULL && (entry = readdir(folder)) != NULL)
        if (strspn(entry->d_name, "0123456789") == strlen(entry->d_name) &&
            parent_of(entry->d_name) == own)
            kill((pid_t)atoi(entry->d_name), SIGKILL);
    if (folder != NULL)
        closedir(folder);
}

/* Again and again: the children of those that are killed come to us next. */
void tutti__orphans_end(void)
{
    int64_t until = tutti__now_ns() + LONGEST * (int64_t)MILLISECOND;
    for (;;) {
        pid_t ended;
        while ((ended = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        if (ended < 0 || tutti__now_ns() > until)
            return; /* there is none, or one that even the system cannot end now */
        kill_children();
        tutti__world()->sleep_ns(tutti__world()->self, 2 * MILLISECOND);
    }
}
