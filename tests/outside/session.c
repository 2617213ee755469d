/* session.c: operators from outside in a session, on the CPU and on both test devices. */
#include <stdlib.h>

#include "acme/acme.h"
#include "check.h"

static double swish(double x, double alpha)
{
    return (x + alpha * x * x * x) / (1 + exp(-x));
}

static double slope(double x, double alpha)
{
    double h = 1e-5;
    return (swish(x + h, alpha) - swish(x - h, alpha)) / (2 * h);
}

static double bend(double x, double alpha)
{
    double h = 1e-4;
    return (swish(x + h, alpha) - 2 * swish(x, alpha) + swish(x - h, alpha)) / (h * h);
}

/* Values, first and second derivatives, for shapes that become known when fed. */
static void check_values(const char *device)
{
    tutti_graph *g = NULL;
    tutti_session *session = NULL;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY);
    tutti_sym y = acme_swish(tutti_mul(x, 2), 0.3);
    tutti_sym first = tutti_gradient(y, x), second = tutti_gradient(first, x);
    CHECK_OK(tutti_session_open(&session, g, .device = device));
    for (int64_t n = 5; n < 8; n++) {
        tutti_tensor *in = check_tensor(1, &n, -1.1, 0.37), *out[3] = {0};
        CHECK_OK(
            tutti_run(session, .feed = TUTTI_FEED({x, in}),
                      .fetch = TUTTI_FETCH({y, &out[0]}, {first, &out[1]}, {second, &out[2]})));
        for (int64_t i = 0; out[2] && i < n; i++) {
            double at = 2 * tutti_tensor_get(in, i);
            CHECK_NEAR(tutti_tensor_get(out[0], i), swish(at, 0.3), 1e-6);
            CHECK_NEAR(tutti_tensor_get(out[1], i), 2 * slope(at, 0.3), 1e-5);
            CHECK_NEAR(tutti_tensor_get(out[2], i), 4 * bend(at, 0.3), 1e-4);
        }
        for (int i = 0; i < 3; i++)
            tutti_tensor_release(out[i]);
        tutti_tensor_release(in);
    }
    tutti_session_close(session);
    tutti_graph_destroy(g);
}

/* A network of both operators learns; `first` and `second` are the devices of its halves. */
typedef struct network {
    tutti_graph *graph;
    tutti_sym x, target, loss, step, hidden;
} network;

static network make_network(const char *first, const char *second)
{
    network n = {0};
    tutti_sym h = TUTTI_NO_SYM;
    CHECK_OK(tutti_graph_create(&n.graph));
    TUTTI_WITH_DEVICE(n.graph, first) {
        n.x = tutti_placeholder(n.graph, TUTTI_F32, TUTTI_ANY, 3);
        n.hidden = tutti_variable(n.graph, tutti_glorot_uniform(3, 4), .name = "hidden", .seed = 5);
        h = acme_swish(tutti_matmul(n.x, n.hidden), 0.2);
    }
    TUTTI_WITH_DEVICE(n.graph, second) {
        n.target = tutti_placeholder(n.graph, TUTTI_F32, TUTTI_ANY);
        tutti_sym weight = tutti_variable(n.graph, tutti_full(0.5, 6), .name = "weight");
        tutti_sym guess = acme_rows(h, weight, 2);
        n.loss = tutti_mean(tutti_square(tutti_sub(guess, n.target)));
        n.step = tutti_minimize(tutti_adam(.learning_rate = 0.05), n.loss);
    }
    return n;
}

enum { STEPS = 60 };

static void train(const char *device, const char *first, const char *second,
                  double ret_losses[STEPS])
{
    network n = make_network(first, second);
    tutti_session *session = NULL;
    tutti_tensor *x = check_tensor(2, (int64_t[]){6, 3}, -0.9, 0.11),
                 *target = check_tensor(1, (int64_t[]){6}, 0.3, 0.1);
    CHECK_OK(tutti_session_open(&session, n.graph, .device = device));
    CHECK_OK(tutti_run(session, .target = tutti_initialize_variables(n.graph)));
    for (int i = 0; i < STEPS; i++) {
        tutti_tensor *loss = NULL;
        CHECK_OK(tutti_run(session, .feed = TUTTI_FEED({n.x, x}, {n.target, target}),
                           .fetch = TUTTI_FETCH({n.loss, &loss}), .target = n.step));
        ret_losses[i] = loss ? tutti_tensor_get(loss, 0) : NAN;
        tutti_tensor_release(loss);
    }
    CHECK(ret_losses[STEPS - 1] < ret_losses[0] / 8);
    tutti_tensor_release(x);
    tutti_tensor_release(target);
    tutti_session_close(session);
    tutti_graph_destroy(n.graph);
}

static void check_training(void)
{
    double cpu[STEPS], other[STEPS];
    train("cpu:0", "", "", cpu);
    train("far:0", "", "", other);
    CHECK(memcmp(cpu, other, sizeof cpu) == 0); /* the same kernels give the same bits */
    train("cpu:0", "far:0", "far:1", other);
    CHECK(memcmp(cpu, other, sizeof cpu) == 0);
    train("whole:0", "", "", other); /* reference kernels only */
    for (int i = 0; i < STEPS; i++)
        CHECK_NEAR(other[i], cpu[i], 1e-3);
    train("cpu:0", "whole:0", "far:0", other);
    CHECK_NEAR(other[STEPS - 1], cpu[STEPS - 1], 1e-3);
}

/* A kernel that fails ends the run with its own message; no variable has changed; the next run
 * works. */
