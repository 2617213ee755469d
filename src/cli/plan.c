/* plan.c: `tutti plan`: what the cost model says of clusters that are not at hand. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "tutti/comm.h"

static const char usage[] =
    "usage: tutti plan collectives --ranks N --alpha SECONDS --beta SECONDS [OPTIONS]\n\n"
    "Prints the predicted time of every algorithm by message size, and where the best one changes.\n\n"
    "  --ranks N        ranks in all\n"
    "  --alpha S        seconds for a message of no bytes (20us and 0.02ms are understood)\n"
    "  --beta S         seconds a byte (1ns; or a bandwidth: 10GB/s)\n"
    "  --gamma S        seconds a byte of an addition (0.05ns)\n"
    "  --hosts N        machines that the ranks are spread over (as many as ranks)\n"
    "  --op OP          all_reduce (default), broadcast, all_gather, ...\n"
    "  --json           one object a line: op, algorithm, ranks, bytes, predicted_us, best\n";

static bool is_unit(const char *text, const char *unit)
{
    return strcmp(text, unit) == 0;
}

/* Seconds; false with a complaint. A bandwidth gives seconds a byte. */
static bool read_seconds(const char *name, const char *text, double *ret)
{
    char *end;
    double value = strtod(text, &end);
    double scale = is_unit(end, "") || is_unit(end, "s") ? 1
                   : is_unit(end, "ms")                  ? 1e-3
                   : is_unit(end, "us")                  ? 1e-6
                   : is_unit(end, "ns")                  ? 1e-9
                   : is_unit(end, "ps")                  ? 1e-12
                                                         : 0;
    double rate = is_unit(end, "GB/s")     ? 1e9
                  : is_unit(end, "MB/s")   ? 1e6
                  : is_unit(end, "Gbit/s") ? 1e9 / 8
                                           : 0;
    if (end == text || !(value > 0) || (scale == 0 && rate == 0)) {
        tutti__complain("%s takes a time (20us, 0.8ns) or, for beta and gamma, a bandwidth "
                        "(10GB/s, 25Gbit/s), not '%s'",
                        name, text);
        return false;
    }
    *ret = rate > 0 ? 1 / (value * rate) : value * scale;
    return true;
}

static void set_cost(tutti_comm_cost *cost, double alpha, double beta, double gamma, int hosts)
{
    cost->hosts = hosts;
    cost->phase = 0.5e-6;
    for (int link = 0; link < TUTTI_LINK_COUNT; link++)
        cost->link[link].alpha = alpha;
    for (int i = 0; i < TUTTI_COMM_SIZES; i++) {
        for (int link = 0; link < TUTTI_LINK_COUNT; link++)
            cost->link[link].beta[i] = cost->link[link].exchange[i] = beta;
        cost->gamma[i] = gamma;
        cost->copy[i] = cost->staged[i] = 0.12e-9;
    }
}

/* The formulas of shared memory hold within one machine only, those of several only beyond it. */
static bool fits(const tutti_comm_cost *cost, const char *algorithm)
{
    static const char *const others[] = {"compressed", "fixed", "native"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(algorithm, others[i]) == 0)
            return false;
    return strcmp(algorithm, "direct") != 0 || cost->hosts == 1;
}

static double block_of(const char *operation, double bytes, int ranks)
{
    bool blocks = strcmp(operation, "all_gather") == 0 || strcmp(operation, "gather") == 0 ||
                  strcmp(operation, "scatter") == 0 || strcmp(operation, "all_to_all") == 0;
    return blocks ? bytes / ranks : bytes;
}

static double predict(const tutti_comm_cost *cost, const char *operation, const char *algorithm,
                      int ranks, int64_t bytes)
{
    int64_t size = (int64_t)block_of(operation, (double)bytes, ranks);
    return fits(cost, algorithm) ? tutti_comm_predict(cost, operation, algorithm, ranks, size)
                                 : INFINITY;
}

static const char *best_of(const tutti_comm_cost *cost, const char *operation, int ranks,
                           int64_t bytes)
{
    const char *best = "";
    double least = INFINITY;
    for (const char *const *name = tutti_comm_algorithms(operation); *name; name++) {
        double time = predict(cost, operation, *name, ranks, bytes);
        if (time < least)
            least = time, best = *name;
    }
    return best;
}

static void print_size(int64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    int unit = 0;
    double value = (double)bytes;
    while (value >= 1024 && unit < 3)
        value /= 1024, unit++;
    printf("%6.4g %-3s", value, units[unit]);
}

