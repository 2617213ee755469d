/* testing_sim.h: a seeded simulator of network and time under parameter servers. A seed gives
 * everything: how many servers and workers, the consistency, delays, what is lost, repeated and
 * overtaken, who is killed and comes back. */
#ifndef TUTTI_SERVICE_STORE_TESTING_SIM_H
#define TUTTI_SERVICE_STORE_TESTING_SIM_H

#include "base/test.h"
#include "service/store/client.h"
#include "service/store/server.h"
#include "service/store/testing.h"

enum { SIM_SERVERS = 3, SIM_WORKERS = 3, SIM_SHARDS = 3, SIM_STEPS = 8, SIM_PUSHES = 256 };

extern uint64_t tutti__store_seed;
#define SIM_HOLDS(condition)                                                                       \
    ((condition) ? (void)0                                                                         \
                 : tutti__test_fail(__FILE__, __LINE__, "TUTTI_TEST_SEED=%llu: %s",                \
                                    (unsigned long long)tutti__store_seed, #condition))

typedef struct sim_letter {
    int64_t at;
    uint64_t order;
    uint32_t to;
    uint8_t *frame;
    size_t size;
} sim_letter;

/* A push that was acknowledged, with its verdict. */
typedef struct sim_push {
    uint32_t shard, contribution, verdict;
    uint64_t step;
} sim_push;

typedef struct sim_worker {
    struct sim *sim;
    int index;
    bool alive, told; /* told: it has the present view */
    uint32_t incarnation;
    tutti_store_client client;
    int open;    /* requests that are not answered */
    int phase;   /* 0 create, 1 pull, 2 push, 3 commit, 4 at the end, 5 number */
    size_t rows; /* bytes that it read of another shard; SIZE_MAX: of none yet */
    bool again;  /* what was to be read is no longer kept */
    uint64_t steps, txns;
    uint64_t clock[SIM_SHARDS], version[SIM_SHARDS];
    uint64_t number, after[SIM_SERVERS]; /* of an atomic read */
} sim_worker;

typedef struct sim {
    uint64_t seed, drawn, order;
    int64_t now, delay;
    int servers, workers, shards, lossy, repeats; /* of 100 messages */
    bool replicas, atomic;
    const char *consistency;
    tutti_store_server *server[SIM_SERVERS];
    uint32_t server_incarnation[SIM_SERVERS];
    sim_worker worker[SIM_WORKERS];
    tutti_store_place place[SIM_SERVERS];
    uint64_t view;
    int64_t next_fault, view_at; /* when a view is decided */
    int faults, kills;
    bool decide;
    TUTTI_VEC(sim_letter) letters; /* a heap by time */
    sim_push pushes[SIM_PUSHES];
    int push_count;
} sim;

/* The story of a seed, to its end; checks everything. */
void store_sim_run(uint64_t seed);

#endif
