/* bench.c: `tutti bench`: runs benchmarks and prints their figures. */
#include "cli/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/nearest.h"
#include "base/params.h"
#include "base/pool.h"
#include "base/random.h"
#include "tables/bench.h"

static const char usage[] =
    "usage: tutti bench [NAME [OPTIONS]] [--json]\n\n"
    "Runs one benchmark, or all of them. Each line names the work, the figure, and the limit that is\n"
    "promised for it. --json prints one object a line with bench, work, value, unit, limit, ok, cpu.\n\n"
    "  tutti bench step EXAMPLE [FLAGS]   one training step of an example, first and steady: softmax,\n"
    "                                     mnist, tickets, loop, cifar, text, resnet, autoencoder\n"
    "      --batch N --precision f32|bf16|f16 --threads N\n"
    "      --steps N      as many timed steps; else 100, or what fits into 5 s\n"
    "      --profile      where the step's time goes, kernel by kernel, with each one's share of its\n"
    "                     roofline\n"
    "      --cold         the first step alone; with an empty folder TUTTI_CACHE nothing is tuned yet\n"
    "      --json         the last object has name, batch, precision, threads, ms, samples_per_second,\n"
    "                     share_of_peak, first_step_ms, resident_mib, planned_bytes (of the step's\n"
    "                     arena), bound_bytes (the most in use at once)\n"
    "  tutti bench infer FILE.onnx [FLAGS]  answers of a model, the first and steady\n"
    "      --batch N --threads N --runs N --profile --json\n"
    "      --cold         process start to the first answer alone\n"
    "      --paced        a round for each line SECONDS on standard input\n"
    "  tutti bench conv [--repeats N] [--precision f32|bf16]\n"
    "                                     3x3 convolutions, forward and both backward\n"
    "  tutti bench fit [--rounds N] [--steps N]\n"
    "  tutti bench forecast [EXAMPLE] [--rounds N] [--steps N]\n"
    "                                     predicted step time and memory against measured ones\n"
    "  tutti bench gemm_libraries [--rounds N]\n"
    "  tutti bench collectives [FLAGS]    collectives between processes: time, predicted, bandwidth\n"
    "      -n N --engine shm|tcp|local|mpi --op OP --algorithm NAME --bytes SIZE --rounds N\n"
    "      --streams N --private --free --json\n"
    "  tutti bench parallel [FLAGS]       a step of several replicas, under tutti run or on --devices\n"
    "      --work null|dense --devices LIST --alone --seconds N --cpu\n"
    "  tutti bench lockstep [FLAGS]       workers of tutti run beside workers apart, in turns\n\n"
    "tutti bench NAME --help tells more of collectives, parallel and lockstep.\n";

int64_t tutti__bench_middle(const double *values, int64_t count)
{
    for (int64_t at = 0; at < count; at++) {
        int64_t before = 0; /* in order, equal ones as they stand */
        for (int64_t i = 0; i < count; i++)
            before += values[i] < values[at] || (i < at && values[i] == values[at]);
        if (before == count / 2)
            return at;
    }
    return 0;
}

int tutti__bench_threads(void)
{
    static const tutti_param threads =
        TUTTI_PARAM("THREADS", "0", "CPU threads; 0 takes all granted");
    int64_t count = tutti__param_int(&threads);
    return count > 0 ? (int)count : tutti__cpu_count();
}

const char *tutti__bench_cpu(void)
{
    static char text[160];
    if (!text[0])
        snprintf(text, sizeof text, "%s, %d threads", tutti__cpu()->model, tutti__bench_threads());
    return text;
}

bool tutti__bench_wide_vectors(void)
{
    return tutti__cpu()->avx512;
}

void tutti__report(bool json, const tutti_result *r)
{
    bool ok = r->limit == 0 || (r->higher ? r->value >= r->limit : r->value <= r->limit);
    if (json) {
        printf(
            "{\"bench\":\"%s\",\"work\":\"%s\",\"value\":%.6g,\"unit\":\"%s\",\"limit\":%.6g,\"ok\":%s,\"cpu\":\"%s\"}\n",
            r->bench, r->work, r->value, r->unit, r->limit, ok ? "true" : "false",
            tutti__bench_cpu());
    } else if (r->limit != 0) {
        printf("%-10s %-46s %10.4g %-8s %s %.4g  %s\n", r->bench, r->work, r->value, r->unit,
               r->higher ? "at least" : "at most ", r->limit, ok ? "ok" : "MISSED");
    } else {
        printf("%-10s %-46s %10.4g %s\n", r->bench, r->work, r->value, r->unit);
    }
    fflush(stdout);
}

