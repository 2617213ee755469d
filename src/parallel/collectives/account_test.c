/* account_test.c: who waited for whom. */
#include "parallel/collectives/account.h"

#include <stdlib.h>

#include "base/test.h"

/* Replica 1 comes 3 ms late to most meetings: the others are inside 4 ms, it is 1 ms. */
TUTTI_TEST(account_names_the_replica_that_was_waited_for)
{
    tutti_axis_group axis_group = {.size = 3, .local = 3};
    tutti_axis_group_account a;
    tutti__axis_group_account_add(&axis_group, 0, 5); /* before the account begins */
    tutti__axis_group_account_begin(&axis_group);
    for (int i = 0; i < 5000; i++)
        for (int r = 0; r < 3; r++) {
            int late = i % 10 == 0 ? 0 : 1;
            tutti__axis_group_account_add(&axis_group, r, r == late ? 1000000 : 4000000);
        }
    CHECK_OK(tutti__axis_group_account_end(&axis_group, &a));
    CHECK_NEAR(a.inside, 5000 * 3e-3, 1e-9);
    CHECK_NEAR(a.waiting, 5000 * 2e-3, 1e-6);
    CHECK_INT(a.slowest, 1);
    CHECK_NEAR(a.for_it / a.waiting, 0.9, 0.01);
    CHECK_NEAR((double)a.came_last / (double)a.meetings, 0.9, 0.01);
    tutti__axis_group_account_begin(&axis_group);
    CHECK_OK(tutti__axis_group_account_end(&axis_group, &a)); /* nobody met */
    CHECK(a.slowest == -1 && a.inside == 0 && a.meetings == 0);
    free(axis_group.diaries);
}
