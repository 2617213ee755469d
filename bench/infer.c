/* infer.c: how fast an ONNX file answers: process start to the first answer, then steady runs of
 * one batch of synthetic inputs. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/params.h"
#include "bench/process.h"
#include "bench/roofline.h"
#include "cli/bench.h"
#include "exec/plan/share.h"
#include "tutti/onnx.h"

enum { MOST_PORTS = 64, WARM_RUNS = 3 };
#define MOST_RUNS 2000
#define MOST_SECONDS 2.0

typedef struct inference {
    const char *file;
    int64_t batch, runs; /* runs 0: as many as fit into MOST_SECONDS, at most MOST_RUNS */
    bool json, profiled, cold, paced;
    tutti_graph *graph;
    tutti_session *session;
    tutti_onnx_ports ports;
    tutti_feed feeds[MOST_PORTS];
    tutti_fetch fetches[MOST_PORTS];
    tutti_tensor *outputs[MOST_PORTS];
    double first, loaded, compiled; /* seconds: process start to first answer; reading; compiling */
    double best, sum;
    int64_t done;
} inference;

static const char usage[] =
    "usage: tutti bench infer FILE.onnx [--batch N] [--threads N] [--runs N] [--profile] [--cold]\n"
    "                         [--paced] [--json]\n";

/* An input's unknown dimensions: the first is the batch, others are 1. */
static tutti_tensor *make_input(const inference *w, int i)
{
    tutti_type type = tutti_sym_type(w->ports.inputs[i].sym);
    for (int axis = 0; axis < type.rank; axis++)
        if (type.dims[axis] == TUTTI_ANY)
            type.dims[axis] = axis == 0 ? w->batch : 1;
    return tutti__bench_tensor(type.dtype, type.rank, type.dims, (uint64_t)i + 1);
}

static void open_file(inference *w)
{
    double start = tutti__seconds();
    tutti__bench_must(tutti_graph_create(&w->graph));
    tutti__bench_must(tutti_import_graph_onnx(w->graph, w->file, &w->ports, .constants = true));
    if (w->ports.input_count > MOST_PORTS || w->ports.output_count > MOST_PORTS)
        tutti__bench_must(tutti_fail(TUTTI_TOO_LARGE, "at most %d inputs and outputs", MOST_PORTS));
    w->loaded = tutti__seconds() - start;
    for (int i = 0; i < w->ports.input_count; i++)
        w->feeds[i] = (tutti_feed){w->ports.inputs[i].sym, make_input(w, i)};
    for (int i = 0; i < w->ports.output_count; i++)
        w->fetches[i] = (tutti_fetch){w->ports.outputs[i].sym, &w->outputs[i]};
    tutti__bench_must(tutti_session_open(&w->session, w->graph));
}

static double run_once(inference *w)
{
    tutti_run_options options = {.struct_size = sizeof options,
                                 .feed = {w->ports.input_count, w->feeds},
                                 .fetch = {w->ports.output_count, w->fetches}};
    double start = tutti__seconds();
    tutti__bench_must(tutti_run_with(w->session, &options));
    for (int i = 0; i < w->ports.output_count; i++)
        tutti_tensor_release(w->outputs[i]);
    return tutti__seconds() - start;
}

static void close_file(inference *w)
{
    tutti_session_close(w->session);
    for (int i = 0; i < w->ports.input_count; i++)
        tutti_tensor_release(w->feeds[i].value);
    tutti_graph_destroy(w->graph);
}

static void report_first(const inference *w)
{
    double resident = tutti__resident_mib();
    if (w->json)
        printf("{\"bench\":\"infer\",\"work\":\"first\",\"file\":\"%s\",\"batch\":%lld,"
               "\"first_ms\":%.5g,\"load_ms\":%.5g,\"compile_ms\":%.5g,\"resident_mib\":%.5g}\n",
               w->file, (long long)w->batch, w->first * 1e3, w->loaded * 1e3, w->compiled * 1e3,
               resident);
    else
        printf("infer      %s, batch %lld: first answer %.4g ms after the process began (reading "
               "%.3g ms, compiling %.3g ms), %.4g MiB resident\n",
               w->file, (long long)w->batch, w->first * 1e3, w->loaded * 1e3, w->compiled * 1e3,
               resident);
    fflush(stdout);
}

