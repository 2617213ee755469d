/* testing_roster.c: see testing_roster.h. */
#include "cluster/testing_roster.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"

uint64_t tutti__test_seed;

static uint64_t testing_roster_draw(simulation *sim, uint64_t below)
{
    return tutti__random_below((tutti_random_key){.seed = sim->seed}, sim->drawn++, below);
}

static tutti_cluster_message *copy_of(const tutti_cluster_message *message)
{
    tutti_cluster_message *copy = message != NULL ? malloc(sizeof *copy) : NULL;
    if (copy != NULL)
        *copy = *message;
    return copy;
}

static void post(simulation *sim, int64_t at, kind what, int to, int other,
                 const tutti_cluster_message *message)
{
    event e = {at, sim->order++, what, to, other, copy_of(message)};
    HOLDS((message == NULL) == (e.message == NULL));
    HOLDS(TUTTI_VEC_PUSH(&sim->queue, e));
}

/* In order; during a loss until the network is back. */
static int64_t arrival(simulation *sim, int from, int to)
{
    int64_t at = sim->now + (int64_t)testing_roster_draw(sim, (uint64_t)sim->delay) + 1;
    if (at < sim->slow_until)
        at = sim->slow_until + (int64_t)testing_roster_draw(sim, (uint64_t)SECOND / 20);
    if (at <= sim->last_sent[from][to])
        at = sim->last_sent[from][to] + 1;
    return sim->last_sent[from][to] = at;
}

static void node_send(void *context, int rank, const tutti_cluster_message *message)
{
    node *from = context;
    simulation *sim = from->sim;
    if (!sim->lost[from->rank][rank])
        post(sim, arrival(sim, from->rank, rank), DELIVER, rank, from->rank, message);
}

static void node_drop(void *context, int rank)
{
    node *from = context;
    simulation *sim = from->sim;
    from->linked = from->linked && rank != 0;
    if (!sim->lost[from->rank][rank])
        post(sim, arrival(sim, from->rank, rank), CLOSED, rank, from->rank, NULL);
}

static void node_where(void *context, tutti_wheres *ret_where)
{
    const node *n = context;
    *ret_where = (tutti_wheres){
        {{.sequence = n->roster.round, .inside = n->roster.round != n->roster.gathered}}};
    if (n->roster.round > 0)
        strcpy(ret_where->of[0].operation, "exchange");
}

/* A call that is lost, or whose answer is, is heard of no more; where no process listens the
 * machine refuses it. */
static tutti_calling node_call(void *context, int rank, uint32_t purpose)
{
    TUTTI_UNUSED(purpose);
    node *from = context;
    simulation *sim = from->sim;
    bool refused = sim->nodes[rank].dead && !sim->nodes[rank].gone;
    if (refused)
        post(sim, arrival(sim, from->rank, rank), CLOSED, from->rank, rank, NULL);
    else if (!sim->lost[from->rank][rank])
        post(sim, arrival(sim, from->rank, rank), CALL, rank, from->rank, NULL);
    return TUTTI_CALL_BEGUN;
}

static uint64_t machine_of(const simulation *sim, int rank)
{
    return sim->seed + (uint64_t)(rank / sim->crowd);
}

static int64_t clock_of(const node *n)
{
    return n->sim->now + n->clock_offset;
}

/* ---- the story of a seed ---- */

/* Of a network: most are fast, some are slow. */
static int64_t draw_delay(simulation *sim)
{
    static const int64_t most[] = {FAST, FAST, FAST, FAST, FAST, FAST, 2 * FAST, 8 * FAST};
    return 1 + (int64_t)testing_roster_draw(
                   sim, (uint64_t)most[testing_roster_draw(sim, TUTTI_COUNT(most))]);
}

/* One side of a network that is cut between machines. */
static unsigned draw_half(simulation *sim)
{
    unsigned machines = (unsigned)testing_roster_draw(sim, 1u << MOST), half = 0;
    for (int r = 0; r < sim->size; r++)
        half |= (machines >> (r / sim->crowd) & 1) << r;
    return half;
}

