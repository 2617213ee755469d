/* lane_test.c: operations on several lanes at once. */
#include "comm/coll/lane.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/params.h"
#include "base/world.h"
#include "comm/cost/derive.h"
#include "comm/group/testing.h"

enum { LARGE = (1 << 20) + 77 }; /* elements: more than 256 KiB for each of many lanes */

static void with_lanes(const char *lanes, int size, bool forked, const tutti_comm_options *options,
                       tutti_rank_work *work, void *context)
{
    CHECK_OK(tutti__param_set("LANES", lanes));
    if (forked)
        tutti__test_forked(size, options, work, context);
    else
        tutti__test_ranks(size, options, work, context);
    CHECK_OK(tutti__param_set("LANES", NULL));
}

static tutti_status expect_sums(const tutti_comm *comm, const float *data, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        float sum = 0;
        for (int r = 0; r < comm->size; r++)
            sum += (float)tutti__test_value(r, i);
        EXPECT(data[i] == sum);
    }
    return TUTTI_OK;
}

static void fill(const tutti_comm *comm, float *data, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        data[i] = (float)tutti__test_value(comm->rank, i);
}

static tutti_status sum_by(tutti_comm *comm, float *data, int64_t count, const char *algorithm)
{
    fill(comm, data, count);
    TUTTI_TRY(tutti_comm_all_reduce(comm, data, data, count, TUTTI_F32, TUTTI_SUM,
                                    TUTTI_CALL(.algorithm = algorithm)));
    return expect_sums(comm, data, count);
}

static tutti_status reduce_and_broadcast(tutti_comm *comm, float *data, int64_t count)
{
    int root = comm->size - 1;
    fill(comm, data, count);
    TUTTI_TRY(tutti_comm_reduce(comm, data, comm->rank == root ? data : NULL, count, TUTTI_F32,
                                TUTTI_SUM, root, NULL));
    if (comm->rank != root)
        memset(data, 0, (size_t)count * sizeof *data);
    TUTTI_TRY(tutti_comm_broadcast(comm, data, count, TUTTI_F32, root, NULL));
    return expect_sums(comm, data, count);
}

/* Sizes around those at which another lane begins, by all algorithms. */
static tutti_status use_all(tutti_comm *comm, void *context)
{
    static const int64_t counts[] = {1, 65536, 131071, 131072, 200001, LARGE};
    const char *const *algorithm = tutti_comm_algorithms("all_reduce");
    tutti_status status = TUTTI_OK;
    float *data = malloc(LARGE * sizeof *data);
    EXPECT(data != NULL && tutti__lanes_among(&comm->cost, comm->size) == *(const int *)context);
    for (; *algorithm && status == TUTTI_OK; algorithm++)
        for (size_t i = 0; i < TUTTI_COUNT(counts) && status == TUTTI_OK; i++)
            if (tutti__coll_possible(tutti__coll_find(*algorithm), comm) &&
                strcmp(*algorithm, "compressed") != 0)
                status = sum_by(comm, data, counts[i], *algorithm);
    if (status == TUTTI_OK)
        status = reduce_and_broadcast(comm, data, LARGE);
    if (status == TUTTI_OK)
        EXPECT((comm->lanes != NULL) == (*(const int *)context > 1));
    free(data);
    return status;
}

TUTTI_TEST(comm_lanes_give_the_sums_of_one)
{
    const tutti_comm_options *tcp = TUTTI_COMM_OPTIONS(.engine = "tcp", .timeout = 60);
    with_lanes("3", 3, false, tcp, use_all, &(int){3});
    with_lanes("2", 4, true, tcp, use_all, &(int){2});
}

TUTTI_TEST(comm_lanes_share_the_streams_that_are_asked_for)
{
    static const int expected[][2] = {{1, 1}, {2, 2}, {3, 3}, {5, 1}, {6, 3}, {8, 4}};
    for (size_t i = 0; i < TUTTI_COUNT(expected); i++)
        with_lanes("4", 2, false,
                   TUTTI_COMM_OPTIONS(.engine = "tcp", .streams = expected[i][0], .timeout = 60),
                   use_all, (void *)(uintptr_t)&expected[i][1]);
}

