#include "cluster/recorder.h"

#include <pthread.h>

#include "base/test.h"
#include "base/world.h"

static const tutti_rank_group all = {0};
static tutti_recorder recorder;

static void begin_empty(void)
{
    recorder = (tutti_recorder){0};
}

static void note(tutti_rank_group group, const char *operation, uint64_t sequence, bool arrived)
{
    tutti__recorder_note(&recorder, group, operation, sequence, arrived);
}

static tutti_rank_group group_of(uint64_t number, int first, int second)
{
    tutti_ranks members = {0};
    tutti__ranks_add(&members, first);
    tutti__ranks_add(&members, second);
    return (tutti_rank_group){number, tutti__recorder_keep(&recorder, &members),
                              tutti__recorder_take(&recorder)};
}

static void check_where(const tutti_where *where, const char *operation, uint64_t group,
                        uint32_t inside)
{
    CHECK_STR(where->operation, operation);
    CHECK_INT(where->group, group);
    CHECK_INT(where->inside, inside);
}

TUTTI_TEST(recorder_knows_the_operation_under_way)
{
    tutti_wheres where;
    begin_empty();
    tutti__recorder_where(&recorder, &where);
    CHECK_STR(where.of[0].operation, "");
    note(all, "broadcast", 1, true);
    note(all, "all_reduce", 2, true);
    note(all, "all_reduce", 2, false);
    tutti__recorder_where(&recorder, &where);
    CHECK_STR(where.of[0].operation, "broadcast");
    CHECK_INT(where.of[0].inside, 1);
    note(all, "broadcast", 1, false);
    tutti__recorder_where(&recorder, &where);
    CHECK_STR(where.of[0].operation, "broadcast");
    CHECK_INT(where.of[0].inside, 0);
    CHECK_STR(where.of[1].operation, "");
}

/* Numbers of operations begin at 1 in every group: those of one do not hide another's. */
TUTTI_TEST(recorder_keeps_groups_apart)
{
    tutti_wheres where;
    begin_empty();
    tutti_rank_group a = group_of(10, 0, 2), b = group_of(11, 2, 70);
    note(all, "all_gather", 1, true);
    note(all, "all_gather", 1, false);
    note(a, "all_reduce", 1, true);
    note(all, "barrier", 2, true);
    note(b, "broadcast", 1, true);
    note(b, "broadcast", 1, false);
    tutti__recorder_where(&recorder, &where);
    check_where(&where.of[0], "barrier", 0, 1);
    check_where(&where.of[1], "broadcast", 11, 0);
    CHECK(tutti__ranks_have(&where.of[1].members, 70));
    CHECK_INT(tutti__ranks_count(&where.of[1].members, TUTTI_MOST_RANKS), 2);
    check_where(&where.of[2], "all_reduce", 10, 1);
    CHECK(tutti__ranks_have(&where.of[2].members, 0));
    CHECK_STR(where.of[3].operation, "");
}

/* Of more groups than can be told of, those that wait; whatever others did since. */
TUTTI_TEST(recorder_tells_of_groups_that_wait_before_others)
{
    tutti_wheres where;
    begin_empty();
    tutti_rank_group groups[8];
    note(group_of(9, 0, 1), "scatter", 5, true);
    for (uint64_t i = 0; i < 8; i++)
        groups[i] = group_of(10 + i, 0, (int)i);
    for (uint64_t i = 0; i < 400; i++) {
        note(groups[i % 8], "all_reduce", 1 + i / 8, true);
        note(groups[i % 8], "all_reduce", 1 + i / 8, false);
    }
    tutti__recorder_where(&recorder, &where);
    for (int i = 1; i < TUTTI_WHERES - 1; i++) {
        CHECK_INT(where.of[i].group, 18 - i);
        CHECK_INT(where.of[i].sequence, 50);
        CHECK_INT(where.of[i].inside, 0);
    }
    CHECK_STR(where.of[TUTTI_WHERES - 1].operation, "scatter");
    CHECK_INT(where.of[TUTTI_WHERES - 1].inside, 1);
}

