/* variables_test.c: variables of which replicas have copies: equal on write, put together on read.
 */
#include <string.h>

#include "base/params.h"
#include "exec/plan/share.h"
#include "parallel/strategies/workers.h"
#include "tutti/tutti.h"

typedef struct net {
    tutti_graph *graph;
    tutti_session *session;
    tutti_sym x, sum, mean, first, none, running, step;
    tutti_sym writes[5]; /* by tutti_aggregation, synchronised on write */
    bool apart;          /* replicas have copies that may differ */
} net;

static tutti_sym own(tutti_graph *g, const char *name, tutti_aggregation how)
{
    return tutti_variable(g, tutti_zeros(), .name = name, .on_read = true, .aggregation = how);
}

static tutti_status open_net(tutti_strategy *s, net *n)
{
    static const char *const names[] = {"auto", "none", "sum", "mean", "first"};
    *n = (net){0};
    TUTTI_TRY(tutti_graph_create(&n->graph));
    TUTTI_TRY(tutti_session_open(&n->session, n->graph, .strategy = s, .deadline_seconds = 60));
    n->x = tutti_split_batch(tutti_placeholder(n->graph, TUTTI_F32, TUTTI_ANY));
    n->sum = own(n->graph, "own_sum", TUTTI_AGGREGATE_AUTO);
    n->mean = own(n->graph, "own_mean", TUTTI_AGGREGATE_MEAN);
    n->first = own(n->graph, "own_first", TUTTI_AGGREGATE_FIRST);
    n->none = own(n->graph, "own_none", TUTTI_AGGREGATE_NONE);
    n->running = own(n->graph, "running", TUTTI_AGGREGATE_MEAN);
    for (int i = 0; i < 5; i++)
        n->writes[i] = tutti_variable(n->graph, tutti_zeros(), .name = names[i],
                                      .aggregation = (tutti_aggregation)i);
    tutti_sym mean = tutti_mean(n->x);
    tutti_sym moved = tutti_add(tutti_mul(tutti_read(n->running), 0.5), tutti_mul(mean, 0.5));
    n->step = tutti_group(n->graph, tutti_assign_add(n->sum, tutti_sum(n->x)),
                          tutti_assign(n->mean, mean), tutti_assign(n->first, mean),
                          tutti_assign(n->none, mean), tutti_assign(n->running, moved));
    TUTTI_TRY(tutti_graph_check(n->graph));
    return tutti_run(n->session, .target = tutti_initialize_variables(n->graph));
}

static tutti_status check_read(net *n, tutti_sym variable, double expected)
{
    tutti_tensor *value;
    TUTTI_TRY(tutti_run(n->session, .fetch = TUTTI_FETCH({tutti_read(variable), &value})));
    double got = tutti_tensor_get(value, 0);
    tutti_tensor_release(value);
    WORKER_NEAR(got, expected);
    return TUTTI_OK;
}

static tutti_status check_copy(net *n, tutti_sym variable, int local, double expected)
{
    tutti_tensor *value;
    TUTTI_TRY(tutti_mirrored_get(n->session, variable, local, &value));
    double got = tutti_tensor_get(value, 0);
    tutti_tensor_release(value);
    WORKER_NEAR(got, expected);
    return TUTTI_OK;
}

static tutti_status scalar(double value, tutti_tensor **ret)
{
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 0, NULL, ret));
    tutti_tensor_set(*ret, 0, value);
    return TUTTI_OK;
}

/* ---- code of each replica ---- */

/* Replica r assigns r + 1, and 10 + r to those of its own. */
static tutti_status assign_all(const tutti_replica *replica, void *context)
{
    net *n = context;
    static const double expected[] = {0, 0, 3, 1.5, 1};
    tutti_tensor *value, *mine, *got;
    TUTTI_TRY(scalar(replica->index + 1, &value));
    TUTTI_TRY(scalar(10 + replica->index, &mine));
    for (int i = TUTTI_AGGREGATE_SUM; i <= TUTTI_AGGREGATE_FIRST; i++) {
        TUTTI_TRY(tutti_replica_assign(replica, n->session, n->writes[i], value));
        TUTTI_TRY(tutti_replica_read(replica, n->session, n->writes[i], &got));
        double is = tutti_tensor_get(got, 0);
        tutti_tensor_release(got);
        WORKER_NEAR(is, expected[i]);
    }
    for (int i = 0; i < TUTTI_AGGREGATE_SUM; i++) {
        WORKER_EXPECT(tutti_replica_assign(replica, n->session, n->writes[i], value) ==
                      TUTTI_INVALID);
        WORKER_EXPECT(strstr(tutti_error_message(), ".aggregation = TUTTI_AGGREGATE_SUM"));
    }
    tutti_status status = tutti_replica_assign(replica, n->session, n->none, mine);
    WORKER_EXPECT(n->apart ? status == TUTTI_OK
                           : status == TUTTI_INVALID &&
                                 strstr(tutti_error_message(), "also with .on_read"));
    TUTTI_TRY(tutti_replica_assign(replica, n->session, n->sum, mine));
    TUTTI_TRY(tutti_replica_assign(replica, n->session, n->mean, mine));
    TUTTI_TRY(tutti_replica_assign(replica, n->session, n->first, mine));
    tutti_tensor_release(value);
    tutti_tensor_release(mine);
    return TUTTI_OK;
}

/* ---- two replicas: devices, central storage, processes ---- */

static tutti_status run_steps(net *n)
{
    tutti_tensor *x;
    TUTTI_TRY(tutti_tensor_from(TUTTI_F32, 1, (int64_t[]){4}, (float[]){2, 3, 4, 5}, &x));
    for (int i = 0; i < 2; i++)
        TUTTI_TRY(tutti_run(n->session, .feed = TUTTI_FEED({n->x, x}), .target = n->step));
    tutti_tensor_release(x);
    return TUTTI_OK;
}

