/* processes.c: see processes.h.
 *
 * One thread at a time polls; a worker's calls hold `lock` while they wait, so whatever comes is
 * delivered under it. A server has one thread. */
#include "service/store/processes.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/world.h"
#include "cluster/cluster.h"
#include "comm/transport/transport.h"
#include "service/store/saved.h"
#include "service/store/views.h"

#define MS INT64_C(1000000)
#define SECOND INT64_C(1000000000)
enum { TAG_FRAME = 1, TAG_VIEW, TAG_STATE, TAG_ASK, TAG_REPORT, TAG_WANT };
static const int64_t tick_ns = 20 * MS, patience_ns = 20 * SECOND, want_ns = 100 * MS;

typedef struct letter {
    uint8_t *frame;
    size_t size;
} letter;

struct tutti_store_processes {
    tutti_store_processes_options options;
    tutti_membership *members;
    tutti_transport *transport;
    bool serves;
    uint64_t own;     /* this process's incarnation */
    bool cut;         /* the others may have another view: nothing of ours counts */
    uint64_t view;    /* of the members, the latest */
    uint32_t decider; /* the server that decides views; NOBODY */
    size_t workers;   /* that are in the view */
    pthread_mutex_t lock;
    int64_t ticked_ns, wanted_ns;
    _Atomic int leaving;         /* frames that have not left */
    TUTTI_VEC(letter) to_itself; /* frames from this process to itself */
    tutti_status failed;         /* of what a callback could not do */
    /* A server's. */
    tutti_store_server *server;
    tutti_store_decider *deciding;
    int64_t began_ns, alone_ns; /* alone: since when no worker is there; 0: some are */
    /* A worker's. */
    tutti_store_client client;
    int reports; /* that have come */
    tutti_store_staleness *staleness;
    tutti_text *lines;
};

static int64_t processes_now(void *context)
{
    TUTTI_UNUSED(context);
    return tutti__now_ns();
}

/* ---- sending ---- */

typedef struct outgoing {
    tutti_store_processes *p;
    uint8_t *frame;
} outgoing;

static void has_left(void *context, tutti_status status)
{
    outgoing *o = context;
    TUTTI_UNUSED(status); /* what did not arrive is sent again by whoever misses the answer */
    atomic_fetch_sub(&o->p->leaving, 1);
    free(o->frame);
    free(o);
}

/* Takes the bytes over. */
static void send_bytes(tutti_store_processes *p, uint32_t to, uint64_t tag, uint8_t *bytes,
                       size_t size)
{
    struct iovec part = {bytes, size};
    outgoing *o = malloc(sizeof *o);
    if (!o) {
        free(bytes);
        return;
    }
    *o = (outgoing){p, bytes};
    tutti_transport_message message = {
        .rank = (int)to, .tag = tag, .parts = &part, .count = 1, .done = has_left, .context = o};
    atomic_fetch_add(&p->leaving, 1);
    if (tutti__transport_send(p->transport, &message) == TUTTI_OK)
        return;
    tutti__error_forget();
    has_left(o, TUTTI_CLOSED);
}

static void send_text(tutti_store_processes *p, uint32_t to, uint64_t tag, tutti_text *text)
{
    uint8_t *bytes = malloc(text->size + 1);
    if (bytes && !text->failed) {
        memcpy(bytes, text->data, text->size);
        send_bytes(p, to, tag, bytes, text->size);
    } else {
        free(bytes);
    }
    tutti__text_free(text);
}

static void send_frame(void *context, uint32_t to, uint8_t *frame, size_t size)
{
    tutti_store_processes *p = context;
    if (to != (uint32_t)p->members->rank)
        send_bytes(p, to, TAG_FRAME, frame, size);
    else if (!TUTTI_VEC_PUSH(&p->to_itself, ((letter){frame, size})))
        free(frame);
}

