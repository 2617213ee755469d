/* transport.c: see transport.h. */
#include "service/store/transport.h"

#include <stdlib.h>
#include <string.h>

void tutti__store_send(const tutti_store_transport *transport, uint32_t to,
                       const tutti_store_message *message)
{
    size_t size = tutti__store_message_size(message);
    uint8_t *frame = malloc(size);
    if (!frame)
        return;
    tutti__store_message_write(message, frame);
    transport->send(transport->context, to, frame, size);
}

static const void *view_list(const void *list, size_t bytes)
{
    void *copy = malloc(bytes > 0 ? bytes : 1);
    if (copy && bytes > 0)
        memcpy(copy, list, bytes);
    return copy;
}

tutti_status tutti__store_view_copy(const tutti_store_view *view, tutti_store_view *ret_copy)
{
    tutti_store_view copy = *view;
    copy.servers = view_list(view->servers, view->server_count * sizeof *view->servers);
    copy.workers = view_list(view->workers, view->worker_count * sizeof *view->workers);
    copy.slots = view_list(view->slots, view->slot_count * sizeof *view->slots);
    if (copy.servers && copy.workers && copy.slots) {
        *ret_copy = copy;
        return TUTTI_OK;
    }
    tutti__store_view_free(&copy);
    return tutti_fail(TUTTI_NO_MEMORY, "no memory for a view of %zu processes",
                      view->server_count + view->worker_count);
}

void tutti__store_view_free(tutti_store_view *copy)
{
    free((void *)copy->servers);
    free((void *)copy->workers);
    free((void *)copy->slots);
    *copy = (tutti_store_view){0};
}

const tutti_store_process *tutti__store_view_find(const tutti_store_view *view, uint32_t node)
{
    for (size_t i = 0; i < view->server_count; i++)
        if (view->servers[i].node == node)
            return &view->servers[i];
    for (size_t i = 0; i < view->worker_count; i++)
        if (view->workers[i].node == node)
            return &view->workers[i];
    return NULL;
}
