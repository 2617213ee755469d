#include "cluster/recorder.h"

#include "base/test.h"

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
    return (tutti_rank_group){number, tutti__recorder_keep(&recorder, &members)};
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
    CHECK_STR(where.of[0].operation, "barrier");
    CHECK_INT(where.of[0].group, 0);
    CHECK_INT(where.of[0].inside, 1);
    CHECK_STR(where.of[1].operation, "broadcast");
    CHECK_INT(where.of[1].group, 11);
    CHECK_INT(where.of[1].inside, 0);
    CHECK(tutti__ranks_have(&where.of[1].members, 70));
    CHECK_INT(tutti__ranks_count(&where.of[1].members, TUTTI_MOST_RANKS), 2);
    CHECK_STR(where.of[2].operation, "all_reduce");
    CHECK_INT(where.of[2].group, 10);
    CHECK_INT(where.of[2].inside, 1);
    CHECK(tutti__ranks_have(&where.of[2].members, 0));
    CHECK_STR(where.of[3].operation, "");
}

/* Of more groups than can be told of, those that wait; whatever others did since. */
TUTTI_TEST(recorder_tells_of_groups_that_wait_before_others)
{
    tutti_wheres where;
    begin_empty();
    note(group_of(9, 0, 1), "scatter", 5, true);
    for (uint64_t i = 0; i < 400; i++) {
        note(group_of(10 + i % 8, 0, (int)(i % 8)), "all_reduce", 1 + i / 8, true);
        note(group_of(10 + i % 8, 0, (int)(i % 8)), "all_reduce", 1 + i / 8, false);
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

/* A group's operations have numbers of their own, and not everybody comes to them. */
TUTTI_TEST(recorder_reports_arrivals_of_all_ranks_only)
{
    tutti_arrival arrivals[TUTTI_BEAT_ARRIVALS];
    begin_empty();
    note(group_of(10, 0, 2), "all_reduce", 3, true);
    note(all, "all_reduce", 7, true);
    note(group_of(11, 0, 1), "all_reduce", 7, true);
    CHECK_INT(tutti__recorder_arrivals(&recorder, 0, arrivals, TUTTI_BEAT_ARRIVALS), 1);
    CHECK_INT(arrivals[0].sequence, 7);
}
