/* keeper.c: the thread that keeps a membership. */
#include "cluster/keeper.h"

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

static void keeper_send(void *context, int rank, const tutti_message *message)
{
    tutti_keeper *keeper = context;
    tutti_link *link = tutti__link_of(keeper, rank);
    if (link != NULL)
        tutti__link_send(link, message);
}

/* The other side reads to the end before it sees that we are gone. */
static void keeper_drop(void *context, int rank)
{
    tutti_keeper *keeper = context;
    tutti_link *link = tutti__link_of(keeper, rank);
    if (link == NULL)
        return;
    bool calling = link->state == TUTTI_LINK_CALLING;
    link->state = TUTTI_LINK_ENDING;
    if (calling) /* there is nothing to say */
        tutti__link_end(keeper, link, "");
}

static bool keeper_call(void *context, int rank)
{
    return tutti__call_begin(context, rank);
}

static void keeper_where(void *context, tutti_wheres *ret_where)
{
    const tutti_keeper *keeper = context;
    tutti__recorder_where(&keeper->recorder, ret_where);
}

static size_t keeper_arrivals(void *context, tutti_arrival *ret_arrivals, size_t limit)
{
    tutti_keeper *keeper = context;
    return tutti__recorder_arrivals(&keeper->recorder, tutti__now_ns(), ret_arrivals, limit);
}

static void keeper_look(void *context, uint64_t group, uint64_t sequence, tutti_ranks *come,
                        tutti_ranks *absent)
{
    const tutti_witness *witness = &((tutti_keeper *)context)->witness;
    if (witness->look != NULL)
        witness->look(witness->context, group, sequence, come, absent);
}

/* ---- telling others ---- */

void tutti__keeper_wake(tutti_keeper *keeper)
{
    uint64_t one = 1;
    if (keeper->wake_fd >= 0 && write(keeper->wake_fd, &one, sizeof one) < 0)
        return; /* full: it is awake */
}

/* A line for the launcher: why this process will end, where nothing else says it: who failed, who
 * waits for it, the rest of the verdict, with tabs between. */