static void print_table(const tutti_comm_cost *cost, const char *operation, int ranks, bool json)
{
    const char *const *names = tutti_comm_algorithms(operation);
    if (!json) {
        printf("%s, %d ranks on %d machines; microseconds, * is the best\n%10s", operation, ranks,
               cost->hosts, "bytes");
        for (const char *const *name = names; *name; name++)
            if (fits(cost, *name))
                printf(" %14s", *name);
        printf("\n");
    }
    for (int64_t bytes = 8; bytes <= INT64_C(1) << 30; bytes *= 8) {
        const char *best = best_of(cost, operation, ranks, bytes);
        if (!json)
            print_size(bytes);
        for (const char *const *name = names; *name; name++) {
            double time = predict(cost, operation, *name, ranks, bytes);
            if (!fits(cost, *name) || (json && !isfinite(time)))
                continue;
            if (json)
                printf("{\"op\":\"%s\",\"algorithm\":\"%s\",\"ranks\":%d,\"bytes\":%lld,"
                       "\"predicted_us\":%.6g,\"best\":%s}\n",
                       operation, *name, ranks, (long long)bytes, time * 1e6,
                       *name == best ? "true" : "false");
            else
                printf(" %13.5g%s", time * 1e6, *name == best ? "*" : " ");
        }
        if (!json)
            printf("\n");
    }
}

/* To the byte, by halving between two powers of two that differ. */
static void print_crossovers(const tutti_comm_cost *cost, const char *operation, int ranks)
{
    const char *now = best_of(cost, operation, ranks, 1);
    printf("\nbest: %s", now);
    for (int64_t bytes = 2; bytes <= INT64_C(1) << 32; bytes *= 2) {
        const char *next = best_of(cost, operation, ranks, bytes);
        if (next == now)
            continue;
        int64_t low = bytes / 2, high = bytes;
        while (high - low > 1) {
            int64_t middle = low + (high - low) / 2;
            *(best_of(cost, operation, ranks, middle) == now ? &low : &high) = middle;
        }
        now = best_of(cost, operation, ranks, high);
        printf(" up to %lld bytes, then %s", (long long)low, now);
    }
    printf("\n\n");
    for (const char *const *name = tutti_comm_algorithms(operation); *name; name++)
        if (fits(cost, *name))
            printf("  %-14s %s\n", *name, tutti_comm_formula(operation, *name));
    printf("  a: alpha, b: beta, g: gamma, p: ranks, M: bytes of the message (of one block where "
           "ranks have their own), log to the base 2\n");
}

static int run(int argc, char **argv)
{
    const char *alpha = NULL, *beta = NULL, *gamma = "0.05ns", *operation = "all_reduce";
    int64_t ranks = 0, hosts = 0;
    double a, b, g;
    bool json = tutti__flag(&argc, argv, "--json");
    (void)tutti__option(&argc, argv, "--alpha", &alpha);
    (void)tutti__option(&argc, argv, "--beta", &beta);
    (void)tutti__option(&argc, argv, "--gamma", &gamma);
    (void)tutti__option(&argc, argv, "--op", &operation);
    if (!tutti__option_int(&argc, argv, "--ranks", 2, 1 << 20, &ranks) ||
        !tutti__option_int(&argc, argv, "--hosts", 1, 1 << 20, &hosts))
        return TUTTI_EXIT_USAGE;
    if (argc != 2 || strcmp(argv[1], "collectives") != 0 || !ranks || !alpha || !beta)
        return tutti__complain("plan: it takes `collectives`, --ranks, --alpha and --beta; see "
                               "tutti plan --help"),
               TUTTI_EXIT_USAGE;
    if (!read_seconds("--alpha", alpha, &a) || !read_seconds("--beta", beta, &b) ||
        !read_seconds("--gamma", gamma, &g))
        return TUTTI_EXIT_USAGE;
    if (!tutti_comm_algorithms(operation)[0])
        return tutti__complain("there is no operation '%s'", operation), TUTTI_EXIT_USAGE;
    tutti_comm_cost cost = {0};
    set_cost(&cost, a, b, g, (int)(hosts > 0 && hosts <= ranks ? hosts : ranks));
    print_table(&cost, operation, (int)ranks, json);
    if (!json)
        print_crossovers(&cost, operation, (int)ranks);
    return TUTTI_EXIT_OK;
}

const tutti_command tutti_command_plan = {
    .name = "plan",
    .summary = "predict collectives on a cluster that is not at hand",
    .usage = usage,
    .run = run,
};
