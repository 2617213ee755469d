/* drivers.c: see drivers.h. A thread that has ended its task looks for the next one for some
 * microseconds before it sleeps, because a training's next step comes at once. */
#include "exec/run/drivers.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/pause.h"
#include "base/work_sharing.h"

enum { IDLE, READY, DONE };
enum { LOOKS = 4000 };

struct tutti_driver_thread {
    tutti_driver_thread *next; /* free ones */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    _Atomic int state;
    void (*task)(void *context);
    void *context;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tutti_driver_thread *idle; /* under lock */

static bool is_ready(const void *context)
{
    const tutti_driver_thread *d = context;
    return atomic_load_explicit(&d->state, memory_order_acquire) == READY;
}

static bool is_done(const void *context)
{
    const tutti_driver_thread *d = context;
    return atomic_load_explicit(&d->state, memory_order_acquire) == DONE;
}

/* Looks for a while, and helps devices that are still at work; true when it is over. */
static bool look(const tutti_awaited *wait)
{
    bool guest = tutti__helper_begin(), over = false;
    for (int i = 0; i < LOOKS && !(over = wait->over(wait->context)); i++) {
        if (guest && tutti__helper_help(wait))
            i = 0;
        else
            tutti__pause();
    }
    if (guest)
        tutti__helper_end();
    return over;
}

/* Until the state is `wanted`: looks for a while, then sleeps. */
static void await(tutti_driver_thread *d, int wanted)
{
    if (look(&(tutti_awaited){wanted == READY ? is_ready : is_done, d}))
        return;
    pthread_mutex_lock(&d->lock);
    while (atomic_load_explicit(&d->state, memory_order_acquire) != wanted)
        pthread_cond_wait(&d->changed, &d->lock);
    pthread_mutex_unlock(&d->lock);
}

static void become(tutti_driver_thread *d, int state)
{
    pthread_mutex_lock(&d->lock);
    atomic_store_explicit(&d->state, state, memory_order_release);
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

static void *live(void *argument)
{
    tutti_driver_thread *d = argument;
    tutti__helper_may(true);
    for (;;) {
        await(d, READY);
        d->task(d->context);
        become(d, DONE);
    }
    return NULL;
}

static tutti_driver_thread *drivers_make(void)
{
    tutti_driver_thread *d = calloc(1, sizeof *d);
    pthread_t thread;
    if (!d)
        return NULL;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->changed, NULL);
    if (pthread_create(&thread, NULL, live, d) != 0) {
        pthread_mutex_destroy(&d->lock);
        pthread_cond_destroy(&d->changed);
        free(d);
        return NULL;
    }
    pthread_detach(thread);
    return d;
}

tutti_driver_thread *tutti__driver_start(void (*task)(void *context), void *context)
{
    pthread_mutex_lock(&lock);
    tutti_driver_thread *d = idle;
    if (d)
        idle = d->next;
    pthread_mutex_unlock(&lock);
    d = d ? d : drivers_make();
    if (!d)
        return NULL;
    d->task = task;
    d->context = context;
    become(d, READY);
    return d;
}

void tutti__driver_wait(tutti_driver_thread *driver)
{
    await(driver, DONE);
    atomic_store_explicit(&driver->state, IDLE, memory_order_release);
    pthread_mutex_lock(&lock);
    driver->next = idle;
    idle = driver;
    pthread_mutex_unlock(&lock);
}
