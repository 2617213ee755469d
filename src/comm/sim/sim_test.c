/* sim_test.c: the simulator agrees with the formulas where they hold, and says where they break. */
#include "comm/sim/sim.h"

#include <math.h>
#include <string.h>

#include "base/test.h"
#include "comm/sim/trace.h"

static const double alpha = 2e-5, beta = 1e-9;
enum { LIMIT = 50000000 };

static tutti_network plain(int ranks)
{
    return (tutti_network){
        .ranks = ranks, .alpha = {alpha, alpha}, .beta = {beta, beta}, .overhead = 0.5};
}

static double simulated(const tutti_network *n, const char *algorithm, int64_t bytes)
{
    tutti_simulated result = {0};
    CHECK_OK(tutti__simulate(n, "all_reduce", algorithm, bytes, LIMIT, &result));
    return result.seconds;
}

static double predicted(const tutti_network *n, const char *algorithm, int64_t bytes)
{
    tutti_comm_cost cost = tutti__network_cost(n);
    return tutti_comm_predict(&cost, "all_reduce", algorithm, n->ranks, bytes);
}

/* Where every message has its links for itself the formulas are exact. */
TUTTI_TEST(sim_confirms_formulas)
{
    static const char *const names[] = {"ring", "halving", "doubling", "tree"};
    for (int ranks = 2; ranks <= 64; ranks *= 2)
        for (size_t i = 0; i < TUTTI_COUNT(names); i++)
            for (int64_t bytes = 4096; bytes <= 16 << 20; bytes *= 64) {
                tutti_network n = plain(ranks);
                double time = simulated(&n, names[i], bytes);
                double should = predicted(&n, names[i], bytes);
                if (fabs(time / should - 1) > 0.01)
                    tutti__test_fail(__FILE__, __LINE__, "%s, %d ranks, %lld bytes: %g, formula %g",
                                     names[i], ranks, (long long)bytes, time, should);
            }
    tutti_network odd = plain(7);
    CHECK_NEAR(simulated(&odd, "ring", 7 << 16), predicted(&odd, "ring", 7 << 16), 1e-8);
}

TUTTI_TEST(sim_confirms_other_operations)
{
    static const struct {
        const char *operation, *algorithm;
    } cases[] = {{"broadcast", "tree"},
                 {"all_gather", "ring"},
                 {"all_to_all", "pairwise"},
                 {"reduce_scatter", "ring"},
                 {"barrier", "doubling"}};
    tutti_network n = plain(16);
    tutti_comm_cost cost = tutti__network_cost(&n);
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++) {
        tutti_simulated result;
        int64_t bytes = i == 4 ? 0 : 1 << 20;
        CHECK_OK(
            tutti__simulate(&n, cases[i].operation, cases[i].algorithm, bytes, LIMIT, &result));
        double should =
            tutti_comm_predict(&cost, cases[i].operation, cases[i].algorithm, 16, bytes);
        CHECK_NEAR(result.seconds / should, 1, 0.02);
    }
}

/* Formulas add up what a manager, or a mesh, has under way at the same time: for small messages
 * they are far too dear. */
TUTTI_TEST(sim_finds_where_formulas_break)
{
    tutti_network n = plain(64);
    CHECK(predicted(&n, "central", 8) > 2 * simulated(&n, "central", 8));
    CHECK(predicted(&n, "mesh", 8) > 1.5 * simulated(&n, "mesh", 8));
    CHECK_NEAR(predicted(&n, "central", 16 << 20) / simulated(&n, "central", 16 << 20), 1, 0.02);
    CHECK_NEAR(predicted(&n, "mesh", 16 << 20) / simulated(&n, "mesh", 16 << 20), 1, 0.1);
    CHECK_NEAR(predicted(&n, "double_tree", 16 << 20) / simulated(&n, "double_tree", 16 << 20), 1,
               0.2);
}

/* Switches whose uplinks carry an eighth of their machines: a ring crosses each once and does not
 * care; recursive halving sends everything through at the start. */
