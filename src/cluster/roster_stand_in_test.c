/* roster_stand_in_test.c: a rank that is asked in rank 0's place, by one that asks wrongly. How
 * whole jobs fare without rank 0, roster_test.c says. */
#include <string.h>

#include "base/test.h"
#include "cluster/roster.h"

#define SECOND INT64_C(1000000000)

enum { SIZE = 4, OWN = 1, ASKER = 3 };

/* What went out to each rank. */
typedef struct outbox {
    int verdicts[SIZE], suspects[SIZE], drops[SIZE];
} outbox;

static void count(void *context, int rank, const tutti_message *message)
{
    outbox *out = context;
    out->verdicts[rank] += message->type == TUTTI_MESSAGE_VERDICT;
    out->suspects[rank] += message->type == TUTTI_MESSAGE_SUSPECT;
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

/* Rank 1 of a job that runs. */
static void begin(tutti_roster *roster, outbox *out)
{
    tutti_roster_options options = {.rank = OWN, .size = SIZE, .silence_ns = 5 * SECOND};
    tutti_roster_ways ways = {
        .context = out, .send = count, .drop = count_drop, .where = be_in_barrier};
    tutti_message start = {.type = TUTTI_MESSAGE_START, .as.start.size = SIZE};
    CHECK_OK(tutti__roster_init(roster, &options, &ways, SECOND));
    tutti__roster_self(roster, &(tutti_peer){.host = "b"});
    tutti__roster_linked(roster, SECOND);
    for (uint32_t r = 0; r < SIZE; r++) {
        tutti_message peer = {.type = TUTTI_MESSAGE_PEER, .as.peer = {.rank = r, .host = "a"}};
        tutti__roster_receive(roster, SECOND, 0, &peer);
    }
    tutti__roster_receive(roster, SECOND, 0, &start);
    CHECK_INT(roster->phase, TUTTI_PHASE_RUNNING);
}

static void ask(tutti_roster *roster, int rank)
{
    CHECK_INT(tutti__roster_may_stand_in(roster, rank), TUTTI_REFUSAL_NONE);
    tutti__roster_stand_in_for(roster, rank);
}

TUTTI_TEST(stand_in_is_asked_by_a_rank_once)
{
    tutti_roster roster;
    outbox out = {0};
    begin(&roster, &out);
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
    begin(&roster, &out);
    ask(&roster, ASKER);
    for (int type = TUTTI_MESSAGE_CHALLENGE; type < TUTTI_MESSAGE_TYPES; type++) {
        tutti_message m = {.type = (tutti_message_type)type};
        if (type == TUTTI_MESSAGE_VERDICT)
            m.as.verdict.why = TUTTI_FAILURE_ABORTED;
        tutti__roster_receive(&roster, SECOND, ASKER, &m);
        CHECK_INT(roster.phase, TUTTI_PHASE_RUNNING);
    }
    CHECK_STR(roster.members[0].peer.host, "a");
    CHECK(!roster.members[ASKER].left && roster.members[ASKER].reported);
    tutti__roster_leave(&roster, SECOND);
    tutti_message goodbye = {.type = TUTTI_MESSAGE_GOODBYE};
    tutti__roster_receive(&roster, SECOND, ASKER, &goodbye);
    CHECK_INT(roster.phase, TUTTI_PHASE_LEAVING);
    tutti__roster_free(&roster);
}

/* Rank 0 ends: the one that asks is told, one that never came is waited for, but not for long. */
TUTTI_TEST(stand_in_tells_those_that_ask)
{
    tutti_roster roster;
    outbox out = {0};
    tutti_message report = {.type = TUTTI_MESSAGE_REPORT},
                  verdict = {.type = TUTTI_MESSAGE_VERDICT};
    be_in_barrier(NULL, &report.as.report.where);
    verdict.as.verdict.why = TUTTI_FAILURE_ABORTED;
    begin(&roster, &out);
    ask(&roster, ASKER);
    tutti__roster_closed(&roster, SECOND, 0, "");
    CHECK_INT(roster.phase, TUTTI_PHASE_ASKING);
    for (int twice = 0; twice < 2; twice++)
        tutti__roster_receive(&roster, SECOND, ASKER, &report);
    tutti__roster_receive(&roster, SECOND, ASKER, &verdict);
    CHECK_INT(roster.phase, TUTTI_PHASE_ASKING);
    tutti__roster_tick(&roster, SECOND + 3 * SECOND / 10);
    CHECK_INT(roster.phase, TUTTI_PHASE_FAILED);
    CHECK_INT(roster.verdict.why, TUTTI_FAILURE_CLOSED);
    CHECK_CONTAINS(roster.verdict.text, "known to have arrived: 1, 3 (as rank 1 sees it");
    CHECK_INT(out.verdicts[ASKER], 1);
    CHECK_INT(out.verdicts[2], 0);
    ask(&roster, 2); /* who comes too late hears it too */
    CHECK_INT(out.verdicts[2], 1);
    tutti__roster_free(&roster);
}
