/* account_test.c: who waited for whom. */
#include "dist/account.h"

#include <stdlib.h>

#include "base/test.h"

/* Replica 1 comes 3 ms late to most meetings: the others are inside 4 ms, it is 1 ms. */
TUTTI_TEST(account_names_the_replica_that_was_waited_for)
{
    tutti_team team = {.size = 3, .local = 3};
    tutti_team_account a;
    tutti__team_account_add(&team, 0, 5); /* before the account begins */
    tutti__team_account_begin(&team);
    for (int i = 0; i < 5000; i++)
        for (int r = 0; r < 3; r++) {
            int late = i % 10 == 0 ? 0 : 1;
            tutti__team_account_add(&team, r, r == late ? 1000000 : 4000000);
        }
    CHECK_OK(tutti__team_account_end(&team, &a));
    CHECK_NEAR(a.inside, 5000 * 3e-3, 1e-9);
    CHECK_NEAR(a.waiting, 5000 * 2e-3, 1e-6);
    CHECK_INT(a.slowest, 1);
    CHECK_NEAR(a.for_it / a.waiting, 0.9, 0.01);
    CHECK_NEAR((double)a.came_last / (double)a.meetings, 0.9, 0.01);
    tutti__team_account_begin(&team);
    CHECK_OK(tutti__team_account_end(&team, &a)); /* nobody met */
    CHECK(a.slowest == -1 && a.inside == 0 && a.meetings == 0);
    free(team.diaries);
}