static void use(tutti_rank_group group, const char *operation, uint64_t times)
{
    for (uint64_t i = 1; i <= times; i++) {
        note(group, operation, i, true);
        note(group, operation, i, false);
    }
}

/* What is under way is known however much other groups do meanwhile. */
TUTTI_TEST(recorder_forgets_nothing_that_is_under_way)
{
    tutti_wheres where;
    begin_empty();
    tutti_rank_group busy = group_of(10, 0, 2), stuck = group_of(11, 0, 1);
    note(all, "gradients", 5, true);
    note(stuck, "scatter", 3, true);
    use(busy, "all_reduce", 5000);
    note(busy, "all_reduce", 5001, true);
    tutti__recorder_where(&recorder, &where);
    CHECK_STR(where.of[0].operation, "gradients");
    CHECK_INT(where.of[0].sequence, 5);
    CHECK_INT(where.of[0].inside, 1);
    CHECK_INT(where.of[1].sequence, 5001);
    CHECK_INT(where.of[2].group, 11);
    CHECK_INT(where.of[2].inside, 1);
    CHECK(tutti__ranks_have(&where.of[2].members, 1));
    note(all, "gradients", 5, false);
    note(stuck, "scatter", 3, false);
    tutti__recorder_where(&recorder, &where);
    CHECK_INT(where.of[0].inside, 0);
    CHECK_INT(where.of[1].group, 11);
    CHECK_INT(where.of[1].inside, 0);
    use(busy, "all_reduce", 5000);
    tutti__recorder_where(&recorder, &where);
    CHECK_STR(where.of[0].operation, "");
    CHECK_STR(where.of[2].operation, "");
}

/* Of more groups that wait than can be told of, those that wait the longest. */
TUTTI_TEST(recorder_tells_of_groups_that_wait_the_longest)
{
    tutti_wheres where;
    bool told[20] = {0};
    begin_empty();
    for (uint64_t g = 1; g <= 10; g++) {
        note(group_of(g, 0, (int)g), "all_reduce", 1, true);
        for (uint64_t now = tutti__ticks(); tutti__ticks() == now;)
            ;
    }
    tutti__recorder_where(&recorder, &where);
    for (int i = 1; i < TUTTI_WHERES; i++)
        told[where.of[i].group] = where.of[i].inside == 1;
    CHECK(told[1] && told[2] && told[3] && told[4]);
}

TUTTI_TEST(recorder_has_places_for_many_groups)
{
    tutti_wheres where;
    begin_empty();
    tutti_rank_group first = group_of(1, 0, 1);
    for (uint64_t i = 1; i < TUTTI_RECORDER_GROUPS; i++)
        CHECK(group_of(1 + i, 0, (int)i).now != NULL);
    CHECK(group_of(1000, 0, 1).now == NULL);
    note(first, "all_reduce", 1, true);
    tutti__recorder_give_back(&recorder, first.now);
    tutti__recorder_give_back(&recorder, NULL);
    CHECK(group_of(1001, 0, 1).now == first.now);
    use(all, "barrier", 2000);
    tutti__recorder_where(&recorder, &where);
    CHECK_STR(where.of[1].operation, "");
}

/* Also where a group has many under way. */
TUTTI_TEST(recorder_knows_the_latest_of_many_that_are_under_way)
{
    tutti_wheres where;
    begin_empty();
    for (uint64_t i = 1; i <= 300; i++)
        note(all, "all_reduce", i, true);
    tutti__recorder_where(&recorder, &where);
    CHECK_INT(where.of[0].sequence, 300);
    for (uint64_t i = 1; i <= 300; i++)
        note(all, "all_reduce", i, false);
    tutti__recorder_where(&recorder, &where);
    CHECK_INT(where.of[0].inside, 0);
    use(group_of(1, 0, 1), "all_reduce", 2000);
    tutti__recorder_where(&recorder, &where);
    CHECK_STR(where.of[0].operation, "");
}

