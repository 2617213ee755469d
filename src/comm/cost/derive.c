/* derive.c: the constants of the cost model: what a machine of today does, and what times say that
 * were measured. */
#include "comm/cost/derive.h"

#include <math.h>
#include <string.h>

#include "comm/cost/description.h"

static void derive_fill(double *values, const double (*given)[TUTTI_COMM_SIZES])
{
    memcpy(values, given, sizeof *given);
}

/* What a machine of today does, until it is measured. */
enum { KERNEL_HOLDS = 1 << 20 }; /* bytes of a connection: more only after a while */
tutti_comm_cost tutti__cost_guess(const tutti_comm *comm)
{
    tutti_comm_cost cost = {.phase = 0.2e-6, .hosts = comm->hosts};
    static const double memory[] = {0.1e-9,  0.1e-9,  0.1e-9,  0.1e-9,  0.1e-9, 0.1e-9,
                                    0.11e-9, 0.12e-9, 0.12e-9, 0.12e-9, 0.12e-9};
    static const double loopback[] = {0.4e-9,  0.25e-9, 0.2e-9,  0.19e-9, 0.18e-9, 0.18e-9,
                                      0.24e-9, 0.25e-9, 0.26e-9, 0.27e-9, 0.28e-9};
    static const double network[] = {1e-9,   0.95e-9, 0.9e-9, 0.85e-9, 0.8e-9, 0.8e-9,
                                     0.8e-9, 0.8e-9,  0.8e-9, 0.8e-9,  0.8e-9};
    static const double adding[] = {0.03e-9, 0.035e-9, 0.035e-9, 0.035e-9, 0.04e-9, 0.04e-9,
                                    0.05e-9, 0.05e-9,  0.055e-9, 0.06e-9,  0.065e-9};
    static const double moving[] = {0.02e-9, 0.03e-9, 0.04e-9, 0.04e-9, 0.04e-9, 0.04e-9,
                                    0.05e-9, 0.05e-9, 0.06e-9, 0.06e-9, 0.06e-9};
    bool rings = comm->fabric->segment != NULL;
    cost.link[TUTTI_LINK_WITHIN].alpha =
        rings ? tutti__cost_assumed[TUTTI_LINK_WITHIN].alpha : 8e-6;
    cost.link[TUTTI_LINK_WITHIN].turn = rings ? 0.15e-6 : 0;
    derive_fill(cost.link[TUTTI_LINK_WITHIN].beta, rings ? &memory : &loopback);
    derive_fill(cost.link[TUTTI_LINK_WITHIN].exchange, rings ? &memory : &loopback);
    cost.hold[TUTTI_LINK_WITHIN] =
        rings ? comm->fabric->segment->header->ring_bytes : (double)KERNEL_HOLDS;
    cost.hold[TUTTI_LINK_BETWEEN] = KERNEL_HOLDS;
    cost.link[TUTTI_LINK_BETWEEN].alpha = tutti__cost_assumed[TUTTI_LINK_BETWEEN].alpha;
    derive_fill(cost.link[TUTTI_LINK_BETWEEN].beta, &network);
    derive_fill(cost.link[TUTTI_LINK_BETWEEN].exchange, &network);
    derive_fill(cost.gamma, &adding);
    derive_fill(cost.move, &moving);
    derive_fill(cost.copy, &memory);
    return cost;
}

/* Seconds a byte at each size, after `base` for none at all. */
static void per_byte(const double *times, double base, double *ret)
{
    for (int i = 0; i < TUTTI_COMM_SIZES; i++)
        ret[i] = times[i] > 0 ? fmax(times[i] - base, 0.1 * times[i]) / tutti__cost_sizes[i]
                              : ret[i > 0 ? i - 1 : 0];
}

/* Within a machine nothing is so slow: somebody else was at work, and the guess is nearer. */
enum { DOUBTED = 50 }; /* times the guess */
static void doubt_beyond(double most, double *measured, double guess)
{
    if (!(*measured >= 0 && *measured <= most))
        *measured = guess;
}

static void doubt(double *measured, double guess)
{
    doubt_beyond(DOUBTED * guess, measured, guess);
}

