/* pool.c: fork and join on one word, the gate.
 *
 * 1. A job's fields (piece, context, chunk, the shares' `next` and `end`) are written only by the
 *    thread that holds `busy`, while the gate is closed and its active count is 0.
 * 2. A worker reads them only between joining (gate + 1, possible only while the gate is open) and
 *    leaving (gate - 1). So the caller, having closed the gate, waits for the workers that joined
 *    and for no others: a worker that sleeps through a job costs that job nothing.
 * 3. A worker joins one job at most once. Missing one is harmless: the caller can finish any job
 *    alone. So the epoch may wrap.
 * 4. No wake-up is lost. A worker counts itself in `sleepers`, then sleeps only if the gate still
 *    holds the value it looked at; the caller opens the gate, then reads `sleepers`. Both are
 *    sequentially consistent, so one sees the other. The caller sets WAITING in the gate before it
 *    sleeps, and the worker that takes the active count to 0 sees the bit in the same operation.
 * 5. Thread i begins with share i of the pieces, then helps with the others' shares: kernels cut
 *    rows into pieces in order, so a thread mostly finds what it wrote in a job, in its own cache,
 *    in the next one.
 * 6. Guests (work_sharing.h) come through a gate of their own, which is open only in jobs during
 * which somebody waits; these jobs have one share more, with which helpers begin. A pool of one
 * thread runs inline until then, and shares out what is left.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "base/pool.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/denormals.h"
#include "base/pause.h"
#include "base/work_sharing.h"

enum {
    SPIN_PAUSES = 2000,
    CHUNKS_PER_THREAD = 16,
    MOST_THREADS = 4096,
    CACHE_LINE = 64,
};

/* The gate: epoch in the upper 16 bits, three flags, the number of active workers below. */
#define EPOCH_ONE 0x10000u
#define EPOCH_MASK 0xffff0000u
#define STOP 0x8000u
#define OPEN 0x4000u
#define WAITING 0x2000u
#define ACTIVE_MASK 0x1fffu
_Static_assert(MOST_THREADS <= ACTIVE_MASK, "every worker must fit in the active count");

/* Who sleeps on the gate: masks for FUTEX_WAIT_BITSET. */
#define SLEEPER_WORKER 1u
#define SLEEPER_CALLER 2u

typedef void piece_function(void *context, int64_t index);

/* The pieces that a thread begins with. */
typedef struct share {
    alignas(CACHE_LINE) _Atomic int64_t next; /* first index of them that nobody has taken */
    int64_t end;
    tutti_pool *pool;
    pthread_t worker; /* none of the first share, the caller's, and of the last one, the helpers' */
} share;

struct tutti_pool {
    int threads, started; /* workers = threads - 1 once all have started */
    int helpers;          /* at most */
    bool spins;
    tutti_host *host; /* NULL: no helpers */
    alignas(CACHE_LINE) atomic_uint gate;
    piece_function *piece;
    void *context;
    int64_t chunk;
    int share_count; /* one for each thread, and perhaps the helpers' */
    alignas(CACHE_LINE) atomic_int sleepers;
    atomic_bool busy;
    share shares[];
};
_Static_assert(sizeof(atomic_uint) == 4, "a futex is a 32-bit word");

/* True on a thread that is running pieces for a pool of more than one thread. */
static _Thread_local bool inside;

static void gate_sleep(tutti_pool *pool, unsigned seen, unsigned sleeper)
{
    syscall(SYS_futex, &pool->gate, FUTEX_WAIT_BITSET_PRIVATE, seen, NULL, NULL, sleeper);
}

static void gate_wake(tutti_pool *pool, int most, unsigned sleeper)
{
    syscall(SYS_futex, &pool->gate, FUTEX_WAKE_BITSET_PRIVATE, most, NULL, NULL, sleeper);
}

/* Runs chunks of a share until all of them are taken. */
static void run_share(const tutti_pool *pool, share *of)
{
    const int64_t end = of->end, chunk = pool->chunk;
    piece_function *piece = pool->piece;
    void *context = pool->context;
    while (atomic_load_explicit(&of->next, memory_order_relaxed) < end) {
        int64_t begin = atomic_fetch_add_explicit(&of->next, chunk, memory_order_relaxed);
        for (int64_t i = begin; i < end && i < begin + chunk; i++)
            piece(context, i);
    }
}

static void run_shares(tutti_pool *pool, int own)
{
    for (int i = own; i < pool->share_count; i++)
        run_share(pool, &pool->shares[i]);
    for (int i = 0; i < own; i++)
        run_share(pool, &pool->shares[i]);
}

