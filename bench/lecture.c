/* lecture.c: the lecture's MNIST network. */
#include "bench/lecture.h"

tutti_lecture tutti__lecture_variables(tutti_graph *g)
{
    return (tutti_lecture){
        .kernel = tutti_variable(g, tutti_glorot_uniform(3, 3, 1, 32), .name = "conv/kernel"),
        .bias = tutti_variable(g, tutti_zeros(32), .name = "conv/bias"),
        .w1 = tutti_variable(g, tutti_glorot_uniform(5408, 64), .name = "dense/kernel"),
        .b1 = tutti_variable(g, tutti_zeros(64), .name = "dense/bias"),
        .w2 = tutti_variable(g, tutti_glorot_uniform(64, 10), .name = "logits/kernel"),
        .b2 = tutti_variable(g, tutti_zeros(10), .name = "logits/bias"),
    };
}

tutti_sym tutti__lecture_loss(const tutti_lecture *n, tutti_sym images, tutti_sym labels)
{
    tutti_sym h = tutti_relu(tutti_add(tutti_nn_conv2d(images, n->kernel), n->bias));
    h = tutti_nn_flatten(tutti_nn_max_pool2d(h, .pool_size = {2, 2}));
    h = tutti_relu(tutti_add(tutti_matmul(h, n->w1), n->b1));
    tutti_sym logits = tutti_add(tutti_matmul(h, n->w2), n->b2);
    return tutti_mean(tutti_nn_sparse_cross_entropy(labels, logits));
}

void tutti__lecture_open(int64_t batch, tutti_strategy *strategy, tutti_lecture_session *ret)
{
    tutti_lecture_session l = {
        .batch = strategy ? batch * tutti_strategy_workers(strategy) : 0,
        .images = tutti__bench_tensor(TUTTI_F32, 4, (int64_t[]){batch, 28, 28, 1}, 1),
        .labels = tutti__bench_tensor(TUTTI_I64, 1, (int64_t[]){batch}, 2)};
    tutti__bench_must(tutti_graph_create(&l.graph));
    l.x = tutti_placeholder(l.graph, TUTTI_F32, TUTTI_ANY, 28, 28, 1);
    l.y = tutti_placeholder(l.graph, TUTTI_I64, TUTTI_ANY);
    if (strategy)
        l.x = tutti_split_batch(l.x), l.y = tutti_split_batch(l.y);
    tutti_lecture net = tutti__lecture_variables(l.graph);
    l.step = tutti_minimize(tutti_adam(), tutti__lecture_loss(&net, l.x, l.y));
    tutti__bench_must(tutti_session_open(&l.session, l.graph, .strategy = strategy));
    tutti__bench_must(tutti_run(l.session, .target = tutti_initialize_variables(l.graph)));
    *ret = l;
}

void tutti__lecture_close(tutti_lecture_session *l)
{
    tutti_session_close(l->session);
    tutti_graph_destroy(l->graph);
    tutti_tensor_release(l->images);
    tutti_tensor_release(l->labels);
}

void tutti__lecture_step(void *context)
{
    tutti_lecture_session *l = context;
    tutti__bench_must(tutti_run(l->session,
                                .feed = TUTTI_FEED({l->x, l->images}, {l->y, l->labels}),
                                .target = l->step, .batch = l->batch));
}
