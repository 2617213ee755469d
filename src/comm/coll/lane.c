/* lane.c: threads that do parts of a group's large operations. */
#define _GNU_SOURCE
#include "comm/coll/lane.h"

#include <sched.h>
#include <stdlib.h>

#include "base/denormals.h"
#include "base/params.h"
#include "base/pause.h"

enum {
    MOST_BY_ITSELF = 4,     /* lanes, unless TUTTI_LANES says more */
    LANE_BYTES = 256 << 10, /* that are worth another thread */
    LOOKS = 2000,           /* for work, or for its end, before a thread sleeps: some 50 us */
    UNIT = 1024,            /* elements that stay together */
};

typedef struct lane {
    struct tutti_lanes *all;
    int number; /* from 1 on: 0 is the caller's */
    tutti_comm *comm;
    pthread_t thread;
    bool started;
} lane;

typedef struct tutti_lanes {
    pthread_mutex_t lock; /* of those that sleep, and of the first failure */
    pthread_cond_t posted, done;
    atomic_uint round;    /* grows with each piece of work, and at the end */
    atomic_int busy;      /* lanes that have not finished it */
    atomic_int sleeping;  /* lanes that wait for work without looking */
    atomic_bool awaiting; /* the caller, for their end */
    bool end;
    /* The work, which lanes read once the round has changed: */
    tutti_collective whole;
    int parts;
    tutti_lane_work *work;
    const void *context;
    uint64_t arithmetic;
    bool beside;
    tutti_stop stop;
    int count;
    lane lane[];
} tutti_lanes;

tutti_status tutti__lanes_wanted(int cpus, int neighbours, int *ret_lanes)
{
    static const tutti_param param =
        TUTTI_PARAM("LANES", "0",
                    "threads and connections that share large operations over sockets, 1 to 8; 0: "
                    "as ranks have CPUs, up to 4");
    int64_t asked;
    TUTTI_TRY(tutti__param_in(&param, 0, TUTTI_LANES_MOST, &asked));
    int lanes = 1;
    while (lanes * 2 <= MOST_BY_ITSELF && lanes * 2 * neighbours <= cpus)
        lanes *= 2;
    *ret_lanes = asked > 0 ? (int)asked : lanes;
    return TUTTI_OK;
}

/* Of a cluster, ranks know their own engines only; what is asked for all know. */
void tutti__lanes_count(const tutti_fabric *fabric, int ret_lanes[TUTTI_LINK_COUNT])
{
    int lanes = fabric->trunk || fabric->lane_count < 2 ? 1 : fabric->lane_count;
    bool near = !fabric->membership || (fabric->named && fabric->named->lane);
    ret_lanes[TUTTI_LINK_WITHIN] = near ? lanes : 1;
    ret_lanes[TUTTI_LINK_BETWEEN] = lanes;
}

/* As many as between any two of them. */
int tutti__lanes_among(const tutti_comm_cost *cost, int ranks)
{
    int near = cost->lanes[TUTTI_LINK_WITHIN], far = cost->lanes[TUTTI_LINK_BETWEEN];
    int lanes = cost->hosts < 2 ? near : cost->hosts == ranks || far < near ? far : near;
    return ranks > 1 && lanes > 1 ? lanes : 1;
}

int tutti__lanes_for(const tutti_comm_cost *cost, int ranks, const tutti_coll *by,
                     tutti_operation operation, double bytes)
{
    int lanes = tutti__lanes_among(cost, ranks);
    bool side_by_side =
        operation == TUTTI_ALL_REDUCE || operation == TUTTI_REDUCE || operation == TUTTI_BROADCAST;
    if (!side_by_side || by->shared || by->native || by->machines || by->special)
        return 1;
    int worth = bytes < LANE_BYTES * TUTTI_LANES_MOST ? (int)(bytes / LANE_BYTES) : lanes;
    return worth < 1 ? 1 : worth < lanes ? worth : lanes;
}

static int64_t lane_cut(const tutti_lanes *all, int i)
{
    int64_t low = tutti__coll_cut(all->whole.count / UNIT, all->parts, i) * UNIT;
    return i < all->parts ? low : all->whole.count;
}

/* The first failure counts; the others are woken. */
static void stop_all(tutti_lanes *all, tutti_status status)
{
    tutti_fabric *trunk = all->whole.comm->fabric;
    pthread_mutex_lock(&all->lock);
    if (!atomic_load(&all->stop.set)) {
        tutti__error_capture(status, &all->stop.error);
        atomic_store(&all->stop.set, true);
    }
    pthread_mutex_unlock(&all->lock);
    tutti__fabric_kick(trunk);
    for (int i = 0; i < all->count; i++)
        tutti__fabric_kick(trunk->lanes[i]);
}

/* Part `number`, by the lane's group or by the caller's. */
static void run_part(tutti_lanes *all, int number, tutti_comm *comm)
{
    int64_t low = lane_cut(all, number);
    tutti_collective part = tutti__coll_part(&all->whole, low, lane_cut(all, number + 1) - low);
    part.comm = comm;
    tutti__fabric_heed(&all->stop);
    tutti_status status = all->work(&part, all->context);
    tutti__fabric_heed(NULL);
    if (comm != all->whole.comm)
        atomic_fetch_add(&all->whole.comm->bytes_sent, atomic_exchange(&comm->bytes_sent, 0));
    if (status != TUTTI_OK)
        stop_all(all, status);
}

/* Until there is another piece of work than that of `round`, or no more. Who looks takes no lock:
 * one that somebody else has just now would put the thread to sleep. */
