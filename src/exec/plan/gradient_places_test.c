/* gradient_places_test.c: gradients are computed where the nodes are that they are of. */
#include "base/params.h"
#include "base/test.h"
#include "exec/run/mesh_test.h"
#include "graph/graph.h"
#include "tutti/tutti.h"

enum { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, ALL_TO_ALL, COLLECTIVES };

static tutti_sym collective(int which, tutti_sym x)
{
    switch (which) {
    case ALL_REDUCE:
        return tutti_all_reduce(x, "data", 2, TUTTI_SUM);
    case ALL_GATHER:
        return tutti_all_gather(x, "data", 2, 0);
    case REDUCE_SCATTER:
        return tutti_reduce_scatter(x, "data", 2, 0, TUTTI_SUM);
    case BROADCAST:
        return tutti_broadcast(x, "data", 2, 0);
    default:
        return tutti_all_to_all(x, "data", 2, 0, 0);
    }
}

/* sum over r of (r + 1) sum(collective(x[r]^2)), of x[0] = (1, 2) and x[1] = (3, 4). */
static void check_gradients(const char *const *devices, int which, const double *expected)
{
    tutti_graph *g;
    tutti_session *s;
    tutti_tensor *values[2], *results[2];
    tutti_sym x[2], losses[2];
    tutti_grad grads[2];
    CHECK_OK(tutti_graph_create(&g));
    for (int r = 0; r < 2; r++)
        TUTTI_WITH_DEVICE(g, devices[r]) {
            x[r] = tutti_placeholder(g, TUTTI_F32, 2);
            losses[r] = tutti_sum(tutti_mul(collective(which, tutti_square(x[r])), r + 1));
        }
    tutti_gradients(tutti_add(losses[0], losses[1]), 2, x, grads);
    CHECK_OK(tutti_session_open(&s, g, .deadline_seconds = 10, .mesh = "data=2",
                                .mesh_devices = mesh_devices(2, devices)));
    for (int r = 0; r < 2; r++)
        CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, (int64_t[]){2},
                                   (float[]){(float)(2 * r + 1), (float)(2 * r + 2)}, &values[r]));
    CHECK_OK(tutti_run(
        s, .feed = TUTTI_FEED({x[0], values[0]}, {x[1], values[1]}),
        .fetch = TUTTI_FETCH({grads[0].value, &results[0]}, {grads[1].value, &results[1]})));
    for (int r = 0; r < 2; r++) {
        for (int i = 0; i < 2; i++)
            CHECK_NEAR(tutti_tensor_get(results[r], i), expected[2 * r + i], 0);
        tutti_tensor_release(values[r]);
        tutti_tensor_release(results[r]);
    }
    tutti_session_close(s);
    tutti_graph_destroy(g);
}

TUTTI_TEST(collectives_are_differentiated_outside_of_their_devices_scopes)
{
    static const char *const cpus[] = {"cpu:0", "cpu:1"}, *const fars[] = {"far:0", "far:1"};
    static const double expected[COLLECTIVES][4] = {
        [ALL_REDUCE] = {6, 12, 18, 24},   [ALL_GATHER] = {6, 12, 18, 24},
        [REDUCE_SCATTER] = {2, 8, 6, 16}, [BROADCAST] = {6, 12, 0, 0},
        [ALL_TO_ALL] = {2, 8, 6, 16},
    };
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    for (int which = 0; which < COLLECTIVES; which++) {
        check_gradients(cpus, which, expected[which]);
        check_gradients(fars, which, expected[which]);
    }
}

/* Two layers on two devices: a layer's gradients stay with it, and go where a scope says. */
TUTTI_TEST(gradients_of_layers_stay_with_them)
{
    static const char *const around[] = {NULL, "cpu:0"};
    for (size_t a = 0; a < TUTTI_COUNT(around); a++) {
        tutti_graph *g;
        tutti_sym weights[2], x;
        tutti_grad grads[2];
        CHECK_OK(tutti_graph_create(&g));
        x = tutti_placeholder(g, TUTTI_F32, 4, 3);
        for (int i = 0; i < 2; i++)
            TUTTI_WITH_DEVICE(g, i ? "far:1" : "far:0") {
                weights[i] = tutti_variable(g, tutti_full(0.5, 3, 3));
                x = tutti_tanh(tutti_matmul(x, weights[i]));
            }
        if (around[a])
            tutti_device_push(g, around[a]);
        tutti_gradients(tutti_sum(x), 2, weights, grads);
        if (around[a])
            tutti_device_pop(g);
        CHECK_OK(tutti_graph_check(g));
        for (int i = 0; i < 2; i++)
            CHECK_CONTAINS(grads[i].value.node->device,
                           around[a] ? around[a] : (i ? "far:1" : "far:0"));
        tutti_graph_destroy(g);
    }
}
