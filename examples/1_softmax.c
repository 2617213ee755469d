/* 1_softmax.c: softmax regression as a graph and a session, in the manner of TensorFlow 1.
 *
 *     ./1_softmax                 on drawn digits: at least 0.90 of the test digits are right
 *     ./1_softmax --data DIR      on MNIST's files in DIR: at least 0.91
 *
 * The program fails (exit 1) when it ends below that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tutti/tutti.h>

#define BATCH 100
#define STEPS 2000

static void must(tutti_status status)
{
    if (status == TUTTI_OK)
        return;
    fprintf(stderr, "tutti: %s\n", tutti_error_message());
    exit(1);
}

int main(int argc, char **argv)
{
    const char *data = argc == 3 && strcmp(argv[1], "--data") == 0 ? argv[2] : NULL;
    if (argc != 1 && !data) {
        fprintf(stderr, "usage: %s [--data DIR]\n", argv[0]);
        return 2;
    }
    tutti_tensor *images, *labels, *test_images, *test_labels;
    must(tutti_mnist_load(data, "train", 0, &images, &labels));
    must(tutti_mnist_load(data, "test", 0, &test_images, &test_labels));

    tutti_graph *g;
    must(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 28, 28, 1),
              y_ = tutti_placeholder(g, TUTTI_I64, TUTTI_ANY);
    tutti_sym W = tutti_variable(g, tutti_zeros(784, 10), .name = "W");
    tutti_sym b = tutti_variable(g, tutti_zeros(10), .name = "b");
    tutti_sym y = tutti_add(tutti_matmul(tutti_reshape(x, -1, 784), W), b);
    tutti_sym loss = tutti_mean(tutti_sparse_cross_entropy_of(y_, y));
    tutti_sym step = tutti_minimize(tutti_sgd(0.5), loss);
    tutti_sym right = tutti_equal(tutti_argmax(y, 1), y_);
    tutti_sym accuracy = tutti_mean(tutti_cast(right, TUTTI_F32));

    tutti_session *session;
    must(tutti_session_open(&session, g));
    must(tutti_run(session, .target = tutti_initialize_all(g)));

    int64_t count = tutti_tensor_dims(images)[0], *order = malloc((size_t)count * sizeof *order);
    if (!order)
        return 1;
    int64_t per_epoch = count / BATCH;
    for (int64_t i = 0; i <= STEPS; i++) {
        if (i % per_epoch == 0)
            tutti_shuffled(1, (uint64_t)(i / per_epoch), count, order);
        tutti_tensor *bx, *by, *value;
        must(tutti_take_rows(images, BATCH, order + i % per_epoch * BATCH, &bx));
        must(tutti_take_rows(labels, BATCH, order + i % per_epoch * BATCH, &by));
        must(tutti_run(session, .feed = TUTTI_FEED({x, bx}, {y_, by}), .target = step));
        if (i % 500 == 0) {
            must(tutti_run(session, .feed = TUTTI_FEED({x, bx}, {y_, by}),
                           .fetch = TUTTI_FETCH({loss, &value})));
            printf("step %4lld  loss %.4f\n", (long long)i, tutti_tensor_get(value, 0));
            tutti_tensor_release(value);
        }
        tutti_tensor_release(bx);
        tutti_tensor_release(by);
    }
    tutti_tensor *value;
    must(tutti_run(session, .feed = TUTTI_FEED({x, test_images}, {y_, test_labels}),
                   .fetch = TUTTI_FETCH({accuracy, &value})));
    double reached = tutti_tensor_get(value, 0), expected = data ? 0.91 : 0.90;
    printf("test accuracy %.4f\n", reached);

    free(order);
    tutti_tensor_release(value);
    tutti_tensor_release(images);
    tutti_tensor_release(labels);
    tutti_tensor_release(test_images);
    tutti_tensor_release(test_labels);
    tutti_session_close(session);
    tutti_graph_destroy(g);
    return reached >= expected ? 0 : 1;
}