static void testing_roster_begin(simulation *sim, uint64_t seed)
{
    *sim = (simulation){.seed = seed};
    sim->size = 2 + (int)testing_roster_draw(sim, MOST - 1);
    sim->fault = (fault)testing_roster_draw(sim, FAULT_COUNT);
    sim->victim = (int)testing_roster_draw(sim, (uint64_t)sim->size);
    sim->other =
        (sim->victim + 1 + (int)testing_roster_draw(sim, (uint64_t)sim->size - 1)) % sim->size;
    sim->supervised = testing_roster_draw(sim, 2) == 1;
    sim->crowd = 1 + (int)testing_roster_draw(sim, (uint64_t)sim->size);
    sim->delay = draw_delay(sim);
    sim->proof = testing_roster_draw(sim, 2) == 1 ? 1 : SECOND * 3 / 10;
    sim->half = draw_half(sim);
    if (sim->fault >= FAULT_KILL_TWO && sim->fault <= FAULT_MACHINE) {
        sim->victim = 0;
        sim->other = 1 + sim->other % (sim->size - 1);
    }
    sim->rounds = testing_roster_draw(sim, 40);
    sim->pace = testing_roster_draw(sim, 2) == 1 ? SECOND / 2 : 3 * SECOND;
    sim->fault_at = 3 * SECOND + (int64_t)testing_roster_draw(sim, 10 * (uint64_t)SECOND);
    for (int r = 0; r < sim->size; r++) {
        node *n = &sim->nodes[r];
        *n = (node){
            .sim = sim, .rank = r, .clock_offset = (int64_t)testing_roster_draw(sim, 1u << 30)};
        tutti_roster_options options = {.rank = r,
                                        .size = sim->size,
                                        .job = seed + 1,
                                        .silence_ns = SILENCE,
                                        .supervised = sim->supervised};
        tutti_roster_ways ways = {.context = n,
                                  .send = node_send,
                                  .drop = node_drop,
                                  .where = node_where,
                                  .call = node_call};
        tutti_peer self = {.pid = 100 + r, .machine = machine_of(sim, r), .port = 1000 + r};
        int64_t begun = clock_of(n) - (int64_t)testing_roster_draw(
                                          sim, (uint64_t)SECOND); /* not all beat at once */
        HOLDS(tutti__roster_init(&n->roster, &options, &ways, begun) == TUTTI_OK);
        tutti__roster_self(&n->roster, &self);
        post(sim, (int64_t)testing_roster_draw(sim, 2 * (uint64_t)SECOND), LINK, r, 0, NULL);
        post(sim, 0, TICK, r, 0, NULL);
    }
    post(sim, sim->fault_at, BREAK, 0, 0, NULL);
}

static void link_node(simulation *sim, node *n)
{
    if (n->rank != 0) {
        n->linked = true;
        tutti__roster_linked(&n->roster, clock_of(n));
        node *zero = &sim->nodes[0];
        tutti_peer peer = {
            .pid = 100 + n->rank, .machine = machine_of(sim, n->rank), .port = 1000 + n->rank};
        HOLDS((int64_t)tutti__roster_may_admit(&zero->roster, n->rank) ==
              (int64_t)(TUTTI_REFUSAL_NONE));
        tutti__roster_admit(&zero->roster, clock_of(zero), n->rank, &peer);
        HOLDS((int64_t)tutti__roster_may_admit(&zero->roster, n->rank) ==
              (int64_t)(TUTTI_REFUSAL_TAKEN));
    }
    post(sim, sim->now + SECOND, WORK, n->rank, 0, NULL);
}

static void check_gathered(const simulation *sim, const node *n)
{
    for (int r = 0; r < sim->size; r++) {
        uint64_t value[2];
        HOLDS((int64_t)n->roster.members[r].result.size == (int64_t)(sizeof value));
        memcpy(value, n->roster.members[r].result.data, sizeof value);
        HOLDS((int64_t)value[0] == (int64_t)(r));
        HOLDS((int64_t)value[1] == (int64_t)(n->roster.round));
    }
}

/* What the program does: rounds of exchange with some work between, then the barrier. */
static void work(simulation *sim, node *n)
{
    tutti_roster *roster = &n->roster;
    if (ended(n) || n->leaving)
        return;
    if (roster->phase == TUTTI_PHASE_RUNNING && roster->gathered == roster->round) {
        HOLDS((int64_t)roster->job == (int64_t)(sim->seed + 1));
        for (int r = 0; r < sim->size; r++)
            HOLDS((int64_t)roster->members[r].peer.pid == (int64_t)(100 + r));
        if (roster->round > 0)
            check_gathered(sim, n);
        if (roster->round == sim->rounds) {
            n->leaving = true;
            tutti__roster_leave(roster, clock_of(n));
            return;
        }
        uint64_t value[2] = {(uint64_t)n->rank, roster->round + 1};
        tutti__roster_exchange(roster, clock_of(n), value, sizeof value);
    }
    post(sim, sim->now + (int64_t)testing_roster_draw(sim, (uint64_t)sim->pace), WORK, n->rank, 0,
         NULL);
}