static void report_steady(const inference *w)
{
    double speed = (double)w->batch / w->best, mean = w->sum / (double)w->done;
    if (w->json)
        printf("{\"bench\":\"infer\",\"work\":\"steady\",\"file\":\"%s\",\"batch\":%lld,"
               "\"threads\":%d,\"runs\":%lld,\"ms\":%.6g,\"mean_ms\":%.6g,"
               "\"samples_per_second\":%.6g,\"resident_mib\":%.5g,\"cpu\":\"%s\"}\n",
               w->file, (long long)w->batch, tutti__bench_threads(), (long long)w->done,
               w->best * 1e3, mean * 1e3, speed, tutti__resident_mib(), tutti__bench_cpu());
    else
        printf("infer      %s, batch %lld: %.4g ms (mean %.4g of %lld), %.5g samples/s\n", w->file,
               (long long)w->batch, w->best * 1e3, mean * 1e3, (long long)w->done, speed);
    fflush(stdout);
}

/* Runs for so many seconds, and notes the best. */
static void run_for(inference *w, double seconds, tutti_roofline *roofline)
{
    double began = tutti__seconds();
    for (int64_t i = 0; i < (w->runs ? w->runs : MOST_RUNS); i++) {
        double each = run_once(w);
        if (roofline)
            tutti__roofline_step(roofline, each);
        w->best = each < w->best ? each : w->best;
        w->sum += each;
        w->done++;
        if (!w->runs && i >= 2 && tutti__seconds() - began > seconds)
            break;
    }
}

/* A round for each line "SECONDS" on standard input, so that another program may take turns. */
static void run_paced(inference *w)
{
    double seconds;
    while (scanf("%lf", &seconds) == 1) {
        w->best = INFINITY;
        w->sum = 0;
        w->done = 0;
        run_for(w, seconds, NULL);
        report_steady(w);
    }
}

static void measure(inference *w)
{
    tutti_engine_stats stats;
    open_file(w);
    run_once(w);
    w->first = tutti__seconds_since_start();
    tutti__engine_stats(tutti__session_engine(w->session), &stats);
    w->compiled = stats.compile_seconds;
    report_first(w);
    if (w->cold)
        return;
    for (int i = 0; i < WARM_RUNS; i++)
        run_once(w);
    w->best = INFINITY;
    if (w->paced) {
        run_paced(w);
        return;
    }
    tutti_roofline *roofline =
        w->profiled ? tutti__roofline_open(tutti__session_engine(w->session)) : NULL;
    run_for(w, MOST_SECONDS, roofline);
    if (roofline) {
        tutti_peak peak = {0};
        tutti__peak_raise(&peak, tutti__bench_threads());
        tutti__roofline_report(roofline, w->file, &peak, w->json);
    }
    tutti__roofline_close(roofline);
    report_steady(w);
}

static int run(int argc, char **argv, bool json)
{
    const char *threads = NULL;
    inference w = {.batch = 1, .json = json};
    if (!tutti__option_int(&argc, argv, "--batch", 1, 1 << 20, &w.batch) ||
        !tutti__option_int(&argc, argv, "--runs", 1, 1 << 20, &w.runs))
        return TUTTI_EXIT_USAGE;
    if (tutti__option(&argc, argv, "--threads", &threads))
        tutti__bench_must(tutti__param_set("THREADS", threads));
    w.profiled = tutti__flag(&argc, argv, "--profile");
    w.cold = tutti__flag(&argc, argv, "--cold");
    w.paced = tutti__flag(&argc, argv, "--paced");
    if (argc < 2 && strcmp(argv[0], "infer") != 0) /* one of all benchmarks: there is no file */
        return TUTTI_EXIT_OK;
    if (argc != 2 || strncmp(argv[1], "--", 2) == 0) {
        fputs(usage, stderr);
        return TUTTI_EXIT_USAGE;
    }
    w.file = argv[1];
    measure(&w);
    close_file(&w);
    return TUTTI_EXIT_OK;
}

const tutti_bench tutti_bench_infer = {
    .name = "infer",
    .summary = "an ONNX file's answers, the first and steady",
    .run = run,
};
