/* cost.c: what a message, an exchange, an addition and a copy cost; the cheapest algorithm. */
#include <math.h>
#include <string.h>

#include "comm/coll/direct.h"
#include "comm/coll/lane.h"
#include "comm/coll/native.h"
#include "tables/coll.h"

/* Sizes at which the constants are known; between them the time changes linearly. */
const double tutti__cost_sizes[TUTTI_COMM_SIZES] = {0x1p12, 0x1p15, 0x1p16, 0x1p18, 0x1p19, 0x1p20,
                                                    0x1p22, 0x1p23, 0x1p24, 0x1p25, 0x1p26};

static double per_byte(const double *values, double bytes)
{
    if (bytes <= tutti__cost_sizes[0])
        return values[0];
    for (int i = 1; i < TUTTI_COMM_SIZES; i++)
        if (bytes <= tutti__cost_sizes[i]) {
            double part = (bytes - tutti__cost_sizes[i - 1]) /
                          (tutti__cost_sizes[i] - tutti__cost_sizes[i - 1]);
            double time = tutti__cost_sizes[i - 1] * values[i - 1] * (1 - part) +
                          tutti__cost_sizes[i] * values[i] * part;
            return time / bytes;
        }
    return values[TUTTI_COMM_SIZES - 1];
}

double tutti__cost_per_byte(const double *values, double bytes)
{
    return per_byte(values, bytes);
}

static double shared(const tutti_cost_query *q)
{
    return q->link == TUTTI_LINK_BETWEEN && q->share > 1 ? q->share : 1;
}

double tutti__cost_message(const tutti_cost_query *q, double bytes)
{
    return tutti__cost_stream_message(q, bytes, bytes);
}

double tutti__cost_exchange(const tutti_cost_query *q, double bytes)
{
    return tutti__cost_stream(q, bytes, bytes);
}

double tutti__cost_add(const tutti_cost_query *q, double bytes)
{
    return bytes * per_byte(q->cost->gamma, bytes);
}

double tutti__cost_stream(const tutti_cost_query *q, double bytes, double all)
{
    return q->cost->link[q->link].alpha + q->cost->link[q->link].turn +
           bytes * shared(q) * per_byte(q->cost->link[q->link].exchange, all);
}

double tutti__cost_stream_message(const tutti_cost_query *q, double bytes, double all)
{
    return q->cost->link[q->link].alpha +
           bytes * shared(q) * per_byte(q->cost->link[q->link].beta, all);
}

static double move_at(const tutti_cost_query *q, double bytes, double at)
{
    return q->cost->move[0] > 0 ? bytes * per_byte(q->cost->move, at)
                                : 0.75 * bytes * per_byte(q->cost->gamma, at);
}

double tutti__coll_cost_move(const tutti_cost_query *q, double bytes)
{
    return move_at(q, bytes, bytes);
}

double tutti__coll_cost_move_block(const tutti_cost_query *q, double bytes, double touched)
{
    return move_at(q, bytes, fmax(bytes, touched / 2));
}

/* y += x touches two, z = x + y three. */
double tutti__coll_cost_add_in(const tutti_cost_query *q, double bytes, double touched)
{
    return bytes * per_byte(q->cost->gamma, fmax(bytes, touched / 2));
}

double tutti__coll_cost_add_into(const tutti_cost_query *q, double bytes, double touched)
{
    return q->cost->into[0] > 0 ? bytes * per_byte(q->cost->into, fmax(bytes, touched / 3))
                                : tutti__coll_cost_add_in(q, bytes, touched);
}

/* z = x + y reads two and writes one, z = x one and one. */
double tutti__coll_cost_source(const tutti_cost_query *q, double bytes, double touched)
{
    double at = fmax(bytes, touched / 3);
    if (!(q->cost->into[0] > 0))
        return tutti__cost_add(q, bytes);
    return fmax(bytes * per_byte(q->cost->into, at) - move_at(q, bytes, at), 0);
}

double tutti__coll_cost_source_alone(const tutti_cost_query *q, double bytes)
{
    return q->cost->source[0] > 0 ? bytes * per_byte(q->cost->source, bytes)
                                  : tutti__coll_cost_source(q, bytes, 0);
}

double tutti__coll_cost_own(const tutti_cost_query *q)
{
    return tutti__coll_cost_move(q, q->bytes * q->ranks) / q->ranks;
}

/* What every core's own caches hold: below, constants differ by what a message costs besides. */
static const double cached = 256 << 10;

double tutti__coll_cost_message_block(const tutti_cost_query *q, double bytes, double touched)
{
    double alone = tutti__cost_message(q, bytes), all = touched / 2;
    return all > cached ? fmax(alone, tutti__cost_stream_message(q, bytes, all)) : alone;
}

