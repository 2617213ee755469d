/* skew_test.c: who is late, and how often others waited for him. */
#include <string.h>

#include "base/test.h"
#include "cluster/roster.h"

enum { RANKS = 3 };

/* Rank r comes at[r] milliseconds after the first to operation `sequence`. */
static void come(struct tutti_skews *skews, tutti_roster *roster, uint64_t sequence,
                 const double at[RANKS])
{
    for (int r = 0; r < RANKS; r++) {
        tutti_arrival arrival = {.sequence = sequence,
                                 .at_ns = INT64_C(1000000000) + (int64_t)(at[r] * 1e6)};
        tutti__skews_add(skews, roster, r, &arrival, 1);
    }
}

static struct tutti_skews *nobody_came(int size, tutti_roster_member *members, tutti_roster *roster)
{
    struct tutti_skews *skews;
    memset(members, 0, (size_t)size * sizeof *members);
    *roster = (tutti_roster){.members = members};
    CHECK_OK(tutti__skews_create(size, &skews));
    return skews;
}

/* Rank 1 holds up every other operation; to the rest all come within microseconds, rank 2 last. */
TUTTI_TEST(skew_counts_who_held_the_others_up)
{
    tutti_roster_member members[RANKS];
    tutti_roster roster;
    struct tutti_skews *skews = nobody_came(RANKS, members, &roster);
    for (uint64_t i = 1; i <= 20; i++)
        come(skews, &roster, i, i % 2 ? (double[]){0, 20, 0.5} : (double[]){0, 0.001, 0.002});
    CHECK_INT(members[1].skew.samples, 20);
    CHECK_INT(members[1].skew.last_by[0], 10);
    CHECK_INT(members[2].skew.last_by[0], 0);
    CHECK_NEAR((double)members[1].skew.mean_ns, 10e6, 0.01e6);
    CHECK_NEAR((double)members[1].skew.most_ns, 20e6, 1);
    CHECK_INT(tutti__skews_straggler(&roster, RANKS), 1);
    come(skews, &roster, 21, (double[]){0, 0.001, 5000}); /* a pause of another rank */
    CHECK(members[2].skew.mean_ns > members[1].skew.mean_ns);
    CHECK_INT(tutti__skews_straggler(&roster, RANKS), 1);
    tutti__skews_free(skews);
}

/* More ranks than processors: others lose theirs for moments, as often as rank 1 is late. */
TUTTI_TEST(skew_tells_a_straggler_from_moments)
{
    tutti_roster_member members[RANKS];
    tutti_roster roster;
    struct tutti_skews *skews = nobody_came(RANKS, members, &roster);
    for (uint64_t i = 1; i <= 40; i++)
        come(skews, &roster, i,
             i % 2       ? (double[]){0, 20, 0.5}
             : i % 4 > 0 ? (double[]){0, 1, 4}
                         : (double[]){5, 1, 0});
    CHECK_INT(members[2].skew.last_by[0], 10);
    CHECK_INT(members[2].skew.last_by[2], 0);
    CHECK_INT(tutti__skews_straggler(&roster, RANKS), 1);
    tutti__skews_free(skews);
}

/* Six times is no habit yet, in however short a job. */
TUTTI_TEST(skew_blames_nobody_before_it_is_clear)
{
    for (uint64_t times = 6; times <= 7; times++) {
        tutti_roster_member members[RANKS];
        tutti_roster roster;
        struct tutti_skews *skews = nobody_came(RANKS, members, &roster);
        for (uint64_t i = 1; i <= times; i++)
            come(skews, &roster, i, (double[]){0, 8, 0});
        CHECK_INT(tutti__skews_straggler(&roster, RANKS), times == 7 ? 1 : -1);
        tutti__skews_free(skews);
    }
}

/* All are late in turns, or somebody once. */
TUTTI_TEST(skew_blames_nobody_for_chance)
{
    static const double in_turns[RANKS][RANKS] = {{20, 0, 0}, {0, 20, 0}, {0, 0, 20}};
    for (int once = 0; once < 2; once++) {
        tutti_roster_member members[RANKS];
        tutti_roster roster;
        struct tutti_skews *skews = nobody_came(RANKS, members, &roster);
        CHECK_INT(tutti__skews_straggler(&roster, RANKS), -1);
        for (uint64_t i = 1; i <= 21; i++)
            come(skews, &roster, i,
                 !once    ? in_turns[i % RANKS]
                 : i == 9 ? (double[]){0, 0, 5000}
                          : (double[]){0, 0, 0});
        CHECK_INT(tutti__skews_straggler(&roster, RANKS), -1);
        tutti__skews_free(skews);
    }
}

/* Rank 1 holds up a group of it and rank 2; rank 2 is late for that to one of it and rank 0, who
 * sees rank 2 last as often as rank 1 is. */
TUTTI_TEST(skew_names_a_straggler_of_groups)
{
    tutti_roster_member members[RANKS];
    tutti_roster roster;
    struct tutti_skews *skews = nobody_came(RANKS, members, &roster);
    for (uint64_t i = 1; i <= 20; i++) {
        int64_t begin = (int64_t)i * 100000000;
        tutti_arrival of_a = {.group = 7, .sequence = i, .ranks = 2, .at_ns = begin};
        tutti_arrival of_b = {.group = 8, .sequence = i, .ranks = 2, .at_ns = begin};
        tutti__skews_add(skews, &roster, 2, &of_a, 1);
        tutti__skews_add(skews, &roster, 0, &of_b, 1);
        of_a.at_ns = begin + 20000000;
        of_b.at_ns = begin + 20100000;
        tutti__skews_add(skews, &roster, 1, &of_a, 1);
        tutti__skews_add(skews, &roster, 2, &of_b, 1);
    }
    CHECK_INT(members[0].skew.samples, 20);
    CHECK_INT(members[1].skew.samples, 20);
    CHECK_INT(members[2].skew.samples, 40);
    CHECK_INT(members[1].skew.last_by[0], 20);
    CHECK_INT(members[2].skew.last_by[0], 20);
    CHECK_NEAR((double)members[1].skew.mean_ns, 20e6, 0.01e6);
    CHECK_INT(tutti__skews_straggler(&roster, RANKS), 1);
    tutti__skews_free(skews);
}

/* Of two groups without a common rank each has one: neither makes the other look like chance. */
TUTTI_TEST(skew_compares_ranks_of_one_group)
{
    enum { FOUR = 4 };
    tutti_roster_member members[FOUR];
    tutti_roster roster;
    struct tutti_skews *skews = nobody_came(FOUR, members, &roster);
    for (uint64_t i = 1; i <= 20; i++)
        for (int r = 0; r < FOUR; r++) {
            tutti_arrival arrival = {.group = 7 + (uint64_t)(r / 2),
                                     .sequence = r < 2 ? i : 2 * i,
                                     .ranks = 2,
                                     .at_ns = (int64_t)i * 100000000 + r % 2 * 8000000};
            tutti__skews_add(skews, &roster, r, &arrival, r < 2 || i > 2 ? 1 : 0);
        }
    CHECK_INT(members[1].skew.last_by[0], 20);
    CHECK_INT(members[3].skew.last_by[0], 18);
    CHECK_INT(tutti__skews_straggler(&roster, FOUR), 1);
    tutti__skews_free(skews);
}
