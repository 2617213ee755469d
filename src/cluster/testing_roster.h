/* testing_roster.h: a simulator of network and time under whole jobs, for the tests of rosters. A
 * seed gives everything: ranks, delays, when ranks come, work and leave, and one fault. */
#ifndef TUTTI_CLUSTER_TESTING_ROSTER_H
#define TUTTI_CLUSTER_TESTING_ROSTER_H

#include "base/container.h"
#include "base/test.h"
#include "cluster/roster.h"

/* A check that says in which seed it failed. */
extern uint64_t tutti__test_seed;
#define HOLDS(condition)                                                                           \
    ((condition) ? (void)0                                                                         \
                 : tutti__test_fail(__FILE__, __LINE__, "TUTTI_TEST_SEED=%llu: %s",                \
                                    (unsigned long long)tutti__test_seed, #condition))

#define SECOND INT64_C(1000000000)
#define SILENCE (5 * SECOND)
#define FAST (SECOND / 40) /* what a message takes at most in a network that is not slow */
enum { MOST = 7 };

typedef enum fault {
    FAULT_NONE,
    FAULT_KILL,       /* the process ends; its links end */
    FAULT_STOP,       /* SIGSTOP for ever */
    FAULT_PAUSE,      /* stopped for less than the limit */
    FAULT_PARTITION,  /* nothing goes in or out any more, no link ends */
    FAULT_HALF_OPEN,  /* one direction of one link is lost */
    FAULT_RESET,      /* one link breaks */
    FAULT_LEAP,       /* a clock leaps forward */
    FAULT_LOSS,       /* a moment without a network: what was sent comes later */
    FAULT_SUSPECT,    /* a rank gives another up */
    FAULT_ABORT,      /* a rank ends the job, and perhaps its process with it */
    FAULT_KILL_TWO,   /* rank 0's process ends, and a moment later another */
    FAULT_KILL_STOP,  /* rank 0's process ends, another is stopped before or a moment later */
    FAULT_KILL_DEAF,  /* rank 0's process ends, and another takes no calls */
    FAULT_KILL_LOSE,  /* rank 0's process ends, then one direction between two others is lost */
    FAULT_STOP_ABORT, /* rank 0 is stopped, and another ends the job */
    FAULT_STOP_LATE,  /* rank 0 is stopped, and another waits too long for it */
    FAULT_ABORT_STOP, /* rank 0 ends the job, and is stopped as it says why, or before */
    FAULT_MACHINE,    /* rank 0's machine is gone with all its ranks, no link ends */
    FAULT_SPLIT,      /* the network is cut in two between machines, no link ends */
    FAULT_CUT,        /* nothing goes between rank 0 and one other any more, no link ends */
    FAULT_SLEEP,      /* stopped for about the limit, or longer */
    FAULT_COUNT,
} fault;

typedef enum kind {
    DELIVER,
    CLOSED,
    TICK,
    LINK,
    WORK,
    BREAK,
    KILL,
    STOP,
    LOSE, /* what this node sends to `other` */
    WAKE,
    OBITUARY,
    CALL,      /* `other` calls this node's machine */
    CONNECTED, /* `other`'s machine has taken this node's call */
    ACCEPT,    /* this node finds `other`'s call */
    CHALLENGE, /* `other` asks this node who it is */
    HELLO,     /* `other` wants to be let in */
    PROVED,    /* it may */
    REACHED,   /* `other` has let this node in */
    REFUSED,   /* or not */
    TAKEN,     /* since it calls this node itself */
} kind;

typedef struct event {
    int64_t at;
    uint64_t order;
    kind kind;
    int node, other;
    tutti_cluster_message *message;
} event;

typedef struct node {
    struct simulation *sim;
    tutti_roster roster;
    int rank;
    bool linked, dead, stopped, leaving;
    bool gone; /* dead, and its machine too */
    int64_t clock_offset, ended_at;
    uint64_t rounds;
} node;

typedef struct simulation {
    uint64_t seed, drawn, order;
    int size, victim, other;
    int crowd;     /* ranks on each machine */
    unsigned half; /* SPLIT: these ranks are on one side */
    int64_t now, fault_at, delay, slow_until, last_sent[MOST][MOST];
    int64_t proof; /* what it takes a rank at most to let another in, with all the others to do */
    fault fault;
    bool late; /* KILL_STOP: the other one is stopped while it asks, or is asked */
    bool supervised, broken, lost[MOST][MOST]; /* lost[a][b]: what a sends to b vanishes */
    uint64_t rounds;
    int64_t pace; /* what a program works at most between two rounds */
    node nodes[MOST];
    TUTTI_VEC(event) queue, held; /* held: for the stopped process, in order */
} simulation;

static inline bool ended(const node *n)
{
    return n->dead || n->roster.phase == TUTTI_PHASE_LEFT || n->roster.phase == TUTTI_PHASE_FAILED;
}

/* The story of a seed, to its end. What is in *sim afterwards goes with tutti__simulation_free. */
void tutti__simulation_run(simulation *sim, uint64_t seed);
void tutti__simulation_free(simulation *sim);

#endif
