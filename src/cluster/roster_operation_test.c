/* roster_operation_test.c: what the verdict says of who was in which operation of which group. */
#include <stdio.h>
#include <string.h>

#include "cluster/testing_roster.h"

enum { RANKS = 5 };
static tutti_roster roster;

static void send_nowhere(void *context, int rank, const tutti_cluster_message *message)
{
    TUTTI_UNUSED(context);
    TUTTI_UNUSED(rank);
    TUTTI_UNUSED(message);
}

/* Where rank 0 is, is set by `is_in` like everybody's. */
static void as_it_was(void *context, tutti_wheres *ret_where)
{
    TUTTI_UNUSED(context);
    *ret_where = roster.members[0].where;
}

static void begin_job(void)
{
    tutti_roster_options options = {.size = RANKS, .silence_ns = SILENCE};
    tutti_roster_ways ways = {.send = send_nowhere, .where = as_it_was};
    CHECK_OK(tutti__roster_init(&roster, &options, &ways, 0));
    for (int r = 0; r < RANKS; r++) {
        tutti_peer peer = {.pid = 100 + r, .port = 1000 + r};
        snprintf(peer.host, sizeof peer.host, "a");
        if (r == 0)
            tutti__roster_self(&roster, &peer);
        else
            tutti__roster_admit(&roster, 0, r, &peer);
    }
    CHECK_INT(roster.phase, TUTTI_PHASE_RUNNING);
}

/* `members` as bits; group 0 is all ranks. */
static void is_in(int rank, uint64_t group, uint64_t members, uint64_t sequence, bool inside)
{
    tutti_where *of = roster.members[rank].where.of;
    int i = group == 0 ? 0 : 1;
    while (i > 0 && of[i].operation[0] != '\0' && of[i].group != group)
        i++;
    of[i] = (tutti_where){.group = group, .sequence = sequence, .inside = inside};
    of[i].members.bits[0] = members;
    snprintf(of[i].operation, sizeof of[i].operation, group == 0 ? "barrier" : "all_reduce");
}

/* The verdict on a rank whose connection ends, when all others have answered. */
static const char *lose(int rank)
{
    for (int r = 1; r < RANKS; r++)
        roster.members[r].reported = r != rank;
    tutti__roster_closed(&roster, 1, rank, "");
    tutti__roster_tick(&roster, SECOND);
    CHECK_INT(roster.phase, TUTTI_PHASE_FAILED);
    return roster.verdict.text;
}

TUTTI_TEST(verdict_names_an_operation_of_a_group)
{
    begin_job();
    is_in(1, 20, 0x16, 7, true);  /* ranks 1, 2 and 4 */
    is_in(2, 20, 0x16, 6, false); /* the one that dies: it has not come */
    is_in(4, 20, 0x16, 7, true);
    is_in(0, 0, 0, 9, false);
    CHECK_CONTAINS(lose(2), "; in all_reduce number 7 of a group of 3 ranks; arrived: 1, 4; "
                            "missing: 2");
    CHECK_INT(roster.verdict.group, 20);
    CHECK_INT(roster.verdict.members.bits[0], 0x16);
    CHECK_INT(roster.verdict.arrived_count, 2);
    tutti__roster_free(&roster);
}

/* Whoever has never come to a group's operation is missing all the same; whoever has left it has
 * arrived, also when it waits elsewhere since. */
TUTTI_TEST(verdict_knows_members_that_said_nothing_of_their_group)
{
    begin_job();
    is_in(0, 20, 0x0f, 1, true);
    is_in(1, 20, 0x0f, 1, true);
    is_in(2, 20, 0x0f, 1, true);
    is_in(2, 0, 0, 4, true);
    CHECK_CONTAINS(lose(3), "; in all_reduce number 1 of a group of 4 ranks; arrived: 0-2; "
                            "missing: 3");
    tutti__roster_free(&roster);
}

/* Ranks that wait for those who are stuck in a group are not where the culprit is missed. */
TUTTI_TEST(verdict_names_the_group_that_waits_for_the_culprit)
{
    begin_job();
    is_in(0, 20, 0x03, 3, true); /* another group, that nobody is missing in */
    is_in(1, 20, 0x03, 3, true);
    is_in(2, 21, 0x0c, 30, true);
    is_in(4, 0, 0, 5, true); /* rank 4 waits for all of them */
    CHECK_CONTAINS(lose(3), "; in all_reduce number 30 of a group of 2 ranks; arrived: 2; "
                            "missing: 3");
    tutti__roster_free(&roster);
    begin_job();
    for (int r = 0; r < RANKS - 1; r++)
        is_in(r, 0, 0, 5, true);
    is_in(0, 20, 0x11, 8, true); /* asynchronous, beside that of all ranks */
    is_in(4, 20, 0x11, 7, false);
    CHECK_CONTAINS(lose(4), "; in barrier number 5; arrived: 0-3; missing: 4");
    tutti__roster_free(&roster);
}