static void deliver_own(tutti_store_processes *p)
{
    for (size_t i = 0; i < p->to_itself.count; i++) {
        letter l = p->to_itself.data[i];
        if (p->server)
            tutti__store_server_receive(p->server, l.frame, l.size, tutti__now_ns());
        free(l.frame);
    }
    p->to_itself.count = 0;
}

/* ---- views ---- */

static void note_failure(tutti_store_processes *p, tutti_status status)
{
    if (status != TUTTI_OK && p->failed == TUTTI_OK)
        p->failed = status;
}

static void take_store_view(tutti_store_processes *p, const tutti_store_view *view)
{
    int64_t now = tutti__now_ns();
    note_failure(p, p->serves ? tutti__store_server_view(p->server, view, now)
                              : tutti__store_client_view(&p->client, view, now));
}

static const tutti_store_view *last_view(const tutti_store_processes *p)
{
    return p->serves ? tutti__store_server_last_view(p->server) : &p->client.view;
}

static void send_view(tutti_store_processes *p, uint32_t node, const tutti_store_view *view)
{
    tutti_text text = {0};
    if (tutti__store_view_write(view, &text) == TUTTI_OK)
        send_text(p, node, TAG_VIEW, &text);
    else
        tutti__text_free(&text);
}

/* All that are in it get it; this process too. Who misses it asks for it. */
static void give_view(tutti_store_processes *p, const tutti_store_view *view)
{
    for (size_t i = 0; i < view->server_count + view->worker_count; i++) {
        uint32_t node = i < view->server_count ? view->servers[i].node
                                               : view->workers[i - view->server_count].node;
        if (node != (uint32_t)p->members->rank)
            send_view(p, node, view);
    }
    take_store_view(p, view);
}

static void decide(tutti_store_processes *p)
{
    const tutti_store_view *view;
    bool patient = tutti__now_ns() - p->began_ns < p->options.join_ns;
    if (p->deciding && tutti__store_decider_decide(p->deciding, patient, &view))
        give_view(p, view);
}

/* What this server has, to whoever decides. */
static void say_state(tutti_store_processes *p)
{
    tutti_store_state_of state = {.node = (uint32_t)p->members->rank,
                                  .incarnation = (uint32_t)p->own,
                                  .members = p->view,
                                  .view = *tutti__store_server_last_view(p->server)};
    int slots = tutti_cluster_count(p->options.cluster, TUTTI_ROLE_PS);
    bool *complete = calloc((size_t)slots + 1, sizeof *complete);
    for (int s = 0; complete && s < slots; s++)
        complete[s] = tutti__store_server_complete(p->server, (uint32_t)s);
    state.complete = complete;
    if (complete && p->decider == state.node) {
        note_failure(p, tutti__store_decider_hear(p->deciding, &state));
    } else if (complete && p->decider != TUTTI_STORE_NOBODY) {
        tutti_text text = {0};
        saved_put(&text, state.members);
        saved_put(&text, (uint64_t)slots);
        for (int s = 0; s < slots; s++)
            saved_put(&text, complete[s]);
        (void)tutti__store_view_write(&state.view, &text);
        send_text(p, p->decider, TAG_STATE, &text);
    }
    free(complete);
}

static void hear_state(tutti_store_processes *p, int rank, uint64_t incarnation,
                       const uint8_t *data, size_t size)
{
    saved_reader in = {data, data + size, false};
    tutti_store_state_of state = {
        .node = (uint32_t)rank, .incarnation = (uint32_t)incarnation, .members = saved_get(&in)};
    size_t slots = saved_get_count(&in, 8);
    int own = tutti_cluster_count(p->options.cluster, TUTTI_ROLE_PS);
    bool *complete = calloc(slots + (size_t)own + 1, sizeof *complete);
    for (size_t s = 0; complete && s < slots; s++)
        complete[s] = saved_get(&in) == 1;
    state.complete = complete;
    if (complete && !in.bad && (int)slots == own && p->deciding &&
        tutti__store_view_read(in.at, (size_t)(in.end - in.at), &state.view) == TUTTI_OK) {
        note_failure(p, tutti__store_decider_hear(p->deciding, &state));
        tutti__store_view_free(&state.view);
    }
    free(complete);
    decide(p);
    if (last_view(p)->number == state.members)
        send_view(p, (uint32_t)rank, last_view(p)); /* it has not come there */
}

