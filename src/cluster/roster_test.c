/* roster_test.c: how whole jobs end under a simulator of network and time. TUTTI_TEST_SEED=17
 * replays one seed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/testing_roster.h"

/* For words that go from rank to rank one after the other. */
static bool is_slow(const simulation *sim)
{
    return sim->delay > FAST / 2 || sim->proof > 1;
}

static void check_culprit(const simulation *sim, const node *n)
{
    int culprit = n->roster.verdict.rank, link = sim->victim == 0 ? sim->other : sim->victim;
    HOLDS(n->roster.verdict.text[0] != '\0');
    if (sim->fault == FAULT_SUSPECT)
        HOLDS((int64_t)culprit == (int64_t)(sim->other));
    else if (sim->fault == FAULT_SPLIT)
        HOLDS((sim->half >> culprit & 1) != (sim->half >> n->rank & 1));
    else if (sim->fault == FAULT_HALF_OPEN || sim->fault == FAULT_RESET || sim->fault == FAULT_CUT)
        HOLDS(culprit == link || culprit == 0);
    else if (sim->fault == FAULT_STOP_ABORT) /* over a slow network it may be heard of too late */
        HOLDS(culprit == sim->other || (culprit == 0 && is_slow(sim)));
    else if (sim->fault == FAULT_KILL_TWO && !n->roster.met) /* whose end is heard of first */
        HOLDS(culprit == sim->victim || culprit == sim->other);
    else if (n->rank != sim->victim || sim->fault == FAULT_ABORT)
        HOLDS((int64_t)culprit == (int64_t)(sim->victim));
    if (sim->fault == FAULT_ABORT || sim->fault == FAULT_ABORT_STOP ||
        (sim->fault == FAULT_STOP_ABORT && !is_slow(sim)))
        HOLDS(n->roster.verdict.why == TUTTI_FAILURE_ABORTED &&
              strcmp(n->roster.verdict.reason, "loss is NaN") == 0);
    if (sim->fault == FAULT_KILL && sim->supervised)
        HOLDS((int64_t)n->roster.verdict.why == (int64_t)(TUTTI_FAILURE_SIGNAL));
}

static bool is_left(const node *n)
{
    return !n->dead && !n->stopped;
}

static bool say_the_same(const node *a, const node *b)
{
    return strcmp(a->roster.verdict.text, b->roster.verdict.text) == 0;
}

/* Rank 0 is lost, and its stand-in asks: all that are left say the same, and know of each other. */
static void check_without_zero(const simulation *sim)
{
    bool alone = sim->fault == FAULT_KILL || sim->fault == FAULT_STOP ||
                 sim->fault == FAULT_PARTITION || sim->fault == FAULT_STOP_ABORT ||
                 sim->fault == FAULT_STOP_LATE ||
                 sim->fault == FAULT_ABORT_STOP; /* others are well */
    bool lost = alone || sim->fault == FAULT_MACHINE ||
                (sim->fault == FAULT_KILL_STOP && !sim->late && !is_slow(sim));
    bool told = sim->fault == FAULT_STOP_ABORT || sim->fault == FAULT_STOP_LATE; /* one by one */
    bool fast = told ? !is_slow(sim) : sim->delay <= FAST;
    const node *first = NULL;
    if (!sim->broken || !lost || sim->victim != 0 || !fast)
        return;
    for (int r = 1; r < sim->size; r++) {
        const node *n = &sim->nodes[r];
        if (!is_left(n))
            continue;
        first = first != NULL ? first : n;
        HOLDS(say_the_same(n, first));
        HOLDS(!alone || strstr(n->roster.verdict.text, "cannot be asked") == NULL);
    }
}

/* Each side of a cut network says one thing. */
static void check_sides(const simulation *sim)
{
    if (!sim->broken || sim->fault != FAULT_SPLIT || sim->delay > FAST)
        return;
    for (int a = 0; a < sim->size; a++)
        for (int b = 0; b < a; b++)
            HOLDS((sim->half >> a & 1) != (sim->half >> b & 1) ||
                  say_the_same(&sim->nodes[a], &sim->nodes[b]));
}

/* The link between rank 0 and another fails: that one hears from a third what rank 0 says. */
static void check_one_link(const simulation *sim)
{
    int link = sim->victim == 0 ? sim->other : sim->victim;
    bool one =
        sim->fault == FAULT_RESET || sim->fault == FAULT_HALF_OPEN || sim->fault == FAULT_CUT;
    bool over =
        sim->nodes[0].roster.phase == TUTTI_PHASE_LEFT; /* all but its goodbye to that one */
    bool fast = sim->delay <= FAST;
    if (sim->fault == FAULT_CUT) /* rank 0 may hear of it by rank 1 */
        fast = !is_slow(sim);
    if (!sim->broken || !one || (link == 1 && sim->size == 2) || over || !fast)
        return;
    for (int r = 0; r < sim->size; r++)
        HOLDS(say_the_same(&sim->nodes[r], &sim->nodes[0]));
}

