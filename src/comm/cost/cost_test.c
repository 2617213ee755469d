/* cost_test.c: formulas against constants that are given; how constants are taken from times. */
#include <math.h>
#include <string.h>

#include "comm/comm.h"
#include "comm/group/testing.h"

TUTTI_TEST(comm_formulas_are_the_textbooks)
{
    tutti_comm_cost cost = {.hosts = 1};
    cost.link[TUTTI_LINK_WITHIN].alpha = 1e-5;
    for (int i = 0; i < TUTTI_COMM_SIZES; i++)
        cost.link[TUTTI_LINK_WITHIN].beta[i] = cost.link[TUTTI_LINK_WITHIN].exchange[i] = 1e-9;
    double a = 1e-5, m = 1 << 20, b = 1e-9;
    CHECK_NEAR(tutti_comm_predict(&cost, "all_reduce", "ring", 8, 1 << 20),
               14 * a + 14.0 / 8 * m * b, 1e-9);
    CHECK_NEAR(tutti_comm_predict(&cost, "all_reduce", "tree", 8, 1 << 20), 6 * a + 6 * m * b,
               1e-9);
    CHECK_NEAR(tutti_comm_predict(&cost, "all_reduce", "central", 8, 1 << 20), 14 * a + 14 * m * b,
               1e-9);
    CHECK_NEAR(tutti_comm_predict(&cost, "all_reduce", "halving", 8, 1 << 20),
               6 * a + 14.0 / 8 * m * b, 1e-9);
    CHECK_NEAR(tutti_comm_predict(&cost, "all_reduce", "fixed", 8, 1 << 20),
               14 * a + 14.0 / 8 * m * b, 1e-9);
    CHECK(isinf(tutti_comm_predict(&cost, "all_reduce", "pairwise", 8, 1 << 20)));
}

/* Each lane does its part as the formula of one says, at what a lane takes while all are at work.
 */
TUTTI_TEST(comm_operations_on_lanes_cost_what_one_takes_for_its_part)
{
    enum { LINK = TUTTI_LINK_WITHIN, M = 16 << 20 };
    tutti_comm_cost one = {.hosts = 1}, lanes, alone;
    one.link[LINK].alpha = 1e-5;
    for (int i = 0; i < TUTTI_COMM_SIZES; i++)
        one.link[LINK].beta[i] = one.link[LINK].exchange[i] = 1e-9;
    lanes = alone = one;
    lanes.lanes[LINK] = 4;
    CHECK_NEAR(tutti_comm_predict(&lanes, "all_reduce", "ring", 8, M),
               tutti_comm_predict(&one, "all_reduce", "ring", 8, M / 4), 1e-12);
    lanes.lane[LINK].start = 7e-6;
    for (int i = 0; i < TUTTI_COMM_SIZES; i++) {
        lanes.lane[LINK].beta[i] = one.link[LINK].beta[i] = 2e-9;
        lanes.lane[LINK].exchange[i] = one.link[LINK].exchange[i] = 3e-9;
        lanes.lane[LINK].gamma[i] = one.gamma[i] = 4e-9;
        lanes.lane[LINK].of_two[i] = 1.5e-9;
    }
    static const char *const all[] = {"ring", "halving", "mesh", "naive"};
    for (size_t i = 0; i < TUTTI_COUNT(all); i++)
        CHECK_NEAR(tutti_comm_predict(&lanes, "all_reduce", all[i], 8, M),
                   7e-6 + tutti_comm_predict(&one, "all_reduce", all[i], 8, M / 4), 1e-12);
    CHECK_NEAR(tutti_comm_predict(&lanes, "broadcast", "central", 2, M),
               7e-6 + 1e-5 + M / 4.0 * 2e-9, 1e-9);
    CHECK_NEAR(tutti_comm_predict(&lanes, "broadcast", "central", 3, M),
               7e-6 + 2 * (1e-5 + M / 4.0 * 1.5e-9), 1e-9); /* the third waits */
    CHECK_NEAR(tutti_comm_predict(&lanes, "broadcast", "tree", 8, M),
               7e-6 + 3 * (1e-5 + M / 4.0 * 1.75e-9), 1e-9); /* 2, 4, then 8 are at work */
    CHECK_NEAR(tutti_comm_predict(&lanes, "all_gather", "ring", 8, M),
               tutti_comm_predict(&alone, "all_gather", "ring", 8, M), 1e-12); /* on one */
    CHECK_NEAR(tutti_comm_predict(&lanes, "all_reduce", "ring", 8, 1 << 18),
               tutti_comm_predict(&alone, "all_reduce", "ring", 8, 1 << 18), 1e-12);
}