static void check_failure(const char *device)
{
    tutti_graph *g = NULL;
    tutti_session *session = NULL;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 2, 2), w = tutti_placeholder(g, TUTTI_F32, 2);
    tutti_sym count = tutti_variable(g, tutti_zeros(), .name = "count");
    tutti_sym total = tutti_sym_output(acme_rows(x, w, 1), 1);
    tutti_sym add = tutti_assign_add(count, tutti_scalar(g, TUTTI_F32, 1)), after = TUTTI_NO_SYM;
    TUTTI_WITH_CONTROL(g, add) {
        after = acme_rows(tutti_identity(x), w, 2); /* follows the update, and may fail */
    }
    CHECK_OK(tutti_session_open(&session, g, .device = device));
    CHECK_OK(tutti_run(session, .target = tutti_initialize_variables(g)));
    tutti_tensor *in = check_tensor(2, (int64_t[]){2, 2}, 1, 1),
                 *good = check_tensor(1, (int64_t[]){2}, 1, 1);
    tutti_tensor *bad = check_tensor(1, (int64_t[]){2}, 1, NAN), *value = NULL, *kept = NULL;
    CHECK(tutti_run(session, .feed = TUTTI_FEED({x, in}, {w, bad}),
                    .targets = TUTTI_TARGETS(add, total)) == TUTTI_CHECK_FAILED);
    CHECK_SAYS("acme.weighted_rows 'acme.weighted_rows' (session.c:");
    CHECK_SAYS("): weight[0] is not a number");
    CHECK(tutti_run(session, .feed = TUTTI_FEED({x, in}, {w, bad}),
                    .targets = TUTTI_TARGETS(after)) == TUTTI_CHECK_FAILED);
    CHECK_OK(tutti_run(session, .feed = TUTTI_FEED({x, in}, {w, good}),
                       .fetch = TUTTI_FETCH({total, &value}), .target = add));
    CHECK_NEAR(value ? tutti_tensor_get(value, 0) : NAN, 3 + 2 * 7, 0);
    CHECK_OK(tutti_session_get(session, count, &kept));
    CHECK_NEAR(kept ? tutti_tensor_get(kept, 0) : NAN, 1, 0);
    tutti_tensor *all[] = {in, good, bad, value, kept};
    for (int i = 0; i < 5; i++)
        tutti_tensor_release(all[i]);
    tutti_session_close(session);
    tutti_graph_destroy(g);
}

/* A shape that depends on data, and what follows it. */
static void check_dynamic(const char *device)
{
    tutti_graph *g = NULL;
    tutti_session *session = NULL;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, 6);
    tutti_sym y = acme_swish(acme_positive(tutti_mul(x, 1)), 0);
    CHECK_OK(tutti_session_open(&session, g, .device = device));
    for (int positive = 0; positive < 7; positive++) {
        tutti_tensor *in = check_tensor(1, (int64_t[]){6}, positive - 5.5, 1), *out = NULL;
        CHECK_OK(tutti_run(session, .feed = TUTTI_FEED({x, in}), .fetch = TUTTI_FETCH({y, &out})));
        CHECK(out && tutti_tensor_count(out) == positive);
        if (out && positive > 0)
            CHECK_NEAR(tutti_tensor_get(out, positive - 1), swish(positive - 0.5, 0), 1e-6);
        tutti_tensor_release(in);
        tutti_tensor_release(out);
    }
    tutti_session_close(session);
    tutti_graph_destroy(g);
}

static void below(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret_results,
                  void *context)
{
    (void)count, (void)context;
    ret_results[0] = tutti_less(args[0], tutti_scalar(body, TUTTI_I64, 3));
}

static void turn(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret_results,
                 void *context)
{
    (void)count, (void)context;
    ret_results[0] = tutti_add(args[0], tutti_scalar(body, TUTTI_I64, 1));
    ret_results[1] = acme_swish(args[1], 0.1);
}

/* In a loop's body, with the gradient through three rounds. */
static void check_loop(const char *device)
{
    tutti_graph *g = NULL;
    tutti_session *session = NULL;
    tutti_sym results[2];
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32);
    tutti_while(below, turn, NULL, TUTTI_SYMS(tutti_scalar(g, TUTTI_I64, 0), x), 0, NULL, results);
    tutti_sym slope_of_three = tutti_gradient(results[1], x);
    CHECK_OK(tutti_session_open(&session, g, .device = device));
    tutti_tensor *in = check_tensor(0, NULL, 1.2, 0), *out[2] = {0};
    CHECK_OK(tutti_run(session, .feed = TUTTI_FEED({x, in}),
                       .fetch = TUTTI_FETCH({results[1], &out[0]}, {slope_of_three, &out[1]})));
    double a = 1.2, b = swish(a, 0.1), c = swish(b, 0.1);
    CHECK_NEAR(out[0] ? tutti_tensor_get(out[0], 0) : NAN, swish(c, 0.1), 1e-6);
    CHECK_NEAR(out[1] ? tutti_tensor_get(out[1], 0) : NAN,
               slope(a, 0.1) * slope(b, 0.1) * slope(c, 0.1), 1e-5);
    tutti_tensor_release(in);
    tutti_tensor_release(out[0]);
    tutti_tensor_release(out[1]);
    tutti_session_close(session);
    tutti_graph_destroy(g);
}

int main(void)
{
    CHECK_OK(acme_register());
    for (int i = 0; i < CHECK_DEVICES; i++) {
        check_values(check_devices[i]);
        check_failure(check_devices[i]);
        check_dynamic(check_devices[i]);
        check_loop(check_devices[i]);
    }
    check_training();
    return check_end();
}