double tutti__coll_cost_exchange_block(const tutti_cost_query *q, double bytes, double touched)
{
    double alone = tutti__cost_exchange(q, bytes), all = touched / 2;
    return all > cached ? fmax(alone, tutti__cost_stream(q, bytes, all)) : alone;
}

double tutti__coll_cost_exchange_again(const tutti_cost_query *q, double bytes, double touched)
{
    return (tutti__coll_cost_exchange_block(q, bytes, touched) +
            tutti__cost_stream(q, bytes, fmin(bytes, cached))) /
           2;
}

double tutti__coll_cost_exchange_many(const tutti_cost_query *q, double bytes, double touched)
{
    double links = 2 * (q->ranks - 2) * fmin(bytes, q->cost->hold[q->link]);
    return (q->ranks - 1) * tutti__coll_cost_exchange_block(q, bytes, touched + links);
}

double tutti__coll_cost_pull(const tutti_cost_query *q, double bytes, double all)
{
    if (q->cost->pull[0] > 0)
        return bytes * per_byte(q->cost->pull, all);
    return all > 0 ? bytes / all * tutti__coll_cost_move(q, all) : 0;
}

int tutti__coll_parts(double bytes, int ranks)
{
    enum { MOST = 1024 };
    double parts = bytes / ((double)TUTTI_PART * ranks);
    return parts < 2 ? 1 : parts < MOST ? (int)parts : MOST;
}

/* A part comes out of memory and goes back: two of the three streams of y += x, where it was x and
 * y that the caches held. */
static double through_memory(const tutti_cost_query *q, int parts)
{
    const double *gamma = q->cost->gamma;
    return 2.0 / 3 * fmax(per_byte(gamma, q->bytes) - per_byte(gamma, q->bytes / parts / 2), 0);
}

/* In one of two exchanges what comes goes into other memory, to be added: the message and that pass
 * through the caches; in the other one the message. Of parts half was in the caches: what came
 * first was added and sent on, and what comes last replaces what was sent first. At least the
 * message passes through memory once, while 2 (p - 1) / p of it is exchanged. */
double tutti__coll_cost_blocks(const tutti_cost_query *q, double bytes, int count)
{
    int parts = q->link == TUTTI_LINK_WITHIN ? tutti__coll_parts(q->bytes, q->ranks) : 1;
    const double *exchange = q->cost->link[q->link].exchange;
    double each = per_byte(exchange, bytes), all = (q->bytes + count * bytes) / 2;
    if (all > cached)
        each = fmax(each, (per_byte(exchange, all) + per_byte(exchange, q->bytes / 2)) / 2);
    if (parts > 1)
        each = fmax((per_byte(exchange, q->bytes / parts) + per_byte(exchange, q->bytes)) / 2,
                    per_byte(exchange, bytes / parts) +
                        through_memory(q, parts) * q->ranks / (2.0 * (q->ranks - 1)));
    /* To and from several at once: who sends to one does not see what comes from others. */
    double alpha = q->cost->link[q->link].alpha, turn = q->cost->link[q->link].turn;
    double late = (count - 1) / 2.0 * fmin(turn, alpha);
    return parts * (count * alpha + turn + late) + count * bytes * shared(q) * each;
}

double tutti__coll_cost_add_block(const tutti_cost_query *q, double bytes)
{
    return tutti__coll_cost_sum(q, bytes, q->bytes + fmin(bytes, TUTTI_FOLD_ROOM));
}

/* Where sums were measured, the message and the room for what came passed through the caches. */
double tutti__coll_cost_sum(const tutti_cost_query *q, double bytes, double touched)
{
    const double *sum = q->cost->sum[q->link];
    double all = fmax(touched / 2, touched - TUTTI_FOLD_ROOM);
    double least = tutti__cost_fold(q, bytes); /* in the caches */
    return sum[0] > 0 ? fmax(bytes * per_byte(sum, all), least) : least;
}

double tutti__coll_cost_elsewhere(const tutti_cost_query *q, double bytes)
{
    if (!(q->cost->into[0] > 0))
        return 0;
    return fmax(bytes * per_byte(q->cost->into, bytes) - tutti__cost_add(q, bytes), 0);
}

/* One end's work on a message: quick for what the link holds, then at the link's pace. */
static double one_end(const tutti_cost_query *q, const double *quick, double bytes)
{
    double held = fmin(bytes, q->cost->hold[q->link]), all = tutti__cost_message(q, bytes);
    if (!(quick[0] > 0) || !(held > 0))
        return all;
    double beta = shared(q) * per_byte(q->cost->link[q->link].beta, bytes);
    return fmin(all, held * per_byte(quick, held) + (bytes - held) * beta);
}