static void doubt_link(const tutti_comm *group, tutti_comm_cost *cost)
{
    tutti_comm_cost guess = tutti__cost_guess(group);
    enum { LINK = TUTTI_LINK_WITHIN };
    doubt(&cost->link[LINK].alpha, guess.link[LINK].alpha);
    doubt(&cost->link[LINK].turn, guess.link[LINK].alpha);
    for (int i = 0; i < TUTTI_COMM_SIZES; i++) {
        doubt(&cost->link[LINK].beta[i], guess.link[LINK].beta[i]);
        doubt(&cost->link[LINK].exchange[i], guess.link[LINK].exchange[i]);
    }
}

/* Seconds a byte that `times` are longer than those of the same without an addition. */
static void longer(const double *times, const double *without, double *ret)
{
    for (int i = 0; i < TUTTI_COMM_SIZES; i++)
        ret[i] = times[i] > 0 && without[i] > 0
                     ? fmax(times[i] - without[i], 0.001 * without[i]) / tutti__cost_sizes[i]
                     : ret[i > 0 ? i - 1 : 0];
}

/* Lanes share what one has by itself, and may be in each other's way, but not so much: what one
 * takes by itself is nearer then. */
enum { HINDERED = 10 }; /* times the share */
static void doubt_lane(tutti_comm_link link, tutti_comm_cost *cost)
{
    tutti_comm_lane *lane = &cost->lane[link];
    double worst = (double)HINDERED * cost->lanes[link];
    for (int i = 0; i < TUTTI_COMM_SIZES; i++) {
        double beta = cost->link[link].beta[i], exchange = cost->link[link].exchange[i];
        double gamma = cost->gamma[i], into = fmax(cost->into[i], gamma);
        doubt_beyond(worst * beta, &lane->beta[i], beta);
        doubt_beyond(worst * beta, &lane->of_two[i], beta);
        doubt_beyond(worst * exchange, &lane->exchange[i], exchange);
        doubt_beyond(worst * gamma, &lane->fold[i], cost->fold[link][i]);
        doubt_beyond(worst * into, &lane->fold_into[i], cost->fold_into[link][i]);
        doubt_beyond(worst * gamma, &lane->sum[i], cost->sum[link][i]);
        doubt_beyond(worst * gamma, &lane->gamma[i], gamma);
        doubt_beyond(worst * gamma, &lane->move[i], cost->move[i]);
        doubt_beyond(worst * into, &lane->into[i], into);
    }
}

/* What lanes take is known beside what one takes; alpha is the same. */
static void derive_lane(const tutti_cost_times *times, tutti_comm_link link, bool in_doubt,
                        tutti_comm_cost *cost)
{
    double start = times->lane[link].start, alpha = cost->link[link].alpha;
    if (!(start > 0))
        return;
    if (in_doubt)
        doubt(&start, alpha * cost->lanes[link]);
    cost->lane[link].start = start;
    per_byte(times->lane[link].one_way, start + 2 * alpha, cost->lane[link].beta);
    per_byte(times->lane[link].of_two, start + 2 * alpha, cost->lane[link].of_two);
    per_byte(times->lane[link].exchange, start + alpha + cost->link[link].turn,
             cost->lane[link].exchange);
    longer(times->lane[link].folded, times->lane[link].one_way, cost->lane[link].fold);
    longer(times->lane[link].folded_into, times->lane[link].one_way, cost->lane[link].fold_into);
    longer(times->lane[link].summed, times->lane[link].exchange, cost->lane[link].sum);
    per_byte(times->lane[link].add, start, cost->lane[link].gamma);
    per_byte(times->lane[link].move, start, cost->lane[link].move);
    per_byte(times->lane[link].add_into, start, cost->lane[link].into);
    if (in_doubt)
        doubt_lane(link, cost);
}

static void derive_link(const tutti_cost_times *times, tutti_comm_link link, tutti_comm_cost *cost)
{
    const double *one = times->one_way[link], *both = times->exchange[link];
    double there_and_back = one[TUTTI_COMM_SIZES], alpha = there_and_back / 2;
    if (!(there_and_back > 0))
        return;
    cost->link[link].alpha = alpha;
    cost->link[link].turn = fmax(both[TUTTI_COMM_SIZES] - alpha, 0);
    per_byte(one, there_and_back, cost->link[link].beta);
    per_byte(both, alpha + cost->link[link].turn, cost->link[link].exchange);
    longer(times->folded[link], one, cost->fold[link]);
    longer(times->folded_into[link], one, cost->fold_into[link]);
    longer(times->summed[link], both, cost->sum[link]);
    per_byte(times->put[link], 0, cost->put[link]);
    per_byte(times->taken[link], 0, cost->take[link]);
}

