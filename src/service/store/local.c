/* local.c: see local.h. */
#include "service/store/local.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/world.h"

typedef struct letter {
    uint32_t to;
    uint8_t *frame;
    size_t size;
} letter;

typedef struct local_worker {
    tutti_store_client client;
    uint32_t incarnation;
    bool alive;
} local_worker;

struct tutti_store_local {
    tutti_store_local_options options;
    pthread_mutex_t lock; /* guards everything */
    pthread_cond_t moved;
    tutti_store_server **servers; /* NULL: gone */
    local_worker *workers;
    tutti_store_place *slots;
    uint64_t view;
    TUTTI_VEC(letter) letters;
    size_t first;
};

static void local_send(void *context, uint32_t to, uint8_t *frame, size_t size)
{
    tutti_store_local *local = context;
    if (!TUTTI_VEC_PUSH(&local->letters, ((letter){to, frame, size})))
        free(frame); /* it is sent again */
}

static int64_t local_now(void *context)
{
    const tutti_world *world = tutti__world();
    TUTTI_UNUSED(context);
    return world->now_ns(world->self);
}

static void deliver(tutti_store_local *local, const letter *l)
{
    uint32_t servers = (uint32_t)local->options.servers;
    if (l->to < servers && local->servers[l->to])
        tutti__store_server_receive(local->servers[l->to], l->frame, l->size, local_now(NULL));
    else if (l->to >= servers && local->workers[l->to - servers].alive)
        tutti__store_client_receive(&local->workers[l->to - servers].client, l->frame, l->size,
                                    local_now(NULL));
    free(l->frame);
}

static void pump(tutti_store_local *local)
{
    bool any = local->first < local->letters.count;
    while (local->first < local->letters.count) {
        letter l = local->letters.data[local->first++];
        deliver(local, &l);
    }
    local->first = local->letters.count = 0;
    if (any)
        pthread_cond_broadcast(&local->moved);
}

static void tick(tutti_store_local *local)
{
    int64_t now = local_now(NULL);
    for (int s = 0; s < local->options.servers; s++)
        if (local->servers[s])
            tutti__store_server_tick(local->servers[s], now);
    for (int w = 0; w < local->options.workers; w++)
        if (local->workers[w].alive)
            tutti__store_client_tick(&local->workers[w].client, now);
}

static void local_enter(void *context)
{
    tutti_store_local *local = context;
    pthread_mutex_lock(&local->lock);
}

static void local_leave(void *context)
{
    tutti_store_local *local = context;
    pump(local);
    pthread_mutex_unlock(&local->lock);
}

static tutti_status local_wait(void *context, const bool *done)
{
    enum { TICK_NS = 20 * 1000000 };
    tutti_store_local *local = context;
    int64_t until = local_now(NULL) + local->options.deadline_ns;
    for (;;) {
        struct timespec at;
        pump(local);
        if (*done)
            return TUTTI_OK;
        if (local_now(NULL) > until)
            return tutti_fail(TUTTI_DEADLINE,
                              "no answer from the parameter servers within %.0f s; another worker "
                              "may be behind, and nobody has given it up",
                              (double)local->options.deadline_ns / 1e9);
        clock_gettime(CLOCK_REALTIME, &at);
        at.tv_nsec += TICK_NS;
        at.tv_sec += at.tv_nsec / 1000000000;
        at.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&local->moved, &local->lock, &at);
        tick(local);
    }
}

tutti_store_drive tutti__store_local_drive(tutti_store_local *local)
{
    return (tutti_store_drive){local, local_enter, local_leave, local_wait, local_now};
}

static uint32_t contribution_of(const tutti_store_local *local, int w)
{
    int first = local->options.workers - local->options.observers;
    return w < first ? (uint32_t)w : (uint32_t)(TUTTI_STORE_OBSERVER + w - first);
}

/* Everybody that is alive gets the present view. */
static tutti_status tell(tutti_store_local *local, bool fresh)
{
    int servers = local->options.servers, workers = local->options.workers;
    tutti_store_process *processes = calloc((size_t)(servers + workers), sizeof *processes);
    tutti_store_view view = {.number = ++local->view,
                             .slot_count = (size_t)servers,
                             .servers = processes,
                             .slots = local->slots};
    tutti_status status =
        processes ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a view");
    for (int s = 0; processes && s < servers; s++) {
        local->slots[s].fresh = fresh;
        if (local->servers[s])
            processes[view.server_count++] = (tutti_store_process){(uint32_t)s, 1, 0};
    }
    view.workers = processes ? processes + view.server_count : NULL;
    for (int w = 0; processes && w < workers; w++)
        if (local->workers[w].alive)
            processes[view.server_count + view.worker_count++] = (tutti_store_process){
                (uint32_t)(servers + w), local->workers[w].incarnation, contribution_of(local, w)};
    for (int s = 0; status == TUTTI_OK && s < servers; s++)
        if (local->servers[s])
            status = tutti__store_server_view(local->servers[s], &view, local_now(NULL));
    for (int w = 0; status == TUTTI_OK && w < workers; w++)
        if (local->workers[w].alive)
            status = tutti__store_client_view(&local->workers[w].client, &view, local_now(NULL));
    free(processes);
    pump(local);
    return status;
}

