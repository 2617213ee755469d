/* heartbeat.c: the thread that keeps a membership. */
#include "cluster/heartbeat.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/params.h"
#include "cluster/place.h"

static tutti_param silence_param = TUTTI_PARAM(
    "SILENCE_MS", "5000", "milliseconds without a sign of life until a rank is given up");

/* ---- the roster's ways out; under the lock ---- */

static void heartbeat_send(void *context, int rank, const tutti_cluster_message *message)
{
    tutti_heartbeat *heartbeat = context;
    tutti_link *link = tutti__link_of(heartbeat, rank);
    if (link != NULL)
        tutti__link_send(link, message);
}

/* The other side reads to the end before it sees that we are gone. */
static void heartbeat_drop(void *context, int rank)
{
    tutti_heartbeat *heartbeat = context;
    tutti_link *link = tutti__link_of(heartbeat, rank);
    if (link == NULL)
        return;
    bool calling = link->state == TUTTI_LINK_CALLING;
    link->state = TUTTI_LINK_ENDING;
    if (calling) /* there is nothing to say */
        tutti__link_end(heartbeat, link, "");
}

static tutti_calling heartbeat_call(void *context, int rank, uint32_t purpose)
{
    return tutti__call_begin(context, rank, purpose, 0);
}

static void heartbeat_where(void *context, tutti_wheres *ret_where)
{
    const tutti_heartbeat *heartbeat = context;
    tutti__recorder_where(&heartbeat->recorder, ret_where);
}

static size_t heartbeat_arrivals(void *context, tutti_arrival *ret_arrivals, size_t limit)
{
    tutti_heartbeat *heartbeat = context;
    return tutti__recorder_arrivals(&heartbeat->recorder, tutti__now_ns(), ret_arrivals, limit);
}

static void heartbeat_look(void *context, uint64_t group, uint64_t sequence, tutti_ranks *come,
                           tutti_ranks *absent)
{
    const tutti_progress_record *progress_record = &((tutti_heartbeat *)context)->progress_record;
    if (progress_record->look != NULL)
        progress_record->look(progress_record->context, group, sequence, come, absent);
}

static void heartbeat_training(void *context, size_t size, char *ret_text)
{
    const tutti_heartbeat *heartbeat = context;
    int64_t step = atomic_load(&heartbeat->step);
    if (step > 0 && heartbeat->saved[0])
        snprintf(ret_text, size, "during step %lld; last checkpoint: step %lld, %s",
                 (long long)step, (long long)heartbeat->saved_step, heartbeat->saved);
    else if (step > 0)
        snprintf(ret_text, size, "during step %lld", (long long)step);
}

/* ---- telling others ---- */

void tutti__heartbeat_wake(tutti_heartbeat *heartbeat)
{
    uint64_t one = 1;
    if (heartbeat->wake_fd >= 0 && write(heartbeat->wake_fd, &one, sizeof one) < 0)
        return; /* full: it is awake */
}

/* A line for the launcher: why this process will end, where nothing else says it: who failed, who
 * waits for it, the rest of the verdict, with tabs between. */
