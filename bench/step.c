/* step.c: one training step of the lecture's MNIST network: convolution 32x3x3 relu, max-pool 2,
 * dense 64 relu, dense 10, Adam; as a session and as a tape; and the time from process start to its
 * end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "bench/lecture.h"

typedef struct work {
    tutti_tensor *images, *labels;
    tutti_eager *eager;
    tutti_lecture net;
} work;

static void tape_step(void *context)
{
    work *w = context;
    tutti_sym x = tutti_use(w->eager, w->images), y = tutti_use(w->eager, w->labels), loss;
    TUTTI_TAPE(tape, w->eager)
        loss = tutti__lecture_loss(&w->net, x, y);
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
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9 -
           (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

static double resident_mib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

static double tape_seconds(const tutti_lecture_session *lecture, int steps)
{
    work w = {.images = lecture->images, .labels = lecture->labels};
    tutti__bench_must(tutti_eager_open(&w.eager));
    w.net = tutti__lecture_variables(tutti_eager_graph(w.eager));
    double seconds = tutti__best_seconds(steps, 1, tape_step, &w);
    tutti_eager_close(w.eager);
    return seconds;
}

static int run(int argc, char **argv, bool json)
{
    int64_t batch = 64, steps = 100;
    if (!tutti__option_int(&argc, argv, "--batch", 1, 1 << 20, &batch) ||
        !tutti__option_int(&argc, argv, "--steps", 1, 1 << 20, &steps))
        return TUTTI_EXIT_USAGE;
    if (argc > 1 && strcmp(argv[1], "mnist") != 0)
        return tutti__complain("bench step knows mnist, not '%s'", argv[1]), TUTTI_EXIT_USAGE;
    tutti_lecture_session lecture;
    tutti__lecture_open(batch, &lecture);
    tutti__lecture_step(&lecture);
    double first = since_start(), memory = resident_mib();
    tutti_session_info info;
    tutti_session_describe(lecture.session, &info);
    bool alone = argc > 1; /* in a run of all benchmarks the process is old */
    if (alone) {
        tutti__report(json, &(tutti_result){"step", "process start to first finished step",
                                            first * 1e3, "ms", 100});
        tutti__report(json, &(tutti_result){"step", "resident memory", memory, "MiB", 100});
    }
    tutti__report(json, &(tutti_result){"step", "compiling the training step",
                                        info.last_compile_seconds * 1e3, "ms", 5});
    double session = tutti__best_seconds((int)steps, 1, tutti__lecture_step, &lecture);
    tutti__report(json, &(tutti_result){"step", "lecture network, session", session * 1e3, "ms"});
    tutti__report(json, &(tutti_result){"step", "lecture network, session", (double)batch / session,
                                        "samples/s"});
    tutti__report(json, &(tutti_result){"step", "the same with the tape, against the session",
                                        tape_seconds(&lecture, (int)steps) / session, "x", 1.15});
    tutti__lecture_close(&lecture);
    return TUTTI_EXIT_OK;
}

const tutti_bench tutti_bench_step = {
    .name = "step",
    .summary = "one training step of the lecture's MNIST network",
    .run = run,
};