static void testing_roster_cut(simulation *sim, int a, int b)
{
    sim->lost[a][b] = sim->lost[b][a] = true;
}

static void end_links(simulation *sim, int rank)
{
    for (int r = 0; r < sim->size; r++)
        if (r != rank) {
            post(sim, arrival(sim, rank, r), CLOSED, r, rank, NULL);
            testing_roster_cut(sim, rank, r);
        }
}

static void kill_node(simulation *sim, node *victim)
{
    end_links(sim, victim->rank);
    victim->dead = true;
    for (int r = 0; sim->supervised && r < sim->size; r++)
        post(sim, sim->now + (int64_t)testing_roster_draw(sim, 2 * (uint64_t)SECOND / 5), OBITUARY,
             r, victim->rank, NULL);
}

static bool is_linked(const node *n, int other)
{
    const tutti_roster_member *member = &n->roster.members[other];
    return member->linked || member->beside || member->called;
}

static void answer(simulation *sim, node *n, kind what, int other)
{
    if (!sim->lost[n->rank][other])
        post(sim, arrival(sim, n->rank, other), what, other, n->rank, NULL);
}

/* What the system says to a caller, also in the place of a process that is stopped. */
static void take_call(simulation *sim, node *n, int caller)
{
    bool deaf = sim->fault == FAULT_KILL_DEAF && n->rank == sim->other;
    answer(sim, n, deaf ? CLOSED : CONNECTED, caller);
    if (!deaf)
        post(sim, sim->now, ACCEPT, n->rank, caller, NULL);
}

static void let_in(simulation *sim, node *n, int caller)
{
    tutti_refusal refusal = tutti__roster_may_stand_in(&n->roster, caller);
    answer(sim, n,
           refusal == TUTTI_REFUSAL_NONE    ? REACHED
           : refusal == TUTTI_REFUSAL_TAKEN ? TAKEN
                                            : REFUSED,
           caller);
    if (refusal == TUTTI_REFUSAL_NONE)
        tutti__roster_stand_in_for(&n->roster, clock_of(n), caller);
}

/* From a call to its admission. */
static void go_on_calling(simulation *sim, node *n, const event *e)
{
    switch (e->kind) {
    case CONNECTED:
        tutti__roster_stand_in_connected(&n->roster, e->other);
        break;
    case ACCEPT:
        answer(sim, n, CHALLENGE, e->other);
        break;
    case CHALLENGE:
        tutti__roster_stand_in_heard(&n->roster, e->other);
        answer(sim, n, HELLO, e->other);
        break;
    case HELLO:
        post(sim, sim->now + (int64_t)testing_roster_draw(sim, (uint64_t)sim->proof), PROVED,
             n->rank, e->other, NULL);
        break;
    case PROVED:
        let_in(sim, n, e->other);
        break;
    case REACHED:
        if (n->roster.members[e->other].called) /* else the link was given up meanwhile */
            tutti__roster_stand_in_reached(&n->roster, clock_of(n), e->other);
        break;
    case TAKEN:
        tutti__roster_stand_in_taken(&n->roster, e->other);
        break;
    case REFUSED:
        if (n->roster.members[e->other].called)
            tutti__roster_closed(&n->roster, clock_of(n), e->other, "");
        break;
    default:
        break;
    }
}

static void testing_roster_split(simulation *sim)
{
    bool cut_off = false;
    for (int a = 0; a < sim->size; a++)
        for (int b = 0; b < sim->size; b++)
            if ((sim->half >> a & 1) != (sim->half >> b & 1)) {
                sim->lost[a][b] = true;
                cut_off = true;
            }
    sim->broken = cut_off;
    for (int r = 0; r < sim->size; r++)
        sim->broken = sim->broken && !ended(&sim->nodes[r]) && !sim->nodes[r].leaving;
}

static void lose_machine(simulation *sim)
{
    for (int r = 0; r < sim->size && machine_of(sim, r) == machine_of(sim, 0); r++) {
        sim->broken = sim->broken && !sim->nodes[r].leaving;
        sim->nodes[r].dead = sim->nodes[r].gone = true;
        for (int other = 0; other < sim->size; other++)
            testing_roster_cut(sim, r, other);
    }
}

