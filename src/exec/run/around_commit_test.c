/* around_commit_test.c: devices that send, receive and meet on both sides of a step's commit do not
 * wait for each other in a circle, and see what they should. */
#include "base/params.h"
#include "base/test.h"
#include "exec/run/mesh_test.h"
#include "tutti/tutti.h"

#define MOST 3

static const char *const cpus[] = {"cpu:0", "cpu:1", "cpu:2"};
static const char *const fars[] = {"far:0", "far:1", "far:2"};
static const char *const mixed[] = {"far:0", "cpu:1", "whole:0"};
static const char *const *const places[] = {cpus, fars, mixed};

typedef struct world {
    const char *const *devices;
    tutti_graph *graph;
    tutti_session *session;
    tutti_sym x;           /* fed with 1, 2, 3, 4 */
    tutti_sym owned[MOST]; /* by device: a variable there, which begins as ones */
    tutti_sym fetched[4];  /* up to the first poison */
    tutti_sym targets[MOST];
    double values[4]; /* element 1 of what was fetched */
} world;

typedef void story(world *w);

/* Builds, runs once with a short deadline, and checks nothing but that it ends well. */
static void tell(world *w, const char *const *devices, story *build)
{
    *w = (world){.devices = devices};
    CHECK_OK(tutti__param_set("CPU_DEVICES", "3"));
    CHECK_OK(tutti_graph_create(&w->graph));
    w->x = tutti_placeholder(w->graph, TUTTI_F32, 4);
    for (int i = 0; i < MOST; i++)
        TUTTI_WITH_DEVICE(w->graph, devices[i])
            w->owned[i] = tutti_variable(w->graph, tutti_ones(4));
    build(w);
    CHECK_OK(tutti_graph_check(w->graph));
    CHECK_OK(tutti_session_open(&w->session, w->graph, .device = devices[0], .deadline_seconds = 10,
                                .mesh = "batch=2", .mesh_devices = mesh_devices(2, devices)));
    CHECK_OK(tutti_run(w->session, .target = tutti_initialize_variables(w->graph)));
    tutti_tensor *x, *values[4] = {0};
    tutti_fetch fetches[4];
    int fetched = 0, targets = 0;
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, (int64_t[]){4}, (float[]){1, 2, 3, 4}, &x));
    for (; fetched < 4 && tutti_sym_ok(w->fetched[fetched]); fetched++)
        fetches[fetched] = (tutti_fetch){w->fetched[fetched], &values[fetched]};
    while (targets < MOST && tutti_sym_ok(w->targets[targets]))
        targets++;
    CHECK_OK(tutti_run(w->session, .feed = TUTTI_FEED({w->x, x}), .fetch = {fetched, fetches},
                       .targets = {targets, w->targets}));
    for (int i = 0; i < fetched; i++) {
        w->values[i] = tutti_tensor_get(values[i], 1);
        tutti_tensor_release(values[i]);
    }
    tutti_tensor_release(x);
    tutti_session_close(w->session);
    tutti_graph_destroy(w->graph);
}

/* p is sent before the commit of device 0. What uses it beside device 0's update comes after. */
static void sends_before_and_uses_after(world *w)
{
    tutti_sym p = TUTTI_NO_SYM, r = TUTTI_NO_SYM;
    TUTTI_WITH_DEVICE(w->graph, w->devices[1])
        p = tutti_square(w->x);
    w->targets[0] = tutti_assign_add(w->owned[0], w->x);
    TUTTI_WITH_DEVICE(w->graph, w->devices[1])
        w->fetched[0] = tutti_mul(p, w->targets[0]);
    TUTTI_WITH_DEVICE(w->graph, w->devices[0])
        r = tutti_neg(p);
    w->targets[1] = tutti_assign_add(w->owned[1], r);
    w->fetched[1] = tutti_identity(w->targets[1]);
}

TUTTI_TEST(what_is_sent_before_the_commit_is_not_fused_with_what_follows_another_devices_update)
{
    for (size_t i = 0; i < TUTTI_COUNT(places); i++) {
        world w;
        tell(&w, places[i], sends_before_and_uses_after);
        CHECK_INT(w.values[0], 4 * 3);
        CHECK_INT(w.values[1], 1 - 4);
    }
}

static void sends_before_and_uses_own_update(world *w)
{
    tutti_sym p = TUTTI_NO_SYM, r = TUTTI_NO_SYM;
    TUTTI_WITH_DEVICE(w->graph, w->devices[1])
        p = tutti_square(w->x);
    w->targets[0] = tutti_assign_add(w->owned[1], w->x);
    TUTTI_WITH_DEVICE(w->graph, w->devices[1])
        w->fetched[0] = tutti_mul(p, w->targets[0]);
    TUTTI_WITH_DEVICE(w->graph, w->devices[0])
        r = tutti_neg(p);
    w->targets[1] = tutti_assign_add(w->owned[0], r);
    w->fetched[1] = tutti_identity(w->targets[1]);
}

TUTTI_TEST(what_is_sent_before_the_commit_is_not_fused_with_what_follows_the_own_update)
{
    for (size_t i = 0; i < TUTTI_COUNT(places); i++) {
        world w;
        tell(&w, places[i], sends_before_and_uses_own_update);
        CHECK_INT(w.values[0], 4 * 3);
        CHECK_INT(w.values[1], 1 - 4);
    }
}

