/* processes.c: see processes.h: how processes meet, serve, call and part. */
#include <stdlib.h>

#include "base/world.h"
#include "service/store/processes_inside.h"

static const int64_t poll_ns = 100 * TUTTI_STORE_MS, patience_ns = 10 * TUTTI_STORE_SECOND,
                     short_ns = 2 * TUTTI_STORE_SECOND;

static int64_t processes_now(void *context)
{
    TUTTI_UNUSED(context);
    return tutti__now_ns();
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
    bool began = tutti__store_processes_view(p)->number > 0;
    /* One that was killed may be started again, but not when others have come to their end. */
    return left >= expected || now - p->alone_ns > (left > 0 ? short_ns
                                                    : began  ? patience_ns
                                                             : wait);
}

tutti_status tutti__store_processes_serve(tutti_store_processes *p)
{
    while (!is_over(p))
        TUTTI_TRY(tutti__store_processes_step(p, tutti__now_ns() + poll_ns));
    return TUTTI_OK;
}

/* ---- a worker ---- */

static void processes_enter(void *context)
{
    tutti_store_processes *p = context;
    pthread_mutex_lock(&p->lock);
    tutti__store_processes_again(p); /* before anything new: pushes of a shard keep their order */
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
        TUTTI_TRY(tutti__store_processes_step(p, until));
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
        status = tutti__store_processes_step(p, until);
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
    int64_t until = tutti__now_ns() + 2 * TUTTI_STORE_SECOND;
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
            tutti__store_processes_send(p, p->client.view.servers[i].node, TUTTI_STORE_TAG_ASK,
                                        nothing, 0);
    }
    while (status == TUTTI_OK && p->reports < asked && tutti__now_ns() < until)
        status = tutti__store_processes_step(p, until);
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
                                             .retry_ns = 5 * TUTTI_STORE_SECOND,
                                             .transport = {p, tutti__store_processes_frame},
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
    until += 5 * TUTTI_STORE_SECOND; /* the servers decide when they have waited as long */
    while (p->client.view.number == 0 && tutti__now_ns() < until)
        TUTTI_TRY(tutti__store_processes_step(p, until));
    return p->client.view.number > 0
               ? TUTTI_OK
               : tutti_fail(TUTTI_DEADLINE, "the parameter servers have said nothing within %.0f s",
                            (double)p->options.join_ns / 1e9 + 5);
}

static tutti_status meet(tutti_store_processes *p)
{
    int64_t until = tutti__now_ns() + p->options.join_ns;
    tutti_transport_calls calls = {.context = p,
                                   .deliver = tutti__store_processes_message,
                                   .lost = tutti__store_processes_lost,
                                   .view = tutti__store_processes_members};
    /* Nobody else has it yet. */
    ((tutti_cluster *)(uintptr_t)p->options.cluster)->open = true;
    TUTTI_TRY(tutti__membership_join_open(p->options.cluster, until, &p->members));
    TUTTI_TRY(begin_role(p));
    TUTTI_TRY(tutti__transport_open(p->members, NULL, &calls, &p->transport));
    const tutti_member_view *view = tutti__membership_view(p->members);
    tutti_status status = tutti__store_processes_begin(p, view->own);
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
    p->again = -1;
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
        status = tutti__membership_leave(p->members, tutti__now_ns() + 10 * TUTTI_STORE_SECOND);
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