static void tell_launcher(const tutti_heartbeat *heartbeat)
{
    const tutti_verdict *verdict = &heartbeat->roster.verdict;
    char waiting[400], line[sizeof verdict->text + sizeof waiting + 16];
    if (heartbeat->cluster->launcher_fd < 0)
        return;
    int failure = (int)tutti__verdict_failure_size(verdict);
    tutti__verdict_waiting(verdict, heartbeat->cluster->size, waiting, sizeof waiting);
    int size = snprintf(line, sizeof line, "verdict %.*s\t%s\t%s", failure, verdict->text, waiting,
                        verdict->text + failure);
    for (int i = 0; i < size; i++)
        line[i] = line[i] == '\n' ? ' ' : line[i];
    line[size++] = '\n';
    (void)!send(heartbeat->cluster->launcher_fd, line, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void tutti__heartbeat_publish(tutti_heartbeat *heartbeat)
{
    uint64_t one = 1;
    tutti_phase phase = heartbeat->roster.phase;
    bool open = heartbeat->roster.options.open;
    if (open)
        tutti__member_view_show(heartbeat);
    if (!open &&
        (heartbeat->roster.deciding || phase == TUTTI_PHASE_ASKING || phase == TUTTI_PHASE_FAILED))
        atomic_store_explicit(&heartbeat->membership.deciding, true, memory_order_release);
    if (phase == TUTTI_PHASE_FAILED && !atomic_exchange(&heartbeat->membership.failed, true)) {
        tell_launcher(heartbeat);
        if (heartbeat->failed_fd >= 0)
            (void)!write(heartbeat->failed_fd, &one, sizeof one);
    }
    pthread_cond_broadcast(&heartbeat->changed);
}

bool tutti__heartbeat_wait(tutti_heartbeat *heartbeat, int64_t deadline_ns)
{
    if (deadline_ns == TUTTI_NO_DEADLINE)
        return pthread_cond_wait(&heartbeat->changed, &heartbeat->lock) == 0;
    if (tutti__now_ns() >= deadline_ns)
        return false;
    struct timespec until = {.tv_sec = deadline_ns / 1000000000,
                             .tv_nsec = deadline_ns % 1000000000};
    return pthread_cond_timedwait(&heartbeat->changed, &heartbeat->lock, &until) != ETIMEDOUT;
}

/* ---- the launcher's pipe ---- */

/* "rank 2 signal 9" or "rank 2 exit 1" */
static void take_line(tutti_heartbeat *heartbeat, const char *line)
{
    int rank, number;
    char word[16];
    if (sscanf(line, "rank %d %15s %d", &rank, word, &number) != 3)
        return;
    tutti_failure why = strcmp(word, "signal") == 0 ? TUTTI_FAILURE_SIGNAL : TUTTI_FAILURE_EXIT;
    if (rank == heartbeat->cluster->rank)
        return;
    if (heartbeat->roster.phase == TUTTI_PHASE_GATHERING)
        tutti__roster_despair(&heartbeat->roster, rank, why, number);
    else
        tutti__roster_suspect(&heartbeat->roster, tutti__now_ns(), rank, why, number, "");
}

static void lose_launcher(tutti_heartbeat *heartbeat)
{
    tutti_roster *roster = &heartbeat->roster;
    bool seeks = roster->options.open && roster->phase == TUTTI_PHASE_ASKING;
    if (roster->phase != TUTTI_PHASE_RUNNING && roster->phase != TUTTI_PHASE_LEAVING && !seeks)
        return;
    roster->verdict = (tutti_verdict){.rank = -1, .why = TUTTI_FAILURE_LAUNCHER};
    tutti__verdict_write(&roster->verdict, heartbeat->cluster->size, 0);
    roster->phase = TUTTI_PHASE_FAILED;
}

static void read_launcher(tutti_heartbeat *heartbeat, int *fd)
{
    char bytes[256];
    ssize_t got = read(*fd, bytes, sizeof bytes);
    if (got < 0)
        return;
    if (got == 0) {
        *fd = -1;
        lose_launcher(heartbeat);
    }
    for (ssize_t i = 0; i < got; i++) {
        if (bytes[i] == '\n') {
            heartbeat->launcher_line[heartbeat->launcher_size] = '\0';
            take_line(heartbeat, heartbeat->launcher_line);
            heartbeat->launcher_size = 0;
        } else if (heartbeat->launcher_size + 1 < sizeof heartbeat->launcher_line)
            heartbeat->launcher_line[heartbeat->launcher_size++] = bytes[i];
    }
}

/* ---- the loop ---- */

enum { WAIT_WAKE, WAIT_LISTENER, WAIT_LAUNCHER, WAIT_LINKS };

typedef TUTTI_VEC(tutti_wait) wait_list;

/* Under the lock. False when memory is out; then the heartbeat thread sleeps a little and tries
 * again. */
static bool list_waits(const tutti_heartbeat *heartbeat, int launcher, wait_list *waits)
{
    waits->count = 0;
    const tutti_wait fixed[] = {{heartbeat->wake_fd, TUTTI_WAIT_READ, 0},
                                {heartbeat->listener, TUTTI_WAIT_READ, 0},
                                {launcher, TUTTI_WAIT_READ, 0}};
    for (size_t i = 0; i < TUTTI_COUNT(fixed); i++)
        if (!TUTTI_VEC_PUSH(waits, fixed[i]))
            return false;
    for (size_t i = 0; i < heartbeat->links.count; i++) {
        const tutti_link *link = heartbeat->links.data[i];
        bool sends =
            link->connecting || (link->out_sent < link->out.size && tutti__wire_ready(&link->wire));
        tutti_wait each = {link->wire.socket, TUTTI_WAIT_READ | (sends ? TUTTI_WAIT_WRITE : 0), 0};
        if (!TUTTI_VEC_PUSH(waits, each))
            return false;
    }
    return true;
}

static void serve(tutti_heartbeat *heartbeat, tutti_link *link)
{
    if (link->connecting)
        tutti__call_connected(heartbeat, link);
    tutti__link_read(heartbeat, link);
    if (link->state == TUTTI_LINK_CALLING)
        tutti__call_listen(heartbeat, link);
}

void tutti__heartbeat_flush(tutti_heartbeat *heartbeat)
{
    for (size_t i = 0; i < heartbeat->links.count; i++)
        tutti__link_flush(heartbeat, heartbeat->links.data[i]);
}

/* Links before the launcher: a goodbye that has come counts before news of the process that sent
 * it. Links are not added or moved between listing and here, except by `join`, behind the listed
 * ones. */
static void handle(tutti_heartbeat *heartbeat, const wait_list *waits, int *launcher)
{
    uint64_t drained;
    if (waits->data[WAIT_WAKE].ret_came != 0)
        (void)!read(heartbeat->wake_fd, &drained, sizeof drained);
    for (size_t i = WAIT_LINKS; i < waits->count; i++)
        if (waits->data[i].ret_came != 0)
            serve(heartbeat, heartbeat->links.data[i - WAIT_LINKS]);
    if (waits->data[WAIT_LISTENER].ret_came != 0)
        tutti__link_accept(heartbeat);
    if (waits->data[WAIT_LAUNCHER].ret_came != 0)
        read_launcher(heartbeat, launcher);
    int64_t now = tutti__now_ns(); /* not before what was read: a beat must not precede its echo */
    if (heartbeat->roster.phase == TUTTI_PHASE_GATHERING && heartbeat->roster.options.open)
        heartbeat->roster.ticked_ns = now; /* it waits for nobody's beats */
    tutti__roster_tick(&heartbeat->roster, now);
    tutti__heartbeat_flush(heartbeat);
    tutti__link_sweep(heartbeat, now);
    tutti__heartbeat_publish(heartbeat);
}

static void *heartbeat_keep(void *context)
{
    tutti_heartbeat *heartbeat = context;
    const tutti_world *world = tutti__world();
    int launcher = heartbeat->cluster->launcher_fd;
    wait_list waits = {0};
    char warning[sizeof heartbeat->warning];
    pthread_mutex_lock(&heartbeat->lock);
    while (!heartbeat->stop) {
        int64_t timeout = tutti__roster_next(&heartbeat->roster) - tutti__now_ns();
        bool listed = list_waits(heartbeat, launcher, &waits);
        memcpy(warning, heartbeat->warning, sizeof warning);
        heartbeat->warning[0] = '\0';
        pthread_mutex_unlock(&heartbeat->lock);
        if (warning[0] != '\0')
            tutti__log(TUTTI_LOG_WARNING, "%s", warning);
        timeout = timeout < 0 ? 0 : timeout > 1000000000 ? 1000000000 : timeout;
        int came = listed ? world->wait(world->self, waits.data, waits.count, timeout) : -ENOMEM;
        if (came < 0)
            world->sleep_ns(world->self, 10000000);
        pthread_mutex_lock(&heartbeat->lock);
        if (came < 0)
            waits.count = 0;
        if (waits.count > 0)
            handle(heartbeat, &waits, &launcher);
        tutti__member_view_tell(heartbeat);
    }
    pthread_mutex_unlock(&heartbeat->lock);
    TUTTI_VEC_FREE(&waits);
    return NULL;
}

/* Signals are the program's: its own threads take them. */
tutti_status tutti__heartbeat_start(tutti_heartbeat *heartbeat)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&heartbeat->thread, NULL, heartbeat_keep, heartbeat);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0)
        return tutti_fail(TUTTI_NO_MEMORY,
                          "cannot start the thread that keeps the job together: %s",
                          strerror(error));
    heartbeat->running = true;
    return TUTTI_OK;
}