TUTTI_TEST(sim_contention_at_switches)
{
    tutti_network flat = plain(64), thin = flat;
    thin.switch_hosts = 8;
    thin.oversubscription = 8;
    double ring = simulated(&flat, "ring", 16 << 20),
           halving = simulated(&flat, "halving", 16 << 20);
    CHECK_NEAR(simulated(&thin, "ring", 16 << 20) / ring, 1, 0.01);
    CHECK(simulated(&thin, "halving", 16 << 20) > 2 * halving);
    thin.oversubscription = 1;
    CHECK_NEAR(simulated(&thin, "halving", 16 << 20) / halving, 1, 0.01);
}

TUTTI_TEST(sim_stragglers_and_late_ranks)
{
    tutti_network n = plain(32), slow = n, late = n;
    slow.stragglers = 1;
    slow.slowdown = 4;
    double ring = simulated(&n, "ring", 16 << 20);
    CHECK_NEAR(simulated(&slow, "ring", 16 << 20) / ring, 4, 0.3); /* everybody waits for it */
    late.jitter = 1e-3;
    late.seed = 5;
    tutti_simulated one, again;
    CHECK_OK(tutti__simulate(&late, "all_reduce", "ring", 1 << 20, LIMIT, &one));
    CHECK_OK(tutti__simulate(&late, "all_reduce", "ring", 1 << 20, LIMIT, &again));
    CHECK(one.total == again.total && one.total > one.seconds + 1e-3); /* replays exactly */
}

/* Several ranks on a machine share its card; within, messages are cheap. */
TUTTI_TEST(sim_machines)
{
    tutti_network n = plain(64);
    n.hosts = 8;
    n.alpha[TUTTI_LINK_WITHIN] = 1e-6;
    n.beta[TUTTI_LINK_WITHIN] = 1e-10;
    CHECK(simulated(&n, "hierarchical", 16 << 20) < 0.5 * simulated(&n, "halving", 16 << 20));
    static const char *const names[] = {"doubling", "halving", "mesh", "naive", "ring"};
    for (size_t i = 0; i < TUTTI_COUNT(names); i++) /* formulas know of the shared card */
        CHECK_NEAR(predicted(&n, names[i], 16 << 20) / simulated(&n, names[i], 16 << 20), 1, 0.3);
    tutti_simulated result;
    CHECK_STATUS(tutti__simulate(&n, "all_reduce", "direct", 8, LIMIT, &result), TUTTI_UNSUPPORTED);
    CHECK_STATUS(tutti__simulate(&n, "all_reduce", "postman", 8, LIMIT, &result), TUTTI_NOT_FOUND);
    CHECK_STATUS(tutti__simulate(&n, "all_reduce", "ring", 8, 100, &result), TUTTI_TOO_LARGE);
    CHECK_CONTAINS(tutti_error_message(), "messages");
}

TUTTI_TEST(sim_ten_thousand_ranks)
{
    tutti_network n = plain(10000);
    n.switch_hosts = 32;
    n.oversubscription = 4;
    static const char *const names[] = {"halving", "doubling", "tree", "double_tree", "central"};
    for (size_t i = 0; i < TUTTI_COUNT(names); i++)
        CHECK(simulated(&n, names[i], 1 << 20) > 0);
}

/* What an algorithm repeats is kept once. */
TUTTI_TEST(sim_traces_are_short)
{
    tutti_sim_trace trace = {.element = 4};
    for (int i = 0; i < 1000; i++) {
        size_t got = tutti__sim_trace_post(&trace, 1, false, 100);
        size_t sent = tutti__sim_trace_post(&trace, 2, true, 100);
        tutti__sim_trace_wait(&trace, got);
        tutti__sim_trace_wait(&trace, sent);
        tutti__sim_trace_copy(&trace, 100);
    }
    tutti__sim_trace_end(&trace);
    CHECK_INT(trace.group_count, 1);
    CHECK_INT(trace.groups[0].times, 1000);
    CHECK_INT(trace.messages, 1000);
    tutti__sim_trace_free(&trace);
}