/* Of two that nobody else is missing in, the one that the culprit has not come to. */
TUTTI_TEST(verdict_names_what_the_culprit_is_missing_from)
{
    begin_job();
    is_in(1, 20, 0x06, 8, true); /* ranks 1 and 2, asynchronous */
    is_in(2, 20, 0x06, 8, true);
    is_in(3, 21, 0x1c, 4, true); /* ranks 2, 3 and 4 */
    is_in(4, 21, 0x1c, 4, true);
    CHECK_CONTAINS(lose(2), "; in all_reduce number 4 of a group of 3 ranks; arrived: 3-4; "
                            "missing: 2");
    tutti__roster_free(&roster);
    begin_job();
    is_in(2, 20, 0x0c, 8, true); /* it died in the operation that rank 3 is in, too */
    is_in(3, 20, 0x0c, 8, true);
    is_in(0, 21, 0x0d, 4, true); /* which waits for both */
    CHECK_CONTAINS(lose(2), "; in all_reduce number 8 of a group of 2 ranks; arrived: 2-3");
    tutti__roster_free(&roster);
}

TUTTI_TEST(verdict_compares_numbers_within_a_group_only)
{
    begin_job();
    for (int r = 0; r < RANKS; r++)
        is_in(r, 0, 0, 900, false); /* is no sign that the group's seventh is over */
    is_in(0, 20, 0x05, 7, true);
    is_in(3, 21, 0x0a, 500, false);
    CHECK_CONTAINS(lose(2), "; in all_reduce number 7 of a group of 2 ranks; arrived: 0; "
                            "missing: 2");
    tutti__roster_free(&roster);
    begin_job();
    is_in(2, 20, 0x05, 7, true); /* its last word is old: others were in other groups since */
    is_in(0, 21, 0x03, 9, false);
    CHECK_CONTAINS(lose(2), "; no collective waited for it");
    tutti__roster_free(&roster);
    begin_job();
    is_in(0, 20, 0x03, 7, true); /* ranks 0 and 1 go on by themselves */
    is_in(1, 20, 0x03, 6, false);
    CHECK_CONTAINS(lose(2), "; no collective waited for it");
    CHECK_STR(roster.verdict.operation, "");
    tutti__roster_free(&roster);
}

TUTTI_TEST(verdict_lists_nobody_as_missing_where_members_are_not_known)
{
    begin_job();
    is_in(1, 20, 0, 7, true);
    is_in(4, 20, 0, 7, true);
    const char *text = lose(2);
    CHECK_CONTAINS(text, "; in all_reduce number 7 of a group whose ranks are not known; "
                         "arrived: 1, 4");
    CHECK(strstr(text, "missing") == NULL);
    tutti__roster_free(&roster);
}

TUTTI_TEST(verdict_of_a_group_as_one_rank_sees_it)
{
    tutti_verdict v = {.rank = 0, .why = TUTTI_FAILURE_CLOSED, .group = 20, .sequence = 7};
    snprintf(v.operation, sizeof v.operation, "all_reduce");
    v.members.bits[0] = 0x07;
    tutti__ranks_add(&v.arrived, 2);
    tutti__verdict_write(&v, RANKS, 2);
    CHECK_CONTAINS(v.text, "; in all_reduce number 7 of a group of 3 ranks; known to have arrived: "
                           "2 (as rank 2 sees it");
}

