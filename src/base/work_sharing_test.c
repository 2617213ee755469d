#include "base/work_sharing.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/pool.h"
#include "base/test.h"
#include "base/world.h"

enum { PATIENCE_S = 30, HELD = 30 }; /* so few pieces are chunks of one */

static tutti_pool *new_host(int threads, int helpers)
{
    tutti_pool *pool = NULL;
    CHECK_OK(tutti__pool_create(threads, -1, &pool));
    tutti__pool_welcome(pool, helpers);
    return pool;
}

/* A thread that waits like a device until `over`. */
typedef struct waiting {
    atomic_bool over;
    atomic_int helps;
    pthread_t thread;
} waiting;

static bool is_over(const void *context)
{
    return atomic_load(&((const waiting *)context)->over);
}

static void *wait_and_help(void *argument)
{
    waiting *w = argument;
    const tutti_awaited awaited = {is_over, w};
    tutti__helper_may(true);
    bool helper = tutti__helper_begin();
    while (!is_over(w))
        if (helper && tutti__helper_help(&awaited))
            atomic_fetch_add(&w->helps, 1);
        else
            sched_yield();
    if (helper)
        tutti__helper_end();
    return NULL;
}

static void start_waiting(waiting *w)
{
    int before = tutti__helpers();
    CHECK_INT(pthread_create(&w->thread, NULL, wait_and_help, w), 0);
    while (tutti__helpers() == before)
        sched_yield();
}

static void stop_waiting(waiting *w)
{
    atomic_store(&w->over, true);
    pthread_join(w->thread, NULL);
}

/* The host's own thread is held up in its first piece until all others are done. */
typedef struct held {
    pthread_t owner;
    bool was_held, was_left_alone;
    atomic_int done;
    int marks[HELD];
} held;

static void held_piece(void *context, int64_t index)
{
    held *h = context;
    if (pthread_equal(pthread_self(), h->owner) && !h->was_held) {
        int64_t until = tutti__now_ns() + PATIENCE_S * INT64_C(1000000000);
        h->was_held = true;
        while (atomic_load(&h->done) < HELD - 1 && !h->was_left_alone) {
            sched_yield();
            h->was_left_alone = tutti__now_ns() > until;
        }
    }
    h->marks[index]++;
    atomic_fetch_add(&h->done, 1);
}

TUTTI_TEST(guests_finish_the_job_of_a_thread_that_is_held_up)
{
    tutti_pool *pool = new_host(1, 1), *other = new_host(1, 1);
    CHECK_INT(tutti__pool_threads(pool), 1);
    CHECK_INT(tutti__pool_most(pool), 2);
    CHECK_INT(tutti__pool_present(pool), 1);
    waiting w = {0};
    start_waiting(&w);
    CHECK_INT(tutti__pool_present(pool), 2);
    held h = {.owner = pthread_self()};
    tutti__pool_run(pool, HELD, held_piece, &h);
    stop_waiting(&w);
    CHECK(h.was_held && !h.was_left_alone);
    for (int i = 0; i < HELD; i++)
        CHECK_INT(h.marks[i], 1);
    CHECK_INT(tutti__pool_present(pool), 1);
    tutti__pool_destroy(pool);
    tutti__pool_destroy(other);
}

/* A helper that comes in the middle of a job that was begun inline. */
typedef struct joined {
    held held;
    waiting *helper;
} joined;

static void joined_piece(void *context, int64_t index)
{
    joined *j = context;
    if (index == 10)
        start_waiting(j->helper);
    if (index > 10)
        held_piece(&j->held, index);
    else {
        j->held.marks[index]++;
        atomic_fetch_add(&j->held.done, 1);
    }
}

TUTTI_TEST(guests_join_a_job_that_runs)
{
    tutti_pool *pool = new_host(1, 1), *other = new_host(1, 1);
    waiting w = {0};
    joined j = {.held = {.owner = pthread_self()}, .helper = &w};
    tutti__pool_run(pool, HELD, joined_piece, &j);
    stop_waiting(&w);
    CHECK(j.held.was_held && !j.held.was_left_alone);
    for (int i = 0; i < HELD; i++)
        CHECK_INT(j.held.marks[i], 1);
    tutti__pool_destroy(pool);
    tutti__pool_destroy(other);
}

