/* server_view.c: what a new view makes of the slots of a server: leader, replica, or nothing. */
#include <stdlib.h>

#include "service/store/server_inside.h"

static tutti_status lead(tutti_store_server *server, tutti_store_server_slot *at,
                         const tutti_store_place *place)
{
    if (at->leads)
        return TUTTI_OK;
    if (at->slot && at->complete) {
        at->leads = true;
        at->logged = at->slot->applied;
        at->replica = TUTTI_STORE_NOBODY;
        return TUTTI_OK;
    }
    tutti__store_server_slot_clear(at);
    if (!place->fresh) /* nobody has it any more */
        return TUTTI_OK;
    TUTTI_TRY(tutti__store_slot_create(at->number, server->options.find, &at->slot));
    at->leads = at->complete = true;
    return TUTTI_OK;
}

static void append_members(tutti_store_server *server, tutti_store_server_slot *at)
{
    const tutti_store_view *view = &server->view;
    uint8_t *rows = malloc(8 * (1 + 2 * view->worker_count));
    if (!rows)
        return;
    tutti__packed_put(view->slot_count, 8, rows);
    for (size_t i = 0; i < view->worker_count; i++) {
        tutti__packed_put(view->workers[i].contribution, 8, rows + 8 + 16 * i);
        tutti__packed_put(view->workers[i].incarnation, 8, rows + 16 + 16 * i);
    }
    tutti_store_message op = {.type = TUTTI_STORE_MEMBERS,
                              .view = view->number,
                              .slot = at->number,
                              .node = server->options.node,
                              .incarnation = server->options.incarnation,
                              .rows = {rows, 8 * (1 + 2 * view->worker_count)}};
    tutti__store_server_append(server, at, &op, TUTTI_STORE_NOBODY);
    free(rows);
}

static tutti_status view_of_leader(tutti_store_server *server, tutti_store_server_slot *at,
                                   const tutti_store_place *place)
{
    TUTTI_TRY(lead(server, at, place));
    if (!at->leads)
        return TUTTI_OK;
    const tutti_store_process *replica =
        place->replica == TUTTI_STORE_NOBODY
            ? NULL
            : tutti__store_view_find(&server->view, place->replica);
    tutti__store_server_clear_parked(at); /* they come again, under this view */
    if (!replica) {
        at->replica = TUTTI_STORE_NOBODY;
        at->replica_ready = false;
        tutti__store_server_apply(server, at, at->logged);
    } else if (at->replica != replica->node || at->replica_incarnation != replica->incarnation) {
        at->replica = replica->node;
        at->replica_incarnation = replica->incarnation;
        TUTTI_TRY(tutti__store_server_begin_snapshot(server, at));
    }
    append_members(server, at);
    return TUTTI_OK;
}

static void view_of_replica(tutti_store_server *server, tutti_store_server_slot *at,
                            const tutti_store_place *place)
{
    const tutti_store_process *leader = tutti__store_view_find(&server->view, place->leader);
    uint32_t incarnation = leader ? leader->incarnation : 0;
    if (at->leads || at->replica != place->leader || at->leader_incarnation != incarnation)
        tutti__store_server_slot_clear(at);
    at->replica = place->leader; /* of a replica: whose it is */
    at->leader_incarnation = incarnation;
}

static tutti_status have_slots(tutti_store_server *server, size_t count)
{
    while (server->slots.count < count) {
        tutti_store_server_slot slot = {.number = (uint32_t)server->slots.count,
                                        .replica = TUTTI_STORE_NOBODY,
                                        .snapshot_at = UINT64_MAX};
        if (!TUTTI_VEC_PUSH(&server->slots, slot))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for %zu slots", count);
    }
    return TUTTI_OK;
}

tutti_status tutti__store_server_view(tutti_store_server *server, const tutti_store_view *view,
                                      int64_t now_ns)
{
    tutti_store_view copy;
    TUTTI_UNUSED(now_ns);
    if (view->number <= server->view.number)
        return TUTTI_OK;
    TUTTI_TRY(tutti__store_view_copy(view, &copy));
    tutti__store_view_free(&server->view);
    server->view = copy;
    TUTTI_TRY(have_slots(server, view->slot_count));
    for (size_t s = 0; s < view->slot_count; s++) {
        tutti_store_server_slot *at = &server->slots.data[s];
        const tutti_store_place *place = &server->view.slots[s];
        if (place->leader == server->options.node)
            TUTTI_TRY(view_of_leader(server, at, place));
        else if (place->replica == server->options.node)
            view_of_replica(server, at, place);
        else
            tutti__store_server_slot_clear(at);
    }
    return TUTTI_OK;
}

tutti_status tutti__store_server_restore(tutti_store_server *server, uint32_t number,
                                         const void *data, size_t size)
{
    tutti_store_slot *slot = NULL;
    TUTTI_TRY(tutti__store_slot_load(data, size, server->options.find, &slot));
    if (slot->number != number || number >= TUTTI_STORE_SLOTS || server->view.number > 0) {
        tutti_fail(TUTTI_INVALID,
                   "what was saved is slot %u, not %u; it is restored before the "
                   "first view",
                   slot->number, number);
        tutti__store_slot_free(slot);
        return TUTTI_INVALID;
    }
    tutti_status status = have_slots(server, number + 1);
    if (status != TUTTI_OK) {
        tutti__store_slot_free(slot);
        return status;
    }
    slot->view = 0; /* views are numbered anew */
    tutti__store_server_slot_clear(&server->slots.data[number]);
    server->slots.data[number].slot = slot;
    server->slots.data[number].complete = true;
    return TUTTI_OK;
}

const tutti_store_view *tutti__store_server_last_view(const tutti_store_server *server)
{
    return &server->view;
}
