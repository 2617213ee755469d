/* work_sharing.c: see work_sharing.h.
 *
 * 1. Places live for ever, so a helper may look at any of them at any time. It reads a job only
 *    between joining (gate + 1, possible only while the gate is open) and leaving (gate - 1); the
 *    host closes the gate and waits for those who joined, so a job and its pool outlive them.
 * 2. A helper that finds nothing left of a job closes its gate while it is inside, that is before
 *    the next job can open it, so that nobody joins for nothing.
 * 3. The host sets SLEEPS before it sleeps; the helper that takes the count to 0 sees it in the
 * same operation. Guests are never woken: they look, and nap.
 * 4. The number of waiting threads only says whether opening a gate is worth while. A host that
 *    reads an old one loses help, nothing else.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "base/work_sharing.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdalign.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/pause.h"

enum { MOST_HOSTS = 64, SPIN_PAUSES = 2000, CACHE_LINE = 64 };

/* A host's gate: how many helpers may be inside in the upper 16 bits, two flags, how many are. */
#define MOST_SHIFT 16
#define OPEN 0x8000u
#define SLEEPS 0x4000u
#define INSIDE_MASK 0x3fffu

struct tutti_host {
    alignas(CACHE_LINE) atomic_uint gate;
    atomic_bool taken;
    bool spins;
    unsigned most;
    tutti_helper_work *work;
    void *job;
};
_Static_assert(sizeof(atomic_uint) == 4, "a futex is a 32-bit word");

alignas(CACHE_LINE) atomic_int tutti__helpers_waiting;
static alignas(CACHE_LINE) tutti_host hosts[MOST_HOSTS];
static atomic_int host_count; /* taken ones */
static atomic_int reach;      /* nobody was ever beyond */
static _Atomic int64_t helped;
static _Thread_local bool may_help;

/* The threads that waited or helped stay behind. */
static void forget_helpers(void)
{
    atomic_store(&tutti__helpers_waiting, 0);
    for (int i = 0; i < MOST_HOSTS; i++)
        atomic_store(&hosts[i].gate, 0);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_helpers);
}

tutti_host *tutti__host_open(int helpers, bool spins)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    for (int i = 0; i < MOST_HOSTS; i++) {
        tutti_host *host = &hosts[i];
        if (atomic_exchange(&host->taken, true))
            continue;
        host->most = helpers < (int)INSIDE_MASK ? (unsigned)helpers : INSIDE_MASK;
        host->spins = spins;
        if (atomic_load(&reach) <= i)
            atomic_store(&reach, i + 1);
        atomic_fetch_add(&host_count, 1);
        return host;
    }
    return NULL;
}

void tutti__host_close(tutti_host *host)
{
    if (host == NULL)
        return;
    atomic_fetch_sub(&host_count, 1);
    atomic_store(&host->taken, false);
}

void tutti__host_begin(tutti_host *host, tutti_helper_work *work, void *job)
{
    host->work = work;
    host->job = job;
    atomic_store_explicit(&host->gate, host->most << MOST_SHIFT | OPEN, memory_order_release);
}

void tutti__host_end(tutti_host *host)
{
    unsigned gate = atomic_fetch_and_explicit(&host->gate, ~OPEN, memory_order_acq_rel) & ~OPEN;
    for (int pauses = 0; gate & INSIDE_MASK;) {
        if (host->spins && pauses++ < SPIN_PAUSES)
            tutti__pause();
        else if (gate & SLEEPS)
            syscall(SYS_futex, &host->gate, FUTEX_WAIT_PRIVATE, gate, NULL, NULL, 0);
        else
            atomic_fetch_or_explicit(&host->gate, SLEEPS, memory_order_relaxed);
        gate = atomic_load_explicit(&host->gate, memory_order_acquire);
    }
}

bool tutti__helper_may(bool may)
{
    bool before = may_help;
    may_help = may;
    return before;
}

bool tutti__helper_begin(void)
{
    if (!may_help || atomic_load_explicit(&host_count, memory_order_relaxed) < 2)
        return false;
    atomic_fetch_add_explicit(&tutti__helpers_waiting, 1, memory_order_relaxed);
    return true;
}

void tutti__helper_end(void)
{
    atomic_fetch_sub_explicit(&tutti__helpers_waiting, 1, memory_order_relaxed);
}

static bool work_sharing_join(tutti_host *host)
{
    unsigned gate = atomic_load_explicit(&host->gate, memory_order_relaxed);
    return gate & OPEN && (gate & INSIDE_MASK) < gate >> MOST_SHIFT &&
           atomic_compare_exchange_strong_explicit(&host->gate, &gate, gate + 1,
                                                   memory_order_acquire, memory_order_relaxed);
}

static void leave(tutti_host *host)
{
    unsigned before = atomic_fetch_sub_explicit(&host->gate, 1, memory_order_acq_rel);
    if (before & SLEEPS && (before & INSIDE_MASK) == 1)
        syscall(SYS_futex, &host->gate, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

bool tutti__helper_help(const tutti_awaited *wait)
{
    static _Thread_local int last; /* whom it helped has more to do, most likely */
    int count = atomic_load_explicit(&reach, memory_order_relaxed);
    for (int i = 0; i < count; i++) {
        int at = last + i < count ? last + i : last + i - count;
        tutti_host *host = &hosts[at];
        if (!work_sharing_join(host))
            continue;
        if (!host->work(host->job, wait))
            atomic_fetch_and_explicit(&host->gate, ~OPEN, memory_order_relaxed);
        leave(host);
        atomic_fetch_add_explicit(&helped, 1, memory_order_relaxed);
        last = at;
        return true;
    }
    return false;
}

int64_t tutti__helped(void)
{
    return atomic_load_explicit(&helped, memory_order_relaxed);
}
