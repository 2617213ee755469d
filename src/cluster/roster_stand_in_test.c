/* roster_stand_in_test.c: one rank that asks, or is asked, in rank 0's place. How whole jobs fare
 * without rank 0, roster_test.c says. */
#include <string.h>

#include "base/test.h"
#include "cluster/roster.h"

#define SECOND INT64_C(1000000000)
#define MILLISECOND INT64_C(1000000)

enum { SIZE = 5, ASKER = 3 };

/* What went out to each rank. */
typedef struct outbox {
    int verdicts[SIZE], suspects[SIZE], reports[SIZE], drops[SIZE], calls[SIZE];
} outbox;

static void count(void *context, int rank, const tutti_cluster_message *message)
{
    outbox *out = context;
    out->verdicts[rank] += message->type == TUTTI_MESSAGE_VERDICT;
    out->suspects[rank] += message->type == TUTTI_MESSAGE_SUSPECT;
    out->reports[rank] += message->type == TUTTI_MESSAGE_REPORT;
}

static tutti_calling count_call(void *context, int rank, uint32_t purpose)
{
    TUTTI_UNUSED(purpose);
    ((outbox *)context)->calls[rank]++;
    return TUTTI_CALL_BEGUN;
}

static void count_drop(void *context, int rank)
{
    ((outbox *)context)->drops[rank]++;
}

static void be_in_barrier(void *context, tutti_wheres *ret_where)
{
    TUTTI_UNUSED(context);
    *ret_where = (tutti_wheres){.of = {{.operation = "barrier", .sequence = 7, .inside = 1}}};
}

/* A rank of a job that runs, on machines of `crowd` ranks. */
static void begin(tutti_roster *roster, outbox *out, int own, uint32_t crowd)
{
    tutti_roster_options options = {.rank = own, .size = SIZE, .silence_ns = 5 * SECOND};
    tutti_roster_ways ways = {.context = out,
                              .send = count,
                              .drop = count_drop,
                              .where = be_in_barrier,
                              .call = count_call};
    tutti_cluster_message start = {.type = TUTTI_MESSAGE_START, .as.start.size = SIZE};
    CHECK_OK(tutti__roster_init(roster, &options, &ways, SECOND));
    tutti__roster_self(roster, &(tutti_peer){.host = "b", .machine = (uint32_t)own / crowd});
    tutti__roster_linked(roster, SECOND);
    for (uint32_t r = 0; r < SIZE; r++) {
        tutti_cluster_message peer = {.type = TUTTI_MESSAGE_PEER};
        peer.as.peer.rank = r;
        peer.as.peer.machine = r / crowd;
        strcpy(peer.as.peer.host, "a");
        tutti__roster_receive(roster, SECOND, 0, &peer);
    }
    tutti__roster_receive(roster, SECOND, 0, &start);
    CHECK_INT(roster->phase, TUTTI_PHASE_RUNNING);
}

static void ask(tutti_roster *roster, int rank)
{
    CHECK_INT(tutti__roster_may_stand_in(roster, rank), TUTTI_REFUSAL_NONE);
    tutti__roster_stand_in_for(roster, SECOND, rank);
}

TUTTI_TEST(stand_in_is_asked_by_a_rank_once)
{
    tutti_roster roster;
    outbox out = {0};
    begin(&roster, &out, 1, 1);
    ask(&roster, ASKER);
    CHECK_INT(out.suspects[0], 1); /* rank 0, which is heard here, is told */
    CHECK_INT(tutti__roster_may_stand_in(&roster, ASKER), TUTTI_REFUSAL_TAKEN);
    CHECK_INT(tutti__roster_may_stand_in(&roster, 2), TUTTI_REFUSAL_NONE);
    tutti__roster_closed(&roster, SECOND, ASKER, "");
    CHECK_INT(roster.phase, TUTTI_PHASE_RUNNING);
    CHECK_INT(tutti__roster_may_stand_in(&roster, ASKER), TUTTI_REFUSAL_NONE);
    tutti__roster_free(&roster);
}

/* Only rank 0 begins, ends and judges a job, and only whom we ask ourselves in its place. */
TUTTI_TEST(stand_in_takes_nothing_but_reports_of_those_that_ask)
{
    tutti_roster roster;
    outbox out = {0};
    begin(&roster, &out, 1, 1);
    ask(&roster, ASKER);
    for (int type = TUTTI_MESSAGE_CHALLENGE; type < TUTTI_MESSAGE_TYPES; type++) {
        tutti_cluster_message m = {.type = (tutti_message_type)type};
        if (type == TUTTI_MESSAGE_VERDICT)
            m.as.verdict.why = TUTTI_FAILURE_ABORTED;
        tutti__roster_receive(&roster, SECOND, ASKER, &m);
        CHECK_INT(roster.phase, TUTTI_PHASE_RUNNING);
    }
    CHECK_STR(roster.members[0].peer.host, "a");
    CHECK(!roster.members[ASKER].left && roster.members[ASKER].reported);
    tutti__roster_leave(&roster, SECOND);
    tutti_cluster_message goodbye = {.type = TUTTI_MESSAGE_GOODBYE};
    tutti__roster_receive(&roster, SECOND, ASKER, &goodbye);
    CHECK_INT(roster.phase, TUTTI_PHASE_LEAVING);
    tutti__roster_free(&roster);
}

