/* runner.c: starts each device's program: the first on the caller's thread, the others on driver
 * threads of their own, so that a blocked operator never holds a thread of a kernel pool. */
#include "exec/run/runner.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/denormals.h"
#include "base/pause.h"
#include "base/work_sharing.h"
#include "exec/plan/fed_rows.h"
#include "exec/plan/meetings.h"
#include "exec/run/rendezvous.h"
#include "parallel/collectives/axis_groups.h"
#include "program/program.h"

typedef struct driver {
    const tutti_plan_piece *piece;
    tutti_run *run;
    tutti_tensor *const *values;
    tutti_tensor **results; /* of the plan */
    tutti_status status;
    tutti_driver_thread *thread; /* NULL: the caller's, or there is none */
} driver;

static tutti_status drive(driver *d)
{
    const tutti_plan_piece *piece = d->piece;
    size_t parameters = (size_t)piece->parameter_count, results = (size_t)piece->result_count;
    tutti_tensor *few[16], **lists = few;
    if (parameters + results > 16 && !(lists = malloc((parameters + results) * sizeof *lists)))
        return d->run->commit_begin(d->run, tutti_fail(TUTTI_NO_MEMORY, "no memory for a run"));
    tutti_status status = tutti__fed_rows_take(piece, d->values, lists);
    if (status == TUTTI_OK) {
        uint64_t before = tutti__denormals_to_zero();
        tutti__error_forget();
        status =
            piece->executable->table->enqueue(piece->executable, d->run, lists, lists + parameters);
        tutti__denormals_set(before);
        tutti__tensors_drop(piece->parameter_count, lists);
    } else {
        status = d->run->commit_begin(d->run, status);
    }
    for (size_t i = 0; status == TUTTI_OK && i < results; i++)
        d->results[piece->results[i]] = lists[parameters + i];
    if (lists != few)
        free(lists);
    return status;
}

static void drive_on_thread(void *argument)
{
    driver *d = argument;
    d->status = drive(d);
}

static tutti_status run_many(const tutti_plan *plan, tutti_run *run, tutti_tensor *const *values,
                             tutti_tensor **results)
{
    if (plan->piece_count < 1)
        return TUTTI_OK; /* nothing to run */
    driver few[16], *drivers = few;
    if (plan->piece_count > 16)
        drivers = malloc((size_t)plan->piece_count * sizeof *drivers);
    if (!drivers)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a run");
    tutti__state_hold(run->state); /* until all have taken their values: of one step */
    run->taking = plan->piece_count;
    for (int i = 0; i < plan->piece_count; i++) {
        driver *d = &drivers[i];
        *d = (driver){.piece = &plan->pieces[i], .run = run, .values = values, .results = results};
        if (i > 0)
            d->thread = tutti__driver_start(drive_on_thread, d);
        if (i > 0 && !d->thread)
            tutti__rendezvous_fail(run, tutti_fail(TUTTI_NO_MEMORY, "no thread for device %s",
                                                   d->piece->device->name));
    }
    bool before = tutti__helper_may(true); /* while it waits for the others */
    drivers[0].status = drive(&drivers[0]);
    tutti_status status = drivers[0].status;
    for (int i = 1; i < plan->piece_count; i++) {
        if (drivers[i].thread)
            tutti__driver_wait(drivers[i].thread);
        if (drivers[i].status != TUTTI_OK)
            status = drivers[i].status;
    }
    tutti__helper_may(before);
    tutti__run_let_go(run);
    if (drivers != few)
        free(drivers);
    if (run->rendezvous->error.status != TUTTI_OK)
        status = tutti__error_restore(&run->rendezvous->error); /* the first one is the cause */
    return status;
}

/* Whether it updates the counter that the run has a ticket for. */
static bool advances(const tutti_plan *plan, const tutti_run *run)
{
    for (size_t i = 0; i < plan->updated.count; i++)
        if (plan->updated.data[i] == run->ticket.counter)
            return true;
    return false;
}

