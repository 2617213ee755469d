/* reserve.c: pages of the file behind shared memory, taken before anybody touches them. The file
 * has holes, and a hole that is touched when its file system (/dev/shm, of which containers often
 * have 64 MB) or the system's memory is full ends the process by SIGBUS. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "comm/fabric/segment.h"

enum { PIECE = 16 << 20 }; /* a signal starts a piece anew */

bool tutti__file_reserve(int file, uint64_t offset, uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes;) {
        uint64_t size = bytes - done < PIECE ? bytes - done : PIECE;
        if (fallocate(file, 0, (off_t)(offset + done), (off_t)size) == 0) {
            done += size;
        } else if (errno == EOPNOTSUPP || errno == ENOSYS) {
            return true; /* as it was */
        } else if (errno != EINTR) {
            int why = errno;
            if (done > 0)
                (void)fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                                (off_t)done);
            errno = why;
            return false;
        }
    }
    return true;
}

/* The number may be another file's by now: a program may close all that it did not open. */
static bool still_there(const tutti_segment *segment)
{
    struct stat now;
    return segment->file >= 0 && fstat(segment->file, &now) == 0 &&
           (uint64_t)now.st_dev == segment->device && (uint64_t)now.st_ino == segment->inode;
}

bool tutti__segment_reserve(tutti_segment *segment, uint64_t offset, uint64_t bytes)
{
    return !still_there(segment) || tutti__file_reserve(segment->file, offset, bytes);
}

tutti_status tutti__segment_back(tutti_segment *segment, int file)
{
    struct stat now;
    bool *there = calloc(2 * (size_t)segment->size, sizeof *there);
    if (!there || fstat(file, &now) != 0) {
        free(there);
        close(file);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a view of shared memory");
    }
    segment->file = file;
    segment->device = (uint64_t)now.st_dev;
    segment->inode = (uint64_t)now.st_ino;
    segment->sending = there;
    segment->receiving = there + segment->size;
    return TUTTI_OK;
}

void tutti__segment_unback(tutti_segment *segment)
{
    if (still_there(segment))
        close(segment->file);
    free(segment->sending);
}