/* The members have changed, and nobody has said what that means for the slots: asks again. */
static void want_view(tutti_store_processes *p, int64_t now)
{
    uint8_t *nothing;
    if (last_view(p)->number >= p->view || p->decider == TUTTI_STORE_NOBODY || p->cut ||
        p->decider == (uint32_t)p->members->rank || now - p->wanted_ns < want_ns)
        return;
    p->wanted_ns = now;
    if (p->serves)
        say_state(p);
    else if ((nothing = malloc(1)))
        send_bytes(p, p->decider, TAG_WANT, nothing, 0);
}

/* All servers are gone: whoever waits for a slot is told so. */
static void lose_all(tutti_store_processes *p)
{
    size_t slots = p->client.view.slot_count;
    tutti_store_place *places = calloc(slots + 1, sizeof *places);
    for (size_t s = 0; places && s < slots; s++)
        places[s] = (tutti_store_place){TUTTI_STORE_NOBODY, TUTTI_STORE_NOBODY, false};
    tutti_store_view view = {.number = p->view, .slot_count = slots, .slots = places};
    if (places && slots > 0)
        take_store_view(p, &view);
    free(places);
}

typedef TUTTI_VEC(tutti_store_process) process_list;

static tutti_status list_members(const tutti_store_processes *p, const tutti_member_view *view,
                                 process_list *servers, process_list *workers)
{
    for (int i = 0; i < view->count; i++) {
        const tutti_view_member *m = &view->members[i];
        tutti_role role;
        int index;
        if (!tutti_cluster_find_rank(p->options.cluster, m->rank, &role, &index))
            continue;
        tutti_store_process process = {(uint32_t)m->rank, (uint32_t)m->incarnation,
                                       (uint32_t)m->rank};
        bool good = role == TUTTI_ROLE_PS ? TUTTI_VEC_PUSH(servers, process)
                                          : TUTTI_VEC_PUSH(workers, process);
        if (!good)
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a view");
    }
    return TUTTI_OK;
}

/* A process that was given up, and is back, is another one: of what it had nothing counts. */
static tutti_status begin_anew(tutti_store_processes *p, uint64_t own)
{
    p->own = own;
    if (!p->serves) {
        p->client.options.incarnation = (uint32_t)own;
        return TUTTI_OK;
    }
    tutti__store_server_free(p->server);
    p->server = NULL;
    return tutti__store_server_create(
        &(tutti_store_server_options){.node = (uint32_t)p->members->rank,
                                      .incarnation = (uint32_t)own,
                                      .transport = {p, send_frame},
                                      .limit = p->options.limit,
                                      .order = p->options.order},
        &p->server);
}

static tutti_status follow_members(tutti_store_processes *p, const tutti_member_view *view)
{
    process_list servers = {0}, workers = {0};
    p->cut = view->cut || view->own == 0;
    if (view->own != 0 && view->own != p->own)
        TUTTI_TRY(begin_anew(p, view->own));
    tutti_status status = list_members(p, view, &servers, &workers);
    p->view = view->number;
    p->workers = workers.count;
    p->decider = servers.count > 0 ? servers.data[0].node : (uint32_t)TUTTI_STORE_NOBODY;
    if (status == TUTTI_OK && p->serves && p->decider == (uint32_t)p->members->rank)
        status = tutti__store_decider_members(p->deciding, view->number, servers.count,
                                              servers.data, workers.count, workers.data);
    if (status == TUTTI_OK && p->serves && !p->cut) {
        say_state(p);
        decide(p);
    }
    if (status == TUTTI_OK && !p->serves && servers.count == 0)
        lose_all(p);
    TUTTI_VEC_FREE(&servers);
    TUTTI_VEC_FREE(&workers);
    return status;
}