/* Rank 0 ends: the one that asks is told, one that never came is waited for, but not for long. */
TUTTI_TEST(stand_in_tells_those_that_ask)
{
    tutti_roster roster;
    outbox out = {0};
    tutti_cluster_message report = {.type = TUTTI_MESSAGE_REPORT},
                          verdict = {.type = TUTTI_MESSAGE_VERDICT};
    be_in_barrier(NULL, &report.as.report.where);
    verdict.as.verdict.why = TUTTI_FAILURE_ABORTED;
    begin(&roster, &out, 1, 1);
    ask(&roster, ASKER);
    tutti__roster_closed(&roster, SECOND, 0, "");
    tutti__roster_suspect(&roster, SECOND, 4, TUTTI_FAILURE_SIGNAL, 9, ""); /* is not waited for */
    CHECK_INT(roster.phase, TUTTI_PHASE_ASKING);
    for (int twice = 0; twice < 2; twice++)
        tutti__roster_receive(&roster, SECOND, ASKER, &report);
    tutti__roster_receive(&roster, SECOND, ASKER, &verdict);
    CHECK_INT(roster.phase, TUTTI_PHASE_ASKING);
    tutti__roster_tick(&roster, SECOND + 599 * MILLISECOND);
    CHECK_INT(roster.phase, TUTTI_PHASE_ASKING);
    tutti__roster_tick(&roster, SECOND + 600 * MILLISECOND);
    CHECK_INT(roster.phase, TUTTI_PHASE_FAILED);
    CHECK_INT(roster.verdict.why, TUTTI_FAILURE_CLOSED);
    CHECK_CONTAINS(roster.verdict.text, "known to have arrived: 1, 3 (as rank 1 sees it");
    CHECK_INT(out.verdicts[ASKER], 1);
    CHECK_INT(out.verdicts[2], 0);
    ask(&roster, 2); /* who comes too late hears it too */
    CHECK_INT(out.verdicts[2], 1);
    tutti__roster_free(&roster);
}

/* Of two that have ended none is waited for. */
TUTTI_TEST(stand_in_decides_when_all_that_are_left_have_come)
{
    tutti_roster roster;
    outbox out = {0};
    tutti_cluster_message report = {.type = TUTTI_MESSAGE_REPORT};
    begin(&roster, &out, 1, 1);
    tutti__roster_closed(&roster, SECOND, 0, "");
    tutti__roster_suspect(&roster, SECOND, 2, TUTTI_FAILURE_SIGNAL, 9, "");
    tutti__roster_suspect(&roster, SECOND, 4, TUTTI_FAILURE_SIGNAL, 9, "");
    ask(&roster, ASKER);
    CHECK_INT(roster.phase, TUTTI_PHASE_ASKING);
    tutti__roster_receive(&roster, SECOND, ASKER, &report);
    CHECK_INT(roster.phase, TUTTI_PHASE_FAILED);
    tutti__roster_free(&roster);
}

/* Rank 4 asks rank 3, since those below are not there, one way or another. */
TUTTI_TEST(stand_in_is_the_lowest_that_is_left)
{
    tutti_roster roster;
    outbox out = {0};
    begin(&roster, &out, 4, 1);
    tutti__roster_closed(&roster, SECOND, 0, "");
    CHECK_INT(out.calls[1], 1);
    tutti__roster_stand_in_connected(&roster, 1);
    tutti__roster_tick(&roster, SECOND + 250 * MILLISECOND);
    CHECK_INT(out.calls[2], 0);
    CHECK_INT(tutti__roster_next(&roster), SECOND + 300 * MILLISECOND);
    tutti__roster_tick(&roster, SECOND + 300 * MILLISECOND); /* mute */
    CHECK_INT(out.drops[1], 1);
    CHECK_INT(out.calls[2], 1);
    tutti__roster_suspect(&roster, SECOND + 301 * MILLISECOND, 2, TUTTI_FAILURE_EXIT, 1, "");
    CHECK_INT(out.calls[3], 1);
    tutti__roster_stand_in_reached(&roster, SECOND + 302 * MILLISECOND, 2); /* too late */
    CHECK_INT(out.drops[2], 1);
    CHECK_INT(out.reports[2], 0);
    tutti__roster_stand_in_heard(&roster, 3); /* it lives, and has much to do */
    tutti__roster_tick(&roster, SECOND + 700 * MILLISECOND);
    CHECK_INT(roster.stand_in, 3);
    tutti__roster_stand_in_reached(&roster, SECOND + 700 * MILLISECOND, 3);
    CHECK_INT(out.reports[3], 1);
    tutti_cluster_message verdict = {.type = TUTTI_MESSAGE_VERDICT};
    verdict.as.verdict.why = TUTTI_FAILURE_ABORTED;
    tutti__roster_receive(&roster, SECOND + 701 * MILLISECOND, 3, &verdict);
    CHECK_INT(roster.verdict.why, TUTTI_FAILURE_ABORTED);
    CHECK_INT(out.drops[3], 1); /* it waits for that */
    tutti__roster_free(&roster);
}

