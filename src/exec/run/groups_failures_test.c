/* groups_failures_test.c: groups of devices in several processes: what goes wrong, and what travels
 * between two devices. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/world.h"
#include "parallel/strategies/workers.h"
#include "tutti/tutti.h"

static const char *const three =
    "/job:worker/task:0/far:0,/job:worker/task:1/far:0,/job:worker/task:2/far:0";
static const char *const two = "/job:worker/task:0/far:0,/job:worker/task:1/far:0";

static tutti_status open_session(tutti_graph *g, tutti_strategy *s, const char *mesh,
                                 const char *devices, double deadline, tutti_session **ret)
{
    return tutti_session_open(ret, g, .device = "far:0", .deadline_seconds = deadline, .mesh = mesh,
                              .mesh_devices = devices, .strategy = s);
}

/* ---- a rank that dies, in each collective ---- */

enum { SUM, GATHER, SCATTER, TURN, BROADCAST, REDUCE, OPS };

static tutti_sym build(int op, tutti_sym x, int size)
{
    switch (op) {
    case GATHER:
        return tutti_all_gather(x, "a", size, 0);
    case SCATTER:
        return tutti_reduce_scatter(x, "a", size, 0, TUTTI_SUM);
    case TURN:
        return tutti_all_to_all(x, "a", size, 0, 0);
    case BROADCAST:
        return tutti_broadcast(x, "a", size, 1);
    case REDUCE:
        return tutti_reduce(x, "a", size, 0, TUTTI_SUM);
    default:
        return tutti_all_reduce(x, "a", size, TUTTI_SUM);
    }
}

static tutti_status run_once(tutti_session *session, tutti_sym x, tutti_sym y)
{
    tutti_tensor *in, *out;
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){30000}, &in));
    tutti_status status =
        tutti_run(session, .feed = TUTTI_FEED({x, in}), .fetch = TUTTI_FETCH({y, &out}));
    tutti_tensor_release(in);
    if (status == TUTTI_OK)
        tutti_tensor_release(out);
    return status;
}

static tutti_status lose_one(tutti_strategy *s, void *context)
{
    tutti_graph *g;
    tutti_session *session;
    TUTTI_TRY(tutti_graph_create(&g));
    TUTTI_TRY(open_session(g, s, "a=3", three, 30, &session));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 30000), y = build(*(int *)context, x, 3);
    TUTTI_TRY(run_once(session, x, y));
    if (tutti_strategy_rank(s) == 1) {
        usleep(200000); /* the others wait */
        kill(getpid(), SIGKILL);
    }
    int64_t began = tutti__now_ns();
    tutti_status status = TUTTI_OK;
    for (; status == TUTTI_OK; usleep(1000)) /* who only sends is done with the first ones */
        status = run_once(session, x, y);
    if (status != TUTTI_CLOSED && status != TUTTI_CANCELLED)
        return status;
    if (!strstr(tutti_error_message(), "rank 1 ("))
        return status;
    WORKER_EXPECT(tutti__now_ns() - began < (int64_t)1200000000);
    _exit(0);
}

TUTTI_TEST(groups_name_a_rank_that_was_killed)
{
    static const char *const engines[] = {"shm", "tcp"};
    for (int op = 0; op < OPS; op++)
        tutti__test_workers_but(
            3, 1, TUTTI_OPTIONS(tutti_strategy_options, .engine = engines[op % 2]), lose_one, &op);
}

/* Two devices in each of two processes: one of them waits for the other process, and its neighbour
 * for it. */
static tutti_status lose_two(tutti_strategy *s, void *context)
{
    static const char *const devices = "/job:worker/task:0/far:0,/job:worker/task:1/far:0,"
                                       "/job:worker/task:0/far:1,/job:worker/task:1/far:1";
    tutti_graph *g;
    tutti_session *session;
    tutti_sym x, y[2] = {TUTTI_NO_SYM, TUTTI_NO_SYM};
    TUTTI_TRY(tutti_graph_create(&g));
    TUTTI_TRY(open_session(g, s, "a=4", devices, 30, &session));
    x = tutti_placeholder(g, TUTTI_F32, 30000);
    TUTTI_WITH_DEVICE(g, "far:0")
        y[0] = build(*(int *)context, x, 4);
    TUTTI_WITH_DEVICE(g, "far:1")
        y[1] = build(*(int *)context, x, 4);
    tutti_sym both = tutti_add(tutti_sum(y[0]), tutti_sum(y[1]));
    TUTTI_TRY(run_once(session, x, both));
    if (tutti_strategy_rank(s) == 1)
        kill(getpid(), SIGKILL);
    int64_t began = tutti__now_ns();
    tutti_status status = run_once(session, x, both);
    WORKER_EXPECT(status == TUTTI_CLOSED || status == TUTTI_CANCELLED);
    if (!strstr(tutti_error_message(), "rank 1 ("))
        return status;
    WORKER_EXPECT(tutti__now_ns() - began < (int64_t)1200000000);
    _exit(0);
}

