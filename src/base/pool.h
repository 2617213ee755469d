/* pool.h: the thread pool under every CPU kernel.
 *
 * Work is cut into `count` pieces by shape, never by thread count, so results do not depend on how
 * many threads run. The caller works too. Every thread begins with a share of its own, neighbours,
 * which is the same in each job of as many pieces, then helps the others. Threads spin briefly
 * (2,000 pauses), then sleep; when the pool is wider than the CPUs that the operating system
 * grants, they do not spin. Calls from inside a piece run inline. Several threads may call at once:
 * one gets the pool, the others run inline.
 *
 * Threads that wait for another device may help, if the pool welcomes them (work_sharing.h).
 */
#ifndef TUTTI_BASE_POOL_H
#define TUTTI_BASE_POOL_H

#include "base/status.h"

typedef struct tutti_pool tutti_pool;

/* `threads` counts the caller: 1 starts none. `first_cpu` >= 0 pins thread i to CPU first_cpu + i.
 */
tutti_status tutti__pool_create(int threads, int first_cpu, tutti_pool **ret);
void tutti__pool_destroy(tutti_pool *pool);      /* NULL is fine */
int tutti__pool_threads(const tutti_pool *pool); /* NULL counts as 1 */

/* Threads of other devices that wait help with this pool's jobs: at most `helpers` at once, and no
 * more than it has threads. Before its first job. */
void tutti__pool_welcome(tutti_pool *pool, int helpers);
/* Threads that may run pieces at the same time: its own and helpers. */
int tutti__pool_most(const tutti_pool *pool);
/* Of those, the ones that would run a job now. It changes at any time: for what changes no bit. */
int tutti__pool_present(const tutti_pool *pool);

/* Calls piece(context, i) for every i in [0, count), once each, in any order; returns when all are
 * done. pool NULL runs inline. Pieces do not fail: they note an error in their context. */
void tutti__pool_run(tutti_pool *pool, int64_t count, void (*piece)(void *context, int64_t index),
                     void *context);

/* CPUs this process may use: affinity mask and cgroup quota (v1 and v2), at least 1. */
int tutti__cpu_count(void);
/* The two by themselves: the mask's CPUs as bits (those beyond are left out), and what quotas
 * grant, INT_MAX without one. */
enum { TUTTI_CPU_WORDS = 16 };
void tutti__cpu_mask(uint64_t ret_mask[TUTTI_CPU_WORDS]);
int tutti__cpu_quota(void);

#endif
