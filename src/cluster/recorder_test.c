#include "cluster/recorder.h"

#include "base/test.h"

static tutti_recorder recorder;

static void begin_empty(void)
{
    recorder = (tutti_recorder){0};
}

TUTTI_TEST(recorder_knows_the_operation_under_way)
{
    tutti_where where;
    begin_empty();
    tutti__recorder_where(&recorder, &where);
    CHECK_STR(where.operation, "");
    tutti__recorder_note(&recorder, "broadcast", 1, true);
    tutti__recorder_note(&recorder, "all_reduce", 2, true);
    tutti__recorder_note(&recorder, "all_reduce", 2, false);
    tutti__recorder_where(&recorder, &where);
    CHECK_STR(where.operation, "broadcast");
    CHECK_INT(where.inside, 1);
    tutti__recorder_note(&recorder, "broadcast", 1, false);
    tutti__recorder_where(&recorder, &where);
    CHECK_STR(where.operation, "broadcast");
    CHECK_INT(where.inside, 0);
}

TUTTI_TEST(recorder_reports_few_arrivals_that_others_report_too)
{
    tutti_arrival arrivals[TUTTI_BEAT_ARRIVALS];
    begin_empty();
    for (uint64_t i = 1; i <= 5000; i++) {
        tutti__recorder_note(&recorder, "all_reduce", i, true);
        tutti__recorder_note(&recorder, "all_reduce", i, false);
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
