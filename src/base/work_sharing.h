/* work_sharing.h: a thread that waits for other devices helps them meanwhile.
 *
 * Logical devices of one process split the cores, and cores differ. The thread of a device that
 * waits for another one runs pieces of the other's jobs as a helper; pieces are cut by shape, so
 * nothing changes but who runs them. A pool that may have helpers is a host. Only threads that
 * drive a device are helpers (tutti__helper_may), because only theirs is a core that nobody else
 * has.
 */
#ifndef TUTTI_BASE_WORK_SHARING_H
#define TUTTI_BASE_WORK_SHARING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What a helper waits for. */
typedef struct tutti_awaited {
    bool (*over)(const void *context);
    const void *context;
} tutti_awaited;

/* Runs what it finds of a job until the wait is over; false when nothing is left of it. */
typedef bool tutti_helper_work(void *job, const tutti_awaited *wait);

/* Hosts. */

typedef struct tutti_host tutti_host;

/* A place among the hosts, for a pool that `helpers` at most may help at once; NULL: all places are
 * taken. `spins`: whoever ends a job looks for its helpers to leave before it sleeps. */
tutti_host *tutti__host_open(int helpers, bool spins);
void tutti__host_close(tutti_host *host); /* NULL is fine */

extern atomic_int tutti__helpers_waiting;

/* Threads that would help right now. Cheap: one load. */
static inline int tutti__helpers(void)
{
    return atomic_load_explicit(&tutti__helpers_waiting, memory_order_relaxed);
}

/* Between the two, helpers may call work(job, …), several at once; the second waits for those who
 * came. One thread at a time for each host. */
void tutti__host_begin(tutti_host *host, tutti_helper_work *work, void *job);
void tutti__host_end(tutti_host *host);

/* Guests. */

/* Whether the calling thread drives a device. Returns what it was. */
bool tutti__helper_may(bool may);

/* A wait begins; false: this thread helps nobody, and no `end` follows. */
bool tutti__helper_begin(void);
/* Helps whoever has work, until none is left or the wait is over; false when nobody had any. */
bool tutti__helper_help(const tutti_awaited *wait);
void tutti__helper_end(void);

/* How often helpers have helped in this process. */
int64_t tutti__helped(void);

/* A helper sleeps no longer than this at a time: nobody wakes it when there is work. */
#define TUTTI_HELPER_NAP_NS 100000

#endif
