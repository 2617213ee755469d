/* forked.c: see forked.h. */
#define _GNU_SOURCE
#include "cluster/forked.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 1 << 16 }; /* descriptors; of higher ones children keep theirs */

/* One bit each. Read in a child of a process of many threads, where no lock can be taken. */
static _Atomic uint64_t sockets[MOST / 64];

/* In the child; calls only what a signal handler may. The number stays taken: whatever the child
 * still does to it, it does to no file of its own. */
static void leave_sockets(void)
{
    int before = errno, nothing = -1;
    for (int word = 0; word < MOST / 64; word++) {
        uint64_t left = atomic_exchange(&sockets[word], 0);
        for (; left != 0; left &= left - 1) {
            int fd = word * 64 + __builtin_ctzll(left);
            struct stat about;
            if (fstat(fd, &about) != 0 || !S_ISSOCK(about.st_mode))
                continue;
            if (nothing < 0)
                nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
            if (nothing < 0 || dup3(nothing, fd, O_CLOEXEC) < 0)
                close(fd);
        }
    }
    if (nothing >= 0)
        close(nothing);
    errno = before;
}

static void forked_prepare(void)
{
    (void)pthread_atfork(NULL, NULL, leave_sockets);
}

void tutti__forked_without(int socket)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, forked_prepare);
    if (socket >= 0 && socket < MOST)
        atomic_fetch_or(&sockets[socket / 64], UINT64_C(1) << (socket % 64));
}

void tutti__forked_with(int socket)
{
    if (socket >= 0 && socket < MOST)
        atomic_fetch_and(&sockets[socket / 64], ~(UINT64_C(1) << (socket % 64)));
}