/* Rank 0's process ends, and something happens to others. */
static void break_two(simulation *sim)
{
    int64_t soon = sim->now + (int64_t)testing_roster_draw(sim, (uint64_t)SECOND);
    int third =
        1 + (sim->other + (int)testing_roster_draw(sim, (uint64_t)sim->size)) % (sim->size - 1);
    if (sim->fault == FAULT_KILL_TWO)
        post(sim, soon, KILL, sim->other, 0, NULL);
    else if (sim->fault == FAULT_KILL_STOP) {
        sim->late = testing_roster_draw(sim, 2) == 1;
        post(sim, sim->late ? soon : sim->now, STOP, sim->other, 0, NULL);
    } else if (sim->fault == FAULT_KILL_LOSE)
        post(sim, soon, LOSE, sim->other, third, NULL);
    kill_node(sim, &sim->nodes[0]);
}

static void break_something(simulation *sim)
{
    node *victim = &sim->nodes[sim->victim];
    int link = sim->victim == 0 ? sim->other : sim->victim; /* every link has rank 0 at one end */
    sim->broken = !ended(victim) && !victim->leaving && !sim->nodes[link].leaving;
    switch (sim->fault) {
    case FAULT_KILL:
        kill_node(sim, victim);
        break;
    case FAULT_STOP:
        victim->stopped = true;
        break;
    case FAULT_PAUSE:
        victim->stopped = true;
        post(sim, sim->now + (int64_t)testing_roster_draw(sim, 35 * (uint64_t)SECOND / 10), WAKE,
             sim->victim, 0, NULL);
        break;
    case FAULT_PARTITION:
        for (int r = 0; r < sim->size; r++)
            testing_roster_cut(sim, sim->victim, r);
        break;
    case FAULT_HALF_OPEN:
        sim->lost[testing_roster_draw(sim, 2) ? link : 0][testing_roster_draw(sim, 2) ? 0 : link] =
            true;
        sim->lost[0][0] = false;
        sim->broken = sim->broken && (sim->lost[0][link] || sim->lost[link][0]);
        break;
    case FAULT_RESET:
        if (sim->nodes[link].linked) {
            post(sim, arrival(sim, 0, link), CLOSED, link, 0, NULL);
            post(sim, arrival(sim, link, 0), CLOSED, 0, link, NULL);
        }
        testing_roster_cut(sim, 0, link);
        break;
    case FAULT_LEAP:
        victim->clock_offset += (int64_t)testing_roster_draw(sim, 3600 * (uint64_t)SECOND);
        sim->broken = false;
        break;
    case FAULT_LOSS:
        sim->slow_until = sim->now + (int64_t)testing_roster_draw(sim, 3 * (uint64_t)SECOND);
        sim->broken = false;
        break;
    case FAULT_SUSPECT:
        if (!ended(victim))
            tutti__roster_suspect(&victim->roster, clock_of(victim), sim->other,
                                  TUTTI_FAILURE_SUSPECTED, 0, "connection reset");
        break;
    case FAULT_STOP_ABORT:
    case FAULT_STOP_LATE:
        victim->stopped = true;
        if (!ended(&sim->nodes[sim->other]))
            tutti__roster_suspect(
                &sim->nodes[sim->other].roster, clock_of(&sim->nodes[sim->other]), sim->other,
                sim->fault == FAULT_STOP_ABORT ? TUTTI_FAILURE_ABORTED : TUTTI_FAILURE_BROKEN,
                sim->fault == FAULT_STOP_ABORT ? 0 : TUTTI_DEADLINE, "loss is NaN");
        break;
    case FAULT_ABORT_STOP:
    case FAULT_ABORT:
        if (sim->fault == FAULT_ABORT_STOP)
            post(sim, sim->now + (int64_t)testing_roster_draw(sim, SECOND * 3 / 10), STOP, 0, 0,
                 NULL);
        if (!ended(victim))
            tutti__roster_suspect(&victim->roster, clock_of(victim), sim->victim,
                                  TUTTI_FAILURE_ABORTED, 0, "loss is NaN");
        if (sim->fault == FAULT_ABORT && testing_roster_draw(sim, 2))
            kill_node(sim, victim);
        break;
    case FAULT_KILL_TWO:
    case FAULT_KILL_STOP:
    case FAULT_KILL_DEAF:
    case FAULT_KILL_LOSE:
        break_two(sim);
        break;
    case FAULT_MACHINE:
        lose_machine(sim);
        break;
    case FAULT_SPLIT:
        testing_roster_split(sim);
        break;
    case FAULT_CUT:
        testing_roster_cut(sim, 0, link);
        break;
    case FAULT_SLEEP:
        victim->stopped = true;
        post(sim,
             sim->now + 35 * SECOND / 10 + (int64_t)testing_roster_draw(sim, 10 * (uint64_t)SECOND),
             WAKE, sim->victim, 0, NULL);
        break;
    default:
        sim->broken = false;
    }
    if (sim->fault == FAULT_PAUSE)
        sim->broken = false;
}