/* Ranks of the writer's machine have left their word; of rank 1 nothing is known at first. */
TUTTI_TEST(verdict_of_one_rank_is_completed_by_others)
{
    tutti_verdict v = {.rank = 0, .why = TUTTI_FAILURE_CLOSED, .group = 20, .sequence = 7};
    tutti_ranks come = {0}, absent = {0};
    snprintf(v.operation, sizeof v.operation, "all_reduce");
    v.members.bits[0] = 0x0f;
    tutti__ranks_add(&v.arrived, 2);
    v.arrived_count = 1;
    tutti__ranks_add(&come, 2);
    tutti__ranks_add(&come, 3);
    tutti__ranks_add(&come, 4); /* no member */
    tutti__ranks_add(&absent, 0);
    tutti__verdict_add(&v, RANKS, &come, &absent);
    tutti__verdict_write(&v, RANKS, 2);
    CHECK_INT(v.arrived_count, 2);
    CHECK_CONTAINS(v.text, "; known to have arrived: 2-3 (as rank 2 sees it");
    tutti__ranks_add(&absent, 1);
    tutti__verdict_add(&v, RANKS, &come, &absent);
    tutti__verdict_write(&v, RANKS, 2);
    CHECK_CONTAINS(v.text, "; arrived: 2-3; missing: 0-1");
    CHECK(strstr(v.text, "as rank") == NULL);
}

/* Ranks that are further on wait for those whom the culprit holds up; what one of them has left,
 * all have come to. */
TUTTI_TEST(verdict_names_the_earliest_operation_that_ranks_are_in)
{
    begin_job();
    for (int r = 0; r < RANKS; r++)
        is_in(r, 0, 0, r == 2 ? 13 : 12, true);
    is_in(4, 0, 0, 9, true); /* as its last beat said */
    CHECK_CONTAINS(lose(4), "; in barrier number 12; arrived: 0-4; missing: none");
    tutti__roster_free(&roster);
    begin_job();
    for (int r = 0; r < RANKS - 1; r++)
        is_in(r, 0, 0, 12, r > 0);
    for (int r = 0; r < RANKS - 1; r++) /* whose root goes on before others have come */
        strcpy(roster.members[r].where.of[0].operation, "broadcast weights");
    CHECK_CONTAINS(lose(4), "; in broadcast weights number 12; arrived: 0-3; missing: 4");
    tutti__roster_free(&roster);
}

/* Rank `from` says that its deadline has passed; all answer but `mute` (0: all do). */
static const char *give_up(int from, const char *reason, int mute)
{
    tutti_cluster_message m = {.type = TUTTI_MESSAGE_SUSPECT};
    m.as.suspect.rank = (uint32_t)from;
    m.as.suspect.why = TUTTI_FAILURE_BROKEN;
    m.as.suspect.detail = TUTTI_DEADLINE;
    snprintf(m.as.suspect.reason, sizeof m.as.suspect.reason, "%s", reason);
    tutti__roster_receive(&roster, SECOND, from, &m);
    for (int r = 1; r < RANKS; r++) {
        tutti_cluster_message answer = {.type = TUTTI_MESSAGE_REPORT};
        answer.as.report.where = roster.members[r].where;
        if (r != mute)
            tutti__roster_receive(&roster, SECOND + 1, r, &answer);
    }
    CHECK_INT(roster.phase, mute > 0 ? TUTTI_PHASE_ASKING : TUTTI_PHASE_FAILED);
    tutti__roster_tick(&roster, 2 * SECOND);
    CHECK_INT(roster.phase, TUTTI_PHASE_FAILED);
    return roster.verdict.text;
}

TUTTI_TEST(verdict_at_a_deadline_names_who_does_not_answer)
{
    begin_job();
    for (int r = 0; r < RANKS; r++)
        is_in(r, 0, 0, r == 3 ? 6 : 7, r != 3);
    const char *text = give_up(1, "barrier number 7 (tree): waited too long for rank 2", 3);
    CHECK_CONTAINS(text, "rank 3 (host a, process 103) has not been heard for 2.0 s");
    CHECK_CONTAINS(text, "; in barrier number 7; arrived: 0-2, 4; missing: 3");
    CHECK(strstr(text, "waited too long") == NULL);
    CHECK_INT(roster.verdict.rank, 3);
    tutti__roster_free(&roster);
    begin_job();
    is_in(1, 20, 0x06, 7, true); /* ranks 1 and 2, who has not come: nobody waits for rank 3 */
    text = give_up(1, "all_reduce number 7 (tree): waited too long for rank 2", 3);
    CHECK_CONTAINS(text, "waited too long for rank 2 (host a, process 102), says rank 1; in "
                         "all_reduce number 7 of a group of 2 ranks; arrived: 1; missing: 2");
    tutti__roster_free(&roster);
}

/* Each is a root that waits for the others. */
TUTTI_TEST(verdict_at_a_deadline_to_which_all_have_come_doubts_the_calls)
{
    begin_job();
    for (int r = 0; r < RANKS; r++)
        is_in(r, 0, 0, 7, true);
    const char *text = give_up(1, "reduce number 7 (tree): waited too long for rank 2", 0);
    CHECK_CONTAINS(text, "missing: none (do all call it with the same sizes, type and root?)");
    tutti__roster_free(&roster);
}

