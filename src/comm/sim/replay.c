/* replay.c: a discrete-event simulation. Whose clock is least goes on until it has to wait for a
 * message that was not sent yet, or wants to send while another's clock is behind: so messages
 * enter the network in the order of time. */
#include "comm/sim/replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Messages from one rank to another that were sent or expected. Times of arrival stand in a ring of
 * `room` places (a power of two); numbers below `base` are done with. */
typedef struct channel {
    uint64_t key;
    uint64_t sent, expected, base;
    double *times;
    uint32_t room;
    int waiting; /* a rank that wants message number `wanted`, or -1 */
    uint64_t wanted;
} channel;

typedef struct posted {
    bool outgoing;
    uint32_t channel;
    double left;     /* outgoing: when its memory is free */
    uint64_t number; /* incoming: within its channel */
} posted;

typedef struct actor {
    const tutti_sim_trace *trace;
    uint32_t group, step, times;
    double clock;
    posted *window; /* the last messages posted, [mask + 1] */
    uint64_t count, mask;
} actor;

typedef struct event {
    double at;
    int rank;
} event;

typedef struct replay {
    tutti_sim_links *links;
    int ranks;
    actor *actors;
    event *heap;
    int heap_count;
    channel *channels;
    uint32_t channel_count, channel_room;
    uint32_t *index; /* open addressing, [index_room], channel + 1 */
    uint32_t index_room;
    bool failed;
} replay;

static bool before(event a, event b)
{
    return a.at < b.at || (a.at == b.at && a.rank < b.rank);
}

