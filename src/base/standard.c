/* standard.c: descriptors 0 to 2 are not left to whatever is opened next; SIGXFSZ kills nobody. */
#include "base/standard.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void tutti__standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR) != fd)
            return; /* none is to be had */
}

bool tutti__standard_output_lost(void)
{
    static atomic_bool said;
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return false;
    if (!atomic_exchange(&said, true))
        fprintf(stderr, "tutti: cannot write to standard output%s%s\n", errno ? ": " : "",
                errno ? strerror(errno) : "");
    return true;
}

static void ignore_file_limit(void)
{
    struct sigaction now, ignored;
    memset(&ignored, 0, sizeof ignored);
    ignored.sa_handler = SIG_IGN;
    if (sigaction(SIGXFSZ, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
        sigaction(SIGXFSZ, &ignored, NULL);
}

void tutti__standard_file_limit(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, ignore_file_limit);
}
