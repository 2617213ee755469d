/* place_test.c: descriptors of this process. */
#include "cluster/place.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

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