/* Where ranks share cores, those that pull at once were slower than one by itself is. */
static void derive_shared(const tutti_cost_times *times, const tutti_comm *within,
                          tutti_comm_cost *cost)
{
    int cpus = within->fabric->cpus, others = within->size - 1;
    if (!(times->phase > 0))
        return;
    cost->phase = times->phase;
    cost->call = fmax(times->little - times->phase, 0);
    per_byte(times->copy, 2 * times->phase, cost->copy);
    per_byte(times->pull, 2 * times->phase, cost->pull);
    longer(times->collect, times->pull, cost->source);
    for (int i = 0; i < TUTTI_COMM_SIZES; i++)
        cost->source[i] /= others;
    cost->alone = others > cpus ? (double)cpus / others : 1;
}

void tutti__cost_derive(const tutti_cost_times *times, bool in_doubt, const tutti_comm *comm,
                        tutti_comm_cost *cost)
{
    const tutti_comm *within = comm->within ? comm->within : comm;
    per_byte(times->add, 0, cost->gamma);
    per_byte(times->add_into, 0, cost->into);
    per_byte(times->move, 0, cost->move);
    derive_link(times, TUTTI_LINK_WITHIN, cost);
    if (in_doubt)
        doubt_link(within, cost);
    derive_lane(times, TUTTI_LINK_WITHIN, in_doubt, cost);
    derive_shared(times, within, cost);
    derive_link(times, TUTTI_LINK_BETWEEN, cost);
    derive_lane(times, TUTTI_LINK_BETWEEN, in_doubt, cost);
}

/* The other constants are guesses, of which those that have to do with messages become longer or
 * shorter like one message: measured in so short a time they would tell more of who else is at work
 * than of the links. */
static void derive_message(const tutti_cost_times *times, tutti_comm_link link,
                           tutti_comm_cost *cost)
{
    double there_and_back = times->one_way[link][TUTTI_COMM_SIZES];
    double longer_by = there_and_back / 2 / cost->link[link].alpha;
    if (!(there_and_back > 0))
        return;
    if (link == TUTTI_LINK_WITHIN && longer_by > DOUBTED)
        longer_by = 1;
    cost->link[link].alpha *= longer_by;
    cost->link[link].turn *= longer_by;
    if (link == TUTTI_LINK_WITHIN)
        cost->phase *= longer_by;
    per_byte(times->one_way[link], there_and_back, cost->link[link].beta);
    memcpy(cost->link[link].exchange, cost->link[link].beta, sizeof cost->link[link].exchange);
}

void tutti__cost_derive_glance(const tutti_cost_times *times, const tutti_comm *comm,
                               tutti_comm_cost *cost)
{
    derive_message(times, TUTTI_LINK_WITHIN, cost);
    doubt_link(comm->within ? comm->within : comm, cost);
    derive_message(times, TUTTI_LINK_BETWEEN, cost);
}

double tutti__cost_quartile(const double *times, int count, size_t step)
{
    double sorted[TUTTI_COST_PASSES];
    int known = 0;
    for (int i = 0; i < count && known < TUTTI_COST_PASSES; i++) {
        double each = times[(size_t)i * step];
        if (!(each > 0) || !isfinite(each))
            continue;
        int at = known++;
        for (; at > 0 && sorted[at - 1] > each; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = each;
    }
    return known > 0 ? sorted[known / 4] : 0;
}

/* Of all passes, figure by figure. */
tutti_cost_times tutti__cost_of_passes(const tutti_cost_thorough *thorough)
{
    enum { FIGURES = sizeof(tutti_cost_times) / sizeof(double) };
    tutti_cost_times all;
    for (size_t i = 0; i < FIGURES; i++)
        ((double *)(void *)&all)[i] = tutti__cost_quartile(
            (const double *)(const void *)thorough->seen + i, TUTTI_COST_PASSES, FIGURES);
    return all;
}