TUTTI_TEST(groups_of_two_levels_name_a_process_that_was_killed)
{
    for (int op = 0; op < OPS; op++)
        tutti__test_workers_but(2, 1, NULL, lose_two, &op);
}

static tutti_status come_late(tutti_strategy *s, void *context)
{
    tutti_graph *g;
    tutti_session *session;
    TUTTI_TRY(tutti_graph_create(&g));
    TUTTI_TRY(open_session(g, s, "a=3", three, 1, &session));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 30000), y = build(GATHER, x, 3);
    TUTTI_TRY(run_once(session, x, y));
    (void)context;
    if (tutti_strategy_rank(s) == 1) {
        sleep(4);
        _exit(0);
    }
    WORKER_EXPECT(run_once(session, x, y) != TUTTI_OK);
    WORKER_EXPECT(strstr(tutti_error_message(), "missing: 1") ||
                  strstr(tutti_error_message(), "rank 1"));
    _exit(0);
}

TUTTI_TEST(groups_name_a_rank_that_is_late)
{
    tutti__test_workers(3, NULL, come_late, NULL);
}

/* ---- ranks that do not do the same ---- */

static tutti_status differ_in_mesh(tutti_strategy *s, void *context)
{
    tutti_graph *g;
    tutti_session *session;
    const char *mesh = tutti_strategy_rank(s) == 0 ? "a=2,b=1" : "a=1,b=2";
    (void)context;
    TUTTI_TRY(tutti_graph_create(&g));
    WORKER_EXPECT(open_session(g, s, mesh, two, 10, &session) == TUTTI_INVALID);
    WORKER_EXPECT(strstr(tutti_error_message(), "another mesh of devices"));
    WORKER_EXPECT(strstr(tutti_error_message(), "a=2,b=1"));
    WORKER_EXPECT(strstr(tutti_error_message(), "a=1,b=2"));
    TUTTI_TRY(open_session(g, s, "a=2", two, 10, &session)); /* nothing is broken */
    tutti_session_close(session);
    tutti_graph_destroy(g);
    return TUTTI_OK;
}

static tutti_status differ_in_step(tutti_strategy *s, void *context)
{
    tutti_graph *g;
    tutti_session *session;
    int rank = tutti_strategy_rank(s);
    (void)context;
    TUTTI_TRY(tutti_graph_create(&g));
    TUTTI_TRY(open_session(g, s, "a=2", two, 10, &session));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 30000);
    tutti_sym y = tutti_all_reduce(x, "a", 2, rank == 0 ? TUTTI_SUM : TUTTI_MAX);
    WORKER_EXPECT(run_once(session, x, y) == TUTTI_INVALID);
    WORKER_EXPECT(strstr(tutti_error_message(), "op=sum") != NULL);
    WORKER_EXPECT(strstr(tutti_error_message(), "op=max") != NULL);
    _exit(0);
}

static tutti_status build_elsewhere(tutti_strategy *s, void *context)
{
    tutti_graph *g;
    tutti_session *session;
    tutti_sym y = TUTTI_NO_SYM;
    (void)context;
    TUTTI_TRY(tutti_graph_create(&g));
    TUTTI_TRY(open_session(g, s, "a=2", two, 10, &session));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 30000);
    TUTTI_WITH_DEVICE(g, "/job:worker/task:1/far:0")
        y = tutti_neg(x);
    tutti_status status = run_once(session, x, y);
    WORKER_EXPECT(status == (tutti_strategy_rank(s) == 1 ? TUTTI_OK : TUTTI_INVALID));
    WORKER_EXPECT(status == TUTTI_OK ||
                  strstr(tutti_error_message(), "in another process of the mesh"));
    tutti_session_close(session);
    tutti_graph_destroy(g);
    return TUTTI_OK;
}

TUTTI_TEST(groups_compare_meshes_and_steps)
{
    tutti__test_workers(2, NULL, build_elsewhere, NULL);
    tutti__test_workers(2, NULL, differ_in_mesh, NULL);
    tutti__test_workers(2, NULL, differ_in_step, NULL);
}

