/* conv.c: 3x3 convolutions of padding "same", forward and both backward, as a training step runs
 * them; with --precision bf16, of a layer of that precision between others of f32. */
#include <stdio.h>
#include <string.h>

#include "bench/operator.h"

/* Batch, channels, filters, height and width. */
static const int64_t shapes[][4] = {
    {32, 64, 64, 32}, {32, 128, 128, 16}, {32, 16, 32, 28}, {8, 64, 64, 56}};

enum { FORWARD, BACKWARD_INPUT, BACKWARD_KERNEL };
static const char *const ways[] = {"forward", "backward input", "backward kernel"};

/* A convolution is linear in x and in w: the gradient of sum(y * dy) needs nothing but dy and the
 * other one, so that nothing else runs. */
static double seconds_of(const int64_t *shape, int way, tutti_dtype dtype, int repeats)
{
    int64_t n = shape[0], c = shape[1], k = shape[2], h = shape[3];
    tutti_graph *graph;
    tutti__bench_must(tutti_graph_create(&graph));
    tutti_sym x = tutti_placeholder(graph, TUTTI_F32, n, h, h, c);
    tutti_sym w = tutti_placeholder(graph, TUTTI_F32, 3, 3, c, k);
    tutti_sym dy = tutti_placeholder(graph, TUTTI_F32, n, h, h, k);
    tutti_sym y = tutti_nn_conv2d(tutti_cast(x, dtype), tutti_cast(w, dtype), .padding = "same");
    y = tutti_cast(y, TUTTI_F32);
    tutti_sym wanted =
        way == FORWARD ? y : tutti_gradient(tutti_mul(y, dy), way == BACKWARD_INPUT ? x : w);
    tutti_feed feeds[] = {
        {x, tutti__bench_tensor(TUTTI_F32, 4, (int64_t[]){n, h, h, c}, 1)},
        {w, tutti__bench_tensor(TUTTI_F32, 4, (int64_t[]){3, 3, c, k}, 2)},
        {dy, tutti__bench_tensor(TUTTI_F32, 4, (int64_t[]){n, h, h, k}, 3)},
    };
    double seconds = tutti__operator_seconds(graph, wanted, 3, feeds, repeats);
    for (int i = 0; i < 3; i++)
        tutti_tensor_release(feeds[i].value);
    tutti_graph_destroy(graph);
    return seconds;
}

static int run(int argc, char **argv, bool json)
{
    int64_t repeats = 20;
    const char *precision = "f32";
    if (!tutti__option_int(&argc, argv, "--repeats", 1, 1 << 20, &repeats))
        return TUTTI_EXIT_USAGE;
    tutti__option(&argc, argv, "--precision", &precision);
    if (!tutti__bench_knows_all(argc, argv))
        return TUTTI_EXIT_USAGE;
    tutti_dtype dtype = strcmp(precision, "bf16") == 0 ? TUTTI_BF16 : TUTTI_F32;
    if (dtype == TUTTI_F32 && strcmp(precision, "f32") != 0) {
        fprintf(stderr, "tutti bench conv: --precision is f32 or bf16, not '%s'\n", precision);
        return TUTTI_EXIT_USAGE;
    }
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int way = FORWARD; way <= BACKWARD_KERNEL; way++) {
            const int64_t *s = shapes[i];
            const char *note = dtype == TUTTI_BF16 ? ", bf16" : "";
            char work[80];
            double flops = 2.0 * 9 * (double)(s[0] * s[1] * s[2] * s[3] * s[3]);
            double seconds = seconds_of(s, way, dtype, (int)repeats);
            snprintf(work, sizeof work, "3x3 (%lld,%lld,%lld,%lld) %s%s", (long long)s[0],
                     (long long)s[1], (long long)s[2], (long long)s[3], ways[way], note);
            tutti__report(json, &(tutti_result){"conv", work, flops / seconds * 1e-9, "GFLOP/s"});
        }
    return TUTTI_EXIT_OK;
}

const tutti_bench tutti_bench_conv = {
    .name = "conv",
    .summary = "3x3 convolutions, forward and both backward",
    .run = run,
};
