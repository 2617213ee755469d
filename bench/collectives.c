/* collectives.c: collectives between ranks of this machine, or of the job that runs it: size, time,
 * bandwidth, and what the cost model predicts, for every algorithm. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/ranks.h"
#include "bench/socket.h"
#include "cli/bench.h"
#include "comm/comm.h"

static const char usage[] =
    "usage: tutti bench collectives [-n RANKS] [--engine E] [--op OP] [--algorithm A] [--bytes N] [--json]\n\n"
    "  -n RANKS       processes or threads (2); under tutti run or mpirun the job's own ranks\n"
    "  --engine E     shm (default), tcp, local (threads of one process), mpi (by mpirun)\n"
    "  --op OP        all_reduce (default), broadcast, reduce, reduce_scatter, all_gather, gather,\n"
    "                 scatter, all_to_all, barrier, all; copy (what memory can do), socket (what a\n"
    "                 plain connection can do, there and back), async (all_reduce, started and waited for)\n"
    "  --algorithm A  one only; auto: what the cost model picks\n"
    "  --bytes N      one size only; k and m multiply by 1024\n"
    "  --private      buffers outside of the shared arena\n"
    "  --free         do not pin rank i to CPU i where there are enough\n"
    "  --streams N    connections between two ranks (tcp)\n";

typedef struct settings {
    int64_t ranks, streams;
    const char *engine, *operation, *algorithm;
    int64_t bytes; /* 0: a list */
    bool json, private_memory, free;
} settings;

typedef struct run_state {
    tutti_comm *comm;
    const settings *given;
    const char *operation, *algorithm; /* NULL: auto */
    int64_t bytes, count;              /* of the message; elements of a call */
    float *a, *b, *c;
    int socket; /* -1 until it is needed */
    tutti_comm_cost cost;
    tutti_cost_thorough model;
    int predicted, near; /* predictions from 64 KiB up; those within a fifth */
} run_state;

static bool is_one_of(const char *operation, const char *const *names)
{
    while (*names && strcmp(operation, *names) != 0)
        names++;
    return *names != NULL;
}

/* Operations whose blocks make up the message. */
static bool in_blocks(const char *operation)
{
    static const char *const names[] = {"reduce_scatter", "all_gather", "gather",
                                        "scatter",        "all_to_all", NULL};
    return is_one_of(operation, names);
}

/* What is no collective. */
static bool is_other(const char *operation)
{
    return is_one_of(operation, (const char *const[]){"copy", "socket", "async", NULL});
}

static tutti_status call_once(run_state *s)
{
    const tutti_comm_call *call = TUTTI_CALL(.algorithm = s->algorithm);
    const char *op = s->operation;
    tutti_comm *comm = s->comm;
    int64_t n = s->count;
    if (strcmp(op, "all_reduce") == 0)
        return tutti_comm_all_reduce(comm, s->a, s->a, n, TUTTI_F32, TUTTI_SUM, call);
    if (strcmp(op, "broadcast") == 0)
        return tutti_comm_broadcast(comm, s->a, n, TUTTI_F32, 0, call);
    if (strcmp(op, "reduce") == 0)
        return tutti_comm_reduce(comm, s->a, s->b, n, TUTTI_F32, TUTTI_SUM, 0, call);
    if (strcmp(op, "reduce_scatter") == 0)
        return tutti_comm_reduce_scatter(comm, s->a, s->b, n, TUTTI_F32, TUTTI_SUM, call);
    if (strcmp(op, "all_gather") == 0)
        return tutti_comm_all_gather(comm, s->a, s->b, n, TUTTI_F32, call);
    if (strcmp(op, "gather") == 0)
        return tutti_comm_gather(comm, s->a, s->b, n, TUTTI_F32, 0, call);
    if (strcmp(op, "scatter") == 0)
        return tutti_comm_scatter(comm, s->a, s->b, n, TUTTI_F32, 0, call);
    if (strcmp(op, "all_to_all") == 0)
        return tutti_comm_all_to_all(comm, s->a, s->b, n, TUTTI_F32, call);
    if (strcmp(op, "copy") == 0) {
        memcpy(s->b, s->a, (size_t)n * 4);
        return tutti_comm_barrier(comm, NULL);
    }
    if (strcmp(op, "socket") == 0)
        return tutti__bench_round_trip(comm, s->socket, s->b, (size_t)n * 4);
    if (strcmp(op, "async") == 0) {
        tutti_request *request;
        TUTTI_TRY(tutti_comm_all_reduce(comm, s->a, s->a, n, TUTTI_F32, TUTTI_SUM,
                                        TUTTI_CALL(.request = &request)));
        return tutti_comm_wait(request);
    }
    return tutti_comm_barrier(comm, call);
}