double tutti__coll_cost_put(const tutti_cost_query *q, double bytes)
{
    return one_end(q, q->cost->put[q->link], bytes);
}

double tutti__coll_cost_take(const tutti_cost_query *q, double bytes)
{
    return one_end(q, q->cost->take[q->link], bytes);
}

double tutti__cost_fold(const tutti_cost_query *q, double bytes)
{
    return bytes * per_byte(q->cost->gamma, fmin(bytes, TUTTI_FOLD_PIECE));
}

double tutti__coll_cost_folded(const tutti_cost_query *q, double bytes)
{
    const double *fold = q->cost->fold[q->link];
    return tutti__cost_message(q, bytes) +
           (fold[0] > 0 ? bytes * per_byte(fold, bytes) : tutti__cost_fold(q, bytes));
}

double tutti__coll_cost_folded_into(const tutti_cost_query *q, double bytes)
{
    const double *fold = q->cost->fold_into[q->link];
    return fold[0] > 0 ? tutti__cost_message(q, bytes) + bytes * per_byte(fold, bytes)
                       : tutti__coll_cost_folded(q, bytes) + tutti__coll_cost_elsewhere(q, bytes);
}

double tutti__cost_copy(const tutti_cost_query *q, double bytes)
{
    return bytes * per_byte(q->cost->copy, bytes);
}

/* What earlier work left in the caches makes calls faster or slower by up to a third, until some
 * times their size has passed through them. */
int tutti__cost_settling(int64_t bytes)
{
    enum { PASSED = 64 << 20, MOST = 250 };
    int64_t calls = PASSED / (bytes > 0 ? bytes : 1);
    return calls < MOST ? (int)calls : MOST;
}

/* The library behind the engine knows the ranks of the whole job as one group, and no other. */
static const tutti_native *native_of(const tutti_comm *comm)
{
    const tutti_fabric *fabric = comm->fabric;
    bool whole = comm->size == fabric->size && comm->context == TUTTI_WHOLE_CONTEXT;
    return whole && fabric->open_count == 1 ? fabric->open[0].engine->native : NULL;
}

bool tutti__coll_possible(const tutti_coll *coll, const tutti_comm *comm)
{
    return (!coll->shared || comm->area) && (!coll->machines || comm->within) &&
           (!coll->native || native_of(comm));
}

const char *tutti__coll_lacks(const tutti_coll *coll, const tutti_collective *c)
{
    return coll->native ? native_of(c->comm)->lacks(c) : NULL;
}

int64_t tutti__coll_bytes(const tutti_collective *c)
{
    int64_t count = c->count;
    if (c->operation == TUTTI_REDUCE_SCATTER)
        count *= c->size;
    if (c->counts) {
        int64_t total = 0;
        for (int i = 0; i < c->size; i++)
            total += c->counts[i];
        count = total / c->size;
    }
    return count * (int64_t)c->element;
}

/* Ranks of a machine that cross the network at once. */
static double share_of(const tutti_coll *coll, int ranks, int hosts)
{
    return coll->all_cross && hosts > 1 ? (double)ranks / hosts : 1;
}

static void replace(double *values, const double *by)
{
    for (int i = 0; i < TUTTI_COMM_SIZES; i++)
        values[i] = by[i] > 0 ? by[i] : values[i];
}

/* The cost as one lane has it while all are at work; for the part `few` those of two ranks. */
static tutti_comm_cost cost_of_lane(const tutti_comm_cost *cost, tutti_comm_link link, double few)
{
    tutti_comm_cost one = *cost;
    replace(one.link[link].beta, cost->lane[link].beta);
    for (int i = 0; i < TUTTI_COMM_SIZES; i++)
        if (cost->lane[link].of_two[i] > 0)
            one.link[link].beta[i] += few * (cost->lane[link].of_two[i] - one.link[link].beta[i]);
    replace(one.link[link].exchange, cost->lane[link].exchange);
    replace(one.fold[link], cost->lane[link].fold);
    replace(one.fold_into[link], cost->lane[link].fold_into);
    replace(one.sum[link], cost->lane[link].sum);
    replace(one.gamma, cost->lane[link].gamma);
    replace(one.move, cost->lane[link].move);
    replace(one.into, cost->lane[link].into);
    for (int i = 0; i < TUTTI_COMM_SIZES; i++) {
        double longer =
            cost->link[link].beta[i] > 0 ? one.link[link].beta[i] / cost->link[link].beta[i] : 1;
        one.put[link][i] *= longer;
        one.take[link][i] *= longer;
    }
    return one;
}