static void *use_from_a_thread(void *context)
{
    const tutti_rank_group *own = context;
    use(*own, "all_reduce", 20000);
    return NULL;
}

TUTTI_TEST(recorder_is_written_by_many_threads)
{
    enum { THREADS = 4 };
    tutti_rank_group groups[THREADS];
    pthread_t threads[THREADS];
    tutti_wheres where;
    begin_empty();
    note(all, "barrier", 1, true);
    for (int i = 0; i < THREADS; i++)
        groups[i] = group_of(10 + (uint64_t)i, 0, i + 1);
    for (int i = 0; i < THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, use_from_a_thread, &groups[i]), 0);
    for (int i = 0; i < 200; i++) {
        tutti__recorder_where(&recorder, &where);
        CHECK_STR(where.of[0].operation, "barrier");
        for (int k = 1; k < TUTTI_WHERES; k++)
            CHECK(where.of[k].group < 14 && where.of[k].sequence <= 20000);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    /* A thread that was held up while the ring came round may have written over a leaving: once
     * more around without that. */
    for (int i = 0; i < THREADS; i++)
        use(groups[i], "all_reduce", TUTTI_RECORDER_ENTRIES);
    tutti__recorder_where(&recorder, &where);
    CHECK_INT(where.of[0].inside, 1);
    for (int k = 1; k < TUTTI_WHERES; k++)
        CHECK_INT(where.of[k].inside, 0);
}

TUTTI_TEST(recorder_keeps_equal_sets_once_and_not_too_many)
{
    begin_empty();
    const tutti_ranks *first = group_of(1, 5, 6).members;
    CHECK(first != NULL && group_of(2, 6, 5).members == first);
    for (int i = 1; i < TUTTI_RECORDER_SETS; i++)
        CHECK(group_of(3, i + 10, 0).members != NULL);
    CHECK(group_of(4, 1000, 0).members == NULL);
    CHECK(group_of(5, 5, 6).members == first);
}

TUTTI_TEST(recorder_reports_few_arrivals_that_others_report_too)
{
    tutti_arrival arrivals[TUTTI_BEAT_ARRIVALS];
    begin_empty();
    for (uint64_t i = 1; i <= 5000; i++) {
        note(all, "all_reduce", i, true);
        note(all, "all_reduce", i, false);
    }
    size_t count = tutti__recorder_arrivals(&recorder, 1000000000, arrivals, TUTTI_BEAT_ARRIVALS);
    CHECK(count > 16 && count <= 32); /* of the last 512 operations one of 16 */
    int odd = 0;                      /* two operations that take turns are both among them */
    for (size_t i = 0; i < count; i++)
        odd += arrivals[i].sequence % 2 == 1;
    CHECK(odd > 4 && odd < (int)count - 4);
    CHECK(arrivals[0].at_ns <= arrivals[count - 1].at_ns);
    CHECK(arrivals[count - 1].at_ns <= 1000000000);
    CHECK_INT(tutti__recorder_arrivals(&recorder, 0, arrivals, TUTTI_BEAT_ARRIVALS), 0);
}

/* A group's operations have numbers of their own, and some ranks come to them; where there are too
 * many groups nobody knows which. */
TUTTI_TEST(recorder_reports_arrivals_of_groups)
{
    tutti_arrival arrivals[TUTTI_BEAT_ARRIVALS];
    begin_empty();
    note(group_of(10, 0, 2), "all_reduce", 3, true);
    note(all, "all_reduce", 7, true);
    note((tutti_rank_group){.number = 11}, "all_reduce", 7, true);
    CHECK_INT(tutti__recorder_arrivals(&recorder, 0, arrivals, TUTTI_BEAT_ARRIVALS), 2);
    CHECK(arrivals[0].group == 10 && arrivals[0].sequence == 3 && arrivals[0].ranks == 2);
    CHECK(arrivals[1].group == 0 && arrivals[1].sequence == 7 && arrivals[1].ranks == 0);
}