/* Operations after which the root, or the others, may be ahead: calls in a row would overlap. */
static bool one_way(const char *operation)
{
    static const char *const names[] = {"broadcast", "reduce", "gather", "scatter", NULL};
    return is_one_of(operation, names);
}

/* The three fastest rounds, which say whether the first can be believed. */
enum { FASTEST = 3 };

static void keep_fastest(double *fastest, double each)
{
    for (int i = 0; i < FASTEST; i++)
        if (each < fastest[i]) {
            double slower = fastest[i];
            fastest[i] = each;
            each = slower;
        }
}

/* Seconds of a call, once the caches have settled: the best of short rounds, until the three
 * fastest agree or half a second has gone. What all ranks know alike decides. */
static tutti_status time_calls(run_state *s, double *ret_seconds)
{
    int times = s->bytes >= 1 << 18 || one_way(s->operation) ? 1 : s->bytes >= 1 << 14 ? 20 : 100;
    int least = s->bytes >= 16 << 20 ? 6 : 40, most = 1000;
    double fastest[FASTEST] = {INFINITY, INFINITY, INFINITY}, spent = 0;
    for (int i = tutti__cost_settling(s->bytes); i > 0; i--)
        TUTTI_TRY(call_once(s));
    for (int round = 0; round < most && (round < least || spent < 0.5); round++) {
        TUTTI_TRY(tutti_comm_barrier(s->comm, NULL));
        double start = tutti__seconds();
        for (int i = 0; i < times; i++)
            TUTTI_TRY(call_once(s));
        double each;
        TUTTI_TRY(tutti__bench_span(s->comm, start, tutti__seconds(), &each));
        each /= times;
        keep_fastest(fastest, each);
        spent += each * times;
        if (round >= least && fastest[FASTEST - 1] < 1.02 * fastest[0])
            break;
    }
    *ret_seconds = fastest[0];
    return TUTTI_OK;
}

static double bus_bytes(const run_state *s)
{
    double ranks = tutti_comm_size(s->comm), share = (ranks - 1) / ranks;
    if (strcmp(s->operation, "all_reduce") == 0)
        return 2 * share * (double)s->bytes;
    return (in_blocks(s->operation) ? share : 1) * (double)s->bytes;
}

static void print_row(const run_state *s, double seconds, double predicted)
{
    const char *algorithm = s->algorithm ? s->algorithm : "auto";
    const char *engine = tutti_comm_size(s->comm) > 1 ? tutti_comm_engine(s->comm, 1) : "none";
    double bus = bus_bytes(s) / seconds * 1e-9;
    if (s->given->json) {
        printf("{\"op\":\"%s\",\"engine\":\"%s\",\"algorithm\":\"%s\",\"ranks\":%d,\"bytes\":%lld,"
               "\"us\":%.4g,\"predicted_us\":",
               s->operation, engine, algorithm, tutti_comm_size(s->comm), (long long)s->bytes,
               seconds * 1e6);
        printf(isfinite(predicted) ? "%.4g" : "null", predicted * 1e6);
        printf(",\"bus_gb_per_s\":%.4g,\"memory\":\"%s\",\"cpu\":\"%s\"}\n", bus,
               s->given->private_memory ? "private" : "arena", tutti__bench_cpu());
    } else {
        printf("%-14s %-6s %-13s %5d %10lld %12.2f", s->operation, engine, algorithm,
               tutti_comm_size(s->comm), (long long)s->bytes, seconds * 1e6);
        if (isfinite(predicted))
            printf(" %12.2f %+6.0f%%", predicted * 1e6, (predicted / seconds - 1) * 100);
        else
            printf(" %12s %7s", "-", "");
        printf(" %9.2f %9.2f\n", (double)s->bytes / seconds * 1e-9, bus);
    }
    fflush(stdout);
}

/* The model's time of what was chosen. */
static double predict(const run_state *s)
{
    int ranks = tutti_comm_size(s->comm);
    bool whole = !in_blocks(s->operation) || strcmp(s->operation, "reduce_scatter") == 0;
    int64_t bytes = whole ? s->bytes : s->bytes / ranks;
    if (s->algorithm)
        return tutti_comm_predict(&s->cost, s->operation, s->algorithm, ranks, bytes);
    tutti_operation number = tutti__operation_find(s->operation);
    if (number == TUTTI_OPERATION_COUNT)
        return INFINITY;
    tutti_collective c = {
        .comm = s->comm, .size = ranks, .operation = number, .count = s->count, .element = 4};
    const tutti_coll *by = tutti__coll_choose(&c);
    return tutti_comm_predict(&s->cost, s->operation, by->name, ranks, bytes);
}

