/* client.c: see client.h. */
#include "service/store/client.h"

#include <inttypes.h>
#include <string.h>

enum { RETRY_NS = 50 * 1000000, SOON_NS = 20 * 1000000 };

void tutti__store_client_init(tutti_store_client *client, const tutti_store_client_options *options)
{
    *client = (tutti_store_client){.options = *options};
    if (client->options.retry_ns <= 0)
        client->options.retry_ns = RETRY_NS;
}

void tutti__store_client_free(tutti_store_client *client)
{
    TUTTI_VEC_FREE(&client->calls);
    tutti__store_view_free(&client->view);
}

tutti_status tutti__store_client_attach(tutti_store_client *client, const tutti_store_guest *guest,
                                        int64_t now_ns)
{
    if (client->guest_count == TUTTI_STORE_GUESTS)
        return tutti_fail(TUTTI_INTERNAL, "a node of parameter servers has no place for more");
    client->guests[client->guest_count++] = *guest;
    if (client->view.number > 0 && guest->view)
        guest->view(guest->context, &client->view, now_ns);
    return TUTTI_OK;
}

void tutti__store_client_detach(tutti_store_client *client, const void *context)
{
    int left = 0;
    for (int i = 0; i < client->guest_count; i++)
        if (client->guests[i].context != context)
            client->guests[left++] = client->guests[i];
    client->guest_count = left;
}

static void send_call(tutti_store_client *client, tutti_store_call *call, int64_t now_ns)
{
    tutti_store_message *m = &call->message;
    call->sent_ns = now_ns;
    if (m->slot >= client->view.slot_count ||
        client->view.slots[m->slot].leader == TUTTI_STORE_NOBODY)
        return;
    m->view = client->view.number;
    tutti__store_send(&client->options.transport, client->view.slots[m->slot].leader, m);
}

tutti_status tutti__store_client_call(tutti_store_client *client,
                                      const tutti_store_message *message, tutti_store_done *done,
                                      void *context, int64_t now_ns)
{
    tutti_store_call call = {*message, done, context, now_ns};
    call.message.node = client->options.node;
    call.message.incarnation = client->options.incarnation;
    call.message.contribution = client->options.contribution;
    call.message.request = ++client->requests;
    if (!TUTTI_VEC_PUSH(&client->calls, call))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a request to a parameter server");
    send_call(client, &client->calls.data[client->calls.count - 1], now_ns);
    return TUTTI_OK;
}

/* `answer` is the one of call i. */
static void finish(tutti_store_client *client, size_t i, const tutti_store_message *answer)
{
    tutti_store_call call = client->calls.data[i];
    client->calls.count--;
    memmove(client->calls.data + i, client->calls.data + i + 1,
            (client->calls.count - i) * sizeof call);
    call.done(call.context, answer);
}

void tutti__store_client_receive(tutti_store_client *client, const uint8_t *frame, size_t size,
                                 int64_t now_ns)
{
    tutti_store_message answer;
    size_t used = 0, i = 0;
    if (tutti__store_message_read(frame, size, &answer, &used) != TUTTI_OK || used != size)
        return;
    if (answer.type == TUTTI_STORE_RUN || answer.type == TUTTI_STORE_RAN) {
        for (int g = 0; g < client->guest_count; g++)
            if (client->guests[g].receive)
                client->guests[g].receive(client->guests[g].context, &answer, now_ns);
        return;
    }
    while (i < client->calls.count && client->calls.data[i].message.request != answer.request)
        i++;
    if (i == client->calls.count) /* answered before */
        return;
    if (answer.type == TUTTI_STORE_REFUSED &&
        (answer.reason == TUTTI_STORE_OLD_VIEW || answer.reason == TUTTI_STORE_ELSEWHERE)) {
        /* Sent again with the next view, or soon: one of the two is behind. */
        client->calls.data[i].sent_ns = now_ns - client->options.retry_ns + SOON_NS;
        return;
    }
    finish(client, i, &answer);
}

tutti_status tutti__store_client_view(tutti_store_client *client, const tutti_store_view *view,
                                      int64_t now_ns)
{
    tutti_store_view copy;
    if (view->number <= client->view.number)
        return TUTTI_OK;
    TUTTI_TRY(tutti__store_view_copy(view, &copy));
    tutti__store_view_free(&client->view);
    client->view = copy;
    for (size_t i = 0; i < client->calls.count; i++)
        send_call(client, &client->calls.data[i], now_ns);
    for (int g = 0; g < client->guest_count; g++)
        if (client->guests[g].view)
            client->guests[g].view(client->guests[g].context, &client->view, now_ns);
    return TUTTI_OK;
}

/* A slot whose leader and replica are gone answers no more. */
static bool is_lost(const tutti_store_client *client, const tutti_store_call *call)
{
    uint32_t slot = call->message.slot;
    return slot < client->view.slot_count && client->view.slots[slot].leader == TUTTI_STORE_NOBODY;
}

void tutti__store_client_tick(tutti_store_client *client, int64_t now_ns)
{
    for (int g = 0; g < client->guest_count; g++)
        if (client->guests[g].tick)
            client->guests[g].tick(client->guests[g].context, now_ns);
    for (size_t i = client->calls.count; i-- > 0;) {
        tutti_store_call *call = &client->calls.data[i];
        if (is_lost(client, call)) {
            tutti_store_message answer = {.slot = call->message.slot, .shard = call->message.shard};
            tutti_fail(TUTTI_CLOSED,
                       "slot %" PRIu32 " is lost: its server is gone, and nobody had a replica; "
                       "start again from a checkpoint, and with replicas=1 next time",
                       call->message.slot);
            tutti__store_refusal(TUTTI_STORE_LOST, &answer);
            finish(client, i, &answer);
            i = i > client->calls.count ? client->calls.count : i; /* `done` may ask anew */
        }
    }
    for (size_t i = 0; i < client->calls.count; i++) /* in the order in which they were made */
        if (now_ns - client->calls.data[i].sent_ns >= client->options.retry_ns)
            send_call(client, &client->calls.data[i], now_ns);
}

void tutti__store_client_again(tutti_store_client *client, uint32_t node, int64_t now_ns)
{
    for (size_t i = 0; i < client->calls.count; i++) {
        uint32_t slot = client->calls.data[i].message.slot;
        if (slot < client->view.slot_count && client->view.slots[slot].leader == node)
            send_call(client, &client->calls.data[i], now_ns);
    }
}
