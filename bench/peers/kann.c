/* kann.c: one training step by KANN, the C library, with its own RMSprop:
 *     kann mnist|cifar BATCH THREADS
 * Built by run.sh from the source folder KANN_DIR. Prints one JSON line as the other peers do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kann.h"

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static kad_node_t *mnist(void)
{
    kad_node_t *t = kad_feed(4, 1, 1, 28, 28);
    t->ext_flag |= KANN_F_IN;
    t = kad_max2d(kad_relu(kann_layer_conv2d(t, 32, 3, 3, 1, 1, 0, 0)), 2, 2, 2, 2, 0, 0);
    return kad_relu(kann_layer_dense(t, 64));
}

static kad_node_t *cifar(void)
{
    kad_node_t *t = kad_feed(4, 1, 3, 32, 32);
    t->ext_flag |= KANN_F_IN;
    t = kad_max2d(kad_relu(kann_layer_conv2d(t, 6, 5, 5, 1, 1, 0, 0)), 2, 2, 2, 2, 0, 0);
    t = kad_max2d(kad_relu(kann_layer_conv2d(t, 16, 5, 5, 1, 1, 0, 0)), 2, 2, 2, 2, 0, 0);
    return kad_relu(kann_layer_dense(kad_relu(kann_layer_dense(t, 120)), 84));
}

static double step(kann_t *net, int batch, float *memory)
{
    double start = seconds();
    kann_set_batch_size(net, batch);
    kann_cost(net, 0, 1);
    kann_RMSprop(kann_size_var(net), 1e-3f, 0, 0.9f, net->g, net->x, memory);
    return seconds() - start;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return fprintf(stderr, "usage: kann mnist|cifar BATCH THREADS\n"), 2;
    int batch = atoi(argv[2]), threads = atoi(argv[3]);
    kann_srand(1);
    kann_t *net = kann_new(
        kann_layer_cost(strcmp(argv[1], "mnist") == 0 ? mnist() : cifar(), 10, KANN_C_CEM), 0);
    int in = kann_dim_in(net), out = kann_dim_out(net);
    float *x = calloc((size_t)(in * batch), sizeof *x),
          *y = calloc((size_t)(out * batch), sizeof *y);
    float *memory = calloc((size_t)kann_size_var(net), sizeof *memory);
    if (!x || !y || !memory)
        return fprintf(stderr, "no memory\n"), 1;
    for (int i = 0; i < in * batch; i++)
        x[i] = (float)kann_drand() - 0.5f;
    for (int i = 0; i < batch; i++)
        y[i * out + i % 10] = 1;
    if (threads > 1)
        kann_mt(net, threads, batch);
    kann_feed_bind(net, KANN_F_IN, 0, &x);
    kann_feed_bind(net, KANN_F_TRUTH, 0, &y);
    kann_switch(net, 1);
    double best = 1e9, began = seconds();
    for (int i = 0; i < 100 && (i < 5 || seconds() - began < 5); i++) {
        double each = step(net, batch, memory);
        best = each < best ? each : best;
    }
    printf(
        "{\"bench\": \"step\", \"work\": \"%s, batch %d, f32\", \"peer\": \"kann\", \"value\": %.6g, "
        "\"unit\": \"ms\", \"version\": \"%s\"}\n",
        argv[1], batch, best * 1e3, KANN_VERSION);
    return 0;
}
