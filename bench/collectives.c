/* collectives.c: collectives between ranks of this machine, or of the job that runs it: size, time,
 * bandwidth, and what the cost model predicts, for every algorithm. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/world_files.h"
#include "bench/call.h"
#include "bench/ranks.h"
#include "bench/socket.h"
#include "cli/bench.h"
#include "comm/coll/lane.h"
#include "comm/comm.h"
#include "comm/cost/description.h"

static const char usage[] =
    "usage: tutti bench collectives [-n RANKS] [--engine E] [--op OP] [--algorithm A] [--bytes N] [--rounds N] [--json]\n\n"
    "  -n RANKS       processes or threads (2); under tutti run or mpirun the job's own ranks\n"
    "  --engine E     shm (default), tcp, local (threads of one process), mpi (by mpirun); tcp with\n"
    "                 TLS: tutti run -n 2 --engine tcp tutti bench collectives\n"
    "  --op OP        all_reduce (default), broadcast, reduce, reduce_scatter, all_gather, gather,\n"
    "                 scatter, all_to_all, barrier, all; copy (what memory can do), socket (what a\n"
    "                 plain connection can do, there and back), async (all_reduce, started and waited for)\n"
    "  --algorithm A  one only; auto: what the cost model picks\n"
    "  --bytes N      one size only; k, m and g multiply by 1024\n"
    "  --rounds N     everything so often (1), and of each row the round in the middle by predicted /\n"
    "                 measured: on a machine that others use too, some rows of each round are disturbed\n"
    "  --private      buffers outside of the shared arena\n"
    "  --free         do not pin rank i to CPU i where there are enough\n"
    "  --streams N    connections between two ranks (tcp)\n"
    "  --describe F   write what links were measured to cost, for TUTTI_LINKS and tutti plan --links\n";

typedef struct settings {
    int64_t ranks, streams, rounds;
    const char *engine, *operation, *algorithm, *describe;
    int64_t bytes; /* 0: a list */
    bool json, private_memory, free;
} settings;

typedef struct run_state {
    const settings *given;
    tutti_bench_call call; /* the row at work */
    float *third;          /* buffer of the model */
    tutti_comm_cost cost;
    tutti_cost_thorough model;
    int predicted, near; /* predictions from 64 KiB up; those within a fifth */
} run_state;

/* "shm", or "shm+tcp" where ranks of several machines use two. */
static const char *engines_of(const tutti_comm *comm, char *ret_text, size_t size)
{
    const char *first = NULL, *other = NULL;
    for (int r = 0; r < tutti_comm_size(comm); r++) {
        const char *each = r == tutti_comm_rank(comm) ? first : tutti_comm_engine(comm, r);
        if (!first)
            first = each;
        else if (each && strcmp(each, first) != 0)
            other = each;
    }
    snprintf(ret_text, size, "%s%s%s", first ? first : "none", other ? "+" : "",
             other ? other : "");
    return ret_text;
}

static void print_row(const run_state *s, double seconds, double predicted)
{
    const tutti_bench_call *call = &s->call;
    const char *algorithm = call->algorithm ? call->algorithm : "auto";
    int ranks = tutti_comm_size(call->comm);
    char engine[64];
    engines_of(call->comm, engine, sizeof engine);
    double bus = tutti__bench_bus_bytes(call) / seconds * 1e-9;
    if (s->given->json) {
        printf("{\"op\":\"%s\",\"engine\":\"%s\",\"algorithm\":\"%s\",\"ranks\":%d,\"bytes\":%lld,"
               "\"us\":%.4g,\"predicted_us\":",
               call->operation, engine, algorithm, ranks, (long long)call->bytes, seconds * 1e6);
        printf(isfinite(predicted) ? "%.4g" : "null", predicted * 1e6);
        printf(",\"bus_gb_per_s\":%.4g,\"memory\":\"%s\",\"cpu\":\"%s\"}\n", bus,
               s->given->private_memory ? "private" : "arena", tutti__bench_cpu());
    } else {
        printf("%-14s %-6s %-13s %5d %10lld %12.2f", call->operation, engine, algorithm, ranks,
               (long long)call->bytes, seconds * 1e6);
        if (isfinite(predicted))
            printf(" %12.2f %+6.0f%%", predicted * 1e6, (predicted / seconds - 1) * 100);
        else
            printf(" %12s %7s", "-", "");
        printf(" %9.2f %9.2f\n", (double)call->bytes / seconds * 1e-9, bus);
    }
    fflush(stdout);
}

