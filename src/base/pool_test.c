#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/test.h"
#include "base/world.h"

/* Marks are plain integers: two threads that ran one piece, or a caller that returned too early,
 * are a data race that ThreadSanitizer reports. */
static void mark(void *context, int64_t index)
{
    ((int *)context)[index]++;
}

static void check_marks(const int *marks, int64_t count, int expected)
{
    for (int64_t i = 0; i < count; i++)
        CHECK_INT(marks[i], expected);
}

static tutti_pool *new_pool(int threads)
{
    tutti_pool *pool = NULL;
    CHECK_OK(tutti__pool_create(threads, -1, &pool));
    CHECK_INT(tutti__pool_threads(pool), threads);
    return pool;
}

TUTTI_TEST(pool_runs_each_piece_once)
{
    enum { MOST = 5000 };
    static int marks[MOST];
    static const int64_t counts[] = {-1, 0, 1, 2, 3, 31, 32, 33, 100, 4999, MOST};
    for (int threads = 1; threads <= 9; threads++) {
        tutti_pool *pool = new_pool(threads);
        for (size_t c = 0; c < TUTTI_COUNT(counts); c++) {
            for (int i = 0; i < MOST; i++)
                marks[i] = 0;
            for (int round = 1; round <= 20; round++)
                tutti__pool_run(pool, counts[c], mark, marks);
            check_marks(marks, counts[c], 20);
            check_marks(marks + (counts[c] > 0 ? counts[c] : 0),
                        MOST - (counts[c] > 0 ? counts[c] : 0), 0);
        }
        tutti__pool_destroy(pool);
    }
}

TUTTI_TEST(pool_null_runs_inline)
{
    int marks[10] = {0};
    CHECK_INT(tutti__pool_threads(NULL), 1);
    tutti__pool_run(NULL, 10, mark, marks);
    check_marks(marks, 10, 1);
    tutti__pool_destroy(NULL);
}

TUTTI_TEST(pool_refuses_bad_arguments)
{
    tutti_pool *pool = NULL;
    CHECK_STATUS(tutti__pool_create(0, -1, &pool), TUTTI_INVALID);
    CHECK_STATUS(tutti__pool_create(1 << 20, -1, &pool), TUTTI_INVALID);
    CHECK_STATUS(tutti__pool_create(2, 100000, &pool), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "CPU 100001");
    CHECK(pool == NULL);
}

TUTTI_TEST(pool_many_tiny_jobs)
{
    int rounds = TUTTI_TEST_SANITIZED ? 20000 : 200000;
    int marks[4] = {0};
    for (int threads = 2; threads <= 4; threads++) {
        tutti_pool *pool = new_pool(threads);
        for (int i = 0; i < rounds; i++)
            tutti__pool_run(pool, 4, mark, marks);
        tutti__pool_destroy(pool);
    }
    check_marks(marks, 4, 3 * rounds);
}

static void pause_100_us(void *context, int64_t index)
{
    TUTTI_UNUSED(index);
    tutti__world()->sleep_ns(tutti__world()->self, 100000);
    atomic_fetch_add((atomic_int *)context, 1);
}

/* Jobs and pauses long enough that workers, and the caller while it waits, go to sleep. */
TUTTI_TEST(pool_wakes_those_who_sleep)
{
    for (int threads = 2; threads <= 5; threads++) {
        tutti_pool *pool = new_pool(threads);
        atomic_int done = 0;
        for (int i = 0; i < 50; i++) {
            tutti__world()->sleep_ns(tutti__world()->self, i * 20000);
            tutti__pool_run(pool, 3, pause_100_us, &done);
            CHECK_INT(atomic_load(&done), 3 * (i + 1));
        }
        tutti__pool_destroy(pool);
    }
}

typedef struct meeting {
    atomic_int arrived;
    atomic_bool alone;
} meeting;

/* Waits until both pieces have started: only two threads can get through. */
static void meet(void *context, int64_t index)
{
    meeting *m = context;
    TUTTI_UNUSED(index);
    atomic_fetch_add(&m->arrived, 1);
    int64_t deadline = tutti__now_ns() + INT64_C(20000000000);
    while (atomic_load(&m->arrived) < 2) {
        if (tutti__now_ns() > deadline) {
            atomic_store(&m->alone, true);
            return;
        }
        sched_yield();
    }
}