/* One pass over memory: y = x, and one more source for each of the others. */
TUTTI_TEST(comm_sums_into_other_memory_cost_a_copy_and_what_is_read_besides)
{
    tutti_comm_cost cost = {.hosts = 1, .phase = 1e-6};
    for (int i = 0; i < TUTTI_COMM_SIZES; i++) {
        cost.gamma[i] = 3e-10;
        cost.into[i] = 4e-10;
        cost.move[i] = 2.5e-10;
        cost.pull[i] = 2.8e-10;
    }
    double m = 1 << 20, source = 1.5e-10;
    CHECK_NEAR(tutti_comm_predict(&cost, "reduce_scatter", "direct", 4, 1 << 20),
               2e-6 + m / 4 * (2.8e-10 + 3 * source), 1e-9);
    CHECK_NEAR(tutti_comm_predict(&cost, "reduce", "direct", 4, 1 << 20),
               2e-6 + m * (2.8e-10 + 3 * source), 1e-9);
    memset(cost.into, 0, sizeof cost.into);
    CHECK_NEAR(tutti_comm_predict(&cost, "reduce", "direct", 4, 1 << 20),
               2e-6 + m * (2.8e-10 + 3 * 3e-10), 1e-9);
}

/* A manager of many: all but one message are put in, or taken out, while others are on their way;
 * links of which neither was measured take each message by itself (the textbook's formulas). */
TUTTI_TEST(comm_a_manager_of_many_pays_one_end_of_most_messages)
{
    tutti_comm_cost cost = {.hosts = 1, .hold = {1 << 18, 1 << 20}};
    cost.link[TUTTI_LINK_WITHIN].alpha = 1e-6;
    for (int i = 0; i < TUTTI_COMM_SIZES; i++) {
        cost.link[TUTTI_LINK_WITHIN].beta[i] = 1e-10;
        cost.gamma[i] = cost.move[i] = 1e-11;
    }
    double m = 1 << 16, message = 1e-6 + m * 1e-10;
    CHECK_NEAR(tutti_comm_predict(&cost, "broadcast", "central", 8, 1 << 16), 7 * message, 1e-12);
    CHECK_NEAR(tutti_comm_predict(&cost, "gather", "central", 8, 1 << 16), 7 * message, 1e-12);
    for (int i = 0; i < TUTTI_COMM_SIZES; i++)
        cost.put[TUTTI_LINK_WITHIN][i] = cost.take[TUTTI_LINK_WITHIN][i] = 4e-11;
    CHECK_NEAR(tutti_comm_predict(&cost, "broadcast", "central", 8, 1 << 16),
               6 * (0.5e-6 + m * 4e-11) + message, 1e-12);
    CHECK_NEAR(tutti_comm_predict(&cost, "scatter", "central", 8, 1 << 16),
               6 * (0.5e-6 + m * 4e-11) + message, 1e-12);
    CHECK_NEAR(tutti_comm_predict(&cost, "gather", "central", 8, 1 << 16),
               6 * (1e-6 + m * 4e-11) + message, 1e-12);
    CHECK_NEAR(tutti_comm_predict(&cost, "gather", "central", 8, 1 << 15),
               6 * (0.25e-6 + m / 2 * 1e-10) + 1e-6 + m / 2 * 1e-10, 1e-12);
    CHECK_NEAR(tutti_comm_predict(&cost, "all_reduce", "central", 8, 1 << 16),
               6 * m * 4e-11 + 6 * (0.5e-6 + m * 4e-11) + 2 * message + 7 * m * 1e-11, 1e-12);
}

