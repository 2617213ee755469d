/* memory.c: memory that processes of one machine map: a file in /dev/shm, or one without a name.
 *
 * /dev/shm has a size (half of the machine's memory; 64 MB in many containers) and may be
 * read-only. A file without a name has no limit but the memory itself; the others reach it through
 * /proc, which needs processes that see each other. So ranks try, in this order: /dev/shm where it
 * holds all that they may ever use, a file without a name, /dev/shm with the room that there is. */
#define _GNU_SOURCE
#include "comm/shm/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "comm/fabric/segment.h"

typedef enum way { ROOMY, NAMELESS, TIGHT, WAYS } way;

tutti_status tutti__shm_map(int file, size_t bytes, void **ret_memory)
{
    struct stat now;
    if (fstat(file, &now) == 0 && (uint64_t)now.st_size < bytes)
        return tutti_fail(TUTTI_CORRUPT, "the shared memory has %lld bytes, not %zu",
                          (long long)now.st_size, bytes);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (memory == MAP_FAILED)
        return tutti_fail(TUTTI_NO_MEMORY,
                          "cannot map %zu bytes of shared memory: %s; " TUTTI_ADDRESS_HINT, bytes,
                          strerror(errno));
    /* Not into core files: gigabytes, which the others would wait for before they hear of it. */
    (void)madvise(memory, bytes, MADV_DONTDUMP);
    *ret_memory = memory;
    return TUTTI_OK;
}

/* Beyond its limit a process that makes a file larger is ended by SIGXFSZ, also in memory. */
static tutti_status check_limit(size_t bytes, int size)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur >= bytes)
        return TUTTI_OK;
    return tutti_fail(TUTTI_NO_MEMORY,
                      "shared memory for %d ranks is a file of %llu KiB (most of it never used), "
                      "and this process may make files of %llu KiB; 'ulimit -f unlimited' lifts "
                      "that",
                      size, (unsigned long long)bytes >> 10,
                      (unsigned long long)limit.rlim_cur >> 10);
}

/* A new file becomes a segment, of which the first `reserved` bytes are taken. */
static tutti_status memory_fill(int file, const char *where, size_t bytes, uint64_t reserved,
                                int size, void **ret_memory)
{
    TUTTI_TRY(check_limit(bytes, size));
    if (ftruncate(file, (off_t)bytes) != 0)
        return tutti_fail(TUTTI_NO_MEMORY,
                          "a file of %llu KiB (most of it never used) for %d ranks in %s: %s; give "
                          "a smaller .arena_bytes",
                          (unsigned long long)bytes >> 10, size, where, strerror(errno));
    if (!tutti__file_reserve(file, 0, reserved))
        return tutti_fail(TUTTI_NO_MEMORY, "%llu KiB for %d ranks in %s: %s",
                          (unsigned long long)reserved >> 10, size, where, strerror(errno));
    TUTTI_TRY(tutti__shm_map(file, bytes, ret_memory));
    tutti__segment_format(*ret_memory, bytes, size);
    return TUTTI_OK;
}

tutti_status tutti__shm_nameless(size_t bytes, int size, int *ret_file, void **ret_memory)
{
    int file = memfd_create("tutti", MFD_CLOEXEC);
    if (file < 0)
        return tutti_fail(TUTTI_NO_MEMORY, "cannot make shared memory (memfd_create): %s",
                          strerror(errno));
    tutti_status status =
        memory_fill(file, "shared memory", bytes, tutti__segment_least(size), size, ret_memory);
    if (status != TUTTI_OK)
        close(file);
    else
        *ret_file = file;
    return status;
}

/* What /dev/shm has left, and has in all; no limit: UINT64_MAX. */
static void room(uint64_t *ret_left, uint64_t *ret_all)
{
    struct statvfs shm;
    *ret_left = *ret_all = UINT64_MAX;
    if (statvfs("/dev/shm", &shm) != 0 || shm.f_blocks == 0)
        return;
    *ret_left = (uint64_t)shm.f_bavail * shm.f_frsize;
    *ret_all = (uint64_t)shm.f_blocks * shm.f_frsize;
}

static tutti_status make_named(const char *name, way by, size_t bytes, int size, int *ret_file,
                               void **ret_memory)
{
    uint64_t left, all;
    uint64_t reserved = by == TIGHT ? tutti__segment_control(size) : tutti__segment_least(size);
    room(&left, &all);
    if (left < (by == TIGHT ? reserved : bytes))
        return tutti_fail(TUTTI_NO_MEMORY,
                          "/dev/shm has %llu of %llu KiB left, and %d ranks need %llu KiB for "
                          "their streams",
                          (unsigned long long)left >> 10, (unsigned long long)all >> 10, size,
                          (unsigned long long)reserved >> 10);
    int file = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        return tutti_fail(TUTTI_NO_MEMORY, "cannot make a file in /dev/shm: %s", strerror(errno));
    tutti_status status = memory_fill(file, "/dev/shm", bytes, reserved, size, ret_memory);
    if (status != TUTTI_OK) {
        shm_unlink(name);
        close(file);
    } else {
        *ret_file = file;
    }
    return status;
}

/* What a rank tells the others: of its failure, or where to find what it has made. */
typedef struct offer {
    int32_t failed;
    int32_t process, file;
    uint64_t device, inode;
    char why[400];
} offer;

