/* views.c: see views.h. */
#include "service/store/views.h"

#include <stdlib.h>
#include <string.h>

#include "service/store/saved.h"

/* ---- views as bytes ---- */

static void put_processes(tutti_text *out, size_t count, const tutti_store_process *list)
{
    saved_put(out, count);
    for (size_t i = 0; i < count; i++) {
        saved_put(out, list[i].node);
        saved_put(out, list[i].incarnation);
        saved_put(out, list[i].contribution);
    }
}

tutti_status tutti__store_view_write(const tutti_store_view *view, tutti_text *out)
{
    saved_put(out, view->number);
    put_processes(out, view->server_count, view->servers);
    put_processes(out, view->worker_count, view->workers);
    saved_put(out, view->slot_count);
    for (size_t i = 0; i < view->slot_count; i++) {
        saved_put(out, view->slots[i].leader);
        saved_put(out, view->slots[i].replica);
        saved_put(out, view->slots[i].fresh);
    }
    return out->failed ? tutti_fail(TUTTI_NO_MEMORY, "no memory for a view") : TUTTI_OK;
}

static uint32_t get_node(saved_reader *in)
{
    uint64_t node = saved_get(in);
    in->bad = in->bad || node > TUTTI_STORE_NODES;
    return (uint32_t)node;
}

static const tutti_store_process *get_processes(saved_reader *in, size_t *ret_count)
{
    size_t count = saved_get_count(in, 24);
    tutti_store_process *list = calloc(count + 1, sizeof *list);
    in->bad = in->bad || !list;
    for (size_t i = 0; !in->bad && i < count; i++) {
        list[i].node = get_node(in);
        list[i].incarnation = (uint32_t)saved_get(in);
        list[i].contribution = (uint32_t)saved_get(in);
    }
    *ret_count = count;
    return list;
}

tutti_status tutti__store_view_read(const uint8_t *data, size_t size, tutti_store_view *ret_view)
{
    saved_reader in = {data, data + size, false};
    tutti_store_view view = {.number = saved_get(&in)};
    view.servers = get_processes(&in, &view.server_count);
    view.workers = get_processes(&in, &view.worker_count);
    view.slot_count = saved_get_count(&in, 24);
    in.bad = in.bad || view.slot_count > TUTTI_STORE_SLOTS;
    tutti_store_place *slots = in.bad ? NULL : calloc(view.slot_count + 1, sizeof *slots);
    in.bad = in.bad || !slots;
    view.slots = slots;
    for (size_t i = 0; !in.bad && i < view.slot_count; i++) {
        slots[i].leader = get_node(&in);
        slots[i].replica = get_node(&in);
        slots[i].fresh = saved_get(&in) == 1;
    }
    if (in.bad || in.at != in.end) {
        tutti__store_view_free(&view);
        return tutti_fail(TUTTI_CORRUPT, "these bytes are no view of a parameter store");
    }
    *ret_view = view;
    return TUTTI_OK;
}

/* ---- deciding ---- */

typedef struct decider_state {
    uint32_t node, incarnation;
    tutti_store_view view;
    bool *complete;
} decider_state;

struct tutti_store_decider {
    tutti_store_decider_options options;
    uint64_t members; /* the view of the members at hand */
    bool decided;     /* of these */
    TUTTI_VEC(tutti_store_process) servers, workers;
    TUTTI_VEC(decider_state) states;
    tutti_store_place *slots; /* of the view that was decided last */
    tutti_store_view view;    /* the same */
};

tutti_status tutti__store_decider_create(const tutti_store_decider_options *options,
                                         tutti_store_decider **ret_decider)
{
    tutti_store_decider *d = calloc(1, sizeof *d);
    if (d)
        d->slots = calloc(options->slots + 1, sizeof *d->slots);
    if (!d || !d->slots) {
        free(d);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a view");
    }
    d->options = *options;
    *ret_decider = d;
    return TUTTI_OK;
}

static void forget_states(tutti_store_decider *d)
{
    for (size_t i = 0; i < d->states.count; i++) {
        tutti__store_view_free(&d->states.data[i].view);
        free(d->states.data[i].complete);
    }
    d->states.count = 0;
}

void tutti__store_decider_free(tutti_store_decider *d)
{
    if (!d)
        return;
    forget_states(d);
    TUTTI_VEC_FREE(&d->states);
    TUTTI_VEC_FREE(&d->servers);
    TUTTI_VEC_FREE(&d->workers);
    free(d->slots);
    free(d);
}

tutti_status tutti__store_decider_members(tutti_store_decider *d, uint64_t number,
                                          size_t server_count, const tutti_store_process *servers,
                                          size_t worker_count, const tutti_store_process *workers)
{
    bool good = true;
    if (number <= d->members)
        return TUTTI_OK;
    forget_states(d);
    d->members = number;
    d->decided = false;
    d->servers.count = d->workers.count = 0;
    for (size_t i = 0; i < server_count; i++)
        good = TUTTI_VEC_PUSH(&d->servers, servers[i]) && good;
    for (size_t i = 0; i < worker_count; i++)
        good = TUTTI_VEC_PUSH(&d->workers, workers[i]) && good;
    return good ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a view");
}