static void tell_launcher(const tutti_keeper *keeper)
{
    const tutti_verdict *verdict = &keeper->roster.verdict;
    char waiting[400], line[sizeof verdict->text + sizeof waiting + 16];
    if (keeper->cluster->launcher_fd < 0)
        return;
    int failure = (int)tutti__verdict_failure_size(verdict);
    tutti__verdict_waiting(verdict, keeper->cluster->size, waiting, sizeof waiting);
    int size = snprintf(line, sizeof line, "verdict %.*s\t%s\t%s", failure, verdict->text, waiting,
                        verdict->text + failure);
    for (int i = 0; i < size; i++)
        line[i] = line[i] == '\n' ? ' ' : line[i];
    line[size++] = '\n';
    (void)!send(keeper->cluster->launcher_fd, line, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void tutti__keeper_publish(tutti_keeper *keeper)
{
    uint64_t one = 1;
    tutti_phase phase = keeper->roster.phase;
    if (keeper->roster.deciding || phase == TUTTI_PHASE_ASKING || phase == TUTTI_PHASE_FAILED)
        atomic_store_explicit(&keeper->membership.deciding, true, memory_order_release);
    if (phase == TUTTI_PHASE_FAILED && !atomic_exchange(&keeper->membership.failed, true)) {
        tell_launcher(keeper);
        if (keeper->failed_fd >= 0)
            (void)!write(keeper->failed_fd, &one, sizeof one);
    }
    pthread_cond_broadcast(&keeper->changed);
}

bool tutti__keeper_wait(tutti_keeper *keeper, int64_t deadline_ns)
{
    if (deadline_ns == TUTTI_NO_DEADLINE)
        return pthread_cond_wait(&keeper->changed, &keeper->lock) == 0;
    if (tutti__now_ns() >= deadline_ns)
        return false;
    struct timespec until = {.tv_sec = deadline_ns / 1000000000,
                             .tv_nsec = deadline_ns % 1000000000};
    return pthread_cond_timedwait(&keeper->changed, &keeper->lock, &until) != ETIMEDOUT;
}

/* ---- the launcher's pipe ---- */

/* "rank 2 signal 9" or "rank 2 exit 1" */
static void take_line(tutti_keeper *keeper, const char *line)
{
    int rank, number;
    char word[16];
    if (sscanf(line, "rank %d %15s %d", &rank, word, &number) != 3)
        return;
    tutti_failure why = strcmp(word, "signal") == 0 ? TUTTI_FAILURE_SIGNAL : TUTTI_FAILURE_EXIT;
    if (rank == keeper->cluster->rank)
        return;
    if (keeper->roster.phase == TUTTI_PHASE_GATHERING)
        tutti__roster_despair(&keeper->roster, rank, why, number);
    else
        tutti__roster_suspect(&keeper->roster, tutti__now_ns(), rank, why, number, "");
}

static void lose_launcher(tutti_keeper *keeper)
{
    tutti_roster *roster = &keeper->roster;
    if (roster->phase != TUTTI_PHASE_RUNNING && roster->phase != TUTTI_PHASE_LEAVING)
        return;
    roster->verdict = (tutti_verdict){.rank = -1, .why = TUTTI_FAILURE_LAUNCHER};
    tutti__verdict_write(&roster->verdict, keeper->cluster->size, 0);
    roster->phase = TUTTI_PHASE_FAILED;
}

static void read_launcher(tutti_keeper *keeper, int *fd)
{
    char bytes[256];
    ssize_t got = read(*fd, bytes, sizeof bytes);
    if (got < 0)
        return;
    if (got == 0) {
        *fd = -1;
        lose_launcher(keeper);
    }
    for (ssize_t i = 0; i < got; i++) {
        if (bytes[i] == '\n') {
            keeper->launcher_line[keeper->launcher_size] = '\0';
            take_line(keeper, keeper->launcher_line);
            keeper->launcher_size = 0;
        } else if (keeper->launcher_size + 1 < sizeof keeper->launcher_line)
            keeper->launcher_line[keeper->launcher_size++] = bytes[i];
    }
}

/* ---- the loop ---- */

enum { WAIT_WAKE, WAIT_LISTENER, WAIT_LAUNCHER, WAIT_LINKS };

typedef TUTTI_VEC(tutti_wait) wait_list;

/* Under the lock. False when memory is out; then the keeper sleeps a little and tries again. */
static bool list_waits(const tutti_keeper *keeper, int launcher, wait_list *waits)
{
    waits->count = 0;
    const tutti_wait fixed[] = {{keeper->wake_fd, TUTTI_WAIT_READ, 0},
                                {keeper->listener, TUTTI_WAIT_READ, 0},
                                {launcher, TUTTI_WAIT_READ, 0}};
    for (size_t i = 0; i < TUTTI_COUNT(fixed); i++)
        if (!TUTTI_VEC_PUSH(waits, fixed[i]))
            return false;
    for (size_t i = 0; i < keeper->links.count; i++) {
        const tutti_link *link = keeper->links.data[i];
        bool sends =
            link->connecting || (link->out_sent < link->out.size && tutti__wire_ready(&link->wire));
        tutti_wait each = {link->wire.socket, TUTTI_WAIT_READ | (sends ? TUTTI_WAIT_WRITE : 0), 0};
        if (!TUTTI_VEC_PUSH(waits, each))
            return false;
    }
    return true;
}

static void serve(tutti_keeper *keeper, tutti_link *link)
{
    if (link->connecting)
        tutti__call_connected(keeper, link);
    tutti__link_read(keeper, link);
    if (link->state == TUTTI_LINK_CALLING)
        tutti__call_listen(keeper, link);
}

void tutti__keeper_flush(tutti_keeper *keeper)
{
    for (size_t i = 0; i < keeper->links.count; i++)
        tutti__link_flush(keeper, keeper->links.data[i]);
}

/* Links before the launcher: a goodbye that has come counts before news of the process that sent
 * it. Links are not added or moved between listing and here, except by `join`, behind the listed
 * ones. */
static void handle(tutti_keeper *keeper, const wait_list *waits, int *launcher)
{
    uint64_t drained;
    if (waits->data[WAIT_WAKE].ret_came != 0)
        (void)!read(keeper->wake_fd, &drained, sizeof drained);
    for (size_t i = WAIT_LINKS; i < waits->count; i++)
        if (waits->data[i].ret_came != 0)
            serve(keeper, keeper->links.data[i - WAIT_LINKS]);
    if (waits->data[WAIT_LISTENER].ret_came != 0)
        tutti__link_accept(keeper);
    if (waits->data[WAIT_LAUNCHER].ret_came != 0)
        read_launcher(keeper, launcher);
    int64_t now = tutti__now_ns(); /* not before what was read: a beat must not precede its echo */
    tutti__roster_tick(&keeper->roster, now);
    tutti__keeper_flush(keeper);
    tutti__link_sweep(keeper, now);
    tutti__keeper_publish(keeper);
}

static void *keep(void *context)
{
    tutti_keeper *keeper = context;
    const tutti_world *world = tutti__world();
    int launcher = keeper->cluster->launcher_fd;
    wait_list waits = {0};
    char warning[sizeof keeper->warning];
    pthread_mutex_lock(&keeper->lock);
    while (!keeper->stop) {
        int64_t timeout = tutti__roster_next(&keeper->roster) - tutti__now_ns();
        bool listed = list_waits(keeper, launcher, &waits);
        memcpy(warning, keeper->warning, sizeof warning);
        keeper->warning[0] = '\0';
        pthread_mutex_unlock(&keeper->lock);
        if (warning[0] != '\0')
            tutti__log(TUTTI_LOG_WARNING, "%s", warning);
        timeout = timeout < 0 ? 0 : timeout > 1000000000 ? 1000000000 : timeout;
        int came = listed ? world->wait(world->self, waits.data, waits.count, timeout) : -ENOMEM;
        if (came < 0)
            world->sleep_ns(world->self, 10000000);
        pthread_mutex_lock(&keeper->lock);
        if (came < 0)
            waits.count = 0;
        if (waits.count > 0)
            handle(keeper, &waits, &launcher);
    }
    pthread_mutex_unlock(&keeper->lock);
    TUTTI_VEC_FREE(&waits);
    return NULL;
}

/* Signals are the program's: its own threads take them. */
tutti_status tutti__keeper_start(tutti_keeper *keeper)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&keeper->thread, NULL, keep, keeper);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0)
        return tutti_fail(TUTTI_NO_MEMORY,
                          "cannot start the thread that keeps the job together: %s",
                          strerror(error));
    keeper->running = true;
    return TUTTI_OK;
}

