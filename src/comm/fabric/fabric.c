/* fabric.c: the life of a fabric, and what ends it. */
#include "comm/fabric/fabric.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/pool.h"
#include "base/world.h"
#include "cluster/place.h"
#include "comm/fabric/segment.h"

/* Rounds of a wait before it yields its CPU each time, and before it sleeps. */
enum {
    SPIN_ALONE = 40000, /* a CPU for each rank: some milliseconds */
    YIELDS_ALONE = 20,
    SPIN_CROWDED = 1, /* more ranks than CPUs: somebody else should run */
    YIELDS_CROWDED = 200,
};

tutti_status tutti__fabric_create(int rank, int size, tutti_fabric **ret_fabric)
{
    tutti_fabric *fabric = calloc(1, sizeof *fabric);
    if (fabric) {
        fabric->streams = calloc((size_t)size, sizeof *fabric->streams);
        fabric->engines = calloc((size_t)size, sizeof *fabric->engines);
        fabric->machine = calloc((size_t)size, sizeof *fabric->machine);
    }
    if (!fabric || !fabric->streams || !fabric->engines || !fabric->machine) {
        if (fabric)
            free(fabric->streams), free(fabric->engines), free(fabric->machine);
        free(fabric);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for links to %d ranks", size);
    }
    fabric->rank = rank;
    fabric->size = size;
    fabric->machines = 1;
    fabric->kick = -1;
    atomic_store(&fabric->references, 1);
    pthread_mutex_init(&fabric->lock, NULL);
    for (int i = 0; i < size; i++) {
        fabric->streams[i].sending.last = &fabric->streams[i].sending.first;
        fabric->streams[i].posted.last = &fabric->streams[i].posted.first;
    }
    *ret_fabric = fabric;
    return TUTTI_OK;
}

void tutti__fabric_add(tutti_fabric *fabric, const tutti_fabric_engine *engine, void *state)
{
    fabric->open[fabric->open_count].engine = engine;
    fabric->open[fabric->open_count++].state = state;
}

static void dismiss_progress_record(tutti_fabric *fabric)
{
    if (fabric->membership && !fabric->trunk)
        tutti__membership_set_progress_record(fabric->membership, (tutti_progress_record){0});
}

void tutti__fabric_forget_members(tutti_fabric *fabric)
{
    if (!atomic_load(&fabric->broken))
        dismiss_progress_record(fabric);
    fabric->membership = NULL;
    for (int i = 0; fabric->lanes && i < fabric->lane_count - 1; i++)
        if (fabric->lanes[i])
            fabric->lanes[i]->membership = NULL;
}

/* One more way to the peers that an engine with lanes reaches. */
static tutti_status add_lane(tutti_fabric *trunk, int number)
{
    tutti_fabric *lane;
    TUTTI_TRY(tutti__fabric_create(trunk->rank, trunk->size, &lane));
    trunk->lanes[number - 1] = lane;
    memcpy(lane->machine, trunk->machine, (size_t)trunk->size * sizeof *lane->machine);
    lane->machines = trunk->machines;
    lane->membership = trunk->membership;
    lane->trunk = trunk;
    lane->cpus = trunk->cpus;
    lane->lane_count = trunk->lane_count;
    for (int i = 0; i < trunk->open_count; i++) {
        const tutti_fabric_engine *engine = trunk->open[i].engine;
        void *state = NULL;
        if (!engine->lane)
            continue;
        for (int peer = 0; peer < trunk->size; peer++)
            if (trunk->engines[peer] == engine)
                lane->engines[peer] = engine;
        TUTTI_TRY(engine->lane(trunk->open[i].state, lane, number, &state));
        tutti__fabric_add(lane, engine, state);
    }
    return tutti__fabric_ready(lane);
}

static tutti_status add_lanes(tutti_fabric *fabric)
{
    fabric->lanes = calloc((size_t)fabric->lane_count - 1, sizeof(tutti_fabric *));
    if (!fabric->lanes)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for links to %d ranks", fabric->size);
    for (int number = fabric->lane_count - 1; number > 0; number--)
        TUTTI_TRY(add_lane(fabric, number));
    return TUTTI_OK;
}