static tutti_status check_none(net *n)
{
    tutti_tensor *value;
    WORKER_EXPECT(tutti_run(n->session, .fetch = TUTTI_FETCH({tutti_read(n->none), &value})) ==
                  TUTTI_INVALID);
    WORKER_EXPECT(strstr(tutti_error_message(), "its aggregation is none"));
    WORKER_EXPECT(strstr(tutti_error_message(), "tutti_mirrored_get"));
    WORKER_EXPECT(tutti_session_get(n->session, n->none, &value) == TUTTI_INVALID);
    WORKER_EXPECT(strstr(tutti_error_message(), "its aggregation is none"));
    return TUTTI_OK;
}

/* Put together for a checkpoint: the first replica has the sum, all have the mean. */
static tutti_status check_joined(net *n, int rank, bool apart)
{
    TUTTI_TRY(tutti__engine_join(tutti__session_engine(n->session), true));
    if (apart) {
        TUTTI_TRY(check_copy(n, n->sum, 0, rank == 0 ? 21 : 0));
        TUTTI_TRY(check_copy(n, n->mean, 0, 10.5));
    }
    TUTTI_TRY(check_read(n, n->sum, 21));
    return check_read(n, n->mean, 10.5);
}

/* What all processes set is the value, and not as often as there are processes. */
static tutti_status check_set(net *n)
{
    const tutti_sym variables[] = {n->sum, n->mean, n->first};
    tutti_tensor *five;
    TUTTI_TRY(scalar(5, &five));
    for (int i = 0; i < 3; i++) {
        TUTTI_TRY(tutti_session_set(n->session, variables[i], five));
        TUTTI_TRY(check_read(n, variables[i], 5));
    }
    tutti_tensor_release(five);
    return TUTTI_OK;
}

static tutti_status check_two(tutti_strategy *s, void *context)
{
    bool apart = *(const bool *)context;
    net n;
    int local = tutti_strategy_local(s), rank = tutti_strategy_rank(s);
    TUTTI_TRY(open_net(s, &n));
    n.apart = apart;
    TUTTI_TRY(run_steps(&n));
    TUTTI_TRY(check_read(&n, n.sum, 28));
    TUTTI_TRY(check_read(&n, n.mean, 3.5));
    TUTTI_TRY(check_read(&n, n.first, 3.5));
    TUTTI_TRY(check_read(&n, n.running, 3.5 * 0.75)); /* as on one device */
    TUTTI_TRY(check_none(&n));
    for (int i = 0; apart && i < local; i++) { /* replica 0 saw 2 and 3, replica 1 saw 4 and 5 */
        int r = rank * local + i;
        WORKER_EXPECT(tutti_mirrored_count(n.session, n.sum) == local);
        TUTTI_TRY(check_copy(&n, n.sum, i, r == 0 ? 10 : 18));
        TUTTI_TRY(check_copy(&n, n.mean, i, r == 0 ? 2.5 : 4.5));
        TUTTI_TRY(check_copy(&n, n.running, i, 0.75 * (r == 0 ? 2.5 : 4.5)));
        TUTTI_TRY(check_copy(&n, n.none, i, 3.5));
    }
    TUTTI_TRY(tutti_replica_run(s, assign_all, &n));
    TUTTI_TRY(check_read(&n, n.sum, 21));
    TUTTI_TRY(check_read(&n, n.mean, 10.5));
    TUTTI_TRY(check_read(&n, n.first, 10));
    TUTTI_TRY(check_joined(&n, rank, apart));
    TUTTI_TRY(check_set(&n));
    tutti_session_close(n.session);
    tutti_graph_destroy(n.graph);
    return TUTTI_OK;
}

static void check(tutti_strategy *s, bool apart)
{
    CHECK_OK(tutti_strategy_check(s));
    CHECK_OK(check_two(s, &apart));
    CHECK_OK(tutti_strategy_close(s));
}

TUTTI_TEST(variables_are_put_together_on_read_and_on_write)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    check(tutti_strategy_mirrored(.devices = "cpu:0,cpu:1"), true);
    check(tutti_strategy_mirrored(.devices = "cpu:0,far:0"), true);
    check(tutti_strategy_central_storage(.devices = "cpu:0,cpu:1"), false);
    check(tutti_strategy_mirrored(.devices = "cpu:0,cpu:1", .deterministic = true), false);
}

TUTTI_TEST(workers_put_variables_together)
{
    bool apart = true;
    tutti__test_workers(2, NULL, check_two, &apart);
}

TUTTI_TEST(a_mean_over_replicas_needs_a_floating_variable)
{
    tutti_graph *g;
    CHECK_OK(tutti_graph_create(&g));
    tutti_variable(g, tutti_zeros(), .dtype = TUTTI_I64, .aggregation = TUTTI_AGGREGATE_MEAN);
    CHECK_STATUS(tutti_graph_check(g), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "a mean over replicas needs a floating type");
    tutti_graph_destroy(g);
}

/* One replica: every variable is its value. */
TUTTI_TEST(variables_of_one_device_are_their_values)
{
    net n;
    tutti_strategy *s = tutti_strategy_one_device(.devices = "cpu:0");
    CHECK_OK(open_net(s, &n));
    CHECK_OK(run_steps(&n));
    CHECK_OK(check_read(&n, n.sum, 28));
    CHECK_OK(check_read(&n, n.none, 3.5));
    CHECK_OK(check_read(&n, n.running, 3.5 * 0.75));
    tutti_session_close(n.session);
    tutti_graph_destroy(n.graph);
    CHECK_OK(tutti_strategy_close(s));
}
