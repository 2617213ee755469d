/* processes_follow.c: what comes and goes between processes of a store: frames, views of the slots,
 * what servers have, reports; and what a change of the job's members means.
 *
 * One thread at a time polls; a worker's calls hold `lock` while they wait, so whatever comes is
 * delivered under it. A server has one thread. */
#include <stdlib.h>
#include <string.h>

#include "base/world.h"
#include "service/store/processes_inside.h"
#include "service/store/saved.h"

static const int64_t tick_ns = 20 * TUTTI_STORE_MS, want_ns = 100 * TUTTI_STORE_MS;

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

void tutti__store_processes_send(tutti_store_processes *p, uint32_t to, uint64_t tag,
                                 uint8_t *bytes, size_t size)
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
        tutti__store_processes_send(p, to, tag, bytes, text->size);
    } else {
        free(bytes);
    }
    tutti__text_free(text);
}

void tutti__store_processes_frame(void *context, uint32_t to, uint8_t *frame, size_t size)
{
    tutti_store_processes *p = context;
    if (to != (uint32_t)p->members->rank)
        tutti__store_processes_send(p, to, TUTTI_STORE_TAG_FRAME, frame, size);
    else if (!TUTTI_VEC_PUSH(&p->to_itself, ((processes_letter){frame, size})))
        free(frame);
}

static void deliver_own(tutti_store_processes *p)
{
    for (size_t i = 0; i < p->to_itself.count; i++) {
        processes_letter l = p->to_itself.data[i];
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

const tutti_store_view *tutti__store_processes_view(const tutti_store_processes *p)
{
    return p->serves ? tutti__store_server_last_view(p->server) : &p->client.view;
}

static void send_view(tutti_store_processes *p, uint32_t node, const tutti_store_view *view)
{
    tutti_text text = {0};
    if (tutti__store_view_write(view, &text) == TUTTI_OK)
        send_text(p, node, TUTTI_STORE_TAG_VIEW, &text);
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
        send_text(p, p->decider, TUTTI_STORE_TAG_STATE, &text);
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
    if (tutti__store_processes_view(p)->number == state.members)
        send_view(p, (uint32_t)rank, tutti__store_processes_view(p)); /* it has not come there */
}

/* The members have changed, and nobody has said what that means for the slots: asks again. */
static void want_view(tutti_store_processes *p, int64_t now)
{
    uint8_t *nothing;
    if (tutti__store_processes_view(p)->number >= p->view || p->decider == TUTTI_STORE_NOBODY ||
        p->cut || p->decider == (uint32_t)p->members->rank || now - p->wanted_ns < want_ns)
        return;
    p->wanted_ns = now;
    if (p->serves)
        say_state(p);
    else if ((nothing = malloc(1)))
        tutti__store_processes_send(p, p->decider, TUTTI_STORE_TAG_WANT, nothing, 0);
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
        bool observes = p->options.coordinated && m->rank == 0;
        tutti_store_process process = {(uint32_t)m->rank, (uint32_t)m->incarnation,
                                       observes ? (uint32_t)TUTTI_STORE_OBSERVER
                                                : (uint32_t)m->rank};
        bool good = role == TUTTI_ROLE_PS ? TUTTI_VEC_PUSH(servers, process)
                                          : TUTTI_VEC_PUSH(workers, process);
        if (!good)
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a view");
    }
    return TUTTI_OK;
}

tutti_status tutti__store_processes_begin(tutti_store_processes *p, uint64_t own)
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
                                      .transport = {p, tutti__store_processes_frame},
                                      .limit = p->options.limit,
                                      .retry_ns = 200 * TUTTI_STORE_MS,
                                      .order = p->options.order},
        &p->server);
}

static tutti_status follow_members(tutti_store_processes *p, const tutti_member_view *view)
{
    process_list servers = {0}, workers = {0};
    p->cut = view->cut || view->own == 0;
    if (view->own != 0 && view->own != p->own)
        TUTTI_TRY(tutti__store_processes_begin(p, view->own));
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

void tutti__store_processes_members(void *context, const tutti_member_view *view)
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
    send_text(p, to, TUTTI_STORE_TAG_REPORT, &text);
}

/* Connections lose nothing but when they end: so what gets no answer is sent again then, and else
 * only after seconds. */
void tutti__store_processes_lost(void *context, int rank, uint64_t incarnation, bool gone,
                                 const char *why)
{
    tutti_store_processes *p = context;
    TUTTI_UNUSED(incarnation);
    TUTTI_UNUSED(why);
    if (!gone && !p->serves)
        p->again = rank; /* not from here: whoever sends to it may hold what it is about */
}

void tutti__store_processes_message(void *context, int rank, uint64_t incarnation, uint64_t tag,
                                    void *data, size_t size)
{
    tutti_store_processes *p = context;
    int64_t now = tutti__now_ns();
    tutti_store_view view;
    if (p->cut)
        return;
    switch (tag) {
    case TUTTI_STORE_TAG_FRAME:
        if (p->serves)
            tutti__store_server_receive(p->server, data, size, now);
        else
            tutti__store_client_receive(&p->client, data, size, now);
        break;
    case TUTTI_STORE_TAG_VIEW:
        if (tutti__store_view_read(data, size, &view) == TUTTI_OK) {
            take_store_view(p, &view);
            tutti__store_view_free(&view);
        }
        break;
    case TUTTI_STORE_TAG_STATE:
        if (p->serves)
            hear_state(p, rank, incarnation, data, size);
        break;
    case TUTTI_STORE_TAG_ASK:
        if (p->serves)
            say_report(p, (uint32_t)rank);
        break;
    case TUTTI_STORE_TAG_REPORT:
        on_report(p, data, size);
        break;
    case TUTTI_STORE_TAG_WANT:
        if (p->serves && tutti__store_processes_view(p)->number == p->view)
            send_view(p, (uint32_t)rank, tutti__store_processes_view(p));
        break;
    default:
        break;
    }
}

void tutti__store_processes_again(tutti_store_processes *p)
{
    if (p->again >= 0)
        tutti__store_client_again(&p->client, (uint32_t)p->again, tutti__now_ns());
    p->again = -1;
}

tutti_status tutti__store_processes_step(tutti_store_processes *p, int64_t until_ns)
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
        tutti__store_processes_again(p);
        bool idle = atomic_load(&p->leaving) == 0; /* nothing is sent twice that is on its way */
        if (p->serves) {
            if (idle)
                tutti__store_server_tick(p->server, now);
            decide(p);
        } else if (idle) {
            tutti__store_client_tick(&p->client, now);
        }
    }
    if (status == TUTTI_OK && p->failed != TUTTI_OK)
        status = tutti_fail(p->failed, "a parameter server's process could not follow a change of "
                                       "its job's members");
    return status;
}
