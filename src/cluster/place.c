/* place.c: machine, host and descriptors. */
#include "cluster/place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/container.h"
#include "base/params.h"

static tutti_param machine_param =
    TUTTI_PARAM("MACHINE", "", "counts this process to another machine, for trials");

uint64_t tutti__machine(void)
{
    const tutti_world *world = tutti__world();
    uint64_t hash = tutti__hash_string(1, tutti__param_text(&machine_param));
    void *boot = NULL;
    size_t size;
    if (world->read_file(world->self, "/proc/sys/kernel/random/boot_id", 100, &boot, &size) ==
        TUTTI_OK)
        hash = tutti__hash_bytes(hash, boot, size);
    free(boot);
    struct stat shm;
    if (stat("/dev/shm", &shm) == 0)
        hash = tutti__hash_mix(hash, (uint64_t)shm.st_dev);
    return hash;
}

void tutti__host_name(char *ret_name, size_t size)
{
    if (gethostname(ret_name, size) != 0)
        snprintf(ret_name, size, "unknown");
    ret_name[size - 1] = '\0';
}

/* Descriptors besides those that are counted: files of the program, and strangers; and those that a
 * process cannot do without. */
enum { OTHERS = 512, LEAST = 32 };

tutti_status tutti__allow_descriptors(int count)
{
    struct rlimit limit;
    rlim_t needed = (rlim_t)count + LEAST;
    tutti__wish_descriptors(count);
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed)
        return TUTTI_OK;
    return tutti_fail(TUTTI_TOO_LARGE,
                      "%d connections need %llu descriptors, but this process may open only %llu; "
                      "raise the limit: 'ulimit -n %llu', or nofile in /etc/security/limits.conf",
                      count, (unsigned long long)needed, (unsigned long long)limit.rlim_max,
                      (unsigned long long)count + OTHERS);
}

void tutti__wish_descriptors(int count)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)count + OTHERS;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    wanted = wanted < limit.rlim_max ? wanted : limit.rlim_max;
    if (limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = wanted;
    setrlimit(RLIMIT_NOFILE, &limit);
}

void tutti__descriptors_text(int error, char *ret_text, size_t size)
{
    struct rlimit limit = {0};
    if (error != EMFILE || getrlimit(RLIMIT_NOFILE, &limit) != 0)
        snprintf(ret_text, size, "%s", strerror(error));
    else
        snprintf(ret_text, size,
                 "%s: this process may have %llu; raise the limit ('ulimit -n', or nofile in "
                 "/etc/security/limits.conf), or use fewer streams",
                 strerror(error), (unsigned long long)limit.rlim_cur);
}