/* As run_share, until the helper's wait is over; false when all are taken. */
static bool run_share_as_helper(const tutti_pool *pool, share *of, const tutti_awaited *wait)
{
    const int64_t end = of->end, chunk = pool->chunk;
    while (atomic_load_explicit(&of->next, memory_order_relaxed) < end) {
        int64_t begin = atomic_fetch_add_explicit(&of->next, chunk, memory_order_relaxed);
        for (int64_t i = begin; i < end && i < begin + chunk; i++)
            pool->piece(pool->context, i);
        if (wait->over(wait->context))
            return true;
    }
    return false;
}

static bool run_as_helper(void *job, const tutti_awaited *wait)
{
    tutti_pool *pool = job;
    bool before = inside, more = false;
    inside = true;
    for (int i = pool->share_count - 1; i >= 0 && !more; i--)
        more = run_share_as_helper(pool, &pool->shares[i], wait);
    inside = before;
    return more;
}

/* Returns a gate that says stop, or that is open in another epoch than `seen`. */
static unsigned await_job(tutti_pool *pool, unsigned seen)
{
    for (int pauses = 0;;) {
        unsigned gate = atomic_load_explicit(&pool->gate, memory_order_relaxed);
        if (gate & STOP || (gate & OPEN && (gate & EPOCH_MASK) != seen))
            return gate;
        if (pool->spins && pauses++ < SPIN_PAUSES) {
            tutti__pause();
            continue;
        }
        atomic_fetch_add(&pool->sleepers, 1);
        gate_sleep(pool, gate, SLEEPER_WORKER);
        atomic_fetch_sub(&pool->sleepers, 1);
        pauses = 0;
    }
}

static void leave_job(tutti_pool *pool)
{
    unsigned before = atomic_fetch_sub_explicit(&pool->gate, 1, memory_order_acq_rel);
    if (before & WAITING && (before & ACTIVE_MASK) == 1)
        gate_wake(pool, 1, SLEEPER_CALLER);
}

static void *worker_main(void *argument)
{
    share *own = argument;
    tutti_pool *pool = own->pool;
    unsigned seen = 0;
    inside = true;
    tutti__denormals_to_zero();
    for (;;) {
        unsigned gate = await_job(pool, seen);
        if (gate & STOP)
            return NULL;
        if (!atomic_compare_exchange_weak_explicit(&pool->gate, &gate, gate + 1,
                                                   memory_order_acquire, memory_order_relaxed))
            continue;
        seen = gate & EPOCH_MASK;
        run_shares(pool, (int)(own - pool->shares));
        leave_job(pool);
    }
}

static void open_gate(tutti_pool *pool, int64_t chunks)
{
    unsigned gate = atomic_load_explicit(&pool->gate, memory_order_relaxed);
    atomic_store(&pool->gate, ((gate & EPOCH_MASK) + EPOCH_ONE) | OPEN);
    int sleepers = atomic_load(&pool->sleepers);
    if (sleepers > 0)
        gate_wake(pool, chunks - 1 < sleepers ? (int)(chunks - 1) : sleepers, SLEEPER_WORKER);
}

static void close_gate(tutti_pool *pool)
{
    unsigned gate = atomic_fetch_and_explicit(&pool->gate, ~OPEN, memory_order_acq_rel) & ~OPEN;
    for (int pauses = 0; gate & ACTIVE_MASK;) {
        if (pool->spins && pauses++ < SPIN_PAUSES)
            tutti__pause();
        else if (gate & WAITING)
            gate_sleep(pool, gate, SLEEPER_CALLER);
        else
            atomic_fetch_or_explicit(&pool->gate, WAITING, memory_order_relaxed);
        gate = atomic_load_explicit(&pool->gate, memory_order_acquire);
    }
}

static void share_out(tutti_pool *pool, int64_t first, int64_t count)
{
    int64_t each = (count - first) / pool->share_count, more = (count - first) % pool->share_count;
    for (int i = 0; i < pool->share_count; i++) {
        atomic_store_explicit(&pool->shares[i].next, first, memory_order_relaxed);
        first += each + (i < more);
        pool->shares[i].end = first;
    }
}

/* Under `busy`: pieces [first, count). */
static void run_together(tutti_pool *pool, int64_t first, int64_t count, piece_function *piece,
                         void *context)
{
    bool helpers = pool->host != NULL && tutti__helpers() > 0;
    pool->share_count = pool->threads + helpers;
    int64_t chunk = (count - first) / ((int64_t)pool->share_count * CHUNKS_PER_THREAD);
    chunk = chunk < 1 ? 1 : chunk;
    pool->piece = piece;
    pool->context = context;
    pool->chunk = chunk;
    share_out(pool, first, count);
    inside = true;
    if (helpers)
        tutti__host_begin(pool->host, run_as_helper, pool);
    if (pool->threads > 1)
        open_gate(pool, (count - first - 1) / chunk + 1);
    run_shares(pool, 0);
    if (helpers)
        tutti__host_end(pool->host);
    if (pool->threads > 1)
        close_gate(pool);
    inside = false;
}