double tutti__coll_cost(const tutti_cost_query *query, const tutti_coll *by,
                        tutti_operation operation)
{
    int lanes = tutti__lanes_for(query->cost, query->ranks, by, operation, query->bytes);
    if (lanes == 1)
        return by->on[operation].cost(query);
    tutti_comm_cost cost = cost_of_lane(query->cost, query->link, query->ranks > 2 ? by->few : 0);
    tutti_cost_query part = *query;
    part.cost = &cost;
    part.quiet = query->cost;
    part.bytes /= lanes;
    return cost.lane[query->link].start + by->on[operation].cost(&part);
}

/* Ranks that read each other's memory also see what all others are at, and can say who differs: not
 * given up for what may be noise of the measurement. */
static const double in_doubt = 0.8;

/* Where each machine has one rank, levels are the group itself by another name. */
static bool is_offered(const tutti_coll *coll, tutti_operation operation, const tutti_comm *comm)
{
    return coll->on[operation].run && !coll->special && tutti__coll_possible(coll, comm) &&
           (!coll->machines || comm->hosts < comm->size);
}

static const tutti_coll *cheapest(const tutti_comm *comm, tutti_operation operation, double bytes)
{
    tutti_cost_query query = {.cost = &comm->cost,
                              .ranks = comm->size,
                              .bytes = bytes,
                              .link = comm->hosts > 1 ? TUTTI_LINK_BETWEEN : TUTTI_LINK_WITHIN};
    const tutti_coll *best = NULL;
    double least = INFINITY;
    for (const tutti_coll *const *each = tutti__coll_table; *each; each++) {
        if (!is_offered(*each, operation, comm))
            continue;
        query.share = share_of(*each, comm->size, comm->hosts);
        double cost = tutti__coll_cost(&query, *each, operation) * ((*each)->shared ? in_doubt : 1);
        if (!best || cost < least) {
            best = *each;
            least = cost;
        }
    }
    return best;
}

static bool adds(tutti_operation operation)
{
    return operation == TUTTI_ALL_REDUCE || operation == TUTTI_REDUCE ||
           operation == TUTTI_REDUCE_SCATTER;
}

/* Chosen once for each power of two, at its lower end, so that all ranks choose alike. Ranks that
 * share memory add up in one order whatever was measured: it is the fastest by far for all but the
 * smallest messages, and sums have the same bits in every run. */
const tutti_coll *tutti__coll_choose(const tutti_collective *c)
{
    tutti_comm *comm = c->comm;
    if (comm->area && adds(c->operation))
        return tutti__coll_find("direct");
    int64_t bytes = tutti__coll_bytes(c);
    int power = bytes > 0 ? 64 - __builtin_clzll((unsigned long long)bytes) : 0;
    const tutti_coll **chosen = &comm->chosen[c->operation][power];
    if (!*chosen)
        *chosen = cheapest(comm, c->operation, power > 0 ? ldexp(1, power - 1) : 0);
    return *chosen;
}

double tutti_comm_predict(const tutti_comm_cost *cost, const char *operation, const char *algorithm,
                          int ranks, int64_t bytes)
{
    if (!cost || !operation || !algorithm)
        return INFINITY;
    tutti_operation number = tutti__operation_find(operation);
    const tutti_coll *coll = tutti__coll_find(algorithm);
    if (!coll || number == TUTTI_OPERATION_COUNT || !coll->on[number].cost ||
        (coll->shared && cost->hosts > 1))
        return INFINITY;
    if (ranks < 2)
        return 0;
    tutti_cost_query query = {.cost = cost,
                              .ranks = ranks,
                              .bytes = (double)bytes,
                              .link = cost->hosts > 1 ? TUTTI_LINK_BETWEEN : TUTTI_LINK_WITHIN,
                              .share = share_of(coll, ranks, cost->hosts)};
    return cost->call + tutti__coll_cost(&query, coll, number);
}

const char *tutti_comm_formula(const char *operation, const char *algorithm)
{
    tutti_operation number = tutti__operation_find(operation);
    const tutti_coll *coll = tutti__coll_find(algorithm);
    return coll && number != TUTTI_OPERATION_COUNT ? coll->on[number].formula : NULL;
}

enum { MOST_NAMES = 32 };
static const char *names[TUTTI_OPERATION_COUNT + 1][MOST_NAMES];

static void collect_names(void)
{
    for (int op = 0; op < TUTTI_OPERATION_COUNT; op++) {
        int count = 0;
        for (const tutti_coll *const *each = tutti__coll_table; *each; each++)
            if ((*each)->on[op].run && count + 1 < MOST_NAMES)
                names[op][count++] = (*each)->name;
    }
}

const char *const *tutti_comm_algorithms(const char *operation)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, collect_names);
    return names[tutti__operation_find(operation)];
}
