/* table.c: a plan as text and as JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/plan/plan.h"
#include "comm/coll/coll.h"

static void print_size(int64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    int unit = 0;
    double value = (double)bytes;
    while (value >= 1024 && unit < 3)
        value /= 1024, unit++;
    printf("%6.4g %-3s", value, units[unit]);
}

/* By simulation where there is one, else by the formula. */
static double best_known(const tutti_comm_plan_cell *cell)
{
    return isfinite(cell->simulated) ? cell->simulated : cell->predicted;
}

static int best_at(const tutti_comm_plan *plan, int size, bool predicted)
{
    int best = -1;
    double least = INFINITY;
    for (int a = 0; a < plan->algorithm_count; a++) {
        const tutti_comm_plan_cell *cell = &plan->cells[a][size];
        double time = predicted ? cell->predicted : best_known(cell);
        if (time < least)
            least = time, best = a;
    }
    return best;
}

static void print_number(const char *name, double value, double scale)
{
    if (isfinite(value))
        printf(",\"%s\":%.6g", name, value * scale);
}

static void print_json(const tutti_comm_plan *plan)
{
    for (int s = 0; s < plan->size_count; s++)
        for (int a = 0; a < plan->algorithm_count; a++) {
            const tutti_comm_plan_cell *cell = &plan->cells[a][s];
            if (!isfinite(cell->predicted))
                continue;
            printf("{\"op\":\"%s\",\"algorithm\":\"%s\",\"ranks\":%d,\"bytes\":%lld",
                   plan->operation, plan->names[a], plan->network.ranks, (long long)plan->bytes[s]);
            print_number("predicted_us", cell->predicted, 1e6);
            print_number("simulated_us", cell->simulated, 1e6);
            print_number("measured_us", cell->measured, 1e6);
            if (isfinite(cell->simulated))
                printf(",\"messages\":%llu,\"busiest_link\":%.3g",
                       (unsigned long long)cell->messages, cell->busiest);
            printf(",\"best\":%s}\n", best_at(plan, s, !plan->simulate) == a ? "true" : "false");
        }
}

static double value_of(const tutti_comm_plan_cell *cell, int which)
{
    return which == 0 ? cell->predicted : which == 1 ? cell->simulated : cell->measured;
}

static bool any_of(const tutti_comm_plan *plan, int which)
{
    for (int a = 0; a < plan->algorithm_count; a++)
        for (int s = 0; s < plan->size_count; s++)
            if (isfinite(value_of(&plan->cells[a][s], which)))
                return true;
    return false;
}

static void print_table(const tutti_comm_plan *plan, int which)
{
    static const char *const titles[] = {"predicted", "simulated", "measured"};
    bool blocks = tutti__comm_plan_block(plan, plan->network.ranks) == 1;
    printf("%s, %d ranks on %d machines; %s, microseconds%s%s\n%10s", plan->operation,
           plan->network.ranks, plan->cost.hosts, titles[which], which < 2 ? ", * is the best" : "",
           blocks ? "; bytes of all blocks together" : "", "bytes");
    for (int a = 0; a < plan->algorithm_count; a++)
        printf(" %14s", plan->names[a]);
    printf("\n");
    for (int s = 0; s < plan->size_count; s++) {
        int best = which < 2 ? best_at(plan, s, which == 0) : -1;
        print_size(plan->bytes[s]);
        for (int a = 0; a < plan->algorithm_count; a++) {
            double time = value_of(&plan->cells[a][s], which);
            if (isfinite(time))
                printf(" %13.5g%s", time * 1e6, a == best ? "*" : " ");
            else
                printf(" %13s ", "-");
        }
        printf("\n");
    }
    printf("\n");
}

/* Sizes at which formula and simulation differ by more than a fifth. */
static void print_breaks(const tutti_comm_plan *plan)
{
    bool any = false, simulated = false;
    for (int a = 0; a < plan->algorithm_count; a++) {
        double worst = 1;
        int at = -1;
        for (int s = 0; s < plan->size_count; s++) {
            const tutti_comm_plan_cell *cell = &plan->cells[a][s];
            double ratio = cell->predicted / cell->simulated;
            simulated = simulated || isfinite(ratio);
            if (isfinite(ratio) && fmax(ratio, 1 / ratio) > fmax(worst, 1 / worst))
                worst = ratio, at = s;
        }
        if (plan->skipped[a])
            printf("%s was not simulated: more than %.2g messages (--limit)\n", plan->names[a],
                   (double)plan->limit);
        if (at < 0 || fmax(worst, 1 / worst) < 1.2)
            continue;
        printf("the formula of %s breaks: %.3g times the simulated time at %lld bytes\n",
               plan->names[a], worst, (long long)plan->bytes[at]);
        any = true;
    }
    printf(any || !simulated ? "\n" : "all formulas are within a fifth of the simulation\n\n");
}

static const char *best_for(const tutti_comm_plan *plan, int64_t bytes)
{
    const char *best = "";
    double least = INFINITY;
    for (int a = 0; a < plan->algorithm_count; a++) {
        double time = tutti_comm_predict(&plan->cost, plan->operation, plan->names[a],
                                         plan->network.ranks, tutti__comm_plan_block(plan, bytes));
        if (time < least)
            least = time, best = plan->names[a];
    }
    return best;
}

/* To the byte, by halving between two powers of two that differ. */
static void print_crossovers(const tutti_comm_plan *plan)
{
    const char *now = best_for(plan, 1);
    printf("best by formula: %s", now);
    for (int64_t bytes = 2; bytes <= INT64_C(1) << 32; bytes *= 2) {
        if (best_for(plan, bytes) == now)
            continue;
        int64_t low = bytes / 2, high = bytes;
        while (high - low > 1) {
            int64_t middle = low + (high - low) / 2;
            *(best_for(plan, middle) == now ? &low : &high) = middle;
        }
        now = best_for(plan, high);
        printf(" up to %lld bytes, then %s", (long long)low, now);
    }
    printf("\n\n");
    double share = (double)plan->network.ranks / plan->network.hosts;
    for (int a = 0; a < plan->algorithm_count; a++) {
        printf("  %-14s %s", plan->names[a], tutti_comm_formula(plan->operation, plan->names[a]));
        if (share > 1 && tutti__coll_find(plan->names[a])->all_cross)
            printf("; b between machines counts %.4g times: all ranks of one cross at once", share);
        printf("\n");
    }
    printf("  a: alpha, b: beta, g: gamma, f: ranks of a machine wait for each other once, c: a "
           "byte of an all-reduce in shared memory, h: machines, m: a byte copied, z: a byte added "
           "into other memory, u, t: a byte put into a link and taken out, p: ranks, M: bytes of "
           "the message (of one block where ranks have their own), log to the base 2, rounded "
           "up\n");
}

void tutti__comm_plan_print(const tutti_comm_plan *plan)
{
    if (plan->json) {
        print_json(plan);
        return;
    }
    for (int which = 0; which < 3; which++)
        if (which == 0 || any_of(plan, which))
            print_table(plan, which);
    if (plan->simulate)
        print_breaks(plan);
    print_crossovers(plan);
}