static void worker_begin(tutti_store_local *local, int w)
{
    local_worker *worker = &local->workers[w];
    worker->alive = true;
    worker->incarnation++;
    tutti__store_client_init(&worker->client, &(tutti_store_client_options){
                                                  .node = (uint32_t)(local->options.servers + w),
                                                  .incarnation = worker->incarnation,
                                                  .contribution = contribution_of(local, w),
                                                  .transport = {local, local_send},
                                              });
}

static tutti_status local_begin(tutti_store_local *local)
{
    int servers = local->options.servers;
    for (int s = 0; s < servers; s++) {
        TUTTI_TRY(tutti__store_server_create(
            &(tutti_store_server_options){.node = (uint32_t)s,
                                          .incarnation = 1,
                                          .transport = {local, local_send},
                                          .find = local->options.find,
                                          .limit = local->options.limit,
                                          .order = local->options.order},
            &local->servers[s]));
        if (local->options.saved)
            TUTTI_TRY(tutti__store_server_restore(local->servers[s], (uint32_t)s,
                                                  local->options.saved[s].bytes,
                                                  local->options.saved[s].size));
        local->slots[s] = (tutti_store_place){(uint32_t)s,
                                              local->options.replicas && servers > 1
                                                  ? (uint32_t)((s + 1) % servers)
                                                  : TUTTI_STORE_NOBODY,
                                              true};
    }
    for (int w = 0; w < local->options.workers; w++)
        worker_begin(local, w);
    return tell(local, true);
}

tutti_status tutti__store_local_open(const tutti_store_local_options *options,
                                     tutti_store_local **ret_local)
{
    tutti_store_local *local = calloc(1, sizeof *local);
    if (!local)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for parameter servers");
    local->options = *options;
    local->options.workers += options->observers; /* the last ones */
    if (local->options.deadline_ns <= 0)
        local->options.deadline_ns = INT64_C(60000000000);
    pthread_mutex_init(&local->lock, NULL);
    pthread_cond_init(&local->moved, NULL);
    local->servers = calloc((size_t)options->servers, sizeof *local->servers);
    local->slots = calloc((size_t)options->servers, sizeof *local->slots);
    local->workers = calloc((size_t)local->options.workers, sizeof *local->workers);
    tutti_status status = local->servers && local->slots && local->workers
                              ? local_begin(local)
                              : tutti_fail(TUTTI_NO_MEMORY, "no memory for parameter servers");
    if (status == TUTTI_OK)
        *ret_local = local;
    else
        tutti__store_local_close(local);
    return status;
}

void tutti__store_local_close(tutti_store_local *local)
{
    if (!local)
        return;
    for (int s = 0; local->servers && s < local->options.servers; s++)
        tutti__store_server_free(local->servers[s]);
    for (int w = 0; local->workers && w < local->options.workers; w++)
        tutti__store_client_free(&local->workers[w].client);
    for (size_t i = local->first; i < local->letters.count; i++)
        free(local->letters.data[i].frame);
    TUTTI_VEC_FREE(&local->letters);
    free(local->servers);
    free(local->workers);
    free(local->slots);
    pthread_mutex_destroy(&local->lock);
    pthread_cond_destroy(&local->moved);
    free(local);
}

tutti_store_client *tutti__store_local_client(tutti_store_local *local, int worker)
{
    return &local->workers[worker].client;
}

tutti_store_server *tutti__store_local_server(tutti_store_local *local, int server)
{
    return local->servers[server];
}

/* The next server after `from` that is alive, but `but`; NOBODY: there is none. */
static uint32_t next_server(const tutti_store_local *local, uint32_t from, uint32_t but)
{
    uint32_t count = (uint32_t)local->options.servers;
    for (uint32_t i = 1; i <= count; i++) {
        uint32_t s = (from + i) % count;
        if (local->servers[s] && s != but)
            return s;
    }
    return TUTTI_STORE_NOBODY;
}

tutti_status tutti__store_local_kill_server(tutti_store_local *local, int server)
{
    pthread_mutex_lock(&local->lock);
    uint32_t gone = (uint32_t)server;
    tutti__store_server_free(local->servers[server]);
    local->servers[server] = NULL;
    for (uint32_t s = 0; s < (uint32_t)local->options.servers; s++) {
        tutti_store_place *place = &local->slots[s];
        if (place->leader != gone && place->replica != gone)
            continue;
        if (place->leader == gone) {
            bool complete = place->replica != TUTTI_STORE_NOBODY &&
                            tutti__store_server_complete(local->servers[place->replica], s);
            place->leader = complete ? place->replica : TUTTI_STORE_NOBODY;
        }
        place->replica = local->options.replicas && place->leader != TUTTI_STORE_NOBODY
                             ? next_server(local, place->leader, place->leader)
                             : TUTTI_STORE_NOBODY;
    }
    tutti_status status = tell(local, false);
    pthread_mutex_unlock(&local->lock);
    return status;
}

tutti_status tutti__store_local_kill_worker(tutti_store_local *local, int worker)
{
    pthread_mutex_lock(&local->lock);
    local->workers[worker].alive = false;
    tutti__store_client_free(&local->workers[worker].client);
    tutti_status status = tell(local, false);
    pthread_mutex_unlock(&local->lock);
    return status;
}

tutti_status tutti__store_local_join_worker(tutti_store_local *local, int worker)
{
    pthread_mutex_lock(&local->lock);
    worker_begin(local, worker);
    tutti_status status = tell(local, false);
    pthread_mutex_unlock(&local->lock);
    return status;
}