double tutti__best_seconds(int repeats, int times, void (*work)(void *context), void *context)
{
    double best = INFINITY;
    work(context); /* warm */
    for (int r = 0; r < repeats; r++) {
        double start = tutti__seconds();
        for (int t = 0; t < times; t++)
            work(context);
        double each = (tutti__seconds() - start) / times;
        best = each < best ? each : best;
    }
    return best;
}

bool tutti__bench_knows_all(int argc, char **argv)
{
    if (argc > 1)
        tutti__complain("bench %s does not know '%s'%s; see tutti bench --help", argv[0], argv[1],
                        tutti__meant(tutti__flag_meant(usage, argv[1])));
    return argc <= 1;
}

void tutti__bench_must(tutti_status status)
{
    if (status == TUTTI_OK)
        return;
    tutti__complain("%s", tutti_error_message());
    exit(TUTTI_EXIT_FAILED);
}

enum { DRAWN = 10007 }; /* a prime, so that no two rows are alike */

tutti_tensor *tutti__bench_tensor(tutti_dtype dtype, int rank, const int64_t *dims, uint64_t seed)
{
    tutti_tensor *tensor;
    tutti__bench_must(tutti_tensor_create(dtype, rank, dims, &tensor));
    tutti_random_key key = {.seed = seed};
    int64_t count = tutti_tensor_count(tensor);
    if (dtype == TUTTI_F32) {
        float *data = tutti_tensor_data(tensor);
        for (int64_t i = 0; i < count; i++) /* again and again: drawing takes longer than reading */
            data[i] = i < DRAWN ? tutti__random_f32(key, (uint64_t)i) - 0.5f : data[i - DRAWN];
        return tensor;
    }
    for (int64_t i = 0; i < count; i++)
        tutti_tensor_set(tensor, i, tutti__random_u32(key, (uint64_t)i) % 10);
    return tensor;
}

static void list(FILE *to)
{
    for (const tutti_bench *const *bench = tutti__bench_table; *bench; bench++)
        fprintf(to, "  %-14s %s\n", (*bench)->name, (*bench)->summary);
}

static void print_names(void)
{
    printf("\nnames:\n");
    list(stdout);
}

static int bench_run(int argc, char **argv)
{
    bool json = tutti__flag(&argc, argv, "--json");
    int code = TUTTI_EXIT_OK, found = 0;
    if (!json && argc <= 1)
        printf("on %s\n", tutti__bench_cpu());
    for (const tutti_bench *const *bench = tutti__bench_table; *bench; bench++) {
        if (argc > 1 && strcmp((*bench)->name, argv[1]) != 0)
            continue;
        found++;
        int asked = argc;
        if (argc > 2 && (tutti__flag(&asked, argv, "--help") || tutti__flag(&asked, argv, "-h")))
            return printf("%s", (*bench)->usage ? (*bench)->usage : usage), TUTTI_EXIT_OK;
        int one = (*bench)->run(argc > 1 ? argc - 1 : 1, argc > 1 ? argv + 1 : argv, json);
        code = one ? one : code;
    }
    if (!found) {
        tutti_nearest nearest = {.word = argv[1]};
        for (const tutti_bench *const *bench = tutti__bench_table; *bench; bench++)
            tutti__nearest_try(&nearest, (*bench)->name);
        tutti__complain("there is no benchmark '%s'%s; these exist:", argv[1],
                        tutti__meant(nearest.found));
        list(stderr);
        return TUTTI_EXIT_USAGE;
    }
    return code;
}

const tutti_command tutti_command_bench = {
    .name = "bench",
    .summary = "measure this machine with our own benchmarks",
    .usage = usage,
    .more = print_names,
    .run = bench_run,
    .starts_program = true,
};