/* ---- what comes ---- */

static void on_view(void *context, const tutti_member_view *view)
{
    tutti_store_processes *p = context;
    note_failure(p, follow_members(p, view));
}

static void on_report(tutti_store_processes *p, const uint8_t *data, size_t size)
{
    saved_reader in = {data, data + size, false};
    tutti_store_staleness s = {0};
    tutti__store_staleness_load(&in, &s);
    tutti_packed_data text = saved_get_bytes(&in);
    if (in.bad || !p->staleness)
        return;
    tutti__store_staleness_join(p->staleness, &s);
    tutti__text_bytes(p->lines, text.bytes, text.size);
    p->reports++;
}

static void say_report(tutti_store_processes *p, uint32_t to)
{
    tutti_text text = {0}, lines = {0};
    tutti_store_staleness s = {0};
    tutti__store_server_staleness(p->server, &s);
    tutti__store_server_print(p->server, &lines);
    tutti__store_staleness_save(&s, &text);
    saved_put_bytes(&text, lines.data ? lines.data : "", lines.size);
    tutti__text_free(&lines);
    send_text(p, to, TAG_REPORT, &text);
}

static void on_message(void *context, int rank, uint64_t incarnation, uint64_t tag, void *data,
                       size_t size)
{
    tutti_store_processes *p = context;
    int64_t now = tutti__now_ns();
    tutti_store_view view;
    if (p->cut)
        return;
    switch (tag) {
    case TAG_FRAME:
        if (p->serves)
            tutti__store_server_receive(p->server, data, size, now);
        else
            tutti__store_client_receive(&p->client, data, size, now);
        break;
    case TAG_VIEW:
        if (tutti__store_view_read(data, size, &view) == TUTTI_OK) {
            take_store_view(p, &view);
            tutti__store_view_free(&view);
        }
        break;
    case TAG_STATE:
        if (p->serves)
            hear_state(p, rank, incarnation, data, size);
        break;
    case TAG_ASK:
        if (p->serves)
            say_report(p, (uint32_t)rank);
        break;
    case TAG_REPORT:
        on_report(p, data, size);
        break;
    case TAG_WANT:
        if (p->serves && last_view(p)->number == p->view)
            send_view(p, (uint32_t)rank, last_view(p));
        break;
    default:
        break;
    }
}

/* Moves what can be moved, for at most so long. */
static tutti_status step(tutti_store_processes *p, int64_t until_ns)
{
    int64_t now = tutti__now_ns(), next = p->ticked_ns + tick_ns;
    tutti_status status = TUTTI_OK;
    if (p->to_itself.count == 0)
        status = tutti__transport_poll(p->transport, until_ns < next ? until_ns : next);
    if (status == TUTTI_DEADLINE) {
        tutti__error_forget();
        status = TUTTI_OK;
    }
    deliver_own(p);
    now = tutti__now_ns();
    if (now - p->ticked_ns >= tick_ns) {
        p->ticked_ns = now;
        want_view(p, now);
        if (p->serves) {
            tutti__store_server_tick(p->server, now);
            decide(p);
        } else {
            tutti__store_client_tick(&p->client, now);
        }
    }
    if (status == TUTTI_OK && p->failed != TUTTI_OK)
        status = tutti_fail(p->failed, "a parameter server's process could not follow a change of "
                                       "its job's members");
    return status;
}

/* ---- a server ---- */