/* After a chunk the helper sees that its wait is over: the rest is the host's. */
typedef struct brief {
    pthread_t owner;
    waiting *helper;
    atomic_int by_helper, done;
} brief;

static void brief_piece(void *context, int64_t index)
{
    brief *b = context;
    (void)index;
    if (pthread_equal(pthread_self(), b->owner)) {
        while (!is_over(b->helper))
            sched_yield();
    } else {
        atomic_fetch_add(&b->by_helper, 1);
        atomic_store(&b->helper->over, true);
    }
    atomic_fetch_add(&b->done, 1);
}

TUTTI_TEST(guests_leave_when_their_wait_is_over)
{
    tutti_pool *pool = new_host(1, 1), *other = new_host(1, 1);
    waiting w = {0};
    start_waiting(&w);
    brief b = {.owner = pthread_self(), .helper = &w};
    tutti__pool_run(pool, HELD, brief_piece, &b);
    stop_waiting(&w);
    CHECK_INT(b.done, HELD);
    CHECK_INT(b.by_helper, 1);
    tutti__pool_destroy(pool);
    tutti__pool_destroy(other);
}

typedef struct crowd {
    atomic_int inside, most, done;
} crowd;

static void crowd_piece(void *context, int64_t index)
{
    crowd *c = context;
    (void)index;
    int inside = atomic_fetch_add(&c->inside, 1) + 1, most = atomic_load(&c->most);
    while (inside > most && !atomic_compare_exchange_weak(&c->most, &most, inside))
        continue;
    sched_yield();
    atomic_fetch_sub(&c->inside, 1);
    atomic_fetch_add(&c->done, 1);
}

TUTTI_TEST(guests_are_no_more_than_the_pool_has_threads)
{
    tutti_pool *pool = new_host(1, 7), *other = new_host(1, 7);
    waiting w[3] = {0};
    crowd c = {0};
    CHECK_INT(tutti__pool_most(pool), 2);
    for (int i = 0; i < 3; i++)
        start_waiting(&w[i]);
    for (int round = 0; round < 20; round++)
        tutti__pool_run(pool, 100, crowd_piece, &c);
    for (int i = 0; i < 3; i++)
        stop_waiting(&w[i]);
    CHECK_INT(c.done, 2000);
    CHECK(c.most <= 2);
    tutti__pool_destroy(pool);
    tutti__pool_destroy(other);
}

TUTTI_TEST(guests_are_threads_of_devices_among_others)
{
    tutti_pool *pool = new_host(1, 1);
    CHECK(!tutti__helper_may(true));
    CHECK(!tutti__helper_begin()); /* there is nobody else */
    tutti_pool *other = new_host(1, 1);
    CHECK(tutti__helper_may(false));
    CHECK(!tutti__helper_begin());
    CHECK_INT(tutti__helpers(), 0);
    tutti__helper_may(true);
    CHECK(tutti__helper_begin());
    CHECK_INT(tutti__helpers(), 1);
    tutti__helper_end();
    tutti__helper_may(false);
    tutti__pool_destroy(pool);
    tutti__pool_destroy(other);
}

/* Devices that run jobs and wait for each other in turn, like the steps of a training. */
enum { DEVICES = 4, JOBS = 9, PIECES = 70 };

typedef struct step step;

typedef struct device {
    step *all;
    int index, rounds;
    tutti_pool *pool;
    double sums[PIECES];
    pthread_t thread;
} device;

struct step {
    atomic_int arrived[DEVICES];
    device devices[DEVICES];
};

static void add_piece(void *context, int64_t index)
{
    device *d = context;
    for (int i = 0; i < 20 * (d->index + 1); i++) /* some have more to do */
        d->sums[index] = d->sums[index] * 0.5 + (double)index;
}

typedef struct meeting {
    step *all;
    int round;
} meeting;

