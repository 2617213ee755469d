/* rendezvous.c: see rendezvous.h. One lock guards it all: what meets here is few and large. */
#include "exec/run/rendezvous.h"

#include <string.h>

#include "base/pause.h"
#include "base/recycle.h"
#include "base/work_sharing.h"
#include "base/world.h"
#include "parallel/collectives/axis_groups.h"
#include "program/program.h"

/* What was sent on a channel and nobody has received yet; or NULL. One block: the struct and the
 * channel's name. */
typedef struct tutti_rendezvous_slot {
    struct tutti_rendezvous_slot *next; /* of the same list */
    size_t bytes;                       /* of the block */
    const char *channel;
    tutti_tensor *value;
} slot;

tutti_status tutti__rendezvous_init(tutti_rendezvous *r, int partitions)
{
    memset(r, 0, sizeof *r);
    r->partitions = partitions;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return TUTTI_OK;
}

static slot *slot_create(const char *channel)
{
    size_t length = strlen(channel) + 1, bytes = sizeof(slot) + length;
    slot *s = tutti__recycle_take(bytes);
    if (!s)
        return NULL;
    *s = (slot){.bytes = bytes, .channel = memcpy(s + 1, channel, length)};
    return s;
}

static void slots_end(slot *s)
{
    for (slot *next; s; s = next) {
        next = s->next;
        tutti_tensor_release(s->value);
        tutti__recycle_give(s, s->bytes);
    }
}

void tutti__rendezvous_end(tutti_rendezvous *r)
{
    for (size_t i = 0; i < TUTTI_COUNT(r->slots); i++)
        slots_end(r->slots[i]);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
}

/* Under the lock: the channel of a send and its recv. */
static tutti_status slot_for(tutti_rendezvous *r, const char *channel, slot **ret)
{
    slot **list = &r->slots[tutti__hash_string(0, channel) % TUTTI_COUNT(r->slots)], *s = *list;
    while (s && strcmp(s->channel, channel) != 0)
        s = s->next;
    if (!s) {
        s = slot_create(channel);
        if (!s)
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for channel '%s'", channel);
        s->next = *list;
        *list = s;
    }
    *ret = s;
    return TUTTI_OK;
}

/* Under the lock. */
static void tell(tutti_rendezvous *r)
{
    r->changes++;
    pthread_cond_broadcast(&r->changed);
}

typedef struct change {
    const tutti_rendezvous *rendezvous;
    unsigned before;
} change;

static bool has_changed(const void *context)
{
    const change *awaited = context;
    return awaited->rendezvous->changes != awaited->before;
}

enum { LOOKS = 4000 };

/* Devices wait microseconds for each other while they go through the same step, and looking is
 * shorter than sleeping and being woken. Whoever waits longer helps the others meanwhile. */
static void look(const change *awaited, bool guest, int looks, int64_t deadline)
{
    const tutti_awaited wait = {has_changed, awaited};
    for (int i = 0; i < looks && !has_changed(awaited); i++) {
        if (!guest || !tutti__helper_help(&wait))
            tutti__pause();
        else if (tutti__now_ns() < deadline)
            looks = LOOKS, i = 0;
        else
            return;
    }
}

/* Under the lock: sleeps until there is a change or it is time. */
static void sleep_until(tutti_rendezvous *r, int64_t time)
{
    struct timespec until = {.tv_sec = time / 1000000000, .tv_nsec = time % 1000000000};
    if (time == TUTTI_NO_DEADLINE)
        pthread_cond_wait(&r->changed, &r->lock);
    else
        pthread_cond_timedwait(&r->changed, &r->lock, &until);
}

/* Under the lock, which is free meanwhile: waits for a change; false when the deadline has passed.
 */
static bool wait(tutti_run *run)
{
    tutti_rendezvous *r = run->rendezvous;
    const change awaited = {r, r->changes};
    bool guest = tutti__helper_begin(), late = false;
    for (int looks = LOOKS; !late && !has_changed(&awaited); looks = 1) {
        pthread_mutex_unlock(&r->lock);
        look(&awaited, guest, looks, run->deadline);
        int64_t now = tutti__now_ns(), nap = now + TUTTI_HELPER_NAP_NS;
        pthread_mutex_lock(&r->lock);
        late = now >= run->deadline;
        if (!late && !has_changed(&awaited))
            sleep_until(r, guest && nap < run->deadline ? nap : run->deadline);
    }
    if (guest)
        tutti__helper_end();
    return has_changed(&awaited);
}