/* The system has kept what came for it, which is read before the time is looked at. */
static void wake(simulation *sim, node *n)
{
    n->stopped = false;
    for (int ticks = 0; ticks < 2; ticks++)
        for (size_t i = 0; i < sim->held.count; i++) {
            const event *e = &sim->held.data[i];
            if ((e->kind == TICK) == (ticks == 1))
                post(sim, sim->now, e->kind, e->node, e->other, e->message);
        }
    for (size_t i = 0; i < sim->held.count; i++)
        free(sim->held.data[i].message);
    sim->held.count = 0;
}

static void happen(simulation *sim, event *e)
{
    node *n = &sim->nodes[e->node];
    if (e->kind == BREAK)
        break_something(sim);
    else if (e->kind == WAKE)
        wake(sim, n);
    else if (e->kind == CALL)
        take_call(sim, n, e->other);
    else if (n->dead)
        return;
    else if (e->kind == KILL && !ended(n))
        kill_node(sim, n);
    else if (e->kind == STOP)
        n->stopped = !ended(n);
    else if (e->kind == LOSE)
        sim->lost[n->rank][e->other] = true;
    else if (n->stopped) {
        HOLDS(TUTTI_VEC_PUSH(&sim->held, *e));
        e->message = NULL;
        return;
    }
    tutti_phase before = n->roster.phase;
    switch (e->kind) {
    case LINK:
        link_node(sim, n);
        break;
    case WORK:
        work(sim, n);
        break;
    case DELIVER:
        if (is_linked(n, e->other))
            tutti__roster_receive(&n->roster, clock_of(n), e->other, e->message);
        break;
    case CLOSED:
        if (is_linked(n, e->other)) {
            n->linked = n->linked && e->other != 0;
            tutti__roster_closed(&n->roster, clock_of(n), e->other, "");
        }
        break;
    case OBITUARY:
        tutti__roster_suspect(&n->roster, clock_of(n), e->other, TUTTI_FAILURE_SIGNAL, 9, "");
        break;
    case TICK:
        tutti__roster_tick(&n->roster, clock_of(n));
        HOLDS(tutti__roster_next(&n->roster) > clock_of(n)); /* else its thread never rests */
        if (!ended(n))
            post(sim, sim->now + SECOND / 20, TICK, e->node, 0, NULL);
        break;
    default:
        go_on_calling(sim, n, e);
    }
    HOLDS(before != TUTTI_PHASE_LEFT || n->roster.phase == TUTTI_PHASE_LEFT);
    if (ended(n) && n->ended_at == 0)
        n->ended_at = sim->now;
}

static bool take_next(simulation *sim, event *ret)
{
    size_t best = 0;
    if (sim->queue.count == 0)
        return false;
    for (size_t i = 1; i < sim->queue.count; i++) {
        const event *a = &sim->queue.data[i], *b = &sim->queue.data[best];
        if (a->at < b->at || (a->at == b->at && a->order < b->order))
            best = i;
    }
    *ret = sim->queue.data[best];
    sim->queue.data[best] = sim->queue.data[--sim->queue.count];
    return true;
}

void tutti__simulation_run(simulation *sim, uint64_t seed)
{
    tutti__test_seed = seed;
    testing_roster_begin(sim, seed);
    event e;
    while (take_next(sim, &e) && e.at < 300 * SECOND) {
        sim->now = e.at;
        happen(sim, &e);
        free(e.message);
        e.message = NULL;
    }
}

void tutti__simulation_free(simulation *sim)
{
    for (size_t i = 0; i < sim->queue.count; i++)
        free(sim->queue.data[i].message);
    for (size_t i = 0; i < sim->held.count; i++)
        free(sim->held.data[i].message);
    TUTTI_VEC_FREE(&sim->queue);
    TUTTI_VEC_FREE(&sim->held);
    for (int r = 0; r < sim->size; r++)
        tutti__roster_free(&sim->nodes[r].roster);
}