static bool all_here(const void *context)
{
    const meeting *m = context;
    for (int i = 0; i < DEVICES; i++)
        if (atomic_load_explicit(&m->all->arrived[i], memory_order_acquire) < m->round)
            return false;
    return true;
}

static void *run_device(void *argument)
{
    device *d = argument;
    tutti__helper_may(true);
    for (int round = 1; round <= d->rounds; round++) {
        for (int job = 1; job <= JOBS; job++)
            tutti__pool_run(d->pool, job * PIECES / JOBS, add_piece, d);
        atomic_store_explicit(&d->all->arrived[d->index], round, memory_order_release);
        const meeting m = {d->all, round};
        const tutti_awaited awaited = {all_here, &m};
        bool helper = tutti__helper_begin();
        while (!all_here(&m))
            if (!helper || !tutti__helper_help(&awaited))
                sched_yield();
        if (helper)
            tutti__helper_end();
    }
    return NULL;
}

static void run_step(step *s, int rounds, bool helping)
{
    static const int threads[DEVICES] = {1, 2, 1, 3};
    memset(s, 0, sizeof *s);
    for (int i = 0; i < DEVICES; i++) {
        device *d = &s->devices[i];
        *d = (device){.all = s, .index = i, .rounds = rounds};
        CHECK_OK(tutti__pool_create(threads[i], -1, &d->pool));
        if (helping)
            tutti__pool_welcome(d->pool, DEVICES - 1);
    }
    for (int i = 0; i < DEVICES; i++)
        CHECK_INT(pthread_create(&s->devices[i].thread, NULL, run_device, &s->devices[i]), 0);
    for (int i = 0; i < DEVICES; i++)
        pthread_join(s->devices[i].thread, NULL);
    for (int i = 0; i < DEVICES; i++)
        tutti__pool_destroy(s->devices[i].pool);
}

TUTTI_TEST(guests_come_and_go_and_the_bits_are_the_same)
{
    static step alone, helped;
    int rounds = TUTTI_TEST_SANITIZED ? 50 : 300;
    run_step(&alone, rounds, false);
    run_step(&helped, rounds, true);
    for (int i = 0; i < DEVICES; i++)
        CHECK(memcmp(alone.devices[i].sums, helped.devices[i].sums, sizeof alone.devices[i].sums) ==
              0);
    CHECK_INT(tutti__helpers(), 0);
}

static void mark(void *context, int64_t index)
{
    ((int *)context)[index]++;
}

TUTTI_TEST(guests_wait_while_hosts_come_and_go)
{
    tutti_pool *stays[2] = {new_host(1, 1), new_host(1, 1)};
    waiting w[2] = {0};
    int marks[40] = {0};
    start_waiting(&w[0]);
    start_waiting(&w[1]);
    for (int round = 0; round < 300; round++) {
        tutti_pool *pool = new_host(1 + round % 2, 2);
        tutti__pool_run(pool, 40, mark, marks);
        tutti__pool_destroy(pool);
    }
    stop_waiting(&w[0]);
    stop_waiting(&w[1]);
    for (int i = 0; i < 40; i++)
        CHECK_INT(marks[i], 300);
    tutti__pool_destroy(stays[0]);
    tutti__pool_destroy(stays[1]);
}

TUTTI_TEST(guests_stay_behind_in_a_fork)
{
    if (TUTTI_TEST_SANITIZED)
        SKIP("forks with threads are not for sanitizers");
    tutti_pool *pool = new_host(1, 1), *other = new_host(1, 1);
    waiting w = {0};
    int marks[10] = {0}, status = -1;
    start_waiting(&w);
    pid_t child = fork();
    if (child == 0) {
        bool good = tutti__helpers() == 0;
        tutti__pool_run(pool, 10, mark, marks);
        for (int i = 0; i < 10; i++)
            good = good && marks[i] == 1;
        tutti__pool_destroy(pool);
        tutti__pool_destroy(other);
        _exit(good ? 0 : 1);
    }
    CHECK(child > 0);
    waitpid(child, &status, 0);
    CHECK_INT(status, 0);
    stop_waiting(&w);
    tutti__pool_destroy(pool);
    tutti__pool_destroy(other);
}