/* Ranks that fold blocks of a message which caches do not hold take what memory does: as many
 * streams as there are ranks, and two of the sum's, where an addition has three. */
TUTTI_TEST(comm_many_sources_out_of_memory_cost_a_stream_each)
{
    tutti_comm_cost cost = {.hosts = 1};
    for (int i = 0; i < TUTTI_COMM_SIZES; i++) {
        bool memory = tutti__cost_sizes[i] > 0x1p24;
        cost.gamma[i] = memory ? 3e-10 : 1e-10;
        cost.move[i] = memory ? 3e-10 : 1e-10;
        cost.into[i] = cost.move[i] + (memory ? 4e-10 : 1e-10);
        cost.pull[i] = cost.move[i] / 2;
    }
    double block = 0x1p26 / 8;
    CHECK_NEAR(tutti_comm_predict(&cost, "reduce_scatter", "direct", 8, 1 << 26),
               10 * block * 1e-10, 1e-9);
    CHECK_NEAR(tutti_comm_predict(&cost, "reduce_scatter", "direct", 8, 1 << 20),
               8 * 0x1p17 * 1e-10, 1e-9);
    CHECK_NEAR(tutti_comm_predict(&cost, "all_gather", "direct", 8, (int64_t)block),
               8.0 / 7 * 0x1p26 * 1.5e-10, 1e-9);
}

/* Steps of a ring wait for each other, where exchanges in a row were faster than a message. */
TUTTI_TEST(comm_steps_of_a_ring_wait_for_what_they_give)
{
    tutti_comm_cost cost = {.hosts = 1};
    cost.link[TUTTI_LINK_WITHIN].alpha = 3e-6;
    double plain = tutti_comm_predict(&cost, "all_gather", "ring", 4, 8);
    CHECK_NEAR(plain, 3 * 3e-6, 1e-12);
    cost.link[TUTTI_LINK_WITHIN].turn = 1e-6;
    CHECK_NEAR(tutti_comm_predict(&cost, "all_gather", "ring", 4, 8), 3 * 4e-6 + 2 * 2e-6, 1e-12);
    CHECK_NEAR(tutti_comm_predict(&cost, "all_gather", "ring", 2, 8), 4e-6, 1e-12);
}

/* Loopback of a Neoverse-V1: what is in the caches costs half. */
TUTTI_TEST(comm_parts_of_a_large_message_cost_what_caches_hold)
{
    tutti_comm_cost cost = {.hosts = 1,
                            .gamma = {26e-12, 31e-12, 32e-12, 32e-12, 32e-12, 33e-12, 50e-12,
                                      51e-12, 52e-12, 57e-12, 61e-12}};
    const double exchange[] = {0.23e-9, 0.16e-9, 0.16e-9, 0.16e-9, 0.16e-9, 0.16e-9,
                               0.25e-9, 0.25e-9, 0.26e-9, 0.27e-9, 0.28e-9};
    cost.link[TUTTI_LINK_WITHIN].alpha = 3e-6;
    memcpy(cost.link[TUTTI_LINK_WITHIN].exchange, exchange, sizeof exchange);
    double m = 64 << 20, parts = 64, halves = 2 * parts * 3e-6;
    double halving = tutti_comm_predict(&cost, "all_reduce", "halving", 2, 64 << 20);
    double warm = exchange[TUTTI_COMM_AT_MIB], cold = exchange[TUTTI_COMM_SIZES - 1];
    CHECK_NEAR(halving, halves + m * (warm + cold) / 2 + m / 2 * cost.gamma[4], 1e-9);
    CHECK(halving < tutti_comm_predict(&cost, "all_reduce", "double_tree", 2, 64 << 20));
    CHECK(halving < tutti_comm_predict(&cost, "all_reduce", "doubling", 2, 64 << 20));
    /* Where ranks take turns on a CPU, few steps win, however many messages each has. */
    cost.link[TUTTI_LINK_WITHIN].turn = 30e-6;
    CHECK(tutti_comm_predict(&cost, "all_reduce", "mesh", 4, 64 << 20) <
          tutti_comm_predict(&cost, "all_reduce", "halving", 4, 64 << 20));
    CHECK(tutti_comm_predict(&cost, "all_reduce", "halving", 4, 64 << 20) <
          tutti_comm_predict(&cost, "all_reduce", "ring", 4, 64 << 20));
}