static tutti_status run_pieces(const tutti_plan *plan, tutti_run *run, tutti_tensor *const *values,
                               tutti_tensor **results)
{
    tutti_rendezvous rendezvous;
    if (plan->counter)
        run->ticket = tutti__ticket_take(run->state, plan->counter);
    tutti__rendezvous_init(&rendezvous, plan->piece_count);
    rendezvous.advances = advances(plan, run);
    rendezvous.writes = plan->updated.count > 0;
    if (!plan->shadows) {
        rendezvous.update_count = (int)plan->updated.count;
        rendezvous.updates = plan->updated.data;
    }
    run->rendezvous = &rendezvous;
    run->commit_begin = tutti__commit_begin;
    run->commit_end = tutti__commit_end;
    tutti_status status;
    if (plan->piece_count == 1) {
        driver d = {.piece = &plan->pieces[0], .run = run, .values = values, .results = results};
        status = drive(&d);
    } else {
        status = run_many(plan, run, values, results);
    }
    tutti__rendezvous_end(&rendezvous);
    return status;
}

static tutti_status run_claiming(const tutti_plan *plan, tutti_run *run,
                                 tutti_tensor *const *values, tutti_tensor **results)
{
    if (!plan->shadows)
        return run_pieces(plan, run, values, results);
    int count = (int)plan->updated.count;
    TUTTI_TRY(tutti__state_claim(run->state, count, plan->updated.data, run->deadline));
    tutti_status status = run_pieces(plan, run, values, results);
    tutti__state_unclaim(run->state, count, plan->updated.data);
    return status;
}

/* Before it claims anything: who is in already may have to wait for claims. */
static tutti_status run_in_groups(const tutti_plan *plan, tutti_run *run,
                                  tutti_tensor *const *values, tutti_tensor **results)
{
    tutti_axis_groups *groups = plan->piece_count > 1 ? run->groups : NULL;
    if (groups)
        TUTTI_TRY(tutti__axis_groups_enter(groups, plan->joins, plan->meets, run->deadline));
    tutti_status status = run_claiming(plan, run, values, results);
    if (groups)
        tutti__axis_groups_leave(groups, plan->joins);
    return status;
}

/* Who is left holds one version before the run returns its error. */
static tutti_status fail(const tutti_run *run, tutti_status status)
{
    tutti__axis_groups_fail(run->groups, status);
    return tutti__axis_groups_survive(run->groups, status);
}

tutti_status tutti__plan_run(const tutti_plan *plan, tutti_run *run, tutti_tensor *const *values,
                             tutti_tensor **ret_results)
{
    tutti_tensor *few[16], **results = few;
    size_t count = (size_t)plan->result_count;
    size_t wanted = plan->rest ? count : (size_t)plan->fetch_count;
    if (count > 16 && !(results = malloc(count * sizeof *results)))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a run");
    memset(results, 0, count * sizeof *results);
    tutti_status status = TUTTI_OK;
    if (plan->meets)
        status = tutti__plan_agree(plan, run);
    if (status == TUTTI_OK)
        status = run_in_groups(plan, run, values, results);
    if (status != TUTTI_OK && plan->meets && !(plan->dries && status == TUTTI_OUT_OF_RANGE))
        status = fail(run, status);
    for (size_t i = 0; i < count; i++) {
        if (status == TUTTI_OK && i < wanted)
            ret_results[i] = results[i];
        else
            tutti_tensor_release(results[i]);
    }
    if (results != few)
        free(results);
    return status;
}

/* ---- drivers: threads that run programs ---- */

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

void tutti__driver_wait(tutti_driver_thread *thread)
{
    await(thread, DONE);
    atomic_store_explicit(&thread->state, IDLE, memory_order_release);
    pthread_mutex_lock(&lock);
    thread->next = idle;
    idle = thread;
    pthread_mutex_unlock(&lock);
}