tutti_status tutti__fabric_ready(tutti_fabric *fabric)
{
    bool polled = false;
    int neighbours = 0;
    for (int peer = 0; peer < fabric->size; peer++) {
        tutti_stream *stream = &fabric->streams[peer];
        neighbours += fabric->machine[peer] == fabric->machine[fabric->rank];
        if (peer == fabric->rank || !fabric->engines[peer])
            continue;
        stream->engine = fabric->engines[peer];
        for (int i = 0; i < fabric->open_count; i++)
            if (fabric->open[i].engine == stream->engine)
                stream->state = fabric->open[i].state;
        polled |= stream->engine->descriptor != NULL;
    }
    tutti__cpu_mask(fabric->cpu_mask);
    if (fabric->cpus == 0)
        fabric->cpus = tutti__cpu_count(); /* now: a rank may bind itself to one of them later */
    int lanes = fabric->lane_count > 1 ? fabric->lane_count : 1;
    fabric->crowded = neighbours * lanes > fabric->cpus;
    fabric->spin = fabric->crowded ? SPIN_CROWDED : SPIN_ALONE;
    fabric->yields = fabric->crowded ? YIELDS_CROWDED : YIELDS_ALONE;
    if (polled && (fabric->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) {
        char why[300];
        tutti__descriptors_text(errno, why, sizeof why);
        return tutti_fail(TUTTI_IO, "no event descriptor: %s", why);
    }
    return fabric->lane_count > 1 && !fabric->trunk ? add_lanes(fabric) : TUTTI_OK;
}

static void free_early(tutti_stream *stream)
{
    while (stream->early) {
        tutti_unexpected *next = stream->early->next;
        free(stream->early);
        stream->early = next;
    }
}

/* Answers that their peers did not wait for. */
static void free_answers(tutti_stream *stream)
{
    while (stream->sending.first) {
        tutti_fabric_message *next = stream->sending.first->next;
        if (stream->sending.first->given_away)
            free(stream->sending.first);
        stream->sending.first = next;
    }
}

void tutti__fabric_release(tutti_fabric *fabric)
{
    if (!fabric || atomic_fetch_sub(&fabric->references, 1) > 1)
        return;
    dismiss_progress_record(fabric);
    for (int i = 0; fabric->lanes && i < fabric->lane_count - 1; i++)
        tutti__fabric_release(fabric->lanes[i]);
    for (int i = 0; i < fabric->open_count; i++)
        fabric->open[i].engine->detach(fabric, fabric->open[i].state);
    for (int i = 0; i < fabric->size; i++) {
        free_answers(&fabric->streams[i]);
        free_early(&fabric->streams[i]);
        free(fabric->streams[i].error);
        if (fabric->watch && fabric->watch[i] >= 0)
            close(fabric->watch[i]);
    }
    if (fabric->family) {
        atomic_store(&fabric->family[fabric->rank].left, 1);
        munmap(fabric->family, (size_t)fabric->size * sizeof *fabric->family);
    }
    tutti__calls_drop(fabric->calls);
    tutti__segment_close(fabric->segment);
    if (fabric->kick >= 0)
        close(fabric->kick);
    pthread_mutex_destroy(&fabric->lock);
    free(fabric->watch);
    free(fabric->streams);
    free(fabric->engines);
    free(fabric->machine);
    free(fabric->lanes);
    free(fabric);
}

void tutti__fabric_share_calls(tutti_fabric *fabric, tutti_all_calls *calls)
{
    fabric->calls = tutti__calls_share(calls);
    fabric->noted = &calls->of[fabric->rank];
}

/* Itself, unless it is a lane. */
static tutti_fabric *trunk_of(tutti_fabric *fabric)
{
    return fabric->trunk ? fabric->trunk : fabric;
}

const char *tutti__fabric_name(const tutti_fabric *fabric, int peer, char *ret_text, size_t size)
{
    char host[256];
    if (fabric->trunk)
        return tutti__fabric_name(fabric->trunk, peer, ret_text, size);
    if (fabric->membership) {
        snprintf(ret_text, size, "rank %d (host %s, process %lld)", peer,
                 fabric->membership->peers[peer].host,
                 (long long)fabric->membership->peers[peer].pid);
    } else if (fabric->family) {
        tutti__host_name(host, sizeof host);
        snprintf(ret_text, size, "rank %d (host %s, process %d)", peer, host,
                 atomic_load(&fabric->family[peer].id));
    } else {
        snprintf(ret_text, size, "rank %d", peer);
    }
    return ret_text;
}

/* Where the ranks that share memory tell each other; NULL: nowhere. */
static tutti_abort_flag *abort_flag_of(const tutti_fabric *fabric)
{
    if (fabric->trunk)
        return abort_flag_of(fabric->trunk);
    return fabric->segment ? &fabric->segment->header->abort_flag : fabric->abort_flag;
}

/* Or hears what another was the first to tell, unless that one has died over it. */
static void tell(tutti_fabric *fabric)
{
    enum { LOOKS = 100, BETWEEN_US = 100 };
    tutti_abort_flag *abort_flag = abort_flag_of(fabric);
    tutti_segment *segment = fabric->segment;
    if (!abort_flag)
        return;
    if (!tutti__abort_flag_post(abort_flag, &fabric->error)) {
        for (int i = 0; i < LOOKS && !tutti__abort_flag_there(abort_flag); i++)
            usleep(BETWEEN_US);
        if (tutti__abort_flag_there(abort_flag))
            tutti__abort_flag_read(abort_flag, &fabric->error);
        return;
    }
    for (int i = 0; segment && i < segment->size; i++)
        tutti__segment_wake(segment, i);
}

static tutti_status break_it(tutti_fabric *fabric, tutti_status status, const char *why, bool tells)
{
    pthread_mutex_lock(&fabric->lock);
    if (!atomic_load(&fabric->broken)) {
        fabric->error.status = status;
        snprintf(fabric->error.message, sizeof fabric->error.message, "%s", why);
        if (tells)
            tell(fabric);
        atomic_store(&fabric->broken, true);
    }
    pthread_mutex_unlock(&fabric->lock);
    tutti__fabric_kick(fabric);
    return tutti__error_restore(&fabric->error);
}

tutti_status tutti__fabric_break(tutti_fabric *fabric, tutti_status status, const char *why)
{
    return break_it(fabric, status, why, true);
}

void tutti__fabric_break_here(tutti_fabric *fabric, tutti_status status, const char *why)
{
    (void)break_it(fabric, status, why, false);
}

/* Of the collective that this rank is in: ", to which ranks 0, 2 had come". */
static void name_come(const tutti_fabric *fabric, char *ret_text, size_t size)
{
    enum { NAMED = 16 };
    uint64_t own =
        tutti__calls_place(atomic_load(&fabric->context), atomic_load(&fabric->sequence));
    int named = 0;
    size_t used = (size_t)snprintf(ret_text, size, ", to which ranks");
    for (int i = 0; i < fabric->size && named <= NAMED && used < size; i++) {
        if (tutti__calls_look(&fabric->calls->of[i], own) != TUTTI_HAS_COME)
            continue;
        used += (size_t)(named == NAMED ? snprintf(ret_text + used, size - used, ", …")
                                        : snprintf(ret_text + used, size - used, "%s %d",
                                                   named ? "," : "", i));
        named++;
    }
    if (used < size)
        snprintf(ret_text + used, size - used, " had come");
}

/* How a process ended is told to its parent, which is rank 0, alone: false where that is another.
 */
static bool name_ending(const tutti_fabric *fabric, int rank, char *ret_text, size_t size)
{
    siginfo_t info = {0};
    ret_text[0] = 0;
    if (waitid(P_PID, (id_t)atomic_load(&fabric->family[rank].id), &info,
               WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0)
        return false;
    snprintf(ret_text, size,
             info.si_code == CLD_EXITED ? ", exit code %d" : ", killed by signal %d",
             info.si_status);
    return true;
}

/* So others give it a moment to say so: it looks as often as they do. */
static bool await_parent(const tutti_fabric *fabric)
{
    enum { LOOKS = 100, BETWEEN_US = 2000 };
    for (int i = 0; i < LOOKS && !tutti__fabric_is_told(fabric); i++)
        usleep(BETWEEN_US);
    return tutti__fabric_is_told(fabric);
}

static tutti_status rank_ended(tutti_fabric *fabric, int rank)
{
    char text[900], ending[64], inside[400] = "", come[200], name[320];
    const char *operation = atomic_load(&fabric->operation);
    if (!name_ending(fabric, rank, ending, sizeof ending) && fabric->rank > 0 && rank > 0 &&
        await_parent(fabric))
        return tutti__fabric_check(fabric);
    name_come(fabric, come, sizeof come);
    if (operation)
        snprintf(inside, sizeof inside, "; rank %d was in %s number %llu%s", fabric->rank,
                 operation, (unsigned long long)atomic_load(&fabric->sequence), come);
    snprintf(text, sizeof text, "%s ended without closing the group%s%s",
             tutti__fabric_name(fabric, rank, name, sizeof name), ending, inside);
    return tutti__fabric_break(fabric, TUTTI_CLOSED, text);
}

/* Whether a process of a forked group ended. */
static tutti_status check_processes(tutti_fabric *fabric)
{
    for (int i = 0; i < fabric->size; i++) {
        int id = atomic_load(&fabric->family[i].id), *watch = &fabric->watch[i];
        if (i == fabric->rank || id == 0 || *watch == -2)
            continue;
        if (*watch == -1)
            *watch = (int)syscall(SYS_pidfd_open, id, 0);
        struct pollfd polled = {.fd = *watch, .events = POLLIN};
        bool over = *watch < 0 ? errno == ESRCH : poll(&polled, 1, 0) > 0;
        if (!over)
            continue;
        if (*watch >= 0)
            close(*watch);
        *watch = -2;
        if (!atomic_load(&fabric->family[i].left))
            return rank_ended(fabric, i);
    }
    return TUTTI_OK;
}

bool tutti__fabric_is_stopped(const tutti_fabric *fabric, int rank)
{
    enum { MOST = 4096 };
    const tutti_world *world = tutti__world();
    char path[48];
    void *data;
    size_t size;
    snprintf(path, sizeof path, "/proc/%d/stat", atomic_load(&fabric->family[rank].id));
    if (world->read_file(world->self, path, MOST, &data, &size) != TUTTI_OK)
        return false;
    const char *name_ends = strrchr(data, ')'); /* then a space and the state */
    bool stopped = name_ends && (name_ends[2] == 'T' || name_ends[2] == 't');
    free(data);
    return stopped;
}

void tutti__fabric_give_up(tutti_fabric *fabric)
{
    tutti_abort_flag *abort_flag = abort_flag_of(fabric);
    if (abort_flag)
        atomic_store(&abort_flag->given_up, 1);
}

bool tutti__fabric_is_given_up(const tutti_fabric *fabric)
{
    const tutti_abort_flag *abort_flag = abort_flag_of(fabric);
    return (abort_flag && atomic_load(&abort_flag->given_up)) ||
           (fabric->membership && tutti__membership_deciding(fabric->membership));
}

bool tutti__fabric_is_told(const tutti_fabric *fabric)
{
    const tutti_abort_flag *abort_flag = abort_flag_of(fabric);
    return abort_flag && tutti__abort_flag_there(abort_flag);
}

bool tutti__fabric_is_broken(const tutti_fabric *fabric)
{
    return atomic_load_explicit(&fabric->broken, memory_order_acquire) ||
           tutti__fabric_is_told(fabric) ||
           (fabric->membership && tutti__membership_failed(fabric->membership));
}

bool tutti__fabric_spans(const tutti_fabric *fabric)
{
    return !fabric->segment || fabric->segment->size < fabric->size;
}

/* The membership hears of ranks only through rank 0: a link between two others may be cut. */
static void check_links(tutti_fabric *fabric)
{
    enum { LOOKS = 5 }; /* within what may be silent */
    int64_t now = tutti__now_ns(), silence = tutti__membership_silence(fabric->membership);
    int64_t before = atomic_load(&fabric->answered_ns);
    if (now - before < silence / LOOKS ||
        !atomic_compare_exchange_strong(&fabric->answered_ns, &before, now))
        return;
    for (int i = 0; i < fabric->open_count; i++)
        if (fabric->open[i].engine->watch)
            fabric->open[i].engine->watch(fabric->open[i].state, silence);
}

tutti_status tutti__fabric_check(tutti_fabric *fabric)
{
    tutti_fabric *trunk = trunk_of(fabric);
    if (atomic_load_explicit(&trunk->broken, memory_order_acquire))
        return tutti__error_restore(&trunk->error);
    /* First, since it holds the first cause: who read it there may be gone when we look. */
    if (tutti__fabric_is_told(fabric)) {
        tutti_error error;
        tutti__abort_flag_read(abort_flag_of(fabric), &error);
        return tutti__fabric_break(trunk, error.status, error.message);
    }
    if (fabric->membership && tutti__membership_failed(fabric->membership)) {
        tutti_status status = tutti__membership_fail(fabric->membership);
        char why[1024];
        snprintf(why, sizeof why, "%s", tutti_error_message());
        return tutti__fabric_break(trunk, status, why);
    }
    if (fabric->membership && fabric->machines > 1)
        check_links(fabric);
    int64_t now = fabric->family ? tutti__now_ns() : 0;
    if (fabric->family && now - fabric->watched_ns > 20000000) {
        fabric->watched_ns = now;
        return check_processes(fabric);
    }
    return TUTTI_OK;
}

void tutti__fabric_kick(tutti_fabric *fabric)
{
    uint64_t one = 1;
    if (atomic_load(&fabric->sleepers) == 0)
        return;
    if (fabric->kick >= 0 && write(fabric->kick, &one, sizeof one) < 0)
        return; /* full: it is readable anyway */
    if (fabric->segment)
        tutti__segment_wake(fabric->segment, fabric->segment->rank);
}