static bool await_work(tutti_lanes *all, unsigned round)
{
    for (int i = 0; i < LOOKS && atomic_load(&all->round) == round; i++)
        tutti__pause();
    if (atomic_load(&all->round) == round) {
        pthread_mutex_lock(&all->lock);
        atomic_fetch_add(&all->sleeping, 1);
        while (atomic_load(&all->round) == round)
            pthread_cond_wait(&all->posted, &all->lock);
        atomic_fetch_sub(&all->sleeping, 1);
        pthread_mutex_unlock(&all->lock);
    }
    return !all->end;
}

/* Whoever has just begun to sleep sees the new round, or is seen. */
static void next_round(tutti_lanes *all)
{
    atomic_fetch_add(&all->round, 1);
    if (atomic_load(&all->sleeping) == 0)
        return;
    pthread_mutex_lock(&all->lock);
    pthread_cond_broadcast(&all->posted);
    pthread_mutex_unlock(&all->lock);
}

static void lane_finish(tutti_lanes *all)
{
    if (atomic_fetch_sub(&all->busy, 1) > 1 || !atomic_load(&all->awaiting))
        return;
    pthread_mutex_lock(&all->lock);
    pthread_cond_signal(&all->done);
    pthread_mutex_unlock(&all->lock);
}

static void *serve(void *arg)
{
    lane *own = arg;
    tutti_lanes *all = own->all;
    for (unsigned round = 0; await_work(all, round); round++) {
        if (own->number < all->parts) {
            tutti__denormals_set(all->arithmetic);
            tutti__fabric_beside(all->beside);
            run_part(all, own->number, own->comm);
        }
        lane_finish(all);
    }
    return NULL;
}

/* The CPUs that the process had when it joined: its own thread may be bound to one since. */
static void spread(const tutti_fabric *fabric, pthread_t thread)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    for (int i = 0; i < TUTTI_CPU_WORDS * 64 && i < CPU_SETSIZE; i++)
        if (fabric->cpu_mask[i / 64] >> i % 64 & 1)
            CPU_SET(i, &cpus);
    (void)pthread_setaffinity_np(thread, sizeof cpus, &cpus);
}

static tutti_status lane_start(lane *own, const tutti_comm *comm)
{
    tutti_comm_options options = tutti__comm_defaults(NULL);
    options.all_reduce = NULL;
    options.timeout = comm->timeout;
    TUTTI_TRY(tutti__comm_create(comm->fabric->lanes[own->number - 1], comm->size, comm->members,
                                 comm->rank, comm->context, &options, &own->comm));
    own->comm->inner = true;
    if (pthread_create(&own->thread, NULL, serve, own) != 0)
        return tutti_fail(TUTTI_NO_MEMORY, "no thread for a part of large operations");
    own->started = true;
    spread(comm->fabric, own->thread);
    return TUTTI_OK;
}

static tutti_status start_all(tutti_comm *comm)
{
    int count = tutti__lanes_among(&comm->cost, comm->size) - 1;
    tutti_lanes *all = calloc(1, sizeof *all + (size_t)count * sizeof all->lane[0]);
    if (!all)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %d lanes", count);
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->posted, NULL);
    pthread_cond_init(&all->done, NULL);
    all->count = count;
    comm->lanes = all;
    for (int i = 0; i < count; i++) {
        all->lane[i] = (lane){.all = all, .number = i + 1};
        TUTTI_TRY(lane_start(&all->lane[i], comm));
    }
    return TUTTI_OK;
}

static void await_end(tutti_lanes *all)
{
    for (int i = 0; i < LOOKS && atomic_load(&all->busy) > 0; i++)
        tutti__pause();
    if (atomic_load(&all->busy) == 0)
        return;
    pthread_mutex_lock(&all->lock);
    atomic_store(&all->awaiting, true);
    while (atomic_load(&all->busy) > 0)
        pthread_cond_wait(&all->done, &all->lock);
    atomic_store(&all->awaiting, false);
    pthread_mutex_unlock(&all->lock);
}

tutti_status tutti__lanes_run(tutti_collective *whole, int lanes, tutti_lane_work *work,
                              const void *context)
{
    tutti_comm *comm = whole->comm;
    tutti_status status = comm->lanes ? TUTTI_OK : start_all(comm);
    if (status != TUTTI_OK)
        return tutti__lanes_end(comm), status;
    tutti_lanes *all = comm->lanes;
    all->whole = *whole;
    all->parts = lanes;
    all->work = work;
    all->context = context;
    all->arithmetic = tutti__denormals_get();
    all->beside = tutti__fabric_is_beside();
    atomic_store(&all->busy, all->count);
    next_round(all);
    run_part(all, 0, comm);
    await_end(all);
    return atomic_exchange(&all->stop.set, false) ? tutti__error_restore(&all->stop.error)
                                                  : TUTTI_OK;
}

void tutti__lanes_end(tutti_comm *comm)
{
    tutti_lanes *all = comm->lanes;
    if (!all)
        return;
    all->end = true;
    next_round(all);
    for (int i = 0; i < all->count; i++) {
        if (all->lane[i].started)
            pthread_join(all->lane[i].thread, NULL);
        tutti__comm_destroy(all->lane[i].comm);
    }
    pthread_cond_destroy(&all->posted);
    pthread_cond_destroy(&all->done);
    pthread_mutex_destroy(&all->lock);
    free(all);
    comm->lanes = NULL;
}
