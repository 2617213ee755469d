/* 4_loop.c: a convolutional network trained by a custom loop with the tape.
 *
 *     ./4_loop                 on drawn digits: at least 0.97 of the test digits are right after
 * one epoch
 *     ./4_loop --data DIR      on MNIST's files in DIR: at least 0.97
 *     ./4_loop --epochs N      more epochs
 *
 * The program fails (exit 1) when it ends below that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tutti/tutti.h>

#define BATCH 64

static void must(tutti_status status)
{
    if (status == TUTTI_OK)
        return;
    fprintf(stderr, "tutti: %s\n", tutti_error_message());
    exit(1);
}

/* The weights of the network, in the order that `weights` lists them. */
enum { KERNEL, KERNEL_BIAS, HIDDEN, HIDDEN_BIAS, OUT, OUT_BIAS, WEIGHTS };

static tutti_sym apply(const tutti_sym *w, tutti_sym x)
{
    tutti_sym h = tutti_relu(tutti_add(tutti_conv2d_of(x, w[KERNEL]), w[KERNEL_BIAS]));
    h = tutti_flatten_of(tutti_max_pool2d_of(h, .window = {2, 2}));
    h = tutti_relu(tutti_add(tutti_matmul(h, w[HIDDEN]), w[HIDDEN_BIAS]));
    return tutti_add(tutti_matmul(h, w[OUT]), w[OUT_BIAS]);
}

static double evaluate(tutti_eager *e, const tutti_sym *weights, tutti_tensor *images,
                       tutti_tensor *labels)
{
    double right = 0;
    int64_t count = tutti_tensor_dims(images)[0], size = 500;
    for (int64_t at = 0; at + size <= count; at += size) {
        tutti_tensor *x, *y;
        must(tutti_tensor_slice(images, 0, at, size, 1, &x));
        must(tutti_tensor_slice(labels, 0, at, size, 1, &y));
        TUTTI_STEP(e)
        {
            tutti_sym guess = tutti_argmax(apply(weights, tutti_use(e, x)), 1);
            right +=
                tutti_item(tutti_sum(tutti_cast(tutti_equal(guess, tutti_use(e, y)), TUTTI_F32)));
        }
        tutti_tensor_release(x);
        tutti_tensor_release(y);
    }
    must(tutti_eager_check(e));
    return right / (double)(count / size * size);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A bar that fills; on a terminal only. */
static void progress(int64_t step, int64_t steps, double seconds, double loss)
{
    if (!isatty(1))
        return;
    printf("\r%4lld/%lld ", (long long)step, (long long)steps);
    for (int i = 0; i < 20; i++)
        printf("%s", i < 20 * step / steps ? "\u2501" : " ");
    printf(" %.1f s  %.2f ms/step  loss %.4f ", seconds, 1e3 * seconds / (double)step, loss);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *data = NULL;
    int epochs = 1;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 < argc && strcmp(argv[i], "--data") == 0)
            data = argv[i + 1];
        else if (i + 1 < argc && strcmp(argv[i], "--epochs") == 0 && atoi(argv[i + 1]) > 0)
            epochs = atoi(argv[i + 1]);
        else
            return fprintf(stderr, "usage: %s [--data DIR] [--epochs N]\n", argv[0]), 2;
    }
    tutti_tensor *images, *labels, *test_images, *test_labels;
    must(tutti_mnist_load(data, "train", 0, &images, &labels));
    must(tutti_mnist_load(data, "test", 0, &test_images, &test_labels));

    tutti_eager *e;
    must(tutti_eager_open(&e));
    tutti_graph *g = tutti_eager_graph(e);
    tutti_sym weights[WEIGHTS] = {
        [KERNEL] = tutti_variable(g, tutti_glorot_uniform(3, 3, 1, 32), .name = "conv/kernel"),
        [KERNEL_BIAS] = tutti_variable(g, tutti_zeros(32), .name = "conv/bias"),
        [HIDDEN] = tutti_variable(g, tutti_glorot_uniform(5408, 64), .name = "hidden/kernel"),
        [HIDDEN_BIAS] = tutti_variable(g, tutti_zeros(64), .name = "hidden/bias"),
        [OUT] = tutti_variable(g, tutti_glorot_uniform(64, 10), .name = "out/kernel"),
        [OUT_BIAS] = tutti_variable(g, tutti_zeros(10), .name = "out/bias"),
    };
    tutti_optimizer adam = tutti_adam(.learning_rate = 1e-3);
    int64_t count = tutti_tensor_dims(images)[0], *order = malloc((size_t)count * sizeof *order);
    if (!order)
        return 1;
    double accuracy = 0;
    for (int epoch = 0; epoch < epochs; epoch++) {
        double sum = 0, start = now();
        tutti_shuffled(1, (uint64_t)epoch, count, order);
        for (int64_t at = 0; at + BATCH <= count; at += BATCH) {
            tutti_tensor *bx, *by;
            must(tutti_take_rows(images, BATCH, order + at, &bx));
            must(tutti_take_rows(labels, BATCH, order + at, &by));
            tutti_sym x = tutti_use(e, bx), y = tutti_use(e, by), loss;
            TUTTI_TAPE(tape, e)
            loss = tutti_mean(tutti_sparse_cross_entropy_of(y, apply(weights, x)));
            tutti_grad grads[WEIGHTS];
            tutti_gradients(&tape, loss, WEIGHTS, weights, grads);
            tutti_apply_gradients(adam, WEIGHTS, weights, grads);
            sum += tutti_item(loss);
            must(tutti_step(e));
            int64_t done = at / BATCH + 1;
            if (done % 20 == 0 || done == count / BATCH)
                progress(done, count / BATCH, now() - start, sum / (double)done);
            tutti_tensor_release(bx);
            tutti_tensor_release(by);
        }
        accuracy = evaluate(e, weights, test_images, test_labels);
        printf("%sepoch %d  loss %.4f  test accuracy %.4f\n", isatty(1) ? "\n" : "", epoch + 1,
               sum / (double)(count / BATCH), accuracy);
        fflush(stdout);
    }
    free(order);
    tutti_tensor_release(images);
    tutti_tensor_release(labels);
    tutti_tensor_release(test_images);
    tutti_tensor_release(test_labels);
    tutti_eager_close(e);
    return accuracy >= 0.97 ? 0 : 1;
}