TUTTI_TEST(comm_lanes_are_as_many_as_ranks_have_cpus)
{
    int lanes;
    static const struct {
        int cpus, ranks, lanes;
    } cases[] = {{1, 1, 1}, {2, 2, 1}, {3, 2, 1}, {4, 2, 2}, {2, 4, 1}, {16, 4, 4}, {64, 1, 4}};
    CHECK_OK(tutti__param_set("LANES", "0"));
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++) {
        CHECK_OK(tutti__lanes_wanted(cases[i].cpus, cases[i].ranks, &lanes));
        CHECK_INT(lanes, cases[i].lanes);
    }
    CHECK_OK(tutti__param_set("LANES", "9"));
    CHECK_INT(tutti__lanes_wanted(4, 1, &lanes), TUTTI_INVALID);
    CHECK_OK(tutti__param_set("LANES", NULL));
}

static tutti_status expect_known(const tutti_comm *comm, bool thorough)
{
    enum { LINK = TUTTI_LINK_WITHIN, AT_256_KIB = 3 };
    tutti_comm_cost cost;
    tutti_comm_get_cost(comm, &cost);
    EXPECT(cost.lanes[LINK] == 2 && cost.lane[LINK].start > 0);
    EXPECT(cost.lane[LINK].beta[AT_256_KIB] > 0 && cost.lane[LINK].exchange[AT_256_KIB] > 0);
    EXPECT(cost.lane[LINK].fold[AT_256_KIB] > 0 && cost.lane[LINK].sum[AT_256_KIB] > 0);
    EXPECT((cost.lane[LINK].of_two[AT_256_KIB] > 0) == thorough);
    EXPECT((cost.lane[LINK].gamma[AT_256_KIB] > 0) == thorough);
    return TUTTI_OK;
}

/* As a group opens, and as a benchmark does it. */
static tutti_status measure_lanes(tutti_comm *comm, void *context)
{
    enum { MOST = 1 << 19 };
    (void)context;
    TUTTI_TRY(expect_known(comm, false));
    char *memory = calloc(3, MOST);
    EXPECT(memory);
    tutti_cost_thorough *thorough = calloc(1, sizeof *thorough);
    EXPECT(thorough);
    *thorough = (tutti_cost_thorough){
        .most = MOST, .a = memory, .b = memory + MOST, .c = memory + 2 * MOST, .seconds = 10};
    tutti_status status = tutti__cost_measure(comm, thorough);
    free(thorough);
    free(memory);
    TUTTI_TRY(status);
    return expect_known(comm, true);
}

TUTTI_TEST(comm_lanes_are_measured)
{
    with_lanes("2", 3, false, TUTTI_COMM_OPTIONS(.engine = "tcp", .timeout = 60, .measure = true),
               measure_lanes, NULL);
}

/* Times of one way and an exchange, and of the same on each of several lanes. */
static tutti_cost_times times_of(double by_itself, double on_a_lane, double start)
{
    enum { LINK = TUTTI_LINK_WITHIN };
    tutti_cost_times times = {.lane[LINK].start = start};
    times.one_way[LINK][TUTTI_COMM_SIZES] = 2e-5;
    times.exchange[LINK][TUTTI_COMM_SIZES] = 1e-5;
    for (int i = 0; i < TUTTI_COMM_SIZES; i++) {
        double bytes = tutti__cost_sizes[i];
        times.one_way[LINK][i] = times.exchange[LINK][i] = 2e-5 + bytes * by_itself;
        times.lane[LINK].one_way[i] = times.lane[LINK].exchange[i] = 3e-5 + bytes * on_a_lane;
        times.lane[LINK].folded[i] = times.lane[LINK].summed[i] = 3e-5 + 2 * bytes * on_a_lane;
        times.add[i] = times.add_into[i] = times.move[i] = bytes * by_itself;
    }
    return times;
}