/* However well caches hold the parts, the message comes out of memory and goes back. */
TUTTI_TEST(comm_parts_of_a_large_message_pass_through_memory)
{
    tutti_comm_cost cost = {.hosts = 1};
    for (int i = 0; i < TUTTI_COMM_SIZES; i++) {
        cost.link[TUTTI_LINK_WITHIN].exchange[i] = 1e-10;
        cost.gamma[i] = i > TUTTI_COMM_AT_MIB ? 17e-11 : 2e-11;
        cost.sum[TUTTI_LINK_WITHIN][i] = i > TUTTI_COMM_AT_MIB ? 6e-11 : 3e-11;
    }
    double m = 64 << 20;
    CHECK_NEAR(tutti_comm_predict(&cost, "all_reduce", "ring", 2, 64 << 20),
               m * (1e-10 + 10e-11) + m / 2 * 6e-11, 1e-9);
}

/* What came in an exchange is added at the exchange's price, never below that of the caches. */
TUTTI_TEST(comm_sums_of_an_exchange_have_their_own_cost)
{
    tutti_comm_cost cost = {.hosts = 1};
    for (int i = 0; i < TUTTI_COMM_SIZES; i++) {
        cost.link[TUTTI_LINK_WITHIN].exchange[i] = 1e-10;
        cost.gamma[i] = 2e-11;
        cost.into[i] = 3e-11;
        cost.sum[TUTTI_LINK_WITHIN][i] = i < 4 ? 1e-11 : 5e-11;
    }
    double m = 1 << 20, small = 1 << 16;
    CHECK_NEAR(tutti_comm_predict(&cost, "all_reduce", "doubling", 2, 1 << 20), m * 15e-11, 1e-12);
    CHECK_NEAR(tutti_comm_predict(&cost, "all_reduce", "doubling", 2, 1 << 16), small * 12e-11,
               1e-12);
    CHECK_NEAR(tutti_comm_predict(&cost, "reduce_scatter", "ring", 2, 1 << 20), m / 2 * 16e-11,
               1e-12);
}

/* A rank of an operation with more memory than the message pays what caches do not hold. */
TUTTI_TEST(comm_blocks_cost_what_passes_through_the_caches)
{
    tutti_comm_cost cost = {.hosts = 1};
    for (int i = 0; i < TUTTI_COMM_SIZES; i++)
        cost.link[TUTTI_LINK_WITHIN].exchange[i] = i < TUTTI_COMM_AT_MIB ? 1e-10 : 2e-10;
    cost.move[0] = 1e-30; /* copies cost nothing */
    double m = 1 << 19;
    CHECK_NEAR(tutti_comm_predict(&cost, "all_gather", "ring", 2, 1 << 19), m * 1e-10, 1e-12);
    CHECK_NEAR(tutti_comm_predict(&cost, "all_to_all", "naive", 2, 1 << 19), m * 2e-10, 1e-12);
    /* 64 KiB are in every core's caches: there the dearer constant is not a matter of them. */
    for (int i = 0; i < TUTTI_COMM_SIZES; i++)
        cost.link[TUTTI_LINK_WITHIN].exchange[i] = i == 2 ? 3e-10 : 1e-10;
    CHECK_NEAR(tutti_comm_predict(&cost, "all_to_all", "naive", 2, 1 << 15), 32768 * 1e-10, 1e-12);
}

