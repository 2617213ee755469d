/* slice_test.c: the slice that strategies need, built by hand: an MLP cut in two over devices,
 * joined by send and recv, replicated twice with all_reduce; it trains to the one-device loss. */
#include <stdio.h>

#include "base/random.h"
#include "base/test.h"
#include "exec/run/mesh_test.h"
#include "tutti/tutti.h"

#define ROWS 8
#define STEPS 20

static tutti_tensor *rows(int64_t count, int64_t width, uint64_t seed, int64_t skip)
{
    tutti_tensor *tensor;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){count, width}, &tensor));
    for (int64_t i = 0; i < count * width; i++)
        tutti_tensor_set(
            tensor, i,
            tutti__random_f32((tutti_random_key){.seed = seed}, (uint64_t)(i + skip * width)) -
                0.5);
    return tensor;
}

typedef struct replica {
    tutti_sym x, y, loss, variables[4];
    tutti_grad grads[4];
} replica;

/* Two dense layers, each on its device. Equal seeds give equal weights. */
static replica build(tutti_graph *g, int number, const char *first, const char *second)
{
    replica r;
    char scope[24];
    snprintf(scope, sizeof scope, "replica%d", number);
    TUTTI_WITH_NAME(g, scope) {
        tutti_tensor *w1 = rows(5, 16, 1, 0), *w2 = rows(16, 3, 2, 0);
        tutti_sym h = TUTTI_NO_SYM;
        TUTTI_WITH_DEVICE(g, first) {
            r.x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 5);
            r.variables[0] = tutti_variable(g, tutti_tensor_init(w1), .name = "w1");
            r.variables[1] = tutti_variable(g, tutti_zeros(16), .name = "b1");
            h = tutti_tanh(tutti_add(tutti_matmul(r.x, r.variables[0]), r.variables[1]));
        }
        TUTTI_WITH_DEVICE(g, second) {
            r.y = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 3);
            r.variables[2] = tutti_variable(g, tutti_tensor_init(w2), .name = "w2");
            r.variables[3] = tutti_variable(g, tutti_zeros(3), .name = "b2");
            tutti_sym out = tutti_add(tutti_matmul(h, r.variables[2]), r.variables[3]);
            r.loss = tutti_mean(tutti_square(tutti_sub(out, r.y)));
        }
        tutti_gradients(r.loss, 4, r.variables, r.grads);
        tutti_tensor_release(w1);
        tutti_tensor_release(w2);
    }
    return r;
}

static double train_alone(const char *device, double *ret_weight)
{
    tutti_graph *g;
    tutti_session *s;
    CHECK_OK(tutti_graph_create(&g));
    replica r = build(g, 0, device, device);
    tutti_sym step = tutti_apply_gradients(tutti_sgd(0.1), 4, r.variables, r.grads);
    CHECK_OK(tutti_session_open(&s, g));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    tutti_tensor *x = rows(2 * ROWS, 5, 3, 0), *y = rows(2 * ROWS, 3, 4, 0), *loss = NULL, *w;
    double last = 0;
    for (int i = 0; i < STEPS; i++) {
        CHECK_OK(tutti_run(s, .feed = TUTTI_FEED({r.x, x}, {r.y, y}),
                           .fetch = TUTTI_FETCH({r.loss, &loss}), .target = step));
        last = tutti_tensor_get(loss, 0);
        tutti_tensor_release(loss);
    }
    CHECK_OK(tutti_session_get(s, r.variables[0], &w));
    *ret_weight = tutti_tensor_get(w, 7);
    tutti_tensor_release(w);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    tutti_session_close(s);
    tutti_graph_destroy(g);
    return last;
}

static double train_slice(const char *const devices[4], double *ret_weight)
{
    tutti_graph *g;
    tutti_session *s;
    replica r[2];
    tutti_sym steps[2];
    tutti_tensor *x[2], *y[2], *loss[2], *w;
    CHECK_OK(tutti_graph_create(&g));
    for (int i = 0; i < 2; i++) {
        r[i] = build(g, i, devices[2 * i], devices[2 * i + 1]);
        for (int v = 0; v < 4; v++)
            TUTTI_WITH_COLOCATION(g, r[i].variables[v])
                r[i].grads[v].value = tutti_all_reduce(r[i].grads[v].value, "data", 2, TUTTI_MEAN);
        steps[i] = tutti_apply_gradients(tutti_sgd(0.1, .name = i ? "sgd1" : "sgd0"), 4,
                                         r[i].variables, r[i].grads);
        x[i] = rows(ROWS, 5, 3, i * ROWS);
        y[i] = rows(ROWS, 3, 4, i * ROWS);
    }
    CHECK_OK(tutti_graph_check(g));
    CHECK_OK(tutti_session_open(&s, g, .mesh = "data=2,stage=2",
                                .mesh_devices = mesh_devices(4, devices)));
    CHECK_OK(tutti_run(s, .target = tutti_initialize_variables(g)));
    double last = 0;
    for (int i = 0; i < STEPS; i++) {
        CHECK_OK(tutti_run(
            s, .feed = TUTTI_FEED({r[0].x, x[0]}, {r[0].y, y[0]}, {r[1].x, x[1]}, {r[1].y, y[1]}),
            .fetch = TUTTI_FETCH({r[0].loss, &loss[0]}, {r[1].loss, &loss[1]}),
            .targets = TUTTI_TARGETS(steps[0], steps[1])));
        last = (tutti_tensor_get(loss[0], 0) + tutti_tensor_get(loss[1], 0)) / 2;
        tutti_tensor_release(loss[0]);
        tutti_tensor_release(loss[1]);
    }
    tutti_tensor *both[2];
    for (int i = 0; i < 2; i++)
        CHECK_OK(tutti_session_get(s, r[i].variables[0], &both[i]));
    CHECK(tutti_tensor_same(both[0], both[1])); /* replicas stay equal bit by bit */
    w = both[0];
    *ret_weight = tutti_tensor_get(w, 7);
    for (int i = 0; i < 2; i++) {
        tutti_tensor_release(both[i]);
        tutti_tensor_release(x[i]);
        tutti_tensor_release(y[i]);
    }
    tutti_session_close(s);
    tutti_graph_destroy(g);
    return last;
}

static void compare(const char *const devices[4])
{
    double weight_alone, weight_slice;
    double alone = train_alone("cpu:0", &weight_alone), slice = train_slice(devices, &weight_slice);
    CHECK_NEAR(slice, alone, 1e-5 * alone);
    CHECK_NEAR(weight_slice, weight_alone, 1e-5);
}

TUTTI_TEST(slice_on_four_far_devices_trains_to_the_one_device_loss)
{
    compare((const char *const[]){"far:0", "far:1", "far:2", "far:3"});
}

TUTTI_TEST(slice_on_whole_and_far_devices_trains_to_the_one_device_loss)
{
    compare((const char *const[]){"whole:0", "far:0", "whole:1", "far:1"});
}
