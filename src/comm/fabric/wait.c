/* wait.c: waiting for messages: spin, yield, sleep; never without a deadline. */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/pause.h"
#include "base/world.h"
#include "comm/fabric/fabric.h"
#include "comm/fabric/segment.h"

static const int64_t slice_ns = 20000000; /* between two looks at who has died */
static const int64_t mixed_slice_ns = 200000;

/* How often another thread had this one's CPU. A virtual machine's host takes it without that. */
static long switches(void)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw + usage.ru_nivcsw;
}

/* Who yields stands behind everybody who wants the CPU; who sleeps is let in when woken. So after
 * one long absence the next waits sleep at once. */
bool tutti__fabric_yield(tutti_fabric *fabric)
{
    enum { ABSENCE_NS = 500000, WAITS = 50 };
    if (atomic_load_explicit(&fabric->strangers, memory_order_relaxed) > 0) {
        atomic_fetch_sub_explicit(&fabric->strangers, 1, memory_order_relaxed);
        return false;
    }
    long before = switches();
    int64_t start = tutti__now_ns();
    sched_yield(); /* perhaps the one we wait for shares this CPU */
    if (tutti__now_ns() - start < ABSENCE_NS || switches() == before)
        return true;
    atomic_store_explicit(&fabric->strangers, WAITS, memory_order_relaxed);
    return false;
}

static bool all_complete(tutti_fabric_message *const *messages, int count)
{
    for (int i = 0; i < count; i++)
        if (!atomic_load_explicit(&messages[i]->complete, memory_order_acquire))
            return false;
    return true;
}

/* Sleeps until something may have happened for one of the peers, at most `ns`. */
void tutti__fabric_doze(tutti_fabric *fabric, const int *peers, const bool *outgoing, int count,
                        int64_t ns)
{
    struct pollfd polled[65];
    int descriptors = 0;
    bool rings = false;
    uint64_t drained;
    atomic_fetch_add(&fabric->sleepers, 1);
    pthread_mutex_lock(&fabric->lock);
    for (int i = 0; i < count && descriptors < 64; i++) {
        tutti_stream *stream = &fabric->streams[peers[i]];
        if (stream->engine->descriptor)
            stream->engine->descriptor(stream->state, peers[i], outgoing[i],
                                       tutti__stream_wanted(stream), &polled[descriptors++]);
        else
            rings = true;
    }
    pthread_mutex_unlock(&fabric->lock);
    int before = atomic_load(&fabric->pending);
    unsigned moved = atomic_load(&fabric->moved);
    if (descriptors == 0 && fabric->segment) {
        unsigned seen = tutti__segment_sleep_begin(fabric->segment);
        tutti__fabric_hear(fabric);
        bool some = atomic_load(&fabric->pending) != before || atomic_load(&fabric->moved) != moved;
        tutti__segment_sleep_end(fabric->segment, seen, some ? 0 : ns);
    } else {
        if (fabric->kick >= 0)
            polled[descriptors++] = (struct pollfd){.fd = fabric->kick, .events = POLLIN};
        ns = (rings || fabric->kick < 0) && ns > mixed_slice_ns ? mixed_slice_ns : ns;
        struct timespec timeout = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
        tutti__fabric_hear(fabric);
        if (atomic_load(&fabric->pending) == before && atomic_load(&fabric->moved) == moved &&
            ppoll(polled, (nfds_t)descriptors, &timeout, NULL) > 0 && fabric->kick >= 0 &&
            polled[descriptors - 1].revents)
            drained = read(fabric->kick, &drained, sizeof drained) > 0;
    }
    atomic_fetch_sub(&fabric->sleepers, 1);
}

/* For those of the messages that are not complete. */
static void sleep_for(tutti_fabric *fabric, tutti_fabric_message *const *messages, int count,
                      int64_t ns)
{
    int peers[64], open = 0;
    bool outgoing[64];
    atomic_fetch_add(&fabric->sleepers, 1);
    for (int i = 0; i < count && open < 64; i++)
        if (!atomic_load(&messages[i]->complete)) {
            peers[open] = messages[i]->peer;
            outgoing[open++] = messages[i]->outgoing;
        }
    if (open > 0)
        tutti__fabric_doze(fabric, peers, outgoing, open, ns);
    atomic_fetch_sub(&fabric->sleepers, 1);
}

static tutti_status late(tutti_fabric *fabric, tutti_fabric_message *const *messages, int count)
{
    char name[320];
    for (int i = 0; i < count; i++)
        if (!atomic_load(&messages[i]->complete)) {
            size_t done =
                messages[i]->outgoing ? tutti__fabric_sent(fabric, messages[i]) : messages[i]->done;
            return tutti_fail(TUTTI_DEADLINE, "waited too long for %s, %zu of %zu bytes %s",
                              tutti__fabric_name(fabric, messages[i]->peer, name, sizeof name),
                              done, messages[i]->size, messages[i]->outgoing ? "sent" : "received");
        }
    return tutti_fail(TUTTI_DEADLINE, "waited too long");
}