/* The manager's own copy is hidden by whichever end of the link is the slower one. */
TUTTI_TEST(comm_a_manager_copies_while_the_slower_end_of_the_link_works)
{
    tutti_comm_cost cost = {.hosts = 1, .hold = {1 << 20, 1 << 20}};
    for (int i = 0; i < TUTTI_COMM_SIZES; i++) {
        cost.link[TUTTI_LINK_WITHIN].beta[i] = 6e-11;
        cost.put[TUTTI_LINK_WITHIN][i] = 3e-11;
        cost.take[TUTTI_LINK_WITHIN][i] = 6e-11;
        cost.move[i] = 2e-11;
    }
    double m = 1 << 19, long_one = 1 << 24, held = 1 << 20;
    CHECK_NEAR(tutti_comm_predict(&cost, "gather", "central", 2, 1 << 19), m * 8e-11, 1e-12);
    cost.link[TUTTI_LINK_WITHIN].alpha = 4e-6; /* before anything comes */
    CHECK_NEAR(tutti_comm_predict(&cost, "gather", "central", 2, 1 << 19), 4e-6 + m * 8e-11 - 4e-6,
               1e-12);
    cost.link[TUTTI_LINK_WITHIN].alpha = 0;
    CHECK_NEAR(tutti_comm_predict(&cost, "scatter", "central", 2, 1 << 19), m * 6e-11, 1e-12);
    CHECK_NEAR(tutti_comm_predict(&cost, "scatter", "central", 2, 1 << 24),
               long_one * 8e-11 - held * 3e-11, 1e-12);
}

/* In a scatter the root copies beside the others; the slower copy counts. */
TUTTI_TEST(comm_a_direct_scatter_costs_the_slower_copy_of_a_block)
{
    tutti_comm_cost cost = {.hosts = 1, .phase = 1e-6};
    for (int i = 0; i < TUTTI_COMM_SIZES; i++) {
        cost.pull[i] = i < TUTTI_COMM_AT_MIB ? 1e-10 : 4e-10;
        cost.move[i] = 3e-11;
    }
    double m = 1 << 19;
    CHECK_NEAR(tutti_comm_predict(&cost, "scatter", "direct", 2, 1 << 19), 2e-6 + m * 1e-10, 1e-12);
    for (int i = 0; i < TUTTI_COMM_SIZES; i++)
        cost.move[i] = 2e-10;
    CHECK_NEAR(tutti_comm_predict(&cost, "scatter", "direct", 2, 1 << 19), 2e-6 + m * 2e-10, 1e-12);
}

/* An all-reduce adds to what lies there; a reduce's first sum goes into other memory. */
TUTTI_TEST(comm_messages_that_are_added_cost_by_where_the_sum_goes)
{
    tutti_comm_cost cost = {.hosts = 1};
    for (int i = 0; i < TUTTI_COMM_SIZES; i++) {
        cost.link[TUTTI_LINK_WITHIN].beta[i] = 1e-10;
        cost.gamma[i] = 1e-11;
        cost.into[i] = 3e-11;
        cost.fold[TUTTI_LINK_WITHIN][i] = 2e-11;
        cost.fold_into[TUTTI_LINK_WITHIN][i] = 7e-11;
    }
    double m = 1 << 20;
    CHECK_NEAR(tutti_comm_predict(&cost, "all_reduce", "tree", 2, 1 << 20), m * 22e-11, 1e-12);
    CHECK_NEAR(tutti_comm_predict(&cost, "all_reduce", "central", 2, 1 << 20), m * 22e-11, 1e-12);
    CHECK_NEAR(tutti_comm_predict(&cost, "reduce", "tree", 4, 1 << 20), m * 29e-11, 1e-12);
    CHECK_NEAR(tutti_comm_predict(&cost, "reduce", "central", 3, 1 << 20), m * 29e-11, 1e-12);
    memset(cost.fold_into, 0, sizeof cost.fold_into);
    CHECK_NEAR(tutti_comm_predict(&cost, "reduce", "tree", 2, 1 << 20), m * 14e-11, 1e-12);
}

