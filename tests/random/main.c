/* main.c: random graphs, run in every way, against reference kernels.
 *
 *     random_graphs [--from SEED] [--seeds COUNT] [--quick] [--way NAME] [--drop HEX] [--keep]
 *
 * The last line is "N passed, N failed". */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void report(const finding *f)
{
    printf("seed %llu, %s with %s: %s\n", (unsigned long long)f->recipe.seed, f->way->name,
           f->worker->name, f->words);
    print_recipe(f->recipe);
    printf("  again: random_graphs --from %llu --seeds 1 --way %s --with %s --drop %llx\n",
           (unsigned long long)f->recipe.seed, f->way->name, f->worker->name,
           (unsigned long long)f->recipe.dropped);
    fflush(stdout);
}

int main(int count, char **words)
{
    options o = {.seeds = 100};
    uint64_t from = 0, dropped = 0;
    for (int i = 1; i < count; i++) {
        const char *next = i + 1 < count ? words[i + 1] : "0";
        if (strcmp(words[i], "--quick") == 0)
            o.quick = true;
        else if (strcmp(words[i], "--keep") == 0)
            o.keep = true;
        else if (i + 1 == count)
            return fprintf(stderr, "what is %s?\n", words[i]), 2;
        else if (++i, strcmp(words[i - 1], "--from") == 0)
            from = strtoull(next, NULL, 0);
        else if (strcmp(words[i - 1], "--seeds") == 0)
            o.seeds = atoi(next);
        else if (strcmp(words[i - 1], "--way") == 0)
            o.way = next;
        else if (strcmp(words[i - 1], "--with") == 0)
            o.worker = next;
        else if (strcmp(words[i - 1], "--drop") == 0)
            dropped = strtoull(next, NULL, 16);
        else
            return fprintf(stderr, "what is %s?\n", words[i - 1]), 2;
    }
    signal(SIGPIPE, SIG_IGN);
    int passed = 0, failed = 0;
    double begun = seconds();
    for (int i = 0; i < o.seeds; i++) {
        finding found = {0};
        if (check_recipe(&o, (random_recipe){from + (uint64_t)i, dropped}, &found)) {
            passed++;
            continue;
        }
        failed++;
        if (!o.keep)
            shrink(&o, &found);
        report(&found);
    }
    check_stop();
    printf("%d seeds in %.1f s\n%d passed, %d failed\n", o.seeds, seconds() - begun, passed,
           failed);
    return failed > 0;
}
