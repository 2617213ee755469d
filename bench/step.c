/* step.c: one training step of the lecture's MNIST network: convolution 32x3x3 relu, max-pool 2, dense
 * 64 relu, dense 10, Adam; as a session and as a tape; and the time from process start to its end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "cli/bench.h"

typedef struct network {
    tutti_sym kernel, bias, w1, b1, w2, b2;
} network;

static network make_network(tutti_graph *g)
{
    return (network){
        .kernel = tutti_variable(g, tutti_glorot_uniform(3, 3, 1, 32), .name = "conv/kernel"),
        .bias = tutti_variable(g, tutti_zeros(32), .name = "conv/bias"),
        .w1 = tutti_variable(g, tutti_glorot_uniform(5408, 64), .name = "dense/kernel"),
        .b1 = tutti_variable(g, tutti_zeros(64), .name = "dense/bias"),
        .w2 = tutti_variable(g, tutti_glorot_uniform(64, 10), .name = "logits/kernel"),
        .b2 = tutti_variable(g, tutti_zeros(10), .name = "logits/bias"),
    };
}

static tutti_sym forward(const network *n, tutti_sym images, tutti_sym labels)
{
    tutti_sym h = tutti_relu(tutti_add(tutti_conv2d_of(images, n->kernel), n->bias));
    h = tutti_flatten_of(tutti_max_pool2d_of(h, .window = {2, 2}));
    h = tutti_relu(tutti_add(tutti_matmul(h, n->w1), n->b1));
    tutti_sym logits = tutti_add(tutti_matmul(h, n->w2), n->b2);
    return tutti_mean(tutti_sparse_cross_entropy_of(labels, logits));
}

typedef struct work {
    tutti_tensor *images, *labels;
    tutti_session *session;
    tutti_sym x, y, loss, step;
    tutti_eager *eager;
    network net;
} work;

static void session_step(void *context)
{
    work *w = context;
    tutti__bench_must(tutti_run(w->session, .feed = TUTTI_FEED({w->x, w->images}, {w->y, w->labels}), .target = w->step));
}

static void tape_step(void *context)
{
    work *w = context;
    tutti_sym x = tutti_use(w->eager, w->images), y = tutti_use(w->eager, w->labels), loss;
    TUTTI_TAPE(tape, w->eager)
    loss = forward(&w->net, x, y);
    tutti_sym weights[] = {w->net.kernel, w->net.bias, w->net.w1, w->net.b1, w->net.w2, w->net.b2};
    tutti_grad grads[6];
    tutti_gradients(&tape, loss, 6, weights, grads);
    tutti_apply_gradients(tutti_adam(), 6, weights, grads);
    tutti__bench_must(tutti_step(w->eager));
}

/* Seconds since this process began, by the kernel's account. */
static double since_start(void)
{
    char text[1024] = "";
    unsigned long long ticks = 0;
    FILE *file = fopen("/proc/self/stat", "r");
    if (file) {
        size_t size = fread(text, 1, sizeof text - 1, file);
        text[size] = 0;
        fclose(file);
    }
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (at)
        ticks = strtoull(at, NULL, 10);
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9 - (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

static double resident_mib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

static void open_session(work *w, tutti_graph **ret_graph)
{
    tutti_graph *g;
    tutti__bench_must(tutti_graph_create(&g));
    w->x = tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, 28, 28, 1);
    w->y = tutti_placeholder(g, TUTTI_I64, TUTTI_ANY);
    w->net = make_network(g);
    w->loss = forward(&w->net, w->x, w->y);
    w->step = tutti_minimize(tutti_adam(), w->loss);
    tutti__bench_must(tutti_session_open(&w->session, g));
    tutti__bench_must(tutti_run(w->session, .target = tutti_initialize_all(g)));
    *ret_graph = g;
}

static int run(int argc, char **argv, bool json)
{
    int64_t batch = 64, steps = 100;
    if (!tutti__option_int(&argc, argv, "--batch", 1, 1 << 20, &batch) ||
        !tutti__option_int(&argc, argv, "--steps", 1, 1 << 20, &steps))
        return TUTTI_EXIT_USAGE;
    if (argc > 1 && strcmp(argv[1], "mnist") != 0)
        return tutti__complain("bench step knows mnist, not '%s'", argv[1]), TUTTI_EXIT_USAGE;
    work w = {.images = tutti__bench_tensor(TUTTI_F32, 4, (int64_t[]){batch, 28, 28, 1}, 1),
              .labels = tutti__bench_tensor(TUTTI_I64, 1, (int64_t[]){batch}, 2)};
    tutti_graph *graph;
    open_session(&w, &graph);
    session_step(&w);
    double first = since_start(), memory = resident_mib();
    tutti_session_info info;
    tutti_session_describe(w.session, &info);
    bool alone = argc > 1; /* in a run of all benchmarks the process is old */
    if (alone) {
        tutti__report(json, &(tutti_result){"step", "process start to first finished step", first * 1e3, "ms", 100});
        tutti__report(json, &(tutti_result){"step", "resident memory", memory, "MiB", 100});
    }
    tutti__report(json, &(tutti_result){"step", "compiling the training step", info.last_compile_seconds * 1e3, "ms", 5});
    int times = (int)(steps / 10 > 0 ? steps / 10 : 1);
    double session = tutti__best_seconds(10, times, session_step, &w);
    tutti__report(json, &(tutti_result){"step", "lecture network, session", session * 1e3, "ms"});
    tutti__report(json, &(tutti_result){"step", "lecture network, session", (double)batch / session, "samples/s"});
    tutti_session_close(w.session);
    tutti_graph_destroy(graph);
    tutti__bench_must(tutti_eager_open(&w.eager));
    w.net = make_network(tutti_eager_graph(w.eager));
    double tape = tutti__best_seconds(10, times, tape_step, &w);
    tutti__report(json, &(tutti_result){"step", "the same with the tape, against the session", tape / session, "x", 1.15});
    tutti_eager_close(w.eager);
    tutti_tensor_release(w.images);
    tutti_tensor_release(w.labels);
    return TUTTI_EXIT_OK;
}

const tutti_bench tutti_bench_step = {
    .name = "step",
    .summary = "one training step of the lecture's MNIST network",
    .run = run,
};