static tutti_status refuse_mesh(const char *mesh, const char *devices, tutti_strategy *s,
                                const char *why)
{
    tutti_graph *g;
    tutti_session *session;
    TUTTI_TRY(tutti_graph_create(&g));
    WORKER_EXPECT(open_session(g, s, mesh, devices, 10, &session) == TUTTI_INVALID);
    if (!strstr(tutti_error_message(), why))
        return TUTTI_CHECK_FAILED;
    tutti_graph_destroy(g);
    return TUTTI_OK;
}

static tutti_status refuse_meshes(tutti_strategy *s, void *context)
{
    (void)context;
    TUTTI_TRY(refuse_mesh("a=3", three, s,
                          "device 2 of the mesh is /job:worker/task:2/far:0, and "
                          "the job has 2 processes"));
    return refuse_mesh("a=2", "/job:worker/task:0/far:0,far:0", s,
                       "device 1 of the mesh names no task, and device 0 one");
}

TUTTI_TEST(groups_refuse_meshes_that_the_job_does_not_have)
{
    CHECK_OK(refuse_mesh("a=2", two, NULL, "the job has 1 process, without this task"));
    tutti__test_workers(2, NULL, refuse_meshes, NULL);
}

/* ---- the same bits, wherever ranks are ---- */

static const char *const arrangements[] = {"0000", "0011", "0101", "0001", "0110"};

static float term(int place, int i)
{
    return 1.0F / (float)(3 + 7 * place + i) * (place % 2 ? 1e4F : 1);
}

/* By hand: one tree over four ranks. */
static float tree(int i)
{
    return (term(0, i) + term(1, i)) + (term(2, i) + term(3, i));
}

static tutti_status add_in_order(tutti_strategy *s, void *context)
{
    const char *homes = context;
    char devices[300] = "";
    int own = s ? tutti_strategy_rank(s) : 0, next[2] = {0}, count = 0;
    tutti_graph *g;
    tutti_session *session;
    tutti_feed feeds[4];
    tutti_fetch fetches[4];
    tutti_tensor *out[4];
    TUTTI_TRY(tutti_graph_create(&g));
    for (int p = 0; p < 4; p++) {
        char local[16];
        snprintf(local, sizeof local, "far:%d", next[homes[p] - '0']++);
        snprintf(devices + strlen(devices), sizeof devices - strlen(devices),
                 "%s/job:worker/task:%c/%s", p ? "," : "", homes[p], local);
        if (homes[p] - '0' != own)
            continue;
        tutti_device_push(g, local);
        feeds[count].sym = tutti_placeholder(g, TUTTI_F32, 100);
        fetches[count] =
            (tutti_fetch){tutti_all_reduce(feeds[count].sym, "a", 4, TUTTI_SUM), &out[count]};
        tutti_device_pop(g);
        TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){100}, &feeds[count].value));
        for (int i = 0; i < 100; i++)
            tutti_tensor_set(feeds[count].value, i, (double)term(p, i));
        count++;
    }
    TUTTI_TRY(tutti_session_open(&session, g, .device = "far:0", .deterministic = true,
                                 .mesh = "a=4", .mesh_devices = devices, .strategy = s));
    TUTTI_TRY(tutti_run(session, .feed = {count, feeds}, .fetch = {count, fetches}));
    for (int k = 0; k < count; k++) {
        for (int i = 0; i < 100; i++)
            WORKER_EXPECT((float)tutti_tensor_get(out[k], i) == tree(i));
        tutti_tensor_release(out[k]);
        tutti_tensor_release(feeds[k].value);
    }
    tutti_session_close(session);
    tutti_graph_destroy(g);
    return TUTTI_OK;
}

TUTTI_TEST(groups_of_one_process_give_the_same_bits)
{
    CHECK_OK(add_in_order(NULL, (void *)(uintptr_t)arrangements[0]));
}

TUTTI_TEST(groups_give_the_same_bits_wherever_ranks_are)
{
    for (size_t i = 1; i < sizeof arrangements / sizeof *arrangements; i++)
        tutti__test_workers(2, NULL, add_in_order, (void *)(uintptr_t)arrangements[i]);
}

/* ---- values between two devices ---- */

enum { SIZES = 3 };
static const int64_t lengths[SIZES] = {5, 0, 400000};

