/* one_device_test.c: without a strategy a variable lies on one device, whatever else a run holds.
 */
#include "base/params.h"
#include "base/test.h"
#include "exec/plan/share.h"
#include "tutti/tutti.h"

typedef struct counting {
    tutti_graph *graph;
    tutti_session *session;
    tutti_sym other, v, more; /* more: adds 10 to v */
} counting;

static void begin(counting *c)
{
    *c = (counting){0};
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    CHECK_OK(tutti_graph_create(&c->graph));
}

static void start(counting *c)
{
    c->more = tutti_assign_add(c->v, tutti_scalar(c->graph, TUTTI_F32, 10));
    CHECK_OK(tutti_session_open(&c->session, c->graph));
    CHECK_OK(tutti_run(c->session, .target = tutti_initialize_variables(c->graph)));
}

static void end(counting *c)
{
    tutti_session_close(c->session);
    tutti_graph_destroy(c->graph);
}

static double take(tutti_tensor *tensor)
{
    double value = tutti_tensor_get(tensor, 0);
    tutti_tensor_release(tensor);
    return value;
}

/* Alone, beside the other one, and from outside. */
static void check_value(const counting *c, double expected)
{
    tutti_tensor *v, *other;
    CHECK_OK(tutti_run(c->session, .fetch = TUTTI_FETCH({c->v, &v})));
    CHECK_NEAR(take(v), expected, 0);
    CHECK_OK(tutti_run(c->session, .fetch = TUTTI_FETCH({c->v, &v}, {c->other, &other})));
    tutti_tensor_release(other);
    CHECK_NEAR(take(v), expected, 0);
    CHECK_OK(tutti_session_get(c->session, c->v, &v));
    CHECK_NEAR(take(v), expected, 0);
}

static void check_counts(counting *c)
{
    start(c);
    check_value(c, 1);
    CHECK_OK(tutti_run(c->session, .target = c->more));
    check_value(c, 11);
    CHECK_OK(tutti_run(c->session, .targets = TUTTI_TARGETS(c->more, c->other)));
    check_value(c, 21);
    end(c);
}

TUTTI_TEST(a_variable_stays_with_its_neighbour_that_is_left_out)
{
    static const char *const places[] = {"", "far:0", "cpu:1"};
    for (int i = 0; i < 3; i++) {
        counting c;
        begin(&c);
        TUTTI_WITH_DEVICE(c.graph, places[i])
            c.other = tutti_variable(c.graph, tutti_zeros(), .name = "other");
        TUTTI_WITH_COLOCATION(c.graph, c.other)
            TUTTI_WITH_DEVICE(c.graph, "cpu:1")
                c.v = tutti_variable(c.graph, tutti_ones(), .name = "v");
        check_counts(&c);
    }
}

/* Operators go where their inputs are; a variable beside one does not follow what is fed. */
TUTTI_TEST(a_variable_beside_an_operator_stays_where_that_is_by_the_graph)
{
    counting c;
    begin(&c);
    tutti_sym far_one, x;
    TUTTI_WITH_DEVICE(c.graph, "far:1")
        far_one = tutti_exp(tutti_scalar(c.graph, TUTTI_F32, 0));
    x = tutti_neg(far_one);
    c.other = tutti_neg(x);
    TUTTI_WITH_COLOCATION(c.graph, c.other)
        c.v = tutti_variable(c.graph, tutti_ones(), .name = "v");
    CHECK_STR(tutti_node_device(c.v.node), tutti_node_device(far_one.node));
    start(&c);
    CHECK_OK(tutti_run(c.session, .target = c.more));
    check_value(&c, 11);
    tutti_tensor *fed, *out[2];
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 0, NULL, (float[]){3}, &fed));
    CHECK_OK(tutti_run(c.session, .feed = TUTTI_FEED({x, fed}),
                       .fetch = TUTTI_FETCH({c.v, &out[0]}, {c.other, &out[1]})));
    CHECK_NEAR(take(out[0]), 11, 0);
    CHECK_NEAR(take(out[1]), -3, 0);
    tutti_tensor_release(fed);
    end(&c);
}

static void make_twice(counting *c, const char *first, const char *second)
{
    TUTTI_WITH_DEVICE(c->graph, first)
        c->v = tutti_variable(c->graph, tutti_ones(), .name = "v");
    TUTTI_WITH_DEVICE(c->graph, second)
        c->other = tutti_variable(c->graph, tutti_ones(), .name = "z", .shared_name = "v");
}

/* One name in the state and two devices: nobody would keep the values equal. */
TUTTI_TEST(variables_of_one_name_on_two_devices_are_refused)
{
    static const char *const pairs[][2] = {
        {"cpu:0", "far:0"}, {"cpu:0", "cpu:1"}, {"far:0", "whole:0"}};
    for (int i = 0; i < 3; i++) {
        counting c;
        begin(&c);
        make_twice(&c, pairs[i][0], pairs[i][1]);
        CHECK_OK(tutti_session_open(&c.session, c.graph));
        CHECK_STATUS(tutti_run(c.session, .target = tutti_initialize_variables(c.graph)),
                     TUTTI_INVALID);
        CHECK_CONTAINS(tutti_error_message(), pairs[i][0]);
        CHECK_CONTAINS(tutti_error_message(), pairs[i][1]);
        CHECK_CONTAINS(tutti_error_message(), "one_device_test.c");
        end(&c);
    }
}

TUTTI_TEST(variables_of_one_name_on_one_device_are_one)
{
    counting c;
    begin(&c);
    make_twice(&c, "/job:worker/far:0", "far:0");
    check_counts(&c);
}

/* A strategy that comes later: variables without a wish go to its device, others stay. */
TUTTI_TEST(a_later_strategy_of_one_device_leaves_variables_where_they_are_wanted)
{
    counting c;
    begin(&c);
    TUTTI_WITH_DEVICE(c.graph, "far:0")
        c.other = tutti_variable(c.graph, tutti_ones(), .name = "other");
    c.v = tutti_variable(c.graph, tutti_ones(), .name = "v");
    tutti_sym others = tutti_assign_add(c.other, tutti_scalar(c.graph, TUTTI_F32, 1));
    start(&c);
    CHECK_OK(tutti_run(c.session, .targets = TUTTI_TARGETS(c.more, others)));
    tutti_strategy *strategy = tutti_strategy_create(
        "one_device", &(tutti_strategy_options){.struct_size = sizeof(tutti_strategy_options),
                                                .devices = "cpu:1"});
    CHECK(strategy != NULL);
    CHECK_OK(tutti__engine_set_strategy(tutti__session_engine(c.session), strategy));
    check_value(&c, 11);
    CHECK_OK(tutti_run(c.session, .targets = TUTTI_TARGETS(c.more, others)));
    check_value(&c, 21);
    tutti_tensor *other;
    CHECK_OK(tutti_session_get(c.session, c.other, &other));
    CHECK_NEAR(take(other), 3, 0);
    CHECK_INT(tutti_mirrored_count(c.session, c.other), 1);
    end(&c);
    tutti_strategy_close(strategy);
}