/* ---- making and ending ---- */

static void keep_from_children(int fd)
{
    if (fd >= 0)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static void init_identity(tutti_heartbeat *heartbeat)
{
    tutti_identity *me = &heartbeat->me;
    me->cluster = heartbeat->cluster;
    me->epoch = heartbeat->cluster->epoch;
    me->pid = getpid();
    me->machine = tutti__machine();
    me->secret = heartbeat->secret.bytes;
    me->secret_size = heartbeat->secret.size;
    me->token = heartbeat->roster.token;
    me->open = heartbeat->own.open;
    tutti__host_name(me->host, sizeof me->host);
    snprintf(me->job, sizeof me->job, "%s", heartbeat->cluster->job);
}

/* Set but empty is not set. A job that waits for another time than was meant is not worth
 * starting. */
tutti_status tutti__membership_silence_limit(int64_t *ret_ns)
{
    enum { LEAST = 100, MOST = 1000000000 };
    const char *text = tutti__param_text(&silence_param);
    char *end;
    if (*text == '\0')
        text = silence_param.fallback;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < LEAST || value > MOST)
        return tutti_fail(TUTTI_INVALID,
                          "TUTTI_SILENCE_MS is '%.40s'; it must be a whole number of milliseconds, "
                          "from %d to %d",
                          text, LEAST, MOST);
    *ret_ns = value * 1000000;
    return TUTTI_OK;
}