static bool is_over(tutti_store_processes *p)
{
    int expected = tutti_cluster_count(p->options.cluster, TUTTI_ROLE_WORKER) +
                   tutti_cluster_count(p->options.cluster, TUTTI_ROLE_CHIEF);
    int64_t now = tutti__now_ns();
    if (p->workers > 0) {
        p->alone_ns = 0;
        return false;
    }
    if (p->alone_ns == 0)
        p->alone_ns = now;
    int left = tutti__membership_count_left(p->members, TUTTI_ROLE_WORKER) +
               tutti__membership_count_left(p->members, TUTTI_ROLE_CHIEF);
    int64_t wait = p->options.join_ns > patience_ns ? p->options.join_ns : patience_ns;
    bool began = last_view(p)->number > 0;
    return left >= expected || now - p->alone_ns > (began ? patience_ns : wait);
}

tutti_status tutti__store_processes_serve(tutti_store_processes *p)
{
    while (!is_over(p))
        TUTTI_TRY(step(p, tutti__now_ns() + 5 * tick_ns));
    return TUTTI_OK;
}

/* ---- a worker ---- */

static void processes_enter(void *context)
{
    tutti_store_processes *p = context;
    pthread_mutex_lock(&p->lock);
}

static void processes_leave(void *context)
{
    tutti_store_processes *p = context;
    pthread_mutex_unlock(&p->lock);
}

static tutti_status processes_wait(void *context, const bool *done)
{
    tutti_store_processes *p = context;
    int64_t until = tutti__now_ns() + p->options.deadline_ns;
    while (!*done) {
        TUTTI_TRY(step(p, until));
        if (!*done && tutti__now_ns() > until)
            return tutti_fail(TUTTI_DEADLINE,
                              "no answer from the parameter servers within %.0f s; another worker "
                              "may be behind, and nobody has given it up",
                              (double)p->options.deadline_ns / 1e9);
    }
    return TUTTI_OK;
}

tutti_status tutti__store_processes_flush(tutti_store_processes *p)
{
    int64_t until = tutti__now_ns() + p->options.deadline_ns;
    tutti_status status = TUTTI_OK;
    pthread_mutex_lock(&p->lock);
    while (status == TUTTI_OK && atomic_load(&p->leaving) > 0 && tutti__now_ns() < until)
        status = step(p, until);
    pthread_mutex_unlock(&p->lock);
    return status;
}

tutti_store_client *tutti__store_processes_client(tutti_store_processes *p)
{
    return &p->client;
}

tutti_store_drive tutti__store_processes_drive(tutti_store_processes *p)
{
    return (tutti_store_drive){p, processes_enter, processes_leave, processes_wait, processes_now};
}

tutti_status tutti__store_processes_report(tutti_store_processes *p, tutti_store_staleness *ret,
                                           tutti_text *lines)
{
    int64_t until = tutti__now_ns() + 2 * SECOND;
    tutti_status status = TUTTI_OK;
    pthread_mutex_lock(&p->lock);
    int asked = (int)p->client.view.server_count;
    *ret = (tutti_store_staleness){0};
    p->staleness = ret;
    p->lines = lines;
    p->reports = 0;
    for (int i = 0; i < asked; i++) {
        uint8_t *nothing = malloc(1);
        if (nothing)
            send_bytes(p, p->client.view.servers[i].node, TAG_ASK, nothing, 0);
    }
    while (status == TUTTI_OK && p->reports < asked && tutti__now_ns() < until)
        status = step(p, until);
    p->staleness = NULL;
    p->lines = NULL;
    pthread_mutex_unlock(&p->lock);
    return status;
}

/* ---- meeting and parting ---- */

bool tutti__store_processes_serves(const tutti_store_processes *p)
{
    return p->serves;
}

static tutti_status begin_role(tutti_store_processes *p)
{
    const tutti_cluster *cluster = p->options.cluster;
    size_t servers = (size_t)tutti_cluster_count(cluster, TUTTI_ROLE_PS);
    tutti_store_decider_options options = {
        .slots = servers,
        .servers = servers,
        .workers = (size_t)(tutti_cluster_count(cluster, TUTTI_ROLE_WORKER) +
                            tutti_cluster_count(cluster, TUTTI_ROLE_CHIEF)),
        .replicas = p->options.replicas};
    p->began_ns = p->ticked_ns = tutti__now_ns();
    if (p->serves)
        return tutti__store_decider_create(&options, &p->deciding);
    tutti__store_client_init(&p->client, &(tutti_store_client_options){
                                             .node = (uint32_t)p->members->rank,
                                             .contribution = (uint32_t)p->members->rank,
                                             .transport = {p, send_frame},
                                         });
    return TUTTI_OK;
}