/* The model's time of what was chosen. */
static double predict(const run_state *s)
{
    const tutti_bench_call *call = &s->call;
    int ranks = tutti_comm_size(call->comm);
    bool whole =
        !tutti__bench_in_blocks(call->operation) || strcmp(call->operation, "reduce_scatter") == 0;
    int64_t bytes = whole ? call->bytes : call->bytes / ranks;
    if (call->algorithm)
        return tutti_comm_predict(&s->cost, call->operation, call->algorithm, ranks, bytes);
    tutti_operation number = tutti__operation_find(call->operation);
    if (number == TUTTI_OPERATION_COUNT)
        return INFINITY;
    tutti_collective c = {
        .comm = call->comm, .size = ranks, .operation = number, .count = call->count, .element = 4};
    const tutti_coll *by = tutti__coll_choose(&c);
    return tutti_comm_predict(&s->cost, call->operation, by->name, ranks, bytes);
}

static bool usable(const run_state *s, const char *name)
{
    const tutti_coll *coll = tutti__coll_find(name);
    return coll && tutti__coll_possible(coll, s->call.comm) && strcmp(name, "compressed") != 0;
}

/* In each pass the model is measured twice, before and after the rows. */
enum { MOST_ROWS = 512, MOST_ROUNDS = 15, PASSES = TUTTI_COST_PASSES / 2 };

/* An operation by an algorithm (or auto) at one size, and its time so far. */
typedef struct row {
    const char *operation, *algorithm;
    int64_t bytes; /* that were asked for */
    double seconds[PASSES];
    double took[MOST_ROUNDS], ratios[MOST_ROUNDS]; /* by round; predicted / took */
} row;

static void take_row(run_state *s, const row *r)
{
    tutti_bench_call *call = &s->call;
    int blocks = tutti__bench_in_blocks(r->operation) ? tutti_comm_size(call->comm) : 1;
    call->operation = r->operation;
    call->algorithm = strcmp(r->algorithm, "auto") == 0 ? NULL : r->algorithm;
    call->count = r->bytes / 4 / blocks;
    call->bytes = strcmp(r->operation, "barrier") == 0 ? 0 : call->count * 4 * blocks;
}

/* The round in the middle counts. */
static void report_row(run_state *s, const row *r)
{
    take_row(s, r);
    int64_t middle = tutti__bench_middle(r->ratios, s->given->rounds);
    if (s->call.bytes >= 1 << 16 && isfinite(r->ratios[middle])) {
        s->predicted++;
        s->near += fabs(r->ratios[middle] - 1) <= 0.2;
    }
    print_row(s, r->took[middle], r->ratios[middle] * r->took[middle]);
}

static void add_sizes(const run_state *s, const char *operation, const char *algorithm, row *rows,
                      int *count)
{
    static const int64_t sizes[] = {8, 1024, 1 << 16, 1 << 20, 16 << 20, 64 << 20};
    bool one = s->given->bytes || strcmp(operation, "barrier") == 0;
    for (size_t i = 0; i < (one ? 1 : sizeof sizes / sizeof sizes[0]) && *count < MOST_ROWS; i++)
        rows[(*count)++] =
            (row){operation, algorithm, one ? s->given->bytes : sizes[i], {0}, {0}, {0}};
}