static tutti_status travel(tutti_strategy *s, tutti_session *session, const tutti_sym *x,
                           const tutti_sym *y, const tutti_sym *sends, float scale)
{
    tutti_feed feeds[SIZES];
    tutti_fetch fetches[SIZES];
    tutti_tensor *out[SIZES];
    bool first = tutti_strategy_rank(s) == 0;
    for (int k = 0; first && k < SIZES; k++) {
        feeds[k].sym = x[k];
        fetches[k] = (tutti_fetch){y[k], &out[k]};
        TUTTI_TRY(
            tutti_tensor_create(k == 1 ? TUTTI_I64 : TUTTI_F32, 1, &lengths[k], &feeds[k].value));
        for (int64_t i = 0; i < lengths[k]; i++)
            tutti_tensor_set(feeds[k].value, i, (double)(scale * (float)(i % 1000)));
    }
    int count = first ? SIZES : 0;
    TUTTI_TRY(tutti_run(session, .feed = {count, feeds}, .fetch = {count, fetches},
                        .targets = {SIZES, sends}));
    for (int k = 0; k < count; k++) {
        for (int64_t i = 0; i < lengths[k]; i++)
            WORKER_EXPECT(tutti_tensor_get(out[k], i) == 2.0 * (double)(scale * (float)(i % 1000)));
        tutti_tensor_release(out[k]);
        tutti_tensor_release(feeds[k].value);
    }
    return TUTTI_OK;
}

static tutti_status there_and_back(tutti_strategy *s, void *context)
{
    bool first = tutti_strategy_rank(s) == 0;
    const char *other = first ? "/job:worker/task:1/far:0" : "/job:worker/task:0/far:0";
    tutti_graph *g;
    tutti_session *session;
    tutti_sym x[SIZES], y[SIZES], sends[SIZES];
    (void)context;
    TUTTI_TRY(tutti_graph_create(&g));
    TUTTI_TRY(open_session(g, s, "a=2", two, 20, &session));
    for (int k = 0; k < SIZES; k++) {
        char to[32], back[32];
        tutti_type type = tutti_type_make(k == 1 ? TUTTI_I64 : TUTTI_F32, 1, &lengths[k]);
        snprintf(to, sizeof to, "there%d", k);
        snprintf(back, sizeof back, "back%d", k);
        x[k] = first ? (tutti_placeholder)(g, type) : tutti_recv(g, to, other, type);
        y[k] = first ? TUTTI_NO_SYM : tutti_add(x[k], x[k]);
        sends[k] = first ? tutti_send(x[k], to, other) : tutti_send(y[k], back, other);
        if (first)
            y[k] = tutti_recv(g, back, other, type);
    }
    for (int round = 1; round < 4; round++)
        TUTTI_TRY(travel(s, session, x, y, sends, (float)round));
    tutti_session_close(session);
    tutti_graph_destroy(g);
    return TUTTI_OK;
}

TUTTI_TEST(values_travel_between_devices_of_two_processes)
{
    static const char *const engines[] = {"shm", "tcp"};
    for (int e = 0; e < 2; e++)
        tutti__test_workers(2, TUTTI_OPTIONS(tutti_strategy_options, .engine = engines[e]),
                            there_and_back, NULL);
}

/* Rank 1 expects something else, then what nobody sends. */
static tutti_status expect_otherwise(tutti_strategy *s, void *context)
{
    bool first = tutti_strategy_rank(s) == 0;
    tutti_graph *g;
    tutti_session *session;
    tutti_tensor *in, *out;
    (void)context;
    TUTTI_TRY(tutti_graph_create(&g));
    TUTTI_TRY(open_session(g, s, "a=2", two, 20, &session));
    if (first) {
        tutti_sym x = tutti_placeholder(g, TUTTI_F32, 30000);
        tutti_sym sent = tutti_send(x, "c", "/job:worker/task:1/far:0");
        TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){30000}, &in));
        TUTTI_TRY(tutti_run(session, .feed = TUTTI_FEED({x, in}), .target = sent));
        sleep(2);
        _exit(0);
    }
    tutti_sym lost = tutti_recv(g, "lost", "/job:worker/task:0/far:0", TUTTI_TYPE(TUTTI_F32, 2)),
              wrong = tutti_recv(g, "c", "/job:worker/task:0/far:0", TUTTI_TYPE(TUTTI_F32, 2));
    WORKER_EXPECT(tutti_run(session, .fetch = TUTTI_FETCH({lost, &out}), .deadline_seconds = 0.2) ==
                  TUTTI_DEADLINE);
    WORKER_EXPECT(strstr(tutti_error_message(), "/job:worker/task:0/far:0"));
    WORKER_EXPECT(strstr(tutti_error_message(), "lost"));
    WORKER_EXPECT(tutti_run(session, .fetch = TUTTI_FETCH({wrong, &out})) == TUTTI_INVALID);
    WORKER_EXPECT(strstr(tutti_error_message(), "was sent f32[30000], and f32[2] is expected"));
    _exit(0);
}

TUTTI_TEST(values_that_are_not_expected_are_refused)
{
    tutti__test_workers(2, NULL, expect_otherwise, NULL);
}