/* A worker's first view of the servers; who is missing is said in a table. */
static tutti_status await_view(tutti_store_processes *p)
{
    int64_t until = tutti__now_ns() + p->options.join_ns;
    const tutti_cluster *cluster = p->options.cluster;
    if (!cluster->rejoin) {
        for (int role = TUTTI_ROLE_CHIEF; role <= TUTTI_ROLE_PS; role++) {
            int count = tutti_cluster_count(cluster, (tutti_role)role);
            if (count > 0)
                TUTTI_TRY(
                    tutti__membership_await_members(p->members, (tutti_role)role, count, until));
        }
    }
    until += 5 * SECOND; /* the servers decide when they have waited as long */
    while (p->client.view.number == 0 && tutti__now_ns() < until)
        TUTTI_TRY(step(p, until));
    return p->client.view.number > 0
               ? TUTTI_OK
               : tutti_fail(TUTTI_DEADLINE, "the parameter servers have said nothing within %.0f s",
                            (double)p->options.join_ns / 1e9 + 5);
}

static tutti_status meet(tutti_store_processes *p)
{
    int64_t until = tutti__now_ns() + p->options.join_ns;
    tutti_transport_calls calls = {.context = p, .deliver = on_message, .view = on_view};
    /* Nobody else has it yet. */
    ((tutti_cluster *)(uintptr_t)p->options.cluster)->open = true;
    TUTTI_TRY(tutti__membership_join_open(p->options.cluster, until, &p->members));
    TUTTI_TRY(begin_role(p));
    TUTTI_TRY(tutti__transport_open(p->members, NULL, &calls, &p->transport));
    const tutti_member_view *view = tutti__membership_view(p->members);
    tutti_status status = begin_anew(p, view->own);
    tutti__member_view_release(view);
    TUTTI_TRY(status);
    return p->serves ? TUTTI_OK : await_view(p);
}

tutti_status tutti__store_processes_open(const tutti_store_processes_options *options,
                                         tutti_store_processes **ret_processes)
{
    tutti_store_processes *p = calloc(1, sizeof *p);
    if (!p)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for parameter servers");
    p->options = *options;
    p->serves = tutti_cluster_role(options->cluster) == TUTTI_ROLE_PS;
    p->decider = TUTTI_STORE_NOBODY;
    pthread_mutex_init(&p->lock, NULL);
    tutti_status status = meet(p);
    if (status == TUTTI_OK)
        *ret_processes = p;
    else
        (void)tutti__store_processes_close(p, false);
    return status;
}

tutti_status tutti__store_processes_close(tutti_store_processes *p, bool well)
{
    tutti_error kept = {0};
    tutti_status status = TUTTI_OK;
    if (!p)
        return TUTTI_OK;
    if (!well)
        tutti__error_capture(TUTTI_CANCELLED, &kept);
    tutti__transport_close(p->transport);
    if (well && p->members)
        status = tutti__membership_leave(p->members, tutti__now_ns() + 10 * SECOND);
    else
        tutti__membership_abandon(p->members);
    for (size_t i = 0; i < p->to_itself.count; i++)
        free(p->to_itself.data[i].frame);
    TUTTI_VEC_FREE(&p->to_itself);
    tutti__store_server_free(p->server);
    tutti__store_decider_free(p->deciding);
    tutti__store_client_free(&p->client);
    pthread_mutex_destroy(&p->lock);
    free(p);
    if (!well)
        (void)tutti__error_restore(&kept);
    return status;
}
