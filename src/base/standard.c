/* standard.c: descriptors 0 to 2 are not left to whatever is opened next. */
#include "base/standard.h"

#include <fcntl.h>
#include <unistd.h>

void tutti__standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            return; /* none is to be had */
}
