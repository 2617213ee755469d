/* sharded_test.c: variables in blocks compute what one device computes: ZeRO, tensor parallelism,
 * both, on devices of one process. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "tutti/tutti.h"

enum { INPUTS = 6, HIDDEN = 12, CLASSES = 5, WEIGHTS = 4, ROWS = 8, STEPS = 12 };

typedef struct net {
    tutti_graph *graph;
    tutti_session *session;
    tutti_sym x, y, loss, step, weights[WEIGHTS];
} net;

static tutti_tensor *numbers(int64_t rows, int64_t columns, unsigned seed)
{
    tutti_tensor *t;
    CHECK_OK(tutti_tensor_create(TUTTI_F64, 2, (int64_t[]){rows, columns}, &t));
    for (int64_t i = 0; i < rows * columns; i++)
        tutti_tensor_set(t, i, sin(0.7 * (double)(i + 1) * (seed + 1)) * 0.8);
    return t;
}

static tutti_sym weight(net *n, int i, const char *name, int64_t rows, int64_t columns,
                        const char *sharding)
{
    tutti_tensor *start = numbers(rows, columns, (unsigned)i + 3);
    n->weights[i] = tutti_variable(n->graph, tutti_tensor_init(start), .name = name);
    tutti_tensor_release(start);
    if (sharding)
        n->weights[i] = tutti_sharded(n->weights[i], sharding);
    return n->weights[i];
}

/* Two dense layers with a penalty on the weights, gradients clipped by their norm, Adam. */
static net start(tutti_strategy *strategy, tutti_optimizer optimizer)
{
    net n = {0};
    CHECK_OK(tutti_graph_create(&n.graph));
    CHECK_OK(tutti_session_open(&n.session, n.graph, .strategy = strategy, .deadline_seconds = 20));
    tutti_graph *g = n.graph;
    n.x = tutti_split_batch(tutti_placeholder(g, TUTTI_F64, TUTTI_ANY, INPUTS));
    n.y = tutti_split_batch(tutti_placeholder(g, TUTTI_F64, TUTTI_ANY, CLASSES));
    tutti_sym w0 = weight(&n, 0, "w0", INPUTS, HIDDEN, "embed,hidden");
    tutti_sym b0 = weight(&n, 1, "b0", 1, HIDDEN, "-,hidden");
    tutti_sym h = tutti_tanh(tutti_add(tutti_matmul(n.x, w0), b0));
    tutti_sym w1 = weight(&n, 2, "w1", HIDDEN, CLASSES, "hidden,embed");
    tutti_sym b1 = weight(&n, 3, "b1", 1, CLASSES, NULL);
    tutti_sym out = tutti_add(tutti_matmul(h, w1), b1);
    n.loss = tutti_add(tutti_mean(tutti_square(tutti_sub(out, n.y))),
                       tutti_mul(tutti_sum(tutti_square(w0)), 0.01));
    n.step = tutti_minimize(optimizer, n.loss);
    CHECK_OK(tutti_graph_check(g));
    CHECK_OK(tutti_run(n.session, .target = tutti_initialize_variables(g)));
    return n;
}

static void end(net *n, tutti_strategy *strategy)
{
    tutti_session_close(n->session);
    tutti_graph_destroy(n->graph);
    CHECK_OK(tutti_strategy_close(strategy));
}

/* The losses of some steps, then all weights. */
typedef struct outcome {
    double losses[STEPS];
    tutti_tensor *weights[WEIGHTS];
} outcome;

static outcome train(net *n, int64_t rows)
{
    outcome o;
    tutti_tensor *x = numbers(rows, INPUTS, 0), *y = numbers(rows, CLASSES, 1), *loss;
    for (int i = 0; i < STEPS; i++) {
        CHECK_OK(tutti_run(n->session, .feed = TUTTI_FEED({n->x, x}, {n->y, y}),
                           .fetch = TUTTI_FETCH({n->loss, &loss}), .target = n->step));
        o.losses[i] = tutti_tensor_get(loss, 0);
        tutti_tensor_release(loss);
    }
    for (int i = 0; i < WEIGHTS; i++)
        CHECK_OK(tutti_session_get(n->session, n->weights[i], &o.weights[i]));
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    return o;
}

static void release(outcome *o)
{
    for (int i = 0; i < WEIGHTS; i++)
        tutti_tensor_release(o->weights[i]);
}

static void compare(const outcome *a, const outcome *b)
{
    for (int i = 0; i < STEPS; i++)
        CHECK_NEAR(a->losses[i], b->losses[i], 1e-9);
    for (int i = 0; i < WEIGHTS; i++)
        for (int64_t k = 0; k < tutti_tensor_count(a->weights[i]); k++)
            CHECK_NEAR(tutti_tensor_get(a->weights[i], k), tutti_tensor_get(b->weights[i], k),
                       1e-9);
}

static void like_one_device(const char *name, tutti_strategy_options options,
                            tutti_optimizer optimizer, int64_t rows)
{
    tutti_strategy *one = tutti_strategy_create("one_device", NULL);
    options.struct_size = sizeof options;
    options.replicate_below = 1;
    tutti_strategy *many = tutti_strategy_create(name, &options);
    CHECK_OK(tutti_strategy_check(many));
    net alone = start(one, optimizer), shared = start(many, optimizer);
    outcome a = train(&alone, rows), b = train(&shared, rows);
    compare(&a, &b);
    release(&a);
    release(&b);
    end(&alone, one);
    end(&shared, many);
}

static tutti_optimizer clipped_adam(void)
{
    return tutti_adam(.learning_rate = 0.05, .global_clip_norm = 0.7);
}

TUTTI_TEST(sharded_zero_computes_what_one_device_does)
{
    for (int zero = 1; zero <= 3; zero++)
        for (int64_t rows = ROWS - 3; rows <= ROWS; rows += 3)
            like_one_device("fully_sharded",
                            (tutti_strategy_options){.devices = "cpu:0,cpu:1", .zero = zero},
                            clipped_adam(), rows);
    like_one_device("fully_sharded",
                    (tutti_strategy_options){
                        .devices = "cpu:0,cpu:1,cpu:2,cpu:3", .zero = 3, .mesh = "host=2,shard=2"},
                    clipped_adam(), ROWS);
}

TUTTI_TEST(sharded_tensor_computes_what_one_device_does)
{
    like_one_device("tensor", (tutti_strategy_options){.devices = "cpu:0,cpu:1"}, clipped_adam(),
                    ROWS);
    like_one_device(
        "tensor",
        (tutti_strategy_options){.devices = "cpu:0,cpu:1,cpu:2,cpu:3", .mesh = "data=2,model=2"},
        clipped_adam(), ROWS);
}
