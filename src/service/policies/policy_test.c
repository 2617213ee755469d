/* policy_test.c: what each consistency model does with gradients and readers. */
#include "service/policies/policy.h"

#include "base/test.h"

static tutti_policy policy_of(const char *text, int workers)
{
    tutti_policy policy;
    uint32_t numbers[8];
    CHECK_OK(tutti__policy_open(text, &policy));
    for (int i = 0; i < workers; i++)
        numbers[i] = (uint32_t)i;
    CHECK_OK(tutti__policy_members(&policy, workers, numbers));
    return policy;
}

static void pushed(tutti_policy *policy, uint32_t worker, uint64_t step)
{
    tutti_policy_worker *entry = tutti__policy_worker(policy, worker);
    entry->counts = entry->alive;
    entry->clock = step + 1;
}

TUTTI_TEST(consistency_is_found_by_name)
{
    tutti_policy policy;
    CHECK_OK(tutti__policy_open("ssp:3", &policy));
    CHECK_INT(policy.argument, 3);
    CHECK_OK(tutti__policy_open("sync", &policy));
    CHECK_INT(policy.argument, 0);
    CHECK_OK(tutti__policy_open("sync:backup=2", &policy));
    CHECK_INT(policy.argument, 2);
    const char *const wrong[] = {"",      "synch",   "ssp",    "ssp:",         "ssp:-1",
                                 "ssp:x", "async:1", "sync:2", "sync:backup=", "softsync:0",
                                 "ssp:3x"};
    for (size_t i = 0; i < TUTTI_COUNT(wrong); i++)
        CHECK_STATUS(tutti__policy_open(wrong[i], &policy), TUTTI_INVALID);
    CHECK_STATUS(tutti__policy_open("bsp", &policy), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "there is no consistency 'bsp'; there are: async, "
                                          "softsync:n, ssp:s, sync[:backup=b]");
}

TUTTI_TEST(consistency_sync_waits_for_all_and_backup_for_fewer)
{
    tutti_policy all = policy_of("sync", 3), fewer = policy_of("sync:backup=1", 3);
    for (uint32_t w = 0; w < 3; w++) {
        CHECK(!all.by->ready(&all, w));
        CHECK_INT(fewer.by->ready(&fewer, w), w == 2);
        CHECK_INT(all.by->arrive(&all, 0), TUTTI_POLICY_HOLD);
        pushed(&all, w, 0);
        pushed(&fewer, w, 0);
    }
    CHECK(all.by->ready(&all, 3));
    CHECK(!tutti__policy_may_read(&all, 1));
    all.version = 1;
    CHECK(tutti__policy_may_read(&all, 1));
    CHECK_INT(all.by->arrive(&all, 0), TUTTI_POLICY_LATE);
    CHECK_INT(all.by->arrive(&all, 2), TUTTI_POLICY_FUTURE);
    tutti__policy_close(&all);
    tutti__policy_close(&fewer);
}

TUTTI_TEST(consistency_forgets_who_died_and_waits_for_no_newcomer)
{
    tutti_policy p = policy_of("sync", 3);
    pushed(&p, 0, 0);
    pushed(&p, 2, 0);
    CHECK(!p.by->ready(&p, 2));
    CHECK_OK(tutti__policy_members(&p, 2, (uint32_t[]){0, 2}));
    CHECK(p.by->ready(&p, 2));
    CHECK_OK(tutti__policy_members(&p, 3, (uint32_t[]){0, 2, 3}));
    CHECK(p.by->ready(&p, 2));
    pushed(&p, 3, 0);
    CHECK_INT(tutti__policy_counting(&p), 3);
    tutti__policy_close(&p);
}

TUTTI_TEST(consistency_ssp_bounds_how_far_one_is_ahead)
{
    tutti_policy p = policy_of("ssp:2", 2);
    CHECK(tutti__policy_may_read(&p, 2));
    CHECK(!tutti__policy_may_read(&p, 3));
    pushed(&p, 0, 0);
    CHECK(!tutti__policy_may_read(&p, 3));
    pushed(&p, 1, 0);
    CHECK(tutti__policy_may_read(&p, 3));
    CHECK(p.by->share(&p) == 0.5);
    CHECK_INT(tutti__policy_clock(&p, 7), 1); /* one that joins begins with the slowest */
    tutti__policy_close(&p);
}

TUTTI_TEST(consistency_softsync_takes_a_share_of_the_workers)
{
    tutti_policy p = policy_of("softsync:2", 5);
    CHECK(!p.by->ready(&p, 1));
    CHECK(p.by->ready(&p, 2));
    tutti__policy_close(&p);
    p = policy_of("softsync:8", 5);
    CHECK(p.by->ready(&p, 1));
    tutti__policy_close(&p);
}