/* What lanes cannot take is somebody else's work, as with links: they are taken to go as by
 * themselves. Slower than that is as it should be. */
static tutti_status doubt_lanes(tutti_comm *comm, void *context)
{
    (void)context;
    enum { LINK = TUTTI_LINK_WITHIN, AT = TUTTI_COMM_AT_MIB };
    static const struct {
        double on_a_lane, start;
        bool in_doubt, believed;
    } cases[] = {{4e-9, 1e-5, true, true},      {4e-9, 1, true, true},
                 {1e-6, 1e-5, true, false},     {1e-6, 1e-5, false, true},
                 {INFINITY, 1e-5, true, false}, {NAN, 1e-5, true, true},
                 {4e-9, INFINITY, true, true},  {4e-9, NAN, true, true}};
    EXPECT(comm->cost.lanes[LINK] == 2);
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++) {
        tutti_cost_times times = times_of(1e-9, cases[i].on_a_lane, cases[i].start);
        tutti_comm_cost cost = comm->cost;
        cost.lane[LINK] = (tutti_comm_lane){0};
        tutti__cost_derive(&times, cases[i].in_doubt, comm, &cost);
        const tutti_comm_lane *lane = &cost.lane[LINK];
        EXPECT(lane->start >= 0 && lane->start < 1e-3);
        EXPECT(isfinite(lane->beta[AT]) && isfinite(lane->exchange[AT]));
        EXPECT(isfinite(lane->fold[AT]) && isfinite(lane->sum[AT]));
        if (!cases[i].believed)
            EXPECT(lane->beta[AT] == cost.link[LINK].beta[AT] &&
                   lane->exchange[AT] == cost.link[LINK].exchange[AT]);
        else if (lane->start > 0 && isfinite(cases[i].on_a_lane))
            EXPECT(fabs(lane->beta[AT] / cases[i].on_a_lane - 1) < 0.05);
    }
    return TUTTI_OK;
}

TUTTI_TEST(comm_lanes_that_take_what_none_can_are_doubted)
{
    with_lanes("2", 2, false, TUTTI_COMM_OPTIONS(.engine = "tcp", .timeout = 60), doubt_lanes,
               NULL);
}

/* 2 (p - 1) / p of the message leave each rank, by as many lanes as there may be. */
static tutti_status count_bytes(tutti_comm *comm, void *context)
{
    enum { COUNT = 3 << 19 };
    (void)context;
    float *data = calloc(COUNT, sizeof *data);
    EXPECT(data != NULL);
    int64_t before = tutti_comm_bytes_sent(comm);
    tutti_status status = sum_by(comm, data, COUNT, "ring");
    free(data);
    TUTTI_TRY(status);
    int64_t sent = tutti_comm_bytes_sent(comm) - before, expected = COUNT * 4LL * 4 / 3;
    EXPECT(llabs(sent - expected) <= 4 * 4 * 4); /* a block of a lane may have one element more */
    return TUTTI_OK;
}

TUTTI_TEST(comm_lanes_count_what_they_send)
{
    with_lanes("4", 3, false, TUTTI_COMM_OPTIONS(.engine = "tcp", .timeout = 60), count_bytes,
               NULL);
}

/* Two groups of the same ranks, at once, in any order. */
static void *sum_often(void *arg)
{
    tutti_comm *comm = arg;
    float *data = malloc(LARGE * sizeof *data);
    tutti_status status = data ? TUTTI_OK : TUTTI_NO_MEMORY;
    for (int i = 0; i < 4 && status == TUTTI_OK; i++)
        status = sum_by(comm, data, LARGE, NULL);
    free(data);
    return (void *)(uintptr_t)status;
}