tutti_status tutti__store_decider_hear(tutti_store_decider *d, const tutti_store_state_of *state)
{
    decider_state heard = {.node = state->node, .incarnation = state->incarnation};
    if (state->members != d->members)
        return TUTTI_OK; /* it speaks again under this one */
    for (size_t i = 0; i < d->states.count; i++)
        if (d->states.data[i].node == state->node)
            return TUTTI_OK;
    TUTTI_TRY(tutti__store_view_copy(&state->view, &heard.view));
    heard.complete = calloc(d->options.slots + 1, sizeof *heard.complete);
    if (heard.complete && state->complete)
        memcpy(heard.complete, state->complete, d->options.slots * sizeof *heard.complete);
    if (heard.complete && TUTTI_VEC_PUSH(&d->states, heard))
        return TUTTI_OK;
    free(heard.complete);
    tutti__store_view_free(&heard.view);
    return tutti_fail(TUTTI_NO_MEMORY, "no memory for a view");
}

static const decider_state *state_of(const tutti_store_decider *d,
                                     const tutti_store_process *server)
{
    for (size_t i = 0; i < d->states.count; i++)
        if (d->states.data[i].node == server->node &&
            d->states.data[i].incarnation == server->incarnation)
            return &d->states.data[i];
    return NULL;
}

static bool all_have_spoken(const tutti_store_decider *d)
{
    for (size_t i = 0; i < d->servers.count; i++)
        if (!state_of(d, &d->servers.data[i]))
            return false;
    return d->servers.count > 0;
}

/* The latest view that somebody knows. */
static const tutti_store_view *latest(const tutti_store_decider *d)
{
    const tutti_store_view *view = &d->states.data[0].view;
    for (size_t i = 1; i < d->states.count; i++)
        if (d->states.data[i].view.number > view->number)
            view = &d->states.data[i].view;
    return view;
}

/* Who goes on with a slot: its leader, or else a server that has all of it under that view. */
static uint32_t leader_of(const tutti_store_decider *d, const tutti_store_view *last, size_t slot)
{
    uint32_t found = TUTTI_STORE_NOBODY;
    for (size_t i = 0; i < d->servers.count; i++) {
        const tutti_store_process *server = &d->servers.data[i];
        const decider_state *state = state_of(d, server);
        const tutti_store_process *then = tutti__store_view_find(last, server->node);
        bool same = then && then->incarnation == server->incarnation;
        bool led = same && last->slots[slot].leader == server->node;
        if (!state->complete[slot])
            continue;
        if (led)
            return server->node;
        if (same && state->view.number == last->number)
            found = server->node;
    }
    return found;
}

static bool is_there(const tutti_store_decider *d, uint32_t node)
{
    for (size_t i = 0; i < d->servers.count; i++)
        if (d->servers.data[i].node == node)
            return true;
    return false;
}

/* The next server behind the leader; the one that it had where that is still there. */
static uint32_t replica_of(const tutti_store_decider *d, uint32_t leader, uint32_t had)
{
    size_t at = 0;
    if (!d->options.replicas || leader == TUTTI_STORE_NOBODY || d->servers.count < 2)
        return TUTTI_STORE_NOBODY;
    if (had != leader && is_there(d, had))
        return had;
    while (at < d->servers.count && d->servers.data[at].node != leader)
        at++;
    return d->servers.data[(at + 1) % d->servers.count].node;
}

static void place_slots(tutti_store_decider *d)
{
    const tutti_store_view *last = latest(d);
    for (size_t s = 0; s < d->options.slots; s++) {
        tutti_store_place *place = &d->slots[s];
        uint32_t had = TUTTI_STORE_NOBODY;
        place->fresh = last->number == 0;
        if (place->fresh) {
            place->leader = d->servers.data[s % d->servers.count].node;
        } else {
            place->leader =
                s < last->slot_count ? leader_of(d, last, s) : (uint32_t)TUTTI_STORE_NOBODY;
            had = s < last->slot_count ? last->slots[s].replica : had;
        }
        place->replica = replica_of(d, place->leader, had);
    }
}

bool tutti__store_decider_decide(tutti_store_decider *d, bool patient,
                                 const tutti_store_view **ret_view)
{
    if (d->decided || !all_have_spoken(d))
        return false;
    if (latest(d)->number == 0 && patient &&
        (d->servers.count < d->options.servers || d->workers.count < d->options.workers))
        return false;
    if (latest(d)->number == 0 && d->workers.count == 0)
        return false;
    place_slots(d);
    d->decided = true;
    d->view = (tutti_store_view){.number = d->members,
                                 .server_count = d->servers.count,
                                 .worker_count = d->workers.count,
                                 .slot_count = d->options.slots,
                                 .servers = d->servers.data,
                                 .workers = d->workers.data,
                                 .slots = d->slots};
    *ret_view = &d->view;
    return true;
}