static _Thread_local bool beside; /* this thread works beside others that want its CPU */

void tutti__fabric_beside(bool on)
{
    beside = on;
}

bool tutti__fabric_is_beside(void)
{
    return beside;
}

static _Thread_local const tutti_stop *heeded;

void tutti__fabric_heed(const tutti_stop *stop)
{
    heeded = stop;
}

/* Whether bytes can only come through the kernel, which wakes whoever sleeps for them. */
static bool through_kernel(const tutti_fabric *fabric, tutti_fabric_message *const *messages,
                           int count)
{
    for (int i = 0; i < count; i++)
        if (!fabric->engines[messages[i]->peer]->descriptor)
            return false;
    return true;
}

/* Whether somebody wakes who sleeps for these bytes: the kernel, or a rank of the segment. MPI's
 * ranks must look themselves. */
static bool is_woken(const tutti_fabric *fabric, tutti_fabric_message *const *messages, int count)
{
    return fabric->segment || through_kernel(fabric, messages, count);
}

/* How often to yield before sleeping. Where ranks share CPUs and much is to come through the
 * kernel, it is the kernel that knows whom to wake: who yields hands the CPU to anybody. */
static int yields_for(const tutti_fabric *fabric, tutti_fabric_message *const *messages, int count)
{
    enum { MUCH = 32 << 10, UNWOKEN = 5000 };
    if (!is_woken(fabric, messages, count))
        return UNWOKEN;
    for (int i = 0; fabric->crowded && i < count; i++)
        if (messages[i]->size >= MUCH && fabric->engines[messages[i]->peer]->descriptor)
            return 0;
    return fabric->yields;
}

void tutti__fabric_waits_long(tutti_fabric *fabric, tutti_long_wait *wait)
{
    enum { LONG_NS = 10000000 };
    int64_t now = tutti__now_ns();
    unsigned moved = atomic_load(&fabric->moved);
    if (wait->since == 0 || wait->moved != moved)
        *wait = (tutti_long_wait){now, moved};
    if (now - wait->since > LONG_NS)
        tutti__fabric_take_in(fabric);
}

static tutti_status wait_all(tutti_fabric *fabric, tutti_fabric_message *const *messages, int count,
                             int64_t deadline_ns)
{
    bool patient = beside && through_kernel(fabric, messages, count);
    int spin = patient ? 0 : fabric->spin;
    int yields = patient ? 0 : yields_for(fabric, messages, count);
    bool woken = is_woken(fabric, messages, count);
    tutti_long_wait stuck = {0};
    for (int round = 0;; round++) {
        tutti__fabric_progress(fabric);
        if (all_complete(messages, count))
            return TUTTI_OK;
        if (round < spin && (round & 127) != 127) {
            tutti__pause();
            continue;
        }
        if (round < spin + yields) {
            if (!woken)
                sched_yield();
            else if (!tutti__fabric_yield(fabric))
                round = spin + yields;
            if ((round & 127) != 127)
                continue;
        }
        TUTTI_TRY(tutti__fabric_check(fabric));
        if (heeded && atomic_load(&heeded->set))
            return tutti__error_restore(&heeded->error);
        tutti__fabric_waits_long(fabric, &stuck);
        int64_t left = deadline_ns - tutti__now_ns();
        if (left <= 0)
            return late(fabric, messages, count);
        if (round >= spin + yields)
            sleep_for(fabric, messages, count, left < slice_ns ? left : slice_ns);
    }
}

/* Who closes its end may only be the first to have heard of another's death: in a forked group the
 * one that ended is named, as soon as the system knows. */
static tutti_status blame(tutti_fabric *fabric, tutti_status status)
{
    enum { LOOKS = 10, BETWEEN_US = 2000 };
    tutti_error seen;
    if (!fabric->family)
        return status;
    tutti__error_capture(status, &seen);
    for (int i = 0; i < LOOKS; i++) {
        fabric->watched_ns = 0;
        TUTTI_TRY(tutti__fabric_check(fabric));
        usleep(BETWEEN_US);
    }
    return tutti__error_restore(&seen);
}

/* The reason stays the thread's error, whatever cancelling says. */
static tutti_status give_up(tutti_fabric *fabric, tutti_fabric_message *const *messages, int count,
                            tutti_status status)
{
    tutti_error reason;
    tutti__error_capture(status, &reason);
    for (int i = 0; i < count; i++)
        tutti__fabric_cancel(fabric, messages[i]);
    return tutti__error_restore(&reason);
}

tutti_status tutti__fabric_wait(tutti_fabric *fabric, tutti_fabric_message *const *messages,
                                int count, int64_t deadline_ns)
{
    tutti_status status = wait_all(fabric, messages, count, deadline_ns);
    for (int i = 0; i < count && status == TUTTI_OK; i++)
        if (messages[i]->status != TUTTI_OK) {
            const tutti_error *why = fabric->streams[messages[i]->peer].error;
            status = blame(fabric, why ? tutti__error_restore(why) : messages[i]->status);
        }
    return status == TUTTI_OK ? status : give_up(fabric, messages, count, status);
}