static bool usable(const run_state *s, const char *name)
{
    const tutti_coll *coll = tutti__coll_find(name);
    return coll && tutti__coll_possible(coll, s->comm) && strcmp(name, "compressed") != 0;
}

/* An algorithm (or auto) at one size, and its time so far. */
typedef struct row {
    const char *algorithm;
    int64_t bytes; /* that were asked for */
    double seconds;
} row;
enum { MOST_ROWS = 256, PASSES = 2 };

static void take_row(run_state *s, const row *r)
{
    s->algorithm = strcmp(r->algorithm, "auto") == 0 ? NULL : r->algorithm;
    int blocks = in_blocks(s->operation) ? tutti_comm_size(s->comm) : 1;
    s->count = r->bytes / 4 / blocks;
    s->bytes = strcmp(s->operation, "barrier") == 0 ? 0 : s->count * 4 * blocks;
}

static void report_row(run_state *s, const row *r)
{
    take_row(s, r);
    double predicted = predict(s);
    if (s->bytes >= 1 << 16 && isfinite(predicted)) {
        s->predicted++;
        s->near += fabs(predicted / r->seconds - 1) <= 0.2;
    }
    print_row(s, r->seconds, predicted);
}

static void add_rows(const run_state *s, const char *algorithm, row *rows, int *count)
{
    static const int64_t sizes[] = {8, 1024, 1 << 16, 1 << 20, 16 << 20, 64 << 20};
    bool one = s->given->bytes || strcmp(s->operation, "barrier") == 0;
    for (size_t i = 0; i < (one ? 1 : sizeof sizes / sizeof sizes[0]) && *count < MOST_ROWS; i++)
        rows[(*count)++] = (row){algorithm, one ? s->given->bytes : sizes[i], INFINITY};
}

static int list_rows(const run_state *s, row *rows)
{
    int count = 0;
    const char *only = is_other(s->operation) ? "auto" : s->given->algorithm;
    add_rows(s, only ? only : "auto", rows, &count);
    if (only)
        return count;
    for (const char *const *name = tutti_comm_algorithms(s->operation); *name; name++)
        if (usable(s, *name))
            add_rows(s, *name, rows, &count);
    return count;
}

/* Once more in each pass, since the machine may do better by then; the least counts. */
static tutti_status measure_model(run_state *s)
{
    if (tutti_comm_size(s->comm) > 1)
        TUTTI_TRY(tutti__cost_measure(s->comm, &s->model));
    tutti_comm_get_cost(s->comm, &s->cost);
    return TUTTI_OK;
}

/* The model and all rows in turn, so that both have had the same moments. */
static tutti_status measure_operation(run_state *s, const char *operation)
{
    row rows[MOST_ROWS];
    s->operation = operation;
    if (strcmp(operation, "socket") == 0 && s->socket < 0)
        TUTTI_TRY(tutti__bench_socket(s->comm, &s->socket));
    int count = list_rows(s, rows);
    for (int pass = 0; pass < PASSES; pass++) {
        TUTTI_TRY(measure_model(s));
        for (int i = 0; i < count; i++) {
            double seconds;
            take_row(s, &rows[i]);
            TUTTI_TRY(time_calls(s, &seconds));
            rows[i].seconds = fmin(rows[i].seconds, seconds);
        }
    }
    for (int i = 0; i < count && tutti_comm_rank(s->comm) == 0; i++)
        report_row(s, &rows[i]);
    return TUTTI_OK;
}

static tutti_status allocate(run_state *s, int64_t bytes, float **ret)
{
    if (!s->given->private_memory)
        TUTTI_TRY(tutti_comm_allocate(s->comm, bytes, (void **)ret));
    else if (!(*ret = aligned_alloc(4096, (size_t)(bytes + 4095) / 4096 * 4096)))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %lld bytes", (long long)bytes);
    memset(*ret, 0, (size_t)bytes);
    return TUTTI_OK;
}

static void print_summary(const run_state *s)
{
    if (s->predicted == 0)
        return;
    if (s->given->json)
        printf("{\"predictions\":%d,\"within_20_percent\":%d,\"from_bytes\":65536}\n", s->predicted,
               s->near);
    else
        printf("\n%d of %d predictions from 64 KiB up are within 20 %% of the measurement.\n",
               s->near, s->predicted);
}