/* A rank that sums alone has the last cache for itself. */
TUTTI_TEST(comm_a_direct_reduce_costs_what_one_rank_reads)
{
    tutti_comm_cost cost = {.hosts = 1, .phase = 1e-6};
    for (int i = 0; i < TUTTI_COMM_SIZES; i++) {
        cost.pull[i] = 7e-11;
        cost.move[i] = 7e-11;
        cost.into[i] = 14e-11;
        cost.source[i] = 3e-11;
    }
    double m = 1 << 24;
    CHECK_NEAR(tutti_comm_predict(&cost, "reduce", "direct", 3, 1 << 24), 2e-6 + m * 13e-11, 1e-9);
    CHECK_NEAR(tutti_comm_predict(&cost, "reduce_scatter", "direct", 2, 1 << 24),
               2e-6 + m / 2 * 14e-11, 1e-9);
}

/* What a double tree sends is still in the caches when it comes back. */
TUTTI_TEST(comm_a_double_tree_has_two_of_the_three_streams_of_an_exchange)
{
    tutti_comm_cost cost = {.hosts = 1};
    for (int i = 0; i < TUTTI_COMM_SIZES; i++)
        cost.link[TUTTI_LINK_WITHIN].exchange[i] = i <= TUTTI_COMM_AT_MIB ? 1e-10 : 4e-10;
    double m = 1 << 24;
    CHECK_NEAR(tutti_comm_predict(&cost, "all_reduce", "double_tree", 2, 1 << 24), m * 3e-10, 1e-9);
}

/* Two ranks hand nothing on: the message goes as one. */
TUTTI_TEST(comm_a_chain_of_two_is_one_message)
{
    tutti_comm_cost cost = {.hosts = 1};
    cost.link[TUTTI_LINK_WITHIN].alpha = 1e-5;
    for (int i = 0; i < TUTTI_COMM_SIZES; i++)
        cost.link[TUTTI_LINK_WITHIN].beta[i] = cost.link[TUTTI_LINK_WITHIN].exchange[i] = 1e-10;
    double m = 1 << 22;
    CHECK_NEAR(tutti_comm_predict(&cost, "broadcast", "ring", 2, 1 << 22), 1e-5 + m * 1e-10, 1e-12);
    CHECK_NEAR(tutti_comm_predict(&cost, "broadcast", "ring", 3, 1 << 22),
               33 * 1e-5 + 33.0 / 32 * m * 1e-10, 1e-12);
}

TUTTI_TEST(comm_times_are_taken_at_their_lower_quartile)
{
    const double times[][2] = {{5, 0}, {1, 0}, {4, 2}, {0, 0}, {3, 0}, {INFINITY, 0}, {2, 3}};
    CHECK_NEAR(tutti__cost_quartile(times[0], 7, 2), 2, 0); /* of 1 2 3 4 5 */
    CHECK_NEAR(tutti__cost_quartile(times[0], 3, 2), 1, 0); /* of three the least */
    CHECK_NEAR(tutti__cost_quartile(times[0] + 1, 7, 2), 2, 0);
    CHECK_NEAR(tutti__cost_quartile(times[0] + 1, 2, 2), 0, 0);
}

TUTTI_TEST(comm_nothing_costs_something_that_is_a_number)
{
    static const char *const operations[] = {"all_reduce", "reduce",     "broadcast",
                                             "all_gather", "gather",     "scatter",
                                             "barrier",    "all_to_all", "reduce_scatter"};
    tutti_comm *comm;
    tutti_comm_cost guessed;
    CHECK_OK(tutti_comm_local(1, NULL, &comm));
    tutti_comm_get_cost(comm, &guessed);
    CHECK_OK(tutti_comm_close(comm));
    for (size_t i = 0; i < TUTTI_COUNT(operations); i++)
        for (const char *const *by = tutti_comm_algorithms(operations[i]); *by; by++)
            for (int ranks = 1; ranks < 8; ranks++)
                if (!(tutti_comm_predict(&guessed, operations[i], *by, ranks, 0) >= 0))
                    tutti__test_fail(operations[i], ranks, "%s: not a number", *by);
}
