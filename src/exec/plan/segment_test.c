/* segment_test.c: where a graph is cut because shapes depend on data, those who meet stay together.
 */
#include "base/params.h"
#include "base/test.h"
#include "exec/run/mesh_test.h"
#include "tutti/tutti.h"

static const char *const devices[] = {"cpu:0", "far:0"};

typedef struct job {
    tutti_graph *graph;
    tutti_sym x;    /* fed with 1, 0, 3, 4 */
    tutti_sym some; /* 8: the sum of what is not 0 */
    tutti_sym y[2], target;
} job;

static job begin(void)
{
    job j = {.y = {TUTTI_NO_SYM, TUTTI_NO_SYM}, .target = TUTTI_NO_SYM};
    CHECK_OK(tutti_graph_create(&j.graph));
    j.x = tutti_placeholder(j.graph, TUTTI_F32, 4);
    j.some = tutti_sum(tutti_gather(j.x, tutti_reshape(tutti_nonzero(j.x), -1), 0));
    return j;
}

static void check(job *j, double first, double second)
{
    tutti_session *session;
    tutti_tensor *x, *y[2];
    CHECK_OK(tutti_graph_check(j->graph));
    CHECK_OK(tutti_session_open(&session, j->graph, .device = devices[0], .deadline_seconds = 10,
                                .mesh = "batch=2", .mesh_devices = mesh_devices(2, devices)));
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, (int64_t[]){4}, (float[]){1, 0, 3, 4}, &x));
    CHECK_OK(tutti_run(session, .feed = TUTTI_FEED({j->x, x}),
                       .fetch = TUTTI_FETCH({j->y[0], &y[0]}, {j->y[1], &y[1]}),
                       .target = j->target));
    CHECK_NEAR(tutti_tensor_get(y[0], 0), first, 1e-6);
    CHECK_NEAR(tutti_tensor_get(y[1], 0), second, 1e-6);
    for (int i = 0; i < 2; i++)
        tutti_tensor_release(y[i]);
    tutti_tensor_release(x);
    tutti_session_close(session);
    tutti_graph_destroy(j->graph);
}

TUTTI_TEST(peers_wait_for_one_whose_value_comes_by_a_shape_that_depends_on_data)
{
    job j = begin();
    for (int i = 0; i < 2; i++)
        TUTTI_WITH_DEVICE(j.graph, devices[i])
            j.y[i] = tutti_all_reduce(i ? tutti_max(j.x) : j.some, "batch", 2, TUTTI_SUM);
    check(&j, 12, 12);
}

/* The first sum comes before the cut, and the second, which follows it on one device only, after.
 */
TUTTI_TEST(peers_before_the_cut_stay_before_it)
{
    job j = begin();
    for (int i = 0; i < 2; i++)
        TUTTI_WITH_DEVICE(j.graph, devices[i]) {
            tutti_sym sum = tutti_all_reduce(j.x, "batch", 2, TUTTI_SUM), value = tutti_max(sum);
            if (i == 0)
                value = tutti_sum(tutti_gather(sum, tutti_reshape(tutti_nonzero(sum), -1), 0));
            j.y[i] = tutti_all_reduce(value, "batch", 2, TUTTI_SUM);
        }
    check(&j, 16 + 8, 16 + 8);
}

TUTTI_TEST(a_recv_waits_for_a_send_behind_the_cut)
{
    job j = begin();
    TUTTI_WITH_DEVICE(j.graph, devices[0])
        j.target = tutti_send(j.some, "sum", devices[1]);
    TUTTI_WITH_DEVICE(j.graph, devices[1])
        j.y[0] = tutti_neg(tutti_recv(j.graph, "sum", devices[0], TUTTI_TYPE(TUTTI_F32)));
    j.y[1] = tutti_neg(j.x);
    check(&j, -8, -1);
}

TUTTI_TEST(a_send_waits_for_a_recv_behind_the_cut)
{
    job j = begin();
    TUTTI_WITH_DEVICE(j.graph, devices[0])
        j.target = tutti_send(tutti_max(j.x), "max", devices[1]);
    TUTTI_WITH_CONTROL(j.graph, j.some)
        TUTTI_WITH_DEVICE(j.graph, devices[1])
            j.y[0] = tutti_recv(j.graph, "max", devices[0], TUTTI_TYPE(TUTTI_F32));
    j.y[1] = tutti_neg(j.some);
    check(&j, 4, -8);
}

/* The constant of the scale waits for the enqueue, and stands behind the cut. */
TUTTI_TEST(what_ran_before_the_cut_does_not_run_again)
{
    job j = begin();
    tutti_sym queue = tutti_fifo_queue(j.graph, 4, TUTTI_TYPE(TUTTI_F32, 4));
    tutti_sym put = tutti_enqueue(queue, j.x);
    TUTTI_WITH_CONTROL(j.graph, put)
        j.y[0] = tutti_mul(j.some, 2);
    TUTTI_WITH_CONTROL(j.graph, j.y[0])
        j.y[1] = tutti_cast(tutti_queue_arrived(queue), TUTTI_F32);
    check(&j, 16, 1);
}
