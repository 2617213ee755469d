/* schedule_test.c: schedules against their formulas, and broken ones. */
#include <string.h>

#include "base/test.h"
#include "parallel/pipeline/schedule.h"
#include "tables/pipeline_schedule_kind.h"

static tutti_pipeline_schedule *make(const char *name, int devices, int chunks, int micro,
                                     tutti_pipeline_times *times)
{
    const tutti_pipeline_schedule_kind *kind;
    tutti_pipeline_schedule *s;
    CHECK_OK(tutti__pipeline_schedule_find(name, &kind));
    CHECK_OK(tutti__pipeline_schedule_create(kind, devices, chunks, micro, &s));
    CHECK_OK(tutti__pipeline_schedule_simulate(s, NULL, times));
    return s;
}

static void end(tutti_pipeline_schedule *s, tutti_pipeline_times *times)
{
    tutti__pipeline_times_free(s, times);
    tutti__pipeline_schedule_free(s);
}

/* Idle share where all of F, B, W of all stages take as long as each other. */
TUTTI_TEST(schedules_have_the_bubble_of_their_formula)
{
    for (int k = 1; k <= 6; k++)
        for (int m = 1; m <= 24; m++) {
            tutti_pipeline_times times;
            tutti_pipeline_schedule *s = make("naive", k, 0, m, &times);
            CHECK_NEAR(times.idle, 1 - 1.0 / k, 1e-9);
            end(s, &times);
            s = make("gpipe", k, 0, m, &times);
            CHECK_NEAR(times.idle, (k - 1.0) / (m + k - 1), 1e-9);
            CHECK(times.peak[0] == m);
            end(s, &times);
            s = make("1f1b", k, 0, m, &times);
            CHECK_NEAR(times.idle, (k - 1.0) / (m + k - 1), 1e-9);
            for (int d = 0; d < k; d++)
                CHECK(times.peak[d] == (k - d < m ? k - d : m));
            end(s, &times);
        }
}

TUTTI_TEST(interleaved_fills_in_a_part_of_the_time)
{
    for (int k = 1; k <= 6; k++)
        for (int v = 1; v <= 4; v++)
            for (int m = k; m <= 4 * k; m += k) {
                tutti_pipeline_times times;
                tutti_pipeline_schedule *s = make("interleaved", k, v, m, &times);
                CHECK_NEAR(times.idle, (k - 1.0) / ((double)v * m + k - 1), 1e-9);
                end(s, &times);
            }
    const tutti_pipeline_schedule_kind *kind;
    tutti_pipeline_schedule *s;
    CHECK_OK(tutti__pipeline_schedule_find("interleaved", &kind));
    CHECK(tutti__pipeline_schedule_create(kind, 4, 2, 6, &s) == TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "6 do not divide by 4 devices; use 8 or 4");
}

TUTTI_TEST(zero_bubble_idles_at_most_half_as_long)
{
    for (int k = 2; k <= 8; k++)
        for (int m = k; m <= 32; m++) {
            tutti_pipeline_times zero, one;
            tutti_pipeline_schedule *z = make("zero_bubble", k, 0, m, &zero);
            tutti_pipeline_schedule *o = make("1f1b", k, 0, m, &one);
            CHECK(zero.idle * zero.end <= 0.5 * one.idle * one.end + 1e-9);
            for (int d = 0; d < k; d++)
                CHECK(zero.peak[d] <= k);
            end(z, &zero);
            end(o, &one);
        }
}

TUTTI_TEST(transfers_take_time_beside_compute)
{
    tutti_pipeline_times times;
    tutti_pipeline_schedule *s = make("1f1b", 2, 0, 4, &times);
    tutti_stage_cost costs[2] = {{1, 1, 1, 0.5, 0}, {1, 1, 1, 0, 0.5}};
    tutti__pipeline_times_free(s, &times);
    CHECK_OK(tutti__pipeline_schedule_simulate(s, costs, &times));
    /* 1 + 0.5 until the last stage begins; it works 4 * 3 and waits never, or for gradients on
     * their way; the last gradient takes 0.5, its backward pass 2. */
    CHECK(times.end >= 1 + 0.5 + 12 + 0.5 + 2 - 1e-9);
    CHECK(times.busy[0] == 12 && times.busy[1] == 12);
    end(s, &times);
}

/* The last action of a list goes to its front, one is doubled, one is dropped: all are found. */
static tutti_status with_mistake(int which)
{
    tutti_pipeline_times times;
    tutti_pipeline_schedule *s = make("1f1b", 3, 0, 4, &times);
    tutti__pipeline_times_free(s, &times);
    tutti_pipeline_actions *of = &s->of[2];
    tutti_pipeline_action last =
        of->list.data[of->list.count - 2]; /* the backward pass, before its send */
    if (which == 0) {
        memmove(of->list.data + 1, of->list.data, (of->list.count - 2) * sizeof last);
        of->list.data[0] = last;
    } else if (which == 1) {
        of->list.data[of->list.count - 1] = last;
    } else {
        of->list.count -= 2;
    }
    tutti_status status = tutti__pipeline_schedule_simulate(s, NULL, &times);
    if (status == TUTTI_OK)
        tutti__pipeline_times_free(s, &times);
    tutti__pipeline_schedule_free(s);
    return status;
}

TUTTI_TEST(broken_schedules_are_found)
{
    CHECK(with_mistake(0) == TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "waits for ever");
    CHECK(with_mistake(1) == TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "two actions backward of stage 2");
    CHECK(with_mistake(2) == TUTTI_INVALID);
}

TUTTI_TEST(schedules_of_wrong_sizes_are_refused)
{
    const tutti_pipeline_schedule_kind *kind;
    tutti_pipeline_schedule *s;
    CHECK(tutti__pipeline_schedule_find("fastest", &kind) == TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "1f1b, gpipe, interleaved, naive");
    CHECK_OK(tutti__pipeline_schedule_find("gpipe", &kind));
    CHECK(tutti__pipeline_schedule_create(kind, 0, 0, 4, &s) == TUTTI_INVALID);
    CHECK(tutti__pipeline_schedule_create(kind, 2, 2, 4, &s) == TUTTI_INVALID);
    CHECK(tutti__pipeline_schedule_create(kind, 1 << 20, 0, 1 << 20, &s) == TUTTI_TOO_LARGE);
}
