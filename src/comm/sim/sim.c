/* sim.c: one collective by the real algorithm on a network that is a model. */
#include "comm/sim/sim.h"

#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "comm/comm.h"
#include "comm/sim/replay.h"

/* A group whose ranks take turns at being this one. */
typedef struct stage {
    const tutti_network *network;
    tutti_sim_links links;
    const tutti_coll *coll;
    tutti_operation operation;
    int64_t count; /* f32 elements of the call */
    tutti_fabric fabric;
    tutti_comm comm, within, between;
    int *members; /* [ranks] 0, 1, 2, …; [hosts] the first of each machine */
} stage;

tutti_comm_cost tutti__network_cost(const tutti_network *n)
{
    tutti_comm_cost cost = {.hosts = n->hosts > 0 ? n->hosts : n->ranks,
                            .phase = n->phase > 0 ? n->phase : n->alpha[0]};
    for (int link = 0; link < TUTTI_LINK_COUNT; link++) {
        cost.link[link].alpha = n->alpha[link];
        for (int i = 0; i < TUTTI_COMM_SIZES; i++)
            cost.link[link].beta[i] = cost.link[link].exchange[i] =
                n->beta_by_size[link][i] > 0 ? n->beta_by_size[link][i] : n->beta[link];
    }
    for (int i = 0; i < TUTTI_COMM_SIZES; i++)
        cost.gamma[i] = cost.move[i] = cost.copy[i] = n->gamma;
    return cost;
}

double tutti__network_time(const tutti_network *n, tutti_comm_link link, double bytes)
{
    const double *by_size = n->beta_by_size[link];
    return bytes * (by_size[0] > 0 ? tutti__cost_per_byte(by_size, bytes) : n->beta[link]);
}

static tutti_status sim_check(const stage *s, const char *operation, const char *algorithm)
{
    if (s->operation == TUTTI_OPERATION_COUNT || !s->coll || !s->coll->on[s->operation].run)
        return tutti_fail(TUTTI_NOT_FOUND, "there is no %s by '%s'", operation, algorithm);
    if (s->coll->shared || s->coll->special || (s->coll->machines && s->links.hosts < 2))
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "%s by '%s' cannot be simulated here: it needs shared memory, options "
                          "of its own or several machines",
                          operation, algorithm);
    return TUTTI_OK;
}

static tutti_status set_up(stage *s)
{
    int ranks = s->network->ranks, hosts = s->links.hosts;
    s->members = malloc((size_t)(ranks + hosts) * sizeof *s->members);
    s->fabric.machine = malloc((size_t)ranks * sizeof *s->fabric.machine);
    if (!s->members || !s->fabric.machine)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %d ranks", ranks);
    for (int r = 0, host = -1; r < ranks; r++) {
        s->members[r] = r;
        s->fabric.machine[r] = tutti__sim_links_host(&s->links, r);
        if (s->fabric.machine[r] != host)
            s->members[ranks + ++host] = r;
    }
    s->fabric.size = ranks;
    s->fabric.machines = hosts;
    s->comm.fabric = s->within.fabric = s->between.fabric = &s->fabric;
    s->comm.cost = s->within.cost = s->between.cost = tutti__network_cost(s->network);
    s->comm.size = ranks;
    s->comm.members = s->members;
    s->comm.hosts = s->between.hosts = hosts;
    s->within.hosts = s->within.cost.hosts = 1;
    s->between.size = hosts;
    s->between.members = s->members + ranks;
    return TUTTI_OK;
}

/* The group as `rank` sees it. */
static void become(stage *s, int rank, tutti_sim_trace *trace)
{
    int host = s->fabric.machine[rank], hosts = s->links.hosts, ranks = s->network->ranks;
    int first = s->members[ranks + host];
    int after = host + 1 < hosts ? s->members[ranks + host + 1] : ranks;
    s->comm.rank = rank;
    s->within.rank = rank - first;
    s->within.size = after - first;
    s->within.members = s->members + first;
    s->between.rank = host;
    s->comm.within = hosts > 1 ? &s->within : NULL;
    s->comm.between = hosts > 1 && rank == first ? &s->between : NULL;
    s->comm.trace = s->within.trace = s->between.trace = trace;
}

