#include "cluster/forked.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"

/* 1: the other end is closed; 0: somebody has it. */
static int ended(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

TUTTI_TEST(forked_children_hold_no_socket_of_the_job)
{
    int named[2], other[2], ready[2];
    char byte;
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, named), 0);
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, other), 0);
    CHECK_INT(pipe(ready), 0);
    tutti__forked_without(named[0]);
    tutti__forked_without(other[0]);
    tutti__forked_with(other[0]); /* taken back */
    tutti__forked_without(-1);
    tutti__forked_without(1 << 30);
    pid_t child = fork();
    if (child == 0) {
        /* The number is not free for a file of the child's own. */
        bool held = fcntl(named[0], F_GETFD) >= 0 && write(named[0], "x", 1) == 1;
        (void)!write(ready[1], held ? "y" : "n", 1);
        for (;;)
            pause();
    }
    CHECK(child > 0);
    CHECK_INT(read(ready[0], &byte, 1), 1);
    CHECK_INT(byte, 'y');
    CHECK(!ended(named[1])); /* ours is open */
    tutti__forked_with(named[0]);
    close(named[0]);
    close(other[0]);
    CHECK(ended(named[1]));
    CHECK(!ended(other[1]));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    CHECK(ended(other[1]));
    for (int i = 0; i < 2; i++)
        close(ready[i]);
    close(named[1]);
    close(other[1]);
}
