/* call.c: a link that the heartbeat thread makes itself, without waiting: to the rank that is asked
 * in rank 0's place. Where others listen has been known since the job met, so one attempt says all.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cluster/heartbeat.h"
#include "cluster/interface.h"
#include "cluster/lookup.h"
#include "cluster/roster_view.h"

static tutti_status connect_to(const tutti_heartbeat *heartbeat, int rank, int *ret_socket)
{
    const tutti_world *world = tutti__world();
    const tutti_peer *peer = &heartbeat->roster.members[rank].peer;
    tutti_address to[TUTTI_LOOKUP_MOST], from;
    size_t count = 0;
    bool bound = false;
    TUTTI_TRY(tutti__lookup(peer->address[0] != '\0' ? peer->address : heartbeat->reached,
                            peer->port, tutti__now_ns(), to,
                            &count)); /* a number: it takes no time */
    if (count == 0)
        return TUTTI_NOT_FOUND;
    TUTTI_TRY(tutti__interface_towards(&to[0], &from, &bound));
    *ret_socket = world->connect(world->self, &to[0], bound ? &from : NULL);
    return *ret_socket >= 0 ? TUTTI_OK : TUTTI_IO;
}

bool tutti__channel_listens(tutti_membership *membership, int rank)
{
    const int64_t answer_ns = 300000000;
    const tutti_world *world = tutti__world();
    tutti_error before;
    int socket;
    tutti__error_capture(TUTTI_OK, &before);
    bool listens = connect_to(membership->heartbeat, rank, &socket) == TUTTI_OK;
    if (listens) {
        tutti_wait wait = {socket, TUTTI_WAIT_WRITE, 0};
        listens = world->wait(world->self, &wait, 1, answer_ns) > 0 &&
                  world->connected(world->self, socket) == 0;
        world->close_socket(world->self, socket);
    }
    tutti__error_restore(&before);
    return listens;
}

tutti_calling tutti__call_begin(tutti_heartbeat *heartbeat, int rank, uint32_t purpose,
                                uint32_t number)
{
    tutti_error before;
    tutti_link *link;
    int socket = -1;
    tutti__error_capture(TUTTI_OK, &before);
    bool begun = connect_to(heartbeat, rank, &socket) == TUTTI_OK &&
                 tutti__link_add(heartbeat, (tutti_wire){.socket = socket}, TUTTI_LINK_CALLING,
                                 rank, &link) == TUTTI_OK;
    if (begun) {
        link->connecting = true;
        link->purpose = purpose;
        link->number = number;
        link->incarnation = heartbeat->roster.members[rank].incarnation;
    }
    tutti__error_restore(&before);
    return begun                     ? TUTTI_CALL_BEGUN
           : socket == -ECONNREFUSED ? TUTTI_CALL_REFUSED
                                     : TUTTI_CALL_UNREACHED;
}

static bool is_channel(const tutti_link *link)
{
    return link->purpose == TUTTI_PURPOSE_CHANNEL;
}

void tutti__call_connected(tutti_heartbeat *heartbeat, tutti_link *link)
{
    const tutti_world *world = tutti__world();
    tutti_error before;
    int socket = link->wire.socket;
    tutti__error_capture(TUTTI_OK, &before);
    link->connecting = false;
    int error = world->connected(world->self, socket);
    if (error == -ECONNREFUSED && heartbeat->roster.options.open && !is_channel(link))
        tutti__roster_view_ended(&heartbeat->roster, link->rank);
    if (error != 0)
        tutti__link_end(heartbeat, link, "");
    else if (tutti__wire_open(socket, heartbeat->tls, false, &link->wire) == TUTTI_OK) {
        if (!is_channel(link))
            tutti__roster_stand_in_connected(&heartbeat->roster, link->rank);
    } else {
        link->wire = (tutti_wire){.socket = -1}; /* the other one has been closed */
        tutti__link_end(heartbeat, link, "");
    }
    tutti__error_restore(&before);
}