static void add_rows(const run_state *s, const char *operation, row *rows, int *count)
{
    const char *only = tutti__bench_is_other(operation) ? "auto" : s->given->algorithm;
    add_sizes(s, operation, only ? only : "auto", rows, count);
    for (const char *const *name = tutti_comm_algorithms(operation); !only && *name; name++)
        if (usable(s, *name))
            add_sizes(s, operation, *name, rows, count);
}

static int list_rows(const run_state *s, row *rows)
{
    bool all = strcmp(s->given->operation, "all") == 0;
    int count = 0;
    for (int i = 0; i < (all ? TUTTI_OPERATION_COUNT : 1); i++)
        add_rows(s, all ? tutti__operation_names[i] : s->given->operation, rows, &count);
    return count;
}

/* Ranks that wait for a CPU cannot be predicted. */
static bool crowded(const run_state *s)
{
    const tutti_comm *comm = s->call.comm;
    return tutti_comm_hosts(comm) == 1 && tutti_comm_size(comm) > comm->fabric->cpus;
}

static tutti_status measure_model(run_state *s, int64_t above, int64_t most, int pass)
{
    if (crowded(s) && pass > 0)
        return TUTTI_OK;
    s->model.above = above;
    s->model.most = most;
    s->model.pass = pass;
    if (tutti_comm_size(s->call.comm) > 1)
        TUTTI_TRY(tutti__cost_measure(s->call.comm, &s->model));
    tutti_comm_get_cost(s->call.comm, &s->cost);
    return TUTTI_OK;
}

/* The largest size of a row below `limit`; small ones are one. -1: none. */
static int64_t size_below(const row *rows, int count, int64_t limit)
{
    enum { SMALL = 64 << 10 };
    int64_t most = -1;
    for (int i = 0; i < count && limit > SMALL; i++)
        if (rows[i].bytes < limit && rows[i].bytes > most)
            most = rows[i].bytes;
    return most;
}

/* Until the last cache has taken in both buffers, for which it takes up to 40 calls after larger
 * ones; smaller caches settle within each row. */
static tutti_status warm_up(run_state *s, int64_t bytes)
{
    enum { FROM = 4 << 20, PASSED = 1 << 30 };
    tutti_bench_call *call = &s->call;
    int ranks = tutti_comm_size(call->comm);
    for (int64_t i = bytes < FROM || crowded(s) ? 0 : PASSED / bytes; i > 0; i--)
        TUTTI_TRY(tutti_comm_all_to_all(call->comm, call->a, call->b, bytes / 4 / ranks, TUTTI_F32,
                                        NULL));
    return TUTTI_OK;
}

/* Links are measured for seconds at large sizes: on a terminal it says how far it is. */
static void show_progress(const run_state *s, int pass, int64_t most)
{
    if (tutti_comm_rank(s->call.comm) == 0 && isatty(STDERR_FILENO) == 1)
        fprintf(stderr,
                most < 0 ? "\r\033[K" : "\r\033[Kmeasuring, pass %d of %d, up to %lld bytes ",
                pass + 1, PASSES, (long long)most);
}

/* The rows of one size, between two measurements of the model at such sizes: what the host leaves
 * of memory and of the last cache changes within seconds. */
static tutti_status measure_size(run_state *s, row *rows, int count, int64_t above, int64_t most,
                                 int pass)
{
    TUTTI_TRY(warm_up(s, most));
    TUTTI_TRY(measure_model(s, above, most, 2 * pass));
    for (int i = 0; i < count; i++)
        if (rows[i].bytes > above && rows[i].bytes <= most) {
            take_row(s, &rows[i]);
            TUTTI_TRY(tutti__bench_time_call(&s->call, &rows[i].seconds[pass]));
        }
    return measure_model(s, above, most, 2 * pass + 1);
}

/* From the largest size down, as the model's are: a last cache that holds what rows of a size share
 * need not take it in for each of them. */