void tutti__pool_run(tutti_pool *pool, int64_t count, piece_function *piece, void *context)
{
    int64_t next = 0;
    if (pool != NULL && !inside) {
        bool alone = pool->threads == 1;
        while (alone && next < count && (pool->host == NULL || tutti__helpers() == 0))
            piece(context, next++);
        if (count - next > 1 &&
            !atomic_exchange_explicit(&pool->busy, true, memory_order_acquire)) {
            run_together(pool, next, count, piece, context);
            atomic_store_explicit(&pool->busy, false, memory_order_release);
            return;
        }
    }
    while (next < count)
        piece(context, next++);
}

/* Signals meant for the program must not land on a worker; faults and profilers still may. */
static void block_signals(sigset_t *ret_before)
{
    static const int open[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF};
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < TUTTI_COUNT(open); i++)
        sigdelset(&blocked, open[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, ret_before);
}

/* 0 or an errno. cpu < 0 leaves the thread where the system puts it. */
static int start_worker(tutti_pool *pool, int cpu)
{
    share *own = &pool->shares[pool->started + 1];
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error != 0)
        return error;
    if (cpu >= 0) {
        size_t size = CPU_ALLOC_SIZE(cpu + 1);
        cpu_set_t *set = CPU_ALLOC(cpu + 1);
        if (set != NULL) {
            CPU_ZERO_S(size, set);
            CPU_SET_S(cpu, size, set);
            error = pthread_attr_setaffinity_np(&attributes, size, set);
            CPU_FREE(set);
        }
    }
    if (error == 0)
        error = pthread_create(&own->worker, &attributes, worker_main, own);
    if (error == 0)
        pool->started++;
    pthread_attr_destroy(&attributes);
    return error;
}

static tutti_status start_workers(tutti_pool *pool, int first_cpu)
{
    sigset_t before;
    int error = 0, cpu = -1;
    block_signals(&before);
    for (int i = 1; i < pool->threads && error == 0; i++) {
        cpu = first_cpu < 0 ? -1 : first_cpu + i;
        error = start_worker(pool, cpu);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        return TUTTI_OK;
    if (cpu >= 0)
        return tutti_fail(
            TUTTI_INVALID,
            "thread %d of %d cannot be pinned to CPU %d: %s; see the CPUs this process "
            "may use with 'taskset -p'",
            pool->started + 1, pool->threads, cpu, strerror(error));
    return tutti_fail(TUTTI_NO_MEMORY, "thread %d of %d does not start: %s; ask for fewer threads",
                      pool->started + 1, pool->threads, strerror(error));
}

tutti_status tutti__pool_create(int threads, int first_cpu, tutti_pool **ret)
{
    if (threads < 1 || threads > MOST_THREADS || first_cpu > INT_MAX - MOST_THREADS)
        return tutti_fail(TUTTI_INVALID, "a pool of %d threads from CPU %d: needs 1 to %d threads",
                          threads, first_cpu, (int)MOST_THREADS);
    size_t size = sizeof(tutti_pool) + ((size_t)threads + 1) * sizeof(share);
    tutti_pool *pool = aligned_alloc(CACHE_LINE, size);
    if (pool == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a pool of %d threads", threads);
    memset(pool, 0, size);
    pool->threads = threads;
    for (int i = 0; i < threads; i++)
        pool->shares[i].pool = pool;
    pool->spins = threads > 1 && threads <= tutti__cpu_count();
    tutti_status status = start_workers(pool, first_cpu);
    if (status != TUTTI_OK) {
        tutti__pool_destroy(pool);
        return status;
    }
    *ret = pool;
    return TUTTI_OK;
}

void tutti__pool_destroy(tutti_pool *pool)
{
    if (pool == NULL)
        return;
    atomic_fetch_or(&pool->gate, STOP);
    gate_wake(pool, INT_MAX, SLEEPER_WORKER);
    tutti__host_close(pool->host);
    for (int i = 1; i <= pool->started; i++)
        pthread_join(pool->shares[i].worker, NULL);
    free(pool);
}

int tutti__pool_threads(const tutti_pool *pool)
{
    return pool == NULL ? 1 : pool->threads;
}

void tutti__pool_welcome(tutti_pool *pool, int helpers)
{
    helpers = helpers < pool->threads ? helpers : pool->threads;
    pool->host = tutti__host_open(helpers, pool->threads + helpers <= tutti__cpu_count());
    pool->helpers = pool->host == NULL ? 0 : helpers;
}

int tutti__pool_most(const tutti_pool *pool)
{
    return pool == NULL ? 1 : pool->threads + pool->helpers;
}

int tutti__pool_present(const tutti_pool *pool)
{
    if (pool == NULL || pool->host == NULL)
        return tutti__pool_threads(pool);
    int helpers = tutti__helpers();
    return pool->threads + (helpers < pool->helpers ? helpers : pool->helpers);
}