static void replay_push(replay *r, int rank)
{
    event e = {r->actors[rank].clock, rank};
    int at = r->heap_count++;
    while (at > 0 && before(e, r->heap[(at - 1) / 2])) {
        r->heap[at] = r->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    r->heap[at] = e;
}

static int pop(replay *r)
{
    int rank = r->heap[0].rank, at = 0;
    event last = r->heap[--r->heap_count];
    for (;;) {
        int child = 2 * at + 1;
        if (child >= r->heap_count)
            break;
        if (child + 1 < r->heap_count && before(r->heap[child + 1], r->heap[child]))
            child++;
        if (!before(r->heap[child], last))
            break;
        r->heap[at] = r->heap[child];
        at = child;
    }
    r->heap[at] = last;
    return rank;
}

static uint32_t place_of(const replay *r, uint64_t key)
{
    uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t at = (uint32_t)(hash >> 32) & (r->index_room - 1);
    while (r->index[at] && r->channels[r->index[at] - 1].key != key)
        at = (at + 1) & (r->index_room - 1);
    return at;
}

static bool more_channels(replay *r)
{
    uint32_t room = r->channel_room ? r->channel_room * 2 : 1024;
    channel *grown = realloc(r->channels, room * sizeof *grown);
    if (grown) {
        memset(grown + r->channel_room, 0, (room - r->channel_room) * sizeof *grown);
        r->channels = grown;
    }
    uint32_t *index = grown ? calloc((size_t)room * 2, sizeof *index) : NULL;
    if (!index)
        return false;
    free(r->index);
    r->index = index;
    r->index_room = room * 2;
    r->channel_room = room;
    for (uint32_t i = 0; i < r->channel_count; i++)
        r->index[place_of(r, r->channels[i].key)] = i + 1;
    return true;
}

/* Its number; makes it when it is new. */
static uint32_t channel_of(replay *r, uint32_t from, uint32_t to)
{
    uint64_t key = (uint64_t)from << 32 | to;
    if (r->channel_count == r->channel_room && !more_channels(r)) {
        r->failed = true;
        return 0;
    }
    uint32_t at = place_of(r, key);
    if (!r->index[at]) {
        r->channels[r->channel_count] = (channel){.key = key, .waiting = -1};
        r->index[at] = ++r->channel_count;
    }
    return r->index[at] - 1;
}

static void arrive(replay *r, uint32_t number, double time)
{
    channel *c = &r->channels[number];
    if (c->sent - c->base == c->room) {
        uint32_t room = c->room ? c->room * 2 : 2;
        double *times = malloc(room * sizeof *times);
        if (!times) {
            r->failed = true;
            return;
        }
        for (uint64_t i = c->base; i < c->sent; i++)
            times[i & (room - 1)] = c->times[i & (c->room - 1)];
        free(c->times);
        c->times = times;
        c->room = room;
    }
    c->times[c->sent++ & (c->room - 1)] = time;
    if (c->waiting >= 0 && c->wanted < c->sent) {
        replay_push(r, c->waiting);
        c->waiting = -1;
    }
}

static void do_send(replay *r, int rank, const tutti_sim_step *step)
{
    actor *a = &r->actors[rank];
    uint32_t number = channel_of(r, (uint32_t)rank, step->peer);
    posted *p = &a->window[a->count++ & a->mask];
    *p = (posted){.outgoing = true, .channel = number};
    a->clock += tutti__sim_links_overhead(r->links, rank, (int)step->peer);
    double time = tutti__sim_links_send(r->links, rank, (int)step->peer, (double)step->bytes,
                                        a->clock, &p->left);
    if (!r->failed)
        arrive(r, number, time);
}

static void do_recv(replay *r, int rank, const tutti_sim_step *step)
{
    actor *a = &r->actors[rank];
    uint32_t number = channel_of(r, step->peer, (uint32_t)rank);
    if (!r->failed)
        a->window[a->count++ & a->mask] =
            (posted){.channel = number, .number = r->channels[number].expected++};
}

/* False when the message has not been sent: the rank will be called again. */
static bool do_wait(replay *r, int rank, const tutti_sim_step *step)
{
    actor *a = &r->actors[rank];
    const posted *p = &a->window[(a->count - step->peer) & a->mask];
    if (p->outgoing) {
        a->clock = fmax(a->clock, p->left);
        return true;
    }
    channel *c = &r->channels[p->channel];
    if (c->sent <= p->number) {
        c->waiting = rank;
        c->wanted = p->number;
        return false;
    }
    double *time = &c->times[p->number & (c->room - 1)];
    a->clock = fmax(a->clock, *time);
    *time = -1;
    while (c->base < c->sent && c->times[c->base & (c->room - 1)] < 0)
        c->base++;
    return true;
}

static void next_step(actor *a)
{
    const tutti_sim_group *group = &a->trace->groups[a->group];
    if (++a->step < group->count)
        return;
    a->step = 0;
    if (++a->times < group->times)
        return;
    a->times = 0;
    a->group++;
}

/* Until the rank must wait, lets another go first, or is done. */
static void replay_run(replay *r, int rank)
{
    actor *a = &r->actors[rank];
    double gamma = r->links->network.gamma * r->links->slow[rank];
    while (a->group < a->trace->group_count && !r->failed) {
        const tutti_sim_step *step = &a->trace->steps[a->trace->groups[a->group].first + a->step];
        if (step->kind == TUTTI_SIM_SEND) {
            if (r->heap_count > 0 && r->heap[0].at < a->clock) {
                replay_push(r, rank);
                return;
            }
            do_send(r, rank, step);
        } else if (step->kind == TUTTI_SIM_RECV) {
            do_recv(r, rank, step);
        } else if (step->kind == TUTTI_SIM_COMPUTE) {
            a->clock += gamma * (double)step->bytes;
        } else if (!do_wait(r, rank, step)) {
            return;
        }
        next_step(a);
    }
}

/* As many messages as a wait may look back, and a power of two. */
static uint64_t window_of(const tutti_sim_trace *trace)
{
    uint64_t size = 2;
    for (uint32_t i = 0; i < trace->step_count; i++)
        while (trace->steps[i].kind == TUTTI_SIM_WAIT && trace->steps[i].peer > size)
            size *= 2;
    return size;
}

static tutti_status replay_prepare(replay *r, const tutti_sim_trace *traces, const double *begins)
{
    r->actors = calloc((size_t)r->ranks, sizeof *r->actors);
    r->heap = calloc((size_t)r->ranks + 1, sizeof *r->heap);
    bool good = r->actors && r->heap && more_channels(r);
    for (int i = 0; good && i < r->ranks; i++) {
        uint64_t window = window_of(&traces[i]);
        r->actors[i] = (actor){.trace = &traces[i], .clock = begins[i], .mask = window - 1};
        r->actors[i].window = calloc(window, sizeof *r->actors[i].window);
        good = r->actors[i].window != NULL;
    }
    if (!good)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to simulate %d ranks", r->ranks);
    for (int i = 0; i < r->ranks; i++)
        replay_push(r, i);
    return TUTTI_OK;
}

static tutti_status replay_finish(const replay *r, double *ret_end)
{
    double end = 0;
    if (r->failed)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to simulate %d ranks", r->ranks);
    for (int i = 0; i < r->ranks; i++) {
        if (r->actors[i].group < r->actors[i].trace->group_count)
            return tutti_fail(TUTTI_INTERNAL, "rank %d waits for a message that nobody sends", i);
        end = fmax(end, r->actors[i].clock);
    }
    *ret_end = end;
    return TUTTI_OK;
}

tutti_status tutti__sim_replay(tutti_sim_links *links, const tutti_sim_trace *traces,
                               const double *begins, double *ret_end)
{
    replay r = {.links = links, .ranks = links->network.ranks};
    tutti_status status = replay_prepare(&r, traces, begins);
    while (status == TUTTI_OK && r.heap_count > 0 && !r.failed)
        replay_run(&r, pop(&r));
    if (status == TUTTI_OK)
        status = replay_finish(&r, ret_end);
    for (int i = 0; r.actors && i < r.ranks; i++)
        free(r.actors[i].window);
    for (uint32_t i = 0; i < r.channel_count; i++)
        free(r.channels[i].times);
    free(r.actors);
    free(r.heap);
    free(r.channels);
    free(r.index);
    return status;
}