/* Whoever sleeps is given up by all, itself too, or by nobody; rank 0 may have found that all had
 * come to the end. */
static void check_sleep(const simulation *sim)
{
    tutti_phase zero = sim->nodes[0].roster.phase;
    if (!sim->broken || sim->fault != FAULT_SLEEP)
        return;
    for (int r = 0; r < sim->size; r++) {
        const tutti_roster *roster = &sim->nodes[r].roster;
        HOLDS(roster->phase == zero || zero == TUTTI_PHASE_LEFT);
        HOLDS(roster->phase == TUTTI_PHASE_LEFT || roster->verdict.rank == sim->victim);
    }
}

static void check_end(const simulation *sim)
{
    static const int64_t limits[FAULT_COUNT] = {
        [FAULT_KILL] = SECOND,           [FAULT_RESET] = SECOND,
        [FAULT_SUSPECT] = SECOND,        [FAULT_ABORT] = SECOND,
        [FAULT_KILL_TWO] = SECOND,       [FAULT_KILL_STOP] = SECOND,
        [FAULT_KILL_DEAF] = SECOND,      [FAULT_KILL_LOSE] = SECOND,
        [FAULT_STOP_ABORT] = 3 * SECOND, [FAULT_STOP_LATE] = 3 * SECOND,
        [FAULT_ABORT_STOP] = 3 * SECOND, [FAULT_SLEEP] = INT64_MAX,
    };
    int64_t limit = limits[sim->fault] > 0 ? limits[sim->fault] : SILENCE + 2 * SECOND;
    if (sim->delay > 2 * FAST && limit != INT64_MAX)
        limit += SECOND;
    for (int r = 0; r < sim->size; r++) {
        const node *n = &sim->nodes[r];
        if (!is_left(n))
            continue;
        HOLDS(ended(n));
        bool heard =
            sim->fault == FAULT_HALF_OPEN && !sim->lost[sim->victim ? sim->victim : sim->other][0];
        if (sim->broken && heard && n->roster.phase == TUTTI_PHASE_LEFT)
            continue; /* whoever waited for nothing but his goodbye fails alone */
        if (sim->broken && sim->fault != FAULT_SLEEP) {
            HOLDS((int64_t)n->roster.phase == (int64_t)(TUTTI_PHASE_FAILED));
            HOLDS(n->ended_at - sim->fault_at <= limit);
            check_culprit(sim, n);
        } else if (sim->fault == FAULT_NONE || sim->fault == FAULT_PAUSE ||
                   sim->fault == FAULT_LEAP || sim->fault == FAULT_LOSS) {
            HOLDS(n->roster.verdict.text[0] == '\0');
            HOLDS((int64_t)n->roster.phase == (int64_t)(TUTTI_PHASE_LEFT));
        } else if (n->roster.phase == TUTTI_PHASE_FAILED) /* while some had come to the end */
            check_culprit(sim, n);
    }
}

TUTTI_TEST(roster_holds_under_thousands_of_seeds)
{
    const char *one = getenv("TUTTI_TEST_SEED"), *many = getenv("TUTTI_TEST_SEEDS");
    uint64_t first = one != NULL ? strtoull(one, NULL, 10) : 1;
    uint64_t count = many != NULL           ? strtoull(many, NULL, 10)
                     : one != NULL          ? 1
                     : TUTTI_TEST_SANITIZED ? 500
                                            : 4000;
    for (uint64_t seed = first; seed < first + count; seed++) {
        static simulation sim; /* of the present seed, for a debugger */
        tutti__simulation_run(&sim, seed);
        check_end(&sim);
        check_without_zero(&sim);
        check_sides(&sim);
        check_one_link(&sim);
        check_sleep(&sim);
        tutti__simulation_free(&sim);
    }
}

/* A rank that was told sooner that the job is over may meet its old rank 0 when it opens the next
 * one; who comes late to a job that runs is sent away. */
