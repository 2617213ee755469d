/* judge.c: what counts as wrong.
 *
 * Errors are measured against the largest number of a result (of all gradients, to a twentieth,
 * where they cancel; of weights beside it, as no optimizer here makes a step longer than the
 * gradient): 600 units of rounding are granted, and 60 times what rounding to the type, or moving
 * the inputs by a few units, does to the exact values. Elements that are not finite in any of these
 * say nothing, and where some are not, NaN and infinities elsewhere in the result do not either:
 * kernels may multiply by 0 what the reference leaves out. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "results.h"

static double largest(const result *r)
{
    double most = 0;
    for (int64_t i = 0; i < r->count; i++)
        if (isfinite(r->numbers[i]) && fabs(r->numbers[i]) > most)
            most = fabs(r->numbers[i]);
    return most;
}

static bool all_finite(const result *r)
{
    for (int64_t i = 0; i < r->count; i++)
        if (!isfinite(r->numbers[i]))
            return false;
    return true;
}

static double apart(const result *a, const result *b)
{
    double most = 0;
    for (int64_t i = 0; i < a->count; i++) {
        double d = fabs(a->numbers[i] - b->numbers[i]);
        if (d > most) /* not NaN */
            most = d;
    }
    return most;
}

static bool shaped_alike(const result *a, const result *b)
{
    return a->count == b->count && a->type.rank == b->type.rank &&
           memcmp(a->type.dims, b->type.dims, (size_t)a->type.rank * sizeof a->type.dims[0]) == 0;
}

static bool is_named(const result *r, const char *what)
{
    return strncmp(r->name, what, strlen(what)) == 0;
}

/* Of the round of `of`, or where it is a weight, of all. */
static double largest_gradient(const results *r, const result *of)
{
    const char *round = is_named(of, "weight") ? "" : strstr(of->name, " of round");
    double most = 0;
    for (int i = 0; i < r->count; i++)
        if (is_named(&r->list[i], "gradient") && strstr(r->list[i].name, round))
            most = fmax(most, largest(&r->list[i]));
    return most;
}

static void judge_one(const truth *t, int index, const result *got, char *words, size_t size)
{
    const result *exact = &t->exact.list[index], *moved = &t->moved.list[index],
                 *rounded = &t->rounded.list[index];
    char want[TUTTI_TYPE_TEXT], have[TUTTI_TYPE_TEXT];
    if (!shaped_alike(exact, got)) {
        snprintf(words, size, "%s is %s, should be %s", got->name,
                 tutti_type_text(&got->type, have), tutti_type_text(&exact->type, want));
        return;
    }
    bool overflowed = !all_finite(rounded);
    double most = is_named(got, "gradient") ? 0 : 1;
    if (is_named(got, "gradient") || is_named(got, "weight"))
        most = fmax(most, largest_gradient(&t->exact, got));
    double bound = 600 * t->epsilon * fmax(fmax(largest(exact), 0.05 * most), 1e-3) +
                   60 * apart(exact, moved) + 60 * apart(exact, rounded) + 1e-30;
    for (int64_t i = 0; i < got->count; i++) {
        double e = exact->numbers[i], g = got->numbers[i];
        if (!isfinite(e) || !isfinite(moved->numbers[i]) || !isfinite(rounded->numbers[i]))
            continue;
        if (fabs(g - e) <= bound || (overflowed && !isfinite(g)))
            continue;
        snprintf(
            words, size, "%s %s: element %lld is %.9g, should be %.9g (off by %.2g, granted %.2g)",
            got->name, tutti_type_text(&got->type, have), (long long)i, g, e, fabs(g - e), bound);
        return;
    }
}

void results_judge(const truth *t, const results *r, char *words, size_t size)
{
    *words = '\0';
    if (r->status != TUTTI_OK) {
        snprintf(words, size, "failed: %s: %s", tutti_status_text(r->status), r->message);
        return;
    }
    if (r->count != t->exact.count) {
        snprintf(words, size, "gave %d results, should be %d", r->count, t->exact.count);
        return;
    }
    for (int i = 0; i < r->count && *words == '\0'; i++) {
        if (strcmp(r->list[i].name, t->exact.list[i].name) != 0)
            snprintf(words, size, "result %d is %s, should be %s", i, r->list[i].name,
                     t->exact.list[i].name);
        else
            judge_one(t, i, &r->list[i], words, size);
    }
}

void results_same(const results *a, const results *b, char *words, size_t size)
{
    *words = '\0';
    if (a->status != b->status || a->count != b->count) {
        snprintf(words, size, "%d results (%s), the other %d (%s)", a->count, a->message, b->count,
                 b->message);
        return;
    }
    for (int i = 0; i < a->count; i++) {
        const result *x = &a->list[i], *y = &b->list[i];
        for (int64_t k = 0; k < x->count && k < y->count; k++) {
            double p = x->numbers[k], q = y->numbers[k];
            if (p == q || (isnan(p) && isnan(q)))
                continue;
            snprintf(words, size, "%s: element %lld is %.9g, elsewhere %.9g", x->name, (long long)k,
                     p, q);
            return;
        }
    }
}
