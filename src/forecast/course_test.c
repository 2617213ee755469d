/* forecast_course_test.c: devices that wait for each other, with times made up. */
#include "base/test.h"
#include "forecast/forecast.h"
#include "graph/graph.h"
#include "tutti/ops.h"

static tutti_timed timed(tutti_sym sym, double seconds, bool skipped)
{
    return (tutti_timed){.node = sym.node, .seconds = seconds, .skipped = skipped};
}

/* One computes 3 s, copies a value in 1 s and computes 2 s; the other one waits for the value,
 * copies it in 1 s and computes 4 s: it is done after 3 + 1 + 1 + 4 s. */
TUTTI_TEST(a_forecast_follows_what_devices_hand_to_each_other)
{
    tutti_graph *g;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_exp(tutti_placeholder(g, TUTTI_F32, 4));
    tutti_sym sent = tutti_send(x, "a", "cpu:1");
    tutti_sym got = tutti_recv(g, "a", "cpu:0", TUTTI_TYPE(TUTTI_F32, 4));
    CHECK_OK(tutti_graph_check(g));
    tutti_timed first[] = {timed(x, 3, false), timed(sent, 1, true), timed(x, 2, false)};
    tutti_timed second[] = {timed(got, 1, true), timed(x, 4, false)};
    tutti_timed_list lists[] = {{.data = second, .count = 2}, {.data = first, .count = 3}};
    tutti_rehearsal rehearsal = {.count = 2, .devices = lists, .whole = true};
    tutti_forecast_reach reach = {.processes = 1, .local = 2};
    tutti_course courses[2];
    tutti_forecast f;
    CHECK_OK(tutti__forecast_courses(&rehearsal, &reach, 1, courses));
    CHECK_NEAR(courses[1].step, 6, 1e-12);
    CHECK_NEAR(courses[1].compute, 5, 1e-12);
    CHECK_NEAR(courses[0].step, 9, 1e-12);
    CHECK_NEAR(courses[0].exposed, 5, 1e-12);
    CHECK_OK(tutti__forecast(&rehearsal, &reach, 1, &f));
    CHECK_NEAR(f.step, 9, 1e-12);
    CHECK_NEAR(f.compute + f.exposed, 9, 1e-12);
    lists[1].count = 1; /* what never comes holds up nobody for ever */
    CHECK_OK(tutti__forecast_courses(&rehearsal, &reach, 1, courses));
    CHECK_NEAR(courses[0].step, 5, 1e-12);
    tutti_graph_destroy(g);
}