/* Of several under way it is the one whose deadline has passed. */
TUTTI_TEST(verdict_at_a_deadline_names_the_operation_that_was_told_of)
{
    begin_job();
    is_in(1, 20, 0x06, 7, true); /* ranks 1 and 2, who has not come */
    is_in(2, 20, 0x06, 6, false);
    is_in(1, 21, 0x0a, 9, true); /* asynchronous, and all have come */
    is_in(3, 21, 0x0a, 9, true);
    CHECK_CONTAINS(give_up(1, "all_reduce number 7 (ring): waited too long for rank 2", 0),
                   "waited too long for rank 2 (host a, process 102), says rank 1; in all_reduce "
                   "number 7 of a group of 2 ranks; arrived: 1; missing: 2");
    tutti__roster_free(&roster);
}

/* Who has not come is named, not one that waits as well, or is still in what comes before. */
TUTTI_TEST(verdict_at_a_deadline_names_who_has_not_come)
{
    begin_job();
    for (int r = 0; r < RANKS; r++)
        is_in(r, 0, 0, r == 3 ? 6 : 7, r != 3);
    CHECK_CONTAINS(give_up(1, "barrier number 7 (tree): waited too long for rank 2", 0),
                   "waited too long for rank 3 (host a, process 103), says rank 1; in barrier "
                   "number 7; arrived: 0-2, 4; missing: 3");
    tutti__roster_free(&roster);
    begin_job();
    for (int r = 0; r < RANKS; r++)
        is_in(r, 0, 0, r == 1 ? 7 : 6, true);
    CHECK_CONTAINS(give_up(1, "barrier number 7 (tree): waited too long for rank 2", 0),
                   "waited too long for rank 2, says rank 1; in barrier number 7; arrived: 1; "
                   "missing: 0, 2-4");
    tutti__roster_free(&roster);
}

/* The end of a rank's link comes a moment after another has missed it: it says more. */
TUTTI_TEST(verdict_waits_for_the_end_of_a_link_that_others_have_lost)
{
    tutti_cluster_message missed = {.type = TUTTI_MESSAGE_SUSPECT};
    begin_job();
    missed.as.suspect.rank = 2;
    missed.as.suspect.why = TUTTI_FAILURE_SUSPECTED;
    snprintf(missed.as.suspect.reason, sizeof missed.as.suspect.reason, "rank 3 says: gone");
    tutti__roster_receive(&roster, 1, 3, &missed);
    for (int r = 1; r < RANKS; r++)
        if (r != 2)
            tutti__roster_receive(&roster, 2, r,
                                  &(tutti_cluster_message){.type = TUTTI_MESSAGE_REPORT});
    CHECK_INT(roster.phase, TUTTI_PHASE_ASKING);
    tutti__roster_closed(&roster, 3, 2, "");
    CHECK_INT(roster.phase, TUTTI_PHASE_FAILED);
    CHECK_INT(roster.verdict.why, TUTTI_FAILURE_CLOSED);
    tutti__roster_free(&roster);
}

/* For the launcher, which says once what every rank's verdict holds. */
TUTTI_TEST(roster_verdict_says_who_waits_for_a_rank)
{
    char text[400];
    tutti_verdict v = {.rank = 2, .why = TUTTI_FAILURE_SIGNAL, .detail = 9, .sequence = 42};
    tutti__verdict_write(&v, 4, 0);
    CHECK_INT(tutti__verdict_failure_size(&v), strstr(v.text, "; no collective") - v.text);
    tutti__verdict_waiting(&v, 4, text, sizeof text);
    CHECK_STR(text, "no rank waited for it in a collective");
    snprintf(v.operation, sizeof v.operation, "all_reduce");
    for (int r = 0; r < 4; r++)
        tutti__ranks_add(&v.arrived, r);
    tutti__verdict_write(&v, 4, 0);
    CHECK_INT(tutti__verdict_failure_size(&v), strstr(v.text, "; in all_reduce") - v.text);
    tutti__verdict_waiting(&v, 4, text, sizeof text);
    CHECK_STR(text, "waiting for it: ranks 0-1, 3, in all_reduce number 42");
    snprintf(v.text, sizeof v.text, "somebody else's words");
    CHECK_INT(tutti__verdict_failure_size(&v), strlen(v.text));
}