/* How many are called until rank 4 finds itself the lowest, when nobody answers. */
static int count_calls(uint32_t crowd)
{
    tutti_roster roster;
    outbox out = {0};
    int calls = 0;
    begin(&roster, &out, 4, crowd);
    tutti__roster_closed(&roster, SECOND, 0, "");
    for (int64_t at = SECOND; roster.stand_in != 4;) {
        int called = roster.stand_in;
        calls++;
        CHECK_INT(out.calls[called], 1);
        at += (calls == 1 ? 100 : 25) * MILLISECOND;
        tutti__roster_tick(&roster, at - 1);
        CHECK_INT(roster.stand_in, called);
        tutti__roster_tick(&roster, at);
    }
    tutti__roster_free(&roster);
    return calls;
}

/* A machine that is not there is asked once; of this machine, which is there, each rank. */
TUTTI_TEST(stand_in_on_a_machine_that_is_gone_is_passed_over_with_all_others_there)
{
    CHECK_INT(count_calls(1), 3);
    CHECK_INT(count_calls(4), 1);
    CHECK_INT(count_calls(2), 2);
    CHECK_INT(count_calls(SIZE), 3);
}

/* Time in which this process did not run is not the stand-in's. */
TUTTI_TEST(stand_in_is_not_passed_over_for_a_pause_of_who_asks)
{
    tutti_roster roster;
    outbox out = {0};
    begin(&roster, &out, 4, 1);
    tutti__roster_closed(&roster, SECOND, 0, "");
    tutti__roster_tick(&roster, 5 * SECOND);
    CHECK_INT(roster.stand_in, 1);
    CHECK_INT(roster.phase, TUTTI_PHASE_ASKING);
    tutti__roster_free(&roster);
}

/* Rank 0 is silent, and its link stands while the launcher says that it has exited. */
TUTTI_TEST(stand_in_tells_a_cut_network_from_rank_0s_exit)
{
    tutti_roster roster;
    outbox out = {0};
    begin(&roster, &out, 1, 1);
    for (int64_t now = SECOND; now < 7 * SECOND; now += SECOND)
        tutti__roster_tick(&roster, now);
    tutti__roster_tick(&roster, 6 * SECOND + 1);
    CHECK_INT(out.suspects[0], 1); /* for when it wakes */
    CHECK_INT(out.drops[0], 1);
    tutti__roster_suspect(&roster, 6 * SECOND + 2, 0, TUTTI_FAILURE_EXIT, 1, "");
    tutti__roster_tick(&roster, 7 * SECOND);
    CHECK_INT(roster.phase, TUTTI_PHASE_FAILED);
    CHECK_CONTAINS(roster.verdict.text, "the network to it is cut");
    tutti__roster_free(&roster);
}

/* Rank 0, which the others have given up while it slept, or not, as `away` says: whom it blames
 * when it hears first of rank 2, which had told rank 1 before. */
static int blame(bool away)
{
    tutti_roster roster;
    outbox out = {0};
    tutti_roster_options options = {.size = SIZE, .silence_ns = 5 * SECOND};
    tutti_roster_ways ways = {
        .context = &out, .send = count, .drop = count_drop, .where = be_in_barrier};
    tutti_cluster_message of_2 = {.type = TUTTI_MESSAGE_SUSPECT}, of_0 = of_2;
    CHECK_OK(tutti__roster_init(&roster, &options, &ways, SECOND));
    for (int r = 1; r < SIZE; r++)
        tutti__roster_admit(&roster, SECOND, r, &(tutti_peer){.host = "a"});
    int64_t now = away ? 9 * SECOND : SECOND;
    of_2.as.suspect.rank = 2;
    of_2.as.suspect.why = TUTTI_FAILURE_SUSPECTED;
    of_0.as.suspect.why = TUTTI_FAILURE_SILENT;
    tutti__roster_receive(&roster, now, 1, &of_2);
    for (int r = 1; r < SIZE; r++) {
        tutti__roster_receive(&roster, now, r, &of_0);
        tutti__roster_closed(&roster, now, r, "");
    }
    CHECK_INT(roster.phase, TUTTI_PHASE_FAILED);
    int rank = roster.verdict.rank;
    tutti__roster_free(&roster);
    return rank;
}

TUTTI_TEST(stand_in_is_asked_while_rank_0_sleeps_and_rank_0_blames_itself)
{
    CHECK_INT(blame(true), 0);
    CHECK_INT(blame(false), 2);
}