static tutti_status run_operations(run_state *s)
{
    bool all = strcmp(s->given->operation, "all") == 0;
    for (int i = 0; i < (all ? TUTTI_OPERATION_COUNT : 1); i++)
        TUTTI_TRY(measure_operation(s, all ? tutti__operation_names[i] : s->given->operation));
    return TUTTI_OK;
}

static tutti_status run_all(run_state *s)
{
    int64_t most = s->given->bytes ? s->given->bytes : 64 << 20, room = tutti__cost_room(most);
    room = room > most ? room : most;
    TUTTI_TRY(allocate(s, room + 4096, &s->a));
    TUTTI_TRY(allocate(s, room + 4096, &s->b));
    TUTTI_TRY(allocate(s, room + 4096, &s->c));
    s->model = (tutti_cost_thorough){.most = most, .a = s->a, .b = s->b, .c = s->c, .seconds = 6};
    tutti_comm_get_cost(s->comm, &s->cost);
    if (tutti_comm_rank(s->comm) == 0 && !s->given->json)
        printf("%-14s %-6s %-13s %5s %10s %12s %12s %7s %9s %9s\n", "operation", "engine",
               "algorithm", "ranks", "bytes", "us", "predicted us", "", "GB/s", "bus GB/s");
    TUTTI_TRY(run_operations(s));
    if (tutti_comm_rank(s->comm) == 0)
        print_summary(s);
    return TUTTI_OK;
}

/* One rank's part. */
static tutti_status work(tutti_comm *comm, const void *context)
{
    const settings *given = context;
    run_state s = {.comm = comm, .given = given, .socket = -1};
    tutti_status status = run_all(&s);
    if (s.socket >= 0)
        close(s.socket);
    if (given->private_memory)
        free(s.a), free(s.b), free(s.c);
    return status;
}

static int bench(const settings *given)
{
    fflush(stdout);
    return tutti__bench_run_ranks(&(tutti_bench_ranks){
        .count = (int)given->ranks,
        .free = given->free,
        .options = TUTTI_COMM_OPTIONS(.engine = given->engine, .streams = (int)given->streams,
                                      .timeout = 120),
        .work = work,
        .context = given});
}

static bool read_bytes(const char *text, int64_t *ret)
{
    char *end;
    long long value = strtoll(text, &end, 10);
    int shift = *end == 'k' ? 10 : *end == 'm' ? 20 : 0;
    if (end == text || value < 1 || value > (1 << 30) >> shift || value << shift < 4 ||
        end[shift != 0])
        return tutti__complain("--bytes takes a number from 4 to 1g, not '%s'", text), false;
    *ret = (int64_t)value << shift;
    return true;
}

static int run(int argc, char **argv, bool json)
{
    settings given = {.ranks = 2, .json = json, .operation = "all_reduce"};
    const char *bytes = NULL;
    (void)tutti__option(&argc, argv, "--engine", &given.engine);
    (void)tutti__option(&argc, argv, "--op", &given.operation);
    (void)tutti__option(&argc, argv, "--algorithm", &given.algorithm);
    given.private_memory = tutti__flag(&argc, argv, "--private");
    given.free = tutti__flag(&argc, argv, "--free");
    if (!tutti__option_int(&argc, argv, "-n", 1, 256, &given.ranks) ||
        !tutti__option_int(&argc, argv, "--streams", 1, 16, &given.streams) ||
        (tutti__option(&argc, argv, "--bytes", &bytes) && !read_bytes(bytes, &given.bytes)))
        return TUTTI_EXIT_USAGE;
    bool known = is_other(given.operation) || strcmp(given.operation, "all") == 0 ||
                 tutti__operation_find(given.operation) != TUTTI_OPERATION_COUNT;
    if (argc > 1 || !known)
        return tutti__complain("collectives: unknown %s; see tutti bench collectives --help",
                               argc > 1 ? argv[1] : given.operation),
               TUTTI_EXIT_USAGE;
    if (given.algorithm && strcmp(given.algorithm, "auto") != 0 &&
        !tutti__coll_find(given.algorithm))
        return tutti__complain("there is no algorithm '%s'", given.algorithm), TUTTI_EXIT_USAGE;
    return bench(&given);
}

const tutti_bench tutti_bench_collectives = {
    .name = "collectives",
    .summary = "collectives by every algorithm, predicted and measured",
    .usage = usage,
    .run = run,
};