/* Device 1 meets device 0 before the commit and waits for device 2 after it. */
static void meets_before_and_waits_after(world *w)
{
    tutti_sym sums[2], after = TUTTI_NO_SYM;
    for (int i = 0; i < 2; i++)
        TUTTI_WITH_DEVICE(w->graph, w->devices[i])
            sums[i] = tutti_all_reduce(w->x, "batch", 2, TUTTI_SUM);
    TUTTI_WITH_DEVICE(w->graph, w->devices[2])
        w->fetched[0] = tutti_add(sums[0], sums[1]);
    w->targets[0] = tutti_assign(w->owned[1], w->x);
    TUTTI_WITH_CONTROL(w->graph, w->targets[0])
        TUTTI_WITH_DEVICE(w->graph, w->devices[2])
            after = tutti_read(w->owned[2]);
    TUTTI_WITH_DEVICE(w->graph, w->devices[1])
        w->fetched[1] = tutti_mul(after, w->x);
}

TUTTI_TEST(devices_that_meet_before_the_commit_do_not_wait_for_what_comes_after_it)
{
    for (size_t i = 0; i < TUTTI_COUNT(places); i++) {
        world w;
        tell(&w, places[i], meets_before_and_waits_after);
        CHECK_INT(w.values[0], 8);
        CHECK_INT(w.values[1], 2);
    }
}

/* Only one of those that meet gives something that follows an update. */
static void meets_after(world *w)
{
    w->targets[0] = tutti_assign_add(w->owned[1], w->x);
    for (int i = 0; i < 2; i++)
        TUTTI_WITH_DEVICE(w->graph, w->devices[i])
            w->fetched[i] =
                tutti_neg(tutti_all_reduce(i ? w->targets[0] : w->x, "batch", 2, TUTTI_SUM));
}

TUTTI_TEST(devices_meet_after_the_commit_where_one_gives_what_follows_an_update)
{
    for (size_t i = 0; i < TUTTI_COUNT(places); i++) {
        world w;
        tell(&w, places[i], meets_after);
        CHECK_INT(w.values[0], -5);
        CHECK_INT(w.values[1], -5);
    }
}

/* A user's own send and recv behind an update, and a use of it on a third device. */
static void passes_on(world *w)
{
    tutti_sym got = TUTTI_NO_SYM;
    w->targets[0] = tutti_assign_add(w->owned[1], w->x);
    TUTTI_WITH_CONTROL(w->graph, w->targets[0]) {
        TUTTI_WITH_DEVICE(w->graph, w->devices[0])
            w->targets[1] = tutti_send(w->x, "mine", w->devices[1]);
        TUTTI_WITH_DEVICE(w->graph, w->devices[1])
            got = tutti_recv(w->graph, "mine", w->devices[0], TUTTI_TYPE(TUTTI_F32, 4));
        TUTTI_WITH_DEVICE(w->graph, w->devices[2])
            w->fetched[0] = tutti_neg(got);
    }
}

TUTTI_TEST(own_sends_and_recvs_follow_updates)
{
    for (size_t i = 0; i < TUTTI_COUNT(places); i++) {
        world w;
        tell(&w, places[i], passes_on);
        CHECK_INT(w.values[0], -2);
    }
}

/* Device 0 meets with what its update made, and then with x. The read waits for what device 1 made
 * of the second sum, which does not follow the update. */
static void reads_behind_a_meeting(world *w)
{
    tutti_sym first[2], second[2], made = TUTTI_NO_SYM;
    w->targets[0] = tutti_assign_add(w->owned[0], w->x);
    w->targets[1] = tutti_assign_add(w->owned[1], w->x);
    for (int i = 0; i < 2; i++)
        TUTTI_WITH_DEVICE(w->graph, w->devices[i]) {
            first[i] = tutti_all_reduce(i ? w->x : w->targets[0], "batch", 2, TUTTI_SUM);
            second[i] = tutti_all_reduce(i ? w->targets[1] : w->x, "batch", 2, TUTTI_SUM);
            w->fetched[i] = first[i];
        }
    TUTTI_WITH_DEVICE(w->graph, w->devices[1])
        made = tutti_neg(second[1]);
    w->targets[2] = second[0];
    TUTTI_WITH_CONTROL(w->graph, made)
        w->fetched[2] = tutti_read(w->owned[0]);
    TUTTI_WITH_CONTROL(w->graph, first[1])
        w->fetched[3] = tutti_read(w->owned[0]);
}

TUTTI_TEST(a_read_follows_what_it_depends_on_not_what_devices_met_for_before)
{
    for (size_t i = 0; i < TUTTI_COUNT(places); i++) {
        world w;
        tell(&w, places[i], reads_behind_a_meeting);
        CHECK_INT(w.values[0], 5);
        CHECK_INT(w.values[1], 5);
        CHECK_INT(w.values[2], 1);
        CHECK_INT(w.values[3], 3);
    }
}

TUTTI_TEST(a_recv_of_what_is_made_of_it_is_refused)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_sym got[2], sent[2];
    CHECK_OK(tutti_graph_create(&g));
    for (int i = 0; i < 2; i++)
        TUTTI_WITH_DEVICE(g, fars[i]) {
            got[i] = tutti_recv(g, i ? "there" : "back", fars[1 - i], TUTTI_TYPE(TUTTI_F32));
            sent[i] = tutti_send(tutti_neg(got[i]), i ? "back" : "there", fars[1 - i]);
        }
    CHECK_OK(tutti_session_open(&s, g, .device = "far:0", .deadline_seconds = 10));
    CHECK_STATUS(tutti_run(s, .targets = TUTTI_TARGETS(sent[0], sent[1])), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "recv 'recv': what is sent on its channel 'back'");
    tutti_session_close(s);
    tutti_graph_destroy(g);
}
