/* guests.h: a thread that waits for other devices helps them meanwhile.
 *
 * Logical devices of one process split the cores, and cores differ. The thread of a device that
 * waits for another one runs pieces of the other's jobs as a guest; pieces are cut by shape, so
 * nothing changes but who runs them. A pool that may have guests is a host. Only threads that drive
 * a device are guests (tutti__guest_may), because only theirs is a core that nobody else has.
 */
#ifndef TUTTI_BASE_GUESTS_H
#define TUTTI_BASE_GUESTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What a guest waits for. */
typedef struct tutti_awaited {
    bool (*over)(const void *context);
    const void *context;
} tutti_awaited;

/* Runs what it finds of a job until the wait is over; false when nothing is left of it. */
typedef bool tutti_guest_work(void *job, const tutti_awaited *wait);

/* Hosts. */

typedef struct tutti_host tutti_host;

/* A place among the hosts, for a pool that `guests` at most may help at once; NULL: all places are
 * taken. `spins`: whoever ends a job looks for its guests to leave before it sleeps. */
tutti_host *tutti__host_open(int guests, bool spins);
void tutti__host_close(tutti_host *host); /* NULL is fine */

extern atomic_int tutti__guests_waiting;

/* Threads that would help right now. Cheap: one load. */
static inline int tutti__guests(void)
{
    return atomic_load_explicit(&tutti__guests_waiting, memory_order_relaxed);
}

/* Between the two, guests may call work(job, …), several at once; the second waits for those who
 * came. One thread at a time for each host. */
void tutti__host_begin(tutti_host *host, tutti_guest_work *work, void *job);
void tutti__host_end(tutti_host *host);

/* Guests. */

/* Whether the calling thread drives a device. Returns what it was. */
bool tutti__guest_may(bool may);

/* A wait begins; false: this thread helps nobody, and no `end` follows. */
bool tutti__guest_begin(void);
/* Helps whoever has work, until none is left or the wait is over; false when nobody had any. */
bool tutti__guest_help(const tutti_awaited *wait);
void tutti__guest_end(void);

/* How often guests have helped in this process. */
int64_t tutti__helped(void);

/* A guest sleeps no longer than this at a time: nobody wakes it when there is work. */
#define TUTTI_GUEST_NAP_NS 100000

#endif