TUTTI_TEST(pool_workers_do_join)
{
    tutti_pool *pool = new_pool(2);
    for (int i = 0; i < 200; i++) {
        meeting m = {0};
        if (i % 20 == 0)
            tutti__world()->sleep_ns(tutti__world()->self, 2000000);
        tutti__pool_run(pool, 2, meet, &m);
        CHECK(!atomic_load(&m.alone));
    }
    tutti__pool_destroy(pool);
}

typedef struct homes {
    pthread_t caller;
    meeting meeting;
    bool of_caller[2];
} homes;

static void note_home(void *context, int64_t index)
{
    homes *h = context;
    meet(&h->meeting, index);
    h->of_caller[index] = pthread_equal(h->caller, pthread_self());
}

/* What a thread left in its cache in one job it finds there in the next. */
TUTTI_TEST(pool_gives_a_thread_the_same_pieces_again)
{
    tutti_pool *pool = new_pool(2);
    for (int i = 0; i < 200; i++) {
        homes h = {.caller = pthread_self()};
        tutti__pool_run(pool, 2, note_home, &h);
        CHECK(h.of_caller[0] && !h.of_caller[1]);
    }
    tutti__pool_destroy(pool);
}

typedef struct nest {
    tutti_pool *pool;
    int marks[16][16];
    bool moved;
} nest;

typedef struct nest_row {
    int *marks;
    pthread_t thread;
    bool *moved;
} nest_row;

static void inner_piece(void *context, int64_t index)
{
    nest_row *row = context;
    row->marks[index]++;
    if (!pthread_equal(row->thread, pthread_self()))
        *row->moved = true;
}

static void outer_piece(void *context, int64_t index)
{
    nest *n = context;
    nest_row row = {n->marks[index], pthread_self(), &n->moved};
    tutti__pool_run(n->pool, 16, inner_piece, &row);
}

TUTTI_TEST(pool_nested_calls_run_inline)
{
    nest n = {.pool = new_pool(4)};
    for (int i = 0; i < 1000; i++)
        tutti__pool_run(n.pool, 16, outer_piece, &n);
    CHECK(!n.moved);
    check_marks(&n.marks[0][0], 256, 1000);
    tutti__pool_destroy(n.pool);
}

typedef struct visitor {
    tutti_pool *pool;
    int rounds;
    int marks[40];
} visitor;

static void *visit(void *argument)
{
    visitor *v = argument;
    for (int i = 0; i < v->rounds; i++)
        tutti__pool_run(v->pool, 40, mark, v->marks);
    return NULL;
}

TUTTI_TEST(pool_has_room_for_several_callers)
{
    enum { CALLERS = 4 };
    static visitor visitors[CALLERS];
    pthread_t threads[CALLERS];
    tutti_pool *pool = new_pool(3);
    for (int i = 0; i < CALLERS; i++) {
        visitors[i] = (visitor){.pool = pool, .rounds = TUTTI_TEST_SANITIZED ? 2000 : 20000};
        CHECK_INT(pthread_create(&threads[i], NULL, visit, &visitors[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < CALLERS; i++)
        check_marks(visitors[i].marks, 40, visitors[i].rounds);
    tutti__pool_destroy(pool);
}

TUTTI_TEST(pool_starts_and_stops)
{
    int marks[8] = {0};
    for (int i = 0; i < 200; i++) {
        tutti_pool *pool = new_pool(2 + i % 4);
        if (i % 2 == 0)
            tutti__pool_run(pool, 8, mark, marks);
        tutti__pool_destroy(pool);
    }
    check_marks(marks, 8, 100);
}

typedef struct places {
    pthread_t caller;
    meeting meeting;
    int worker_cpu;
} places;

static void note_cpu(void *context, int64_t index)
{
    places *p = context;
    meet(&p->meeting, index);
    if (!pthread_equal(p->caller, pthread_self()))
        p->worker_cpu = sched_getcpu();
}

TUTTI_TEST(pool_pins_workers)
{
    cpu_set_t granted;
    if (sched_getaffinity(0, sizeof granted, &granted) != 0 || !CPU_ISSET(0, &granted) ||
        !CPU_ISSET(1, &granted))
        SKIP("CPUs 0 and 1 are not both granted");
    tutti_pool *pool = NULL;
    CHECK_OK(tutti__pool_create(2, 0, &pool));
    for (int i = 0; i < 20; i++) {
        places p = {.caller = pthread_self(), .worker_cpu = -1};
        tutti__pool_run(pool, 2, note_cpu, &p);
        CHECK_INT(p.worker_cpu, 1);
    }
    tutti__pool_destroy(pool);
}