/* ---- making and ending ---- */

static void keep_from_children(int fd)
{
    if (fd >= 0)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static void init_identity(tutti_keeper *keeper)
{
    tutti_identity *me = &keeper->me;
    me->cluster = keeper->cluster;
    me->epoch = keeper->cluster->epoch;
    me->pid = getpid();
    me->machine = tutti__machine();
    me->secret = keeper->secret.bytes;
    me->secret_size = keeper->secret.size;
    me->token = keeper->roster.token;
    tutti__host_name(me->host, sizeof me->host);
    snprintf(me->job, sizeof me->job, "%s", keeper->cluster->job);
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

static tutti_status fill_keeper(tutti_keeper *keeper)
{
    const tutti_cluster *cluster = keeper->cluster;
    uint64_t job;
    uint8_t token[TUTTI_TOKEN_BYTES];
    TUTTI_TRY(tutti__secret_load(cluster->secret_fd, &keeper->secret));
    TUTTI_TRY(tutti__tls_context_create(&keeper->tls));
    TUTTI_TRY(tutti__random_fill(&job, sizeof job));
    TUTTI_TRY(tutti__random_fill(token, sizeof token));
    init_identity(keeper);
    TUTTI_TRY(tutti__membership_silence_limit(&keeper->silence_ns));
    keeper->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    keeper->failed_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    keeper->opened = calloc((size_t)cluster->size, sizeof *keeper->opened);
    keeper->seen = calloc((size_t)cluster->size, sizeof *keeper->seen);
    keeper->seen_from = calloc((size_t)cluster->size, sizeof *keeper->seen_from);
    if (keeper->wake_fd < 0 || keeper->failed_fd < 0 || !keeper->opened || !keeper->seen ||
        !keeper->seen_from)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory or descriptors for a membership");
    tutti_roster_options options = {.rank = cluster->rank,
                                    .size = cluster->size,
                                    .epoch = cluster->epoch,
                                    .job = job,
                                    .silence_ns = keeper->silence_ns,
                                    .supervised = cluster->launcher_fd >= 0};
    memcpy(options.token, token, sizeof token);
    tutti_roster_ways ways = {.context = keeper,
                              .send = keeper_send,
                              .drop = keeper_drop,
                              .where = keeper_where,
                              .arrivals = keeper_arrivals,
                              .look = keeper_look,
                              .call = keeper_call};
    return tutti__roster_init(&keeper->roster, &options, &ways, tutti__now_ns());
}

tutti_status tutti__keeper_create(const tutti_cluster *cluster, tutti_keeper **ret_keeper)
{
    tutti_keeper *keeper = calloc(1, sizeof *keeper);
    if (keeper == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a membership");
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&keeper->lock, NULL);
    pthread_cond_init(&keeper->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    keeper->own = *cluster;
    keeper->cluster = &keeper->own;
    keeper->listener = keeper->wake_fd = keeper->failed_fd = -1;
    keeper->membership = (tutti_membership){
        .rank = cluster->rank, .size = cluster->size, .epoch = cluster->epoch, .keeper = keeper};
    keep_from_children(cluster->secret_fd);
    keep_from_children(cluster->launcher_fd);
    keep_from_children(cluster->listen_fd);
    if (cluster->launcher_fd >= 0)
        fcntl(cluster->launcher_fd, F_SETFL, O_NONBLOCK);
    tutti_status status = fill_keeper(keeper);
    if (status != TUTTI_OK)
        tutti__keeper_free(keeper);
    else
        *ret_keeper = keeper;
    return status;
}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

void tutti__keeper_free(tutti_keeper *keeper)
{
    if (keeper == NULL)
        return;
    if (keeper->running) {
        pthread_mutex_lock(&keeper->lock);
        keeper->stop = true;
        pthread_mutex_unlock(&keeper->lock);
        tutti__keeper_wake(keeper);
        pthread_join(keeper->thread, NULL);
    }
    for (size_t i = 0; i < keeper->links.count; i++)
        tutti__link_free(keeper->links.data[i]);
    for (size_t i = 0; i < keeper->callers.count; i++)
        tutti__wire_close(&keeper->callers.data[i].wire);
    TUTTI_VEC_FREE(&keeper->links);
    TUTTI_VEC_FREE(&keeper->callers);
    tutti__listener_close(keeper);
    close_fd(keeper->wake_fd);
    close_fd(keeper->failed_fd);
    free((void *)(uintptr_t)keeper->membership.peers);
    free(keeper->opened);
    free(keeper->seen);
    free(keeper->seen_from);
    tutti__roster_free(&keeper->roster);
    tutti__tls_context_free(keeper->tls);
    tutti__secret_wipe(&keeper->secret);
    pthread_cond_destroy(&keeper->changed);
    pthread_mutex_destroy(&keeper->lock);
    free(keeper);
}