static tutti_status measure_round(run_state *s, row *rows, int count, int round)
{
    memset(s->model.seen, 0, sizeof s->model.seen);
    for (int pass = 0; pass < PASSES; pass++)
        for (int64_t most = size_below(rows, count, INT64_MAX), above; most >= 0; most = above) {
            above = size_below(rows, count, most);
            show_progress(s, pass, most);
            TUTTI_TRY(measure_size(s, rows, count, above, most, pass));
        }
    show_progress(s, 0, -1);
    for (int i = 0; i < count; i++) {
        take_row(s, &rows[i]);
        rows[i].took[round] = tutti__cost_quartile(rows[i].seconds, PASSES, 1);
        rows[i].ratios[round] = predict(s) / rows[i].took[round];
    }
    return TUTTI_OK;
}

static tutti_status measure_rows(run_state *s)
{
    row rows[MOST_ROWS];
    int count = list_rows(s, rows);
    for (int round = 0; round < s->given->rounds; round++) {
        if (s->given->rounds > 1 && tutti_comm_rank(s->call.comm) == 0)
            fprintf(stderr, "round %d of %d\n", round + 1, (int)s->given->rounds);
        TUTTI_TRY(measure_round(s, rows, count, round));
    }
    for (int i = 0; i < count && tutti_comm_rank(s->call.comm) == 0; i++)
        report_row(s, &rows[i]);
    return TUTTI_OK;
}

static tutti_status allocate(run_state *s, int64_t bytes, float **ret)
{
    if (!s->given->private_memory)
        TUTTI_TRY(tutti_comm_allocate(s->call.comm, bytes, (void **)ret));
    else if (!(*ret = aligned_alloc(4096, (size_t)(bytes + 4095) / 4096 * 4096)))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %lld bytes", (long long)bytes);
    memset(*ret, 0, (size_t)bytes);
    return TUTTI_OK;
}

static void print_turns(const run_state *s)
{
    const tutti_comm *comm = s->call.comm;
    int ranks = tutti_comm_size(comm), cpus = comm->fabric->cpus;
    int lanes = tutti__lanes_among(&s->cost, ranks);
    if (crowded(s))
        printf("There are more ranks than CPUs: they take turns, which is not predicted.\n");
    else if (tutti_comm_hosts(comm) == 1 && lanes * ranks > cpus)
        printf("Each of %d ranks has %d lanes, on %d CPUs: lanes take turns (see TUTTI_LANES).\n",
               ranks, lanes, cpus);
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
    if (!s->given->json)
        print_turns(s);
}

/* Before minutes are spent on what is to be written. */
static tutti_status check_writable(const char *path)
{
    char name[4200];
    struct stat about;
    if (tutti__is_nonfinite(path))
        return TUTTI_OK;
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        return tutti__fail_path(EISDIR, "write", path);
    int fd = tutti__open_beside(path, name, sizeof name);
    if (fd < 0)
        return tutti__fail_path(errno, "write", path);
    unlink(name);
    close(fd);
    return TUTTI_OK;
}

static tutti_status run_all(run_state *s)
{
    tutti_bench_call *call = &s->call;
    int64_t most = s->given->bytes ? s->given->bytes : 64 << 20, room = tutti__cost_room(most);
    room = (room > most ? room : most) + 4096;
    if (s->given->describe && tutti_comm_rank(call->comm) == 0)
        TUTTI_TRY(check_writable(s->given->describe));
    tutti_cost_thorough *model = &s->model;
    *model = (tutti_cost_thorough){.seconds = 4};
    TUTTI_TRY(allocate(s, room, &call->a));
    TUTTI_TRY(allocate(s, room, &call->b));
    TUTTI_TRY(allocate(s, room, &s->third));
    model->a = call->a, model->b = call->b, model->c = s->third;
    if (strcmp(s->given->operation, "socket") == 0)
        TUTTI_TRY(tutti__bench_socket(call->comm, &call->socket));
    if (tutti_comm_rank(call->comm) == 0 && !s->given->json)
        printf("%-14s %-6s %-13s %5s %10s %12s %12s %7s %9s %9s\n", "operation", "engine",
               "algorithm", "ranks", "bytes", "us", "predicted us", "", "GB/s", "bus GB/s");
    TUTTI_TRY(measure_rows(s));
    if (tutti_comm_rank(call->comm) > 0)
        return TUTTI_OK;
    print_summary(s);
    return s->given->describe
               ? tutti__description_write(&s->cost, tutti__cost_room(most), s->given->describe)
               : TUTTI_OK;
}

