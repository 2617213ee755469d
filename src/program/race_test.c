#include "program/race.h"

#include <string.h>

#include "base/test.h"
#include "base/world.h"
#include "ops/sample.h"

/* Kernels that note in which order they were called, and take as long as a clock of their own says.
 */
static char calls[64];
static int call_count;
static int64_t clock_ns;

static int64_t now(void *self)
{
    TUTTI_UNUSED(self);
    return clock_ns;
}

static void note(char name, int64_t microseconds)
{
    if (call_count < (int)sizeof calls - 1)
        calls[call_count++] = name;
    clock_ns += microseconds * 1000;
}

/* A kernel that takes so many microseconds, and others the first time. */
#define KERNEL(name_, letter, first, later)                                                        \
    static tutti_status run_##name_(const tutti_kernel_call *call)                                 \
    {                                                                                              \
        TUTTI_UNUSED(call);                                                                        \
        note(letter, memchr(calls, letter, (size_t)call_count) == NULL ? (first) : (later));       \
        return TUTTI_OK;                                                                           \
    }                                                                                              \
    static const tutti_kernel name_ = {.name = #name_, .run = run_##name_};

KERNEL(slow, 's', 300, 300)
KERNEL(fast, 'f', 600, 100)
KERNEL(far_behind, 'b', 1500, 1500)
/* Long ones: the first is better, but somebody else had the machine when it ran first. */
KERNEL(disturbed, 'd', 23000, 20000)
KERNEL(steady, 'y', 21000, 21000)
KERNEL(half_as_fast, 'h', 40000, 40000)

/* The machine was fast for a moment, and this one ran in it. */
static tutti_status run_luckily(const tutti_kernel_call *call)
{
    TUTTI_UNUSED(call);
    note('l', call_count < 8 || call_count > 11 ? 22000 : 18000);
    return TUTTI_OK;
}
static const tutti_kernel lucky = {.name = "lucky", .run = run_luckily};

static tutti_status run_badly(const tutti_kernel_call *call)
{
    TUTTI_UNUSED(call);
    note('x', 0);
    return tutti_fail(TUTTI_INTERNAL, "it never runs");
}
static const tutti_kernel bad = {.name = "bad", .run = run_badly};

static const tutti_kernel *race(const char *sample_text, int count,
                                const tutti_kernel *const *rivals)
{
    tutti_sample *sample;
    tutti_device *device;
    int64_t ns;
    CHECK_OK(tutti__sample_parse(tutti_op_find("exp"), sample_text, 1, &sample));
    CHECK_OK(tutti__device_open("cpu:0", &device));
    tutti_kernel_query query = {.node = tutti__sample_rule(sample), .threads = 1};
    memset(calls, 0, sizeof calls);
    call_count = 0;
    tutti_world world = *tutti__world();
    world.now_ns = now;
    tutti__world_replace(&world);
    const tutti_kernel *winner = tutti__race(device, &query, rivals, count, &ns);
    tutti__world_replace(NULL);
    CHECK((winner == NULL) == (ns == INT64_MAX));
    CHECK(winner == NULL || ns == (winner == &fast        ? 100000
                                   : winner == &disturbed ? 20000000
                                   : winner == &slow      ? 300000
                                                          : 40000000));
    tutti__sample_free(sample);
    return winner;
}

TUTTI_TEST(race_runs_rivals_in_turn_and_takes_the_least_time)
{
    CHECK(race("f32[4]", 2, (const tutti_kernel *[]){&slow, &fast}) == &fast);
    CHECK_STR(calls, "sfsfsfsfsfsfsf");
    CHECK(race("f32[300]", 2, (const tutti_kernel *[]){&fast, &slow}) == &fast);
    CHECK_STR(calls, "fsfsfsfsfsfsfs");
}

TUTTI_TEST(race_leaves_out_who_fails_or_is_far_behind)
{
    CHECK(race("f32[4]", 3, (const tutti_kernel *[]){&slow, &bad, &far_behind}) == &slow);
    CHECK_STR(calls, "sxbsbsssss");
    CHECK(race("f32[4]", 1, (const tutti_kernel *[]){&bad}) == NULL);
}

TUTTI_TEST(race_runs_long_rivals_again_when_they_are_close)
{
    CHECK(race("f32[4]", 3, (const tutti_kernel *[]){&half_as_fast, &disturbed, &steady}) ==
          &disturbed);
    CHECK_STR(calls, "hdydyyddyyddyyddyyddyyddyyddyyddy");
    CHECK(race("f32[4]", 1, (const tutti_kernel *[]){&half_as_fast}) == &half_as_fast);
    CHECK_STR(calls, "h");
}

TUTTI_TEST(race_is_not_won_in_one_moment)
{
    CHECK(race("f32[4]", 2, (const tutti_kernel *[]){&lucky, &disturbed}) == &disturbed);
    CHECK(memchr(calls, 'l', 12) != NULL);
    CHECK_INT(call_count, 32);
}
