/* place_test.c: descriptors of this process. */
#include "cluster/place.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"

TUTTI_TEST(place_raises_the_soft_limit_of_descriptors)
{
    struct rlimit before, limit;
    char text[300];
    CHECK_INT(getrlimit(RLIMIT_NOFILE, &before), 0);
    if (before.rlim_max < 700)
        return;
    limit = (struct rlimit){.rlim_cur = 300, .rlim_max = before.rlim_max};
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
    tutti__descriptors_text(EMFILE, text, sizeof text);
    CHECK_CONTAINS(text, "may have 300; raise the limit ('ulimit -n'");
    tutti__wish_descriptors(100);
    CHECK_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK_INT((long long)limit.rlim_cur, 612);
    tutti__wish_descriptors(1); /* nothing is taken back */
    CHECK_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK_INT((long long)limit.rlim_cur, 612);
    setrlimit(RLIMIT_NOFILE, &before);
    tutti__descriptors_text(ECONNREFUSED, text, sizeof text);
    CHECK_STR(text, "Connection refused");
}

/* In a process of its own: a limit that is lowered stays. */
static int in_small_process(int count)
{
    int ending = -1;
    pid_t child = fork();
    if (child == 0) {
        struct rlimit small = {.rlim_cur = 100, .rlim_max = 256};
        _exit(setrlimit(RLIMIT_NOFILE, &small) != 0 ? 99 : -tutti__allow_descriptors(count));
    }
    CHECK(child > 0 && waitpid(child, &ending, 0) == child && WIFEXITED(ending));
    return WEXITSTATUS(ending);
}

TUTTI_TEST(place_few_descriptors_are_enough_for_few_connections)
{
    CHECK_INT(in_small_process(6), TUTTI_OK);
    CHECK_INT(in_small_process(200), TUTTI_OK);
    CHECK_INT(in_small_process(240), -TUTTI_TOO_LARGE);
}