static void say_hello(tutti_heartbeat *heartbeat, tutti_link *link,
                      const tutti_cluster_message *challenge)
{
    tutti_cluster_message hello;
    uint8_t nonce[TUTTI_NONCE_BYTES];
    if (tutti__random_fill(nonce, sizeof nonce) != TUTTI_OK ||
        tutti__handshake_hello(&heartbeat->me, challenge, link->purpose, link->rank, link->number,
                               nonce, &hello) != TUTTI_REFUSAL_NONE) {
        tutti__link_end(heartbeat, link, "");
        return;
    }
    memcpy(link->nonce, challenge->as.challenge.nonce, sizeof link->nonce);
    memcpy(link->proof, hello.as.hello.proof, sizeof link->proof);
    tutti__link_send(link, &hello);
}

static bool is_proved(const tutti_heartbeat *heartbeat, const tutti_link *link,
                      const tutti_cluster_message *admit)
{
    tutti_cluster_message challenge = {.type = TUTTI_MESSAGE_CHALLENGE};
    tutti_cluster_message hello = {.type = TUTTI_MESSAGE_HELLO};
    memcpy(challenge.as.challenge.nonce, link->nonce, sizeof link->nonce);
    memcpy(hello.as.hello.proof, link->proof, sizeof link->proof);
    return tutti__handshake_confirm(&heartbeat->me, &challenge, &hello, admit);
}

static bool is_greeted(const tutti_link *link)
{
    static const uint8_t none[TUTTI_SHA256_BYTES];
    return memcmp(link->proof, none, sizeof none) != 0;
}

/* With TLS it says something long before it can challenge us. */
void tutti__call_listen(tutti_heartbeat *heartbeat, const tutti_link *link)
{
    bool begun = link->wire.tls != NULL && tutti__tls_begun(link->wire.tls);
    if (!is_channel(link) && (begun || is_greeted(link)))
        tutti__roster_stand_in_heard(&heartbeat->roster, link->rank);
}

/* The wire leaves the link: what has come behind the admission is read from the wire. */
static void keep_channel(tutti_heartbeat *heartbeat, tutti_link *link)
{
    tutti_caller caller = {link->rank, link->number, link->incarnation, link->wire};
    if (TUTTI_VEC_PUSH(&heartbeat->callers, caller)) {
        link->wire = (tutti_wire){.socket = -1};
        heartbeat->news = true;
    }
    link->state = TUTTI_LINK_ENDING;
    tutti__link_end(heartbeat, link, "");
}

/* An open roster, to whose keeper we belong, is elsewhere; or is told to be. */
static void take_refusal(tutti_heartbeat *heartbeat, tutti_link *link,
                         const tutti_cluster_message *message)
{
    int rank = link->rank;
    link->state = TUTTI_LINK_ENDING; /* the roster need not hear of its end */
    tutti__link_end(heartbeat, link, "");
    if (message->as.refuse.reason == TUTTI_REFUSAL_TAKEN)
        tutti__roster_stand_in_taken(&heartbeat->roster, rank);
    else
        tutti__roster_view_refused(&heartbeat->roster, tutti__now_ns(), rank,
                                   message->as.refuse.text);
}

void tutti__call_answer(tutti_heartbeat *heartbeat, tutti_link *link,
                        const tutti_cluster_message *message)
{
    bool greeted = is_greeted(link);
    bool refused = message->type == TUTTI_MESSAGE_REFUSE;
    uint32_t reason = refused ? message->as.refuse.reason : TUTTI_REFUSAL_NONE;
    if (message->type == TUTTI_MESSAGE_CHALLENGE && !greeted)
        say_hello(heartbeat, link, message);
    else if (message->type == TUTTI_MESSAGE_ADMIT && greeted &&
             is_proved(heartbeat, link, message)) {
        if (is_channel(link)) {
            keep_channel(heartbeat, link);
            return;
        }
        link->state = TUTTI_LINK_MEMBER;
        tutti__roster_stand_in_reached(&heartbeat->roster, tutti__now_ns(), link->rank);
    } else if (!is_channel(link) &&
               (reason == TUTTI_REFUSAL_TAKEN || reason == TUTTI_REFUSAL_ELSEWHERE))
        take_refusal(heartbeat, link, message);
    else
        tutti__link_end(heartbeat, link, "");
}