static tutti_status sim_note(stage *s, int rank, tutti_sim_trace *trace)
{
    char *memory = tutti__sim_trace_memory();
    size_t block = (size_t)s->count * sizeof(float);
    tutti_collective c = {.comm = &s->comm,
                          .rank = rank,
                          .size = s->network->ranks,
                          .operation = s->operation,
                          .name = tutti__operation_names[s->operation],
                          .in = memory,
                          .out = memory,
                          .count = s->count,
                          .dtype = TUTTI_F32,
                          .element = sizeof(float),
                          .fold = tutti__sim_trace_fold};
    if (s->operation == TUTTI_ALL_GATHER)
        c.in = memory + (size_t)rank * block;
    else if (s->operation == TUTTI_ALL_TO_ALL || s->operation == TUTTI_REDUCE_SCATTER)
        c.out = memory + (size_t)s->network->ranks * block;
    become(s, rank, trace);
    trace->element = sizeof(float);
    tutti__sim_trace_begin(trace);
    tutti_status status = s->coll->on[s->operation].run(&c);
    tutti__sim_trace_end(trace);
    if (status == TUTTI_OK && trace->failed)
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for the steps of %d ranks", c.size);
    return status;
}

/* What all ranks would do. The last rank's trace says whether it is worth the time: it is nobody's
 * root. */
static tutti_status note_all(stage *s, tutti_sim_trace *traces, uint64_t limit,
                             tutti_simulated *ret)
{
    int ranks = s->network->ranks;
    for (int i = 0; i < ranks; i++) {
        int rank = ranks - 1 - i;
        TUTTI_TRY(sim_note(s, rank, &traces[rank]));
        ret->messages += traces[rank].messages;
        uint64_t expected = i == 0 ? traces[rank].messages * (uint64_t)ranks : ret->messages;
        if (expected > limit)
            return tutti_fail(TUTTI_TOO_LARGE,
                              "%s by '%s' among %d ranks is some %.2g messages; the limit is %.2g",
                              tutti__operation_names[s->operation], s->coll->name, ranks,
                              (double)expected, (double)limit);
    }
    return TUTTI_OK;
}

/* Lateness at the start; returns the latest. */
static double set_begins(const tutti_network *n, double *begins)
{
    tutti_random_key key = {.seed = n->seed + 1};
    double latest = 0;
    for (int r = 0; r < n->ranks && n->jitter > 0; r++) {
        double u = tutti__random_f32(key, (uint64_t)r);
        begins[r] = -n->jitter * log(1 - fmin(u, 0.9999999));
        latest = fmax(latest, begins[r]);
    }
    return latest;
}

static tutti_status simulate(stage *s, uint64_t limit, tutti_simulated *ret)
{
    int ranks = s->network->ranks;
    tutti_sim_trace *traces = calloc((size_t)ranks, sizeof *traces);
    double *begins = calloc((size_t)ranks, sizeof *begins), end = 0;
    tutti_simulated result = {0};
    tutti_status status = TUTTI_OK;
    if (!traces || !begins)
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for %d ranks", ranks);
    if (status == TUTTI_OK)
        status = note_all(s, traces, limit, &result);
    if (status == TUTTI_OK) {
        double latest = set_begins(s->network, begins);
        status = tutti__sim_replay(&s->links, traces, begins, &end);
        result.total = end;
        result.seconds = end - latest;
        result.busiest = end > 0 ? tutti__sim_links_busiest(&s->links) / end : 0;
    }
    for (int r = 0; traces && r < ranks; r++)
        tutti__sim_trace_free(&traces[r]);
    free(traces);
    free(begins);
    if (status == TUTTI_OK)
        *ret = result;
    return status;
}

tutti_status tutti__simulate(const tutti_network *network, const char *operation,
                             const char *algorithm, int64_t bytes, uint64_t limit,
                             tutti_simulated *ret)
{
    stage *s = calloc(1, sizeof *s);
    if (!s)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to simulate %d ranks", network->ranks);
    s->network = network;
    s->operation = tutti__operation_find(operation);
    s->coll = tutti__coll_find(algorithm);
    s->count = bytes / (int64_t)sizeof(float);
    if (s->operation == TUTTI_REDUCE_SCATTER)
        s->count /= network->ranks > 0 ? network->ranks : 1;
    tutti_status status = tutti__sim_links_create(network, &s->links);
    if (status == TUTTI_OK)
        status = sim_check(s, operation, algorithm);
    if (status == TUTTI_OK)
        status = set_up(s);
    if (status == TUTTI_OK)
        status = simulate(s, limit, ret);
    tutti__sim_links_free(&s->links);
    free(s->members);
    free(s->fabric.machine);
    free(s);
    return status;
}