tutti_status tutti__rendezvous_send(tutti_run *run, const char *channel, tutti_tensor *value)
{
    tutti_rendezvous *r = run->rendezvous;
    pthread_mutex_lock(&r->lock);
    slot *s = NULL;
    tutti_status status = slot_for(r, channel, &s);
    if (status == TUTTI_OK && s->value)
        status = tutti_fail(TUTTI_INVALID, "channel '%s' was sent to twice in one run", channel);
    else if (status == TUTTI_OK)
        s->value = tutti_tensor_retain(value);
    tell(r);
    pthread_mutex_unlock(&r->lock);
    return status;
}

tutti_status tutti__rendezvous_recv(tutti_run *run, const char *channel, const char *from,
                                    const char *name, tutti_tensor **ret)
{
    tutti_rendezvous *r = run->rendezvous;
    slot *s = NULL;
    pthread_mutex_lock(&r->lock);
    tutti_status status = slot_for(r, channel, &s);
    while (status == TUTTI_OK && !s->value) {
        if (run->cancelled)
            status = tutti__error_restore(&r->error);
        else if (!wait(run))
            status =
                tutti_fail(TUTTI_DEADLINE,
                           "recv '%s': nothing came from %s on channel '%s' before the deadline; "
                           "is the send a target of this run?",
                           name, from, channel);
    }
    if (status == TUTTI_OK) {
        *ret = s->value;
        s->value = NULL;
    }
    pthread_mutex_unlock(&r->lock);
    return status;
}

/* Under the lock. A partition that failed may never have taken its values, and the others' commits
 * of sub-graphs would wait for that; what they take after this is nobody's result. */
static void note_failure(tutti_run *run, tutti_status status)
{
    tutti_rendezvous *r = run->rendezvous;
    if (r->error.status == TUTTI_OK)
        tutti__error_capture(status, &r->error);
    run->cancelled = true;
    tutti__run_let_go(run);
    if (run->groups)
        tutti__axis_groups_cancel(run->groups, &r->error);
    tell(r);
}

void tutti__rendezvous_fail(tutti_run *run, tutti_status status)
{
    pthread_mutex_lock(&run->rendezvous->lock);
    note_failure(run, status);
    pthread_mutex_unlock(&run->rendezvous->lock);
    tutti__state_wake(run->state);
}

/* Waits for others' claims until the run's deadline. */
static tutti_status rendezvous_begin(tutti_run *run)
{
    const tutti_rendezvous *r = run->rendezvous;
    tutti__run_let_go(run); /* a partition without variables need not have said that it took them */
    TUTTI_TRY(tutti__state_commit_begin_on(run->state, r->update_count, r->updates, run->deadline));
    tutti_status status = r->advances ? tutti__ticket_commit(run->state, &run->ticket) : TUTTI_OK;
    if (status != TUTTI_OK)
        tutti__state_commit_end(run->state);
    return status;
}

/* The last to arrive takes the state's commit lock for all. */
tutti_status tutti__commit_begin(tutti_run *run, tutti_status status)
{
    tutti_rendezvous *r = run->rendezvous;
    if (r->partitions == 1)
        return status == TUTTI_OK ? rendezvous_begin(run) : status;
    if (status != TUTTI_OK) {
        tutti__rendezvous_fail(run, status);
        return status;
    }
    pthread_mutex_lock(&r->lock);
    if (++r->arrived == r->partitions && !run->cancelled &&
        (status = rendezvous_begin(run)) != TUTTI_OK)
        note_failure(run, status);
    tell(r);
    while (r->arrived < r->partitions && !run->cancelled && status == TUTTI_OK)
        if (!wait(run) && r->arrived < r->partitions && !run->cancelled) {
            status = tutti_fail(TUTTI_DEADLINE,
                                "waited at the commit of the step: %d of %d devices had arrived",
                                r->arrived, r->partitions);
            note_failure(run, status);
        }
    if (status == TUTTI_OK && run->cancelled)
        status = tutti__error_restore(&r->error);
    pthread_mutex_unlock(&r->lock);
    return status;
}

static void finish(const tutti_run *run)
{
    if (run->numbered && run->rendezvous->writes)
        tutti__state_count(run->state);
    tutti__state_commit_end(run->state);
}

void tutti__commit_end(tutti_run *run)
{
    tutti_rendezvous *r = run->rendezvous;
    if (r->partitions == 1) {
        finish(run);
        return;
    }
    pthread_mutex_lock(&r->lock);
    bool last = ++r->left == r->partitions;
    pthread_mutex_unlock(&r->lock);
    if (last)
        finish(run);
}