/* One rank's part. */
static tutti_status work(tutti_comm *comm, const void *context)
{
    const settings *given = context;
    run_state s = {.given = given, .call = {.comm = comm, .socket = -1}};
    tutti_status status = run_all(&s);
    if (s.call.socket >= 0)
        close(s.call.socket);
    if (given->private_memory)
        free(s.call.a), free(s.call.b), free(s.third);
    return status;
}

static int bench(const settings *given)
{
    enum { BUFFERS = 4, USUAL = 1 << 30 }; /* of the arena: three, and what is measured first */
    int64_t room = BUFFERS * given->bytes;
    fflush(stdout);
    return tutti__bench_run_ranks(&(tutti_bench_ranks){
        .count = (int)given->ranks,
        .free = given->free,
        .options = TUTTI_COMM_OPTIONS(.engine = given->engine, .streams = (int)given->streams,
                                      .arena_bytes = room > USUAL ? room : 0, .timeout = 120),
        .work = work,
        .context = given});
}

static bool read_bytes(const char *text, int64_t *ret)
{
    char *end;
    long long value = strtoll(text, &end, 10);
    int unit = tolower((unsigned char)*end), shift = unit == 'k'   ? 10
                                                     : unit == 'm' ? 20
                                                     : unit == 'g' ? 30
                                                                   : 0;
    if (end == text || value < 1 || value > (1 << 30) >> shift || value << shift < 4 ||
        end[shift != 0])
        return tutti__complain("--bytes takes a number from 4 to 1g, not '%s'", text), false;
    *ret = (int64_t)value << shift;
    return true;
}

static int run(int argc, char **argv, bool json)
{
    settings given = {.ranks = 2, .rounds = 1, .json = json, .operation = "all_reduce"};
    const char *bytes = NULL;
    (void)tutti__option(&argc, argv, "--engine", &given.engine);
    (void)tutti__option(&argc, argv, "--op", &given.operation);
    (void)tutti__option(&argc, argv, "--algorithm", &given.algorithm);
    (void)tutti__option(&argc, argv, "--describe", &given.describe);
    given.private_memory = tutti__flag(&argc, argv, "--private");
    given.free = tutti__flag(&argc, argv, "--free");
    if (!tutti__option_int(&argc, argv, "-n", 1, 256, &given.ranks) ||
        !tutti__option_int(&argc, argv, "--streams", 1, 16, &given.streams) ||
        !tutti__option_int(&argc, argv, "--rounds", 1, MOST_ROUNDS, &given.rounds) ||
        (tutti__option(&argc, argv, "--bytes", &bytes) && !read_bytes(bytes, &given.bytes)))
        return TUTTI_EXIT_USAGE;
    bool known = tutti__bench_is_other(given.operation) || strcmp(given.operation, "all") == 0 ||
                 tutti__operation_find(given.operation) != TUTTI_OPERATION_COUNT;
    if (argc > 1 || !known)
        return tutti__complain("collectives: unknown %s; see tutti bench collectives --help",
                               argc > 1 ? argv[1] : given.operation),
               TUTTI_EXIT_USAGE;
    const tutti_fabric_engine *engine;
    if (given.engine && tutti__engine_find(given.engine, &engine) != TUTTI_OK)
        return tutti__complain("%s", tutti_error_message()), TUTTI_EXIT_USAGE;
    if (given.algorithm && tutti__bench_is_other(given.operation))
        return tutti__complain("--op %s has no algorithms to choose from", given.operation),
               TUTTI_EXIT_USAGE;
    if (given.describe && given.ranks < 2)
        return tutti__complain("--describe takes at least two ranks"), TUTTI_EXIT_USAGE;
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