static tutti_status open_nameless(const offer *from, int *ret_file)
{
    char path[64];
    struct stat now;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", from->process, from->file);
    int file = open(path, O_RDWR | O_CLOEXEC);
    /* In another namespace the same numbers are something else. */
    bool same = file >= 0 && fstat(file, &now) == 0 && (uint64_t)now.st_dev == from->device &&
                (uint64_t)now.st_ino == from->inode;
    if (!same) {
        tutti_status status =
            tutti_fail(TUTTI_NO_MEMORY, "cannot open another rank's memory by %s: %s", path,
                       file < 0 ? strerror(errno) : "it is another file");
        if (file >= 0)
            close(file);
        return status;
    }
    *ret_file = file;
    return TUTTI_OK;
}

typedef struct meeting {
    tutti_fabric *fabric;
    char name[64];
    int first, count;
    size_t bytes;
    int64_t deadline_ns;
    offer *all; /* [size of the fabric] */
    int file;
    void *memory;
} meeting;

static tutti_status memory_make(meeting *m, way by)
{
    return by == NAMELESS ? tutti__shm_nameless(m->bytes, m->count, &m->file, &m->memory)
                          : make_named(m->name, by, m->bytes, m->count, &m->file, &m->memory);
}

static tutti_status memory_find(meeting *m, way by)
{
    if (by == NAMELESS)
        TUTTI_TRY(open_nameless(&m->all[m->first], &m->file));
    else if ((m->file = shm_open(m->name, O_RDWR | O_CLOEXEC, 0600)) < 0)
        return tutti_fail(TUTTI_NO_MEMORY, "cannot open another rank's file in /dev/shm: %s",
                          strerror(errno));
    return tutti__shm_map(m->file, m->bytes, &m->memory);
}

/* All hear how each one's step went. *ret_refused: it failed somewhere, with the first reason as
 * the message, and everybody knows. */
static tutti_status tell(meeting *m, tutti_status status, bool *ret_refused)
{
    const tutti_fabric *fabric = m->fabric;
    offer own = {.failed = status != TUTTI_OK, .process = (int32_t)getpid(), .file = m->file};
    struct stat now;
    if (own.failed)
        snprintf(own.why, sizeof own.why, "%s", tutti_error_message());
    else if (m->file >= 0 && fstat(m->file, &now) == 0)
        own.device = (uint64_t)now.st_dev, own.inode = (uint64_t)now.st_ino;
    TUTTI_TRY(
        tutti__membership_exchange(fabric->membership, &own, sizeof own, m->deadline_ns, m->all));
    for (int i = 0; i < fabric->size; i++)
        if (m->all[i].failed) {
            char who[320];
            *ret_refused = true;
            m->all[i].why[sizeof own.why - 1] = '\0';
            return tutti_fail(TUTTI_UNSUPPORTED, "%s: %s",
                              tutti__fabric_name(fabric, i, who, sizeof who), m->all[i].why);
        }
    return TUTTI_OK;
}

/* The lowest rank of a machine makes the memory, under a name that only this job can know or none;
 * when all have mapped it, the name goes. */
static tutti_status attempt(meeting *m, way by, bool *ret_refused)
{
    bool maker = m->fabric->rank == m->first && m->count > 1, others = m->count > 1 && !maker;
    tutti_status status = tell(m, maker ? memory_make(m, by) : TUTTI_OK, ret_refused);
    if (status == TUTTI_OK)
        status = tell(m, others ? memory_find(m, by) : TUTTI_OK, ret_refused);
    if (m->count > 1 && by != NAMELESS)
        shm_unlink(m->name); /* by all: its maker may have died */
    if (status == TUTTI_OK)
        return status;
    if (m->memory)
        munmap(m->memory, m->bytes);
    if (m->file >= 0)
        close(m->file);
    m->memory = NULL;
    m->file = -1;
    return status;
}

tutti_status tutti__shm_meet(tutti_fabric *fabric, int first, size_t bytes, int count,
                             int64_t deadline_ns, int *ret_file, void **ret_memory)
{
    const tutti_membership *members = fabric->membership;
    meeting m = {.fabric = fabric,
                 .first = first,
                 .count = count,
                 .bytes = bytes,
                 .deadline_ns = deadline_ns,
                 .all = calloc((size_t)fabric->size, sizeof *m.all),
                 .file = -1};
    if (!m.all)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %d ranks to meet", fabric->size);
    snprintf(m.name, sizeof m.name, "/tutti-%016llx-%u-%d", (unsigned long long)members->job,
             members->epoch, first);
    tutti_status status = TUTTI_OK;
    bool refused = true;
    for (way by = ROOMY; by < WAYS && refused; by++) {
        refused = false;
        status = attempt(&m, by, &refused);
    }
    free(m.all);
    *ret_file = m.file;
    *ret_memory = m.memory;
    if (!refused)
        return status;
    char why[800];
    snprintf(why, sizeof why, "%s", tutti_error_message());
    return tutti_fail(TUTTI_UNSUPPORTED,
                      "ranks of one machine cannot share memory: %s; give them a larger /dev/shm "
                      "(docker run --shm-size=1g), or let them use sockets (--engine tcp, "
                      "TUTTI_ENGINE=tcp)",
                      why);
}