TUTTI_TEST(roster_tells_an_ended_job_from_a_running_one)
{
    tutti_roster roster;
    tutti_roster_options options = {.size = 1, .silence_ns = SILENCE};
    tutti_roster_ways ways = {0};
    CHECK_OK(tutti__roster_init(&roster, &options, &ways, 0));
    CHECK_INT(tutti__roster_may_admit(&roster, 0), TUTTI_REFUSAL_LATE);
    tutti__roster_leave(&roster, 1);
    CHECK_INT(roster.phase, TUTTI_PHASE_LEFT);
    CHECK_INT(tutti__roster_may_admit(&roster, 0), TUTTI_REFUSAL_ENDING);
    roster.phase = TUTTI_PHASE_PARTING;
    CHECK_INT(tutti__roster_may_admit(&roster, 0), TUTTI_REFUSAL_ENDING);
    roster.phase = TUTTI_PHASE_FAILED;
    CHECK_INT(tutti__roster_may_admit(&roster, 0), TUTTI_REFUSAL_LATE); /* nobody had met */
    roster.met = true;
    CHECK_INT(tutti__roster_may_admit(&roster, 0), TUTTI_REFUSAL_ENDING);
    roster.phase = TUTTI_PHASE_ASKING;
    CHECK_INT(tutti__roster_may_admit(&roster, 0), TUTTI_REFUSAL_ENDING);
    roster.phase = TUTTI_PHASE_RUNNING;
    CHECK_INT(tutti__roster_may_admit(&roster, 0), TUTTI_REFUSAL_LATE);
    tutti__roster_free(&roster);
}

static void send_nothing(void *context, int rank, const tutti_cluster_message *message)
{
    TUTTI_UNUSED(context);
    TUTTI_UNUSED(rank);
    TUTTI_UNUSED(message);
}

static void be_nowhere(void *context, tutti_wheres *ret_where)
{
    TUTTI_UNUSED(context);
    *ret_where = (tutti_wheres){0};
}

/* What rank 0 says of rank 1, of which the launcher says after so long a silence that it exited. */
static tutti_verdict verdict_on_exit(int64_t silent_ns, bool link_ends)
{
    tutti_roster roster;
    tutti_roster_options options = {.size = 2, .silence_ns = SILENCE, .supervised = true};
    tutti_roster_ways ways = {.send = send_nothing, .where = be_nowhere};
    tutti_peer peer = {.pid = 42, .host = "b"};
    int64_t now = SECOND;
    CHECK_OK(tutti__roster_init(&roster, &options, &ways, now));
    tutti__roster_self(&roster, &peer);
    tutti__roster_admit(&roster, now, 1, &peer);
    for (int64_t end = now + silent_ns; now < end; now += SECOND / 10)
        tutti__roster_tick(&roster, now);
    tutti__roster_suspect(&roster, now, 1, TUTTI_FAILURE_EXIT, 1, "");
    if (link_ends)
        tutti__roster_closed(&roster, now, 1, "");
    tutti__roster_tick(&roster, now + SECOND);
    CHECK_INT(roster.phase, TUTTI_PHASE_FAILED);
    tutti_verdict verdict = roster.verdict;
    tutti__roster_free(&roster);
    return verdict;
}

/* A rank that heard nothing of us gives up, and its exit is only the consequence of the silence. */
TUTTI_TEST(verdict_tells_a_cut_network_from_an_exit)
{
    tutti_verdict v = verdict_on_exit(4 * SECOND, false);
    CHECK_INT(v.why, TUTTI_FAILURE_SILENT);
    CHECK_CONTAINS(v.text, "rank 1 (host b, process 42) has not been heard for 5.0 s: that it has "
                           "exited with code 1 meanwhile is known by the launcher alone");
    CHECK_INT(verdict_on_exit(4 * SECOND, true).why, TUTTI_FAILURE_EXIT);
    CHECK_INT(verdict_on_exit(SECOND, false).why, TUTTI_FAILURE_EXIT);
}

TUTTI_TEST(verdict_says_of_a_rank_what_is_known)
{
    tutti_verdict v = {.rank = 1, .why = TUTTI_FAILURE_SIGNAL, .detail = 9};
    tutti__verdict_write(&v, 2, 0);
    CHECK_CONTAINS(v.text, "rank 1 (which was not met yet) was ended by signal 9");
    snprintf(v.host, sizeof v.host, "a");
    v.pid = 42;
    tutti__verdict_write(&v, 2, 0);
    CHECK_CONTAINS(v.text, "rank 1 (host a, process 42) was ended by signal 9");
    v.why = TUTTI_FAILURE_ABORTED;
    snprintf(v.reason, sizeof v.reason, "loss is NaN");
    tutti__verdict_write(&v, 2, 0);
    CHECK_CONTAINS(v.text, "rank 1 aborted: loss is NaN; it was process 42 on host a; ");
}