static tutti_status use_two_groups(tutti_comm *comm, void *context)
{
    (void)context;
    tutti_comm *other;
    pthread_t thread;
    void *result;
    TUTTI_TRY(tutti_comm_split(comm, 0, -comm->rank, &other));
    EXPECT(pthread_create(&thread, NULL, sum_often, other) == 0);
    tutti_status status = (tutti_status)(uintptr_t)sum_often(comm);
    EXPECT(pthread_join(thread, &result) == 0);
    EXPECT((tutti_status)(uintptr_t)result == TUTTI_OK);
    TUTTI_TRY(tutti_comm_close(other));
    return status;
}

TUTTI_TEST(comm_lanes_of_two_groups_do_not_wait_for_each_other)
{
    with_lanes("2", 3, false, TUTTI_COMM_OPTIONS(.engine = "tcp", .timeout = 60), use_two_groups,
               NULL);
}

/* A rank has another size: all ranks hear of it at once, on whichever lane it shows. */
static tutti_status differ(tutti_comm *comm, void *context)
{
    (void)context;
    int64_t count = comm->rank == 1 ? LARGE - 4000 : LARGE, start = tutti__now_ns();
    float *data = calloc(LARGE, sizeof *data);
    EXPECT(data != NULL);
    tutti_status status =
        tutti_comm_all_reduce(comm, data, data, count, TUTTI_F32, TUTTI_SUM, NULL);
    free(data);
    EXPECT(status != TUTTI_OK && status != TUTTI_DEADLINE);
    EXPECT(tutti__now_ns() - start < INT64_C(10000000000));
    return TUTTI_OK;
}

TUTTI_TEST(comm_lanes_end_together_when_one_fails)
{
    with_lanes("3", 3, false, TUTTI_COMM_OPTIONS(.engine = "tcp", .timeout = 30), differ, NULL);
}

static tutti_status expect_one(tutti_comm *comm, void *context)
{
    (void)context;
    EXPECT(tutti__lanes_among(&comm->cost, comm->size) == 1);
    return tutti_comm_barrier(comm, NULL);
}

/* A process that may not have so many descriptors has one lane, and as many of them as it may. */
TUTTI_TEST(comm_lanes_are_given_up_for_descriptors)
{
    enum { RANKS = 6, FEW = 20, ENOUGH = 100 };
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) { /* a limit that is lowered stays so */
        bool ok = setrlimit(RLIMIT_NOFILE, &(struct rlimit){FEW, ENOUGH}) == 0;
        with_lanes("4", RANKS, false, TUTTI_COMM_OPTIONS(.engine = "tcp", .timeout = 30),
                   expect_one, NULL);
        _exit(!ok);
    }
    int ended;
    CHECK(child > 0 && waitpid(child, &ended, 0) == child);
    CHECK_INT(ended, 0);
}

/* Rank 1 ends in the midst of large sums. */
TUTTI_TEST(comm_lanes_of_a_rank_that_dies_end_within_a_second)
{
    enum { RANKS = 3 };
    tutti_comm *comm;
    CHECK_OK(tutti__param_set("LANES", "3"));
    CHECK_OK(tutti_comm_fork(RANKS, TUTTI_COMM_OPTIONS(.engine = "tcp", .timeout = 30), &comm));
    CHECK_OK(tutti__param_set("LANES", NULL));
    float *data = calloc(LARGE, sizeof *data);
    tutti_status status = data ? TUTTI_OK : TUTTI_NO_MEMORY;
    int64_t last = 0;
    if (comm->rank == 1)
        alarm(1); /* it ends the process */
    for (int i = 0; i < 100000 && status == TUTTI_OK; i++) {
        last = tutti__now_ns();
        status = tutti_comm_all_reduce(comm, data, data, LARGE, TUTTI_F32, TUTTI_SUM, NULL);
    }
    bool soon = tutti__now_ns() - last < 1500000000,
         named = strstr(tutti_error_message(), "rank 1") &&
                 strstr(tutti_error_message(), "ended without closing");
    bool child = comm->rank > 0;
    free(data);
    (void)tutti_comm_close(comm);
    if (child)
        _exit(0);
    CHECK(status == TUTTI_CLOSED);
    CHECK(soon);
    CHECK(named);
}