static tutti_status fill_heartbeat(tutti_heartbeat *heartbeat)
{
    const tutti_cluster *cluster = heartbeat->cluster;
    uint64_t job;
    uint8_t token[TUTTI_TOKEN_BYTES];
    TUTTI_TRY(tutti__secret_load(cluster->secret_fd, &heartbeat->secret));
    TUTTI_TRY(tutti__tls_context_create(&heartbeat->tls));
    TUTTI_TRY(tutti__random_fill(&job, sizeof job));
    TUTTI_TRY(tutti__random_fill(token, sizeof token));
    init_identity(heartbeat);
    TUTTI_TRY(tutti__membership_silence_limit(&heartbeat->silence_ns));
    heartbeat->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    heartbeat->failed_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    heartbeat->opened = calloc((size_t)cluster->size, sizeof *heartbeat->opened);
    heartbeat->seen = calloc((size_t)cluster->size, sizeof *heartbeat->seen);
    heartbeat->seen_from = calloc((size_t)cluster->size, sizeof *heartbeat->seen_from);
    if (heartbeat->wake_fd < 0 || heartbeat->failed_fd < 0 || !heartbeat->opened ||
        !heartbeat->seen || !heartbeat->seen_from)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory or descriptors for a membership");
    tutti_roster_options options = {.rank = cluster->rank,
                                    .size = cluster->size,
                                    .epoch = cluster->epoch,
                                    .job = job,
                                    .silence_ns = heartbeat->silence_ns,
                                    .supervised = cluster->launcher_fd >= 0,
                                    .open = cluster->open};
    memcpy(options.token, token, sizeof token);
    tutti_roster_ways ways = {.context = heartbeat,
                              .send = heartbeat_send,
                              .drop = heartbeat_drop,
                              .where = heartbeat_where,
                              .arrivals = heartbeat_arrivals,
                              .look = heartbeat_look,
                              .training = heartbeat_training,
                              .call = heartbeat_call};
    TUTTI_TRY(tutti__roster_init(&heartbeat->roster, &options, &ways, tutti__now_ns()));
    if (cluster->open)
        heartbeat->me.incarnation = &heartbeat->roster.members[cluster->rank].incarnation;
    return TUTTI_OK;
}

tutti_status tutti__heartbeat_create(const tutti_cluster *cluster, tutti_heartbeat **ret_heartbeat)
{
    tutti_heartbeat *heartbeat = calloc(1, sizeof *heartbeat);
    if (heartbeat == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a membership");
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&heartbeat->lock, NULL);
    pthread_cond_init(&heartbeat->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    heartbeat->own = *cluster;
    heartbeat->cluster = &heartbeat->own;
    heartbeat->listener = heartbeat->wake_fd = heartbeat->failed_fd = -1;
    heartbeat->keeper_told = -1;
    heartbeat->membership = (tutti_membership){.rank = cluster->rank,
                                               .size = cluster->size,
                                               .epoch = cluster->epoch,
                                               .heartbeat = heartbeat};
    keep_from_children(cluster->secret_fd);
    keep_from_children(cluster->launcher_fd);
    keep_from_children(cluster->listen_fd);
    if (cluster->launcher_fd >= 0)
        fcntl(cluster->launcher_fd, F_SETFL, O_NONBLOCK);
    tutti_status status = fill_heartbeat(heartbeat);
    if (status != TUTTI_OK)
        tutti__heartbeat_free(heartbeat);
    else
        *ret_heartbeat = heartbeat;
    return status;
}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

void tutti__heartbeat_free(tutti_heartbeat *heartbeat)
{
    if (heartbeat == NULL)
        return;
    if (heartbeat->running) {
        pthread_mutex_lock(&heartbeat->lock);
        heartbeat->stop = true;
        pthread_mutex_unlock(&heartbeat->lock);
        tutti__heartbeat_wake(heartbeat);
        pthread_join(heartbeat->thread, NULL);
    }
    for (size_t i = 0; i < heartbeat->links.count; i++)
        tutti__link_free(heartbeat->links.data[i]);
    for (size_t i = 0; i < heartbeat->callers.count; i++)
        tutti__wire_close(&heartbeat->callers.data[i].wire);
    TUTTI_VEC_FREE(&heartbeat->links);
    TUTTI_VEC_FREE(&heartbeat->callers);
    TUTTI_VEC_FREE(&heartbeat->watchers);
    tutti__member_view_release(heartbeat->shown);
    tutti__listener_close(heartbeat);
    close_fd(heartbeat->wake_fd);
    close_fd(heartbeat->failed_fd);
    free((void *)(uintptr_t)heartbeat->membership.peers);
    free(heartbeat->opened);
    free(heartbeat->seen);
    free(heartbeat->seen_from);
    tutti__roster_free(&heartbeat->roster);
    tutti__tls_context_free(heartbeat->tls);
    tutti__secret_wipe(&heartbeat->secret);
    pthread_cond_destroy(&heartbeat->changed);
    pthread_mutex_destroy(&heartbeat->lock);
    free(heartbeat);
}
